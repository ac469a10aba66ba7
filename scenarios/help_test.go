package scenarios_test

import (
	"github.com/acp-test/acp-test/protocol/acp"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("help", func() {
	It("knows every command", func() {
		for _, c := range acp.V1().Commands() {
			page, err := acp.V1().Help(c.Name)
			Expect(err).NotTo(HaveOccurred())
			Expect(page).To(ContainSubstring(c.Name))
			Expect(c.Summary).NotTo(BeEmpty())
			Expect(acp.V1().Reference()).To(ContainSubstring("### " + c.Name + "\n"))
		}
	})

	It("suggests for a misspelt topic", func() {
		_, err := acp.V1().Help("awate")
		Expect(err).To(MatchError(`no help on "awate" (did you mean "await"?)`))
	})
})
