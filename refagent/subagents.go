package refagent

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
)

var errNoChild = errors.New("no idle subagent has this id")

// lineage describes a session as the child of another session. The zero value means that the editor opened the
// session.
type lineage struct {
	parent    *session
	title     string
	announced bool
	children  []*session // in the order of their announcements
}

// shows reports whether the editor supports child sessions.
func (a *agent) shows() bool { return a.v2() || a.capabilities().Subagents }

// delegate gives a task to a child session, new or existing, and waits until the child has finished. If the editor
// does not support child sessions, it sees only the tool call.
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
	said := c.rec.history // copied, because a refusal removes the turn's messages
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

// child returns the session for the task: the existing child with the title in the arguments, or a new child. It
// returns an error if no idle child has the title.
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
		id = s.id // the child's requests use the parent's id
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

// addChild opens a child session of s. If the editor does not support child sessions, the child has the id of s. The
// caller holds s.mu.
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

// replayChild sends the announcement of a former child of s, the child's history, and how the child ended. The caller
// holds s.mu.
func (s *session) replayChild(u update) {
	lines, err := s.a.store.lines(u.SessionID)
	rec := newRecord()
	rec.showing, rec.pieces = true, s.a.habits.AsSent
	if rec.fold(lines); err != nil || !s.a.shows() || rec.parent != s.id { // skip children of the session that was forked
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

// announceAgain calls answer and then announces the child sessions that are still working. The editor has resumed the
// session and does not know them. The updates of these children wait meanwhile.
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

// descendants returns the session's children and all their descendants, parents before their children.
func (s *session) descendants() []*session {
	all := locked(s, func() []*session { return slices.Clone(s.children) })
	for _, c := range all {
		all = append(all, c.descendants()...)
	}
	return all
}

// told sends the state of a child session to the editor, in an update of the parent's session and, in version 2, also
// of the child's session. The first call announces the child. stop is the stop reason, and failed the error. The
// caller holds the child's mu.
func (s *session) told(state, stop string, failed error) {
	if !s.a.shows() {
		return
	}
	more := object{}
	if stop != "" && state == stateIdle { // the log of a working child may contain an earlier end
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

// passOn shows a message from one session to another session in both sessions.
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

// own returns the session in a request. It returns an error for a child session, because the editor may not send
// requests to it.
func (a *agent) own(params json.RawMessage) (*session, *rpcError) {
	s, err := a.known(params)
	if err == nil && s.parent != nil {
		return nil, fault(codeInvalidRequest, "session %q is a subagent and takes no requests", s.id)
	}
	return s, err
}
