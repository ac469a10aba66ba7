package main_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/acp-test/acp-test/scenarios/results"
)

var _ = Describe("a sweep in four parts", func() {
	It("finds what one process finds, and covers as much", func() {
		oneOf(1)
		p := newPlace()
		p.write("two.txtar", "# A turn in pieces.\nprompt 'Say hello.'\nawait turn end_turn\n-- llm.yaml --\n"+
			"replies:\n  - - text: Hello there.\n      chunks: 3\n")
		sweep := func(more ...string) ended {
			return p.run(append([]string{"sweep", "two.txtar", "--fault", "cancel-error", "--actions", "cancel,close",
				"--points", "f*,gate*,with*", "--confirm", "1"}, more...)...)
		}
		whole := sweep("--out", "whole", "--repro", "repro/whole")
		Expect(whole.code).To(Equal(1), whole.out)
		const parts = 4
		var all sync.WaitGroup
		args := []string{"report", "merge", "--out", "merged"}
		for i := range parts {
			dir := fmt.Sprintf("part/%d", i+1)
			args = append(args, dir)
			all.Go(func() {
				defer GinkgoRecover()
				Expect(sweep("--shard", fmt.Sprintf("%d/%d", i+1, parts), "--out", dir, "--repro",
					"repro/"+fmt.Sprint(i)).code).To(BeNumerically("<", 2))
			})
		}
		all.Wait()
		merged := p.run(args...)
		Expect(merged.code).To(Equal(1), merged.out+merged.err)
		one, joined := p.resultsIn("whole"), p.resultsIn("merged")
		Expect(cells(joined)).To(Equal(cells(one)))
		Expect(joined.Sweep.Explored).To(Equal(one.Sweep.Explored))
		Expect(joined.Sweep.PairsTried).To(Equal(one.Sweep.PairsTried))
		Expect(causes(joined)).To(Equal(causes(one)))
	})
})

// cells are what a sweep did, and where something was found.
func cells(run results.Run) (out []string) {
	for _, c := range run.Sweep.Cells {
		out = append(out, strings.Join([]string{c.Point, c.Action, fmt.Sprint(c.Finding != "")}, ", "))
	}
	slices.Sort(out)
	return out
}

// causes are the rules and checks that a run shows.
func causes(run results.Run) (out []string) {
	for _, r := range run.Results {
		for _, f := range r.Findings {
			out = append(out, f.Rule)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
