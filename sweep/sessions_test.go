package sweep_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"golang.org/x/tools/txtar"

	"github.com/acp-test/acp-test/protocol/acp/grammar"
	"github.com/acp-test/acp-test/scenarios"
	"github.com/acp-test/acp-test/scenarios/results"
	"github.com/acp-test/acp-test/sweep"
)

// exploring learns the reference agent, with a fault or none, and returns what runs sessions that
// fit it. What is learned depends on how busy the machine is, and so does what a key draws.
func exploring(fault string) func(n int, again *sweep.Key) sweep.Outcome {
	e := engine(fault)
	e.StepTimeout = 5 * time.Second
	w := &sweep.Sweeper{Engine: e, Jobs: 8, Confirm: 3, Repro: GinkgoT().TempDir()}
	g, learned, err := w.Calibrate(context.Background(), grammar.V1(), "", "")
	Expect(err).NotTo(HaveOccurred())
	Expect(learned).To(ContainSubstring("The agent asks before: delete_file"))
	return func(n int, again *sweep.Key) sweep.Outcome {
		w.Max = n
		out, err := w.Explore(context.Background(), g, again)
		Expect(err).NotTo(HaveOccurred())
		return out
	}
}

func explored(fault string, n int, again *sweep.Key) sweep.Outcome { return exploring(fault)(n, again) }

// one is a grammar of one session.
type one string

func (o one) Draw(k sweep.Key) sweep.DrawnSession {
	return sweep.DrawnSession{Key: k, Archive: sweep.Split([]byte(o)), Covers: o.Pairs(),
		Smaller: func() []sweep.DrawnSession { return nil }}
}

func (one) AskMode() string { return "" }

func (one) Pairs() [][2]string { return [][2]string{{"state", "act"}} }

// inTurn is a grammar of sessions that are drawn one after another.
type inTurn []string

func (l *inTurn) Draw(k sweep.Key) sweep.DrawnSession {
	next := (*l)[0]
	if len(*l) > 1 {
		*l = (*l)[1:]
	}
	return one(next).Draw(k)
}

func (*inTurn) AskMode() string { return "" }

func (*inTurn) Pairs() [][2]string { return one("").Pairs() }

var _ = Describe("drawn sessions", func() {
	It("blame nothing of the reference agent", Label("large"), func() {
		out := explored("", 60, nil)
		for _, f := range out.Findings {
			Fail(sweep.Describe(f))
		}
		Expect(out.Run.Exit).To(Equal(0))
		m := out.Run.Sweep
		Expect(m.Explored).To(Equal(60))
		Expect(m.PairsTried).To(BeNumerically(">", m.Pairs/2))
		Expect(m.Skipped + m.Inconclusive).To(BeNumerically("<", 12))
		Expect(m.Untried).To(HaveLen(m.Pairs - m.PairsTried))
	})

	explore := func(e *scenarios.Engine, script string, change func(w *sweep.Sweeper)) sweep.Outcome {
		GinkgoHelper()
		w := &sweep.Sweeper{Engine: e, Jobs: 1, Max: 4}
		change(w)
		out, err := w.Explore(context.Background(), one(script), nil)
		Expect(err).NotTo(HaveOccurred())
		return out
	}
	const turn = "check a\nprompt 'Hello.'\nawait turn any|error\n\n-- llm.yaml --\nreplies:\n  - - text: Hello.\n"

	It("of which none could be judged are no pass", func() {
		out := explore(engine(""), "needs agent:no.such\n"+turn, func(*sweep.Sweeper) {})
		Expect([]any{out.Run.Sweep.Skipped, out.Run.Exit}).To(Equal([]any{4, 2}))
		Expect(explore(engine(""), turn, func(*sweep.Sweeper) {}).Run.Exit).To(Equal(0))
	})

	It("tell chance inside the agent when they are played twice", func() {
		twice := func(w *sweep.Sweeper) { w.Twice = true }
		e := engine("")
		e.Connect, e.ExtraArgs = nil, []string{"--moody", GinkgoT().TempDir()}
		Expect(explore(e, turn, twice).Notes).To(ContainElements(HavePrefix("1 of 4 sessions differed"),
			MatchRegexp(`^1\.\d\.0: session/prompt answered end_turn 0 times, then 1 times; session/prompt answered `+
				`refusal 1 times, then 0 times$`)))
		Expect(explore(engine(""), turn, twice).Notes).To(ContainElement(HavePrefix("0 of 4 sessions differed")))
	})

	It("blame nobody for a wait that was cut short", Label("large"), func() {
		e := engine("")
		e.StepTimeout = 4 * time.Second
		const slow = "check slow\nprompt 'Wait.'\nawait turn end_turn\n" +
			"-- llm.yaml --\nreplies:\n  - - pause: 2500ms\n    - text: Done.\n"
		w := &sweep.Sweeper{Engine: e, Jobs: 1, Max: 2, Confirm: 1}
		hangs := strings.NewReplacer("slow", "hangs", "pause: 2500ms", "gate: never").Replace(slow)
		out, err := w.Explore(context.Background(), &inTurn{hangs, slow}, nil)
		Expect(err).NotTo(HaveOccurred())
		Expect(out.Run.Sweep.Explored).To(Equal(2))
		for _, f := range out.Findings {
			Expect(f.Rule).NotTo(ContainSubstring("slow"))
		}
	})

	It("are divided among shards", func() {
		var keys []string
		for i := range 2 {
			out := explore(engine(""), "needs agent:no.such\n"+turn, func(w *sweep.Sweeper) {
				w.Shard, w.Max = &sweep.Part{Index: i + 1, Of: 2}, 5
			})
			Expect(out.Run.Sweep.Tried.Pairs).To(BeEmpty(), "skipped")
			keys = append(keys, fmt.Sprint(out.Run.Sweep.Explored))
		}
		Expect(keys).To(Equal([]string{"3", "2"}))
	})

	It("are written as scenarios that pass, unless shipped ones have their steps", func() {
		dir := GinkgoT().TempDir()
		write := func(w *sweep.Sweeper) { w.Write = dir }
		Expect(explore(engine(""), turn, write).Notes).To(ContainElement("0 sessions are written to " + dir))
		rare := strings.Replace(turn, "any|error\n", "any|error\nstall 1ms\n", 1)
		Expect(explore(engine(""), rare, write).Notes).To(ContainElement("1 sessions are written to " + dir))
		text, err := os.ReadFile(dir + "/state--act.txtar")
		Expect(err).NotTo(HaveOccurred())
		Expect(string(text)).To(MatchRegexp(`^# Drawn, as 1\.\d\.0: state: act\.\n`))
	})

	It("need no calibration that is kept", func() {
		keep, from := GinkgoT().TempDir(), grammar.V1()
		w := &sweep.Sweeper{Engine: engine(""), Jobs: 8}
		_, learned, err := w.Calibrate(context.Background(), from, keep, "7")
		Expect(err).NotTo(HaveOccurred())
		_, again, version, ok := sweep.Recall(from, keep)
		Expect([]any{again, version, ok}).To(Equal([]any{learned, "7", true}))
		key := sweep.CalibrationKey(from, w.Engine.Profile, nil)
		Expect(key).To(MatchRegexp(`^reference-[0-9a-f]{16}$`))
		Expect(sweep.CalibrationKey(from, w.Engine.Profile, []string{"--fault"})).NotTo(Equal(key))
		var all sync.WaitGroup
		for range 8 { // runs of the same agent, each of which learns it
			all.Go(func() {
				defer GinkgoRecover()
				w := &sweep.Sweeper{Engine: engine(""), Jobs: 8}
				_, learned, err := w.Calibrate(context.Background(), from, keep, "8")
				Expect(err).NotTo(HaveOccurred())
				Expect(learned).NotTo(ContainSubstring("could not be kept"))
			})
		}
		all.Wait()
		_, _, version, ok = sweep.Recall(from, keep)
		Expect([]any{version, ok}).To(Equal([]any{"8", true}))
		Expect(filepath.Glob(filepath.Dir(keep) + "/.made-*")).To(BeEmpty())
		Expect(os.Remove(keep + "/version")).To(Succeed())
		_, _, _, ok = sweep.Recall(from, keep)
		Expect(ok).To(BeFalse())
	})

	It("are drawn from the basic turns if the time to learn ends with them", func() {
		keep, from := GinkgoT().TempDir()+"/kept", *grammar.V1()
		over := deadline{context.Background(), make(chan struct{})}
		more := from.More
		from.More = func(g sweep.Grammar) map[string]sweep.Archive {
			close(over.passed)
			return more(g)
		}
		w := &sweep.Sweeper{Engine: engine(""), Jobs: 8}
		g, learned, err := w.Calibrate(over, &from, keep, "7")
		Expect(err).NotTo(HaveOccurred())
		Expect(g).NotTo(BeNil())
		Expect(learned).To(HaveSuffix(" There was no time to learn more."))
		Expect(keep).NotTo(BeADirectory())
	})

	DescribeTable("find a fault that no scenario was written for, and shrink it", Label("large"),
		func(fault, rule string) {
			explore := exploring(fault)
			out := explore(40, nil)
			Expect(out.Run.Exit).To(Equal(1))
			i := -1
			for k, f := range out.Findings {
				if i < 0 && strings.HasPrefix(f.Rule, rule) {
					i = k
				}
			}
			Expect(i).To(BeNumerically(">=", 0), "no finding of %s", rule)
			f := out.Findings[i]
			Expect(f.Class).To(Equal(results.Fail))
			Expect(f.Hits).To(Equal(f.Runs))
			text, err := os.ReadFile(f.File)
			Expect(err).NotTo(HaveOccurred())
			// Of more than 40 lines. Shortening ends after a time, so a slow machine leaves some more.
			Expect(f.Lines).To(BeNumerically("<=", 25), "%s", text)
			// The files that the call needs count apart: one of them may be long by its nature.
			archive := txtar.Parse(text)
			written := bytes.Clone(archive.Comment)
			for _, file := range archive.Files {
				if file.Name == "llm.yaml" {
					written = append(written, file.Data...)
				}
			}
			Expect(bytes.Count(written, []byte("\n"))).To(BeNumerically("<", 60))
			k, err := sweep.ParseKey(f.Key())
			Expect(err).NotTo(HaveOccurred())
			again := explore(1, &k)
			Expect(again.Findings).NotTo(BeEmpty(), "the session of the finding, played again")
		},
		Entry("in the model's words", "max-tokens-as-end-turn", "MODEL-STOP"),
		Entry("of a permission", "rejected-tool-completes", "PERM-GUARD"),
	)
})

// deadline is a context whose deadline passes when passed is closed.
type deadline struct {
	context.Context
	passed chan struct{}
}

func (d deadline) Done() <-chan struct{} { return d.passed }

func (d deadline) Err() error {
	select {
	case <-d.passed:
		return context.DeadlineExceeded
	default:
		return nil
	}
}
