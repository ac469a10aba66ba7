package sweep_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/acp-test/acp-test/protocol/acp"
	"github.com/acp-test/acp-test/protocol/acp/schedules"
	aguischedules "github.com/acp-test/acp-test/protocol/agui/schedules"
	"github.com/acp-test/acp-test/scenarios"
	"github.com/acp-test/acp-test/scenarios/results"
	"github.com/acp-test/acp-test/sweep"
)

var _ = Describe("perturbing", func() {
	It("depends on the seed, the scenario and the round alone, and leaves the first round as it is", func() {
		Expect(sweep.Perturb(1, "a", 1)).To(BeZero())
		kinds := map[string]bool{}
		for round := 2; round < 40; round++ {
			p := sweep.Perturb(1, "a", round)
			Expect(p.How).NotTo(BeEmpty())
			Expect(sweep.Perturb(1, "a", round).How).To(Equal(p.How))
			Expect(sweep.Perturb(2, "a", round).How).NotTo(Equal(p.How))
			Expect(sweep.Perturb(1, "b", round).How).NotTo(Equal(p.How))
			kinds[fmt.Sprint(p.Split > 0, p.Pace.Read != nil, p.Pace.Answer != nil)] = true
		}
		Expect(kinds).To(HaveLen(3))
	})

	It("makes no difference to the correct agent", func() {
		run := perturbed(engine(""), 6, "permission/allow-once-edit", "prompt-turn/two-turns",
			"prompt-turn/many-chunks", "terminal/output")
		Expect(run.Counts.Pass).To(Equal(24), "%+v", run.Results)
		Expect(run.Differences).To(BeEmpty())
		Expect(run.Results[0].Notes).NotTo(ContainElement(ContainSubstring("perturbed")))
		Expect(run.Results[5].Notes).To(ContainElement(ContainSubstring("perturbed: ")))
	})
})

func perturbed(e *scenarios.Engine, rounds int, ids ...string) results.Run {
	var list []*scenarios.Scenario
	for _, id := range ids {
		list = append(list, scenario(id))
	}
	run := e.RunAll(context.Background(), list, scenarios.Plan{
		Jobs: 4, Repeat: rounds,
		Perturb: func(id string, round int) scenarios.Perturbation { return sweep.Perturb(e.Seed, id, round) },
	})
	run.Differences = sweep.Differences(schedules.V1(), run, list)
	return run
}

var _ = Describe("what came out differently", func() {
	// rounds is a run of one scenario whose rounds were rendered as given.
	rounds := func(texts ...string) results.Run {
		run := results.Run{Out: GinkgoT().TempDir(), Seed: 1}
		for i, text := range texts {
			name := fmt.Sprintf("%d.golden", i+1)
			Expect(os.WriteFile(filepath.Join(run.Out, name), []byte(text), 0o644)).To(Succeed())
			run.Results = append(run.Results,
				results.Result{ID: "s", Repeat: i + 1, Verdict: results.Pass,
					Artifacts: map[string]string{"rendered": name}})
		}
		return run
	}

	It("is nothing where nothing differs", func() {
		Expect(sweep.Differences(schedules.V1(), rounds("<-- a\n", "<-- a\n"), nil)).To(BeEmpty())
	})

	It("is told once, with both texts side by side, how the round was perturbed and how often it happened", func() {
		got := sweep.Differences(schedules.V1(),
			rounds("--> a\n<-- b\n<-- c\n", "--> a\n<-- b\n<-- c\n", "--> a\n<-- c\n", "--> a\n<-- d\n<-- c\n"), nil)
		Expect(got).To(HaveLen(1))
		d := got[0]
		Expect([]any{d.ID, d.Rounds, d.Times, d.How}).
			To(Equal([]any{"s", [2]int{1, 3}, 2, sweep.Perturb(1, "s", 3).How}))
		Expect(d.Rows).To(Equal([][2]string{{"…", "…"}, {"--> a", "--> a"}, {"<-- b", ""}, {"<-- c", "<-- c"}}))
	})

	DescribeTable("is explained by the normaliser or the race that makes it",
		func(one, other, want string, of ...*sweep.Planner) {
			got := sweep.Differences(append(of, schedules.V1())[0],
				rounds(strings.ReplaceAll(one, "|", "\n")+"\n", strings.ReplaceAll(other, "|", "\n")+"\n"), nil)
			Expect(got).To(HaveLen(1))
			Expect(got[0].Explanation).To(ContainSubstring(want))
		},
		Entry("state that comes at any time", "<-- x_update 1|<-- agent_message \"a\"",
			"<-- agent_message \"a\"|<-- x_update 1", "normalize.unordered: [x_update]"),
		Entry("what is a turn's content in version 2", "<-- state_update 1|<-- agent_message \"a\"",
			"<-- agent_message \"a\"|<-- state_update 1", "a race in the agent", schedules.V2()),
		Entry("an event, whose place a front end sees", "<-- x_update 1|<-- agent_message \"a\"",
			"<-- agent_message \"a\"|<-- x_update 1", "a race in the agent", aguischedules.V1()),
		Entry("a method of its own", "<-- _vendor/x 1|<-- agent_message \"a\"",
			"<-- agent_message \"a\"|<-- _vendor/x 1", "normalize.unordered: [_vendor/x]"),
		Entry("a duration", `<-- agent_message "took 12 ms"`, `<-- agent_message "took 7 ms"`,
			`normalize.replace: [{pattern: 'took \d+', with: N}]`),
		Entry("an id", `<-- agent_message "trace 4f2a9c77d0"`, `<-- agent_message "trace b1e09a7742"`,
			`pattern: 'trace [0-9a-f]`),
		Entry("another order", "<-- tool_call call#1|<-- agent_message \"a\"",
			"<-- agent_message \"a\"|<-- tool_call call#1",
			"a race in the agent: round 1 has “<-- tool_call call#1” before “<-- agent_message \"a\"”, "+
				"round 2 after it"),
		Entry("a message more", "<-- a|<-- end_turn", "<-- a|<-- b|<-- end_turn",
			"behaves differently: 1 message is in round 2 only, the first of them “<-- b”"),
		Entry("more updates of one kind are no other place", "<-- x_update 1|<-- a",
			"<-- a|<-- x_update 1|<-- x_update 2", "behaves differently"),
	)

	It("is no text of a scenario that leaves the text open, but its verdict", func() {
		open, err := acp.V1().Parse("s", "s.txtar", []byte("golden off\nprompt 'Hello.'\nawait turn\n"))
		Expect(err).NotTo(HaveOccurred())
		run := rounds("<-- a\n", "<-- b\n")
		Expect(sweep.Differences(schedules.V1(), run, []*scenarios.Scenario{open})).To(BeEmpty())
		run.Results[1].Verdict = results.Fail
		Expect(sweep.Differences(schedules.V1(), run, []*scenarios.Scenario{open})).To(HaveLen(1))
	})

	It("names the rule that the worse round broke", func() {
		run := rounds("<-- a\n", "<-- b\n")
		run.Results[1].Verdict = results.Fail
		run.Results[1].Findings = []results.Finding{{Rule: "LATE-CONTENT", Class: results.Fail,
			Message: "a message came late"}}
		Expect(sweep.Differences(schedules.V1(), run, nil)[0].Explanation).
			To(HaveSuffix("; round 2 breaks LATE-CONTENT: a message came late."))
	})
})
