package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	acp "github.com/coder/acp-go-sdk"
)

// loads reports whether sessions are stored and can be loaded.
func loads() bool {
	return fault("load-of-unknown-session-never-answered") || fault("replay-shows-image-as-placeholder") ||
		fault("lock-of-killed-turn-bars-load") || fault("links-of-prompt-not-replayed") ||
		fault("second-load-replays-only-what-is-new") || fault("message-ids-begin-anew-after-load")
}

// entry is a line in the file of a session. A later one takes the place of what earlier ones say of the same.
type entry struct {
	Cwd     string          `json:"cwd,omitempty"`
	Title   string          `json:"title,omitempty"`
	Updated time.Time       `json:"updated"`
	Answers map[string]bool `json:"answers,omitempty"`
	History *[]message      `json:"history,omitempty"`
	Update  json.RawMessage `json:"update,omitempty"`
}

// stored is the path of a file about a session.
func stored(id, kind string) string {
	state := env("XDG_STATE_HOME", filepath.Join(os.Getenv("HOME"), ".local", "state"))
	return filepath.Join(state, "gofer", id+kind)
}

// store adds a line to the file of the session.
func (s *session) store(e entry) {
	if !loads() {
		return
	}
	raw, err := json.Marshal(e)
	path := stored(s.id, ".jsonl")
	if err == nil {
		err = os.MkdirAll(filepath.Dir(path), 0o700)
	}
	var f *os.File
	if err == nil {
		f, err = os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	}
	if err == nil {
		_, err = f.Write(append(raw, '\n'))
		f.Close()
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "gofer: the session is not stored: %v\n", err)
	}
}

// state writes the current state of the session to its file.
func (s *session) state() {
	s.store(entry{Cwd: s.cwd, Title: s.title, Updated: s.updated, Answers: s.answers, History: &s.history})
}

// checkpoint stores the prompt before the model gets it.
func (t *turn) checkpoint() {
	t.g.mu.Lock()
	defer t.g.mu.Unlock()
	t.s.state()
}

// keep stores the session at the end of a turn. The caller holds the lock.
func (s *session) keep() {
	s.updated = time.Now()
	s.state()
	s.unlock()
}

// record keeps an update for the replay. The editor's terminals are gone by then.
func (t *turn) record(u acp.SessionUpdate) {
	if !loads() || u.AvailableCommandsUpdate != nil {
		return
	}
	if u.ToolCallUpdate != nil {
		own := *u.ToolCallUpdate
		own.Content = slices.DeleteFunc(slices.Clone(own.Content), func(c acp.ToolCallContent) bool {
			return c.Terminal != nil
		})
		u.ToolCallUpdate = &own
	}
	raw, err := json.Marshal(u)
	if err != nil {
		return
	}
	t.g.mu.Lock()
	defer t.g.mu.Unlock()
	t.s.log = append(t.s.log, raw)
	t.s.store(entry{Update: raw})
}

// said stores the prompt of a turn that begins.
func (t *turn) said(prompt []acp.ContentBlock) {
	t.s.lock()
	for _, b := range prompt {
		if b.Image != nil && fault("replay-shows-image-as-placeholder") {
			b = acp.TextBlock("[Attached image: " + b.Image.MimeType + "]") // the data would make the file large
		}
		if b.ResourceLink != nil && fault("links-of-prompt-not-replayed") {
			continue // the editor has shown it with its text
		}
		t.record(acp.UpdateUserMessage(b))
	}
}

// lock marks the session as being at work in this process.
func (s *session) lock() {
	if fault("lock-of-killed-turn-bars-load") {
		_ = os.WriteFile(stored(s.id, ".lock"), []byte(fmt.Sprint(os.Getpid())), 0o600)
	}
}

func (s *session) unlock() {
	if fault("lock-of-killed-turn-bars-load") {
		_ = os.Remove(stored(s.id, ".lock"))
	}
}

// unlock takes the marks of all turns away that still run.
func (g *gofer) unlock() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, s := range g.sessions {
		if s.done != nil {
			s.unlock()
		}
	}
}

// recall reads the stored sessions that are not open in this process. The caller holds the lock.
func (g *gofer) recall() {
	if !loads() {
		return
	}
	files, _ := filepath.Glob(stored("*", ".jsonl"))
	for _, path := range files {
		id := strings.TrimSuffix(filepath.Base(path), ".jsonl")
		if s := g.sessions[id]; s != nil && !s.stored {
			continue
		}
		if s, err := read(path, id); err == nil {
			g.sessions[id] = s
		}
	}
}

// read reads the file of a session.
func read(path, id string) (*session, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	s := &session{id: id, answers: map[string]bool{}, asked: map[string]bool{}, noes: map[string]int{},
		was: map[string]string{}, agreed: map[string]bool{}, model: models()[0], mode: "ask", shown: "ask",
		mcpReady: make(chan struct{}), rest: make(chan struct{}), closed: true, stored: true}
	close(s.mcpReady)
	for r := bufio.NewReader(f); ; {
		line, err := r.ReadBytes('\n')
		if err != nil {
			break // what is left has not been written whole
		}
		var e entry
		if json.Unmarshal(line, &e) != nil {
			continue
		}
		if e.Update != nil {
			s.log = append(s.log, e.Update)
			continue
		}
		s.cwd, s.title, s.updated = e.Cwd, e.Title, e.Updated
		if e.Answers != nil {
			s.answers = e.Answers
		}
		if e.History != nil {
			s.history = *e.History
		}
	}
	if n := len(s.history); n > 0 && s.history[n-1].Role == "user" {
		s.history = append(s.history, message{Role: "assistant", Content: text("(interrupted)")})
	}
	return s, nil
}

// unfinished lists the calls in a log that have no end, and the highest number of its calls.
func unfinished(log []json.RawMessage) (calls []acp.ToolCallId, most int) {
	for _, raw := range log {
		var u struct {
			ID     acp.ToolCallId `json:"toolCallId"`
			Kind   string         `json:"sessionUpdate"`
			Status acp.ToolCallStatus
		}
		_ = json.Unmarshal(raw, &u)
		var n int
		_, _ = fmt.Sscanf(string(u.ID), "run:%d", &n)
		most = max(most, n)
		switch {
		case u.Kind == "tool_call":
			calls = append(calls, u.ID)
		case u.Status == acp.ToolCallStatusCompleted || u.Status == acp.ToolCallStatusFailed:
			calls = slices.DeleteFunc(calls, func(id acp.ToolCallId) bool { return id == u.ID })
		}
	}
	return calls, most
}

func (g *gofer) LoadSession(ctx context.Context, p acp.LoadSessionRequest) (acp.LoadSessionResponse, error) {
	none := acp.LoadSessionResponse{}
	if !loads() {
		return none, acp.NewMethodNotFound(acp.AgentMethodSessionLoad)
	}
	if !filepath.IsAbs(p.Cwd) {
		return none, acp.NewInvalidParams(map[string]any{"cwd": p.Cwd})
	}
	log, err := g.load(p)
	if err != nil && g.pending(p.SessionId) {
		<-ctx.Done() // it is answered with the last update
	}
	if err != nil {
		return none, err
	}
	for _, raw := range log {
		var u acp.SessionUpdate
		if json.Unmarshal(raw, &u) == nil {
			_ = g.conn.SessionUpdate(ctx, acp.SessionNotification{SessionId: p.SessionId, Update: u})
		}
	}
	calls, _ := unfinished(log)
	for _, id := range calls {
		_ = g.conn.SessionUpdate(ctx, acp.SessionNotification{SessionId: p.SessionId, Update: acp.UpdateToolCall(
			id, acp.WithUpdateStatus(acp.ToolCallStatusFailed), acp.WithUpdateContent(shown("(interrupted)")))})
	}
	return none, nil
}

// pending reports whether there is nothing yet that a load could end with.
func (g *gofer) pending(id acp.SessionId) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.sessions[string(id)] == nil && fault("load-of-unknown-session-never-answered")
}

// load opens a stored session and returns the updates that its replay consists of.
func (g *gofer) load(p acp.LoadSessionRequest) ([]json.RawMessage, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.recall()
	old := g.sessions[string(p.SessionId)]
	if old == nil {
		return nil, notFound(p.SessionId)
	}
	if old.done != nil {
		return nil, acp.NewInvalidRequest("a turn is running in this session")
	}
	if owner, err := os.ReadFile(stored(old.id, ".lock")); err == nil && fault("lock-of-killed-turn-bars-load") {
		return nil, broken("The session is active in another process", "PID "+string(owner))
	}
	old.stored = false
	log := slices.Clone(old.log)
	if fault("second-load-replays-only-what-is-new") {
		old.log = nil // the editor has it from now on
	}
	if fault("message-ids-begin-anew-after-load") {
		old.messages = 0
	}
	g.reopen(old, p.Cwd, p.McpServers)
	_, most := unfinished(log)
	g.calls = max(g.calls, most)
	return log, nil
}
