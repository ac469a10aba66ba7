package scenarios_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/acp-test/acp-test/scenarios/results"
)

var _ = Describe("the twin of an MCP server", func() {
	const script = "mcp canary stdio\nmcp canary twin\npermit allow_once\ncheck a\nprompt 'Sing.'\nawait turn end_turn\n" +
		"canary called text=la over=twin\n! canary called text=la over=stdio\ncanary called text=lo over=stdio\n" +
		"-- llm.yaml --\nreplies:\n  - - tool: mcp\n" +
		"      args: {server: canary_twin, tool: canary_sing, args: {text: la}}\n  - - tool: mcp\n" +
		"      args: {server: canary, tool: canary_sing, args: {text: lo}}\n  - - text: Sung.\n"

	It("gets its own calls", func() {
		r := run(engine(), script)
		Expect(r.Verdict).To(Equal(results.Pass), text(r))
	})
})
