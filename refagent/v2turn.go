package refagent

import (
	"encoding/json"
	"maps"
)

// inserted makes a prompt part of the conversation, in version 2: work begins, the message is
// shown, and the prompt is answered with its id. The caller holds the session's lock.
func (s *session) inserted(t *turn, id string) {
	s.enter(stateRunning)
	s.notify(map[string]any{"sessionUpdate": "user_message", "messageId": id, "content": t.blocks})
	s.a.conn.respond(t.request, map[string]any{"messageId": id}, nil)
}

// settled ends the foreground work of a session, in version 2. The caller holds the lock.
func (s *session) settled(stop string, err error) {
	m := map[string]any{"stopReason": stop}
	if err != nil {
		m = map[string]any{"stopReason": stopError, "error": turnError(err)}
	}
	s.waiting = 0
	s.enterWith(stateIdle, m)
}

func (s *session) enter(state string) { s.enterWith(state, nil) }

// enterWith tells a state, with the background work once there was any. The caller holds
// the lock.
func (s *session) enterWith(state string, more map[string]any) {
	s.state = state
	m := map[string]any{"sessionUpdate": "state_update", "state": state}
	if s.hadBackground {
		list := []any{}
		for _, t := range s.background {
			list = append(list, map[string]any{"type": "terminal", "terminalId": t.id})
		}
		m["background"] = list
	}
	maps.Copy(m, more)
	s.notify(m)
}

// notify sends an update of version 2 as it is.
func (s *session) notify(u map[string]any) {
	s.a.conn.notify("session/update", s.id, map[string]any{"sessionId": s.id, "update": u})
}

// wait says that the work waits for the user, until the returned function is called.
func (s *session) wait() (done func()) {
	if !s.a.v2() && s.parent == nil {
		return func() {}
	}
	change := func(by int, from, to int, state string) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.waiting += by; s.waiting == to && s.turn != nil && s.turn.ctx.Err() == nil && from != to {
			if s.parent != nil {
				s.told(state, "", nil)
				return
			}
			s.enter(state)
		}
	}
	change(1, 0, 1, stateWaiting)
	return func() { change(-1, 1, 0, stateRunning) }
}

// dropQueue refuses the prompts that wait. The caller holds the lock.
func (s *session) dropQueue() {
	for _, t := range s.queue {
		t.stop()
		s.a.conn.respond(t.request, nil, fault(codeRequestCanceled, "cancelled before it became part of the conversation"))
	}
	s.queue = nil
}

// dropOne refuses one prompt that waits, and reports whether it did.
func (s *session) dropOne(t *turn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, q := range s.queue {
		if q == t {
			s.queue = append(s.queue[:i:i], s.queue[i+1:]...)
			t.stop()
			s.a.conn.respond(t.request, nil, fault(codeRequestCanceled, "cancelled before it became part of the conversation"))
			return true
		}
	}
	return false
}

// resumeInV2 is session/resume of version 2: the history if it is asked for, then the state.
func (a *agent) resumeInV2(r *request, params json.RawMessage) *rpcError {
	var p struct {
		SessionID  *string
		ReplayFrom *struct{ Type *string }
	}
	if err := decodeParams(params, &p); err != nil {
		return err
	}
	replay := p.ReplayFrom != nil
	if replay && (p.ReplayFrom.Type == nil || *p.ReplayFrom.Type != "start") {
		return badParams("replayFrom: only type start is supported")
	}
	if p.SessionID != nil {
		if live := a.find(*p.SessionID); live != nil && live.occupied() && !replay {
			if _, err := decodeSetup(params, false); err != nil {
				return err
			}
			r.session = live.id
			live.mu.Lock()
			live.enter(live.state)
			live.mu.Unlock()
			a.conn.respond(r, live.openedInV2(""), nil)
			return nil
		}
	}
	s, err := a.reopen(r, params, replay)
	if err != nil {
		return err
	}
	for _, u := range s.rec.shown {
		a.tell(s, u)
	}
	s.rec.showing, s.rec.shown = false, nil
	a.whenReady(s, func() {
		s.mu.Lock()
		s.enter(stateIdle)
		s.mu.Unlock()
		a.conn.respond(r, s.openedInV2(""), nil)
		a.announce(s)
	})
	return nil
}

// occupied reports whether a prompt runs, or work in the background.
func (s *session) occupied() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.turn != nil || len(s.background) > 0
}
