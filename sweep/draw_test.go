package sweep_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/acp-test/acp-test/protocol/acp"
	"github.com/acp-test/acp-test/protocol/acp/schedules"
	"github.com/acp-test/acp-test/scenarios"
	"github.com/acp-test/acp-test/scenarios/results"
	"github.com/acp-test/acp-test/sweep"
)

// drawing sweeps the reference agent by orders that are drawn.
func drawing(fault string, most int) *sweep.Sweeper {
	return &sweep.Sweeper{Planner: schedules.V1(), Engine: engine(fault), Jobs: 8, Max: most,
		Points: []string{sweep.DrawnState}}
}

var _ = Describe("orders of acts that are drawn", func() {
	It("blame the correct agent for nothing, and say what they have covered", func() {
		out := swept(drawing("", 40), "permission/allow-once-edit", "prompt-turn/many-chunks")
		Expect(out.Findings).To(BeEmpty(), told(out.Findings))
		Expect(out.Notes).To(BeEmpty())
		o := out.Run.Sweep.Drawn
		Expect(o).NotTo(BeNil())
		Expect(o.Drawn).To(Equal(40))
		Expect(o.Depths).To(And(HaveKey(1), HaveKey(2), HaveKey(3)))
		Expect(o.Both).To(And(BeNumerically(">", 10), BeNumerically("<=", o.Orders)))
		Expect(o.Missed[1]).To(BeNumerically("<", o.Missed[2]))
		Expect(out.Run.Exit).To(Equal(0))
	})

	It("answer each permission of a turn that asks for several, and never say blocks again", func() {
		out := swept(drawing("", 60), "cancel/first-of-two-calls", "content/embedded")
		Expect(out.Findings).To(BeEmpty(), told(out.Findings))
		Expect(out.Notes).To(BeEmpty())
		Expect(out.Run.Counts.Inconclusive).To(BeZero(), "%+v", out.Run.Results)
	})

	It("find a race that takes two acts in one order, and show it in a few lines", func() {
		w := drawing("race-mode-frees-permission", 4000) // it ends with the first finding, which chance may delay
		w.Confirm, w.Repro = 3, GinkgoT().TempDir()
		ctx, stop := context.WithCancel(context.Background())
		defer stop()
		found := make(chan sweep.Signature, 1)
		w.Found = func(f sweep.Signature, class results.Verdict) {
			if class == results.Fail {
				select {
				case found <- f:
					stop()
				default:
				}
			}
		}
		_, err := w.Run(ctx, []*scenarios.Scenario{scenario("permission/allow-once-edit")})
		Expect(err).NotTo(HaveOccurred())
		Expect(found).To(Receive(HaveField("Action", And(ContainSubstring("reject"), ContainSubstring("set ")))))
	})

	It("have each a simpler one that can be played, until nothing is done besides", Label("large"), func() {
		list, err := sweep.Drawn(context.Background(), drawing("", 40), scenario("permission/allow-once-edit"))
		Expect(err).NotTo(HaveOccurred())
		Expect(list).To(HaveLen(40))
		for _, s := range list {
			steps := 0
			for next := s.Simpler(); len(next) > 0; next = s.Simpler() {
				steps++
				Expect(steps).To(BeNumerically("<", 60), s.Drawn)
				s = next[len(next)-1]
				text, _ := s.Write(nil)
				_, err := acp.V1().Parse("s", "s.txtar", text.Text())
				Expect(err).NotTo(HaveOccurred(), string(text.Text()))
			}
			Expect(s.Steps).To(BeNumerically("<=", 3), s.Drawn) // the prompt, an answer, the end
		}
	})

	It("are the same for the same seed, and split into parts that have nothing in common", func() {
		keys := func(part *sweep.Part) (out []string) {
			w := drawing("", 64)
			w.Shard = part
			w.Choice = sweep.ByPriority
			list, err := sweep.Drawn(context.Background(), w, scenario("prompt-turn/two-turns"))
			Expect(err).NotTo(HaveOccurred())
			for _, s := range list {
				out = append(out, s.Drawn)
			}
			return out
		}
		Expect(keys(nil)).To(Equal(keys(nil)))
		seen := map[string]bool{}
		for i := range 4 {
			for _, k := range keys(&sweep.Part{Index: i + 1, Of: 4}) {
				Expect(seen).NotTo(HaveKey(k))
				seen[k] = true
			}
		}
		Expect(len(seen)).To(BeNumerically("~", 64, 4))
	})
})
