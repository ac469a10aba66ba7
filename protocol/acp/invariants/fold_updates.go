package invariants

import "github.com/acp-test/acp-test/wire"

func (w *world) foldUpdate(ev *event) {
	s := ev.session
	if ev.topic == subagentUpdate {
		w.foldChild(ev)
	}
	if s == nil {
		return
	}
	if w.version.states {
		if ev.topic == toolUpdate {
			w.foldTool(s, ev)
		}
		return
	}
	u := ev.update
	if ev.turn != nil && ev.topic != userChunk && isContent(ev.topic) {
		ev.turn.spoke = true
	}
	switch ev.topic {
	case userChunk, agentChunk, thoughtChunk:
		if ev.topic == agentChunk {
			s.shown = ev.Seq
		}
		id, current := u.Get("messageId"), &s.messages[ev.topic-userChunk]
		if id.Kind() == wire.String && !id.Is(*current) {
			*current = id.Str()
		}
	case toolCall, toolUpdate:
		w.foldTool(s, ev)
	case modeUpdate:
		if s.modes != nil {
			if id := u.Get("currentModeId"); id.Kind() == wire.String {
				s.modes.current = id.Str()
			}
		}
	case optionsUpdate:
		if ev.hasOptions {
			s.options = ev.options
		}
	}
}

// foldTool stores an update of a tool call. In version 2 the first update of a call announces the call.
func (w *world) foldTool(s *session, ev *event) {
	u, t := ev.update, ev.tool
	if t == nil || ev.topic == toolCall && t.by == byCall && t.turn != ev.turn {
		id := u.Get("toolCallId")
		if id.Kind() != wire.String {
			return
		}
		t = &tool{id: id.Str(), turn: ev.turn, first: ev.Seq}
		if s.replaying() {
			t.turn = nil // during a replay, the turn is not known
		}
		s.note(t)
	}
	t.seq = ev.Seq
	st := w.version.readStatus(u.Get("status"))
	if w.version.states || ev.topic == toolCall {
		if st == unsaid && (ev.topic == toolCall || t.by != byCall) {
			st = pending
		}
		t.by = byCall
	}
	t.odd = t.odd || st == unknownStatus
	if st != unsaid && st != unknownStatus {
		t.again = t.again || t.status.final() && !st.final()
		t.status, t.replayed = st, s.replaying()
		if old := s.past[t.id]; old != nil && ev.topic == toolUpdate {
			old.status, old.seq = st, ev.Seq // the replay and the live session show the same call
		}
	}
	t.show(u.Get("content"))
	if input := inputOf(u); input != 0 {
		t.input = input
	}
}

// show replaces the list of the tool call's terminals by the terminals in content.
func (t *tool) show(content wire.Value) {
	if content.Kind() != wire.Array {
		return
	}
	t.terminals = t.terminals[:0]
	for item := range content.Items() {
		if item.Get("type").Is("terminal") {
			t.terminals = append(t.terminals, item.Get("terminalId").Str())
		}
	}
}

func (v *version) readStatus(of wire.Value) status {
	plain, ok := of.Plain()
	if !ok {
		return unsaid
	}
	switch string(plain) {
	case "pending":
		return pending
	case "in_progress":
		return inProgress
	case "completed":
		return completed
	case "failed":
		return failed
	case "cancelled":
		return pick(v.states, calledOff, unknownStatus)
	}
	return unknownStatus
}
