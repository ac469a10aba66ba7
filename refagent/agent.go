package refagent

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log"
	"maps"
	"slices"
	"sync"
	"time"
)

// agent is the state of one connection.
type agent struct {
	ctx     context.Context
	end     context.CancelCauseFunc
	options Options
	hooks   Hooks
	habits  *Habits
	log     *log.Logger
	store   *store
	model   *Model
	conn    *connection
	tasks   sync.WaitGroup // turns and other work that continues after handling a line

	gate    sync.RWMutex // locked for reading while a line is handled
	stopped bool         // guarded by gate: no more lines are handled

	mu            sync.Mutex
	initialized   bool
	version       int  // the negotiated protocol version
	used          bool // there was a request after initialize
	authenticated bool
	client        ClientCapabilities
	sessions      map[string]*session
}

// errExit ends Run at once, without the usual shutdown. Only hooks cause it.
var errExit = errors.New("the agent was told to exit")

// linger is the maximum time that the agent waits, when a connection ends, for turns to end and for the editor to
// read the last frames.
const linger = 2 * time.Second

func (a *agent) serve() error {
	a.pause(a.habits.StartDelay)
	a.conn = newConnection(&a.hooks, a.habits, a.options.AnswerGrace)
	port := &Port{
		out:     a.conn.out,
		Emit:    a.conn.emit,
		Deliver: a.receive,
		Exit:    func() { a.conn.out.close(); a.end(errExit) },
		ctx:     a.ctx,
	}
	a.conn.port = port
	if a.hooks.Start != nil {
		a.hooks.Start(port)
	}

	written := make(chan error, 1)
	go func() { written <- a.conn.out.run(a.options.Out) }()
	read := make(chan error, 1)
	go func() {
		read <- readLines(a.options.In, func(line []byte) {
			if a.habits.Noise != "" {
				a.log.Print(a.habits.Noise)
			}
			for _, line := range a.conn.dress.in(line) {
				if a.hooks.Receive != nil {
					a.hooks.Receive(port, line)
				} else {
					a.receive(line)
				}
			}
		})
	}()

	var err error
	select {
	case err = <-read:
	case err = <-written:
	case <-a.ctx.Done():
		err = context.Cause(a.ctx)
	}
	close(a.conn.closed)
	if err != errExit {
		a.shutdown()
		a.pause(a.habits.EndDelay)
		if a.hooks.End != nil {
			a.hooks.End(a.ctx)
		}
		a.wait(port.finish) // before the context ends, so that late frames are sent
		a.end(nil)
	}
	a.conn.out.close()
	a.wait(func() { <-a.conn.out.done })
	if c, ok := a.options.In.(io.Closer); ok && err != errExit {
		c.Close()
	}
	return err
}

// pause waits for d or until the agent ends, whichever comes first.
func (a *agent) pause(d time.Duration) {
	if d <= 0 {
		return
	}
	select {
	case <-time.After(d):
	case <-a.ctx.Done():
	}
}

// shutdown ends all sessions and everything that they have started.
func (a *agent) shutdown() {
	a.gate.Lock()
	a.stopped = true
	a.gate.Unlock()
	a.mu.Lock()
	live := slices.Collect(maps.Values(a.sessions))
	a.mu.Unlock()
	for _, s := range live {
		s.cancelTurn()
		s.mcp.stop()
		a.spawn(s.stopBackground)
	}
	a.wait(a.tasks.Wait)
	var released sync.WaitGroup
	for _, s := range live {
		released.Go(s.release) // some MCP servers take their time
	}
	released.Wait()
	a.model.Close()
}

func (a *agent) wait(f func()) {
	done := make(chan struct{})
	go func() { f(); close(done) }()
	select {
	case <-done:
	case <-time.After(linger):
	}
}

// receive handles one line from the editor. It never blocks: slow work runs in other goroutines, so that the agent
// can always read a cancel.
func (a *agent) receive(line []byte) {
	a.gate.RLock()
	defer a.gate.RUnlock()
	if a.stopped || a.ctx.Err() != nil {
		return
	}
	m, err := parseLine(line)
	switch {
	case err != nil:
		a.conn.reject(m.id, err)
	case m.method == "":
		a.conn.answered(m)
	case m.id == nil:
		a.notification(m)
	default:
		if a.v2() && string(m.id) == "null" {
			a.conn.reject(nil, fault(codeInvalidRequest, "the id of a request must not be null"))
			return
		}
		r := a.conn.accept(m)
		h, known := a.methods()[m.method]
		if !known {
			a.conn.respond(r, nil, fault(codeMethodNotFound, "the agent has no method %q", m.method))
			return
		}
		err := a.permitted(m.method)
		if err == nil {
			err = h(r, m.params)
		}
		if err != nil {
			a.conn.respond(r, nil, err)
		}
	}
}

// handler handles a request from the editor. If it returns an error, that error is the response. Otherwise the
// handler itself sends the response, now or later.
type handler func(r *request, params json.RawMessage) *rpcError

// methods returns the agent's methods in the protocol version of the connection.
func (a *agent) methods() map[string]handler {
	all := map[string]handler{
		"initialize":                a.initialize,
		"session/new":               a.newSession,
		"session/resume":            a.resumeSession,
		"session/list":              a.listSessions,
		"session/close":             a.closeSession,
		"session/delete":            a.deleteSession,
		"session/prompt":            inSession(a.own, a.prompt),
		"session/set_config_option": inSession(a.own, a.setConfigOption),
	}
	v2, login, logout := a.v2(), "authenticate", "logout"
	if v2 {
		login, logout = "auth/login", "auth/logout"
		all["tool_call/cancel"] = inSession(a.holder, a.stopItem("tool call", "toolCallId"))
		all["terminal/cancel"] = inSession(a.holder, a.stopItem("terminal", "terminalId"))
	} else {
		all["session/load"] = func(r *request, params json.RawMessage) *rpcError { return a.goOn(r, params, true) }
		all["session/set_mode"] = inSession(a.own, a.setMode)
	}
	a.providers(all)
	if a.forks() {
		all["session/fork"] = a.forkSession
	}
	if len(a.logins()) > 0 {
		all[login] = a.authenticate
		all[logout] = func(r *request, _ json.RawMessage) *rpcError { return a.logged(r, false) }
	}
	for _, capability := range a.habits.Without {
		if !v2 || capability == "delete" {
			delete(all, "session/"+capability)
		}
	}
	return all
}

// inSession returns a handler that calls find for the session in the params, and then serve with that session.
func inSession(find func(params json.RawMessage) (*session, *rpcError),
	serve func(r *request, s *session, params json.RawMessage) *rpcError) handler {
	return func(r *request, params json.RawMessage) *rpcError {
		s, err := find(params)
		if err != nil {
			return err
		}
		r.session = s.id
		return serve(r, s, params)
	}
}

// permitted returns an error if a method may not be called yet, because initialize or a required login is missing.
func (a *agent) permitted(method string) *rpcError {
	a.mu.Lock()
	defer a.mu.Unlock()
	if method == "initialize" {
		if a.initialized && a.habits.Once {
			return fault(codeInvalidRequest, "the connection is initialized already")
		}
		return nil
	}
	a.used = a.initialized
	if !a.initialized {
		return fault(cmp.Or(a.habits.EarlyCode, codeInvalidRequest), "%s before initialize", method)
	}
	switch method {
	case "session/new", "session/load", "session/resume", "session/list", "session/delete", "session/fork":
		if a.locked() {
			return fault(codeAuthRequired, "authentication required")
		}
	}
	return nil
}

func (a *agent) notification(m incoming) {
	switch m.method {
	case "session/cancel":
		var p struct{ SessionID string }
		if err := decodeParams(m.params, &p); err != nil {
			a.log.Printf("session/cancel ignored: %v", err)
			return
		}
		if s := a.find(p.SessionID); s != nil {
			s.cancelTurn()
		}
	case "$/cancel_request":
		var p struct{ RequestID json.RawMessage }
		if err := decodeParams(m.params, &p); err == nil && p.RequestID != nil && !a.habits.DeafToRequestCancels {
			a.conn.cancelRequest(p.RequestID)
		}
	}
}

func (a *agent) find(id string) *session {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.sessions[id]
}

// known returns the session whose id is the member sessionId of params.
func (a *agent) known(params json.RawMessage) (*session, *rpcError) {
	id, err := member(params, "sessionId")
	if err != nil {
		return nil, err
	}
	if s := a.find(id); s != nil {
		return s, nil
	}
	return nil, a.unknownSession(id)
}

func (a *agent) unknownSession(id string) *rpcError {
	err := fault(cmp.Or(a.habits.UnknownCode, codeUnknownSession), "unknown session %q", id)
	if a.v2() {
		err.Code, err.Data = codeUnknownSession, object{"sessionId": id}
	}
	return err
}

// unknownValue returns the error for a mode, an option or a value that the agent does not offer.
func (a *agent) unknownValue(format string, args ...any) *rpcError {
	if a.v2() {
		return badParams(format, args...)
	}
	return fault(cmp.Or(a.habits.ValueCode, codeInvalidParams), format, args...)
}
