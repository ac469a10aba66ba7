package invariants

import (
	"strings"

	"github.com/acp-test/acp-test/wire"
)

// initEcho judges the answer to initialize.
func initEcho(w *watch) {
	before := map[*conn]int{}
	w.On(func(ev *event) {
		if ev.Ref != ev.conn.initAsked {
			return // a second initialize is undefined
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
				w.find("not-able", ev, "", []int{ev.Ref}, "initialize failed with %d %q, which says nothing of the request.",
					ev.code(), ev.err.Get("message").Str())
			default:
				w.find("error", ev, "", []int{ev.Ref},
					"initialize failed with %d %q; an agent that does not speak the offered version answers with its own.", ev.code(),
					ev.err.Get("message").Str())
			}
			return
		}
		if ev.request.offered == 1 {
			n, ok := ev.result.Get("protocolVersion").Int()
			w.judge("version", ok && n != 1, ev, "", []int{ev.Ref}, "The client offered version 1 and the agent chose %d.", n)
		}
	}, answered(initialize))
	speak := func(ev *event) {
		if ev.conn.initDone == 0 && before[ev.conn] == 0 {
			before[ev.conn] = ev.Seq
		}
	}
	w.On(speak, agentCalls()...)
}

// aboutRequest reports whether an error says that the request is not as it should be, or
// names its version. Any other one may come of the machine or of how the agent is set up.
func aboutRequest(ev *event) bool {
	code := ev.code()
	return -32700 <= code && code <= -32600 && code != -32603 || code == -32022 ||
		strings.Contains(strings.ToLower(ev.err.Get("message").Str()), "version")
}

// lowerThanAll reports whether an agent refused a version since all those that it speaks are
// newer, which version 2 makes its duty: error -32022, whose data has them.
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
