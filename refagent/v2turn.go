package refagent

import (
	"context"
	"maps"
	"slices"
)

// inserted makes a prompt part of the conversation, in version 2. The work
// begins, the message is shown, and the prompt is answered with the message's id.
// The caller holds the session's lock.
func (s *session) inserted(t *turn, id string) {
	s.enter(stateRunning, nil)
	s.notify(object{"sessionUpdate": "user_message", "messageId": id, "content": t.blocks})
	s.answer(t, object{"messageId": id}, nil)
}

// sentBefore reports whether the prompt's key was used before. The prompt then
// gets the answer of the first prompt with that key.
func (s *session) sentBefore(t *turn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if id := s.rec.keys[t.key]; id != "" {
		s.a.conn.respond(t.request, object{"messageId": id}, nil)
		return true
	}
	if first := s.keyed[t.key]; first != nil {
		first.again = append(first.again, t.request)
		return true
	}
	if s.keyed == nil {
		s.keyed = map[string]*turn{}
	}
	s.keyed[t.key] = t
	return false
}

// answer answers a prompt and its repetitions. The caller holds the lock.
func (s *session) answer(t *turn, result any, err *rpcError) {
	delete(s.keyed, t.key)
	for _, r := range append([]*request{t.request}, t.again...) {
		s.a.conn.respond(r, result, err)
	}
	t.again = nil
}

// settled ends the foreground work of a session, in version 2. The caller holds the lock.
func (s *session) settled(stop string, err error) {
	m := object{"stopReason": stop}
	if err != nil {
		m = object{"stopReason": stopError, "error": turnError(err)}
	}
	s.waiting = 0
	s.enter(stateIdle, m)
}

// enter sends a state. Once there was background work, it adds the list of
// running work. The caller holds the lock.
func (s *session) enter(state string, more object) {
	s.state = state
	m := object{"sessionUpdate": "state_update", "state": state}
	if s.hadBackground {
		list := []any{}
		for _, t := range s.background {
			list = append(list, object{"type": "terminal", "terminalId": t.id})
		}
		m["background"] = list
	}
	maps.Copy(m, more)
	s.notify(m)
}

// notify sends an update that is already in the form of version 2.
func (s *session) notify(u object) {
	s.a.conn.notify("session/update", s.id, object{"sessionId": s.id, "update": u})
}

// ask asks the user through the editor. Meanwhile the work waits.
func (s *session) ask(ctx context.Context, method string, params, result any) error {
	defer s.wait()()
	return s.a.conn.call(ctx, method, s.id, params, result)
}

// wait sends the state requires_action, in which the work waits for the user.
// The returned function ends that state.
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
			s.enter(state, nil)
		}
	}
	change(1, 0, 1, stateWaiting)
	return func() { change(-1, 1, 0, stateRunning) }
}

// drop refuses a waiting prompt.
func (s *session) drop(t *turn) {
	t.stop()
	s.answer(t, nil, errTakenBack())
}

// errTakenBack returns the error for a prompt that was cancelled before work on
// it began.
func errTakenBack() *rpcError {
	return fault(codeRequestCanceled, "the prompt was cancelled before it became part of the conversation")
}

// dropOne removes one waiting prompt from the queue and refuses it.
func (s *session) dropOne(t *turn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := slices.Index(s.queue, t); i >= 0 {
		s.queue = slices.Delete(slices.Clone(s.queue), i, i+1)
		s.drop(t)
	}
}

// occupied reports whether a prompt or background work runs.
func (s *session) occupied() bool {
	return locked(s, func() bool { return s.turn != nil || len(s.background) > 0 })
}
