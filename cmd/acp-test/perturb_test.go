//go:build unix

package main_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/acp-test/acp-test/scenarios/results"
	"github.com/acp-test/acp-test/sweep"
)

var _ = Describe("run --perturb", func() {
	var p *place
	BeforeEach(func() {
		p = newPlace()
		p.write("s.txtar", good)
	})

	It("shows side by side what comes out differently, and why", func() {
		// The reference agent, but another one from its third start on.
		p.env = append(p.env, "STARTS="+p.dir)
		p.write("agent", "#!/bin/sh\necho >> $STARTS/starts\nif [ \"$(wc -l < $STARTS/starts)\" -gt 2 ]; then exec "+
			"acp-test refagent --fault text-twice; fi\nexec acp-test refagent\n")
		got := p.run("run", "s.txtar", "--repeat", "4", "--perturb", "-j", "1", "--pass-env", "STARTS", "--profile",
			"none", "--", p.dir+"/agent")
		run := p.results()
		Expect(run.Differences).To(HaveLen(1), got.out)
		d := run.Differences[0]
		Expect([]any{d.ID, d.Rounds, d.Times, d.How}).
			To(Equal([]any{"s", [2]int{1, 3}, 2, sweep.Perturb(1, "s", 3).How}))
		Expect(got.out).To(ContainSubstring("differs: s, round 1 (pass) and round 3 (" + d.Verdicts[1].String() +
			"): the agent behaves differently"))
		Expect(got.out).To(MatchRegexp(`(?m)^  <-- agent_message msg#1 "Hello\." +<-- agent_message msg#1 ` +
			`"Hello\."\n +\| <-- agent_message msg#2 "Hello\."$`))
		Expect(p.read("acp-test-out/report.html")).To(ContainSubstring(`"differences":[{"id":"s"`))
	})

	It("explains a run of version 2 by what is state there", func() {
		p.write("two.txtar", "# Two.\nprotocol acp-v2\nprompt 'Hello.'\nawait turn\n-- llm.yaml --\nreplies:\n"+
			"  - - text: Hello.\n")
		// The reference agent, which tells from its third start on that it runs after the next message.
		p.env = append(p.env, "STARTS="+p.dir)
		p.write("agent", "#!/bin/sh\necho >> $STARTS/starts\nif [ \"$(wc -l < $STARTS/starts)\" -gt 2 ]; then\n"+
			"  acp-test refagent --second | while IFS= read -r line; do\n"+
			"    case $line in *'\"running\"'*) held=$line; continue;; esac\n"+
			"    printf '%s\\n' \"$line\"; if [ -n \"$held\" ]; then printf '%s\\n' \"$held\"; held=; fi\n"+
			"  done\n"+
			"else exec acp-test refagent --second\nfi\n")
		got := p.run("run", "two.txtar", "--repeat", "3", "--perturb", "-j", "1", "--pass-env", "STARTS", "--profile",
			"none", "--", p.dir+"/agent")
		Expect(p.results().Differences).To(HaveLen(1), got.out)
		Expect(p.results().Differences[0].Explanation).
			To(HavePrefix("the same messages in another order, a race in the agent: round 1 has “<-- state_update"),
				got.out)
	})

	It("says nothing where nothing differs, and how each round was perturbed", func() {
		got := p.run("run", "s.txtar", "--repeat", "3", "--perturb", "--seed", "5")
		Expect(got.code).To(Equal(0), got.out)
		Expect(got.out).NotTo(ContainSubstring("differs"))
		run := p.results()
		Expect(run.Differences).To(BeEmpty())
		Expect(run.Results[1].Notes).To(ContainElement(HavePrefix("perturbed: ")))
		Expect(run.Results[0].Verdict).To(Equal(results.Pass))
	})

	DescribeTable("refuses what makes no sense with it", func(args []string, want string) {
		got := p.run(append([]string{"run", "s.txtar", "--perturb"}, args...)...)
		Expect([]any{got.code, got.out}).To(Equal([]any{2, ""}))
		Expect(got.err).To(ContainSubstring(want))
	},
		Entry("a single round", []string{}, "--perturb does not change the first round: set --repeat to 2 or more"),
		Entry("goldens to write", []string{"--repeat", "2", "--update"}, "contradicts --update"),
		Entry("no clock", []string{"--repeat", "2", "--debug"}, "--perturb and --debug contradict each other"),
	)
})
