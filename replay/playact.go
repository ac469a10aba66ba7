package replay

import (
	"bytes"
	"context"
	"fmt"

	"github.com/acp-test/acp-test/internal/confined"
	"github.com/acp-test/acp-test/transcript"
)

// do does an act: most send a frame.
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

// write writes the file that the agent asked the editor to write, if the recorded editor
// wrote it: later readers of the file find the text. It writes nothing outside of the
// workspace.
func (s *playing) write(a *act, request transcript.Entry) {
	path, text, ok := s.Protocol.Writes(request)
	if !ok || !a.entry.JSON().Get("result").Exists() {
		return
	}
	if root, err := confined.Open(s.Work); err == nil {
		defer root.Close()
		if name, below := root.Rel(path); below {
			_ = root.WriteFile(name, []byte(text), 0o644) // the recorded editor says whether it could
		}
	}
}

// liveName is a text of the recording as it is called now.
func (s *playing) liveName(text string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.names.text(text)
}

// nthPrompt counts the prompts of the recording up to an entry.
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
