package sweep

import (
	"strings"

	"github.com/acp-test/acp-test/fakellm"
	"github.com/acp-test/acp-test/internal/lists"
)

// Seen is one turn of a baseline run.
type Seen struct {
	Turn
	// Model is what the model says in the turn, as far as the agent asked for it, Requests
	// how many times it did.
	Model    fakellm.TurnNode
	Requests int
	// Frames are what the agent sent, Text is what it said, End how the turn ended.
	Frames []Frame
	Text   string
	End    string
	// Able are the capabilities of the agent.
	Able map[string]bool
	// Made are files that one call of the turn is about, and no other call.
	Made []Effect
	// Of is the protocol's own data about the turn.
	Of any

	said map[string]int // bytes, by the kind of step
}

// Frame is something that the agent sent.
type Frame struct {
	Kind string // as patterns name it
	// Hold is the earliest place of the model at which it must have come; nil if that is not
	// known. Held says that nothing but the gate can come after it.
	Hold *fakellm.Place
	Held bool
	// Asks says that it waits for an answer.
	Asks bool
	// Reply is which reply of the model it came after the request for.
	Reply int
}

// Effect is a file that a run changed.
type Effect struct {
	What string // new, changed or deleted
	File string
}

// effects reads which files a run changed out of the difference of its workspace.
func effects(diff string) (out []Effect) {
	for line := range strings.Lines(diff) {
		for _, p := range []string{"new file ", "changed ", "deleted "} {
			if name, ok := strings.CutPrefix(strings.TrimRight(line, "\n"), p); ok {
				out = append(out, Effect{strings.Fields(p)[0], name})
			}
		}
	}
	return out
}

// Follow notes a frame of the turn. Of a frame that says something, kind is that of the
// model's steps that say such; else it came before the model began its next reply.
func (s *Seen) Follow(frame, kind, text string, next int) {
	f := Frame{Kind: frame, Reply: max(s.Requests-1, 0)}
	switch {
	case kind != "":
		if s.said == nil {
			s.said = map[string]int{}
		}
		s.said[kind] += len(text)
		f.Hold = after(s.Model, kind, s.said[kind])
		f.Held = f.Hold != nil
	case next == 0, next < len(s.Model.Replies) && s.Model.Replies[next].Raw == "":
		f.Hold = &fakellm.Place{Reply: next}
	}
	s.Frames = append(s.Frames, f)
}

// Over ends the turn. Places in replies of the model that the agent did not ask for are
// forgotten: it may have a limit of its own.
func (s *Seen) Over() {
	s.Model.Replies = s.Model.Replies[:min(max(s.Requests, 1), len(s.Model.Replies))]
	for i, f := range s.Frames {
		if f.Hold != nil && f.Hold.Reply >= s.Requests {
			s.Frames[i].Hold, s.Frames[i].Held = nil, false
		}
	}
}

// kinds is how many kinds of frames the agent sent.
func (s *Seen) kinds() int {
	return len(lists.Set(lists.Map(s.Frames, func(f Frame) string { return f.Kind })))
}
