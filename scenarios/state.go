package scenarios

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/acp-test/acp-test/fakellm"
	"github.com/acp-test/acp-test/scenarios/results"
	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/transport"
	"github.com/acp-test/acp-test/wire"
)

// setup holds the settings from the set-up lines.
type setup struct {
	env   map[string]string
	home  map[string][]byte
	needs []string // capabilities that the agent must advertise
}

// state is the part of a run that changes. Both sides of a "both" use it at the same time, so mu protects every
// field.
type state struct {
	mu    sync.Mutex
	agent *transport.Agent   // nil while no agent runs
	left  []*transport.Agent // agents that leaveAgent left running
	setup setup

	conn     int
	ready    bool // the agent has answered the greeting
	sessions []*Session
	opening  []*Session // sessions whose ID is not known yet
	names    map[string]transcript.Entry
	picked   map[string]wire.Value // name -> list entry that pick found
	// residents has the pids of the agent's processes that ran before the first prompt, without the agent itself.
	// Examples are a launcher's child and a language server.
	residents map[int]bool
	checks    []*checkState
	current   *checkState
	notes     []string
	// excused has the Seqs of entries that violate the protocol on purpose; rules for clients ignore them. allExcused is
	// set if the script sends something that no editor may send.
	excused    map[int]bool
	allExcused bool
	unstarted  *transcript.Failure // why the agent did not start; nil if it did
	ended      bool                // the script closed the agent's input or sent it a signal
	killed     bool                // the script killed the agent
	held       bool                // the script has stopped (paused) the agent's processes
	shutdown   transport.Shutdown
	survivors  []transport.ProcessInfo
	keeper     string // how the keeper ended, if it ended before the agent; else ""
	// settled is the Seq of the last entry that the script waited for or caused itself. Goldens omit later entries,
	// because these do not come in every run.
	settled int
	// launched is when the agent was started. It is zero after the agent has answered the greeting.
	launched time.Time
	waits    results.Waits
	vain     []results.Vain
	// heard maps a session to the Seq of the last entry in it that the script waited for.
	heard map[string]int
}

// change calls f with the state while holding its lock.
func (r *run) change(f func(s *state)) {
	r.state.mu.Lock()
	defer r.state.mu.Unlock()
	f(&r.state)
}

// stateOf calls read with the state while holding its lock, and returns the result.
func stateOf[T any](r *run, read func(s *state) T) T {
	r.state.mu.Lock()
	defer r.state.mu.Unlock()
	return read(&r.state)
}

// Agent returns the running agent, or nil if none runs.
func (r *run) Agent() *transport.Agent {
	return stateOf(r, func(s *state) *transport.Agent { return s.agent })
}

// Alive returns the running agent. If none runs, the error is a Miss of the line l.
func (r *run) Alive(l *Line) (*transport.Agent, error) {
	if a := r.Agent(); a != nil {
		return a, nil
	}
	return nil, r.Unsent(l, transport.ErrExited)
}

// Running returns the running agent, after starting and greeting it if necessary. If no agent runs, the error is a
// Miss of the line l.
func (b *Branch) Running(ctx context.Context, l *Line) (*transport.Agent, error) {
	if err := b.Begin(ctx); err != nil {
		return nil, err
	}
	return b.Alive(l)
}

// connection returns the number of the current connection, starting with 0.
func (r *run) connection() int { return stateOf(r, func(s *state) int { return s.conn }) }

// Ended reports whether the script closed the agent's input or sent it a signal.
func (r *run) Ended() bool { return stateOf(r, func(s *state) bool { return s.ended }) }

// Named returns the latest session with this name, or nil.
func (r *run) Named(name string) *Session {
	r.change(func(s *state) {
		s.opening = slices.DeleteFunc(s.opening, func(c *Session) bool {
			if c.ID = c.coming(); c.ID != "" {
				s.sessions = append(s.sessions, c)
			}
			return c.ID != ""
		})
	})
	return r.lastSession(func(s *Session) bool { return s.Name == name })
}

func (r *run) lastSession(is func(*Session) bool) *Session {
	return stateOf(r, func(s *state) *Session {
		for _, c := range slices.Backward(s.sessions) {
			if is(c) {
				return c
			}
		}
		return nil
	})
}

// PromptsOf returns the Seqs of a session's prompts, or nil if c is nil.
func (r *run) PromptsOf(c *Session) (seqs []int) {
	if c != nil {
		r.change(func(*state) { seqs = slices.Clone(c.prompts) })
	}
	return seqs
}

// LastPrompt returns the Seq of the latest prompt of a session, or 0 if it has none.
func (r *run) LastPrompt(c *Session) int {
	if seqs := r.PromptsOf(c); len(seqs) > 0 {
		return seqs[len(seqs)-1]
	}
	return 0
}

// Settle records that the script waited for or caused an entry. Goldens include entries up to the last such entry.
func (r *run) Settle(e transcript.Entry) {
	r.change(func(s *state) { s.settled = max(s.settled, e.Seq) })
	if e.Source != transcript.Editor {
		r.hear(e)
	}
}

// hear records that the script waited for an entry.
func (r *run) hear(e transcript.Entry) {
	r.change(func(s *state) { s.heard[e.Session] = max(s.heard[e.Session], e.Seq) })
}

// Name stores an entry under the name that a line gives to it. If as is "", it does nothing.
func (r *run) Name(as string, e transcript.Entry) {
	if as != "" {
		r.change(func(s *state) { s.names[as] = e })
	}
}

// named returns the entry that was stored under a name.
func (r *run) named(ref string) (e transcript.Entry, ok bool) {
	r.change(func(s *state) { e, ok = s.names[ref] })
	return e, ok
}

// Entry returns the entry that was stored under a name. If there is none, the error is a mistake of the line.
func (r *run) Entry(l *Line, ref string) (transcript.Entry, error) {
	e, ok := r.named(ref)
	if !ok {
		return e, l.Fault(fmt.Errorf("%s has not happened", ref))
	}
	return e, nil
}

// Excuse records that entries break the protocol on purpose, so that rules for clients ignore them.
func (r *run) Excuse(seqs ...int) {
	r.change(func(s *state) {
		for _, seq := range seqs {
			s.excused[seq] = true
		}
	})
}

func (r *run) Note(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	r.t.Event(r.connection(), transcript.Note, transcript.Noted, "", map[string]string{"text": text})
	r.change(func(s *state) { s.notes = append(s.notes, text) })
}

func (r *run) phase(text string) {
	r.t.Event(r.connection(), transcript.Note, transcript.Phase, "", map[string]string{"text": text})
	r.engine.step(r.scenario.ID, strings.TrimLeft(text, "# "))
}

// Did logs an act of the script that sends no frame.
func (r *run) Did(l *Line) {
	r.t.Event(r.connection(), transcript.Note, transcript.Act, "", map[string]string{"text": l.Text})
}

// ExcuseSince excuses the editor's frames with this method that were sent after the entry from.
func (r *run) ExcuseSince(from int, method string) {
	for e := range r.t.From(from + 1) {
		if e.Source == transcript.Editor && e.Method == method {
			r.Excuse(e.Seq)
		}
	}
}

// ExcuseAll records that the script sends something that no editor may send. Rules for clients then excuse all
// entries.
func (r *run) ExcuseAll() { r.change(func(s *state) { s.allExcused = true }) }

// NotStarted records that the agent did not start, with the reason.
func (r *run) NotStarted(f *transcript.Failure) { r.change(func(s *state) { s.unstarted = f }) }

// Opened moves a session to the end of the list, which makes it the session opened last.
func (r *run) Opened(c *Session) {
	r.change(func(s *state) {
		s.sessions = append(slices.DeleteFunc(s.sessions, func(o *Session) bool { return o == c }), c)
	})
}

// Prompted records that an entry is a prompt of a session.
func (r *run) Prompted(c *Session, e transcript.Entry) {
	r.change(func(*state) { c.prompts = append(c.prompts, e.Seq) })
}

// AnswerTo returns the Seq of the agent's response to a request. If there is none, it returns the Seq of the last
// entry.
func (r *run) AnswerTo(seq int) int {
	for e := range r.t.From(seq) {
		if e.Source == transcript.Agent && e.Kind == transcript.Response && e.Ref == seq {
			return e.Seq
		}
	}
	return r.t.Len()
}

// The methods below are for the commands of a protocol.

func (r *run) protocol() *Protocol { return r.engine.Protocol }

// Client returns the client of the run.
func (r *run) Client() Client { return r.client }

// Transcript returns the log of the run.
func (r *run) Transcript() *transcript.Transcript { return r.t }

// Model returns the model server.
func (r *run) Model() *fakellm.Server { return r.model }

// Work returns the path of the workspace.
func (r *run) Work() string { return r.box.Work }

// Temp returns the directory for temporary files.
func (r *run) Temp() string { return r.box.Temp }

// Self returns the path of this program, or "" if it is not known.
func (r *run) Self() string { return r.engine.Self }

// Seed returns the seed of the run.
func (r *run) Seed() int64 { return r.engine.Seed }

// Isolated reports whether the agent is isolated.
func (r *run) Isolated() bool { return r.engine.Isolate }

// Line returns one line of text about an entry, for users.
func (r *run) Line(e transcript.Entry) string { return r.protocol().Canonical.Line(e) }
