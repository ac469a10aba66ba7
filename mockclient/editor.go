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

// Implementation is the editor's name and version in initialize (clientInfo).
type Implementation struct {
	Name    string `json:"name"`
	Title   string `json:"title,omitempty"`
	Version string `json:"version"`
}

// Options of an editor. The zero value is the default editor: it reads and writes files, its terminals are scripted
// and print nothing, it does not support elicitation, and its user rejects every permission request.
type Options struct {
	Capabilities Capabilities   // nil means DefaultCapabilities
	Info         Implementation // zero value means acp-test
	Version      int            // protocol version offered; 0 means 1
	Meta         map[string]any // _meta in initialize
	// Members are added to each of the editor's requests and notifications.
	Members     map[string]any
	Policy      *Policy      // nil rejects all requests, see Policy
	Files       *Files       // nil means the files on disk
	Terminals   *Terminals   // nil means scripted, with no output
	Elicitation *Elicitation // nil declines; used only if the capability is advertised
	// IDs returns the ids of the editor's requests; nil counts from 1.
	IDs IDs
	// TheirIDs makes the editor use the id of an open request of the agent for its own request, if there is one. The
	// protocol allows this, because the ids of the two sides are independent.
	TheirIDs bool
	// Add returns raw with optional members added. raw is the params of a method or, if result is true, the
	// result of the method's response. If Add is nil, no members are added.
	Add func(method string, result bool, raw []byte) []byte
	// Escape writes each / as \/, and each character outside ASCII as \u escapes, as programs in some languages do.
	Escape bool
	// Handlers answers requests of the agent, by method. A handler replaces the editor's built-in answer to the
	// method. All handlers run in one goroutine, in the order in which the requests arrive. A handler that has to
	// wait must therefore start a goroutine.
	Handlers map[string]func(*Request)
	// Within is the directory that must contain all files of all sessions, even if a session names other directories;
	// "" means any directory.
	Within string
	// Hold lists methods whose requests the editor leaves open until Answer is called.
	Hold []string
	// IgnoreCancelRequest makes the editor ignore $/cancel_request, as editors that do not support it may.
	IgnoreCancelRequest bool
}

// Editor is the editor's side of one connection. All methods may be called from any goroutine.
type Editor struct {
	agent *Agent
	t     *transcript.Transcript
	opts  Options
	caps  Capabilities
	tools *toolNames
	ended chan struct{}
	inbox *queue // the agent's requests that wait for handling

	files     *Files
	terminals *ledger

	// mu guards the fields below. It is locked while a frame of the editor is appended, so that the state and the
	// transcript change together. Lock order: mu, then the transcript's lock; an observer must not take mu.
	mu       sync.Mutex
	nextID   int
	ids      IDs
	policy   *Policy
	elicit   *Elicitation
	refused  map[string]bool // methods to answer with an error
	hold     map[string]func(params wire.Value) bool
	pending  map[int]*pending      // by the Seq of the editor's request
	requests map[int]*Request      // the agent's open requests, by Seq
	handled  int                   // Seq of the latest request whose handling has started
	early    map[int]bool          // Seqs of later requests that a caller has answered
	unheld   map[int]bool          // Seqs of requests that Unhold has released
	sessions map[string]*workspace // by session id
	info     *AgentInfo
	over     bool
}

// NewEditor returns an editor that uses the agent's connection. Each agent can have only one editor.
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

// handling is the maximum time that handlers may still run after the agent has ended.
const handling = 10 * time.Second

// Transcript returns the transcript of the run.
func (e *Editor) Transcript() *transcript.Transcript { return e.t }

func (e *Editor) Agent() *Agent { return e.agent }

// Close ends the agent as Agent.Stop does. It also drops the editor's delayed responses and ends its terminals.
func (e *Editor) Close(ctx context.Context) Shutdown { return e.agent.Stop(ctx) }

// SetPolicy replaces the permission policy. It does not affect requests for which an answer has been chosen. If
// p.Remember is the same as in the old policy, remembered answers stay valid.
func (e *Editor) SetPolicy(p *Policy) {
	p = cmp.Or(p, &Policy{})
	e.mu.Lock()
	defer e.mu.Unlock()
	p.recall(e.policy)
	e.policy = p
}

// SetElicitation replaces the rules for answering elicitations.
func (e *Editor) SetElicitation(p *Elicitation) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.elicit = cmp.Or(p, &Elicitation{})
}

// HoldIf makes the editor leave a request of the given method open if the function is returns true for the request's
// params.
func (e *Editor) HoldIf(method string, is func(params wire.Value) bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.hold[method] = is
}

// Refuse makes the editor answer the agent's requests of a method with an internal error, if on is true, and normally
// again if on is false.
func (e *Editor) Refuse(method string, on bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.refused[method] = on
}

func (e *Editor) Files() *Files { return e.files }

// end ends all open calls, requests and terminals. It runs once, after the agent has ended.
func (e *Editor) end() {
	e.terminals.closeAll()
	e.mu.Lock()
	defer e.mu.Unlock()
	e.over = true
	for seq, p := range e.pending {
		if p.call != nil && p.call.writing {
			continue // the error of the write, if there is one, tells more
		}
		if p.call != nil {
			p.call.finish(transcript.Entry{}, ErrExited)
		}
		delete(e.pending, seq)
	}
	for _, r := range e.requests {
		r.stopTimer()
	}
	for _, w := range e.sessions {
		w.close()
	}
}

// receive handles a frame from the agent. It only queues requests, which another goroutine handles. It runs in the
// goroutine that reads the connection.
func (e *Editor) receive(f transcript.Entry) {
	switch f.Kind {
	case transcript.Response:
		e.received(f)
	case transcript.Request:
		e.inbox.put(f.Seq)
	case transcript.Notification:
		// The editor need not react to other notifications: updates are in the transcript, and a client may ignore
		// elicitation/complete.
		if f.Method == "$/cancel_request" {
			e.inbox.put(f.Seq)
		}
		if f.Method == "session/update" && e.caps.On("subagents") {
			e.adopt(f)
		}
		if f.Ref > 0 { // version 2: the work on a prompt has ended
			e.mu.Lock()
			if w, ok := e.sessions[f.Session]; ok {
				clear(w.prompts)
				clear(w.cancelled)
			}
			e.mu.Unlock()
		}
	}
}

// pending is a request of the editor that has no response yet.
type pending struct {
	call    *Call // nil for a line sent by Send
	method  string
	session string
	roots   []string // directories in a request that opens a session
}

// sent updates the editor's state after a frame of the editor was appended to the transcript. The caller holds mu. It
// returns the permission requests that the editor must now answer with cancelled.
func (e *Editor) sent(f transcript.Entry, call *Call) []*Request {
	switch f.Kind {
	case transcript.Request:
		p := &pending{call: call, method: f.Method, session: f.Session}
		e.pending[f.Seq] = p
		switch f.Method {
		case "session/new", "session/load", "session/resume", "session/fork":
			params := f.JSON().Get("params")
			p.roots = directoriesOf(params)
			// The agent may request files before it responds to session/load.
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

// received updates the editor's state for a response and completes the call that it answers.
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
			clear(w.cancelled) // the session's turn continues
		}
	}
	if p.call != nil {
		p.call.finish(f, nil)
	}
}

// Format implements fmt.Formatter. For every verb, it prints the agent. Without Format, a matcher library would print
// the editor by reflection and read fields that other goroutines change.
func (e *Editor) Format(s fmt.State, _ rune) { fmt.Fprint(s, e.agent) }

// Note records a decision of the editor. It is the content of an entry of kind transcript.Noted.
type Note struct {
	// Code identifies the decision for programs, such as "permission-default", "permission-fallback", "path-refused"
	// or "unknown-session".
	Code string `json:"code"`
	// Text describes the decision in one sentence for people.
	Text string `json:"text"`
	// Request is the Seq of the request that the note is about.
	Request int `json:"request,omitempty"`
	// Refused is the path that was refused because it is outside of the session's directories.
	Refused string `json:"refused,omitempty"`
	// Wanted and Chosen are kinds of permission options: the kind in the policy and the kind that was chosen.
	Wanted string `json:"wanted,omitempty"`
	Chosen string `json:"chosen,omitempty"`
	// Inconclusive is true if a check that depends on this decision cannot give a verdict.
	Inconclusive bool `json:"inconclusive,omitempty"`
}

func (e *Editor) note(session string, r Note) {
	e.t.Event(e.agent.Conn(), transcript.Note, transcript.Noted, session, r)
}

// Types of package transport that concern the agent.
type (
	// Agent is one running agent.
	Agent = transport.Agent
	// Command says how to run an agent as a process.
	Command = transport.Command
	// Exit says how an agent ended.
	Exit = transport.Exit
	// Process is a process of the agent's tree.
	Process = transport.ProcessInfo
	// Shutdown describes how an agent was ended.
	Shutdown = transport.Shutdown
	// Shape describes how frames to the agent are split into writes.
	Shape = transport.Shape
	// Pace describes how long an editor waits before it reads a line and before it answers a request.
	Pace = transport.Pace
)

// Errors of writing to an agent.
var (
	ErrExited      = transport.ErrExited
	ErrStdinClosed = transport.ErrStdinClosed
)

// Start starts an agent as connection conn of the run with the transcript t. ctx applies only to the start.
func Start(ctx context.Context, t *transcript.Transcript, conn int, c Command) (*Agent, error) {
	return transport.Start(ctx, t, conn, c)
}

// InProcess runs an agent inside this process, as transport.InProcess does.
func InProcess(
	t *transcript.Transcript, conn int, serve func(ctx context.Context, in io.Reader, out io.Writer) error,
) *Agent {
	return transport.InProcess(t, conn, serve)
}
