package replay

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/acp-test/acp-test/fakellm"
	"github.com/acp-test/acp-test/internal/workspace"
	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/transport"
)

// beside is the effect of an act that sends no frame.
type beside string

const (
	release    beside = "release"     // lets the model go on
	closeStdin beside = "close-stdin" // ends the agent's input
	kill       beside = "kill"        // ends the agent
	writeFile  beside = "write"       // writes a file, as the user did
	writeShape beside = "write-shape" // joins or cuts what is written from now on
)

// besides finds the acts of a recording that send no frame, by their entries.
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
			// What comes later is an answer to the end of the input.
			add(closed[e.Conn].entry.Seq, closed[e.Conn])
			delete(closed, e.Conn)
		}
	}
	return found
}

// held says that a gate is to be reached before an act.
func held(g fakellm.RecordedGate) string { return "the gate " + g.Name }

// taken is how long an agent may take to read what was written before the model goes
// on.
const taken = time.Second

// beside performs an act that sends no frame.
func (s *playing) beside(ctx context.Context, a *act) error {
	s.mu.Lock()
	a.done = true
	s.mu.Unlock()
	switch a.beside {
	case release:
		// Otherwise the model may continue before the agent has read the editor's earlier frames.
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
			return fmt.Errorf("writing %s: the settings of a repository may name programs", name)
		}
		if err := workspace.Write(s.Work, map[string][]byte{name: []byte(v.Get("text").Str())}); err != nil {
			return fmt.Errorf("writing what the user wrote: %w", err)
		}
	}
	return nil
}
