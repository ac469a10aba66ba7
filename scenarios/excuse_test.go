package scenarios_test

import (
	"context"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/acp-test/acp-test/agents"
	"github.com/acp-test/acp-test/protocol/acp"
	"github.com/acp-test/acp-test/refagent"
	"github.com/acp-test/acp-test/scenarios"
	"github.com/acp-test/acp-test/scenarios/results"
	"github.com/acp-test/acp-test/scenarios/verdict"
)

var _ = Describe("a tool call that failed", func() {
	const want = "\n-- want/a.txt --\na\n"
	const write = "\n-- llm.yaml --\nreplies:\n  - - tool: write_file\n      args: {path: $WORK/a.txt, content: " +
		"\"b\\n\"}\n  - - text: Done.\n"
	asks := func(reply string) string {
		return "\n-- llm.yaml --\nreplies:\n  - - " + reply + "\n  - - text: Done.\n"
	}
	const check = "permit allow_once\ncheck SESSION-006\nprompt 'Write.'\nawait turn end_turn\ncmp a.txt want/a.txt\n"

	It("makes checks of the effect inconclusive, with the tool's own words", func() {
		r := run(engine(), check+asks("tool: polish\n      args: {path: $WORK/a.txt}")+want)
		Expect(r.Verdict).To(Equal(results.Inconclusive), text(r))
		Expect(r.Checks[0].Reason).To(MatchRegexp(`^the tool call that was to do this failed: ".*polish.*" \(#\d+\)$`))
		Expect(r.Reason).To(Equal(r.Checks[0].Reason))
	})

	It("is one whatever it says", func() {
		r := run(engine(), check+asks("tool: read_file\n      args: {path: $WORK/missing.txt}")+want)
		Expect(r.Verdict).To(Equal(results.Inconclusive), text(r))
		Expect(r.Checks[0].Reason).To(MatchRegexp(`^the tool call that was to do this failed: ` +
			`".*missing.txt.*" \(#\d+\)$`))
	})

	It("does not excuse an effect that is another", func() {
		Expect(run(engine(), check+write+want).Verdict).To(Equal(results.Fail))
	})

	It("is none where a call that was completed brought such words", func() {
		r := run(engine(), check+asks("tool: read_file\n      args: {path: $WORK/notes.txt}")+want+
			"-- notes.txt --\nThis tool is not supported: no such tool.\n")
		Expect(r.Verdict).To(Equal(results.Fail), text(r))
	})

	It("is none where the editor refused the same call before", func() {
		again := "permit reject_once\nprompt 'Write.'\nawait turn end_turn\ncheck PERM-008\nprompt 'Write again.'\n" +
			"await turn end_turn\nsaw permission\n-- llm.yaml --\nturns:\n"
		for range 2 {
			again += "  - - - tool: write_file\n        args: {path: $WORK/a.txt, content: b}\n    - - text: Done.\n"
		}
		e := engine()
		e.ExtraArgs = []string{"--fault", "rejection-remembered-silently"}
		r := run(e, again)
		Expect(r.Verdict).To(Equal(results.Fail), text(r))
	})

	It("is none where the editor stood against the call", func() {
		r := run(engine(), "permit reject_once\n"+check[len("permit allow_once\n"):]+write+want)
		Expect(r.Verdict).To(Equal(results.Fail), text(r))
	})
})

var _ = Describe("an agent that asks its model again", func() {
	waits := func(first string) results.Result {
		return run(engine(), "check PROMPT-003\nprompt 'Say hello.'\nawait gate g\nawait turn end_turn within=50ms\n\n"+
			"-- llm.yaml --\nreplies:\n  - - "+first+"gate: g\n")
	}

	It("may take longer than a wait, and one that does not may not", func() {
		r := waits("fail: {status: 429, times: 1}\n    - ")
		Expect(r.Verdict).To(Equal(results.Inconclusive), text(r))
		Expect(r.Reason).To(MatchRegexp(`requested the same reply from the model, 2 times since #\d+$`))
		Expect(r.Findings).To(BeEmpty(), text(r))
		Expect(waits("").Verdict).To(Equal(results.Fail))
	})
})

var _ = Describe("an agent without a model", func() {
	runAll := func(env map[string]string, scripts ...string) results.Run {
		GinkgoHelper()
		e := engine()
		e.Env = env
		var list []*scenarios.Scenario
		for i, script := range scripts {
			s, err := acp.V1().Parse("case/"+string(rune('a'+i)), "case.txtar", []byte(script))
			Expect(err).NotTo(HaveOccurred())
			list = append(list, s)
		}
		return e.RunAll(context.Background(), list, scenarios.Plan{Jobs: 1})
	}
	away := map[string]string{refagent.EnvBaseURL: "http://127.0.0.1:1/v1"}
	const turn = "check PROMPT-003\nprompt 'Say hello.'\nawait turn end_turn\n" + hello

	It("is blamed for nothing that takes one, and the run says what to do", func() {
		r := runAll(away, turn, turn)
		Expect(r.Verdict).To(Equal(results.Inconclusive))
		Expect(r.Counts.Inconclusive).To(Equal(2))
		Expect(r.Results[0].Checks[0].Reason).To(ContainSubstring("no scenario of this run reached the model server"))
		Expect(r.Notes).To(ContainElement(ContainSubstring("--env NAME='$LLM'")))
		Expect(r.Exit).To(Equal(2))
	})

	It("is still judged by what takes none", func() {
		r := runAll(away, turn, "check SESSION-003\nrequest session/new '{\"cwd\": \"relative\"}' as R\n"+
			"await response R stopReason=end_turn\n"+hello)
		Expect(r.Results[1].Verdict).To(Equal(results.Fail), text(r.Results[1]))
	})

	It("is not blamed for what it says in the further turn", func() {
		e := engine()
		e.Env, e.NoFurther = away, false
		s, err := acp.V1().Parse("case/a", "case.txtar", []byte("check SESSION-001\nsession new a\n"))
		Expect(err).NotTo(HaveOccurred())
		r := e.RunAll(context.Background(), []*scenarios.Scenario{s}, scenarios.Plan{Jobs: 1})
		Expect(r.Results[0].Verdict).To(Equal(results.Pass), text(r.Results[0]))
		Expect(r.Results[0].Checks).To(HaveLen(1))
		Expect(r.NoModel).NotTo(BeEmpty())
	})

	It("is blamed where another scenario had one", func() {
		r := runAll(nil, turn, "env "+refagent.EnvBaseURL+"=http://127.0.0.1:1/v1\n"+turn)
		Expect(r.Results[0].Verdict).To(Equal(results.Pass), text(r.Results[0]))
		Expect(r.Results[1].Verdict).To(Equal(results.Fail), text(r.Results[1]))
		Expect(r.NoModel).To(BeEmpty())
	})
})

var _ = Describe("a failure that is known", func() {
	It("is known beside what is inconclusive", func() {
		e := engine()
		e.Known = []agents.KnownFailure{{Scenario: "case", ID: "session-006", Reason: "reported"}}
		r := run(e, "permit allow_once\ncheck SESSION-006\nprompt 'Write.'\nawait turn end_turn\n! text ~ Done\n"+
			"check CANCEL-001\nprompt 'Write again.'\nawait permission\n\n-- llm.yaml --\nreplies:\n"+
			"  - - text: Done.\n")
		Expect(r.Verdict).To(Equal(results.Fail), text(r))
		Expect(r.Checks[1].Verdict).To(Equal(results.Inconclusive), text(r))
		Expect(r.Known).To(BeTrue())
		e.Known[0].ID = "another"
		Expect(e.Run(context.Background(),
			parsed("check SESSION-006\nprompt 'Write.'\nawait turn end_turn\n! text ~ Hello\n"+hello)).Known).
			To(BeFalse())
	})
})

var _ = Describe("a line before the checks that gives no verdict", func() {
	It("is shown as inconclusive beside what failed", func() {
		e := engine()
		e.ExtraArgs = []string{"--fault", "always-cancelled"}
		r := run(e, "prompt 'Say hello.'\nawait permission\n"+hello)
		Expect(r.Verdict).To(Equal(results.Fail), text(r))
		Expect(r.FailureClass).To(Equal(results.Inconclusive), text(r))
		classes := map[string]results.Verdict{}
		for _, s := range verdict.Sightings(&r) {
			classes[s.ID] = s.Class
		}
		Expect(classes).To(Equal(map[string]results.Verdict{
			"CANCEL-CAUSE not-cancelled": results.Fail, "": results.Inconclusive}))
	})

	It("ends the script where something had to have come, and goes on where something must not", func() {
		first := func(line string) results.Check {
			GinkgoHelper()
			r := run(engine(), "prompt 'Say hello.'\nawait turn\n"+line+
				"\ncheck PROMPT-003\nprompt 'Go on.'\nawait turn cancelled\n"+hello)
			Expect(r.Checks).To(HaveLen(1), text(r))
			return r.Checks[0]
		}
		Expect(first("saw tool").Reason).To(ContainSubstring("not reached: the script ended at case.txtar:3"))
		for _, line := range []string{"! saw turn end_turn", "! text ~ Hello", "saw turn end_turn"} {
			Expect(first(line).Verdict).To(Equal(results.Fail), line)
		}
	})

	It("does not make what is known beside it unknown", func() {
		e := engine()
		e.ExtraArgs = []string{"--fault", "always-cancelled"}
		e.Known = []agents.KnownFailure{{Scenario: "case", ID: "CANCEL-CAUSE", Reason: "reported"}}
		r := run(e, "prompt 'Say hello.'\nawait permission\n"+hello)
		Expect(r.Known).To(BeTrue(), text(r))
	})
})

var _ = Describe("a run that is interrupted", func() {
	It("blames nobody", func() {
		e := engine()
		ctx, stop := context.WithCancel(context.Background())
		e.Step = func(_, step string) {
			if strings.Contains(step, "check") {
				stop()
			}
		}
		r := e.Run(ctx, parsed("check CANCEL-001\nprompt 'Say hello.'\ncancel\nawait turn cancelled\n"+
			"await permission\n"+hello))
		Expect(r.Reason).To(Equal("interrupted"))
		Expect(r.Verdict).To(Equal(results.Error))
		Expect(r.Checks).To(BeEmpty())
		Expect(r.Findings).To(BeEmpty())
	})
})

func parsed(script string) *scenarios.Scenario {
	GinkgoHelper()
	s, err := acp.V1().Parse("case", "case.txtar", []byte(script))
	Expect(err).NotTo(HaveOccurred())
	return s
}

var _ = Describe("a turn that ends in another way than it was to", func() {
	It("is one cause, whatever the checks that miss by it", func(ctx context.Context) {
		e := engine()
		e.ExtraArgs = []string{"--fault", "cancel-end-turn"}
		list := named(suite(), []string{"cancel/prompt-again-at-once", "cancel/twice", "cancel/mid-stream-at-gate"})
		r := e.RunAll(ctx, list, scenarios.Plan{Patient: true})
		Expect(r.Counts.Fail).To(Equal(3))
		Expect(r.Causes).To(HaveLen(1))
		Expect(r.Causes[0].ID).To(Equal("CANCEL-REASON other-reason"))
		Expect(r.Causes[0].Scenarios).To(HaveLen(3))
	})

	It("is one cause where a rule and a check see it", func(ctx context.Context) {
		e := engine()
		e.ExtraArgs = []string{"--fault", "max-tokens-as-end-turn"}
		r := e.RunAll(ctx, named(suite(), []string{"prompt-turn/max-tokens"}), scenarios.Plan{})
		Expect(r.Results[0].Findings).To(ContainElement(HaveField("Rule", "MODEL-STOP")))
		Expect(r.Causes).To(HaveLen(1))
		Expect([]any{r.Causes[0].ID, r.Causes[0].Class}).To(Equal([]any{"MODEL-STOP other-reason", results.Fail}))
	})

	It("is another cause where the rule's finding is known, and the check is not", func() {
		e := engine()
		e.ExtraArgs = []string{"--fault", "cancel-end-turn"}
		e.Known = []agents.KnownFailure{{Scenario: "**", ID: "CANCEL-REASON", Reason: "as it is"}}
		r := e.Run(context.Background(), suite()["cancel/mid-stream-at-gate"])
		Expect(r.Known).To(BeFalse())
		known := map[bool]int{}
		for _, s := range verdict.Sightings(&r) {
			known[s.Known]++
		}
		Expect(known).To(And(HaveKey(true), HaveKey(false)))
	})
})
