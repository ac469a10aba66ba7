package scenarios_test

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/acp-test/acp-test/protocol/acp"
	"github.com/acp-test/acp-test/scenarios"
	"github.com/acp-test/acp-test/scenarios/results"
)

var _ = Describe("waits of RunAll", func() {
	const (
		hangs = "check a\nprompt 'Wait.'\nawait turn end_turn\n-- llm.yaml --\nreplies:\n  - - gate: never\n"
		slow  = "check a\nprompt 'Wait.'\nawait turn end_turn\n-- llm.yaml --\nreplies:\n  - - pause: 500ms\n" +
			"    - text: Done.\n"
	)
	parsed := func(id, script string) *scenarios.Scenario {
		GinkgoHelper()
		s, err := acp.V1().Parse(id, id+".txtar", []byte(script))
		Expect(err).NotTo(HaveOccurred())
		return s
	}
	play := func(scripts ...string) results.Run {
		DeferCleanup(scenarios.ShortestDoubt(50 * time.Millisecond))
		var list []*scenarios.Scenario
		for i, script := range scripts {
			list = append(list, parsed(string(rune('a'+i)), script))
		}
		e := engine()
		e.StepTimeout = 2 * time.Second
		return e.RunAll(context.Background(), list, scenarios.Plan{Jobs: 1})
	}

	It("are paid once: those of a kind that was in vain are cut, after one more at full length", func() {
		r := play(hangs, hangs, hangs, hangs)
		var timers []string
		for _, x := range r.Results {
			timers = append(timers, x.Checks[0].Failure.Timer)
		}
		Expect(r.Results[2].Verdict).To(Equal(results.Inconclusive), "what was cut proves nothing")
		const full, cut = "step timeout 2s",
			"step timeout 50ms instead of 2s, because the same kind of wait timed out before"
		Expect(timers).To(HaveExactElements(full, full, cut, cut))
	})

	It("are cut by an engine that doubts, at once by a brief one, and by no other", func() {
		DeferCleanup(scenarios.ShortestDoubt(50 * time.Millisecond))
		whole := engine()
		whole.StepTimeout = time.Second
		doubting, brief := whole.Doubting(), whole.Brief()
		var cut []bool
		for i, e := range []*scenarios.Engine{&doubting, &doubting, &brief, whole} {
			for _, v := range e.Run(context.Background(), parsed(string(rune('a'+i)), hangs)).Vain {
				cut = append(cut, v.Cut)
			}
		}
		Expect(cut).To(Equal([]bool{false, true, true, false}))
	})

	It("judge nobody by a cut: where one more at full length is not in vain, all are played again", func() {
		r := play(hangs, slow, slow)
		Expect(r.Results[0].Verdict).NotTo(Equal(results.Pass))
		Expect(r.Results[1].Verdict).To(Equal(results.Pass), r.Results[1].Summary())
		Expect(r.Results[2].Verdict).To(Equal(results.Pass), r.Results[2].Summary())
	})
})
