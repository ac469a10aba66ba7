//go:build unix

package main_test

import (
	"fmt"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("a recording from a stranger", func() {
	// planted is a recording whose editor names an MCP server that leaves a file.
	planted := func() (p *place, mark string) {
		p = newPlace()
		mark = filepath.Join(p.dir, "mark")
		p.write("planted.jsonl", fmt.Sprintf(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1,"clientCapabilities":{}}}
{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1,"agentCapabilities":{}}}
{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/home/u/w","mcpServers":[{"name":"x","command":"/usr/bin/touch","args":[%q],"env":[]}]}}
{"jsonrpc":"2.0","id":1,"result":{"sessionId":"s"}}
`, mark))
		return p, mark
	}

	It("starts no program when it is replayed", func() {
		p, mark := planted()
		got := p.run("replay", "planted.jsonl", "-v", "--against", "nothing")
		Expect(got.out + got.err).To(ContainSubstring("the MCP server x of the recording was left out: a recording runs nothing; " +
			"--trust FILE gives the agent the real one"))
		Expect(mark).NotTo(BeAnExistingFile())
	})

	It("starts it when the user trusts the recording", func() {
		p, mark := planted()
		got := p.run("replay", "planted.jsonl", "-v", "--against", "nothing", "--trust", "planted.jsonl")
		Expect(got.out + got.err).To(ContainSubstring("the agent is given the real one, /usr/bin/touch " + mark))
		Expect(mark).To(BeAnExistingFile())
	})
})
