package scenarios_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/acp-test/acp-test/scenarios"
)

var _ = Describe("what an agent promises of a second prompt", func() {
	const busy = `golden off
check a
prompt 'Stay busy.' as ONE
await gate held
prompt 'Come in between.' as TWO
release held
group {
  await response ONE
  await response TWO
}
-- llm.yaml --
turns:
  - - - gate: held
      - text: First.
  - - - text: Second.
`
	found := func(profile, line string) (points []string) {
		e := engine()
		e.Profile.Policy.ConcurrentPrompts = profile
		for _, f := range run(e, line+busy).Findings {
			if f.Class == scenarios.Lint {
				points = append(points, f.Rule+" "+f.Point)
			}
		}
		return points
	}
	It("is in its profile, or in the scenario", func() {
		Expect(found("", "")).To(BeEmpty())
		Expect(found("queue", "")).To(ConsistOf("BUSY-PROMISED refused"))
		Expect(found("queue", "policy concurrent-prompts=reject\n")).To(BeEmpty())
		Expect(found("", "policy concurrent-prompts=replace\n")).To(ConsistOf("BUSY-PROMISED refused"))
	})
})
