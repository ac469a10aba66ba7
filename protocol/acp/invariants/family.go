package invariants

import "github.com/acp-test/acp-test/wire"

// lineage makes a session the child of another session: the agent announces the child on the session that delegates
// to it. The zero value stands for a session that a client opened.
type lineage struct {
	parent      *session
	announced   int  // Seq of the announcement
	revocable   bool // some announcement offered its cancel
	cancellable bool // the latest that said anything of it did
	state       string
	stop        string // of the latest idle state
	told        int    // Seq of the latest state
	running     int    // Seq of the latest running state
}

// child reports whether the agent announced the session and no client opened it.
func (s *session) child() bool {
	return s != nil && s.lineage.announced > 0 && s.created == 0 && s.restSeq == 0
}

// within reports whether a session is ancestor or descends from it.
func (s *session) within(ancestor *session) bool {
	for range rememberedTools { // a faulty agent may have made a circle
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

// foldChild remembers a subagent_update about a child. Only the first update decides who is the child's parent.
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

// enter remembers a child's state.
func (l *lineage) enter(state wire.Value, seq int) {
	l.state, l.told = state.Get("state").Str(), seq
	switch l.state {
	case "running":
		l.running, l.stop = seq, ""
	case "idle":
		l.stop = state.Get("stopReason").Str()
	}
}

// stopped returns where and how the work of a session was stopped for good: by a cancel that the agent has confirmed,
// or by a close, of the session or of an ancestor. It ignores stops before the latest work began. at is 0 if nothing
// stopped the work.
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
