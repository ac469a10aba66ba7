package sweep_test

import (
	"context"
	"os"
	"slices"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/acp-test/acp-test/protocol/acp"
	"github.com/acp-test/acp-test/protocol/acp/schedules"
	"github.com/acp-test/acp-test/refagent/faults"
	"github.com/acp-test/acp-test/scenarios"
	"github.com/acp-test/acp-test/scenarios/results"
	"github.com/acp-test/acp-test/sweep"
)

// topics are those of the faults that sweeps are for, and unasked one of them that is
// none of an agent: it need not ask for a permission.
var topics, unasked = []string{"cancel", "permission", "load", "session"}, "permission-never-asked"

var _ = Describe("every fault of cancelling, permissions, loading and sessions", func() {
	It("is found within 200 schedules of two suites that know of none", func() {
		if os.Getenv("ACP_TEST_SOAK") == "" {
			Skip("it takes minutes; set ACP_TEST_SOAK=1")
		}
		var names []string
		for _, f := range faults.All(faults.ACPv1) {
			if slices.Contains(topics, f.Topic) && f.Name != unasked {
				names = append(names, f.Name)
			}
		}
		list, err := acp.V1().Shipped("prompt-turn", "tool-calls")
		Expect(err).NotTo(HaveOccurred())
		// Side by side: the processes of most faults wait for what never comes.
		found := make([]string, len(names))
		slots := make(chan struct{}, 3)
		var sweeps sync.WaitGroup
		for i, name := range names {
			sweeps.Go(func() {
				defer GinkgoRecover()
				slots <- struct{}{}
				defer func() { <-slots }()
				found[i] = first(&sweep.Sweeper{Planner: schedules.V1(), Engine: engine(name), Max: 200}, list)
			})
		}
		sweeps.Wait()
		var missed []string
		for i, name := range names {
			GinkgoWriter.Printf("%s: %s\n", name, found[i])
			if found[i] == "" {
				missed = append(missed, name)
			}
		}
		Expect(missed).To(BeEmpty())
	})
})

// first is the first thing that a sweep finds, "" if it finds nothing. What
// would be done about it is left out.
func first(w *sweep.Sweeper, list []*scenarios.Scenario) (signature string) {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	var once sync.Once
	w.Found = func(f sweep.Signature, _ results.Verdict) {
		once.Do(func() {
			signature = f.String()
			stop()
		})
	}
	_, err := w.Run(ctx, list)
	if ctx.Err() == nil {
		Expect(err).NotTo(HaveOccurred())
	}
	return signature
}
