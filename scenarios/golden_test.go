package scenarios_test

import (
	"path"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/acp-test/acp-test/agents"
	"github.com/acp-test/acp-test/golden"
	"github.com/acp-test/acp-test/scenarios"
	"github.com/acp-test/acp-test/scenarios/results"
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
		Expect(r.Verdict).To(Equal(results.Fail), text(r))
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

var _ = Describe("an agent that asks for no permission, which it need not", func() {
	permissions := func() []*scenarios.Scenario {
		var list []*scenarios.Scenario
		for id, s := range suite() {
			if ok, _ := path.Match("permission/*", id); ok || slices.Contains([]string{
				"cancel/late-permission-answer", "cancel/permission-answered", "transport/second-answer",
			}, id) {
				list = append(list, s)
			}
		}
		return list
	}

	It("is blamed by no scenario: what is about permissions is skipped", func(ctx SpecContext) {
		e := engine()
		e.ExtraArgs = []string{"--fault", "permission-never-asked"}
		list := permissions()
		for _, r := range e.RunAll(ctx, list, scenarios.Plan{Jobs: 3}).Results {
			Expect(r.Verdict).To(Equal(results.Skip), "%s\n%s", r.ID, text(r))
			Expect(r.Reason).To(ContainSubstring("permission"), r.ID)
		}
		Expect(len(list)).To(BeNumerically(">=", 16))
	})

	It("is seen to have stopped asking where a golden shows that it did", func(ctx SpecContext) {
		e := engine()
		e.Golden = &golden.Store{Embedded: golden.Shipped()}
		e.ExtraArgs = []string{"--fault", "permission-never-asked"}
		r := e.Run(ctx, suite()["permission/reject-once"])
		Expect(r.Verdict).To(Equal(results.Fail), text(r))
		Expect(r.Golden.Skipped).To(Equal("the turn ended without permission about~main\\.go"))
		Expect(r.Golden.Diff).To(And(ContainSubstring("-<-- request_permission call#1"),
			ContainSubstring("+<-- fs/write_text_file $WORK/main.go")))

		e.Known = []agents.KnownFailure{{Scenario: "permission/*", ID: "golden", Reason: "a test"}}
		r = e.Run(ctx, suite()["permission/reject-once"])
		Expect(r.Verdict).To(Equal(results.Fail), text(r))
		Expect(r.Known).To(BeTrue())
	})
})
