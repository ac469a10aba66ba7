package refagent

import (
	"encoding/json"
	"errors"
	"io/fs"
	"path/filepath"
	"strings"
)

// setup contains the parameters that session/new, session/load and session/resume have in common.
type setup struct {
	cwd         string
	directories []string
	servers     []json.RawMessage
	system      string // complete system prompt; "" means the agent's own
}

// setup reads these parameters from a request, in the form of the connection's protocol version.
func (a *agent) setup(params json.RawMessage, serversRequired bool) (setup, *rpcError) {
	s, err := decodeSetup(params, serversRequired && !a.v2())
	if err == nil && a.v2() {
		err = a.knownServers(s.servers)
	}
	if err == nil && !a.habits.lacks("systemPrompt") {
		s.system, err = decodeSystem(params)
	}
	return s, err
}

// decodeSystem returns the system prompt in a request, or "" if there is none. It returns an error for a mode other
// than append and override, and for content that is not text.
func decodeSystem(params json.RawMessage) (string, *rpcError) {
	var p struct {
		SystemPrompt *struct {
			Mode    string
			Content []struct{ Type, Text string }
		}
	}
	if err := decodeParams(params, &p); err != nil || p.SystemPrompt == nil {
		return "", err
	}
	var texts []string
	switch mode := p.SystemPrompt.Mode; mode {
	case "append":
		texts = append(texts, systemPrompt)
	case "override":
	default:
		return "", badParams("systemPrompt: unknown mode %q, want append or override", mode)
	}
	for _, b := range p.SystemPrompt.Content {
		if b.Type != "text" {
			return "", badParams("systemPrompt: a block of type %q; only text is supported", b.Type)
		}
		texts = append(texts, b.Text)
	}
	return strings.Join(texts, "\n\n"), nil
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

// opened returns the result for a request that opened the session. id is the session's id, or "" if the request
// contained it.
func (s *session) opened(id string) object {
	m := object{}
	if id != "" {
		m["sessionId"] = id
	}
	if s.a.v2() {
		m["availableCommands"], m["configOptions"] = commandsInV2(), s.shownOptions()
		return m
	}
	if modes := s.modes(); modes != nil {
		m["modes"] = modes
	}
	if list := s.options(); len(list) > 0 {
		m["configOptions"] = list
	}
	return m
}

func (a *agent) newSession(r *request, params json.RawMessage) *rpcError {
	p, err := a.setup(params, true)
	if err != nil {
		return err
	}
	s, err := a.open(newSessionID(), p, newRecord())
	if err != nil {
		return err
	}
	s.write(event{Type: eventSession, Cwd: p.cwd})
	a.introduce(r, s, s.id)
	return nil
}

// introduce responds to the request that opened a session, at once or after the MCP servers have started. id is as in
// the method opened.
func (a *agent) introduce(r *request, s *session, id string) {
	r.session = s.id
	answer := func() {
		if id == "" && a.v2() {
			s.mu.Lock()
			s.enter(stateIdle, nil)
			s.mu.Unlock()
		}
		a.conn.respond(r, s.opened(id), nil)
		a.announce(s)
	}
	if !a.habits.EarlyServers {
		answer()
		return
	}
	a.spawn(func() {
		<-s.mcp.ready
		answer()
	})
}

// announce sends the state that an editor needs after a session is opened.
func (a *agent) announce(s *session) {
	if !a.v2() { // in version 2, the response contains them
		a.tell(s, update{Tag: "available_commands_update", Commands: commands})
	}
	if usage := locked(s, func() *update { return s.rec.usage }); usage != nil {
		a.tell(s, *usage)
	}
	a.spawn(func() {
		if a.habits.WarmUp {
			a.aside(a.ctx, s, "Say that you are ready.")
		}
		a.lookUp(a.ctx, s, a.habits.AtNew)
	})
}

// resumeSession handles session/resume. In version 2, it replays the history if the request asks for that. If the
// session is still working, it does not open the session again, but sends the session's state.
func (a *agent) resumeSession(r *request, params json.RawMessage) *rpcError {
	if !a.v2() {
		return a.goOn(r, params, false)
	}
	var p struct {
		SessionID  *string
		ReplayFrom *struct{ Type *string }
	}
	if err := decodeParams(params, &p); err != nil {
		return err
	}
	replay := p.ReplayFrom != nil
	if replay && (p.ReplayFrom.Type == nil || *p.ReplayFrom.Type != "start") {
		return badParams("replayFrom: only type start is supported")
	}
	if p.SessionID != nil {
		if live := a.find(*p.SessionID); live != nil && live.occupied() && live.parent == nil {
			return a.rejoin(r, live, params, replay)
		}
	}
	return a.goOn(r, params, replay)
}

// rejoin responds to session/resume for a session that is still working. The work continues, but its updates wait
// until the history has been replayed.
func (a *agent) rejoin(r *request, live *session, params json.RawMessage, replay bool) *rpcError {
	if _, err := decodeSetup(params, false); err != nil {
		return err
	}
	r.session = live.id
	live.mu.Lock()
	if replay {
		live.showAgain()
	}
	live.enter(live.state, nil)
	live.mu.Unlock()
	live.announceAgain(func() { a.conn.respond(r, live.opened(""), nil) })
	return nil
}

// goOn opens a stored session. If showing is set, it replays the session's history to the editor.
func (a *agent) goOn(r *request, params json.RawMessage, showing bool) *rpcError {
	s, err := a.reopen(r, params, showing)
	if err != nil {
		return err
	}
	if showing {
		s.replay()
	}
	a.introduce(r, s, "")
	return nil
}

// replay sends the history of a session to the editor. It sends the history of each child session at the point where
// the child was announced.
func (s *session) replay() {
	list := s.rec.shown
	s.rec.showing, s.rec.shown = false, nil
	s.show(list, func(u update) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.replayChild(u)
	})
}

// showAgain replays the history of a session that is still working. The caller holds s.mu, so other updates wait.
func (s *session) showAgain() {
	lines, err := s.a.store.lines(s.id)
	if err != nil {
		s.a.log.Printf("session %s cannot be replayed: %v", s.id, err)
	}
	rec := newRecord()
	rec.showing, rec.pieces = true, s.a.habits.AsSent
	rec.read(lines)
	s.show(rec.shown, func(u update) {
		c := s.a.find(u.SessionID)
		switch {
		case c == nil: // the session was resumed without its history
			s.replayChild(u)
			return
		case c.parent != s:
			return
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		s.a.tell(s, u)
		c.showAgain()
		c.told(c.state, c.rec.stop, nil)
	})
}

// show sends the updates of a session's history. It calls child for each update that announces a child session.
func (s *session) show(list []update, child func(u update)) {
	a := s.a
	for _, u := range list {
		if b, ok := u.Content.(textBlock); ok && a.habits.Trims && !a.habits.AsSent {
			u.Content = text(strings.TrimSpace(b.Text))
		}
		if u.Tag == "subagent_update" {
			child(u)
			continue
		}
		if u.Tag == "session_message" && u.Sender != s.id && u.Recipient != s.id {
			continue // from the session of which this is a fork
		}
		a.tell(s, u)
	}
	if a.v2() {
		s.notify(object{"sessionUpdate": "replay_complete"})
	}
}

// reopen opens a stored session.
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

// stored returns the stored log of the session in a request, and the setup in the request. It returns an error if a
// prompt is running in the session, because the replay would mix with live updates.
func (a *agent) stored(params json.RawMessage, serversRequired bool) (id string, set setup, lines [][]byte,
	err *rpcError) {
	if id, err = member(params, "sessionId"); err != nil {
		return "", set, nil, err
	}
	if set, err = a.setup(params, serversRequired); err != nil {
		return "", set, nil, err
	}
	if live := a.find(id); live != nil && live.occupied() {
		return "", set, nil, fault(codeInvalidRequest, "session %q is at work: cancel that first", id)
	}
	lines, failed := a.store.lines(id)
	switch {
	case failed == nil && newRecord().fold(lines).parent != "":
		err = fault(codeInvalidRequest, "session %q is a subagent and takes no requests", id)
	case errors.Is(failed, fs.ErrNotExist):
		err = a.unknownSession(id)
	case failed != nil:
		err = fault(codeInternal, "reading the session: %v", failed)
	}
	return id, set, lines, err
}
