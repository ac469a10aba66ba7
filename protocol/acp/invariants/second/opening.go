package second

import (
	"strings"

	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/wire"
)

// greeting judges the answer to initialize.
func greeting() *rule {
	r := newRule("V2-GREETING", "initialize is answered with the highest version at or below the one asked for.")
	higher := r.Fail("higher", "the answer has a higher version than the one asked for", "INIT-001")
	data := r.Fail("no-data", "error -32022 does not say which versions there are", "INIT-001")
	spoken := r.Fail("refused", "a version was refused that the error says is spoken", "INIT-001")
	terminal := r.Fail("terminal-login", "a terminal login is offered to a client that cannot show one", "INIT-005")
	r.see = func(w *watch, ev *event) {
		if !ev.answers("initialize") || ev.asked == nil {
			return
		}
		asked := ev.asked.version
		if asked < 0 {
			return
		}
		w.Saw(higher)
		if chosen, ok := ev.result.Get("protocolVersion").Int(); ok && chosen > asked {
			w.find(higher, ev, "", []int{ev.Ref}, "The client asked for version %d, and the agent answered with %d.", asked,
				chosen)
		}
		if code, _ := ev.err.Get("code").Int(); code == -32022 {
			w.Saw(data, spoken)
			supported := ev.err.Path("data.supported")
			if n, ok := ev.err.Path("data.requested").Int(); !ok || n != asked || supported.Kind() != wire.Array {
				w.find(data, ev, "", []int{ev.Ref}, "Error -32022 has no data with requested %d and supported.", asked)
			}
			for v := range supported.Items() {
				if n, ok := v.Int(); ok && n <= asked {
					w.find(spoken, ev, "", []int{ev.Ref}, "Version %d was refused, although version %d is supported.", asked, n)
				}
			}
		}
		if !ev.asked.terminal {
			for m := range ev.result.Get("authMethods").Items() {
				w.Saw(terminal)
				if m.Get("type").Is("terminal") {
					w.find(terminal, ev, "", []int{ev.Ref},
						"The agent offers the terminal login %q to a client without auth.terminal.",
						m.Get("methodId").Str())
				}
			}
		}
	}
	return r
}

// errorData judges errors about sessions.
func errorData() *rule {
	r := newRule("V2-ERROR", "An error about an unknown session names it.")
	data := r.Fail("no-session", "error -32002 has no data with the session", "RPC-005")
	r.see = func(w *watch, ev *event) {
		if !ev.agent() || ev.Kind != transcript.Response || ev.asked == nil || ev.asked.session == nil {
			return
		}
		if code, _ := ev.err.Get("code").Int(); code != -32002 || !strings.HasPrefix(ev.Method, "session/") {
			return
		}
		w.Saw(data)
		if want := ev.asked.session.id; !ev.err.Path("data.sessionId").Is(want) {
			w.find(data, ev, "", []int{ev.Ref}, "Error -32002 has no data with sessionId %q.", want)
		}
	}
	return r
}
