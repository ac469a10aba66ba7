package invariants

import (
	"fmt"

	"github.com/acp-test/acp-test/rules"
	"github.com/acp-test/acp-test/wire"
)

// lateContent reports content outside any turn. Version 1 forbids it only after a cancelled turn. State updates are
// always legal.
func lateContent(w *watch) {
	waiting := map[*session]*turn{} // ended turns after which content may still come
	begun := map[*turn]int{}        // Seq of the model request whose reply a gate held when the turn ended
	count := func(t *turn) {
		if t.stop == "cancelled" {
			w.Saw("after-cancelled")
		}
		w.Saw("after-turn")
	}
	w.On(func(ev *event) {
		t := ev.turn
		if t == nil {
			return
		}
		waiting[t.session] = t
		if asked := w.endedEarly(ev); asked > 0 {
			w.Saw("early-end")
			begun[t] = asked
		}
	}, answered(prompt))
	w.On(func(ev *event) {
		if t := waiting[ev.session]; t != nil {
			count(t)
			delete(waiting, ev.session)
			delete(begun, t)
		}
	}, asked(prompt))
	w.AtEnd(func(end rules.End) {
		if end.Linger > 0 {
			for _, t := range waiting {
				count(t)
			}
		}
	})
	w.On(func(ev *event) {
		s := ev.session
		if !s.quiet() {
			return
		}
		t, what := s.last, describe(ev)
		if t == nil {
			if s.untouched() && ev.topic == agentChunk {
				w.find("agent-initiated", ev, "", nil, "%s came before the first prompt of the session.", what)
			}
			return
		}
		object := fmt.Sprintf("%d %s", t.ended, what)
		because := []int{t.ended}
		switch {
		case t.stop == "cancelled":
			w.find("after-cancelled", ev, object, because, "%s came after the cancelled response that ended the turn.", what)
		case s.closed > 0 && t.close != nil:
			w.find("after-closed", ev, object, []int{t.close.seq, t.ended, s.closed},
				"%s came after the session was closed in the middle of a turn.", what)
		case begun[t] > 0 && ev.topic != userChunk:
			w.find("early-end", ev, fmt.Sprint(t.ended), []int{begun[t], t.ended},
				"The turn ended with end_turn while the model was replying; %s came after that.", what)
		case ev.tool != nil && ev.tool.turn == t || continuesMessage(ev, t):
			w.find("continues-turn", ev, object, because,
				"%s belongs to a turn that had ended with %q; clients that stopped listening lose the content.",
				what, t.stop)
		case beginsItem(ev):
			w.find("agent-initiated", ev, "", because,
				"%s is new and came while no prompt was open: the agent works without a prompt.", what)
		default:
			w.find("after-turn", ev, fmt.Sprint(t.ended), because,
				"%s came while no prompt was open, after the turn had ended with %q.", what, t.stop)
		}
	}, contentUpdates()...)
}

// endedEarly returns the Seq of the model request whose reply a gate holds when a turn ends with end_turn, or 0.
func (w *watch) endedEarly(ev *event) int {
	t := ev.turn
	held := w.state.models.heldFor(t.session, t, ev.Seq)
	if held == nil || ev.stop != "end_turn" || t.stopped() || !t.alone() || t.like {
		return 0
	}
	return held.asked
}

// quiet reports whether a session of a client has no open prompt, load or resume. It is false between a load or resume
// and the next prompt.
func (s *session) quiet() bool {
	return s != nil && !s.child() && len(s.open) == 0 && s.window == nil && s.restored == nil
}

// untouched reports whether a client created the session and has not closed it.
func (s *session) untouched() bool { return s.created > 0 && s.cwd != "" && s.closed == 0 }

// beginsItem reports whether an update announces a tool call or belongs to a message with an id.
func beginsItem(ev *event) bool {
	return ev.topic == toolCall && ev.tool == nil ||
		ev.topic <= thoughtChunk && ev.update.Get("messageId").Kind() == wire.String
}

func continuesMessage(ev *event, t *turn) bool {
	if ev.topic < userChunk || ev.topic > thoughtChunk {
		return false
	}
	current := t.messages[ev.topic-userChunk]
	return current != "" && ev.update.Get("messageId").Is(current)
}

// describe returns the kind of an update, and the id of its tool call if it has one.
func describe(ev *event) string {
	if ev.topic == toolCall || ev.topic == toolUpdate {
		return fmt.Sprintf("%s of %q", ev.tag(), clip(ev.update.Get("toolCallId").Str()))
	}
	return ev.tag()
}
