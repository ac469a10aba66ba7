package liberties_test

import (
	"os"
	"reflect"
	"strings"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/acp-test/acp-test/refagent/liberties"
)

func TestLiberties(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "liberties")
}

var _ = Describe("the list of liberties", func() {
	It("is long, and each one is allowed and changes the agent", func() {
		requirements, err := os.ReadFile("../../protocol/acp/invariants/requirements.txt")
		Expect(err).NotTo(HaveOccurred())
		all := liberties.All()
		Expect(len(all)).To(BeNumerically(">=", 60))
		seen := map[string]bool{}
		for _, l := range all {
			Expect(l.Name).To(MatchRegexp(`^[a-z0-9]+(-[a-z0-9]+)*$`))
			Expect(seen).NotTo(HaveKey(l.Name))
			seen[l.Name] = true
			Expect(l.Summary).NotTo(BeEmpty(), l.Name)
			Expect(l.Allows).NotTo(BeEmpty(), l.Name)
			for id := range strings.FieldsSeq(l.Allows) {
				Expect(string(requirements)).To(ContainSubstring("\n"+id+" agent "), l.Name)
			}
			Expect(reflect.ValueOf(liberties.Habits([]liberties.Liberty{l})).IsZero()).To(BeFalse(), l.Name)
		}
		Expect(reflect.ValueOf(liberties.Habits(nil)).IsZero()).To(BeTrue())
	})
})
