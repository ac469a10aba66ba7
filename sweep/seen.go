package sweep

import (
	"strings"

	"github.com/acp-test/acp-test/fakellm"
	"github.com/acp-test/acp-test/internal/lists"
)

// Seen is one turn as it occurred in a baseline run.
type Seen struct {
	Turn
	// Model is the model's turn, up to the last reply that the agent requested.
	// Requests is the number of the agent's requests.
	Model    fakellm.TurnNode
	Requests int
	// Frames lists the agent's messages, Text is the agent's text, and End is how
	// the turn ended.
	Frames []Frame
	Text   string
	End    string
	// Able is the set of the agent's capabilities.
	Able map[string]bool
	// Made lists the files that the turn changed, if exactly one tool call
	// concerns the file.
	Made []Effect
	// Of is data about the turn in the form of the protocol.
	Of any

	said map[string]int // kind of model step -> bytes of its text that have arrived
}

// Frame is a message that the agent sent.
type Frame struct {
	Kind string // the name of the kind in patterns
	// Hold is the earliest place at which a waiting model must already have caused
	// the frame, or nil if that is unknown. Held means that only the model's gate
	// can come after the frame.
	Hold *fakellm.Place
	Held bool
	// Asks means that the frame is a request that needs an answer.
	Asks bool
	// Reply is the index of the model's reply that the agent had requested last
	// when it sent the frame.
	Reply int
}

// Effect is a file that a run changed.
type Effect struct {
	What string // "new", "changed" or "deleted"
	File string
}

// effects parses the diff of a workspace and returns the files that the run
// changed.
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

// Follow adds a frame of the turn. kind is the kind of model step whose text
// the frame forwards. For a frame without such text, kind is "" and next is the
// index of the model's reply that had not begun when the frame came.
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

// Over ends the turn. It drops model replies that the agent did not request,
// and places in them. An agent may have its own limit on requests.
func (s *Seen) Over() {
	s.Model.Replies = s.Model.Replies[:min(max(s.Requests, 1), len(s.Model.Replies))]
	for i, f := range s.Frames {
		if f.Hold != nil && f.Hold.Reply >= s.Requests {
			s.Frames[i].Hold, s.Frames[i].Held = nil, false
		}
	}
}

// kinds returns the number of kinds of frames that the agent sent.
func (s *Seen) kinds() int {
	return len(lists.Set(lists.Map(s.Frames, func(f Frame) string { return f.Kind })))
}
