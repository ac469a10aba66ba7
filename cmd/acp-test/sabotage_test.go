package main_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("--sabotage", func() {
	It("breaks any agent, and says how often", func() {
		p := newPlace()
		got := p.run("run", "--run", "prompt-turn/text$", "--sabotage", "no-content", "--", program, "refagent")
		Expect(got.code).To(Equal(1), got.out)
		Expect(got.out).To(And(ContainSubstring("FAIL  SHAPE"),
			MatchRegexp(`sabotage no-content: \d+ messages were changed on 1 connection; it breaks MSG-001`)))

		got = p.run("check", "--sabotage", "no-stop-reason", "acp-test-out/prompt-turn/text")
		Expect(got.code).To(Equal(1), got.out)
		Expect(got.out).To(ContainSubstring("result.stopReason is missing"))
	})

	It("says that nothing came of it", func() {
		p := newPlace()
		got := p.run("run", "--run", "prompt-turn/text$", "--sabotage", "terminal-kept")
		Expect(got.code).To(Equal(2), got.out)
		Expect(got.out).To(ContainSubstring("sabotage terminal-kept was not applied: no message matches it"))
	})

	It("plays what stands in a file, and blames nobody for what is legal", func() {
		p := newPlace()
		p.write("own.txt", "shouting: the agent shouts\n  told\n"+
			"  <-- update agent_message_chunk\n    replace content.text \"$\" \"!\"\n")
		got := p.run("run", "--run", "prompt-turn/text$", "--sabotage", "own.txt")
		Expect(got.code).To(Equal(1), got.out)
		Expect(got.out).To(ContainSubstring("PROMPT-015"))

		got = p.run("run", "--run", "prompt-turn/text$", "--sabotage", "legal-meta")
		Expect(got.code).To(Equal(0), got.out)
	})
})
