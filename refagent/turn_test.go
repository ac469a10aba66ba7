package refagent_test

import (
	"os"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("a turn", func() {
	It("streams thoughts and text, reports usage and a title, and asks the model once", func() {
		m := newModelServer(reply(reason("Hm."), say("Hel"), say("lo"), finish("stop"), usage(15)))
		e := start(launch{model: m})
		s := e.newSession(GinkgoT().TempDir())
		Expect(e.stopReason(e.prompt(s, "Greet me"))).To(Equal("end_turn"))
		Expect(e.story(0)).To(Equal([]string{"agent_thought_chunk Hm.", "agent_message_chunk Hel",
			"agent_message_chunk lo"}))
		Expect(e.update("usage_update").up("used")).To(Equal(15.0))
		Expect(e.update("session_info_update").up("title")).To(Equal("Greet me"))
		Expect(m.count()).To(Equal(1))
		Expect(m.messages(0)).To(Equal([]string{"user: Greet me"}))
	})

	It("runs an allowed tool and asks the model again", func() {
		dir := GinkgoT().TempDir()
		m := newModelServer(
			reply(callTool("c1", "write_file", map[string]any{"path": "a/b.txt", "content": "hi"}),
				finish("tool_calls")),
			answer("Done."))
		e := start(launch{model: m})
		s := e.newSession(dir)
		Expect(e.stopReason(e.prompt(s, "Write it"))).To(Equal("end_turn"))
		Expect(e.story(0)).To(Equal([]string{
			"tool_call c1 pending", "tool_call_update c1 in_progress", "tool_call_update c1 completed",
			"agent_message_chunk Done.",
		}))
		Expect(os.ReadFile(filepath.Join(dir, "a/b.txt"))).To(BeEquivalentTo("hi"))
		Expect(m.count()).To(Equal(2))
	})

	It("cancels in the same write as the prompt", func() {
		m := newModelServer(reply(hold("g")))
		e := start(launch{model: m})
		s := e.newSession(GinkgoT().TempDir())
		id, p := e.make("session/prompt", promptParams(s, "Hello"))
		e.write(line(p) + line(object{"jsonrpc": "2.0", "method": "session/cancel", "params": object{"sessionId": s}}))
		Expect(e.stopReason(id)).To(Equal("cancelled"))
	})

	It("aborts the model at once when cancelled in the middle of a reply", func() {
		m := newModelServer(reply(say("one"), hold("g")))
		e := start(launch{model: m})
		s := e.newSession(GinkgoT().TempDir())
		id := e.prompt(s, "Hello")
		<-m.gate("g").reached
		e.update("agent_message_chunk")
		e.cancel(s)
		Expect(e.stopReason(id)).To(Equal("cancelled"))
		Eventually(m.gate("g").aborted).Should(BeClosed())
	})
})
