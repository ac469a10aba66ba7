package replay

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/acp-test/acp-test/fakellm"
	"github.com/acp-test/acp-test/internal/confined"
	"github.com/acp-test/acp-test/internal/workspace"
	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/transport"
)

// do performs an act. Most acts send a frame.
func (s *playing) do(ctx context.Context, a *act) error {
	if a.beside != "" {
		return s.beside(ctx, a)
	}
	s.mu.Lock()
	raw := a.entry.Raw
	if a.answers > 0 {
		q := s.askedBy(a)
		live := q.live
		s.mu.Unlock()
		request := s.log.At(live)
		s.write(a, request)
		raw = s.Protocol.Adapt(raw, q.entry, request)
		s.mu.Lock()
		raw = s.names.frame(raw, request.ID)
	} else {
		raw = s.names.frame(raw, "")
	}
	a.done = true
	s.mu.Unlock()
	if s.Confine != nil {
		safe, err := s.Confine(raw)
		if err != nil {
			return err
		}
		a.altered, raw = !bytes.Equal(safe, raw), safe
	}
	s.mu.Lock()
	s.sending = a
	s.mu.Unlock()
	if isPrompt(s.Protocol, a.entry) && s.Prompting != nil {
		text, _ := s.Protocol.Prompt(a.entry)
		s.Prompting(s.liveName(a.lane), s.nthPrompt(a.entry.Seq), s.liveName(text))
	}
	_, err := s.editor.Send(raw)
	s.mu.Lock()
	s.sending = nil
	s.mu.Unlock()
	return err
}

// write writes a file that the agent asked for, if the recorded editor wrote it. Later reads then return the right
// text. It writes nothing outside of the workspace.
func (s *playing) write(a *act, request transcript.Entry) {
	path, text, ok := s.Protocol.Writes(request)
	if !ok || !a.entry.JSON().Get("result").Exists() {
		return
	}
	if root, err := confined.Open(s.Work); err == nil {
		defer root.Close()
		if name, below := root.Rel(path); below {
			_ = root.WriteFile(name, []byte(text), 0o644) // ignore the error: the recorded response is sent anyway
		}
	}
}

// liveName replaces recorded ids and paths in a text with those of the live session.
func (s *playing) liveName(text string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.names.text(text)
}

// nthPrompt returns how many prompts of the editor the recording has up to and including the entry seq.
func (s *playing) nthPrompt(seq int) (n int) {
	for e := range s.Recording.Between(1, seq) {
		if e.Source == transcript.Editor && isPrompt(s.Protocol, e) {
			n++
		}
	}
	return n
}

func (s *playing) skip(a *act, why string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a.done, a.skipped = true, why
	s.miss(a)
}

func (s *playing) miss(a *act) {
	s.played.Missed = append(s.played.Missed, fmt.Sprintf("the editor's #%d (%s) was not sent: %s", a.entry.Seq,
		describe(a.entry), a.skipped))
}

func describe(e transcript.Entry) string {
	if !e.Frame() {
		return string(e.Kind)
	}
	if e.Kind == transcript.Response {
		return "answer to " + e.Method
	}
	if e.Method == "" {
		return string(e.Kind)
	}
	return e.Method
}

// beside is the kind of an act that sends no frame, such as closing the agent's input.
type beside string

const (
	release    beside = "release"     // lets the model continue
	closeStdin beside = "close-stdin" // closes the agent's input
	kill       beside = "kill"        // kills the agent
	writeFile  beside = "write"       // writes a file that the user wrote
	writeShape beside = "write-shape" // joins or splits later writes
)

// besides returns the acts of a recording that send no frame, by the Seq of their entries.
func besides(t *transcript.Transcript, gates []fakellm.RecordedGate) map[int][]*act {
	found := map[int][]*act{}
	add := func(seq int, a *act) { found[seq] = append(found[seq], a) }
	for _, g := range gates {
		if g.Released > 0 {
			add(g.Released, &act{beside: release, what: g.Name, lane: g.Session})
		}
	}
	closed := map[int]*act{}
	for e := range t.All() {
		switch {
		case e.Source == transcript.Note && e.Kind == transcript.FileWritten:
			add(e.Seq, &act{beside: writeFile})
		case e.Source == transcript.Note && e.Kind == transcript.Act:
			if shape, ok := strings.CutPrefix(e.JSON().Get("text").Str(), "write-shape "); ok {
				add(e.Seq, &act{beside: writeShape, what: shape})
			}
		case e.Source == transcript.Process && e.Kind == transcript.StdinClosed:
			closed[e.Conn] = &act{entry: e, beside: closeStdin}
		case e.Source == transcript.Process && e.Kind == transcript.Signalled && e.JSON().Get("signal").Is("SIGKILL"):
			add(e.Seq, &act{beside: kill})
		case e.Source == transcript.Agent && e.Frame() && closed[e.Conn] != nil:
			// The agent sent frames after its input was closed, so the close was an act to repeat.
			add(closed[e.Conn].entry.Seq, closed[e.Conn])
			delete(closed, e.Conn)
		}
	}
	return found
}

// held returns the tally key under which replays count how often the model waited at a gate.
func held(g fakellm.RecordedGate) string { return "the gate " + g.Name }

// taken is the timeout for the agent to read its input before the replay releases the model.
const taken = time.Second

// beside performs an act that sends no frame.
func (s *playing) beside(ctx context.Context, a *act) error {
	s.mu.Lock()
	a.done = true
	s.mu.Unlock()
	switch a.beside {
	case release:
		// The model must not continue before the agent has read the editor's earlier frames.
		wait, cancel := context.WithTimeout(ctx, taken)
		s.agent.Taken(wait)
		cancel()
		return s.Release(a.what)
	case closeStdin:
		s.agent.CloseStdin()
	case kill:
		s.agent.Kill()
		select {
		case <-s.agent.Exited():
		case <-ctx.Done():
		}
	case writeShape:
		if a.what == "flush" {
			return s.agent.Flush(ctx)
		}
		if shape, ok := transport.ParseShape(a.what); ok {
			return s.agent.WriteShape(ctx, shape)
		}
	case writeFile:
		v := a.entry.JSON()
		name := v.Get("path").Str()
		if s.Confine != nil && workspace.Git(name) {
			return fmt.Errorf("writing %s: a replay writes no Git settings, since they may name programs", name)
		}
		if err := workspace.Write(s.Work, map[string][]byte{name: []byte(v.Get("text").Str())}); err != nil {
			return fmt.Errorf("writing the file that the user changed: %w", err)
		}
	}
	return nil
}

// see records an entry of the live session. The log calls it with its lock held, in the order of the entries.
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
				s.sessions[e.Session] = a.lane // needed also for a session that was opened by its id
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

// recorded returns the recorded id of the session with the given live id. It returns a live id that is not in the
// recording unchanged.
func (s *playing) recorded(live string) string {
	if name, ok := s.sessions[live]; ok {
		return name
	}
	return live
}

// response maps the recorded ids in a response, such as the id of a new session, to the live ids.
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

// learn maps recorded ids of items such as tool calls to live ids: the n-th item of the recorded turn corresponds to
// the n-th item of the live turn.
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

// match finds the recorded request that corresponds to a live request of the agent. It prefers a request with the
// same session, method and topic. Otherwise it takes the next one of the same session and method.
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

// answerExtras answers requests that are not in the recording. It repeats the answer to the last recorded request
// with the same method and topic. Without such a request, it sends a refusal.
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
		_, _ = s.editor.Send(raw) // an agent that has exited needs no answer
	}
}
