package second

import (
	"strings"

	"github.com/acp-test/acp-test/wire"
)

// states judges the states of a session.
func states() *rule {
	r := newRule("V2-STATES", "Work in the foreground is told by states: running, requires_action, idle.")
	silent := r.Fail("not-running", "the agent works for a prompt and has not said that it runs", "PRM-003")
	reason := r.Warn("no-reason", "the idle state that ends work has no stop reason", "PRM-004")
	failure := r.Warn("no-error", "the stop reason error has no error beside it", "ERR-001")
	blocked := r.Warn("still-waiting", "work goes on in the state requires_action", "STA-001")
	r.see = func(w *watch, ev *event) {
		s := ev.session
		if !ev.agent() || s == nil || ev.kind == "" || s.resume != nil {
			return
		}
		if ev.kind == "state_update" {
			if !ev.u.Get("state").Is("idle") || !s.active {
				return
			}
			w.Saw(reason)
			stop := ev.u.Get("stopReason")
			if stop.Kind() != wire.String {
				w.find(reason, ev, "", []int{s.stateSeq}, "The idle state that ends the work has no stopReason.")
			}
			if stop.Is("error") {
				w.Saw(failure)
				if ev.u.Get("error").Kind() != wire.Object {
					w.find(failure, ev, "", nil, "The stop reason error has no error beside it.")
				}
			}
			return
		}
		said := strings.HasPrefix(ev.kind, "agent_message") || strings.HasPrefix(ev.kind, "agent_thought")
		if !said {
			return
		}
		if p := s.running(); p != nil && !s.reported {
			w.Saw(silent)
			if !s.active && s.stateSeq < p.answered {
				w.find(silent, ev, "", []int{p.seq}, "The agent sends %s for the prompt, and has not told the state running.",
					ev.kind)
			}
		}
		if s.state == "requires_action" && !s.reported {
			w.Saw(blocked)
			w.find(blocked, ev, "", []int{s.stateSeq}, "The agent sends %s while it says that it waits for the user.", ev.kind)
		}
	}
	return r
}

// running is the oldest prompt that is part of the conversation, and whose work is not over.
func (s *session) running() *prompt {
	for _, p := range s.prompts {
		if p.answered > 0 && !p.failed && !p.ended {
			return p
		}
	}
	return nil
}

// cancelled is the prompt that an entry answers if it was cancelled before that, else nil.
func (ev *event) cancelled() *prompt {
	if !ev.answers("session/prompt") || ev.asked == nil || ev.asked.prompt == nil || ev.asked.prompt.cancelled == 0 {
		return nil
	}
	return ev.asked.prompt
}

// cancels judges how work ends that was cancelled.
func cancels() *rule {
	r := newRule("V2-CANCEL", "Cancelled work ends with its last updates, and then idle with cancelled.")
	other := r.Inconclusive("other-reason", "the work ended with another reason, which may have crossed the cancel",
		"CAN-001")
	late := r.Fail("late-update", "an update of a tool call of the cancelled work comes after idle with cancelled",
		"CAN-001")
	queued := r.Fail("inserted", "a prompt that the cancel ended becomes part of the conversation", "CAN-002")
	code := r.Warn("queued-code", "a prompt that the cancel ended has another error than -32800", "CAN-002")
	r.see = func(w *watch, ev *event) {
		s := ev.session
		if !ev.agent() || s == nil {
			return
		}
		p := ev.cancelled()
		switch {
		case ev.kind == "state_update" && ev.u.Get("state").Is("idle") && s.cancel > 0 && s.active:
			w.Saw(other)
			if stop := ev.u.Get("stopReason").Str(); stop != "cancelled" {
				w.find(other, ev, "", []int{s.cancel}, "The work ended with %q after the cancel; the two may have crossed.", stop)
			}
		case ev.kind == "tool_call_update" && s.cancelled > 0 && s.resume == nil:
			id := ev.u.Get("toolCallId").Str()
			t := s.tools[id]
			w.Saw(late)
			if t != nil && t.first < s.cancelled && t.ended == 0 && t.turn == len(s.prompts) && !s.listed["tool call "+id] {
				w.find(late, ev, id, []int{s.cancelled}, "Tool call %q is updated after the state idle with cancelled.", id)
			}
		case p != nil && s.cancelled > p.cancelled && !p.crossed:
			w.Saw(queued, code)
			if ev.result.Exists() {
				w.find(queued, ev, "", []int{p.cancelled, ev.Ref},
					"The prompt became part of the conversation after it was cancelled and the session was idle.")
			}
		}
		if p != nil && ev.err.Exists() {
			w.Saw(code)
			got, _ := ev.err.Get("code").Int()
			if refused := got == -32600 && p.beside; got != -32800 && !refused {
				w.find(code, ev, "", []int{ev.Ref}, "The prompt that was cancelled is answered with error %d, not with -32800.",
					got)
			}
		}
	}
	return r
}
