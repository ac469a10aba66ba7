package refagent

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"
)

// session is a conversation that this process serves.
type session struct {
	a     *agent
	id    string
	cwd   string
	roots []string // cwd and the additional directories
	// system is the system prompt from the editor; "" means the agent's own.
	system string
	mcp    *mcpServers

	mu     sync.Mutex
	rec    *record
	log    *os.File         // nil after release
	turn   *turn            // running prompt, or nil
	keyed  map[string]*turn // prompts of this process, by idempotency key
	queue  []*turn          // prompts that wait for the running one
	always map[string]bool

	greeted, noticed atomic.Bool

	lineage

	// The following fields are used only in version 2.
	state         string            // idle, running or requires_action
	waiting       int               // number of open questions to the user
	items         map[string]func() // by kind and id: stops a running tool call or terminal
	background    []*terminal       // commands that run without a turn
	hadBackground bool
}

// turn is a prompt that is running or waiting.
type turn struct {
	request   *request
	key       string     // the prompt's idempotency key, or ""
	again     []*request // requests that repeat the prompt before its answer
	ctx       context.Context
	stop      context.CancelFunc
	cancelled bool // the editor has cancelled it; guarded by session.mu
	done      chan struct{}
	asked     bool  // the user was asked whether tools may be used
	barred    error // reason why tools may not be used, or nil
	blocks    []json.RawMessage
	message   ModelMessage
}

// open opens a session in this process. It replaces a session with the same id.
func (a *agent) open(id string, p setup, rec *record) (*session, *rpcError) {
	log, err := a.store.appendTo(id)
	if err != nil {
		return nil, fault(codeInternal, "%v", err)
	}
	cwd := p.cwd
	if a.hooks.Cwd != nil {
		cwd = a.hooks.Cwd(cwd)
	}
	if a.habits.lacks("directories") {
		p.directories = nil
	}
	s := &session{a: a, id: id, system: p.system, rec: rec, log: log, always: map[string]bool{}, state: stateIdle,
		items: map[string]func(){},
		mcp:   a.connectServers(p.servers)}
	s.cwd = s.addRoot(cwd)
	for _, dir := range p.directories {
		s.addRoot(dir)
	}
	a.enlist(s)
	return s, nil
}

// enlist registers a session under its id. It releases a session that had the id before.
func (a *agent) enlist(s *session) {
	a.mu.Lock()
	old := a.sessions[s.id]
	a.sessions[s.id] = s
	a.mu.Unlock()
	if old != nil {
		a.spawn(old.release)
	}
}

// addRoot adds a directory to the session's roots. It returns the directory's path, with links resolved if the habit
// RealPaths is set.
func (s *session) addRoot(dir string) string {
	s.roots = append(s.roots, dir)
	if real := s.a.real(dir); real != dir {
		s.roots = append(s.roots, real)
		return real
	}
	return dir
}

// real returns a path with links resolved if the habit RealPaths is set, and the path unchanged otherwise.
func (a *agent) real(path string) string {
	if a.habits.RealPaths {
		if real, err := filepath.EvalSymlinks(path); err == nil {
			return real
		}
	}
	return path
}

// spawn runs f in a goroutine. The agent waits for it at the end of the connection.
func (a *agent) spawn(f func()) { a.tasks.Go(f) }

// write applies an event to the session's record and appends it to the log.
func (s *session) write(e event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writeLocked(e)
}

func (s *session) writeLocked(e event) {
	e.At = time.Now().UTC()
	s.rec.apply(e)
	line := encode(e)
	if s.a.hooks.Persist != nil {
		line = s.a.hooks.Persist(s.id, line)
	}
	if s.log == nil || line == nil {
		return
	}
	if _, err := s.log.Write(line); err != nil {
		s.a.log.Printf("session %s is not being saved: %v", s.id, err)
	}
}

// locked locks the session, calls get and returns its result.
func locked[T any](s *session, get func() T) T {
	s.mu.Lock()
	defer s.mu.Unlock()
	return get()
}

// running returns the running prompt, or nil if there is none.
func (s *session) running() *turn { return locked(s, func() *turn { return s.turn }) }

func (s *session) mode() string { return locked(s, func() string { return s.rec.mode }) }

func (s *session) messageID() string { return locked(s, s.rec.messageID) }

func (s *session) callID(wish string) string {
	return locked(s, func() string { return s.rec.callID(wish) })
}

// cancelTurn cancels the running prompt and the waiting prompts, because the editor requested it.
func (s *session) cancelTurn() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.turn != nil {
		s.turn.cancelled = true
		s.turn.stop()
	}
	v2 := s.a.v2()
	for _, t := range s.queue {
		if v2 {
			s.drop(t)
			continue
		}
		t.cancelled = true
		t.stop()
	}
	if v2 {
		s.queue = nil
	}
}

// settle cancels the session's prompts and waits until they have been answered.
func (s *session) settle() {
	s.cancelTurn()
	for t := s.running(); t != nil; t = s.running() {
		<-t.done
	}
}

// release frees the resources of a session. Its log stays stored.
func (s *session) release() {
	s.mcp.close()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.log != nil {
		s.log.Close()
		s.log = nil
	}
}

// retire removes the session from the open sessions, ends its work and frees its resources.
func (s *session) retire() {
	s.a.mu.Lock()
	if s.a.sessions[s.id] == s {
		delete(s.a.sessions, s.id)
	}
	s.a.mu.Unlock()
	s.settle()
	s.stopBackground()
	s.release()
}

func (a *agent) closeSession(r *request, params json.RawMessage) *rpcError {
	s, err := a.own(params)
	if err != nil && err.Code == codeUnknownSession && a.v2() {
		a.conn.respond(r, nil, nil) // the response to session/close
		return nil
	}
	if err != nil {
		return err
	}
	r.session = s.id
	a.spawn(func() {
		s.retire()
		a.conn.respond(r, nil, nil)
	})
	return nil
}

// deleteSession removes a session and its stored log. It also succeeds for a session that does not exist.
func (a *agent) deleteSession(r *request, params json.RawMessage) *rpcError {
	id, err := member(params, "sessionId")
	if err != nil {
		return err
	}
	r.session = id
	live := a.find(id)
	if live != nil && live.parent != nil {
		_, err = a.own(params)
		return err
	}
	a.spawn(func() {
		if live != nil {
			live.retire()
		}
		var failed *rpcError
		if !a.hooks.Keep {
			if err := a.store.removeFamily(id); err != nil {
				failed = fault(codeInternal, "%v", err)
			}
		}
		a.conn.respond(r, nil, failed)
	})
	return nil
}

// forks reports whether the agent supports session/fork.
func (a *agent) forks() bool { return a.options.Getenv(EnvFork) == "yes" }

// forkSession handles session/fork. The new session begins with the conversation of the other session and then
// continues independently.
func (a *agent) forkSession(r *request, params json.RawMessage) *rpcError {
	_, set, lines, err := a.stored(params, false)
	if err != nil {
		return err
	}
	s, err := a.open(newSessionID(), set, newRecord().fold(lines))
	if err != nil {
		return err
	}
	if _, err := s.log.Write(bytes.Join(lines, []byte("\n"))); err != nil {
		return fault(codeInternal, "writing the session: %v", err)
	}
	s.write(event{Type: eventSession, Cwd: set.cwd})
	a.introduce(r, s, s.id)
	return nil
}
