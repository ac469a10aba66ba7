package invariants

import (
	"strings"

	"github.com/acp-test/acp-test/rules"
	"github.com/acp-test/acp-test/wire"
)

// greeting judges the answer to initialize of version 2.
func greeting(v *version) *rule {
	r := v.ofAgent("V2-GREETING",
		"initialize is answered with the highest version at or below the one asked for.", 2)
	higher := r.Fail("higher", "the answer has a higher version than the one asked for", "V2-INIT-001")
	data := r.Fail("no-data", "error -32022 does not say which versions there are", "V2-INIT-001")
	spoken := r.Fail("refused", "a version was refused that the error says is spoken", "V2-INIT-001")
	terminal := r.Fail("terminal-login", "a terminal login is offered to a client that cannot show one", "V2-INIT-005")
	return r.Watching(func(w *watch) {
		w.On(func(ev *event) {
			offered := ev.request.offered
			if offered < 0 {
				return
			}
			chosen, _ := ev.result.Get("protocolVersion").Int()
			w.judge(higher, chosen > offered, ev, "", []int{ev.Ref},
				"The client asked for version %d, and the agent answered with %d.", offered, chosen)
			if ev.code() == -32022 {
				supported := ev.err.Path("data.supported")
				n, ok := ev.err.Path("data.requested").Int()
				w.judge(data, !ok || n != offered || supported.Kind() != wire.Array, ev, "", []int{ev.Ref},
					"Error -32022 has no data with requested %d and supported.", offered)
				w.Saw(spoken)
				for s := range supported.Items() {
					if n, ok := s.Int(); ok && n <= offered {
						w.find(spoken, ev, "", []int{ev.Ref}, "Version %d was refused, although version %d is supported.", offered, n)
					}
				}
			}
			if ev.conn.has(rules.OfClient, v.terminalLogin) {
				return
			}
			for m := range ev.result.Get("authMethods").Items() {
				w.judge(terminal, m.Get("type").Is("terminal"), ev, "", []int{ev.Ref},
					"The agent offers the terminal login %q to a client without auth.terminal.", m.Get(v.loginID).Str())
			}
		}, answered(initialize))
	})
}

// removed judges that the agent asks for nothing that version 2 has no more.
func removed(v *version) *rule {
	r := v.ofAgent("V2-REMOVED", "The agent asks the client for nothing that version 2 does not have.", 2)
	files := r.Fail("files", "the agent asks for a file of the client", "V2-RPC-004")
	terminal := r.Fail("terminal", "the agent asks for a terminal of the client", "V2-RPC-004")
	elicitation := r.Fail("elicitation", "the agent asks for an elicitation that the client did not advertise",
		"V2-SHAPE-001")
	return r.Watching(func(w *watch) {
		w.On(func(ev *event) {
			for point, prefix := range map[int]string{files: "fs/", terminal: "terminal/"} {
				w.judge(point, strings.HasPrefix(ev.Method, prefix), ev, ev.Method, nil,
					"The agent sent %s, which version 2 does not have.", ev.Method)
			}
		}, agentRequests()...)
		w.On(func(ev *event) {
			w.judge(elicitation, !ev.conn.has(rules.OfClient, v.gate(ev.Method)), ev, "", nil,
				"The agent sent elicitation/create, but the client did not advertise elicitation.")
		}, asked(elicit))
	})
}

// errorData judges errors of version 2 about sessions.
func errorData(v *version) *rule {
	r := v.ofAgent("V2-ERROR", "An error about an unknown session names it.", 2)
	data := r.Fail("no-session", "error -32002 has no data with the session", "V2-RPC-005")
	return r.Watching(func(w *watch) {
		w.On(func(ev *event) {
			if s := ev.request.session; s != nil && ev.code() == -32002 && strings.HasPrefix(ev.Method, "session/") {
				w.judge(data, !ev.err.Path("data.sessionId").Is(s.id), ev, "", []int{ev.Ref},
					"Error -32002 has no data with sessionId %q.", s.id)
			}
		}, agentAnswers()...)
	})
}
