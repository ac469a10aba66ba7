package scenarios

import (
	"fmt"
	"slices"
	"sync"

	"github.com/acp-test/acp-test/mockclient"
	"github.com/acp-test/acp-test/transcript"
)

// state is what changes while a scenario runs. Both sides of a both reach it at
// the same time, so every field is read and written under mu.
type state struct {
	mu     sync.Mutex
	agent  *mockclient.Agent  // nil while none runs
	editor *mockclient.Editor // nil while none runs
	client mockclient.Capabilities
	setup  setup

	conn     int
	ready    bool   // initialized
	init     []byte // result of initialize
	sessions []*session
	names    map[string]transcript.Entry
	// residents are the processes of the agent, besides itself, before the first
	// prompt, by their id: a launcher's child, a language server.
	residents map[int]bool
	checks    []*checkState
	current   *checkState
	notes     []string
	// excused are the entries that break the protocol on purpose; rules for
	// clients do not judge the harness by them. allExcused is set where the
	// script answers or writes what no editor may.
	excused    map[int]bool
	allExcused bool
	unstarted  *transcript.Failure // why the agent did not start, if it did not
	ended      bool                // the script closed its input or signalled it
	killed     bool                // the script killed it
	shutdown   mockclient.Shutdown
	survivors  []mockclient.Process
	// settled is the last entry the script waited for or made itself. What
	// came after it may or may not have come in time: no golden shows it.
	settled int
}

// change changes the state.
func (r *run) change(f func(s *state)) {
	r.state.mu.Lock()
	defer r.state.mu.Unlock()
	f(&r.state)
}

// running returns the agent, nil while none runs.
func (r *run) running() (a *mockclient.Agent) {
	r.change(func(s *state) { a = s.agent })
	return a
}

// talking returns the editor, nil while no agent runs.
func (r *run) talking() (e *mockclient.Editor) {
	r.change(func(s *state) { e = s.editor })
	return e
}

// live returns the agent and its editor for a line that needs them; the error
// is a miss if there is none.
func (r *run) live(l *line) (*mockclient.Agent, *mockclient.Editor, error) {
	r.state.mu.Lock()
	a, e := r.state.agent, r.state.editor
	r.state.mu.Unlock()
	if a == nil {
		return nil, nil, r.unsent(l, mockclient.ErrExited)
	}
	return a, e, nil
}

// connection returns the number of the connection, from 0.
func (r *run) connection() (n int) {
	r.change(func(s *state) { n = s.conn })
	return n
}

// hasEnded reports whether the script closed the agent's input or signalled it.
func (r *run) hasEnded() (ended bool) {
	r.change(func(s *state) { ended = s.ended })
	return ended
}

// session returns the session that a name was given to last, or nil.
func (r *run) session(name string) *session {
	return r.lastSession(func(s *session) bool { return s.name == name })
}

func (r *run) lastSession(is func(*session) bool) (found *session) {
	r.change(func(s *state) {
		for _, c := range slices.Backward(s.sessions) {
			if is(c) {
				found = c
				return
			}
		}
	})
	return found
}

// promptsOf returns the Seqs of the prompts of a session, which may be nil.
func (r *run) promptsOf(c *session) (seqs []int) {
	if c != nil {
		r.change(func(*state) { seqs = slices.Clone(c.prompts) })
	}
	return seqs
}

// lastPrompt returns the Seq of the latest prompt of a session, 0 if it has had
// none.
func (r *run) lastPrompt(c *session) int {
	if seqs := r.promptsOf(c); len(seqs) > 0 {
		return seqs[len(seqs)-1]
	}
	return 0
}

// settle says that the script knows of an entry.
func (r *run) settle(e transcript.Entry) {
	r.change(func(s *state) { s.settled = max(s.settled, e.Seq) })
}

// name remembers an entry under the name a line gave it.
func (r *run) name(as string, e transcript.Entry) {
	if as != "" {
		r.change(func(s *state) { s.names[as] = e })
	}
}

// named returns the entry that a line gave a name to.
func (r *run) named(ref string) (e transcript.Entry, ok bool) {
	r.change(func(s *state) { e, ok = s.names[ref] })
	return e, ok
}

// referred is named for a line that cannot do without.
func (r *run) referred(l *line, ref string) (transcript.Entry, error) {
	e, ok := r.named(ref)
	if !ok {
		return e, l.runtime(fmt.Errorf("%s has not happened", ref))
	}
	return e, nil
}

// excuse says that entries break the protocol on purpose.
func (r *run) excuse(seqs ...int) {
	r.change(func(s *state) {
		for _, seq := range seqs {
			s.excused[seq] = true
		}
	})
}

func (r *run) note(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	r.t.Event(r.connection(), transcript.Note, transcript.Remark, "", map[string]string{"text": text})
	r.change(func(s *state) { s.notes = append(s.notes, text) })
}

func (r *run) phase(text string) {
	r.t.Event(r.connection(), transcript.Note, transcript.Phase, "", map[string]string{"text": text})
	r.engine.step(r.scenario.ID, text)
}

// did logs an act that sends no frame.
func (r *run) did(l *line) {
	r.t.Event(r.connection(), transcript.Note, transcript.Act, "", map[string]string{"text": l.Text})
}
