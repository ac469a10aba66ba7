package refagent

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
)

var errNoChild = errors.New("there is no such subagent at rest")

// lineage makes a session the child of another. Its zero value is a session of the editor.
type lineage struct {
	parent    *session
	title     string
	announced bool
}

// shows reports whether the editor takes part in the children of a session.
func (a *agent) shows() bool { return a.v2() || a.capabilities().Subagents }

// delegate gives a task to a child session and waits for its end: a new child, or one that is
// named. An editor that did not opt in sees the call alone.
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
	said := c.rec.history // a refusal takes back what was said
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

// child is the session that the call gives its task to.
func (w *work) child() (*session, error) {
	s := w.s
	if id := w.args.str("child"); id != "" {
		if c := w.a.find(id); c != nil && c.parent == s && c.running() == nil {
			return c, nil
		}
		return nil, errNoChild
	}
	s.mu.Lock()
	rec := newRecord()
	rec.mode, rec.thoughts = s.rec.mode, s.rec.thoughts
	c := &session{a: s.a, id: newSessionID(), cwd: s.cwd, roots: s.roots, mcp: s.a.connectServers(nil), rec: rec,
		always: maps.Clone(s.always), state: stateIdle, items: map[string]func(){},
		lineage: lineage{parent: s, title: titleOf(w.args.str("task"))}}
	s.mu.Unlock()
	if !s.a.shows() {
		c.id = s.id // what it asks, its parent asks
		return c, nil
	}
	s.a.mu.Lock()
	s.a.sessions[c.id] = c
	s.a.mu.Unlock()
	return c, nil
}

// told tells a state of the child on its parent, and in version 2 on the child itself. The
// first time announces the child. The caller holds the child's lock.
func (s *session) told(state, stop string, failed error) {
	if !s.a.shows() {
		return
	}
	more := object{}
	if stop != "" {
		more["stopReason"] = stop
	}
	if failed != nil {
		more["error"] = turnError(failed)
	}
	snapshot := maps.Clone(more)
	snapshot["state"] = state
	update := object{"sessionUpdate": "subagent_update", "sessionId": s.id, "state": snapshot}
	if !s.announced {
		s.announced = true
		update["title"], update["capabilities"] = s.title, object{"cancel": object{}}
	}
	s.parent.notify(update)
	if s.a.v2() {
		s.enter(state, more)
	}
}

// passOn shows what one session says to another, in both.
func (a *agent) passOn(from, to *session, id, words string) {
	if !a.shows() {
		return
	}
	for _, view := range []struct {
		s     *session
		other string
	}{{from, "recipientMessageId"}, {to, "senderMessageId"}} {
		view.s.notify(object{"sessionUpdate": "session_message", "messageId": id, "senderSessionId": from.id,
			"recipientSessionId": to.id, view.other: id, "content": []any{text(words)}})
	}
}

// own decodes the sessionId of a request that a child does not take.
func (a *agent) own(params json.RawMessage) (*session, *rpcError) {
	s, err := a.known(params)
	if err == nil && s.parent != nil {
		return nil, fault(codeInvalidRequest, "session %q is a subagent and takes no requests", s.id)
	}
	return s, err
}
