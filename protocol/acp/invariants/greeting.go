package invariants

import (
	"strings"

	"github.com/acp-test/acp-test/rules"
	"github.com/acp-test/acp-test/wire"
)

// greeting judges the answer to initialize of version 2.
func greeting(w *watch) {
	v := w.version
	w.On(func(ev *event) {
		offered := ev.request.offered
		if offered < 0 {
			return
		}
		chosen, _ := ev.result.Get("protocolVersion").Int()
		w.judge("higher", chosen > offered, ev, "", []int{ev.Ref},
			"The client asked for version %d, and the agent answered with %d.", offered, chosen)
		if ev.code() == -32022 {
			supported := ev.err.Path("data.supported")
			n, ok := ev.err.Path("data.requested").Int()
			w.judge("no-data", !ok || n != offered || supported.Kind() != wire.Array, ev, "", []int{ev.Ref},
				"Error -32022 has no data with requested %d and supported.", offered)
			w.Saw("refused")
			for s := range supported.Items() {
				if n, ok := s.Int(); ok && n <= offered {
					w.find("refused", ev, "", []int{ev.Ref}, "Version %d was refused, although version %d is supported.", offered, n)
				}
			}
		}
		if ev.conn.has(rules.OfClient, v.terminalLogin) {
			return
		}
		for m := range ev.result.Get("authMethods").Items() {
			w.judge("terminal-login", m.Get("type").Is("terminal"), ev, "", []int{ev.Ref},
				"The agent offers the terminal login %q to a client without auth.terminal.", m.Get(v.loginID).Str())
		}
	}, answered(initialize))
}

// removed judges that the agent asks for nothing that version 2 has no more.
func removed(w *watch) {
	v := w.version
	w.On(func(ev *event) {
		for point, prefix := range map[string]string{"files": "fs/", "terminal": "terminal/"} {
			w.judge(point, strings.HasPrefix(ev.Method, prefix), ev, ev.Method, nil,
				"The agent sent %s, which version 2 does not have.", ev.Method)
		}
	}, agentRequests()...)
	w.On(func(ev *event) {
		w.judge("elicitation", !ev.conn.has(rules.OfClient, v.gate(ev.Method)), ev, "", nil,
			"The agent sent elicitation/create, but the client did not advertise elicitation.")
	}, asked(elicit))
}

// errorData judges errors of version 2 about sessions.
func errorData(w *watch) {
	w.On(func(ev *event) {
		if s := ev.request.session; s != nil && ev.code() == -32002 && strings.HasPrefix(ev.Method, "session/") {
			w.judge("no-session", !ev.err.Path("data.sessionId").Is(s.id), ev, "", []int{ev.Ref},
				"Error -32002 has no data with sessionId %q.", s.id)
		}
	}, agentAnswers()...)
}
