package scenarios

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/acp-test/acp-test/agents"
	"github.com/acp-test/acp-test/fakellm"
	"github.com/acp-test/acp-test/mockclient"
	"github.com/acp-test/acp-test/protocol/acp/acpframe"
	"github.com/acp-test/acp-test/rules"
	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/wire"
)

// run is the state of one scenario while it runs.
type run struct {
	engine   *Engine
	scenario *Scenario
	box      *sandbox
	t        *transcript.Transcript
	model    *fakellm.Server
	trap     *fakellm.Trap // nil if outside connections are left alone
	launch   agents.Launch

	// What set-up lines say before the agent starts.
	client mockclient.Capabilities
	setup  setup

	mu       sync.Mutex // guards what follows: the branches of both share it
	agent    *mockclient.Agent
	editor   *mockclient.Editor
	conn     int
	ready    bool   // initialized
	init     []byte // result of initialize
	sessions []*session
	names    map[string]transcript.Entry
	prompts  int // prompts sent so far
	// residents are the processes of the agent, besides itself, before the first
	// prompt, by their id: a launcher's child, a language server.
	residents map[int]bool
	checks    []*checkState
	current   *checkState
	notes     []string
	// lawless are the entries of the editor that break the protocol on
	// purpose; rules for clients do not judge the harness by them.
	lawless   map[int]bool
	unlawful  bool                // the script answers or writes what no editor may
	started   *transcript.Failure // why the agent did not start, if it did not
	ended     bool                // the script closed its input or signalled it
	killed    bool                // the script killed it
	shutdown  mockclient.Shutdown
	survivors []mockclient.Process

	checker *rules.Checker
	// settled is the last entry the script waited for or made itself. What
	// came after it may or may not have come in time: no golden shows it.
	settled  int
	rendered string
}

// session is an ACP session the script opened.
type session struct {
	name, id, cwd string
	cursor        int   // Seq from which await looks forward
	ended         int   // Seq of the last end of a turn that was awaited
	prompts       []int // Seqs of its prompts
	over          []int // those whose turn was awaited to its end
}

// branch is a line of control: the script, or one side of both. It has a
// session it speaks of when a line names none.
type branch struct {
	run     *run
	session *session
	cursor  int // where there is no session
	group   *group
	apart   bool // one side of both
}

// group is the state of a group { } while it runs.
type group struct {
	start int
	end   int
	taken map[int]bool
}

// checkState is a check as the run has come to judge it.
type checkState struct {
	decl    *checkDecl
	reached bool
	misses  []*miss
}

// miss is a line that did not get what it wants.
type miss struct {
	failure *transcript.Failure
	// verdict is fixed where the line knows it (inconclusive); else the
	// check's class decides.
	verdict Verdict
	// effect says that the line is about an effect or an end, which fails
	// also in a check that names no requirement.
	effect bool
	// soft: the script goes on, since nothing after it depends on the line.
	soft bool
	// turnEnd is the Seq of a turn's end that came with another reason than
	// cancelled after a cancel: whether that is a fail, the rule decides.
	turnEnd int
	// by is the entry after which what was awaited can no longer come, if one
	// is to blame.
	by transcript.Entry
}

func (m *miss) Error() string { return m.failure.Error() }

// skipped ends a scenario that does not apply.
type skipped struct{ reason string }

func (s *skipped) Error() string { return s.reason }

// current is the session a line without a name speaks of: the branch's own,
// else the one opened last.
func (b *branch) current() *session {
	if b.session != nil {
		return b.session
	}
	b.run.mu.Lock()
	defer b.run.mu.Unlock()
	if n := len(b.run.sessions); n > 0 {
		return b.run.sessions[n-1]
	}
	return nil
}

// speak makes a named session the branch's own inside both, where "the one
// opened last" would depend on the other side.
func (b *branch) speak(s *session) {
	if b.apart {
		b.session = s
	}
}

func (r *run) session(name string) *session {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := len(r.sessions) - 1; i >= 0; i-- {
		if r.sessions[i].name == name {
			return r.sessions[i]
		}
	}
	return nil
}

// at is the branch's cursor.
func (b *branch) at() int {
	if s := b.current(); s != nil {
		return max(s.cursor, b.cursor)
	}
	return b.cursor
}

// acted sets the cursor to an act's own entry.
func (b *branch) acted(s *session, e transcript.Entry) {
	if e.Seq == 0 {
		return
	}
	b.run.settle(e)
	if s != nil {
		s.cursor = max(s.cursor, e.Seq)
	} else {
		b.cursor = max(b.cursor, e.Seq)
	}
}

// reach moves the cursor to an entry that was awaited. It never jumps back.
func (b *branch) reach(e transcript.Entry) {
	b.run.settle(e)
	if b.group != nil {
		b.group.taken[e.Seq] = true
		b.group.end = max(b.group.end, e.Seq)
		return
	}
	b.acted(b.current(), e)
}

func (r *run) settle(e transcript.Entry) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.settled = max(r.settled, e.Seq)
}

// name remembers an entry under the name a line gave it.
func (r *run) name(as string, e transcript.Entry) {
	if as == "" {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.names[as] = e
}

func (r *run) note(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	r.t.Event(r.conn, transcript.Note, transcript.Remark, "", map[string]string{"text": text})
	r.mu.Lock()
	defer r.mu.Unlock()
	r.notes = append(r.notes, text)
}

func (r *run) phase(text string) {
	r.t.Event(r.conn, transcript.Note, transcript.Phase, "", map[string]string{"text": text})
	r.engine.step(r.scenario.ID, text)
}

// expand replaces the variables of a word.
func (b *branch) expand(w word) (string, error) {
	var s strings.Builder
	for _, p := range w.parts {
		text := p.text
		if p.variable {
			var err error
			if text, err = b.variable(p.text); err != nil {
				return "", err
			}
		}
		s.WriteString(text)
	}
	return s.String(), nil
}

// variable is the value of $NAME, $NAME(ARG) or $NAME.path.
func (b *branch) variable(name string) (string, error) {
	r := b.run
	if v, err := r.fixed(name); err == nil {
		return v, nil
	}
	head, arg, call := strings.Cut(strings.TrimSuffix(name, ")"), "(")
	switch {
	case call && head == "SESSION":
		if s := r.session(arg); s != nil {
			return s.id, nil
		}
		return "", r.notOpen(arg)
	case call && head == "TOOL":
		return r.tool(arg)
	case name == "SESSION":
		if s := b.current(); s != nil {
			return s.id, nil
		}
		return "", errors.New("no session is open")
	}
	head, path, _ := strings.Cut(name, ".")
	r.mu.Lock()
	e, ok := r.names[head]
	r.mu.Unlock()
	if !ok {
		return "", unknownVariable(name, []string{"WORK", "HOME", "TMP", "SESSION", "TOOL"})
	}
	// A request of ours stands for its answer, once that is there.
	from := e
	if e.Source == transcript.Editor && e.Kind == transcript.Request {
		if a := r.t.At(r.answerTo(e.Seq)); a.Ref == e.Seq {
			if _, text, ok := lookup(a, orElse(path, "sessionId")); ok {
				return text, nil
			}
			from = a
		}
	}
	if path == "" {
		return natural(e), nil
	}
	if _, text, ok := lookup(e, path); ok {
		return text, nil
	}
	return "", &lacking{what: head + "." + path, entry: from}
}

// lacking is what a line wants of an entry that has it not. If the entry is the
// agent's that is no mistake of the scenario.
type lacking struct {
	line  *line
	what  string
	entry transcript.Entry
}

func (e *lacking) Error() string {
	return fmt.Sprintf("there is no %s in #%d", e.what, e.entry.Seq)
}

// miss says that without it there is no situation to judge.
func (e *lacking) miss(r *run) *miss {
	f := r.failure(e.line, transcript.Outcome{})
	f.Expected, f.Observed, f.Entries = []string{e.what}, observed(e.entry), []int{e.entry.Seq}
	return &miss{failure: f, verdict: Inconclusive}
}

// notOpen is a session that a line names and that is not open: a mistake of the
// scenario, unless the agent refused to open it.
func (r *run) notOpen(name string) error {
	refusal := 0
	for e := range r.t.All() {
		if e.Source == transcript.Agent && e.Kind == transcript.Response && strings.HasPrefix(e.Method, "session/") && e.JSON().Get("error").Exists() {
			refusal = e.Seq
		}
	}
	if refusal > 0 {
		return &lacking{what: "session " + name, entry: r.t.At(refusal)}
	}
	return fmt.Errorf("session %s is not open", name)
}

// fixed are the variables that are known before the script begins.
func (r *run) fixed(name string) (string, error) {
	switch name {
	case "WORK":
		return r.box.work, nil
	case "HOME":
		return r.box.home, nil
	case "TMP":
		return r.box.temp, nil
	case "LLM":
		if r.model != nil {
			return r.model.URL(), nil
		}
		return "", nil
	case "SELF":
		return r.engine.Self, nil
	}
	return "", unknownVariable(name, []string{"WORK", "HOME", "TMP", "LLM", "SELF"})
}

// tool is the id of the n-th tool call of the run.
func (r *run) tool(arg string) (string, error) {
	n := 0
	if _, err := fmt.Sscan(arg, &n); err != nil || n < 1 {
		return "", fmt.Errorf("$TOOL(%s): count tool calls from 1", arg)
	}
	seen := map[string]bool{}
	for e := range r.t.All() {
		if acpframe.Update(e) != "tool_call" {
			continue
		}
		id := e.JSON().Path("params.update.toolCallId").Str()
		if seen[id] = true; len(seen) == n {
			return id, nil
		}
	}
	return "", fmt.Errorf("$TOOL(%d): there were only %d tool calls", n, len(seen))
}

// natural is what a captured entry stands for where no path is given.
func natural(e transcript.Entry) string {
	for _, path := range []string{"toolCallId", "terminalId", "sessionId", "stopReason"} {
		if path == "sessionId" && e.Kind != transcript.Response {
			continue
		}
		if _, text, ok := lookup(e, path); ok {
			return text
		}
	}
	if e.ID != "" {
		if v, err := wire.Parse([]byte(e.ID)); err == nil {
			return v.Text()
		}
	}
	return string(e.Raw)
}

// window is the stretch saw and its kin look at: from the latest prompt of a
// session on, or all, or its n-th turn.
func window(s *session, in string, turn int) (after, to int, err error) {
	switch {
	case in == "run" || s == nil:
		return 0, -1, nil
	case turn > 0:
		if turn > len(s.prompts) {
			return 0, 0, fmt.Errorf("turn=%d: the session has had %d", turn, len(s.prompts))
		}
		to := -1
		if turn < len(s.prompts) {
			to = s.prompts[turn] - 1
		}
		return s.prompts[turn-1] - 1, to, nil
	case len(s.prompts) == 0:
		return 0, -1, nil
	}
	return s.prompts[len(s.prompts)-1] - 1, -1, nil
}

// stepTimeout bounds one line.
func (r *run) stepTimeout(ctx context.Context, within time.Duration) (context.Context, context.CancelFunc) {
	d, name := within, "within"
	if d == 0 {
		d, name = r.engine.StepTimeout, "step timeout"
	}
	if r.engine.Debug {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, d, &timerError{name, d})
}

// timerError names the timer that ended a wait.
type timerError struct {
	name string
	d    time.Duration
}

func (e *timerError) Error() string { return fmt.Sprintf("%s %v", e.name, e.d) }

// inWork resolves a path of the script inside the workspace.
func (r *run) inWork(name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(r.box.work, filepath.FromSlash(name))
}
