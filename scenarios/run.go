package scenarios

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/acp-test/acp-test/fakellm"
	"github.com/acp-test/acp-test/protocol/acp/acpframe"
	"github.com/acp-test/acp-test/rules"
	"github.com/acp-test/acp-test/scenarios/script"
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

	checker *rules.Checker
	state   state
	// launching is held while an agent starts.
	launching sync.Mutex
	rendered  string
}

// session is an ACP session the script opened.
type session struct {
	name, id, cwd string
	begin         int   // Seq from which await looks forward at first
	prompts       []int // Seqs of its prompts, under the lock of the run's state
}

// view is how far one branch has looked in one session.
type view struct {
	cursor int   // Seq from which await looks forward
	ended  int   // Seq of the last end of a turn that was awaited
	over   []int // prompts whose turn was awaited to its end
}

// branch is a line of control: the script, or one side of both. It has a
// session it speaks of when a line names none.
type branch struct {
	run     *run
	session *session
	cursor  int // where there is no session
	views   map[*session]*view
	group   *group
	apart   bool // one side of both
}

// view returns the branch's own view of a session.
func (b *branch) view(s *session) *view {
	v := b.views[s]
	if v == nil {
		v = &view{cursor: s.begin}
		if b.views == nil {
			b.views = map[*session]*view{}
		}
		b.views[s] = v
	}
	return v
}

// fork returns a branch for one side of both, which looks on by itself from
// where b is.
func (b *branch) fork() *branch {
	own := &branch{run: b.run, session: b.current(), cursor: b.cursor, views: map[*session]*view{}, apart: true}
	for s, v := range b.views {
		own.views[s] = &view{v.cursor, v.ended, slices.Clone(v.over)}
	}
	return own
}

// join moves b to the farthest point that a side of both has come to.
func (b *branch) join(side *branch) {
	b.cursor = max(b.cursor, side.cursor)
	for s, v := range side.views {
		mine := b.view(s)
		mine.cursor, mine.ended = max(mine.cursor, v.cursor), max(mine.ended, v.ended)
		for _, prompt := range v.over {
			if !slices.Contains(mine.over, prompt) {
				mine.over = append(mine.over, prompt)
			}
		}
	}
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
	st := &b.run.state
	st.mu.Lock()
	defer st.mu.Unlock()
	if n := len(st.sessions); n > 0 {
		return st.sessions[n-1]
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

// at is the branch's cursor.
func (b *branch) at() int {
	if s := b.current(); s != nil {
		return max(b.view(s).cursor, b.cursor)
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
		v := b.view(s)
		v.cursor = max(v.cursor, e.Seq)
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

// expand replaces the variables of a word.
func (b *branch) expand(w script.Word) (string, error) { return w.Expand(b.variable) }

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
	e, ok := r.named(head)
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
	f.Expected, f.Observed, f.Entries = []string{e.what}, r.observed(e.entry), []int{e.entry.Seq}
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
func (r *run) window(s *session, in string, turn int) (after, to int, err error) {
	prompts := r.promptsOf(s)
	switch {
	case in == "run" || s == nil:
		return 0, -1, nil
	case turn > 0:
		if turn > len(prompts) {
			return 0, 0, fmt.Errorf("turn=%d: the session has had %d", turn, len(prompts))
		}
		to := -1
		if turn < len(prompts) {
			to = prompts[turn] - 1
		}
		return prompts[turn-1] - 1, to, nil
	case len(prompts) == 0:
		return 0, -1, nil
	}
	return prompts[len(prompts)-1] - 1, -1, nil
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

func unknownVariable(name string, known []string) error {
	return fmt.Errorf("unknown variable $%s%s", name, suggestion(name, known))
}
