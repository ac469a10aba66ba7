package sweep_test

import (
	"bytes"
	"context"
	"os"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/acp-test/acp-test/protocol/acp/grammar"
	"github.com/acp-test/acp-test/scenarios/results"
	"github.com/acp-test/acp-test/sweep"
)

// explored runs sessions that fit the reference agent, with a fault or none.
func explored(fault string, n int, again *sweep.Key) sweep.Outcome {
	e := engine(fault)
	e.StepTimeout = 5 * time.Second
	w := &sweep.Sweeper{Engine: e, Jobs: 8, Max: n, Confirm: 3, Repro: GinkgoT().TempDir()}
	g, learned, err := w.Calibrate(context.Background(), grammar.V1())
	Expect(err).NotTo(HaveOccurred())
	Expect(learned).To(ContainSubstring("The agent asks before: delete_file"))
	out, err := w.Explore(context.Background(), g, again)
	Expect(err).NotTo(HaveOccurred())
	return out
}

var _ = Describe("drawn sessions", func() {
	It("blame nothing of the reference agent", func() {
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

	DescribeTable("find a fault that no scenario was written for, and shrink it",
		func(fault, rule string) {
			out := explored(fault, 40, nil)
			Expect(out.Run.Exit).To(Equal(1))
			i := -1
			for k, f := range out.Findings {
				if strings.HasPrefix(f.Rule, rule) {
					i = k
				}
			}
			Expect(i).To(BeNumerically(">=", 0), "no finding of %s", rule)
			f := out.Findings[i]
			Expect(f.Class).To(Equal(results.Fail))
			Expect(f.Hits).To(Equal(f.Runs))
			Expect(f.Lines).To(BeNumerically("<=", 15))
			text, err := os.ReadFile(f.File)
			Expect(err).NotTo(HaveOccurred())
			Expect(bytes.Count(text, []byte("\n"))).To(BeNumerically("<", 60))
			k, err := sweep.ParseKey(f.Key())
			Expect(err).NotTo(HaveOccurred())
			again := explored(fault, 1, &k)
			Expect(again.Findings).NotTo(BeEmpty(), "the session of the finding, played again")
		},
		Entry("in the model's words", "max-tokens-as-end-turn", "MODEL-STOP"),
		Entry("of a permission", "rejected-tool-completes", "PERM-GUARD"),
	)
})
