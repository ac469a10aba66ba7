package main_test

import (
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("serve without a file", func() {
	It("does what the prompt says, and judges the editor", func() {
		p := newPlace()
		got := p.run("prompt", "--yolo", strings.Join([]string{"/say Hello $HOME.", "/think Deeply.",
			"/stream one two", "/edit a.txt some words", "/read a.txt", "/run echo from-the-shell", "", "/nothing", "Words."}, "\n"),
			"--", "acp-test", "serve")
		Expect(got.code).To(Equal(0), got.out+got.err)
		Expect(got.out).To(And(ContainSubstring("Hello $HOME.\none two\n"), ContainSubstring("There is no command /nothing."),
			ContainSubstring("/edit PATH TEXT"), ContainSubstring("You said: Words.")))
		Expect(got.err).To(And(ContainSubstring("Deeply."), ContainSubstring("[tool] Read a.txt (read, completed)"),
			ContainSubstring("from-the-shell")))
		Expect(p.read("a.txt")).To(Equal("some words"))
		verdicts, err := filepath.Glob(filepath.Join(p.dir, "acp-test-out", "*-obedient.results.json"))
		Expect(err).NotTo(HaveOccurred())
		Expect(verdicts).To(HaveLen(1))
	})

	DescribeTable("ends a turn in each way", func(prompt, says string, code int) {
		p := newPlace()
		got := p.run("prompt", prompt, "--timeout", "20s", "--exit-codes", "acp", "--", "acp-test", "serve", "-q")
		Expect(got.code).To(Equal(code), got.err)
		Expect(got.out + got.err).To(ContainSubstring(says))
	},
		Entry("a refusal", "/refuse", `ended with "refusal"`, 5),
		Entry("no tokens left", "/say a\n/cut", `ended with "max_tokens"`, 3),
		Entry("an error of the model", "/fail 401", "status 401", 1),
		Entry("a pause", "/slow 10ms\n/say later", "later", 0),
		Entry("what is no time", "/slow down", `/slow takes a time, such as 2s, not "down".`, 0),
		Entry("a tool that fails", "/read none.txt", "Read none.txt (read, failed): Resource not found: ", 7),
		Entry("the end of the process", "/die", "the agent was ended by SIGKILL", 1),
	)

	It("has the exit status 1 for an editor that breaks a rule", func() {
		p := newPlace()
		got := p.with(`{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/","mcpServers":[]}}`+"\n", "serve")
		Expect(got.code).To(Equal(1), got.err)
		Expect(got.err).To(ContainSubstring("C-INIT-FIRST"))
	})

	It("holds a turn until it is cancelled", func() {
		got := newPlace().run("prompt", "/hold", "--timeout", "1s", "--", "acp-test", "serve", "-q")
		Expect(got.err).To(ContainSubstring(`it ended with "cancelled"`))
	})

	It("speaks version 2", func() {
		p := newPlace()
		got := p.run("prompt", "/say Hello.", "--protocol", "acp-v2", "--", "acp-test", "serve", "--protocol", "acp-v2")
		Expect(got.code).To(Equal(0), got.err)
		Expect(got.out).To(ContainSubstring("Hello."))
	})

	It("needs a file for a front end", func() {
		got := newPlace().run("serve", "--protocol", "ag-ui")
		Expect(got.code).To(Equal(2))
		Expect(got.err).To(ContainSubstring("is played from a FILE"))
	})
})
