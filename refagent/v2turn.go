package refagent

import (
	"context"
	"errors"
	"maps"
	"slices"
)

// inserted makes a prompt part of the conversation, in version 2. It reports the state running, sends the user's
// message, and answers the prompt with the message's id. The caller holds s.mu.
func (s *session) inserted(t *turn, id string) {
	s.enter(stateRunning, nil)
	s.notify(object{"sessionUpdate": "user_message", "messageId": id, "content": t.blocks})
	s.answer(t, object{"messageId": id}, nil)
}

// sentBefore reports whether the prompt's idempotency key was used before. If so, the prompt gets the same response
// as the first prompt with that key, now or later.
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

// answer sends the response to a prompt and to its repetitions. The caller holds s.mu.
func (s *session) answer(t *turn, result any, err *rpcError) {
	delete(s.keyed, t.key)
	for _, r := range append([]*request{t.request}, t.again...) {
		s.a.conn.respond(r, result, err)
	}
	t.again = nil
}

// settled reports, in version 2, that a turn of the session has ended. The caller holds s.mu.
func (s *session) settled(stop string, err error) {
	m := object{"stopReason": stop}
	if err != nil {
		m = object{"stopReason": stopError, "error": turnError(err)}
	}
	s.waiting = 0
	s.enter(stateIdle, m)
}

// enter changes the session's state and sends it to the editor. Once the session has had background work, it adds the
// list of running work. The caller holds s.mu.
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

// notify sends an update that already has the form of version 2.
func (s *session) notify(u object) {
	s.a.conn.notify("session/update", s.id, object{"sessionId": s.id, "update": u})
}

// ask sends a request to the editor that asks the user. Meanwhile, the session's state is requires_action.
func (s *session) ask(ctx context.Context, method string, params, result any) error {
	defer s.wait()()
	err := s.a.conn.call(ctx, method, s.id, params, result)
	if errors.Is(err, errDisconnected) {
		<-ctx.Done() // the end of input cancels all turns, so this one ends as cancelled and not with an error
	}
	return err
}

// wait sets the state requires_action, which means that the work waits for the user. The returned function ends that
// state.
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

// drop rejects a waiting prompt.
func (s *session) drop(t *turn) {
	t.stop()
	s.answer(t, nil, errTakenBack())
}

// errTakenBack returns the error for a prompt that was cancelled before work on
// it began.
func errTakenBack() *rpcError {
	return fault(codeRequestCanceled, "the prompt was cancelled before it became part of the conversation")
}

// dropOne removes a waiting prompt from the queue and rejects it.
func (s *session) dropOne(t *turn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := slices.Index(s.queue, t); i >= 0 {
		s.queue = slices.Delete(slices.Clone(s.queue), i, i+1)
		s.drop(t)
	}
}

// occupied reports whether a prompt or a background command is running in the session.
func (s *session) occupied() bool {
	return locked(s, func() bool { return s.turn != nil || len(s.background) > 0 })
}
