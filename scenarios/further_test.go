package scenarios_test

import (
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/acp-test/acp-test/golden"
	"github.com/acp-test/acp-test/scenarios"
	"github.com/acp-test/acp-test/scenarios/results"
	"github.com/acp-test/acp-test/transcript"
)

var _ = Describe("the turn after the last line", func() {
	const script = "check a\nprompt 'Say hello.'\nawait turn end_turn\n"
	further := func(r results.Result) *results.Check {
		for i := range r.Checks {
			if r.Checks[i].Slug == "further" {
				return &r.Checks[i]
			}
		}
		return nil
	}
	with := func(fault string) *scenarios.Engine {
		e := engine()
		e.NoFurther = false
		if fault != "" {
			e.ExtraArgs = []string{"--fault", fault}
		}
		return e
	}

	It("is played and passes; a golden ends before it", func() {
		e := with("")
		e.Golden, e.Update = &golden.Store{Dir: GinkgoT().TempDir()}, true
		r := run(e, script+hello)
		Expect(further(r)).To(HaveField("Verdict", results.Pass), text(r))
		Expect(r.Checks).To(HaveLen(2))
		prompts := 0
		for entry := range transcriptOf(e, r).All() {
			if entry.Method == "session/prompt" && entry.Source == transcript.Editor {
				prompts++
			}
		}
		Expect(prompts).To(Equal(2))
		kept, _, err := e.Golden.Read("reference", "case")
		Expect(err).NotTo(HaveOccurred())
		Expect(strings.Count(kept, "session/prompt")).To(Equal(1), kept)
	})

	DescribeTable("is left out", func(script string) {
		if !strings.Contains(script, "llm.yaml") {
			script += hello
		}
		r := run(with(""), script)
		Expect(r.Verdict).NotTo(Equal(results.Error), text(r))
		Expect(further(r)).To(BeNil(), text(r))
	},
		Entry("where the scenario says so", "further off 'a test'\n"+script),
		Entry("after a line that missed", script+"await turn refusal within=1s\n"),
		Entry("where the session is closed", script+"session close main\n"),
		Entry("where no session is open", "check a\ninitialize\n"),
		Entry("where the turn goes on",
			"check a\nprompt 'Say hello.'\nawait gate held\n-- llm.yaml --\nreplies:\n  - - gate: held\n"+
				"    - text: Hello.\n"),
	)

	It("has a check that did not pass where nothing could be played at all", func() {
		e := with("")
		p := *e.Profile
		p.Command, e.Profile = []string{"/no/such/agent"}, &p
		r := run(e, script+hello)
		Expect(r.Verdict).To(Equal(results.Error))
		Expect(r.Checks).To(HaveExactElements(And(HaveField("Slug", "a"), HaveField("Verdict", results.Error),
			HaveField("Reason", r.Reason))))
	})

	It("is a warning where it goes wrong, and cites the prompt and its answer", func() {
		e := with("answers-before-it-is-free")
		r := run(e, script+hello)
		Expect(further(r)).To(HaveField("Verdict", results.Warn), text(r))
		Expect(further(r).Failure.Entries).To(HaveLen(2))
	})
})
