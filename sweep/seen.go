package sweep

import (
	"strings"

	"github.com/acp-test/acp-test/fakellm"
	"github.com/acp-test/acp-test/internal/lists"
)

// Seen is one turn of a baseline run.
type Seen struct {
	Turn
	// Model is the model's turn, up to the last reply that the agent asked for.
	// Requests is how many times the agent asked.
	Model    fakellm.TurnNode
	Requests int
	// Frames are those that the agent sent, Text is what it said, End how the
	// turn ended.
	Frames []Frame
	Text   string
	End    string
	// Able are the capabilities of the agent.
	Able map[string]bool
	// Made are files that only one call of the turn is about.
	Made []Effect
	// Of is the protocol's own data about the turn.
	Of any

	said map[string]int // bytes, by the kind of step
}

// Frame is a message that the agent sent.
type Frame struct {
	Kind string // as patterns name it
	// Hold is the earliest place of the model at which the frame must have come;
	// nil if unknown. Held says that only the gate can come after it.
	Hold *fakellm.Place
	Held bool
	// Asks says that the frame waits for an answer.
	Asks bool
	// Reply is the index of the model's reply that was requested last before the
	// frame.
	Reply int
}

// Effect is a file that a run changed.
type Effect struct {
	What string // new, changed or deleted
	File string
}

// effects reads which files a run changed from the diff of its workspace.
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

// Follow adds a frame of the turn. kind is the kind of the model's steps that the
// frame passes on, with their text. For other frames kind is "", and the frame
// came before the model began reply next.
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

// Over ends the turn. It drops places in replies of the model that the agent did
// not ask for: the agent may have a limit of its own.
func (s *Seen) Over() {
	s.Model.Replies = s.Model.Replies[:min(max(s.Requests, 1), len(s.Model.Replies))]
	for i, f := range s.Frames {
		if f.Hold != nil && f.Hold.Reply >= s.Requests {
			s.Frames[i].Hold, s.Frames[i].Held = nil, false
		}
	}
}

// kinds returns how many kinds of frames the agent sent.
func (s *Seen) kinds() int {
	return len(lists.Set(lists.Map(s.Frames, func(f Frame) string { return f.Kind })))
}
