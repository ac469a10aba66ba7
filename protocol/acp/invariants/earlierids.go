package invariants

import "github.com/acp-test/acp-test/rules"

// saidIDs has the ids of the agent's messages in a session, each with the turn of the message. The turn is nil for a
// message of a replay or of an earlier process.
type saidIDs map[string]*turn

// earlierIDs has the message ids that a client knows when a turn begins: those that the agent has sent since the last
// load, and those of the load's replay.
type earlierIDs struct {
	replayed bool // a resume may replay messages, as in version 2
	said     map[*session]saidIDs
	replays  map[*session]saidIDs // of loads that are not answered
	latest   map[string]*session  // by session id, the session whose ids are the latest
	// mixed has the ids of sessions in which a message may go on behind a prompt, or that were loaded twice at once.
	mixed map[string]bool
}

// loads handles the editor's request to load a session.
func (e *earlierIDs) loads(ev *event) {
	if ev.session != nil {
		if e.replays[ev.session] != nil {
			rules.Remember(e.mixed, rememberedSessions, ev.Session, true)
		}
		rules.Remember(e.replays, rememberedSessions, ev.session, saidIDs{})
	}
}

// resumes handles the editor's request to resume a session. Unless a resume may replay messages, those before it remain
// known.
func (e *earlierIDs) resumes(ev *event) {
	s := ev.session
	switch {
	case s == nil:
	case e.replayed:
		delete(e.said, s)
	case e.said[s] == nil && e.latest[s.id] != nil:
		ids := saidIDs{}
		for id := range e.said[e.latest[s.id]] {
			ids[id] = nil
		}
		e.keep(s, ids)
	}
}

// turnEnded notes whether another prompt may have come amid the turn's messages.
func (e *earlierIDs) turnEnded(ev *event) {
	if ev.turn != nil && !ev.turn.alone() {
		rules.Remember(e.mixed, rememberedSessions, ev.turn.session.id, true)
	}
}

// made handles the response that creates or deletes a session: earlier ids of its name are those of another session.
func (e *earlierIDs) made(ev *event) {
	delete(e.latest, ev.Session)
}

// loaded handles the response to a load. If the load succeeded, the client knows only the ids of the replay.
func (e *earlierIDs) loaded(ev *event) {
	if ids := e.replays[ev.session]; ids != nil && ev.succeeded() {
		e.keep(ev.session, ids)
	}
	delete(e.replays, ev.session)
}

func (e *earlierIDs) keep(s *session, ids saidIDs) {
	rules.Remember(e.said, rememberedSessions, s, ids)
	rules.Remember(e.latest, rememberedSessions, s.id, s)
}

// ofAgent checks, in a replay or in a turn, that a message of the agent does not have the id of a message before the
// user's last prompt. It stores the id.
func (x *messageIDs) ofAgent(ev *event, m *ids, id string) {
	s := ev.session
	if replay := x.earlier.replays[s]; replay != nil && ev.turn == nil {
		at := m.ended[id]
		x.judge("next-turn", at > 0 && at < m.user && !x.earlier.mixed[s.id], ev, "", []int{at, m.user},
			"The replay has messageId %q on messages before and after a prompt, so clients show them as one.", id)
		if m.ended == nil {
			m.ended = map[string]int{}
		}
		rules.Remember(m.ended, rememberedIDs, id, ev.Seq)
		rules.Remember(replay, rememberedIDs, id, nil)
		return
	}
	if ev.turn == nil || s.window != nil {
		return
	}
	said := x.earlier.said[s]
	before, known := said[id]
	// Else one turn may steer the other.
	apart := known && before != ev.turn && ev.turn.alone() && (before == nil || before.alone())
	x.judge("next-turn", apart, ev, "", nil,
		"The message has the messageId %q of an earlier turn's message, so clients append it there.", id)
	if known {
		return
	}
	if said == nil || len(said) >= rememberedIDs {
		said = saidIDs{}
		x.earlier.keep(s, said)
	}
	said[id] = ev.turn
}
