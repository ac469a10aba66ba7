package replay

import (
	"fmt"

	"github.com/acp-test/acp-test/protocol/acp/acpframe"
	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/wire"
)

// see learns from one entry of the live session. It runs under the lock of the
// log, in its order.
func (s *stage) see(e transcript.Entry) {
	if !e.Frame() {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.score == nil || e.Conn != s.score.conn {
		return
	}
	switch {
	case e.Source == transcript.Editor:
		if a := s.sending; a != nil && e.Kind == transcript.Request {
			s.sent[e.Seq] = a
			s.count.sent(a.entry.Session, a.entry.Method, a.entry.Seq)
			if a.lane != "" {
				s.sessions[e.Session] = a.lane // also of a session that was opened by name
			}
		}
		return
	case e.Kind == transcript.Response:
		if a := s.sent[e.Ref]; a != nil {
			s.response(a, e)
		}
	case e.Kind != transcript.Malformed:
		session := s.recorded(e.Session)
		s.learn(session, e)
		s.count.came(session, e)
		if e.Kind == transcript.Request {
			s.match(session, e)
		}
	}
	s.nudge()
}

// recorded is what the recording calls a live session.
func (s *stage) recorded(live string) string {
	if name, ok := s.sessions[live]; ok {
		return name
	}
	return live
}

// response learns the name of a new session.
func (s *stage) response(a *act, e transcript.Entry) {
	if a.entry.Method == "session/new" || a.entry.Method == "session/fork" {
		live := e.JSON().Path("result.sessionId")
		for r := range s.Recording.From(a.entry.Seq) {
			if r.Source == transcript.Agent && r.Kind == transcript.Response && r.Ref == a.entry.Seq {
				if then := r.JSON().Path("result.sessionId"); then.Kind() == wire.String && live.Kind() == wire.String {
					s.names.names[then.Str()] = live.Str()
					s.sessions[live.Str()] = then.Str()
				}
				break
			}
		}
	}
	s.count.answered(a.entry.Seq)
}

// learn binds the ids of tool calls: the n-th of a turn is the n-th recorded.
func (s *stage) learn(session string, e transcript.Entry) {
	if acpframe.Update(e) != "tool_call" {
		return
	}
	turn := s.count.turnKey(session)
	s.tools[turn]++
	if then := s.recordedTool(session, s.count.turns[session], s.tools[turn]); then != "" {
		if live := e.JSON().Path("params.update.toolCallId").Str(); live != "" {
			s.names.names[then] = live
		}
	}
}

func (s *stage) recordedTool(session string, turn, nth int) string {
	turns := 0
	for e := range s.Recording.All() {
		switch {
		case e.Session != session || e.Conn != s.score.conn:
		case e.Source == transcript.Editor && e.Kind == transcript.Request && e.Method == "session/prompt":
			turns++
		case turns == turn && acpframe.Update(e) == "tool_call":
			if nth--; nth == 0 {
				return e.JSON().Path("params.update.toolCallId").Str()
			}
		}
	}
	return ""
}

// match finds the recorded request that a live one stands for: one of the same
// session and method about the same, else the next of that method.
func (s *stage) match(session string, e transcript.Entry) {
	back := s.names.reversed()
	topic := back.text(about(e))
	var found *asked
	for _, q := range s.score.requests {
		if q.live != 0 || q.entry.Method != e.Method || s.turnOfRequest(q) != s.current(session) || q.entry.Session != session {
			continue
		}
		if q.about == topic {
			found = q
			break
		}
		if found == nil {
			found = q
		}
	}
	if found == nil {
		s.extras = append(s.extras, e.Detached())
		return
	}
	found.live = e.Seq
}

// current is the turn a session is in, as turnOfRequest names it.
func (s *stage) current(session string) string {
	if s.count.turns[session] == 0 {
		return ""
	}
	return s.count.turnKey(session)
}

// answerExtras answers requests that the recording has nothing for: as the last
// one of its kind was answered, else with a refusal.
func (s *stage) answerExtras() {
	s.mu.Lock()
	extras := s.extras
	s.extras = nil
	s.mu.Unlock()
	for _, e := range extras {
		raw := fallback(e)
		s.mu.Lock()
		topic := s.names.reversed().text(about(e))
		for _, q := range s.score.requests {
			if q.entry.Method == e.Method && q.about == topic && q.answer != nil && e.Method != "session/request_permission" {
				raw = s.names.frame(q.answer.entry.Raw, e.ID)
			}
		}
		s.played.Missed = append(s.played.Missed, fmt.Sprintf("the agent's #%d (%s %s) is not in the recording", e.Seq, e.Method, topic))
		s.mu.Unlock()
		_, _ = s.editor.Send(raw) // an agent that is gone needs no answer
	}
}
