package mockclient

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/transport"
	"github.com/acp-test/acp-test/wire"
)

// Implementation names the editor in initialize.
type Implementation struct {
	Name    string `json:"name"`
	Title   string `json:"title,omitempty"`
	Version string `json:"version"`
}

// Options of an editor. The zero value is the default editor: it reads and writes
// files, has a scripted terminal and no elicitation, and its user rejects every
// permission.
type Options struct {
	Capabilities Capabilities   // nil means DefaultCapabilities
	Info         Implementation // empty means acp-test
	Version      int            // protocol version offered; 0 means 1
	Meta         map[string]any // _meta of initialize
	// Members are added to each of the editor's requests and notifications.
	Members     map[string]any
	Policy      *Policy      // nil rejects, see Policy
	Files       *Files       // nil means the plain disk
	Terminals   *Terminals   // nil means scripted, with no output
	Elicitation *Elicitation // nil declines; matters only if advertised
	// IDs makes the ids of the editor's requests; nil counts from 1.
	IDs IDs
	// TheirIDs gives a request the id of an open request of the agent, if there
	// is one. That is allowed, because each side counts its own ids.
	TheirIDs bool
	// Nulls adds members that are null to the params of a method, or to the result of
	// its response; nil leaves them out.
	Nulls func(method string, result bool, raw []byte) []byte
	// Handlers answer further methods of the agent, or replace the built-in
	// answer to a method. All handlers run in one goroutine, in the order of
	// arrival: a handler that waits must hand off to a goroutine.
	Handlers map[string]func(*Request)
	// Within is the directory that must contain all files of all sessions, even
	// if a session names other directories; "" means any.
	Within string
	// Hold names methods whose requests are left open for Answer.
	Hold []string
	// IgnoreCancelRequest makes the editor ignore $/cancel_request, as editors
	// without support for it may.
	IgnoreCancelRequest bool
}

// Editor is one connection as an editor sees it. All methods may be called from
// any goroutine.
type Editor struct {
	agent *Agent
	t     *transcript.Transcript
	opts  Options
	caps  Capabilities
	tools *toolNames
	ended chan struct{}
	inbox *queue // the agent's requests

	files     *Files
	terminals *ledger

	// mu guards the fields below. It is held while a frame of the editor is
	// appended, so that state and transcript change together. Lock order: mu,
	// then the transcript's lock; an observer must not take mu.
	mu       sync.Mutex
	nextID   int
	ids      IDs
	policy   *Policy
	elicit   *Elicitation
	refused  map[string]bool // methods
	hold     map[string]func(params wire.Value) bool
	pending  map[int]*pending      // by the Seq of our request
	requests map[int]*Request      // the agent's, not answered, by Seq
	handled  int                   // Seq of the latest request whose handling has begun
	early    map[int]bool          // Seqs of later ones, which a caller has answered
	unheld   map[int]bool          // Seqs of requests that Unhold has released
	sessions map[string]*workspace // by session id
	info     *AgentInfo
	over     bool
}

// NewEditor takes over the agent's connection. One editor per agent.
func NewEditor(a *Agent, o Options) *Editor {
	if o.Capabilities == nil {
		o.Capabilities = DefaultCapabilities()
	}
	if o.IDs == nil {
		o.IDs = CountingIDs(1)
	}
	o.Info = cmp.Or(o.Info, Implementation{Name: "acp-test", Title: "acp-test", Version: "1"})
	o.Version = cmp.Or(o.Version, 1)
	o.Policy, o.Files = cmp.Or(o.Policy, &Policy{}), cmp.Or(o.Files, &Files{})
	o.Elicitation = cmp.Or(o.Elicitation, &Elicitation{})
	e := &Editor{
		agent: a, t: a.Transcript(), opts: o, caps: o.Capabilities.Clone(),
		tools: newToolNames(a.Conn()), ended: make(chan struct{}), inbox: newQueue(),
		files: o.Files, ids: o.IDs, policy: o.Policy, elicit: o.Elicitation,
		refused: map[string]bool{}, hold: map[string]func(wire.Value) bool{}, pending: map[int]*pending{},
		requests: map[int]*Request{}, early: map[int]bool{}, unheld: map[int]bool{}, sessions: map[string]*workspace{},
	}
	for _, m := range o.Hold {
		e.hold[m] = func(wire.Value) bool { return true }
	}
	e.terminals = newLedger(a, o.Terminals)
	e.t.Observe(e.tools.observe)
	a.Receive(e.receive)
	go func() {
		<-a.AllReceived()
		e.inbox.close()
	}()

	handled := make(chan struct{})
	go func() {
		defer close(handled)
		for {
			seq, ok := e.inbox.get()
			if !ok {
				return
			}
			if !a.WasCut() {
				e.handle(e.t.At(seq))
			}
		}
	}()
	go func() {
		defer close(e.ended)
		<-a.Exited()
		<-handled
		e.end()
	}()
	a.AtEnd(func() {
		select {
		case <-e.ended:
		case <-time.After(handling):
			e.note("", Note{Code: "handler-hangs", Text: fmt.Sprintf("the editor still handled a request %v "+
				"after the agent had ended, and gave it up", handling)})
		}
	})
	return e
}

// handling is how long handlers may still work on a request after its agent has
// ended.
const handling = 10 * time.Second

// Transcript returns the log of the run.
func (e *Editor) Transcript() *transcript.Transcript { return e.t }

// Agent returns the agent this editor talks to.
func (e *Editor) Agent() *Agent { return e.agent }

// Close ends the agent as Agent.Stop does. It also ends the editor's delayed
// answers and terminals.
func (e *Editor) Close(ctx context.Context) Shutdown { return e.agent.Stop(ctx) }

// SetPolicy replaces the permission policy. Requests that are already decided keep
// their answer. If p has the same Remember as the old policy, remembered answers
// stay valid.
func (e *Editor) SetPolicy(p *Policy) {
	p = cmp.Or(p, &Policy{})
	e.mu.Lock()
	defer e.mu.Unlock()
	p.recall(e.policy)
	e.policy = p
}

// SetElicitation replaces the rules by which the editor answers elicitations.
func (e *Editor) SetElicitation(p *Elicitation) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.elicit = cmp.Or(p, &Elicitation{})
}

// HoldIf makes the editor leave requests of a method open if is returns true for
// their params.
func (e *Editor) HoldIf(method string, is func(params wire.Value) bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.hold[method] = is
}

// Refuse makes the editor answer the agent's requests of a method with an internal
// error, or normally again if on is false.
func (e *Editor) Refuse(method string, on bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.refused[method] = on
}

// Files returns the editor's files.
func (e *Editor) Files() *Files { return e.files }

// end runs once the agent is gone.
func (e *Editor) end() {
	e.terminals.closeAll()
	e.mu.Lock()
	defer e.mu.Unlock()
	e.over = true
	for _, p := range e.pending {
		if p.call != nil {
			p.call.finish(transcript.Entry{}, ErrExited)
		}
	}
	clear(e.pending)
	for _, r := range e.requests {
		r.stopTimer()
	}
	for _, w := range e.sessions {
		w.close()
	}
}

// receive acts at once on a frame of the agent, except that requests go to their
// goroutine. It runs in the goroutine that reads.
func (e *Editor) receive(f transcript.Entry) {
	switch f.Kind {
	case transcript.Response:
		e.received(f)
	case transcript.Request:
		e.inbox.put(f.Seq)
	case transcript.Notification:
		// Other notifications need no reaction: updates are in the transcript,
		// and elicitation/complete may be ignored.
		if f.Method == "$/cancel_request" {
			e.inbox.put(f.Seq)
		}
		if f.Method == "session/update" && e.caps.On("subagents") {
			e.adopt(f)
		}
		if f.Ref > 0 { // version 2: the work of a prompt is over
			e.mu.Lock()
			if w, ok := e.sessions[f.Session]; ok {
				clear(w.prompts)
				clear(w.cancelled)
			}
			e.mu.Unlock()
		}
	}
}

// pending is a request of the editor that has no answer yet.
type pending struct {
	call    *Call // nil for a raw line
	method  string
	session string
	roots   []string // of a request that opens a session
}

// sent updates the editor's state for a frame it sent. It runs under mu, right
// after the frame was appended. It returns the permission requests that the
// editor must now answer with cancelled.
func (e *Editor) sent(f transcript.Entry, call *Call) []*Request {
	switch f.Kind {
	case transcript.Request:
		p := &pending{call: call, method: f.Method, session: f.Session}
		e.pending[f.Seq] = p
		switch f.Method {
		case "session/new", "session/load", "session/resume", "session/fork":
			params := f.JSON().Get("params")
			p.roots = directoriesOf(params)
			// The agent may ask for files before it has answered a load.
			if f.Session != "" && f.Method != "session/fork" {
				e.openWorkspace(f.Session, p.roots)
			}
		case "session/prompt":
			w := e.workspace(f.Session)
			w.prompts[f.Seq] = true
		case "session/close":
			return e.cancelling(f.Session)
		}
	case transcript.Notification:
		if f.Method == "session/cancel" {
			return e.cancelling(f.Session)
		}
	}
	return nil
}

// cancelling marks the open prompts of a session as cancelled. It returns the
// permission requests that the editor must answer with cancelled. The caller
// holds mu.
func (e *Editor) cancelling(session string) []*Request {
	if w, ok := e.sessions[session]; ok {
		for seq := range w.prompts {
			w.cancelled[seq] = true
		}
	}
	return e.openPermissions(session)
}

// received updates the editor's state for an answer and completes its call.
func (e *Editor) received(f transcript.Entry) {
	e.mu.Lock()
	defer e.mu.Unlock()
	p := e.pending[f.Ref]
	if p == nil || f.Ref == 0 {
		return
	}
	delete(e.pending, f.Ref)
	switch p.method {
	case "initialize":
		if v := f.JSON().Get("result"); v.Kind() == wire.Object {
			e.info = &AgentInfo{result: v}
		}
	case "session/new", "session/fork":
		if id := f.JSON().Path("result.sessionId"); id.Kind() == wire.String {
			e.openWorkspace(id.Str(), p.roots)
		}
	case "session/prompt":
		if w, ok := e.sessions[p.session]; ok && !f.JSON().Path("result.messageId").Exists() {
			delete(w.prompts, f.Ref)
			delete(w.cancelled, f.Ref)
		}
	case "session/close":
		if w, ok := e.sessions[p.session]; ok && f.JSON().Get("error").Exists() {
			clear(w.cancelled) // the turn of the session continues
		}
	}
	if p.call != nil {
		p.call.finish(f, nil)
	}
}

// Format prints the agent that the editor talks to, for every verb. Without it, a
// matcher library would print the editor by reflection and read fields that other
// goroutines change.
func (e *Editor) Format(s fmt.State, _ rune) { fmt.Fprint(s, e.agent) }

// Note is the harness's note on one of its own decisions: the details of an entry
// of kind transcript.Noted.
type Note struct {
	// Code is for machines: "permission-default", "permission-fallback",
	// "permission-not-offered", "path-refused", "unknown-session", …
	Code string `json:"code"`
	// Text is one sentence for people.
	Text string `json:"text"`
	// Request is the Seq of the request that the note is about.
	Request int `json:"request,omitempty"`
	// Refused is the path that was refused because it leaves the session's
	// directories.
	Refused string `json:"refused,omitempty"`
	// Wanted and Chosen are kinds of permission options: the one that was asked
	// for and the one that was chosen.
	Wanted string `json:"wanted,omitempty"`
	Chosen string `json:"chosen,omitempty"`
	// Inconclusive says that a check which relies on this decision cannot give a
	// verdict.
	Inconclusive bool `json:"inconclusive,omitempty"`
}

func (e *Editor) note(session string, r Note) {
	e.t.Event(e.agent.Conn(), transcript.Note, transcript.Noted, session, r)
}

// Types of package transport, for the agent that an editor talks to.
type (
	// Agent is one running agent.
	Agent = transport.Agent
	// Command says how to run an agent as a process.
	Command = transport.Command
	// Exit says how an agent ended.
	Exit = transport.Exit
	// Process is a process of the agent's tree.
	Process = transport.ProcessInfo
	// Shutdown says how an agent was brought to its end.
	Shutdown = transport.Shutdown
	// Shape is how frames to the agent are cut into writes.
	Shape = transport.Shape
	// Pace is how long an editor takes to read a line and to answer a request.
	Pace = transport.Pace
)

// Errors of writing to an agent.
var (
	ErrExited      = transport.ErrExited
	ErrStdinClosed = transport.ErrStdinClosed
)

// Start runs an agent as connection conn of the run whose log is t. ctx bounds
// only the start.
func Start(ctx context.Context, t *transcript.Transcript, conn int, c Command) (*Agent, error) {
	return transport.Start(ctx, t, conn, c)
}

// InProcess runs an agent inside this process, as transport.InProcess does.
func InProcess(
	t *transcript.Transcript, conn int, serve func(ctx context.Context, in io.Reader, out io.Writer) error,
) *Agent {
	return transport.InProcess(t, conn, serve)
}
