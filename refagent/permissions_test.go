package refagent_test

import (
	"os"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

func writeCall(id, path, content string) step {
	return callTool(id, "write_file", map[string]any{"path": path, "content": content})
}

var _ = Describe("permission", func() {
	var (
		m   *modelServer
		e   *editor
		dir string
		s   string
	)
	begin := func(replies ...[]step) {
		dir = GinkgoT().TempDir()
		m = newModelServer(replies...)
		e = start(launch{model: m})
		s = e.newSession(dir)
	}
	asked := func() (n int) {
		for _, f := range e.all() {
			if f.method() == "session/request_permission" {
				n++
			}
		}
		return n
	}
	tools := func(steps ...step) []step { return reply(append(steps, finish("tool_calls"))...) }

	It("is asked while the tool is pending, with four kinds and what will change", func() {
		begin(tools(writeCall("c1", "x.txt", "new")), answer("Done."))
		Expect(os.WriteFile(filepath.Join(dir, "x.txt"), []byte("old"), 0o600)).To(Succeed())
		e.stopReason(e.prompt(s, "Write"))
		f := e.asked("session/request_permission")
		var kinds []any
		for _, o := range f.at("params", "options").([]any) {
			kinds = append(kinds, o.(object)["kind"])
		}
		Expect(kinds).To(Equal([]any{"allow_once", "allow_always", "reject_once", "reject_always"}))
		Expect(f.at("params", "toolCall", "toolCallId")).To(Equal("c1"))
		Expect(f.at("params", "toolCall", "content").([]any)[0]).To(Equal(object{
			"type": "diff", "path": filepath.Join(dir, "x.txt"), "oldText": "old", "newText": "new"}))
	})

	It("remembers always for this session and this tool only", func() {
		begin(tools(writeCall("c1", "a", "1")), tools(writeCall("c1", "b", "2")), answer("Done."),
			tools(writeCall("c1", "c", "3")), answer("Done."))
		e.onRequest(e.choose("allow_always"))
		e.stopReason(e.prompt(s, "One"))
		Expect(asked()).To(Equal(1))
		Expect(e.story(0)).To(ContainElements("tool_call c1 pending", "tool_call c1-2 pending"))
		other := e.newSession(dir)
		e.stopReason(e.prompt(other, "Two"))
		Expect(asked()).To(Equal(2))
	})

	DescribeTable("anything but a clear yes means no",
		func(answerWith any) {
			begin(tools(writeCall("c1", "x.txt", "no")), answer("I see."))
			e.onRequest(func(frame) any { return answerWith })
			Expect(e.stopReason(e.prompt(s, "Write"))).To(Equal("end_turn"))
			Expect(filepath.Join(dir, "x.txt")).NotTo(BeAnExistingFile())
			Expect(e.story(0)).To(Equal([]string{"tool_call c1 pending", "tool_call_update c1 failed",
				"agent_message_chunk I see."}))
			Expect(m.messages(1)).To(ContainElement(HavePrefix("tool: Error: ")))
		},
		Entry("reject once", selected("reject-once")),
		Entry("an option nobody offered", selected("allow_once")),
		Entry("a malformed outcome", object{"outcome": object{"outcome": "maybe"}}),
		Entry("an empty result", object{}),
		Entry("an error", rpcFailure{-32603, "broken"}),
	)

	It("does not run the later tools of a reply when the request is dismissed", func() {
		begin(reply(callTools(toolCall{"c1", "write_file", object{"path": "x", "content": ""}},
			toolCall{"c2", "write_file", object{"path": "y", "content": ""}}), finish("tool_calls")), answer("I see."))
		e.onRequest(func(frame) any { return object{"outcome": object{"outcome": "cancelled"}} })
		Expect(e.stopReason(e.prompt(s, "Write"))).To(Equal("end_turn"))
		Expect(asked()).To(Equal(1))
		Expect(e.story(0)).To(ContainElement("tool_call_update c2 failed"))
	})

	It("rejecting always is remembered too", func() {
		begin(tools(writeCall("c1", "a", "1")), tools(writeCall("c2", "b", "2")), answer("I see."))
		e.onRequest(e.choose("reject_always"))
		e.stopReason(e.prompt(s, "Write"))
		Expect(asked()).To(Equal(1))
		Expect(e.story(0)).To(ContainElements("tool_call_update c1 failed", "tool_call_update c2 failed"))
	})
})

var _ = Describe("modes", func() {
	var (
		m *modelServer
		e *editor
		s string
	)
	begin := func(caps object, replies ...[]step) object {
		m = newModelServer(replies...)
		e = start(launch{model: m, caps: caps})
		r := e.ok(e.request("session/new", object{"cwd": GinkgoT().TempDir(), "mcpServers": []any{}}))
		s = r["sessionId"].(string)
		return r
	}
	set := func(mode string) {
		e.ok(e.request("session/set_mode", object{"sessionId": s, "modeId": mode}))
	}

	It("are offered as modes and as an option that agree", func() {
		r := begin(nil)
		Expect(r["modes"].(object)["currentModeId"]).To(Equal("agentic"))
		Expect(r["configOptions"]).To(HaveLen(1))
		set("planning")
		Expect(e.update("config_option_update").up("configOptions").([]any)[0].(object)["currentValue"]).
			To(Equal("planning"))
		res := e.ok(e.request("session/set_config_option",
			object{"sessionId": s, "configId": "mode", "value": "readonly"}))
		Expect(res["configOptions"].([]any)[0].(object)["currentValue"]).To(Equal("readonly"))
		Expect(e.update("current_mode_update").up("currentModeId")).To(Equal("readonly"))
		Expect(e.code(e.request("session/set_mode", object{"sessionId": s, "modeId": "yolo"}))).To(Equal(-32602))
		Expect(e.code(e.request("session/set_config_option",
			object{"sessionId": s, "configId": "mode", "value": "yolo"}))).To(Equal(-32602))
		Expect(e.code(e.request("session/set_config_option",
			object{"sessionId": s, "configId": "show_thoughts", "type": "boolean", "value": false}))).To(Equal(-32602))
	})

	It("offer the boolean option to editors that know booleans, and it works", func() {
		r := begin(object{"session": object{"configOptions": object{"boolean": object{}}}},
			reply(reason("Hm."), say("Hi."), finish("stop")))
		Expect(r["configOptions"]).To(HaveLen(2))
		e.ok(e.request("session/set_config_option",
			object{"sessionId": s, "configId": "show_thoughts", "type": "boolean", "value": false}))
		e.stopReason(e.prompt(s, "Hello"))
		Expect(e.story(0)).To(Equal([]string{"agent_message_chunk Hi."}))
	})

	It("readonly refuses what changes anything and allows the rest", func() {
		begin(nil, reply(writeCall("c1", "x", "1"), finish("tool_calls")),
			reply(callTool("c2", "search", object{"pattern": "x"}), finish("tool_calls")), answer("I see."))
		set("readonly")
		e.stopReason(e.prompt(s, "Write"))
		Expect(e.story(0)).To(Equal([]string{"tool_call c1 pending", "tool_call_update c1 failed",
			"tool_call c2 pending", "tool_call_update c2 in_progress", "tool_call_update c2 completed",
			"agent_message_chunk I see."}))
	})

	It("planning writes a plan, which a later turn carries out", func() {
		begin(nil, reply(writeCall("c1", "x", "1"), finish("tool_calls")), answer("Planned."),
			reply(writeCall("c1", "x", "1"), finish("tool_calls")), answer("Done."))
		set("planning")
		e.stopReason(e.prompt(s, "Plan it"))
		Expect(e.story(0)).To(Equal([]string{"plan 1", "agent_message_chunk Planned."}))
		Expect(e.update("plan").up("entries")).
			To(Equal([]any{object{"content": "Write x", "priority": "medium", "status": "pending"}}))
		set("agentic")
		from := len(e.all())
		e.stopReason(e.prompt(s, "Do it"))
		Expect(e.story(from)).To(Equal([]string{"tool_call c1 pending", "tool_call_update c1 in_progress", "plan 1",
			"tool_call_update c1 completed", "plan 1", "agent_message_chunk Done."}))
	})

	It("interactive asks before every tool, and the model may switch modes", func() {
		begin(nil, reply(callTool("c1", "switch_mode", object{"mode": "interactive"}), finish("tool_calls")),
			reply(callTool("c2", "think", object{"thought": "hm"}), finish("tool_calls")), answer("Done."))
		e.stopReason(e.prompt(s, "Go"))
		Expect(e.update("current_mode_update").up("currentModeId")).To(Equal("interactive"))
		e.await("permission to think", 0, func(f frame) bool {
			return f.method() == "session/request_permission" && f.at("params", "toolCall", "kind") == "think"
		})
	})

	It("can be set in the middle of a turn", func() {
		begin(nil, reply(hold("g"), writeCall("c1", "x", "1"), finish("tool_calls")), answer("I see."))
		id := e.prompt(s, "Write")
		<-m.gate("g").reached
		set("readonly")
		close(m.gate("g").release)
		e.stopReason(id)
		Expect(e.story(0)).To(ContainElement("tool_call_update c1 failed"))
	})
})
