package second

import (
	"slices"
	"strings"

	"github.com/acp-test/acp-test/transcript"
)

// echo judges that a prompt is shown as a message.
func echo() *rule {
	r := newRule("V2-ECHO", "A prompt is shown as a message with the id of its answer.")
	missing := r.Fail("missing", "the work of a prompt is over, and its message was not shown", "PRM-002")
	twice := r.Fail("same-id", "two prompts have one message id", "PRM-002")
	ids := map[string]int{}
	r.see = func(w *watch, ev *event) {
		s := ev.session
		if s == nil || !ev.agent() {
			return
		}
		if ev.answers("session/prompt") && ev.result.Exists() {
			id := s.id + " " + ev.result.Get("messageId").Str()
			w.Saw(twice)
			if before := ids[id]; before > 0 {
				w.find(twice, ev, "", []int{before}, "The answer has the messageId of an earlier prompt.")
			}
			ids[id] = ev.Seq
		}
		if ev.kind != "state_update" || !ev.u.Get("state").Is("idle") || !s.active {
			return
		}
		for _, p := range s.prompts {
			if p.answered == 0 || p.failed || p.ended || p.id == "" {
				continue
			}
			w.Saw(missing)
			if s.messages[p.id] == nil {
				w.find(missing, ev, p.id, []int{p.seq, p.answered},
					"The work of the prompt is over, and its message %q was not shown.",
					p.id)
			}
		}
	}
	return r
}

// replays judges what comes with a resume.
func replays() *rule {
	r := newRule("V2-RESUME", "A resume replays the history if it was asked for, then tells the state, then is answered.")
	silent := r.Fail("not-silent", "a resume without replayFrom replays the history", "SES-003")
	state := r.Fail("no-state", "no state comes before the answer", "SES-003")
	order := r.Fail("history-after-state", "history comes after the state", "SES-004")
	other := r.Fail("other-ids", "a message of the history has an id that the live session did not show", "SES-004")
	gone := r.Fail("gone", "a message of the user is not in the history, under the id that it had", "SES-004")
	r.see = func(w *watch, ev *event) {
		s := ev.session
		if !ev.agent() || s == nil || s.resume == nil {
			return
		}
		history := strings.HasPrefix(ev.kind, "user_message") || strings.HasPrefix(ev.kind, "agent_") ||
			ev.kind == "tool_call_update"
		switch {
		case history && !s.resume.history && !s.active:
			w.find(silent, ev, "", []int{s.resume.seq}, "%s comes with a resume that did not ask for the history.", ev.kind)
		case history && s.resume.history && s.resume.state > 0 && !s.active:
			w.find(order, ev, "", []int{s.resume.state}, "%s of the history comes after the state.", ev.kind)
		case ev.answers("session/resume") && ev.result.Exists():
			w.Saw(state, silent, order)
			if !s.resume.told {
				w.find(state, ev, "", []int{s.resume.seq}, "No state_update comes before the answer to the resume.")
			}
			if shown, whole := s.lived[s.id]; whole && s.resume.history {
				w.Saw(other, gone)
				for _, id := range s.resume.messages {
					if !shown[id].live && !s.resume.busy {
						w.find(other, ev, id, []int{s.resume.seq}, "The history has a message %q, which the live session did not show.",
							id)
					}
				}
				for id, m := range shown {
					if m.live && m.user && !slices.Contains(s.resume.messages, id) {
						w.find(gone, ev, id, []int{m.first, s.resume.seq}, "The message %q of the user is not in the history.", id)
					}
				}
			}
		}
	}
	return r
}

// closes judges what comes from sessions that are closed.
func closes() *rule {
	r := newRule("V2-CLOSE", "A closed session has ended its work and is silent.")
	speaks := r.Fail("not-silent", "an update or a request comes after the close was answered", "SES-006", "UPD-005")
	working := r.Fail("no-idle", "the close was answered while work was active, without idle", "SES-006")
	unknown := r.Fail("unknown", "an update names a session that was never opened", "UPD-005")
	r.see = func(w *watch, ev *event) {
		s := ev.session
		if !ev.agent() || s == nil {
			return
		}
		if ev.Kind != transcript.Response && s.closed > 0 {
			w.find(speaks, ev, ev.kind, []int{s.closed}, "The agent speaks of the session after its close was answered.")
		}
		if ev.answers("session/close") && ev.result.Exists() && s.opened > 0 {
			w.Saw(speaks, working)
			if s.active {
				w.find(working, ev, "", []int{s.stateSeq}, "The close is answered while the state is %s.", s.state)
			}
		}
	}
	r.ends = func(w *watch, s *session) {
		w.Saw(unknown)
		if s.opened == 0 && !s.asked && s.stateSeq+len(s.messages)+len(s.tools) > 0 {
			w.Report(unknown, s.conn, s.id, "", []int{s.first},
				"The agent sent updates for session %q, which was never opened.", s.id)
		}
	}
	return r
}
