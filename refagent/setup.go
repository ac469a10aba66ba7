package refagent

import (
	"encoding/json"
	"errors"
	"io/fs"
	"path/filepath"
	"strings"
)

// setup is what session/new, load and resume have in common.
type setup struct {
	cwd         string
	directories []string
	servers     []json.RawMessage
}

func decodeSetup(params json.RawMessage, serversRequired bool) (setup, *rpcError) {
	var p struct {
		Cwd                   *string
		AdditionalDirectories json.RawMessage
		McpServers            json.RawMessage
	}
	if err := decodeParams(params, &p); err != nil {
		return setup{}, err
	}
	if p.Cwd == nil || !filepath.IsAbs(*p.Cwd) {
		return setup{}, badParams("cwd has to be an absolute path")
	}
	s := setup{cwd: filepath.Clean(*p.Cwd)}
	if p.AdditionalDirectories != nil {
		var list []string
		if json.Unmarshal(p.AdditionalDirectories, &list) != nil || list == nil {
			return setup{}, badParams("additionalDirectories has to be a list of absolute paths")
		}
		for _, dir := range list {
			if !filepath.IsAbs(dir) {
				return setup{}, badParams("additionalDirectories: %q is not an absolute path", dir)
			}
			s.directories = append(s.directories, filepath.Clean(dir))
		}
	}
	if p.McpServers == nil && !serversRequired {
		return s, nil
	}
	if json.Unmarshal(p.McpServers, &s.servers) != nil || s.servers == nil {
		return setup{}, badParams("mcpServers has to be a list")
	}
	return s, nil
}

// opened is the part of the result that the three calls share.
type opened struct {
	SessionID string         `json:"sessionId,omitempty"`
	Modes     *modeState     `json:"modes,omitempty"`
	Options   []configOption `json:"configOptions,omitempty"`
}

func (a *agent) newSession(r *request, params json.RawMessage) *rpcError {
	p, err := decodeSetup(params, !a.v2())
	if err == nil && a.v2() {
		err = a.knownServers(p.servers)
	}
	if err != nil {
		return err
	}
	s, err := a.open(newSessionID(), p, newRecord())
	if err != nil {
		return err
	}
	s.write(event{Type: eventSession, Cwd: p.cwd})
	a.introduce(r, s)
	return nil
}

// introduce answers the request that made a session.
func (a *agent) introduce(r *request, s *session) {
	r.session = s.id
	a.whenReady(s, func() {
		if a.v2() {
			a.conn.respond(r, s.openedInV2(s.id), nil)
		} else {
			a.conn.respond(r, opened{SessionID: s.id, Modes: s.modes(), Options: s.options()}, nil)
		}
		a.announce(s)
	})
}

// whenReady runs f at once, or when the MCP servers are up.
func (a *agent) whenReady(s *session, f func()) {
	if !a.habits.EarlyServers {
		f()
		return
	}
	a.spawn(func() {
		<-s.mcp.ready
		f()
	})
}

// announce sends the state that an editor wants right after a setup call.
func (a *agent) announce(s *session) {
	if !a.v2() { // which has them in the answer
		a.tell(s, update{Tag: "available_commands_update", Commands: commands})
	}
	s.mu.Lock()
	usage := s.rec.usage
	s.mu.Unlock()
	if usage != nil {
		a.tell(s, *usage)
	}
	a.spawn(func() {
		if a.habits.WarmUp {
			a.aside(a.ctx, s, "Say that you are ready.")
		}
		a.lookUp(a.ctx, s, a.habits.AtNew)
	})
}

func (a *agent) loadSession(r *request, params json.RawMessage) *rpcError {
	s, err := a.reopen(r, params, true)
	if err != nil {
		return err
	}
	for _, u := range s.rec.shown {
		if b, ok := u.Content.(textBlock); ok && a.habits.Trims && !a.habits.AsSent {
			u.Content = text(strings.TrimSpace(b.Text))
		}
		a.tell(s, u)
	}
	s.rec.showing, s.rec.shown = false, nil
	a.whenReady(s, func() {
		a.conn.respond(r, opened{Modes: s.modes(), Options: s.options()}, nil)
		a.announce(s)
	})
	return nil
}

func (a *agent) resumeSession(r *request, params json.RawMessage) *rpcError {
	s, err := a.reopen(r, params, false)
	if err != nil {
		return err
	}
	a.whenReady(s, func() {
		a.conn.respond(r, opened{Modes: s.modes(), Options: s.options()}, nil)
		a.announce(s)
	})
	return nil
}

// reopen brings a stored session to life.
func (a *agent) reopen(r *request, params json.RawMessage, showing bool) (*session, *rpcError) {
	id, set, lines, err := a.stored(params, showing)
	if err != nil {
		return nil, err
	}
	if a.hooks.Restore != nil {
		lines = a.hooks.Restore(id, lines)
	}
	r.session = id
	rec := newRecord()
	rec.showing, rec.pieces = showing, a.habits.AsSent
	return a.open(id, set, rec.fold(lines))
}

// stored reads the session that a request names, and what it wants of it. One whose prompt
// is running is refused: replaying it beside its own live updates would mix the two.
func (a *agent) stored(params json.RawMessage, serversRequired bool) (id string, set setup, lines [][]byte,
	err *rpcError) {
	var p struct{ SessionID *string }
	if err = decodeParams(params, &p); err != nil {
		return "", set, nil, err
	}
	if p.SessionID == nil {
		return "", set, nil, badParams("sessionId is missing")
	}
	set, err = decodeSetup(params, serversRequired && !a.v2())
	if err == nil && a.v2() {
		err = a.knownServers(set.servers)
	}
	if err != nil {
		return "", set, nil, err
	}
	id = *p.SessionID
	if live := a.find(id); live != nil && (live.busy() || live.occupied()) {
		return "", set, nil, fault(codeInvalidRequest, "session %q is at work: cancel that first", id)
	}
	lines, failed := a.store.lines(id)
	switch {
	case errors.Is(failed, fs.ErrNotExist):
		err = a.unknownSession(id)
	case failed != nil:
		err = fault(codeInternal, "reading the session: %v", failed)
	}
	return id, set, lines, err
}
