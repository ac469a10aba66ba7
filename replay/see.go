package replay

import (
	"cmp"
	"fmt"

	"github.com/acp-test/acp-test/fakellm"
	"github.com/acp-test/acp-test/transcript"
)

// see learns from one entry of the live session. It runs under the lock of the
// log, in its order.
func (s *playing) see(e transcript.Entry) {
	if e.Kind != transcript.Gate && !e.Frame() {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.count != nil && e.Source == transcript.Model {
		s.count.counts[held(fakellm.RecordedGate{Name: e.JSON().Get("gate").Str()})]++
		s.nudge()
		return
	}
	if s.score == nil || e.Conn != s.score.conn {
		return
	}
	switch {
	case e.Source == transcript.Editor:
		if a := s.sending; a != nil && a.altered {
			s.played.Altered = append(s.played.Altered, Altered{Recorded: a.entry.Seq, Sent: e.Seq})
		}
		if a := s.sending; a != nil && e.Kind == transcript.Request {
			s.sent[e.Seq] = a
			s.count.sent(a.entry.Session, a.entry)
			if a.lane != "" {
				s.sessions[e.Session] = a.lane // also of a session that was opened by name
			}
		}
		return
	case e.Kind == transcript.Response:
		if a := s.sent[e.Ref]; a != nil {
			s.response(a, e)
		} else {
			s.count.counts[strayKey]++
		}
	case completes(e):
		if a := s.sent[e.Ref]; a != nil {
			s.count.completed(a.entry.Seq)
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

// recorded returns the recording's name for a live session.
func (s *playing) recorded(live string) string {
	if name, ok := s.sessions[live]; ok {
		return name
	}
	return live
}

// response learns the name of a new session.
func (s *playing) response(a *act, e transcript.Entry) {
	if live := s.Protocol.Facts(e); live.Opened != "" || live.Handed != "" {
		for r := range s.Recording.From(a.entry.Seq) {
			if r.Source == transcript.Agent && r.Kind == transcript.Response && r.Ref == a.entry.Seq {
				then := s.Protocol.Facts(r)
				if then.Opened != "" && live.Opened != "" {
					s.names.names[then.Opened] = live.Opened
					s.sessions[live.Opened] = then.Opened
				}
				if then.Handed != "" && live.Handed != "" {
					s.names.names[then.Handed] = live.Handed
				}
				break
			}
		}
	}
	s.count.answered(a.entry.Seq, e)
}

// learn binds the ids of items: the n-th of a turn is the n-th recorded.
func (s *playing) learn(session string, e transcript.Entry) {
	live := s.count.opens(session, e)
	if live == "" {
		return
	}
	turn := s.count.turnKey(session)
	if then := s.score.items[turn]; len(then) > 0 {
		s.names.names[then[0]], s.score.items[turn] = live, then[1:]
	}
}

// match finds the recorded request that a live one stands for: one of the same
// session and method about the same, else the next of that method.
func (s *playing) match(session string, e transcript.Entry) {
	back := s.names.reversed()
	topic := back.text(s.Protocol.About(e))
	var found *asked
	for _, q := range s.score.requests {
		if q.live != 0 || q.entry.Method != e.Method || q.turn != s.count.current(session) ||
			q.entry.Session != session {
			continue
		}
		if q.about == topic {
			found = q
			break
		}
		found = cmp.Or(found, q)
	}
	if found == nil {
		s.extras = append(s.extras, e.Detached())
		return
	}
	found.live = e.Seq
}

// answerExtras answers requests that the recording has nothing for: as the last
// one of its kind was answered, else with a refusal.
func (s *playing) answerExtras() {
	s.mu.Lock()
	extras := s.extras
	s.extras = nil
	s.mu.Unlock()
	for _, e := range extras {
		raw, always := s.Protocol.Refuse(e)
		s.mu.Lock()
		topic := s.names.reversed().text(s.Protocol.About(e))
		for _, q := range s.score.requests {
			if q.entry.Method == e.Method && q.about == topic && q.answer != nil && !always {
				raw = s.names.frame(q.answer.entry.Raw, e.ID)
			}
		}
		s.played.Missed = append(s.played.Missed, fmt.Sprintf("the agent's #%d (%s %s) is not in the recording", e.Seq,
			e.Method, topic))
		s.mu.Unlock()
		_, _ = s.editor.Send(raw) // an agent that is gone needs no answer
	}
}
