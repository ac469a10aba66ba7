package reports_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/creack/pty"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gleak"

	"github.com/acp-test/acp-test/inspector"
	"github.com/acp-test/acp-test/protocol/acp/canonical"
	"github.com/acp-test/acp-test/reports"
	"github.com/acp-test/acp-test/scenarios/results"
	"github.com/acp-test/acp-test/scenarios/verdict"
	"github.com/acp-test/acp-test/transcript"
)

// buffer may be read while the console writes.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// lines are what a terminal shows of the live output after each write.
func last(text string) string {
	at := strings.LastIndex(text, "\r")
	return strings.TrimSuffix(text[at+1:], "\x1b[K")
}

var _ = Describe("the console", func() {
	BeforeEach(func() {
		before := gleak.Goroutines()
		DeferCleanup(func() { Eventually(gleak.Goroutines).ShouldNot(gleak.HaveLeaked(before)) })
	})

	now := time.Unix(0, 0)
	clock := func() time.Time { return now }

	It("says once that the rest is not tried", func() {
		untried := func(id string) results.Result {
			return results.Result{ID: id, Verdict: results.Skip, NotStarted: true,
				Reason: "not tried: it did not start"}
		}
		show := func(o reports.ConsoleOptions) string {
			var b bytes.Buffer
			c := reports.NewConsole(&b, o)
			DeferCleanup(c.Close)
			c.Finished(untried("a/one"))
			c.Finished(untried("a/two"))
			return b.String()
		}
		Expect(show(reports.ConsoleOptions{})).
			To(Equal("skip  a/one and all that follows: not tried: it did not start\n"))
		Expect(show(reports.ConsoleOptions{Quiet: true})).To(BeEmpty())
		Expect(show(reports.ConsoleOptions{Verbose: true})).To(ContainSubstring("a/two"))
	})

	It("keeps a failure on a screen", func() {
		var b bytes.Buffer
		reports.NewConsole(&b, reports.ConsoleOptions{}).Finished(screens())
		lines := strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
		Expect(len(lines)).To(BeNumerically("<=", 45))
		Expect(b.String()).To(ContainSubstring("more lines"))
		Expect(b.String()).To(ContainSubstring("also         long/story#c2, long/story#c3, long/story#c4, " +
			"long/story#c5 and 3 more"))
		Expect(lines[len(lines)-1]).To(Equal("      run again    acp-test run --run long/story"))
	})

	It("says why there is no verdict before what was therefore not reached", func() {
		var b bytes.Buffer
		reports.NewConsole(&b, reports.ConsoleOptions{}).Finished(results.Result{
			ID: "files/crlf", File: "files/crlf.txtar", Verdict: results.Error, Reason: "files/crlf.txtar:4: no sh",
			Checks: []results.Check{{ID: "files/crlf#kept", Slug: "kept", Line: 8, Verdict: results.Fail,
				NotReached: true}},
		})
		Expect(b.String()).To(MatchRegexp(`(?s)^ERROR files/crlf .*\n +files/crlf.txtar:4: no sh\n.*not reached`))
	})

	It("says of a golden whose scenario would be skipped why, and what to do if that is meant", func() {
		shown := func(g results.Golden) string {
			var b bytes.Buffer
			reports.NewConsole(&b, reports.ConsoleOptions{}).
				Finished(results.Result{ID: "a/b", File: "a/b.txtar", Verdict: results.Fail, Golden: &g})
			return b.String()
		}
		g := results.Golden{State: "differs", Path: "golden/x/a/b.golden", Diff: "-want +got\n"}
		Expect(shown(g)).NotTo(ContainSubstring("if meant"))
		g.Skipped = "the agent asks for nothing"
		Expect(shown(g)).To(And(ContainSubstring("differ from the golden: the agent asks for nothing\n"),
			ContainSubstring("if meant     delete the golden")))
	})

	It("shows time, counts and what runs in one line of a terminal", func() {
		now = time.Unix(0, 0)
		var b buffer
		c := reports.NewConsole(&b, reports.ConsoleOptions{Total: 3, Terminal: true, Now: clock, Every: time.Hour})
		c.Started("a/one")
		c.Started("a/two")
		c.Step("a/one", "await turn\nmore")
		c.Finished(results.Result{ID: "a/two", Verdict: results.Pass})
		now = time.Unix(2, 0)
		c.Started("a/three")
		Expect(last(b.String())).To(Equal("2.0s  1/3  a/one: await turn … 2.0s  a/three"))
		Expect(b.String()).NotTo(ContainSubstring("\n"), "what passes leaves no line")
		c.Finished(results.Result{ID: "a/one", Verdict: results.Fail, Reason: "it broke"})
		Expect(b.String()).To(ContainSubstring("\r\x1b[KFAIL  a/one"))
		Expect(last(b.String())).To(Equal("2.0s  2/3  1 fail  a/three"))
		c.Close()
		Expect(b.String()).To(HaveSuffix("\r\x1b[K"))
	})

	It("is never wider than the terminal", func() {
		var b buffer
		c := reports.NewConsole(&b, reports.ConsoleOptions{Terminal: true, Every: time.Hour,
			Width: func() int { return 20 }})
		c.Started("a/very/long/name/indeed/日本語日本語日本語")
		Expect(len(last(b.String()))).To(BeNumerically("<", 20))
		c.Close()
	})

	It("breaks what it says at words, below where the text begins, and leaves commands whole", func() {
		failed := results.Result{ID: "a/one", Verdict: results.Fail,
			Rerun: "acp-test run --run '^a/one$' -- a-command that is longer than the terminal",
			Checks: []results.Check{{ID: "a/one#says", Slug: "says", Verdict: results.Fail,
				Title: "The user sees all that the model says.",
				Failure: &transcript.Failure{Expected: []string{"agent_message text~hello"},
					Observed: "nothing of the kind, although it was asked for"}}}}
		said := func(terminal bool) []string {
			var b buffer
			c := reports.NewConsole(&b, reports.ConsoleOptions{Terminal: terminal, Color: true, Every: time.Hour,
				Width: func() int { return 40 }})
			c.Finished(failed)
			c.Close()
			return strings.Split(regexp.MustCompile(`\r?\x1b\[[0-9;]*[mK]`).ReplaceAllString(b.String(), ""), "\n")
		}
		narrow := said(true)
		Expect(narrow).To(ContainElements("      observed     nothing of the kind,",
			"                   although it was asked", "                   for",
			"      run again    "+failed.Rerun))
		for _, line := range narrow {
			if !strings.Contains(line, "run again") {
				Expect(len(line)).To(BeNumerically("<=", 40), line)
			}
		}
		Expect(said(false)).To(ContainElement("      observed     nothing of the kind, although it was asked for"),
			"in a file")
	})

	It("renews the line while nothing happens", func() {
		var b buffer
		c := reports.NewConsole(&b, reports.ConsoleOptions{Terminal: true, Every: time.Millisecond})
		c.Started("a")
		Eventually(func() int { return strings.Count(b.String(), "\r") }).Should(BeNumerically(">", 3))
		c.Close()
	})

	It("says elsewhere, in a line from time to time, how far it is, and nothing if it should be quiet", func() {
		now = time.Unix(0, 0)
		var b, quiet buffer
		c := reports.NewConsole(&b, reports.ConsoleOptions{Total: 2, Every: time.Millisecond, Now: clock})
		DeferCleanup(c.Close)
		c.Started("a/one")
		c.Step("a/one", "await turn")
		Eventually(b.String).Should(ContainSubstring("      0ms  0/2  a/one: await turn\n"))
		c.Phase("short sweep: explore", 3, 40, "cancel after text")
		Eventually(b.String).Should(ContainSubstring("      0ms  short sweep: explore  3/40  cancel after text\n"))
		c.Close()
		q := reports.NewConsole(&quiet,
			reports.ConsoleOptions{Total: 2, Every: time.Millisecond, Now: clock, Quiet: true})
		q.Started("a/one")
		q.Close()
		Expect(quiet.String()).To(BeEmpty())
	})

	It("works on a real terminal", func() {
		p, tty, err := pty.Open()
		Expect(err).NotTo(HaveOccurred())
		defer p.Close()
		var b buffer
		read := make(chan struct{})
		go func() {
			defer close(read)
			part := make([]byte, 4096)
			for {
				n, err := p.Read(part)
				b.Write(part[:n])
				if err != nil {
					return
				}
			}
		}()
		c := reports.NewConsole(tty, reports.ConsoleOptions{Terminal: true, Color: true, Total: 1, Every: time.Hour})
		c.Started("a")
		r := screens()
		r.ID = "a"
		c.Finished(r)
		Expect(c.Summary(results.Run{Verdict: results.Fail, Results: []results.Result{r}})).To(Succeed())
		Eventually(b.String).Should(ContainSubstring("\x1b[31mFAIL\x1b[0m"))
		tty.Close()
		p.SetReadDeadline(time.Now().Add(-time.Second))
		p.Close()
		<-read
	})

	It("says little when quiet and more when verbose", func() {
		show := func(o reports.ConsoleOptions) string {
			var b bytes.Buffer
			c := reports.NewConsole(&b, o)
			DeferCleanup(c.Close)
			for _, r := range sample().Results {
				c.Started(r.ID)
				c.Step(r.ID, "prompt")
				c.Finished(r)
			}
			return b.String()
		}
		Expect(show(reports.ConsoleOptions{Quiet: true})).NotTo(ContainSubstring("prompt/text"))
		Expect(show(reports.ConsoleOptions{Quiet: true})).To(ContainSubstring("cancel/mid-stream"))
		Expect(show(reports.ConsoleOptions{Verbose: true})).To(ContainSubstring("prompt/text: prompt"))
		Expect(show(reports.ConsoleOptions{Verbose: true})).To(ContainSubstring("The turn ends."))
	})

	// told is what the console says of results.
	told := func(o reports.ConsoleOptions, outcomes ...results.Result) string {
		var b bytes.Buffer
		run := results.Run{Results: outcomes}
		verdict.Conclude(&run)
		c := reports.NewConsole(&b, o)
		DeferCleanup(c.Close)
		for _, r := range outcomes {
			c.Finished(r)
		}
		Expect(c.Summary(run)).To(Succeed())
		return b.String()
	}

	It("lists what failed once, however often it was repeated", func() {
		var list []results.Result
		for i := range 3 {
			list = append(list, results.Result{ID: "a/b", Repeat: i + 1, Verdict: results.Fail, Reason: "it broke"})
		}
		Expect(told(reports.ConsoleOptions{}, list...)).
			To(ContainSubstring("\nFAIL  it broke\n      seen         in a/b\n"))
	})

	It("shows one defect once, wherever it is seen, on less than a screen", func() {
		var list []results.Result
		for i := range 172 {
			list = append(list, results.Result{ID: fmt.Sprintf("a/%d", i), Frames: 500 - i, Verdict: results.Fail,
				Rerun: fmt.Sprintf("again %d", i),
				Findings: []results.Finding{{Rule: "TURN-END", Point: "reason", Class: results.Fail,
					Requirements: []string{"X-1"},
					Citation:     "a sentence", Message: fmt.Sprintf("It ended as %d.", i)}},
				Checks: []results.Check{{ID: "a#b", Verdict: results.Fail, Requirements: []string{"X-1"},
					Title: "It ends."}},
				Golden: &results.Golden{State: "differs", Diff: "-want +got\n-a\n+b\n"}})
		}
		all := told(reports.ConsoleOptions{Quiet: true}, list...)
		Expect(strings.Count(all, "as in a/0: TURN-END reason  It ended as")).To(Equal(171))
		_, summary, _ := strings.Cut(all, "\n\n")
		Expect(summary).To(Equal("FAIL  TURN-END reason  It ended as 171.\n      seen         in 172 scenarios: " +
			"a/171, a/170, a/169 and 169 more\n" +
			"      citation     a sentence\n      run again    again 171\nFAIL  recording\n" +
			"      172 scenarios: 172 fail by 1 cause, 0ms\n      acp-test help TURN-END explains the first cause\n"))
	})

	It("shows what it counts: each warning and lint once, also when it is quiet", func() {
		r := results.Result{ID: "a/b", Verdict: results.Pass, Findings: []results.Finding{
			{Rule: "TOOL-ORDER", Class: results.Warn, Message: "It went back."},
			{Rule: "TOOL-ORDER", Class: results.Warn, Message: "It went back."},
			{Rule: "TITLE", Class: results.Lint, Message: "It is empty."}}}
		Expect(told(reports.ConsoleOptions{Quiet: true}, r)).
			To(Equal("\nwarn  TOOL-ORDER  It went back.\nlint  TITLE  It is empty.\n" +
				"PASS  recording\n      1 scenario: 1 pass, 1 warning, 1 lint, 0ms\n"))
	})

	It("shows what gave no verdict as that beside what failed", func() {
		r := results.Result{ID: "a/b", Verdict: results.Fail, Findings: []results.Finding{
			{Rule: "TURN-END", Class: results.Fail, Message: "It never ended."}},
			Failure: &transcript.Failure{Expected: []string{"a permission"}}, FailureClass: results.Inconclusive}
		Expect(told(reports.ConsoleOptions{Quiet: true}, r)).To(And(
			ContainSubstring("      TURN-END  It never ended.\n      inconclusive: expected a permission\n"),
			ContainSubstring("FAIL  TURN-END  It never ended.\n      seen         in a/b\n"+
				"?     expected a permission\n")))
		var b bytes.Buffer
		Expect(reports.Write(inspector.Protocol{Text: canonical.V1()}, "github",
			results.Run{Results: []results.Result{r}}, &b)).To(Succeed())
		Expect(b.String()).To(ContainSubstring("::warning file=,line=1,title=a/b::expected a permission"))
	})

	It("may be told things by many at once", func() {
		c := reports.NewConsole(&buffer{}, reports.ConsoleOptions{Terminal: true, Every: time.Millisecond})
		var all sync.WaitGroup
		for i := range 8 {
			all.Go(func() {
				for j := range 50 {
					id := fmt.Sprintf("%d/%d", i, j)
					c.Started(id)
					c.Step(id, "x")
					c.Finished(results.Result{ID: id, Verdict: results.Pass})
				}
			})
		}
		all.Wait()
		Expect(c.Summary(results.Run{})).To(Succeed())
	})

	It("returns the writer's error at the end", func() {
		r, w, err := os.Pipe()
		Expect(err).NotTo(HaveOccurred())
		r.Close()
		w.Close()
		c := reports.NewConsole(w, reports.ConsoleOptions{})
		c.Finished(results.Result{ID: "a"})
		Expect(errors.Is(c.Summary(results.Run{}), os.ErrClosed)).To(BeTrue())
	})
})
