package refagent_test

import (
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("cancelling", func() {
	write := reply(say("I write."), callTool("c1", "write_file", map[string]any{"path": "x.txt", "content": "hi"}),
		finish("tool_calls"))

	var (
		m *modelServer
		e *editor
		s string
	)
	begin := func(caps object, replies ...[]step) {
		m = newModelServer(replies...)
		e = start(launch{model: m, caps: caps, grace: 50 * time.Millisecond})
		s = e.newSession(GinkgoT().TempDir())
	}
	usable := func() {
		GinkgoHelper()
		m.then(answer("Still here."))
		Expect(e.stopReason(e.prompt(s, "And now?"))).To(Equal("end_turn"))
	}
	// nothing of the turn may follow its answer.
	silent := func(id int) {
		GinkgoHelper()
		at, _ := e.await("answer", 0, func(f frame) bool { return f.method() == "" && f.msg["id"] == float64(id) })
		Expect(e.story(at)).To(BeEmpty())
	}

	It("waits for the editor's answer to an open permission", func() {
		begin(nil, write)
		held := make(chan any, 1)
		e.onRequest(func(f frame) any { held <- f.msg["id"]; return nil })
		id := e.prompt(s, "Write")
		asked := <-held
		e.cancel(s)
		e.reply(asked, object{"outcome": object{"outcome": "cancelled"}})
		Expect(e.stopReason(id)).To(Equal("cancelled"))
		Expect(e.story(0)).To(endWith("tool_call_update c1 failed"))
		silent(id)
		usable()
	})

	It("takes a permission back that the editor never answers", func() {
		begin(nil, write)
		e.onRequest(func(frame) any { return nil })
		id := e.prompt(s, "Write")
		asked := e.asked("session/request_permission").msg["id"]
		e.cancel(s)
		Expect(e.stopReason(id)).To(Equal("cancelled"))
		Expect(e.asked("$/cancel_request").at("params", "requestId")).To(Equal(asked))
		silent(id)
		// The late answer is nobody's.
		e.reply(asked, selected("allow-once"))
		usable()
	})

	It("does not run a tool that was allowed after the cancel", func() {
		begin(nil, write)
		e.onRequest(func(frame) any { return nil })
		id := e.prompt(s, "Write")
		asked := e.asked("session/request_permission").msg["id"]
		e.write(line(object{"jsonrpc": "2.0", "method": "session/cancel", "params": object{"sessionId": s}}) +
			line(object{"jsonrpc": "2.0", "id": asked, "result": selected("allow-once")}))
		Expect(e.stopReason(id)).To(Equal("cancelled"))
		Expect(e.story(0)).NotTo(ContainElement("tool_call_update c1 completed"))
	})

	It("kills a command and its children", func() {
		begin(nil, reply(callTool("c1", "run_shell", map[string]any{"command": "sleep 100 & sleep 100"}),
			finish("tool_calls")))
		id := e.prompt(s, "Run")
		e.await("start", 0, func(f frame) bool { return f.up("status") == "in_progress" })
		e.cancel(s)
		Expect(e.stopReason(id)).To(Equal("cancelled"))
		Expect(e.story(0)).To(endWith("tool_call_update c1 failed"))
		silent(id)
		usable()
	})

	It("kills and releases a terminal of the editor", func() {
		begin(object{"terminal": true},
			reply(callTool("c1", "run_shell", map[string]any{"command": "sleep 100"}), finish("tool_calls")))
		waiting := make(chan any, 1)
		e.onRequest(func(f frame) any {
			switch f.method() {
			case "terminal/create":
				return object{"terminalId": "t1"}
			case "terminal/wait_for_exit":
				waiting <- f.msg["id"]
				return nil
			case "terminal/kill":
				e.reply(<-waiting, object{"exitCode": nil, "signal": "SIGKILL"})
				return object{}
			case "terminal/release":
				return object{}
			}
			return e.choose("allow_once")(f)
		})
		id := e.prompt(s, "Run")
		e.asked("terminal/wait_for_exit")
		e.cancel(s)
		Expect(e.stopReason(id)).To(Equal("cancelled"))
		e.asked("terminal/release")
		silent(id)
	})

	It("releases a terminal that the editor creates when the agent has given up", func() {
		begin(object{"terminal": true},
			reply(callTool("c1", "run_shell", map[string]any{"command": "true"}), finish("tool_calls")))
		creating := make(chan any, 1)
		e.onRequest(func(f frame) any {
			switch f.method() {
			case "terminal/create":
				creating <- f.msg["id"]
				return nil
			case "terminal/release":
				return object{}
			}
			return e.choose("allow_once")(f)
		})
		id := e.prompt(s, "Run")
		e.asked("terminal/create")
		e.cancel(s)
		Expect(e.stopReason(id)).To(Equal("cancelled"))
		e.reply(<-creating, object{"terminalId": "t1"})
		Expect(e.asked("terminal/release").at("params", "terminalId")).To(Equal("t1"))
	})

	It("is a no-op while idle, twice, and for sessions nobody knows", func() {
		begin(nil)
		e.cancel(s)
		e.cancel(s)
		e.cancel("sess_unknown")
		usable()
		e.cancel(s)
		usable()
	})

	It("answers once when cancelled twice, and goes on at once", func() {
		begin(nil, reply(hold("g")))
		id := e.prompt(s, "Hello")
		<-m.gate("g").reached
		e.cancel(s)
		e.cancel(s)
		Expect(e.stopReason(id)).To(Equal("cancelled"))
		usable()
		n := 0
		for _, f := range e.all() {
			if f.method() == "" && f.msg["id"] == float64(id) {
				n++
			}
		}
		Expect(n).To(Equal(1))
	})

	It("concerns only the session it names", func() {
		begin(nil)
		m.byPrompt = map[string][][]step{"one": {reply(hold("a"))},
			"two": {reply(hold("b"), say("Fine."), finish("stop"))}}
		other := e.newSession(GinkgoT().TempDir())
		first, second := e.prompt(s, "one"), e.prompt(other, "two")
		<-m.gate("a").reached
		<-m.gate("b").reached
		e.cancel(s)
		Expect(e.stopReason(first)).To(Equal("cancelled"))
		close(m.gate("b").release)
		Expect(e.stopReason(second)).To(Equal("end_turn"))
	})

	It("works through $/cancel_request too, with the id's type respected", func() {
		begin(nil, reply(hold("g")))
		id := e.prompt(s, "Hello")
		<-m.gate("g").reached
		e.notify("$/cancel_request", object{"requestId": fmt.Sprint(id)})
		e.notify("$/cancel_request", object{"requestId": 999})
		e.notify("$/cancel_request", object{"requestId": id})
		Expect(e.stopReason(id)).To(Equal("cancelled"))
		usable()
	})

	It("leaves no context that breaks the next prompt", func() {
		begin(nil, reply(callTool("c1", "run_shell", map[string]any{"command": "sleep 100"}), finish("tool_calls")))
		id := e.prompt(s, "First")
		e.await("start", 0, func(f frame) bool { return f.up("status") == "in_progress" })
		e.cancel(s)
		Expect(e.stopReason(id)).To(Equal("cancelled"))
		usable()
		Expect(m.messages(1)).To(HaveExactElements(
			"user: First", "assistant: ", HavePrefix("tool: Error: cancelled"), "assistant: [interrupted]",
			"user: And now?"))
	})
})
