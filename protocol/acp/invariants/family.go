package invariants

import "github.com/acp-test/acp-test/wire"

// lineage says which session is the parent of a child session. The agent announces the child in the session that
// delegates work to it. The zero value stands for a session that a client opened.
type lineage struct {
	parent      *session
	announced   int  // Seq of the announcement
	revocable   bool // some announcement offered to cancel the child
	cancellable bool // the latest announcement with capabilities offered to cancel the child
	state       string
	stop        string // stop reason of the latest idle state
	told        int    // Seq of the latest state
	running     int    // Seq of the latest running state
}

// child reports whether the agent announced the session and no client opened it.
func (s *session) child() bool {
	return s != nil && s.lineage.announced > 0 && s.created == 0 && s.restSeq == 0
}

// within reports whether the session is ancestor or one of its descendants.
func (s *session) within(ancestor *session) bool {
	for range rememberedTools { // the bound ends a circle that a faulty agent made
		if s == nil || s == ancestor {
			return s != nil
		}
		s = s.lineage.parent
	}
	return false
}

// delegates reports whether a session has had children.
func (c *conn) delegates(s *session) bool {
	for _, o := range c.sessions {
		if o != s && o.within(s) {
			return true
		}
	}
	return false
}

// foldChild stores a subagent_update about a child session. The first update fixes the child's parent.
func (w *world) foldChild(ev *event) {
	s := ev.conn.session(ev.update.Get("sessionId").Str())
	if s == nil {
		return
	}
	l := &s.lineage
	if l.announced == 0 && !ev.session.within(s) {
		l.parent, l.announced = ev.session, ev.Seq
	}
	if can := ev.update.Get("capabilities"); can.Exists() {
		l.cancellable = can.Get("cancel").Kind() == wire.Object
		l.revocable = l.revocable || l.cancellable
	}
	if state := ev.update.Get("state"); state.Exists() {
		l.enter(state, ev.Seq)
	}
}

func (l *lineage) enter(state wire.Value, seq int) {
	l.state, l.told = state.Get("state").Str(), seq
	switch l.state {
	case "running":
		l.running, l.stop = seq, ""
	case "idle":
		l.stop = state.Get("stopReason").Str()
	}
}

// stopped returns the Seq of the entry that ended the session's work for good, and a text that says how. This is a
// close, or the confirmation of a cancel, of the session or of an ancestor. An entry before the latest work of the
// session does not count. If there is no such entry, at is 0.
func (s *session) stopped() (at int, how string) {
	begun := s.lineage.running
	for ; s != nil; s = s.lineage.parent {
		t := s.last
		switch {
		case s.closed > begun:
			return s.closed, "its session was closed"
		case s.lineage.stop == "cancelled" && s.lineage.told > begun:
			return s.lineage.told, "it was cancelled"
		case t != nil && t.stop == "cancelled" && t.cancel != nil && len(s.open) == 0 && t.ended > begun:
			return t.ended, "the turn was cancelled"
		case s.cancelled > begun && !s.active:
			return s.cancelled, "the work was cancelled"
		}
		begun = max(begun, s.lineage.running)
	}
	return 0, ""
}
