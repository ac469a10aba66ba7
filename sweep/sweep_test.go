package sweep_test

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/acp-test/acp-test/agents"
	"github.com/acp-test/acp-test/ci/inside"
	"github.com/acp-test/acp-test/ci/proof"
	"github.com/acp-test/acp-test/protocol/acp"
	"github.com/acp-test/acp-test/protocol/acp/schedules"
	"github.com/acp-test/acp-test/refagent/faults"
	"github.com/acp-test/acp-test/refagent/liberties"
	"github.com/acp-test/acp-test/scenarios"
	"github.com/acp-test/acp-test/scenarios/results"
	"github.com/acp-test/acp-test/sweep"
)

// engine runs the reference agent with a fault or none: within this process with one of
// the package faults, which is several times faster, and as a process with a flag of TestMain.
func engine(fault string) *scenarios.Engine {
	p, err := agents.Shipped("reference")
	Expect(err).NotTo(HaveOccurred())
	self, err := os.Executable()
	Expect(err).NotTo(HaveOccurred())
	e := &scenarios.Engine{Protocol: acp.V1(), Profile: p, Self: self, Cwd: GinkgoT().TempDir(), Host: os.Environ(),
		Out: GinkgoT().TempDir(), Temp: GinkgoT().TempDir(),
		Grace: time.Second, Seed: 1}
	if strings.HasPrefix(fault, "--") { // one of this binary
		e.ExtraArgs = []string{fault}
		return e
	}
	if fault != "" {
		f, ok := faults.Find(faults.ACPv1, fault)
		Expect(ok).To(BeTrue(), fault)
		e.ExtraArgs = []string{"--fault", fault}
		if f.Hangs {
			e.StepTimeout = 2 * time.Second
		}
	}
	if fault != "saves-at-end-of-turn" { // found by killing the process
		e.Connect = inside.Connect(e.ExtraArgs...)
	}
	return e
}

func scenario(id string) *scenarios.Scenario {
	suite, _, _ := strings.Cut(id, "/")
	all, err := acp.V1().Shipped(suite)
	Expect(err).NotTo(HaveOccurred())
	for _, s := range all {
		if s.ID == id {
			return s
		}
	}
	Fail("there is no scenario " + id)
	return nil
}

// listed are all points but that of orders that are drawn.
var listed = []string{"with*", "0 ms", "f*", "g*", "r*", "idle", "after*", "s*", "merge*"}

// ordinary are the scenarios that sweeps start from: none knows of a fault.
var ordinary = []string{"permission/allow-once-edit", "prompt-turn/two-turns", "tool-calls/execute", "terminal/output",
	"prompt-turn/many-chunks"}

func swept(w *sweep.Sweeper, ids ...string) sweep.Outcome {
	var list []*scenarios.Scenario
	for _, id := range ids {
		list = append(list, scenario(id))
	}
	out, err := w.Run(context.Background(), list)
	Expect(err).NotTo(HaveOccurred())
	return out
}

// accused are the findings for which an agent would not pass.
func accused(list []sweep.Finding) []sweep.Finding {
	return slices.DeleteFunc(slices.Clone(list), func(f sweep.Finding) bool { return f.Class == results.Lint })
}

func told(list []sweep.Finding) string {
	var b strings.Builder
	for _, f := range list {
		b.WriteString(sweep.Describe(f) + "\n")
	}
	return b.String()
}

var _ = Describe("a schedule", func() {
	It("comes at a place that only the seed decides", Label("large"), func() {
		order := func(seed int64) []string {
			e := engine("")
			e.Seed = seed
			order, err := sweep.Order(context.Background(), &sweep.Sweeper{Planner: schedules.V1(), Engine: e},
				scenario("prompt-turn/two-turns"))
			Expect(err).NotTo(HaveOccurred())
			return order
		}
		seven := order(7)
		Expect(order(7)).To(Equal(seven))
		Expect(order(8)).NotTo(Equal(seven))
	})
})

var _ = Describe("what shrinking leaves", func() {
	DescribeTable("has all that is sure taken away, in front of what was not and behind it",
		func(needs, left string) {
			lines := []string{"mark one", "await turn", "mark two", "mark three"}
			got := sweep.Retraced("prompt a\nmark one\nawait turn\nmark two\nmark three\n",
				func(script string) bool { return strings.Contains(script, needs) }, lines...)
			Expect(got).To(Equal(left))
		},
		Entry("nothing is needed", "prompt a\n", "prompt a\n"),
		Entry("the last change was not sure", "mark three", "prompt a\nmark three\n"),
		Entry("one in the middle was not", "await turn", "prompt a\nawait turn\n"),
		Entry("the first was not", "mark one", "prompt a\nmark one\n"),
		Entry("none is", "no such line", ""),
	)

	DescribeTable("keeps what orders an act behind the prompt that it stops",
		func(script string, n int) { Expect(sweep.Hasty(script)).To(Equal(n)) },
		Entry("nothing is awaited", "prompt a\ncancel\n", 1),
		Entry("neither of two", "prompt a\nsession close main wait=no\ncancel\n", 2),
		Entry("a gate is", "prompt a\nawait gate g\ncancel\n", 0),
		Entry("a request is", "prompt a as P\nneeds await fs/read_text_file as R\ncancel-request P\n", 0),
		Entry("a turn before is", "await turn\nprompt a\ncancel\n", 1),
		Entry("it stops no turn", "cancel\nprompt a\nsession new b\n", 0),
		Entry("a run of AG-UI", "run a\nabandon\n", 1),
	)
})

var _ = Describe("a sweep", func() {
	It("finds nothing in the correct agent", func() {
		out := swept(&sweep.Sweeper{Planner: schedules.V1(), Engine: engine(""), Jobs: 4, Max: 150},
			"permission/allow-once-edit")
		Expect(out.Findings).To(BeEmpty(), told(out.Findings))
		Expect(out.Run.Sweep.Explored).To(Equal(150))
		Expect(out.Run.Sweep.Unexplored).To(BeNumerically(">", 60))
		Expect(out.Run.Exit).To(Equal(0))
		var b strings.Builder
		Expect(sweep.Chart(&b, out.Run.Sweep)).To(Succeed())
		Expect(b.String()).To(MatchRegexp(`(?m)^permission/allow-once-edit  [0-9]+ of [0-9]+ pairs of situation ` +
			`and action$`))
	})

	It("counts the actions of a point where a table would be too wide", func() {
		run := results.Sweep{Points: []string{"call", "idle"}}
		for i := range 40 {
			action, verdict := fmt.Sprintf("act %d", i), results.Pass
			if i%10 == 0 {
				verdict = results.Inconclusive
			}
			run.Actions = append(run.Actions, action)
			run.Cells = append(run.Cells, results.SweepCell{Scenario: "drawn session", Point: "call", Action: action,
				Verdict: verdict})
		}
		run.Cells = append(run.Cells, results.SweepCell{Scenario: "drawn session", Point: "idle", Action: "act 7",
			Verdict: results.Fail})
		var b strings.Builder
		Expect(sweep.Chart(&b, &run)).To(Succeed())
		Expect(b.String()).To(HaveSuffix("\n  call  36 ·, 4 ? (act 0, act 10, act 20, …)\n  idle  1 X (act 7)\n" +
			"X fail, w warn, l lint, ? inconclusive, · nothing found\n"))
	})

	It("tells what a list expects of a scenario from what it has found", func() {
		search := func(known ...agents.KnownFailure) (sweep.Outcome, *scenarios.Engine) {
			e := engine("cancel-error")
			e.Known = known
			return swept(&sweep.Sweeper{Planner: schedules.V1(), Engine: e, Actions: []string{"cancel"},
				Points: []string{"gate*"}, Max: 2, Confirm: 1}, "prompt-turn/two-turns"), e
		}
		out, e := search()
		Expect(out.Run.Exit).To(Equal(1))
		Expect(out.Run.Counts.Known).To(BeZero())
		list := out.Rebase(e)
		Expect(list).To(ContainElement(And(HaveField("Scenario", "prompt-turn/two-turns"),
			HaveField("ID", "CANCEL-REASON"), HaveField("Flaky", true))))
		Expect(out.Run.Exit).To(Equal(0), "judged by its own list")

		again, _ := search(list...)
		Expect(again.Run.Exit).To(Equal(0), told(again.Findings))
		Expect(again.Run.Verdict).To(Equal(results.Pass))
		Expect(again.Run.Counts.Known).To(BeNumerically(">", 0))
		Expect(again.Findings).To(HaveLen(len(out.Findings)))
		Expect(again.Findings).To(HaveEach(And(HaveField("Known", Not(BeEmpty())), HaveField("Runs", 0))))
		Expect(told(again.Findings)).To(ContainSubstring("known  CANCEL-REASON"))

		place, _ := search(agents.KnownFailure{Scenario: "sweep/prompt-turn/two-turns/**/cancel", Cause: true,
			ID:     "CANCEL-REASON error",
			Reason: "at one point"})
		Expect(place.Run.Exit).To(Equal(0), told(place.Findings))
		elsewhere, _ := search(agents.KnownFailure{Scenario: "prompt-turn/text", ID: "CANCEL-REASON",
			Reason: "of another scenario"})
		Expect(elsewhere.Run.Exit).To(Equal(1))
	})

	DescribeTable("plays what a turn needs", func(point, action string, ids ...string) {
		w := &sweep.Sweeper{Planner: schedules.V1(), Engine: engine(""), Points: []string{point},
			Actions: []string{action}}
		out := swept(w, ids...)
		Expect(out.Findings).To(BeEmpty(), told(out.Findings))
		Expect(out.Run.Sweep.Explored).To(BeNumerically(">", 0))
		Expect(out.Run.Sweep.Inconclusive).To(BeZero())
	},
		Entry("files that a command makes", "fs/write*", "close", "files/crlf"),
		Entry("a login again after a kill", "racing the end", "kill and load", "auth/required"),
		Entry("what the agent asks of a model that says more", "merge*", "new session", "option/set-mid-turn",
			"prompt-turn/max-tokens"),
	)

	It("ends plain runs in time", func() {
		e := engine("")
		e.Began = time.Now().Add(-time.Hour)
		out := swept(&sweep.Sweeper{Planner: schedules.V1(), Engine: e, Budget: time.Second}, ordinary...)
		Expect(out.Run.Notes).To(ContainElement(MatchRegexp(`^(\d+) of \d+ scenarios are not swept: their plain runs ` +
			`did not end in time`)))
	})

	It("stops at the end of its budget and says what it left out", func() {
		out := swept(&sweep.Sweeper{Planner: schedules.V1(), Engine: engine(""), Budget: 300 * time.Millisecond},
			ordinary...)
		Expect(out.Run.Sweep.Unexplored).To(BeNumerically(">", 0))
		Expect(out.Run.Interrupted).To(BeFalse())
	})

	// ACP_TEST_LAW says for how long sets of liberties are drawn; without it until one lets a
	// turn be swept: an agent that wants a login first, say, has none.
	It("finds nothing in the correct agent that takes liberties, in any suite", Label("large"), func() {
		length, err := time.ParseDuration(cmp.Or(os.Getenv("ACP_TEST_LAW"), "0s"))
		Expect(err).NotTo(HaveOccurred())
		seed, err := strconv.ParseUint(cmp.Or(os.Getenv("ACP_TEST_LAW_SEED"), "1"), 10, 64)
		Expect(err).NotTo(HaveOccurred())
		all, err := acp.V1().Shipped("permission", "load", "session", "close")
		Expect(err).NotTo(HaveOccurred())
		r, explored := rand.New(rand.NewPCG(seed, 1)), 0
		for until, sets := time.Now().Add(length), 0; explored < 20 && sets < 10 || time.Now().Before(until); sets++ {
			var list []*scenarios.Scenario
			for _, i := range r.Perm(len(all))[:12] {
				list = append(list, all[i])
			}
			e, names := engine(""), []string{}
			for _, l := range liberties.Draw(r, false)[0] {
				if names = append(names, l.Name); l.Learns {
					e.Profile.Tools = nil
				}
			}
			e.ExtraArgs = []string{"--liberty", strings.Join(names, ",")}
			e.Connect = inside.Connect(e.ExtraArgs...)
			out, err := (&sweep.Sweeper{Planner: schedules.V1(), Engine: e, Max: 60}).Run(context.Background(), list)
			Expect(err).NotTo(HaveOccurred())
			Expect(accused(out.Findings)).To(BeEmpty(), "%s\n%s", e.ExtraArgs, told(out.Findings))
			explored += out.Run.Sweep.Explored
		}
		Expect(explored).To(BeNumerically(">=", 20))
		AddReportEntry("schedules", explored)
	})

	It("finds nothing in the correct agent, in 20,000 schedules of all suites", func() {
		if os.Getenv("ACP_TEST_SOAK") == "" {
			Skip("it takes a quarter of an hour; set ACP_TEST_SOAK=1")
		}
		all, err := acp.V1().Shipped()
		Expect(err).NotTo(HaveOccurred())
		all = slices.DeleteFunc(all, func(s *scenarios.Scenario) bool { return s.Role == "agent" })
		w := &sweep.Sweeper{Planner: schedules.V1(), Engine: engine(""), Jobs: 12, Max: 20_000} // most of it is waiting
		w.Found = func(s sweep.Signature, _ results.Verdict) { GinkgoWriter.Println("found", s) }
		w.Progress = func(p sweep.Progress) {
			if p.Done%1000 == 0 {
				GinkgoWriter.Println(p.Phase, p.Done, p.Total)
			}
		}
		out, err := w.Run(context.Background(), all)
		Expect(err).NotTo(HaveOccurred())
		Expect(out.Findings).To(BeEmpty(), told(out.Findings))
		Expect(out.Run.Sweep.Explored).To(Equal(20_000))
	})

	It("finds nothing in the correct agent, in 2,000 schedules", func() {
		if os.Getenv("ACP_TEST_SOAK") == "" {
			Skip("it takes minutes; set ACP_TEST_SOAK=1")
		}
		// A busy neighbour: what passes only on an idle machine does not pass.
		done, busy := make(chan struct{}), make(chan struct{}, 1)
		defer close(done)
		go func() {
			for {
				select {
				case <-done:
					return
				case busy <- struct{}{}:
					<-busy
				}
			}
		}()
		out := swept(&sweep.Sweeper{Planner: schedules.V1(), Engine: engine(""), Max: 2000}, ordinary...)
		Expect(out.Findings).To(BeEmpty(), told(out.Findings))
		Expect(out.Run.Sweep.Explored).To(Equal(2000))
		// A cancel that crosses the turn's own end proves nothing. Few do.
		Expect(out.Run.Sweep.Inconclusive).To(BeNumerically("<", 200))
		for _, c := range out.Run.Sweep.Cells {
			if c.Verdict == results.Inconclusive && c.Point != sweep.DrawnPoint {
				Expect(c.Action).To(MatchRegexp("cancel|close"), c.Point)
			}
		}
	})

	// One fault for each way in which a sweep judges. They are swept side by
	// side: their processes mostly wait.
	It("finds a fault and writes what shows it again", Label("large"), func() {
		list := []search{
			{"cancel-error", "gate*", "cancel", "prompt-turn/two-turns", "CANCEL-REASON"},
			{"cancel-lost-before-first-update", "at once", "cancel", "prompt-turn/two-turns", "ends-as-cancelled"},
			{"cancel-idle-sticks", "idle", "cancel", "prompt-turn/two-turns", "CANCEL-CAUSE"},
			{"second-prompt-swallowed", "gate*", "second prompt", "prompt-turn/two-turns",
				"second-prompt-is-worked-on"},
			{"permission-global", "permission*", "allow in*", "permission/allow-once-edit",
				"asks-in-the-other-session"},
			{"load-without-tools", "idle", "load", "permission/allow-once-edit", "same-as-before"},
			{"cancel-error", "frame 39 *", "cancel", "prompt-turn/many-chunks", "CANCEL-REASON"},
			{"saves-at-end-of-turn", "frame*", "kill*", "prompt-turn/two-turns", "keeps-what-was-said"},
			{"cancel-hits-every-session", "second*", "cancel", "prompt-turn/two-turns", "CANCEL-CAUSE"},
			{"--one-turn", "racing*", "cancel", "prompt-turn/text", "MODEL-STOP"},
			{"--wears-out", "f*, g*", "cancel", "prompt-turn/text", "CANCEL-REASON"},
			{"cancel-hits-every-session", "merge * with *", "cancel",
				"permission/allow-once-edit prompt-turn/two-turns", "CANCEL-CAUSE"},
		}
		var wait sync.WaitGroup
		for _, l := range proof.Share(list) {
			e, dir := engine(l.fault), GinkgoT().TempDir()
			wait.Add(1)
			go func() {
				defer wait.Done()
				defer GinkgoRecover()
				l.succeeds(e, dir)
			}()
		}
		wait.Wait()
	})

	It("cuts the model off where it would be held", func() {
		out := swept(&sweep.Sweeper{Planner: schedules.V1(), Engine: engine(""), Actions: []string{"model disconnect"}},
			"prompt-turn/two-turns")
		Expect(out.Run.Sweep.Explored).To(Equal(2))
		Expect(out.Run.Sweep.Inconclusive).To(BeZero())
		Expect(out.Findings).To(BeEmpty(), told(out.Findings))
	})

	It("runs schedules in sessions of one process, which changes nothing for the correct agent", func() {
		out := swept(&sweep.Sweeper{Planner: schedules.V1(), Engine: engine(""), Jobs: 4, Max: 90, Reuse: true,
			Points: listed}, "prompt-turn/two-turns")
		Expect(out.Findings).To(BeEmpty(), told(out.Findings))
		Expect(out.Run.Counts.Error).To(BeZero(), "%+v", out.Run.Results)
		Expect(out.Run.Sweep.Explored).To(Equal(90))
		runs := map[string]int{} // transcripts of chains: their schedules
		for _, c := range out.Run.Sweep.Cells {
			if !strings.HasSuffix(c.Point, "racing the end") { // a race may come out so that it says nothing
				Expect(c.Verdict).To(Equal(results.Pass), "%+v", c)
			}
			if strings.Contains(c.Out, "/one-process/") {
				runs[c.Out]++
			}
			if slices.Contains([]string{"kill and load", "end of input"}, c.Action) || c.Point == "after load" {
				Expect(c.Out).NotTo(ContainSubstring("/one-process/"), "%+v", c)
			}
		}
		Expect(len(runs)).To(BeNumerically(">", 5))
		Expect(runs).To(HaveEach(BeNumerically(">", 1)))
	})

	It("finds what only sessions of one process show, and says so", func() {
		w := &sweep.Sweeper{Planner: schedules.V1(), Engine: engine("--wears-out"), Jobs: 4,
			Points: []string{"f*", "g*"}, Actions: []string{"cancel"}, Max: 2}
		list, err := sweep.Explored(context.Background(), w, scenario("prompt-turn/text"))
		Expect(err).NotTo(HaveOccurred())
		Expect(list).To(BeEmpty(), told(list))
		w.Reuse = true
		list, err = sweep.Explored(context.Background(), w, scenario("prompt-turn/text"))
		Expect(err).NotTo(HaveOccurred())
		Expect(list).NotTo(BeEmpty())
		Expect(list[0].Signature.String()).To(Equal("CANCEL-REASON: in one process, one after another"))
		Expect(told(list)).To(ContainSubstring("no schedule shows it in a process of its own"))
	})

	It("looks for what a shared process shows in a process for each", func() {
		w := &sweep.Sweeper{Planner: schedules.V1(), Engine: engine("cancel-error"), Jobs: 4,
			Points: []string{"frame*"}, Actions: []string{"cancel"}, Max: 4, Reuse: true}
		list, err := sweep.Explored(context.Background(), w, scenario("prompt-turn/two-turns"))
		Expect(err).NotTo(HaveOccurred())
		Expect(list).NotTo(BeEmpty())
		Expect(list).To(HaveEach(HaveField("Action", "cancel")), told(list))
	})

	It("finds nothing in the correct agent where two scenarios are merged", Label("large"), func() {
		out := swept(&sweep.Sweeper{Planner: schedules.V1(), Engine: engine(""), Jobs: 4,
			Points: []string{"merge * with *"}, Max: 40}, "permission/allow-once-edit", "prompt-turn/two-turns")
		Expect(out.Findings).To(BeEmpty(), told(out.Findings))
		Expect(out.Run.Sweep.Explored).To(Equal(40))
		Expect(out.Run.Sweep.Inconclusive).To(BeZero())
	})

	It("finds by merging two scenarios what mixes sessions up", func() {
		w := &sweep.Sweeper{Planner: schedules.V1(), Engine: engine("words-in-first-session"), Jobs: 4,
			Points: []string{"merge * with *"}, Actions: []string{"nothing"}, Max: 4}
		list, err := sweep.Explored(context.Background(), w, scenario("permission/allow-once-edit"),
			scenario("prompt-turn/two-turns"))
		Expect(err).NotTo(HaveOccurred())
		Expect(list).To(ContainElement(HaveField("Signature",
			sweep.Signature{Rule: "MODEL-TEXT", State: "two scenarios merged", Action: "nothing"})), told(list))
	})

	It("writes no repro of what there was no time to run again, and settles one finding of each rule first", func() {
		f := sweep.Finding{Signature: sweep.Signature{Rule: "R", Action: "cancel"}, Class: results.Fail}
		Expect(sweep.Finished(f)).To(BeEmpty())
		f.Hits, f.Runs = 5, 5
		Expect(sweep.Finished(f)).To(ContainSubstring("in 5 of 5 runs"))
		Expect(sweep.Parted("A", "", "A", "B", "A", "B")).To(Equal([2][]int{{0, 3}, {1, 2, 4, 5}}))
	})

	It("takes orders of acts that miss in the same way for one finding, whichever the acts and the session are",
		func() {
			const miss = "; observed nothing of the kind"
			Expect(sweep.Causes("expected turn cancelled session=main"+miss,
				"expected turn cancelled session=the_other"+miss)).To(Equal(1))
			Expect(sweep.Causes("expected turn cancelled session=main"+miss, "expected turn end_turn"+miss)).
				To(Equal(2))
		})

	It("says of a race how often it is seen beside others and alone", func() {
		f := sweep.Finding{Signature: sweep.Signature{Rule: "R", State: "racing the end", Action: "cancel"},
			Class: results.Fail, Hits: 3, Runs: 5, Alone: 1, AloneRuns: 4}
		Expect(sweep.Describe(f)).To(ContainSubstring("; again in 3 of 5 runs next to others and 1 of 4 alone"))
		text := sweep.Repro(f, "golden off\nprompt 'Hi.'\n")
		Expect(text).To(ContainSubstring("# Expect a fail of R, in 3 of 5 runs next to others and 1 of 4 alone: "))
		Expect(text).To(ContainSubstring("# It is a race: run it with --repeat 100"))
		f.AloneRuns, f.Alone = 0, 0
		f.Hits, f.Runs = 5, 5
		Expect(sweep.Repro(f, "prompt 'Hi.'\n")).
			To(And(ContainSubstring("in 5 of 5 runs: "), Not(ContainSubstring("race"))))
	})

	// A sweep of an agent that it does not know listens for longer than a run of what it writes.
	DescribeTable("writes what waits for what shows it, however long it listens", func(fault, point string) {
		e, dir := engine(fault), GinkgoT().TempDir()
		listens := 300 * time.Millisecond
		e.Linger = &listens
		w := &sweep.Sweeper{Planner: schedules.V1(), Engine: e, Points: []string{point}, Actions: []string{"cancel"},
			Max: 2, Confirm: 2, Repro: dir, Shrink: 10 * time.Minute}
		out := swept(w, "prompt-turn/two-turns")
		Expect(out.Findings).NotTo(BeEmpty())
		for _, f := range out.Findings {
			text, err := os.ReadFile(f.File)
			Expect(err).NotTo(HaveOccurred())
			switch f.Rule {
			case "CANCEL-REASON": // the end of the turn, by a line that waits for it
				Expect(string(text)).To(MatchRegexp(`(?s)golden off\nprompt.*\ncancel\nawait turn cancelled\n`))
			case "EMPTY-TURN": // the end of a turn that no line waits for
				Expect(string(text)).To(ContainSubstring("\ntag cancel\n"), "so that a run listens, too")
			}
			Expect(f.Hits).To(Equal(f.Runs))
		}
	},
		Entry(nil, "cancel-end-turn", "gate*"),
		Entry(nil, "cancel-error", "0 ms"),
		Entry(nil, "cancel-end-turn-settled", "gate*"),
		Entry(nil, "cancel-end-turn-settled", "second*"),
	)

	It("only notes that an agent once took long to end, and never again", func() {
		e := engine("")
		e.Grace = 2 * time.Second
		e.Connect, e.ExtraArgs = nil, []string{"--stays", GinkgoT().TempDir(), "3"}
		var done []int
		out := swept(&sweep.Sweeper{Planner: schedules.V1(), Engine: e, Jobs: 4, Points: []string{"0 ms"},
			Actions: []string{"cancel*"}, Confirm: 1,
			Progress: func(p sweep.Progress) {
				if p.Phase == "confirm and shrink" {
					done = append(done, p.Done)
				}
			}}, "prompt-turn/text")
		Expect(done).To(Equal([]int{0, 1}), "it is said when a finding is begun with, and when it is done")
		Expect(out.Findings).To(BeEmpty(), told(out.Findings))
		Expect(out.Notes).To(ConsistOf(And(ContainSubstring("EXIT-EOF (cancel"),
			ContainSubstring("in none of 3 further runs"))))
		Expect(out.Run.Counts.Lints).To(BeZero())
	})

	It("reports what the scenario shows by itself once, as of the baseline", func() {
		w := &sweep.Sweeper{Planner: schedules.V1(), Engine: engine("always-cancelled"), Actions: []string{"nothing"},
			Max: 1}
		list, err := sweep.Explored(context.Background(), w, scenario("prompt-turn/text"))
		Expect(err).NotTo(HaveOccurred())
		Expect(list).NotTo(BeEmpty())
		Expect(list[0].Signature.String()).To(ContainSubstring("in the baseline"))
		for _, f := range list[1:] {
			Expect(f.Rule).NotTo(Equal(list[0].Rule), told(list))
		}
	})
})

// search is a fault, the part of a sweep that is enough to find it, and the rule
// that tells it.
type search struct{ fault, point, action, scenarios, rule string }

func (l search) succeeds(e *scenarios.Engine, dir string) {
	w := &sweep.Sweeper{Planner: schedules.V1(), Engine: e, Jobs: 4, Points: strings.Split(l.point, ", "),
		Actions: []string{l.action}, Max: 3, Confirm: 2, Shrink: time.Minute, Repro: dir,
		Reuse: l.fault == "--wears-out"}
	out := swept(w, strings.Fields(l.scenarios)...)
	Expect(out.Run.Exit).NotTo(Equal(2), "%s: %+v", l.fault, out.Run.Results)
	i := slices.IndexFunc(out.Findings, func(f sweep.Finding) bool { return f.Rule == l.rule && f.File != "" })
	Expect(i).To(BeNumerically(">=", 0), "%s: %s", l.fault, told(out.Findings))
	hit := out.Findings[i]
	Expect(hit.Hits).To(Equal(hit.Runs), "%s: %s", l.fault, told(out.Findings))
	if hit.State == "racing the end" { // it is tried while nothing else runs, too
		Expect(hit.AloneRuns).To(Equal(2), "%s: %s", l.fault, told(out.Findings))
	}
	text, err := os.ReadFile(hit.File)
	Expect(err).NotTo(HaveOccurred())
	Expect(hit.Lines).To(BeNumerically("<=", 25), "%s:\n%s", l.fault, text)
	Expect(string(text)).To(ContainSubstring("# Expect a " + hit.Class.String() + " of " + l.rule))
	Expect(string(text)).To(MatchRegexp("(?m)^golden off$"))
	if w.Reuse {
		Expect(string(text)).To(ContainSubstring("# Only sessions that share a process show it"))
		Expect(strings.Count(string(text), "\ncancel\n")).To(Equal(2), string(text))
	}
	list, err := acp.V1().Load(hit.File)
	Expect(err).NotTo(HaveOccurred())
	correct := *e
	correct.ExtraArgs = nil
	if correct.Connect != nil {
		correct.Connect = inside.Connect()
	}
	Expect(shown(correct.Run(context.Background(), list[0]))).
		NotTo(ContainElement(l.rule), "%s shows the correct agent:\n%s", filepath.Base(hit.File), text)
	res := e.Run(context.Background(), list[0])
	Expect(shown(res)).To(ContainElement(l.rule), "%s: %s: %s %s\n%s", l.fault, filepath.Base(hit.File), res.Verdict,
		res.Reason, text)
}

func shown(r results.Result) []string {
	var out []string
	for _, f := range r.Findings {
		out = append(out, f.Rule)
	}
	for _, c := range r.Checks {
		if c.Verdict != results.Pass && c.Verdict != results.Inconclusive {
			out = append(out, c.Slug)
		}
	}
	return out
}
