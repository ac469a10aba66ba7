package refagent_test

import (
	"fmt"
	"os"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/acp-test/acp-test/refagent"
)

var _ = Describe("sessions", func() {
	var state, dir string
	BeforeEach(func() { state, dir = GinkgoT().TempDir(), GinkgoT().TempDir() })
	run := func(m *modelServer) *editor { return start(launch{model: m, state: state}) }
	params := func(s string) object {
		return object{"sessionId": s, "cwd": dir, "mcpServers": []any{}}
	}
	// replay loads a session and returns what came before the answer.
	replay := func(e *editor, s string) []string {
		GinkgoHelper()
		from := len(e.all())
		id := e.request("session/load", params(s))
		e.ok(id)
		at, _ := e.await("answer", from, func(f frame) bool { return f.method() == "" && f.msg["id"] == float64(id) })
		story := e.story(from)
		Expect(e.story(at)).To(BeEmpty(), "replay after the answer")
		return story
	}

	It("are introduced by the answer to session/new, and then the commands come", func() {
		e := run(nil)
		id := e.request("session/new", object{"cwd": dir, "mcpServers": []any{}})
		e.ok(id)
		at, f := e.await("commands", 0, func(f frame) bool { return f.tag() == "available_commands_update" })
		Expect(e.all()[at-1].msg["id"]).To(Equal(float64(id)))
		Expect(f.up("availableCommands")).NotTo(BeEmpty())
	})

	It("are loaded whole by another process, and go on", func() {
		m := newModelServer(
			reply(reason("Hm."), say("I wr"), say("ite."),
				callTool("c1", "write_file", object{"path": "x", "content": "1"}), finish("tool_calls")),
			answer("Done."), answer("You said hello."))
		e := run(m)
		s := e.newSession(dir)
		e.stopReason(e.prompt(s, "Hello"))
		e.in.Close()
		Eventually(e.ended).Should(Receive(BeNil()))
		e.ended <- nil

		e = run(m)
		want := []string{"user_message_chunk Hello", "agent_thought_chunk Hm.", "agent_message_chunk I write.",
			"tool_call c1 completed", "agent_message_chunk Done."}
		Expect(replay(e, s)).To(Equal(want))
		Expect(replay(e, s)).To(Equal(want))
		Expect(e.stopReason(e.prompt(s, "What did I say?"))).To(Equal("end_turn"))
		Expect(m.messages(2)).To(Equal([]string{"user: Hello", "assistant: I write.",
			fmt.Sprintf("tool: Wrote 1 bytes to %s.", filepath.Join(dir, "x")), "assistant: Done.",
			"user: What did I say?"}))
	})

	It("are resumed without a word, with their context", func() {
		m := newModelServer(answer("Hi."), answer("Hello."))
		e := run(m)
		s := e.newSession(dir)
		e.stopReason(e.prompt(s, "Hello"))
		e = run(m)
		e.ok(e.request("session/resume", object{"sessionId": s, "cwd": dir}))
		Expect(e.story(0)).To(BeEmpty())
		e.stopReason(e.prompt(s, "Again"))
		Expect(m.messages(1)).To(HaveLen(3))
	})

	It("survive a crash in the middle of a tool and of a reply, with a torn last line", func() {
		m := newModelServer(
			reply(callTool("c1", "run_shell", object{"command": "sleep 100"}), finish("tool_calls")),
			reply(say("half a "), hold("g")), answer("Fine."))
		e := run(m)
		s := e.newSession(dir)
		e.prompt(s, "Run")
		e.await("start", 0, func(f frame) bool { return f.up("status") == "in_progress" })
		crash := func() {
			// What is on the disk at this moment is all that kill -9 leaves.
			name := filepath.Join(state, "sessions", s+".jsonl")
			data, err := os.ReadFile(name)
			Expect(err).NotTo(HaveOccurred())
			state = GinkgoT().TempDir()
			Expect(os.MkdirAll(filepath.Join(state, "sessions"), 0o700)).To(Succeed())
			Expect(os.WriteFile(filepath.Join(state, "sessions", s+".jsonl"), append(data, `{"type":"upd`...), 0o600)).
				To(Succeed())
			e = run(m)
		}
		crash()
		Expect(replay(e, s)).To(Equal([]string{"user_message_chunk Run", "tool_call c1 failed"}))
		e.prompt(s, "More")
		<-m.gate("g").reached
		e.update("agent_message_chunk")
		crash()
		want := []string{"user_message_chunk Run", "tool_call c1 failed", "user_message_chunk More",
			"agent_message_chunk half a "}
		Expect(replay(e, s)).To(Equal(want))
		Expect(e.stopReason(e.prompt(s, "And?"))).To(Equal("end_turn"))
		Expect(m.messages(2)).To(Equal([]string{"user: Run", "assistant: ", "tool: [interrupted]",
			"assistant: [interrupted]",
			"user: More", "assistant: half a ", "user: And?"}))
	})

	It("keep terminals out of a replay, but not what they printed", func() {
		m := newModelServer(reply(callTool("c1", "run_shell", object{"command": "true"}), finish("tool_calls")),
			answer("Done."))
		e := start(launch{model: m, state: state, caps: object{"terminal": true}})
		e.onRequest(func(f frame) any {
			switch f.method() {
			case "terminal/create":
				return object{"terminalId": "t1"}
			case "terminal/wait_for_exit":
				return object{"exitCode": 0}
			case "terminal/output":
				return object{"output": "printed", "truncated": false}
			case "terminal/release":
				return object{}
			}
			return e.choose("allow_once")(f)
		})
		s := e.newSession(dir)
		e.stopReason(e.prompt(s, "Run"))
		from := len(e.all())
		e.ok(e.request("session/load", params(s)))
		_, f := e.await("tool", from, func(f frame) bool { return f.tag() == "tool_call" })
		Expect(f.up("content")).To(Equal([]any{object{"type": "content",
			"content": object{"type": "text", "text": "printed"}}}))
	})

	It("refuse to be loaded while a prompt runs, and the prompt can still be cancelled", func() {
		m := newModelServer(reply(hold("g")))
		e := run(m)
		s := e.newSession(dir)
		id := e.prompt(s, "Hello")
		<-m.gate("g").reached
		Expect(e.code(e.request("session/load", params(s)))).To(Equal(-32600))
		Expect(e.code(e.request("session/resume", params(s)))).To(Equal(-32600))
		Expect(e.code(e.prompt(s, "Second"))).To(Equal(-32600))
		e.cancel(s)
		Expect(e.stopReason(id)).To(Equal("cancelled"))
	})

	It("nobody knows are an error for every method but delete", func() {
		e := run(nil)
		for _, unknown := range []string{"sess_00000000000000000000000000000000", "../../etc/passwd", ""} {
			Expect(e.code(e.request("session/load", params(unknown)))).To(Equal(-32002))
			Expect(e.code(e.request("session/resume", params(unknown)))).To(Equal(-32002))
			Expect(e.code(e.prompt(unknown, "Hello"))).To(Equal(-32002))
			Expect(e.code(e.request("session/close", params(unknown)))).To(Equal(-32002))
			Expect(e.code(e.request("session/set_mode", object{"sessionId": unknown, "modeId": "agentic"}))).
				To(Equal(-32002))
			e.ok(e.request("session/delete", params(unknown)))
		}
	})

	It("are closed with their prompt cancelled first, then silent, then loadable", func() {
		m := newModelServer(reply(say("one"), hold("g")))
		e := run(m)
		s := e.newSession(dir)
		id := e.prompt(s, "Hello")
		<-m.gate("g").reached
		e.update("agent_message_chunk")
		closing := e.request("session/close", params(s))
		e.ok(closing)
		Expect(e.stopReason(id)).To(Equal("cancelled"))
		at, _ := e.await("answer", 0, func(f frame) bool { return f.method() == "" && f.msg["id"] == float64(closing) })
		before, _ := e.await("answer", 0, func(f frame) bool { return f.method() == "" && f.msg["id"] == float64(id) })
		Expect(before).To(BeNumerically("<", at))
		Eventually(m.gate("g").aborted).Should(BeClosed())
		Expect(e.code(e.prompt(s, "Hello"))).To(Equal(-32002))
		Expect(e.all()[at+1:]).To(HaveLen(1))
		Expect(replay(e, s)).To(HaveLen(2))
	})

	It("are gone after delete, also in the middle of a prompt", func() {
		m := newModelServer(reply(say("one"), hold("g")))
		e := run(m)
		s := e.newSession(dir)
		id := e.prompt(s, "Hello")
		<-m.gate("g").reached
		e.ok(e.request("session/delete", params(s)))
		Expect(e.stopReason(id)).To(Equal("cancelled"))
		Expect(e.ok(e.request("session/list", object{}))["sessions"]).To(BeEmpty())
		e.ok(e.request("session/delete", params(s)))
	})

	It("are gone after delete with the children that they started", func() {
		e := run(newModelServer(reply(callTool("c", "delegate", map[string]any{"task": "Look."}), finish("tool_calls")),
			answer("Looked."), answer("Done.")))
		s := e.newSession(dir)
		Expect(e.stopReason(e.prompt(s, "Have it looked at."))).To(Equal("end_turn"))
		e.ok(e.request("session/delete", params(s)))
		Expect(e.ok(e.request("session/list", object{}))["sessions"]).To(BeEmpty())
	})

	It("are listed newest first, in pages, by directory", func() {
		e := run(newModelServer(answer("Hi.")))
		other := GinkgoT().TempDir()
		var made []string
		for i := range 13 {
			cwd := dir
			if i == 10 {
				cwd = other
			}
			made = append([]string{e.newSession(cwd)}, made...)
		}
		e.stopReason(e.prompt(made[0], "Name me\nplease"))
		first := e.ok(e.request("session/list", object{}))
		second := e.ok(e.request("session/list", object{"cursor": first["nextCursor"]}))
		Expect(second).NotTo(HaveKey("nextCursor"))
		var got []string
		for _, s := range append(first["sessions"].([]any), second["sessions"].([]any)...) {
			got = append(got, s.(object)["sessionId"].(string))
		}
		Expect(got).To(Equal(made))
		Expect(first["sessions"].([]any)[0].(object)["title"]).To(Equal("Name me"))
		Expect(e.ok(e.request("session/list", object{"cwd": other}))["sessions"]).To(HaveLen(1))
		Expect(e.ok(e.request("session/list", object{"cwd": "/nowhere"}))["sessions"]).To(Equal([]any{}))
		Expect(e.code(e.request("session/list", object{"cursor": "bogus"}))).To(Equal(-32602))
		Expect(e.code(e.request("session/list", object{"cwd": "relative"}))).To(Equal(-32602))
	})

	It("ask for a login first, where that is enabled", func() {
		e := start(launch{env: map[string]string{refagent.EnvAuth: "agent"}, noSetup: true})
		init := e.ok(e.request("initialize", object{"protocolVersion": 1}))
		Expect(init["authMethods"]).To(HaveLen(1))
		Expect(e.code(e.request("session/new", object{"cwd": dir, "mcpServers": []any{}}))).To(Equal(-32000))
		Expect(e.code(e.request("authenticate", object{"methodId": "other"}))).To(Equal(-32602))
		e.ok(e.request("authenticate", object{"methodId": "agent"}))
		e.newSession(dir)
		e.ok(e.request("logout", object{}))
		Expect(e.code(e.request("session/new", object{"cwd": dir, "mcpServers": []any{}}))).To(Equal(-32000))
	})
})
