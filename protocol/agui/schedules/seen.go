package schedules

import (
	"bytes"
	"path"
	"slices"
	"strings"

	"github.com/acp-test/acp-test/fakellm"
	"github.com/acp-test/acp-test/protocol/agui/aguiframe"
	"github.com/acp-test/acp-test/protocol/agui/endpoint"
	"github.com/acp-test/acp-test/scenarios/script"
	"github.com/acp-test/acp-test/sweep"
	"github.com/acp-test/acp-test/transcript"
)

// seen is what a baseline showed of one run.
type seen struct {
	turn   fakellm.TurnNode // of the model, as far as it was asked
	events []event
	text   string
	end    string // as patterns call it
	calls  int    // of the front end's tools that wait for an answer
	// made are the new files that the whole scenario made and exactly one call of this run
	// names; owed are those whose call waits for an answer to the run's one interrupt.
	made, owed []string
	late       map[string]fakellm.Place // of made: the call, in the model's turn
}

// event is something that the agent sent.
type event struct {
	kind string
	hold *fakellm.Place // the earliest place at which it must have come
	said bool           // nothing but the gate can come after it
}

// kinds is how many kinds of events the agent sent.
func (s seen) kinds() int {
	kinds := map[string]bool{}
	for _, e := range s.events {
		kinds[e.kind] = true
	}
	return len(kinds)
}

// look reads one run out of a baseline's transcript; ok is false if that has no end of it.
func (b *base) look(t *transcript.Transcript, tg target, effects []string) (s seen, ok bool) {
	run := b.posted(t, tg)
	if run.Seq == 0 {
		return s, false
	}
	s.turn = sweep.Plain(b.spoken.Turns[tg.turn])
	requests, said := 0, map[string]int{}
	arguments, results := map[string][]byte{}, map[string]bool{}
	var interrupts []string
	for e := range t.From(run.Seq + 1) {
		if e.Source == transcript.Model && e.Kind == transcript.ModelRequest && e.JSON().Get("lane").Is("main") {
			requests++
		}
		if e.Ref != run.Seq {
			continue
		}
		if s.end = endpoint.EndOf(e); s.end != "" {
			break
		}
		kind, v := aguiframe.Event(e), e.JSON()
		if kind == "" {
			continue
		}
		if id := v.Get("toolCallId").Str(); kind == "TOOL_CALL_RESULT" {
			results[id] = true
		} else if id != "" {
			arguments[id] = append(arguments[id], v.Get("delta").Str()...)
		}
		if kind == "TEXT_MESSAGE_CONTENT" || kind == "TEXT_MESSAGE_CHUNK" {
			s.text += v.Get("delta").Str()
		}
		for i := range v.Path("outcome.interrupts").Items() {
			interrupts = append(interrupts, i.Get("toolCallId").Str())
		}
		hold, held := s.place(kind, v.Get("delta").Str(), requests, said)
		s.events = append(s.events, event{kind, hold, held})
	}
	if requests == 0 || !slices.Contains([]string{"finished", "interrupt", "error"}, s.end) {
		return s, false
	}
	s.turn.Replies = s.turn.Replies[:min(max(requests, 1), len(s.turn.Replies))]
	for i, e := range s.events {
		if e.hold != nil && e.hold.Reply >= len(s.turn.Replies) {
			s.events[i].hold, s.events[i].said = nil, false
		}
	}
	s.calls = len(arguments) - len(results)
	if s.end != "finished" {
		s.calls = 0
	}
	b.effects(&s, effects, arguments, interrupts)
	return s, true
}

// posted is the entry in which a target was posted: the run for which the model began its turn.
func (b *base) posted(t *transcript.Transcript, tg target) (run transcript.Entry) {
	n := 0
	for _, l := range b.Lines[:tg.line] {
		if l.Is("run") || l.Is("resume") {
			n++
		}
	}
	for e := range t.All() {
		if e.Source == transcript.Editor && e.Kind == transcript.Request {
			if n == 0 {
				return e
			}
			n--
		}
	}
	return run
}

// place is the earliest place of the model at which an event must have come.
func (s *seen) place(kind, delta string, requests int, said map[string]int) (*fakellm.Place, bool) {
	field := ""
	switch {
	case strings.HasPrefix(kind, "TEXT_MESSAGE_C"):
		field = "text"
	case strings.HasPrefix(kind, "REASONING_MESSAGE_C"), kind == "THINKING_TEXT_MESSAGE_CONTENT":
		field = "thinking"
	}
	if field != "" && delta != "" {
		said[field] += len(delta)
		at := sweep.After(s.turn, field, said[field])
		return at, at != nil
	}
	// What comes of a whole reply comes before the next one begins.
	if requests == 0 || requests < len(s.turn.Replies) && s.turn.Replies[requests].Raw == "" {
		return &fakellm.Place{Reply: requests}, false
	}
	return nil, false
}

// effects finds out which files are of the run, and which of them wait for its interrupt.
func (b *base) effects(s *seen, effects []string, arguments map[string][]byte, interrupts []string) {
	s.late = map[string]fakellm.Place{}
	for _, e := range effects {
		file, isNew := strings.CutPrefix(e, "new ")
		script := slices.ContainsFunc(b.Lines, func(l *script.Line) bool {
			return (l.Is("write") || l.Is("exec")) && strings.Contains(l.String(), path.Base(file))
		})
		var of []string
		for id, args := range arguments {
			if bytes.Contains(args, []byte(path.Base(file))) {
				of = append(of, id)
			}
		}
		if !isNew || script || len(of) != 1 {
			continue
		}
		s.made = append(s.made, file)
		for r, reply := range s.turn.Replies {
			for i, st := range reply.Steps {
				if st.Kind == "tool" && strings.Contains(st.Text, path.Base(file)) {
					s.late[file] = fakellm.Place{Reply: r, Step: i}
				}
			}
		}
		if s.end == "interrupt" && len(interrupts) == 1 && interrupts[0] == of[0] {
			s.owed = append(s.owed, file)
		}
	}
}
