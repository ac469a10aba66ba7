package sweep_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/acp-test/acp-test/scenarios"
	"github.com/acp-test/acp-test/sweep"
)

var _ = Describe("perturbing", func() {
	It("leaves every shipped scenario a scenario, and depends on the seed alone", func() {
		all, err := scenarios.Shipped()
		Expect(err).NotTo(HaveOccurred())
		changed := 0
		for _, s := range all {
			text, err := s.Source()
			Expect(err).NotTo(HaveOccurred())
			same, how := sweep.Perturb(text, 1, 1)
			Expect(same).To(Equal(text))
			Expect(how).To(BeEmpty())
			for round := 2; round < 6; round++ {
				got, how := sweep.Perturb(text, 1, round)
				again, _ := sweep.Perturb(text, 1, round)
				Expect(again).To(Equal(got))
				_, err := scenarios.Parse(s.ID, s.File, got)
				Expect(err).NotTo(HaveOccurred(), "%s:\n%s", s.ID, got)
				changed += len(how)
			}
		}
		Expect(changed).To(BeNumerically(">", 100))
	})

	It("makes no difference to the correct agent", func() {
		results, flakes, err := sweep.Repeat(context.Background(), engine(""), []*scenarios.Scenario{scenario("permission/allow-once-edit"), scenario("prompt-turn/two-turns")}, 4, 2, nil)
		Expect(err).NotTo(HaveOccurred())
		Expect(results).To(HaveLen(8))
		Expect(flakes).To(BeEmpty())
	})
})
