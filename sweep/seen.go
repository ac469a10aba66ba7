package sweep

import (
	"strings"

	"github.com/acp-test/acp-test/fakellm"
	"github.com/acp-test/acp-test/internal/lists"
)

// Seen is one turn as a baseline run showed it.
type Seen struct {
	Turn
	// Model is the model's turn, up to the last reply that the agent asked for.
	// Requests is how many times the agent asked.
	Model    fakellm.TurnNode
	Requests int
	// Frames are the messages that the agent sent, Text is its text, and End is
	// how the turn ended.
	Frames []Frame
	Text   string
	End    string
	// Able is the set of the agent's capabilities.
	Able map[string]bool
	// Made are the changed files that exactly one tool call is about.
	Made []Effect
	// Of is data about the turn that only the protocol understands.
	Of any

	said map[string]int // bytes, by the kind of step
}

// Frame is a message that the agent sent.
type Frame struct {
	Kind string // as patterns name it
	// Hold is the earliest place where a held model must have caused the frame;
	// nil if unknown. Held says that only the gate can come after the frame.
	Hold *fakellm.Place
	Held bool
	// Asks says that the frame is a request that waits for an answer.
	Asks bool
	// Reply is the index of the model's reply that the agent had requested last
	// when it sent the frame.
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

// Follow adds a frame of the turn. kind is the kind of model steps whose text
// the frame passes on. For any other frame kind is "", and next is the model's
// reply that had not begun when the frame came.
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

// Over ends the turn. It drops places in replies that the agent did not request
// from the model, because the agent may have its own limit on requests.
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
