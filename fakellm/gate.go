package fakellm

import (
	"fmt"
	"slices"

	"github.com/acp-test/acp-test/mistake"
	"github.com/acp-test/acp-test/transcript"
)

// gate blocks every stream that reaches it until the gate is released. After that, it stays open.
type gate struct {
	open     chan struct{}
	released bool
	entry    transcript.Entry
	holding  []int // numbers of the requests that wait at the gate
}

// Release opens a gate permanently, so that the streams waiting at it continue. It may be called before any stream
// has reached the gate. It returns the transcript entry of the release; a second call returns the same entry. It
// returns an error if the script has no gate of that name.
func (s *Server) Release(name string) (transcript.Entry, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	g, ok := s.gates[name]
	if !ok {
		return transcript.Entry{}, fmt.Errorf("releasing gate %q: the script has no gate of that name%s", name,
			mistake.Suggested(name, s.cfg.Script.gates))
	}
	if !g.released {
		g.released = true
		// Record the release before opening the gate, so that its entry precedes everything the release causes.
		n := 0 // 0: no single request, because none or several wait
		if len(g.holding) == 1 {
			n = g.holding[0]
		}
		g.entry = s.event(transcript.GateReleased, "", object{{"n", n}, {"gate", name}})
		close(g.open)
	}
	return g.entry, nil
}

// reach registers request n as waiting at a gate. It returns a channel that is closed when the gate opens, or nil if
// the gate is already open.
func (s *Server) reach(name string, n int, session string) <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	g := s.gates[name]
	if g == nil || g.released {
		return nil
	}
	g.holding = append(g.holding, n)
	s.event(transcript.Gate, session, object{{"n", n}, {"gate", name}})
	return g.open
}

// leave records that request n ended while it waited at a gate.
func (s *Server) leave(name string, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	g := s.gates[name]
	g.holding = slices.DeleteFunc(g.holding, func(m int) bool { return m == n })
}

// Held returns the sorted names of the gates at which a stream is waiting.
func (s *Server) Held() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []string
	for name, g := range s.gates {
		if len(g.holding) > 0 && !g.released {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}
