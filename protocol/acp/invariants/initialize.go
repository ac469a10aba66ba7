package invariants

import (
	"cmp"
	"strings"

	"github.com/acp-test/acp-test/rules"
	"github.com/acp-test/acp-test/wire"
)

// initEcho checks the version, the capabilities and the error in the answer to initialize. It also checks that the
// agent sends no message before this answer.
func initEcho(w *watch) {
	before := map[*conn]int{}
	// told has, by the agent's name and version, the Seq of the first result with agentCapabilities, and of the first
	// without.
	told := map[string][2]int{}
	w.On(func(ev *event) {
		if ev.Ref != ev.conn.initAsked {
			return // the protocol does not define a second initialize
		}
		w.Saw("error", "not-able")
		if seq := before[ev.conn]; seq > 0 {
			w.Report("early-message", ev.Conn, "", "", []int{seq, ev.Seq},
				"The agent sent a message before it had answered initialize.")
		}
		w.Saw("early-message")
		if ev.err.Exists() {
			switch {
			case ev.request.offered < 0 || lowerThanAll(ev):
			case !aboutRequest(ev):
				w.find("not-able", ev, "", []int{ev.Ref},
					"initialize failed with %d %q, an error that is not about the request.",
					ev.code(), ev.err.Get("message").Str())
			default:
				w.find("error", ev, "", []int{ev.Ref},
					"initialize failed with %d %q; an agent that does not speak the offered version answers with its own.", ev.code(),
					ev.err.Get("message").Str())
			}
			return
		}
		can := ev.result.Get("agentCapabilities")
		chosen, _ := ev.result.Get("protocolVersion").Int()
		if chosen == 1 && (can.Len() > 0 || !isSet(can)) {
			by := string(ev.result.Get("agentInfo").Raw())
			results := told[by]
			one := &results[pick(can.Len() > 0, 0, 1)]
			*one = cmp.Or(*one, ev.Seq)
			rules.Remember(told, rememberedSessions, by, results)
			w.judge("capabilities", results[0] > 0 && results[1] > 0, ev, "", []int{min(results[0], results[1])},
				"The agent tells agentCapabilities in one result of initialize and none in another.")
		}
		if ev.request.offered == 1 {
			n, ok := ev.result.Get("protocolVersion").Int()
			w.judge("version", ok && n != 1, ev, "", []int{ev.Ref},
				"The client offered version 1, but the agent chose %d.", n)
		}
	}, answered(initialize))
	speak := func(ev *event) {
		if ev.conn.initDone == 0 && before[ev.conn] == 0 {
			before[ev.conn] = ev.Seq
		}
	}
	w.On(speak, agentCalls()...)
}

// aboutRequest reports whether an error blames the request or its version. Other errors may come from the machine or
// from the agent's set-up.
func aboutRequest(ev *event) bool {
	code := ev.code()
	return -32700 <= code && code <= -32600 && code != -32603 || code == -32022 ||
		strings.Contains(strings.ToLower(ev.err.Get("message").Str()), "version")
}

// lowerThanAll reports whether an agent refused a version because it supports only newer ones. In version 2, such an
// agent answers with error -32022 and lists the supported versions in the error's data.
func lowerThanAll(ev *event) bool {
	supported := ev.err.Path("data.supported")
	if ev.code() != -32022 || supported.Kind() != wire.Array {
		return false
	}
	for v := range supported.Items() {
		if n, ok := v.Int(); !ok || n <= ev.request.offered {
			return false
		}
	}
	return true
}

// greeting checks the answer to initialize in version 2: its version, its error data and its login methods.
func greeting(w *watch) {
	v := w.version
	w.On(func(ev *event) {
		offered := ev.request.offered
		if offered < 0 {
			return
		}
		chosen, _ := ev.result.Get("protocolVersion").Int()
		w.judge("higher", chosen > offered, ev, "", []int{ev.Ref},
			"The client offered version %d, but the agent answered with the higher version %d.", offered, chosen)
		if ev.code() == -32022 {
			supported := ev.err.Path("data.supported")
			n, ok := ev.err.Path("data.requested").Int()
			w.judge("no-data", !ok || n != offered || supported.Kind() != wire.Array, ev, "", []int{ev.Ref},
				"The data of error -32022 must have the members requested (%d) and supported (a list).", offered)
			w.Saw("refused")
			for s := range supported.Items() {
				if n, ok := s.Int(); ok && n <= offered {
					w.find("refused", ev, "", []int{ev.Ref},
						"The agent refused version %d, although its error lists version %d as supported.", offered, n)
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

// removed checks that the agent sends no request that version 2 has dropped.
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

// errorData checks that errors about a missing session name that session in their data, as version 2 requires.
func errorData(w *watch) {
	w.On(func(ev *event) {
		if s := ev.request.session; s != nil && ev.code() == -32002 && strings.HasPrefix(ev.Method, "session/") {
			w.judge("no-session", !ev.err.Path("data.sessionId").Is(s.id), ev, "", []int{ev.Ref},
				"The data of error -32002 lacks sessionId %q.", s.id)
		}
	}, agentAnswers()...)
}
