package second

import (
	"slices"

	"github.com/acp-test/acp-test/rules"
	"github.com/acp-test/acp-test/transcript"
)

func ofClient(id, sentence string) *rule {
	r := newRule(id, sentence)
	r.Side = rules.OfClient
	return r
}

// clientLogin judges that a client logs in only where it can.
func clientLogin() *rule {
	r := ofClient("V2-CLIENT-LOGIN", "A client logs in and out only where the agent offers a method.")
	none := r.Fail("no-method", "auth/login or auth/logout is called, and the agent offers no method", "INIT-004")
	r.see = func(w *watch, ev *event) {
		if ev.asks("auth/login") || ev.asks("auth/logout") {
			w.Saw(none)
			if ev.conn.version == 2 && !ev.conn.methods {
				w.find(none, ev, ev.Method, nil, "The client called %s, and the agent offers no method.", ev.Method)
			}
		}
	}
	return r
}

// clientPermission judges how a client answers permission requests.
func clientPermission() *rule {
	r := ofClient("V2-CLIENT-PERMISSION", "A client chooses what was offered, and nothing for cancelled work.")
	offered := r.Fail("not-offered", "the option was not offered", "PER-001")
	late := r.Fail("after-cancel", "an option was chosen for work that was cancelled", "CAN-003")
	r.see = func(w *watch, ev *event) {
		if !ev.editor() || ev.Kind != transcript.Response || ev.asked == nil ||
			ev.asked.method != "session/request_permission" || !ev.result.Path("outcome.outcome").Is("selected") {
			return
		}
		w.Saw(offered, late)
		if id := ev.result.Path("outcome.optionId").Str(); !slices.Contains(ev.asked.options, id) {
			w.find(offered, ev, "", []int{ev.Ref}, "The client chose %q, which was not offered.", id)
		}
		if ev.asked.late {
			w.find(late, ev, "", []int{ev.Ref}, "The client chose an option after it had cancelled the work.")
		}
	}
	return r
}

// clientCancel judges that a client cancels only what it can.
func clientCancel() *rule {
	r := ofClient("V2-CLIENT-CANCEL", "A client cancels only a tool call or a terminal that can be cancelled.")
	cannot := r.Lint("over", "the item has ended, or was never announced", "CAN-004")
	r.see = func(w *watch, ev *event) {
		s := ev.session
		if s == nil || !ev.asks("tool_call/cancel") && !ev.asks("terminal/cancel") {
			return
		}
		w.Saw(cannot)
		t := s.tools[ev.params.Get("toolCallId").Str()]
		if ev.Method == "terminal/cancel" {
			t = s.terminals[ev.params.Get("terminalId").Str()]
		}
		if t == nil || t.ended > 0 {
			w.find(cannot, ev, "", nil, "The client sent %s for an item that is not there or has ended.", ev.Method)
		}
	}
	return r
}
