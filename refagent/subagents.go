package refagent

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
)

var errNoChild = errors.New("no idle subagent has this id")

// lineage describes a session as the child of another. Its zero value is a
// session of the editor.
type lineage struct {
	parent    *session
	title     string
	announced bool
	children  []*session // in the order of their announcements
}

// shows reports whether the editor supports child sessions.
func (a *agent) shows() bool { return a.v2() || a.capabilities().Subagents }

// delegate gives a task to a new or a named child session and waits for its end.
// An editor that did not opt in sees only the call.
func delegate(ctx context.Context, w *work) error {
	c, err := w.child()
	if err != nil {
		return err
	}
	t := &turn{done: make(chan struct{}), message: ModelMessage{Role: roleUser, Text: w.args.str("task")}}
	t.ctx, t.stop = context.WithCancel(ctx)
	defer close(t.done)
	defer t.stop()
	c.mu.Lock()
	c.turn = t
	c.told(stateRunning, "", nil)
	c.mu.Unlock()
	w.a.passOn(w.s, c, w.id, t.message.Text)
	if w.a.shows() {
		w.content = []toolContent{{Type: "session", SessionID: c.id}}
		w.progress(w.content)
	}
	c.write(event{Type: eventPrompt, Message: &t.message})
	stop, failed := w.a.converse(c, t, t.message.Text)
	c.mu.Lock()
	if t.cancelled || t.ctx.Err() != nil {
		stop, failed = stopCancelled, nil
	}
	if failed != nil {
		stop = stopError
	}
	c.writeLocked(event{Type: eventEnd, Stop: stop})
	said := c.rec.history // a refusal removes the turn's messages
	c.mu.Unlock()
	w.result = "The subagent ended with " + stop + "."
	if stop == stopEndTurn {
		w.result = said[len(said)-1].Text
		w.a.passOn(c, w.s, w.id+":reply", w.result)
	}
	c.mu.Lock()
	c.turn, c.waiting = nil, 0
	c.told(stateIdle, stop, failed)
	c.mu.Unlock()
	if !w.a.shows() {
		w.content = textContent(w.result)
	}
	return ctx.Err()
}

// child returns the session for the call's task: the one with the given title, or
// a new one.
func (w *work) child() (*session, error) {
	s := w.s
	if title := w.args.str("child"); title != "" {
		for _, c := range locked(s, func() []*session { return slices.Clone(s.children) }) {
			if c.title == title && c.running() == nil {
				return c, nil
			}
		}
		return nil, errNoChild
	}
	id := newSessionID()
	if !s.a.shows() {
		id = s.id // its requests count as its parent's
	}
	s.mu.Lock()
	rec := newRecord()
	rec.mode, rec.thoughts = s.rec.mode, s.rec.thoughts
	c := s.addChild(id, titleOf(w.args.str("task")), rec)
	s.mu.Unlock()
	c.write(event{Type: eventSession, Cwd: c.cwd, Parent: s.id})
	u := c.announcement()
	s.write(event{Type: eventUpdate, Update: &u})
	return c, nil
}

// announcement returns the update that announces a child to the editor.
func (s *session) announcement() update {
	return update{Tag: "subagent_update", SessionID: s.id, Title: s.title, Capabilities: object{"cancel": object{}}}
}

// addChild makes a session live as the child of another. A child that is hidden
// from the editor has the id of its parent. The caller holds the lock of s.
func (s *session) addChild(id, title string, rec *record) *session {
	c := &session{a: s.a, id: id, cwd: s.cwd, roots: s.roots, mcp: s.a.connectServers(nil), rec: rec,
		always: maps.Clone(s.always), state: stateIdle, items: map[string]func(){},
		lineage: lineage{parent: s, title: title}}
	if id == s.id {
		return c
	}
	var err error
	if c.log, err = s.a.store.appendTo(id); err != nil {
		s.a.log.Printf("session %s is not being saved: %v", id, err)
	}
	s.children = append(s.children, c)
	s.a.enlist(c)
	return c
}

// replayChild shows a former child of a session, its history, and how it ended. The caller holds the lock of s.
func (s *session) replayChild(u update) {
	lines, err := s.a.store.lines(u.SessionID)
	rec := newRecord()
	rec.showing, rec.pieces = true, s.a.habits.AsSent
	if rec.fold(lines); err != nil || !s.a.shows() || rec.parent != s.id { // a child of the fork's source is not shown
		return
	}
	c := s.addChild(u.SessionID, u.Title, rec)
	c.announced = true
	s.a.tell(s, u)
	c.replay()
	c.mu.Lock()
	defer c.mu.Unlock()
	if rec.stop == "" {
		c.told("unknown", "", nil)
		return
	}
	c.told(stateIdle, rec.stop, nil)
}

// announceAgain calls answer, and then announces the children at work to an
// editor that comes back. Their own updates wait for that.
func (s *session) announceAgain(answer func()) {
	family := s.descendants()
	for _, c := range family {
		c.mu.Lock()
		defer c.mu.Unlock()
	}
	answer()
	for _, c := range family {
		if c.turn != nil {
			c.announced = false
			c.told(c.state, "", nil)
		}
	}
}

// descendants returns the children of a session and their descendants, parents
// first.
func (s *session) descendants() []*session {
	all := locked(s, func() []*session { return slices.Clone(s.children) })
	for _, c := range all {
		all = append(all, c.descendants()...)
	}
	return all
}

// told sends the child's state to the editor as an update of the parent's
// session, and in version 2 also of the child's. The first call announces the
// child. The caller holds the child's lock.
func (s *session) told(state, stop string, failed error) {
	if !s.a.shows() {
		return
	}
	more := object{}
	if stop != "" && state == stateIdle { // a child may be at work although its log has an end
		more["stopReason"] = stop
	}
	if failed != nil {
		more["error"] = turnError(failed)
	}
	snapshot := maps.Clone(more)
	snapshot["state"] = state
	u := update{Tag: "subagent_update", SessionID: s.id}
	if !s.announced {
		s.announced = true
		u = s.announcement()
	}
	m := asObject(u)
	m["state"] = snapshot
	s.parent.notify(m)
	if s.a.v2() {
		s.enter(state, more)
	}
}

// passOn shows a message from one session to another in both sessions.
func (a *agent) passOn(from, to *session, id, words string) {
	if !a.shows() {
		return
	}
	u := update{Tag: "session_message", MessageID: id, Sender: from.id, Recipient: to.id, Content: []any{text(words)}}
	sent, received := u, u
	sent.RecipientMessage, received.SenderMessage = id, id
	a.record(from, sent)
	a.record(to, received)
}

// own returns the session of a request. It refuses a child session, which takes
// no such requests.
func (a *agent) own(params json.RawMessage) (*session, *rpcError) {
	s, err := a.known(params)
	if err == nil && s.parent != nil {
		return nil, fault(codeInvalidRequest, "session %q is a subagent and takes no requests", s.id)
	}
	return s, err
}
