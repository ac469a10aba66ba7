package scenarios_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/acp-test/acp-test/agents"
	"github.com/acp-test/acp-test/scenarios/results"
)

var _ = Describe("what an agent promises in its profile", func() {
	found := func(policy agents.Policy, scenario string, args ...string) (points []string) {
		e := engine()
		p := *e.Profile
		p.Policy = policy
		e.Profile, e.ExtraArgs = &p, args
		for _, f := range run(e, scenario).Findings {
			points = append(points, f.Rule+" "+f.Point)
		}
		return points
	}
	asks, stops := agents.Policy{Asks: []string{"write_file"}}, agents.Policy{StopsTakenBack: true}

	It("is to ask before a tool is used", func() {
		const write = `golden off
permit allow_once
check a
prompt 'Write it.'
await turn end_turn
-- llm.yaml --
replies:
  - - tool: write_file
      args: {path: $WORK/new.txt, content: "new\n"}
  - - text: Written.
`
		Expect(found(asks, write)).To(BeEmpty())
		Expect(found(agents.Policy{}, write, "--fault", "permission-never-asked")).To(BeEmpty())
		Expect(found(agents.Policy{Asks: []string{"fetch"}}, write, "--fault", "permission-never-asked")).To(BeEmpty())
		Expect(found(asks, write, "--fault", "permission-never-asked")).To(ConsistOf("ASK-PROMISED unasked"))
	})

	It("is to stop what is taken back", func() {
		const back = `golden off
session new a
session new b
prompt a 'Be stopped.' as P
await gate begin
cancel-request P
prompt b 'Take a turn meanwhile.'
await turn end_turn
check a
release begin
await response P
-- llm.yaml --
turns:
  - - - gate: begin
      - text: Said too late.
  - - - text: Meanwhile.
`
		Expect(found(stops, back)).To(BeEmpty())
		Expect(found(agents.Policy{}, back, "--liberty", "request-cancels-ignored")).To(BeEmpty())
		Expect(found(stops, back, "--liberty", "request-cancels-ignored")).To(ConsistOf("BACK-PROMISED goes-on"))
	})
})

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
	found := func(profile, line string, args ...string) (points []string) {
		e := engine()
		e.Profile.Policy.ConcurrentPrompts, e.ExtraArgs = profile, args
		for _, f := range run(e, line+busy).Findings {
			if f.Class == results.Lint {
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
		Expect(found("reject", "", "--liberty", "prompts-queued")).To(ConsistOf("BUSY-PROMISED taken"))
	})

	It("is not broken where the first turn may have ended when the second prompt was read", func() {
		e := engine()
		e.Profile.Policy.ConcurrentPrompts, e.ExtraArgs = "reject", []string{"--liberty", "prompts-queued"}
		r := run(e, `golden off
check a
prompt 'Say it.' as ONE
await model done
prompt 'And then?' as TWO
group {
  await response ONE
  await response TWO
}
-- llm.yaml --
turns:
  - - - text: First.
  - - - text: Second.
`)
		Expect(r.Findings).NotTo(ContainElement(HaveField("Rule", "BUSY-PROMISED")))
	})
})
