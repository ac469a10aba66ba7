package sweep_test

import (
	"os"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/acp-test/acp-test/refagent/faults"
	"github.com/acp-test/acp-test/sweep"
)

// kinds are the faults that sweeps are for, by the first and the last of each
// topic.
var kinds = [][2]string{
	{"cancel-end-turn", "cancel-request-of-nothing"},
	{"permission-never-asked", "permission-answer-never-read"},
	{"load-replays-nothing", "kill-breaks-session"},
	{"close-returns-early", "sessions-share-history"},
}

var _ = Describe("every fault of cancelling, permissions, loading and sessions", func() {
	It("is found by a sweep of five ordinary scenarios", func() {
		if os.Getenv("ACP_TEST_SOAK") == "" {
			Skip("it takes half an hour; set ACP_TEST_SOAK=1")
		}
		all := faults.All()
		index := func(name string) int {
			i := slices.IndexFunc(all, func(f faults.Fault) bool { return f.Name == name })
			Expect(i).To(BeNumerically(">=", 0), name)
			return i
		}
		var missed []string
		for _, k := range kinds {
			for _, f := range all[index(k[0]) : index(k[1])+1] {
				out := swept(&sweep.Sweeper{Engine: engine(f.Name), Budget: time.Minute, Confirm: 1}, ordinary...)
				if len(out.Findings) == 0 {
					missed = append(missed, f.Name)
				}
			}
		}
		Expect(missed).To(BeEmpty())
	})
})
