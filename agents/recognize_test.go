package agents_test

import (
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/acp-test/acp-test/agents"
)

var _ = DescribeTable("a command is recognized",
	func(command, want string) {
		got := ""
		if p := agents.Recognize(strings.Fields(command)); p != nil {
			got = p.Name
		}
		Expect(got).To(Equal(want))
	},
	Entry("by its program", "gemini --acp", "gemini-cli"),
	Entry("by its program in a folder", "./node_modules/.bin/opencode acp", "opencode"),
	Entry("by its program behind another", "env A=b gemini --acp", "gemini-cli"),
	Entry("by its package", "npx -y @google/gemini-cli@0.1.0 --acp", "gemini-cli"),
	Entry("by its package, named by a flag", "npx --package=opencode-ai opencode acp", "opencode"),
	Entry("by its script", "node ci/agents/ts-agent/quill.mjs", "ts-agent"),
	Entry("but not by a package of the same name from elsewhere", "npx @else/gemini-cli", ""),
	Entry("but not by an argument", "my-agent gemini", ""),
	Entry("but not if nobody knows it", "./my-agent", ""),
)

var _ = It("a recognized command gets environment, HOME, login and tools, and stays ad hoc", func() {
	known, err := agents.Shipped("opencode")
	Expect(err).NotTo(HaveOccurred())
	p := agents.AdHoc([]string{"npx", "opencode-ai", "acp"}).Dressed(known.WithAuth("key"))
	Expect(p.Command).To(Equal([]string{"npx", "opencode-ai", "acp"}))
	Expect(p.Env).To(And(HaveKeyWithValue("OPENCODE_CONFIG", "$HOME/opencode.json"), HaveKey("ANTHROPIC_BASE_URL")))
	Expect(p.Home).To(HaveKey("opencode.json"))
	Expect(p.Auth).To(Equal("key"))
	Expect(p.Tools).To(HaveKey("write_file"))
	Expect(p.KnownFailures).To(BeEmpty())
	Expect(p.Source).To(Equal("command line"))
	Expect(p.Timeouts.Start).To(BeNumerically(">=", known.Timeouts.Start))
})
