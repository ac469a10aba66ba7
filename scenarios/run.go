package scenarios

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/acp-test/acp-test/fakellm"
	"github.com/acp-test/acp-test/internal/confined"
	"github.com/acp-test/acp-test/internal/evidence"
	"github.com/acp-test/acp-test/internal/lists"
	"github.com/acp-test/acp-test/internal/workspace"
	"github.com/acp-test/acp-test/mistake"
	"github.com/acp-test/acp-test/rules"
	"github.com/acp-test/acp-test/scenarios/language"
	"github.com/acp-test/acp-test/scenarios/results"
	"github.com/acp-test/acp-test/scenarios/script"
	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/wire"
)

// run is the state of one run of a scenario.
type run struct {
	engine   *Engine
	scenario *Scenario
	box      *workspace.Dirs
	files    *confined.Root // box.Root, opened before the agent ran
	t        *transcript.Transcript
	model    *fakellm.Server
	trap     *fakellm.Trap           // nil if connections to other machines are not blocked
	cutShort context.CancelCauseFunc // ends the script

	checker *rules.Checker
	judged  func() // waits until the checker has seen all entries
	told    func(e transcript.Entry, path string) (string, bool)
	client  Client
	state   state
	flood   flood
	effects effects
	folder  *evidence.Folder // nil if no artifacts are written
	below   string           // path of the scenarios within folder
	log     *evidence.File   // the transcript's file
	// launching is locked while an agent starts.
	launching sync.Mutex
	rendered  string
}

// Login returns the id of the login method in the profile, or "".
func (b *Branch) Login() string { return b.run.engine.Profile.Auth }

// Provided reports whether the editor tells the agent its model with providers/set.
func (b *Branch) Provided() bool { return b.run.engine.Profile.Providers }

// StartMode returns the mode that the editor sets in new sessions; "" keeps the agent's initial mode.
func (b *Branch) StartMode() string { return b.run.engine.startMode }

// Lacks returns the reason why the agent lacks a neutral tool, or an ability of such a tool. It returns "" if the
// agent has it.
func (b *Branch) Lacks(need string) string { return b.run.engine.Profile.Lacks(need) }

// Session is a conversation that the script opened.
type Session struct {
	// Name is the session's name in the script. ID is its id in the protocol.
	Name, ID string
	// Dir is the session's working directory.
	Dir string

	// coming returns the session's ID, or "" until the agent has sent it. coming is nil if the ID is already known.
	coming  func() string
	begin   int   // Seq from which the session's first await searches
	prompts []int // Seqs of its prompts; the lock of the run's state protects it
}

// NewSession returns a session that a line is about to open. Its first await searches from the branch's current
// position.
func (b *Branch) NewSession(name, dir string) *Session {
	return &Session{Name: name, Dir: dir, begin: b.At()}
}

// OpensBy records that a session will be open as soon as id returns its ID. Until then, id returns "".
func (b *Branch) OpensBy(c *Session, id func() string) {
	b.change(func(s *state) { c.coming, s.opening = id, append(s.opening, c) })
}

// view is the position up to which one branch has read one session.
type view struct {
	cursor int   // Seq from which await searches
	ended  int   // Seq of the last turn end that await found
	over   []int // prompts whose turn end await has found
}

// Branch is a thread of control: the script, or one side of a "both". Lines that name no session use the branch's
// session.
type Branch struct {
	*run
	session *Session
	cursor  int // position while no session is open
	views   map[*Session]*view
	group   *group
	apart   bool // the branch is one side of a "both"
}

// view returns this branch's reading position in a session.
func (b *Branch) view(s *Session) *view {
	v := b.views[s]
	if v == nil {
		v = &view{cursor: s.begin}
		if b.views == nil {
			b.views = map[*Session]*view{}
		}
		b.views[s] = v
	}
	return v
}

// fork returns a branch for one side of a "both". It starts at the positions of b and then advances independently.
func (b *Branch) fork() *Branch {
	own := &Branch{run: b.run, session: b.Session(), cursor: b.cursor, views: map[*Session]*view{}, apart: true}
	for s, v := range b.views {
		own.views[s] = &view{v.cursor, v.ended, slices.Clone(v.over)}
	}
	return own
}

// join moves b forward to the positions that one side of a "both" has reached.
func (b *Branch) join(side *Branch) {
	b.cursor = max(b.cursor, side.cursor)
	for s, v := range side.views {
		mine := b.view(s)
		mine.cursor, mine.ended = max(mine.cursor, v.cursor), max(mine.ended, v.ended)
		mine.over = lists.With(mine.over, v.over...)
	}
}

// group is the state of a running group { }.
type group struct {
	taken map[int]bool
	ends  map[*Session]int // session -> the last entry that a line matched in it; the key nil means no session
}

// checkState is a check with its misses so far.
type checkState struct {
	decl    *language.Check
	reached bool
	misses  []*Miss
}

// Miss is the error of a line whose expectation was not met.
type Miss struct {
	Failure *transcript.Failure
	// Verdict is set if the line itself determines it (inconclusive). If it is 0, the check's class decides.
	Verdict results.Verdict
	// Effect means that the line expects an effect or an end. Its miss is a failure even in a check without
	// requirements.
	Effect bool
	// Unanswered is the requirement that the agent broke by sending no response before the timeout, or "". The miss breaks
	// it in addition to the requirements of the check.
	Unanswered string
	// Soft means that the script continues, because no later line depends on this one.
	Soft bool
	// setup means that the miss belongs to an implied step, such as the agent's start, and not to a line. It counts
	// against the scenario instead of a check.
	setup bool
	// turnOpen is the Seq of a prompt if its turn did not end although a line awaited the end; else 0.
	turnOpen int
	// turnEnd is the Seq of a turn end after a cancel, if its stop reason is not cancelled; else 0. A rule decides
	// whether that is a failure.
	turnEnd int
	// by is the entry that made a match impossible, or the zero Entry.
	by transcript.Entry
	// ofTool means that the line expects an effect of a tool call. at is the length of the transcript when the line
	// missed.
	ofTool bool
	// why is the reason why the miss proves nothing, or "".
	why string
	at  int
}

// reason explains in one sentence why the miss proves nothing.
func (m *Miss) reason() string {
	if m.why != "" {
		return m.why
	}
	if m.ofTool && m.Verdict == results.Inconclusive && m.Failure.Reason != "" {
		return m.Failure.Reason
	}
	return m.Failure.Error()
}

func (m *Miss) Error() string { return m.Failure.Error() }

// Skipped is the error that ends a scenario because it does not apply.
type Skipped struct{ Reason string }

func (s *Skipped) Error() string { return s.Reason }

// Session returns the session for lines that name none: the branch's own session, else the session opened last.
func (b *Branch) Session() *Session {
	if b.session != nil {
		return b.session
	}
	return b.lastSession(func(*Session) bool { return true })
}

// Speak sets the own session of a branch that is one side of a "both". The session opened last might belong to the
// other side.
func (b *Branch) Speak(s *Session) {
	if b.apart {
		b.session = s
	}
}

// At returns the branch's position: the Seq from which it searches.
func (b *Branch) At() int {
	if s := b.Session(); s != nil {
		return max(b.view(s).cursor, b.cursor)
	}
	return b.cursor
}

// Acted moves the branch's position forward to an entry that an act of the script logged.
func (b *Branch) Acted(s *Session, e transcript.Entry) {
	if e.Seq == 0 {
		return
	}
	b.run.Settle(e)
	if s != nil {
		v := b.view(s)
		v.cursor = max(v.cursor, e.Seq)
	} else {
		b.cursor = max(b.cursor, e.Seq)
	}
}

// reach moves the branch's position forward to an entry that await found, never backward.
func (b *Branch) reach(s *Session, e transcript.Entry) {
	if g := b.group; g != nil {
		b.run.Settle(e)
		g.taken[e.Seq] = true
		g.ends[s] = max(g.ends[s], e.Seq)
		return
	}
	b.Acted(s, e)
}

// Expand expands the variables of a word.
func (b *Branch) Expand(w script.Word) (string, error) { return w.Expand(b.Variable) }

// Content returns a text to send. It expands variables, and also the variables within an expanded value.
func (b *Branch) Content(l *Line, w script.Word) (string, error) {
	text, err := b.Expand(w)
	if err == nil {
		text, err = script.ExpandText(l.File(), text, b.Variable)
	}
	if err != nil {
		return "", l.Fault(err)
	}
	return text, nil
}

// Dress adds headers from options of the form header=NAME:VALUE.
func (b *Branch) Dress(header map[string]string, options []script.Word) error {
	for _, w := range options {
		text, err := b.Expand(w)
		if err != nil {
			return err
		}
		name, value, _ := strings.Cut(text, ":")
		header[name] = strings.TrimSpace(value)
	}
	return nil
}

// Variable returns the value of $NAME, $NAME(ARG) or $NAME.path.
func (b *Branch) Variable(name string) (string, error) {
	r := b.run
	if v, err := r.Fixed(name); err == nil {
		return v, nil
	}
	head, arg, call := strings.Cut(strings.TrimSuffix(name, ")"), "(")
	switch {
	case call && head == "SESSION":
		if s := r.Named(arg); s != nil {
			return s.ID, nil
		}
		return "", r.NotOpen(arg)
	case call && r.protocol().Variables[head] != nil:
		return r.protocol().Variables[head](r.t, arg)
	case name == "SESSION":
		if s := b.Session(); s != nil {
			return s.ID, nil
		}
		return "", errors.New("no session is open")
	}
	head, path, _ := strings.Cut(name, ".")
	if v, ok := r.taken(head); ok {
		return v.Path(path).Text(), nil
	}
	e, ok := r.named(head)
	if !ok {
		return "", unknownVariable(name, append([]string{"WORK", "HOME", "TMP", "SESSION"},
			slices.Sorted(maps.Keys(r.protocol().Variables))...))
	}
	from := r.answerOf(e) // the name of an editor's request means its response, once there is one
	if from.Seq != e.Seq {
		if _, text, ok := r.lookup(from, cmp.Or(path, r.protocol().SessionPath)); ok {
			return text, nil
		}
	}
	if path == "" {
		return r.natural(e), nil
	}
	if _, text, ok := r.lookup(e, path); ok {
		return text, nil
	}
	return "", &lacking{what: head + "." + path, entry: from}
}

// lacking is the error of a line that needs a field which an entry does not have. If the agent sent the entry, the
// error is no mistake of the scenario.
type lacking struct {
	what  string
	entry transcript.Entry
}

// Blameless implements language.Blameless.
func (e *lacking) Blameless() bool { return e.entry.Source == transcript.Agent }

func (e *lacking) Error() string {
	return fmt.Sprintf("there is no %s in #%d", e.what, e.entry.Seq)
}

// miss returns an inconclusive Miss that reports e.what as missing.
func (e *lacking) miss(r *run, l *Line) *Miss {
	return r.NoSituation(l, e.what, r.observed(e.entry), e.entry.Seq)
}

// NoSituation returns an inconclusive Miss of a line because the agent did not bring about a situation.
func (r *run) NoSituation(l *Line, expected, observed string, entries ...int) *Miss {
	f := r.Failure(l, transcript.Outcome{})
	f.Expected, f.Observed, f.Entries = []string{expected}, observed, entries
	return &Miss{Failure: f, Verdict: results.Inconclusive}
}

// NotOpen returns the error of a line that names a session which is not open. The error is a mistake of the scenario,
// unless the agent refused to open a session.
func (r *run) NotOpen(name string) error {
	refusals := lists.Having(r.t.All(), func(e transcript.Entry) bool {
		return e.Source == transcript.Agent && e.Kind == transcript.Response && r.protocol().OpensSession(e.Method) &&
			e.JSON().Get("error").Exists()
	})
	if n := len(refusals); n > 0 {
		return &lacking{what: "session " + name, entry: refusals[n-1]}
	}
	return fmt.Errorf("session %s is not open", name)
}

// Fixed returns the value of a variable that is known before the script starts.
func (r *run) Fixed(name string) (string, error) {
	switch name {
	case "WORK":
		return r.box.Work, nil
	case "HOME":
		return r.box.Home, nil
	case "TMP":
		return r.box.Temp, nil
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

// natural returns the value of a named entry for a script that gives no path.
func (r *run) natural(e transcript.Entry) string {
	for _, path := range r.protocol().Stands(e) {
		if _, text, ok := r.lookup(e, path); ok {
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

// InWork returns the absolute path for a path in the script. A relative path is relative to the workspace.
func (r *run) InWork(name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(r.box.Work, filepath.FromSlash(name))
}

// ReadFile reads a regular file; name is a path in the script. An error may be caused by the agent, which may have
// created the file.
func (r *run) ReadFile(ctx context.Context, name string) (data []byte, err error) {
	wait, cancel := r.StepTimeout(ctx, 0)
	defer cancel()
	err = r.find(name, func(root *confined.Root, name string) error {
		data, err = root.ReadFile(wait, name, confined.Limit)
		return err
	})
	return data, err
}

// lstat returns an error if a file of the workspace does not exist. It does not follow links.
func (r *run) lstat(name string) error {
	return r.find(name, func(root *confined.Root, name string) error {
		_, err := root.Lstat(name)
		return err
	})
}

// Path expands a word that is the path of a file or folder. A path outside the run's directories is a mistake of the
// scenario.
func (b *Branch) Path(l *Line, w script.Word) (string, error) {
	name, err := b.Expand(w)
	if err != nil {
		return "", l.Fault(err)
	}
	if err = b.find(name, func(*confined.Root, string) error { return nil }); err != nil {
		err = l.Fault(err)
	}
	return name, err
}

// find calls do with a path of the script, relative to root, the run's directory. It returns an error for a path
// outside that directory.
func (r *run) find(name string, do func(root *confined.Root, name string) error) error {
	rel, ok := r.files.Rel(r.InWork(name))
	if !ok {
		return fmt.Errorf("%s is outside of the run's directories: name a file below $WORK, $HOME or $TMP", name)
	}
	return do(r.files, rel)
}

func unknownVariable(name string, known []string) error {
	return fmt.Errorf("unknown variable $%s%s", name, mistake.Meant(name, known))
}
