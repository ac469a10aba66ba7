package faults

import (
	"context"
	"time"

	"github.com/acp-test/acp-test/refagent"
)

// The ways in which the faults of cancelling work.

// onStop replaces one stop reason by another.
func onStop(from, to string) func() refagent.Hooks {
	return func() refagent.Hooks {
		return refagent.Hooks{Stop: func(_, reason string, err error) (string, error) {
			if err == nil && reason == from {
				return to, nil
			}
			return reason, err
		}}
	}
}

// endEarly answers a cancelled prompt by itself, some time after the cancel,
// and only after another while lets the agent know of it. Meanwhile nothing of
// the turn is shown, and the next prompt waits until the old one is over.
func endEarly(t *tap, wait, work time.Duration, stop string) {
	dead := map[string]bool{}
	waiting := map[string][]message{}
	t.in = func(m message) bool {
		s := sessionOf(m)
		if is(m, "session/prompt") && dead[s] {
			waiting[s] = append(waiting[s], m)
			return false
		}
		id, open := t.open[s]
		if !is(m, "session/cancel") || !open || dead[s] {
			return true
		}
		t.later(wait, func() []message {
			if now, open := t.open[s]; !open || key(now) != key(id) || dead[s] {
				return nil // the turn ended by itself, or was cancelled twice
			}
			dead[s] = true
			t.Emit(respond(id, object{"stopReason": stop}))
			t.later(work, func() []message { return []message{m} })
			return nil
		})
		return false
	}
	t.out = func(f frame) bool {
		if !dead[f.Session] {
			return true
		}
		if answers(f, "session/prompt") {
			delete(dead, f.Session)
			next := waiting[f.Session]
			delete(waiting, f.Session)
			for _, m := range next {
				t.later(0, func() []message {
					t.open[sessionOf(m)] = m["id"]
					return []message{m}
				})
			}
			return false
		}
		return f.IsRequest() && f.Method != "session/request_permission"
	}
}

func loseEarlyCancels(t *tap) {
	shown := map[string]bool{}
	t.in = func(m message) bool {
		s := sessionOf(m)
		if is(m, "session/prompt") {
			shown[s] = false
		}
		return !is(m, "session/cancel") || shown[s]
	}
	t.sending = func(f frame) {
		if _, tag := f.Update(); isContent(tag) {
			shown[f.Session] = true
		}
	}
}

// slowSetup drops cancels until the turn's slow start is over.
func slowSetup() refagent.Hooks {
	t := &tap{}
	ready := map[string]bool{}
	t.in = func(m message) bool {
		s := sessionOf(m)
		if is(m, "session/prompt") {
			ready[s] = false
		}
		return !is(m, "session/cancel") || ready[s]
	}
	h := t.hooks()
	h.TurnStart = func(ctx context.Context, session string) {
		timer := time.NewTimer(300 * time.Millisecond)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
		t.mu.Lock()
		ready[session] = true
		t.mu.Unlock()
	}
	return h
}

func readBetweenTurns(t *tap) {
	var backlog []message
	t.in = func(m message) bool {
		if len(t.open) == 0 && len(backlog) == 0 {
			return true
		}
		backlog = append(backlog, m)
		return false
	}
	t.out = func(f frame) bool {
		if answers(f, "session/prompt") {
			t.later(0, func() []message {
				list := backlog
				backlog = nil
				for i, m := range list {
					if is(m, "session/prompt") {
						t.open[sessionOf(m)] = m["id"]
						backlog = append(backlog, list[i+1:]...)
						return list[:i+1]
					}
				}
				return list
			})
		}
		return true
	}
}

func poisonPermission(t *tap) {
	cancels := map[string]int{}
	poisoned := map[string]bool{}
	t.received = func(m message) {
		switch s := sessionOf(m); {
		case is(m, "session/cancel"):
			cancels[s]++
		case is(m, "session/prompt"):
			poisoned[s] = cancels[s] > 1
			cancels[s] = 0
		}
	}
	t.out = func(f frame) bool {
		if f.Method == "session/request_permission" && poisoned[f.Session] {
			t.give(cancelOf(f.Session), respond(f.Message["id"], object{"outcome": object{"outcome": "cancelled"}}))
			return false
		}
		return true
	}
}

func cancelEverything(t *tap) {
	t.received = func(m message) {
		if is(m, "session/cancel") {
			for s := range t.open {
				if s != sessionOf(m) {
					t.give(cancelOf(s))
				}
			}
		}
	}
}

func stickyCancel(t *tap) {
	sticky, applied := map[string]bool{}, map[string]bool{}
	t.sending = func(f frame) { // a short turn may have ended before the agent saw the cancel
		if applied[f.Session] && stopOf(f) == "end_turn" {
			f.Message.Object("result")["stopReason"] = "cancelled"
		}
	}
	t.in = func(m message) bool {
		s := sessionOf(m)
		switch _, open := t.open[s]; {
		case is(m, "session/cancel") && !open:
			sticky[s] = true
		case is(m, "session/prompt"):
			if applied[s] = sticky[s]; !applied[s] {
				return true
			}
			delete(sticky, s)
			t.give(m, cancelOf(s))
			t.open[s] = m["id"]
			return false
		}
		return true
	}
}

func leaveToolOpen(t *tap) {
	cancelled := map[string]bool{}
	t.received = func(m message) {
		switch {
		case is(m, "session/cancel"):
			cancelled[sessionOf(m)] = true
		case is(m, "session/prompt"):
			delete(cancelled, sessionOf(m))
		}
	}
	t.out = func(f frame) bool {
		u, tag := f.Update()
		return tag != "tool_call_update" || !cancelled[f.Session] || !final(u["status"])
	}
}

func lateText(t *tap) {
	t.out = func(f frame) bool {
		if stopOf(f) == "cancelled" {
			t.later(20*time.Millisecond, func() []message {
				t.Emit(chunk(f.Session, "One more thing."))
				return nil
			})
		}
		return true
	}
}

func refuseAfterCancel(t *tap, code int, text string) {
	gone := map[string]bool{}
	t.refusing("session/prompt", code, text, func(m message) bool { return gone[sessionOf(m)] })
	t.sending = func(f frame) {
		if stopOf(f) == "cancelled" {
			gone[f.Session] = true
		}
	}
}

func completeCancelled(t *tap) {
	asked := map[string]string{} // request id → tool call
	refused := map[string]bool{} // tool call
	t.received = func(m message) {
		if _, request := m["method"]; !request && m.Object("result", "outcome")["outcome"] == "cancelled" {
			refused[asked[key(m["id"])]] = true
		}
	}
	t.sending = func(f frame) {
		if f.Method == "session/request_permission" {
			asked[key(f.Message["id"])] = key(f.Message.Object("params", "toolCall")["toolCallId"])
		}
		if u, tag := f.Update(); tag == "tool_call_update" && refused[key(u["toolCallId"])] {
			u["status"] = "completed"
		}
	}
}

func failCancelRequest(t *tap) {
	cancelled := map[string]bool{}
	t.received = func(m message) {
		if is(m, "$/cancel_request") {
			cancelled[key(m.Object("params")["requestId"])] = true
		}
	}
	t.sending = func(f frame) {
		if answers(f, "session/prompt") && cancelled[key(f.Message["id"])] {
			delete(f.Message, "result")
			f.Message["error"] = object{"code": -32603, "message": "the request was aborted"}
		}
	}
}

func cancelNothing(t *tap) {
	t.sending = func(f frame) {
		if answers(f, "session/prompt") {
			t.Emit(notify("$/cancel_request", object{"requestId": 4711}))
		}
	}
}
