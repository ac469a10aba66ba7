package sweep_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/acp-test/acp-test/agents"
	"github.com/acp-test/acp-test/refagent/faults"
	"github.com/acp-test/acp-test/scenarios"
	"github.com/acp-test/acp-test/sweep"
)

// engine runs the reference agent, which is this binary, with a fault or none.
func engine(fault string) *scenarios.Engine {
	p, err := agents.Shipped("reference")
	Expect(err).NotTo(HaveOccurred())
	self, err := os.Executable()
	Expect(err).NotTo(HaveOccurred())
	e := &scenarios.Engine{Profile: p, Self: self, Cwd: GinkgoT().TempDir(), Host: os.Environ(), Out: GinkgoT().TempDir(), Temp: GinkgoT().TempDir(),
		Grace: time.Second, Seed: 1}
	if fault != "" {
		f, ok := faults.Find(fault)
		Expect(ok).To(BeTrue(), fault)
		e.ExtraArgs = []string{"--fault", fault}
		if f.Hangs {
			e.StepTimeout = 2 * time.Second
		}
	}
	return e
}

func scenario(id string) *scenarios.Scenario {
	suite, _, _ := strings.Cut(id, "/")
	all, err := scenarios.Shipped(suite)
	Expect(err).NotTo(HaveOccurred())
	for _, s := range all {
		if s.ID == id {
			return s
		}
	}
	Fail("there is no scenario " + id)
	return nil
}

// ordinary are the scenarios that sweeps start from: none knows of a fault.
var ordinary = []string{"permission/allow-once-edit", "prompt-turn/two-turns", "tool-calls/execute", "terminal/output", "prompt-turn/many-chunks"}

func swept(w *sweep.Sweeper, ids ...string) sweep.Outcome {
	var list []*scenarios.Scenario
	for _, id := range ids {
		list = append(list, scenario(id))
	}
	out, err := w.Run(context.Background(), list)
	Expect(err).NotTo(HaveOccurred())
	return out
}

func told(list []sweep.Finding) string {
	var b strings.Builder
	for _, f := range list {
		b.WriteString(sweep.Describe(f) + "\n")
	}
	return b.String()
}

var _ = Describe("a schedule", func() {
	It("is a scenario without a mistake, whatever the point and the action", func() {
		for _, id := range ordinary {
			texts, order, err := sweep.Texts(context.Background(), &sweep.Sweeper{Engine: engine("")}, scenario(id))
			Expect(err).NotTo(HaveOccurred())
			Expect(len(order)).To(BeNumerically(">", 100), id)
			for name, text := range texts {
				_, err := scenarios.Parse(name, name, text)
				Expect(err).NotTo(HaveOccurred(), "%s:\n%s", name, text)
				Expect(strings.Count(strings.SplitN(string(text), "-- llm.yaml --", 2)[0], "\n")).To(BeNumerically("<", 90), name)
			}
		}
	})

	It("comes at a place that only the seed decides", func() {
		order := func(seed int64) []string {
			e := engine("")
			e.Seed = seed
			_, order, err := sweep.Texts(context.Background(), &sweep.Sweeper{Engine: e}, scenario("prompt-turn/two-turns"))
			Expect(err).NotTo(HaveOccurred())
			return order
		}
		Expect(order(7)).To(Equal(order(7)))
		Expect(order(7)).NotTo(Equal(order(8)))
	})
})

var _ = Describe("a sweep", func() {
	It("finds nothing in the correct agent", func() {
		out := swept(&sweep.Sweeper{Engine: engine(""), Max: 60}, "permission/allow-once-edit")
		Expect(out.Findings).To(BeEmpty(), told(out.Findings))
		Expect(out.Run.Sweep.Explored).To(Equal(60))
		Expect(out.Run.Sweep.Unexplored).To(BeNumerically(">", 60))
		Expect(out.Run.Exit).To(Equal(0))
		var b strings.Builder
		Expect(sweep.Chart(&b, out.Run.Sweep)).To(Succeed())
		Expect(b.String()).To(ContainSubstring("permission/allow-once-edit\n"))
	})

	It("stops at the end of its budget and says what it left out", func() {
		out := swept(&sweep.Sweeper{Engine: engine(""), Budget: 300 * time.Millisecond}, ordinary...)
		Expect(out.Run.Sweep.Unexplored).To(BeNumerically(">", 0))
		Expect(out.Run.Interrupted).To(BeFalse())
	})

	DescribeTable("finds a fault and writes what shows it again",
		func(fault string, points, actions []string, id, rule string) {
			dir := GinkgoT().TempDir()
			e := engine(fault)
			out := swept(&sweep.Sweeper{Engine: e, Points: points, Actions: actions, Max: 3, Confirm: 2, Repro: dir}, id)
			Expect(out.Run.Exit).NotTo(Equal(2), "%+v", out.Run.Results)
			var hit *sweep.Finding
			for i, f := range out.Findings {
				if f.Rule == rule && f.File != "" {
					hit = &out.Findings[i]
				}
			}
			Expect(hit).NotTo(BeNil(), told(out.Findings))
			Expect(hit.Hits).To(Equal(hit.Runs), told(out.Findings))
			Expect(hit.Lines).To(BeNumerically("<=", 25))
			text, err := os.ReadFile(hit.File)
			Expect(err).NotTo(HaveOccurred())
			Expect(string(text)).To(ContainSubstring("# Expect a " + string(hit.Class) + " of " + rule))
			list, err := scenarios.Load(hit.File)
			Expect(err).NotTo(HaveOccurred())
			res := e.Run(context.Background(), list[0])
			Expect(shown(res)).To(ContainElement(rule), "%s\n%s", filepath.Base(hit.File), text)
		},
		Entry(nil, "cancel-error", []string{"gate*"}, []string{"cancel"}, "prompt-turn/two-turns", "CANCEL-REASON"),
		Entry(nil, "cancel-lost-before-first-update", []string{"at once"}, []string{"cancel"}, "prompt-turn/two-turns", "ends-as-cancelled"),
		Entry(nil, "cancel-idle-sticks", []string{"idle"}, []string{"cancel"}, "prompt-turn/two-turns", "CANCEL-CAUSE"),
		Entry(nil, "second-prompt-swallowed", []string{"gate*"}, []string{"second prompt"}, "prompt-turn/two-turns", "second-prompt-is-worked-on"),
		Entry(nil, "permission-global", []string{"permission*"}, []string{"allow in*"}, "permission/allow-once-edit", "asks-in-the-other-session"),
		Entry(nil, "load-without-tools", []string{"idle"}, []string{"load"}, "permission/allow-once-edit", "same-as-before"),
		Entry(nil, "cancel-error", []string{"frame 39 *"}, []string{"cancel"}, "prompt-turn/many-chunks", "CANCEL-REASON"),
		Entry(nil, "saves-at-end-of-turn", []string{"frame*"}, []string{"kill*"}, "prompt-turn/two-turns", "keeps-what-was-said"),
		Entry(nil, "cancel-hits-every-session", []string{"second*"}, []string{"cancel"}, "prompt-turn/two-turns", "CANCEL-CAUSE"),
	)

	It("reports what the scenario shows by itself once, as of the baseline", func() {
		out := swept(&sweep.Sweeper{Engine: engine("always-cancelled"), Max: 5}, "prompt-turn/text")
		Expect(out.Findings).NotTo(BeEmpty())
		Expect(out.Findings[0].Signature.String()).To(ContainSubstring("in the baseline"))
	})
})

func shown(r scenarios.Result) []string {
	var out []string
	for _, f := range r.Findings {
		out = append(out, f.Rule)
	}
	for _, c := range r.Checks {
		if c.Verdict != scenarios.Pass {
			out = append(out, c.Slug)
		}
	}
	return out
}
