package scenarios_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/acp-test/acp-test/agents"
	"github.com/acp-test/acp-test/golden"
	"github.com/acp-test/acp-test/scenarios"
)

var _ = Describe("an update of goldens", func() {
	const script = "check a\nprompt 'Say hello.'\nawait turn end_turn\n" + hello

	It("writes what is new and what differs, but not what is known to differ", func() {
		e := engine()
		e.Golden, e.Update = &golden.Store{Dir: GinkgoT().TempDir()}, true
		Expect(run(e, script).Golden.State).To(Equal("updated"))
		right, _, err := e.Golden.Read("reference", "case")
		Expect(err).NotTo(HaveOccurred())

		Expect(e.Golden.Write("reference", "case", "another text\n")).To(Succeed())
		e.Known = []agents.KnownFailure{{Scenario: "case", ID: "golden", Reason: "a test"}}
		r := run(e, script)
		Expect(r.Golden.State).To(Equal("differs"))
		Expect(r.Verdict).To(Equal(scenarios.Fail), text(r))
		Expect(r.Known).To(BeTrue())
		kept, _, err := e.Golden.Read("reference", "case")
		Expect(err).NotTo(HaveOccurred())
		Expect(kept).To(Equal("another text\n"))

		e.Known = nil
		Expect(run(e, script).Golden.State).To(Equal("updated"))
		kept, _, err = e.Golden.Read("reference", "case")
		Expect(err).NotTo(HaveOccurred())
		Expect(kept).To(Equal(right))

		e.Known = []agents.KnownFailure{{Scenario: "case", ID: "golden", Reason: "a test", Flaky: true}}
		e.Golden = &golden.Store{Dir: GinkgoT().TempDir()}
		Expect(run(e, script).Golden.State).To(Equal("off"))
		Expect(e.Golden.List("reference")).To(BeEmpty())
	})
})
