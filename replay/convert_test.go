package replay_test

import (
	"bytes"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/acp-test/acp-test/replay"
	"github.com/acp-test/acp-test/scenarios"
)

var _ = Describe("convert", func() {
	It("makes a scenario that says what the editor did", func() {
		text, err := replay.Convert(recorded(), "A recorded session.", []byte(story))
		Expect(err).NotTo(HaveOccurred())
		script, rest, _ := bytes.Cut(text, []byte("-- main.go --\n"))
		Expect(string(script)).To(Equal(`# A recorded session.
needs agent:loadSession
permit allow_once nth=1
session new main

check recorded
prompt main 'Rename foo to bar in main.go.'
await turn end_turn
prompt main 'Tell me a long story.'
await agent_message
cancel main
await turn cancelled
session load main
prompt main 'Go on please.'
await turn end_turn

`))
		Expect(string(rest)).To(HavePrefix("package main // foo\n"))
		s, err := scenarios.Parse("x", "x.txtar", text)
		Expect(err).NotTo(HaveOccurred())
		Expect(s.HasModel()).To(BeTrue())
		Expect(scenarios.Review(s)).To(BeEmpty())
	})

	It("says what a scenario cannot say", func() {
		t, _, err := replay.Read(strings.NewReader(`{"dir":"c2a","frame":{"jsonrpc":"2.0","id":1,"method":"session/load","params":{"sessionId":"old","cwd":"/w","mcpServers":[]}}}`))
		Expect(err).NotTo(HaveOccurred())
		_, err = replay.Convert(t, "x", nil)
		Expect(err).To(MatchError(ContainSubstring("loads a session that the recording did not open")))
	})
})
