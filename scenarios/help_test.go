package scenarios_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/acp-test/acp-test/scenarios"
)

var _ = Describe("help", func() {
	It("knows every command", func() {
		for _, c := range scenarios.Commands() {
			page, err := scenarios.Help(c.Name)
			Expect(err).NotTo(HaveOccurred())
			Expect(page).To(ContainSubstring(c.Name))
			Expect(c.Summary).NotTo(BeEmpty())
			Expect(scenarios.Reference()).To(ContainSubstring("### " + c.Name + "\n"))
		}
	})

	It("suggests for a misspelt topic", func() {
		_, err := scenarios.Help("awate")
		Expect(err).To(MatchError(`no help on "awate" (did you mean "await"?)`))
	})
})
