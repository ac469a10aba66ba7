package mockclient

import (
	"errors"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/acp-test/acp-test/internal/confined"
	"github.com/acp-test/acp-test/internal/glob"
	"github.com/acp-test/acp-test/internal/lists"
	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/wire"
)

// Terminals configures how the editor answers terminal/*. With the zero value, terminals are scripted and start no
// processes: every command exits at once with status 0 and prints nothing.
type Terminals struct {
	// Real makes the editor run commands on a pty. Env is their environment.
	Real       bool
	Env        []string
	Rows, Cols uint16 // size of the pty; 0 means 24 and 80
	// Allow lists globs over command lines (the words joined with spaces). A real terminal runs only matching
	// commands, so the empty list allows none. Other commands get error -32602 and a Note.
	Allow []string
	// Script configures the commands in a scripted terminal. The first element that matches a command decides.
	Script []ScriptedCommand
}

// ScriptedCommand configures the behaviour of a command in a scripted terminal.
type ScriptedCommand struct {
	Match  string // glob over the command line; "" matches every command
	Output string
	Exit   int
	Signal string // the command ends by this signal; "" means it exits
	Hold   bool   // runs until killed, released or ended by Editor.EndTerminal
	// Error is the error with which terminal/create is answered; nil means success.
	Error *RPCError
}

// mostOutput is the number of bytes of output that are kept if the agent set no limit.
const mostOutput = 64 << 20

// ExitStatus says how a terminal's command ended (ACP v1, TerminalExitStatus).
type ExitStatus struct {
	ExitCode *int   `json:"exitCode,omitempty"`
	Signal   string `json:"signal,omitempty"`
}

// statusOf returns the status of a command that was ended by a signal or, if signal is "", that exited with a code.
func statusOf(code int, signal string) ExitStatus {
	if signal != "" {
		return ExitStatus{Signal: signal}
	}
	return ExitStatus{ExitCode: &code}
}

// TerminalState is the state of one terminal.
type TerminalState struct {
	ID, Session, Command string
	Created              int // Seq of the terminal/create request
	Exit                 *ExitStatus
	Released             bool
}

// ledger contains all terminals of a connection.
type ledger struct {
	a    *Agent
	opts Terminals

	mu    sync.Mutex
	terms map[string]*terminal
	list  []*terminal
	over  chan struct{}
	waits sync.WaitGroup
}

// terminal is one terminal. The ledger's lock guards its fields.
type terminal struct {
	TerminalState
	limit     int
	output    []byte
	truncated bool
	done      chan struct{} // closed when the command has ended
	kill      func()        // ends the command if it runs
	free      func()        // frees the terminal's resources
}

func newLedger(a *Agent, o *Terminals) *ledger {
	l := &ledger{a: a, terms: map[string]*terminal{}, over: make(chan struct{})}
	if o != nil {
		l.opts = *o
	}
	return l
}

// Terminals returns the states of all terminals of the connection, in order of creation.
func (e *Editor) Terminals() []TerminalState {
	l := e.terminals
	l.mu.Lock()
	defer l.mu.Unlock()
	return lists.Map(l.list, func(t *terminal) TerminalState { return t.TerminalState })
}

// EndTerminal ends the running command of a scripted terminal with a status. It returns false if there is no such
// terminal, the terminals are real, or the command has already ended.
func (e *Editor) EndTerminal(id string, status ExitStatus) bool {
	t := e.terminals.find(id)
	if t == nil || e.terminals.opts.Real {
		return false
	}
	return e.terminals.exited(t, status)
}

type termEvent struct {
	Terminal string   `json:"terminal"`
	Command  string   `json:"command,omitempty"`
	Args     []string `json:"args,omitempty"`
	Dir      string   `json:"cwd,omitempty"`
	PID      int      `json:"pid,omitempty"`
	Bytes    int      `json:"bytes,omitempty"`
	Data     string   `json:"data,omitempty"`
	ExitStatus
}

func (l *ledger) event(t *terminal, k transcript.Kind, v termEvent) {
	v.Terminal = t.ID
	l.a.Transcript().Event(l.a.Conn(), transcript.Terminal, k, t.Session, v)
}

func (l *ledger) find(id string) *terminal {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.terms[id]
	if t == nil || t.Released {
		return nil
	}
	return t
}

// terminal answers terminal/create, output, wait_for_exit, kill and release (ACP v1, Terminals).
func (e *Editor) terminal(r *Request) {
	if r.Entry.Method == "terminal/create" {
		e.createTerminal(r)
		return
	}
	l := e.terminals
	id, session := r.Params.Get("terminalId"), r.Params.Get("sessionId")
	if id.Kind() != wire.String || session.Kind() != wire.String {
		r.Fail(codeInvalidParams, "sessionId and terminalId are required strings")
		return
	}
	t := l.find(id.Str())
	if t == nil || t.Session != session.Str() {
		r.Fail(codeNotFound, "no terminal %q in this session", wire.Clip(id.Str(), 100))
		return
	}
	switch r.Entry.Method {
	case "terminal/output":
		r.Reply(l.outputOf(t))
	case "terminal/wait_for_exit":
		l.await(r, t)
	case "terminal/kill":
		t.kill()
		r.Reply(empty{})
	case "terminal/release":
		l.release(t)
		r.Reply(empty{})
	}
}

func (e *Editor) createTerminal(r *Request) {
	l := e.terminals
	session, command := r.Params.Get("sessionId"), r.Params.Get("command")
	if session.Kind() != wire.String || command.Kind() != wire.String || command.Str() == "" {
		r.Fail(codeInvalidParams, "sessionId and command are required strings")
		return
	}
	dir, ok := e.terminalDir(r)
	if !ok {
		return
	}
	words := append([]string{command.Str()}, texts(r.Params.Get("args"))...)
	t := &terminal{
		TerminalState: TerminalState{Session: session.Str(), Command: strings.Join(words, " "), Created: r.Entry.Seq},
		limit:         positive64(r.Params.Get("outputByteLimit"), mostOutput),
		done:          make(chan struct{}),
		kill:          func() {}, free: func() {},
	}
	if l.opts.Real {
		l.startReal(r, t, words, dir, environ(r.Params.Get("env")))
		return
	}
	does, _ := lists.Find(l.opts.Script, func(s ScriptedCommand) bool {
		return s.Match == "" || glob.Text(s.Match, t.Command)
	})
	if does.Error != nil {
		r.respond(func() (any, *RPCError) { return nil, does.Error })
		return
	}
	l.add(t)
	l.event(t, transcript.TermStarted, termEvent{Command: words[0], Args: words[1:], Dir: dir})
	t.kill = func() { l.exited(t, ExitStatus{Signal: "SIGKILL"}) }
	if does.Output != "" {
		l.print(t, []byte(does.Output))
	}
	if !does.Hold {
		l.exited(t, statusOf(does.Exit, does.Signal))
	}
	r.Reply(created{t.ID})
}

type created struct {
	TerminalID string `json:"terminalId"`
}

// terminalDir returns the directory in which a command runs: the request's cwd, or by default the session's first
// directory. If cwd is not in the session's directories, terminalDir answers the request with an error and returns
// false.
func (e *Editor) terminalDir(r *Request) (string, bool) {
	roots, known := e.rootsOf(r.Params.Get("sessionId").Str())
	if !known {
		r.Fail(codeInvalidParams, "unknown session %q", wire.Clip(r.Params.Get("sessionId").Str(), 100))
		return "", false
	}
	cwd := r.Params.Get("cwd")
	if cwd.Kind() != wire.String {
		if len(roots) == 0 {
			return e.opts.Within, true
		}
		return roots[0].Dir(), true
	}
	if !filepath.IsAbs(cwd.Str()) {
		r.Fail(codeInvalidParams, "the cwd %q is not absolute", wire.Clip(cwd.Str(), 300))
		return "", false
	}
	clean := filepath.Clean(cwd.Str())
	for _, root := range roots {
		if rel, ok := root.Rel(clean); ok {
			if info, err := root.Stat(rel); err == nil && info.IsDir() {
				return clean, true
			} else if !errors.Is(err, confined.ErrOutside) {
				r.Fail(codeNotFound, "no such directory: %s", clean)
				return "", false
			}
		}
	}
	e.refuse(r, cwd.Str())
	return "", false
}

func positive64(v wire.Value, absent int) int {
	if n, ok := v.Int(); ok && n >= 0 {
		return int(min(n, int64(absent)))
	}
	return absent
}

func environ(list wire.Value) []string {
	pairs := lists.Having(list.Items(), func(v wire.Value) bool {
		return v.Get("name").Kind() == wire.String && v.Get("value").Kind() == wire.String
	})
	return lists.Map(pairs, func(v wire.Value) string { return v.Get("name").Str() + "=" + v.Get("value").Str() })
}

func (l *ledger) add(t *terminal) {
	l.mu.Lock()
	defer l.mu.Unlock()
	t.ID = "term-" + strconv.Itoa(l.a.Conn()) + "-" + strconv.Itoa(len(l.list)+1)
	l.terms[t.ID] = t
	l.list = append(l.list, t)
}

func (l *ledger) exited(t *terminal, status ExitStatus) bool {
	l.mu.Lock()
	if t.Exit != nil {
		l.mu.Unlock()
		return false
	}
	t.Exit = &status
	l.mu.Unlock()
	l.event(t, transcript.TermExit, termEvent{ExitStatus: status})
	close(t.done)
	return true
}

// await answers terminal/wait_for_exit when the command has ended. It waits in a goroutine of its own, so that other
// requests are not blocked.
func (l *ledger) await(r *Request, t *terminal) {
	cancelled := make(chan struct{})
	var once sync.Once
	r.e.mu.Lock()
	r.onCancel = func() { once.Do(func() { close(cancelled) }) }
	r.e.mu.Unlock()
	l.waits.Go(func() {
		select {
		case <-t.done:
			l.mu.Lock()
			status := *t.Exit
			l.mu.Unlock()
			r.Reply(status)
		case <-cancelled:
		case <-l.over:
		}
	})
}

func (l *ledger) release(t *terminal) {
	l.mu.Lock()
	was := t.Released
	t.Released = true
	l.mu.Unlock()
	if was {
		return
	}
	t.kill()
	t.free()
	l.event(t, transcript.TermReleased, termEvent{})
	l.mu.Lock()
	t.output = nil
	l.mu.Unlock()
}

// closeAll ends every terminal when the connection ends. The ledger still shows which terminals the agent did not
// release.
func (l *ledger) closeAll() {
	l.mu.Lock()
	list := l.list
	l.mu.Unlock()
	for _, t := range list {
		t.kill()
		t.free()
	}
	// Killed commands take a moment to end. A command that cannot be killed must not block the run. It is reported as
	// a process that outlives the agent.
	patience := time.After(5 * time.Second)
	for _, t := range list {
		select {
		case <-t.done:
			continue
		case <-patience:
		}
		break
	}
	close(l.over)
	waited := make(chan struct{})
	go func() {
		l.waits.Wait()
		close(waited)
	}()
	select {
	case <-waited:
	case <-time.After(5 * time.Second):
	}
}

// print appends output of the command to the terminal and to the transcript.
func (l *ledger) print(t *terminal, p []byte) {
	l.mu.Lock()
	t.output = append(t.output, p...)
	if len(t.output) > 2*t.limit+utf8.UTFMax {
		// Discard old output only when there is twice as much as the limit, so that the total work stays linear.
		// outputOf applies the exact limit.
		t.output = append(t.output[:0], t.output[len(t.output)-t.limit-utf8.UTFMax:]...)
		t.truncated = true
	}
	l.mu.Unlock()
	l.event(t, transcript.TermOutput, termEvent{Bytes: len(p), Data: string(p)})
}

type termOutput struct {
	Output     string      `json:"output"`
	Truncated  bool        `json:"truncated"`
	ExitStatus *ExitStatus `json:"exitStatus,omitempty"`
}

func (l *ledger) outputOf(t *terminal) termOutput {
	l.mu.Lock()
	defer l.mu.Unlock()
	raw := t.output
	if t.Exit == nil {
		raw = wholeRunes(raw) // the rest of a character may still arrive
	}
	text := strings.ToValidUTF8(string(raw), "\uFFFD")
	tail := Tail(text, t.limit)
	return termOutput{tail, t.truncated || len(tail) < len(text), t.Exit}
}

// Tail returns the end of a UTF-8 text: at most limit bytes, beginning at a character boundary (ACP v1, Terminals,
// outputByteLimit).
func Tail(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	from := len(text) - max(limit, 0)
	for from < len(text) && !utf8.RuneStart(text[from]) {
		from++
	}
	return text[from:]
}

// wholeRunes removes an incomplete character from the end of b.
func wholeRunes(b []byte) []byte {
	for n := 1; n <= min(len(b), utf8.UTFMax-1); n++ {
		last := b[len(b)-n:]
		if utf8.RuneStart(last[0]) {
			if !utf8.FullRune(last) {
				return b[:len(b)-n]
			}
			break
		}
	}
	return b
}
