package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	acp "github.com/coder/acp-go-sdk"
)

func resumes() bool {
	return fault("session-closed-in-turn-cancels-after-resume") || fault("resume-does-not-connect-mcp-servers") ||
		fault("forked-session-not-live") || fault("close-frees-history-that-resume-needs") ||
		fault("resume-without-list-keeps-additional-folders")
}

func forks() bool {
	return fault("fork-and-source-write-into-one-history") || fault("forked-session-not-live")
}

// abilities is what clients can do with sessions.
func abilities() acp.SessionCapabilities {
	c := acp.SessionCapabilities{List: &acp.SessionListCapabilities{}, Close: &acp.SessionCloseCapabilities{}}
	if resumes() {
		c.Resume = &acp.SessionResumeCapabilities{}
	}
	if forks() {
		c.Fork = &acp.SessionForkCapabilities{}
	}
	if manyFolders() {
		c.AdditionalDirectories = &acp.SessionAdditionalDirectoriesCapabilities{}
	}
	return c
}

func (g *gofer) ResumeSession(_ context.Context, p acp.ResumeSessionRequest) (acp.ResumeSessionResponse, error) {
	none := acp.ResumeSessionResponse{}
	if !resumes() {
		return none, acp.NewMethodNotFound(acp.AgentMethodSessionResume)
	}
	if !filepath.IsAbs(p.Cwd) {
		return none, acp.NewInvalidParams(map[string]any{"cwd": p.Cwd})
	}
	more, err := further(p.AdditionalDirectories)
	if err != nil {
		return none, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	old := g.sessions[string(p.SessionId)]
	if old == nil {
		return none, notFound(p.SessionId)
	}
	if old.done != nil {
		return none, acp.NewInvalidRequest("a turn is running in this session")
	}
	if fault("resume-does-not-connect-mcp-servers") {
		if old.closed {
			old.mcp = nil
		}
		old.cwd, old.closed, old.told, old.ending = filepath.Clean(p.Cwd), false, false, false
		return none, nil
	}
	if len(more) > 0 { // else as they were
		old.more = more
	}
	g.reopen(old, p.Cwd, p.McpServers)
	return none, nil
}

// reopen lets a session go on, with other MCP servers. The caller holds the lock.
func (g *gofer) reopen(old *session, cwd string, servers []acp.McpServer) {
	s := *old
	s.cwd, s.closed, s.told = filepath.Clean(cwd), false, false
	if !fault("session-closed-in-turn-cancels-after-resume") {
		s.ending = false
	}
	s.mcp, s.mcpReady = nil, make(chan struct{})
	g.sessions[s.id] = &s
	if !old.closed {
		go old.disconnect()
	}
	go s.connect(servers)
}

// disconnect ends the MCP servers of a session that has taken others.
func (s *session) disconnect() {
	<-s.mcpReady
	for _, m := range s.mcp {
		m.close()
	}
}

// empty is the history of a new session.
func empty() []message {
	if !fault("fork-and-source-write-into-one-history") {
		return nil
	}
	return make([]message, 0, 32) // room for the first turns
}

func (g *gofer) UnstableForkSession(
	_ context.Context, p acp.UnstableForkSessionRequest,
) (acp.UnstableForkSessionResponse, error) {
	none := acp.UnstableForkSessionResponse{}
	if !forks() {
		return none, acp.NewMethodNotFound(acp.AgentMethodSessionFork)
	}
	if !filepath.IsAbs(p.Cwd) {
		return none, acp.NewInvalidParams(map[string]any{"cwd": p.Cwd})
	}
	var servers []acp.McpServer
	if raw, err := json.Marshal(p.McpServers); err != nil || json.Unmarshal(raw, &servers) != nil {
		return none, acp.NewInvalidParams("mcpServers")
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	from := g.sessions[string(p.SessionId)]
	if from == nil || from.closed {
		return none, notFound(p.SessionId)
	}
	if from.done != nil {
		return none, acp.NewInvalidRequest("a turn is running in this session")
	}
	s := &session{id: fmt.Sprintf("gofer.%d.%d", os.Getpid(), time.Now().UnixNano()), cwd: filepath.Clean(p.Cwd),
		title: from.title, updated: time.Now(), history: from.history, answers: maps.Clone(from.answers),
		asked: maps.Clone(from.asked), noes: maps.Clone(from.noes), was: maps.Clone(from.was), model: from.model,
		agreed:   map[string]bool{},
		mcpReady: make(chan struct{}), rest: make(chan struct{})}
	g.sessions[s.id] = s
	if fault("forked-session-not-live") { // like one of the list
		s.closed, s.history = true, slices.Clone(s.history)
		close(s.mcpReady)
		return acp.UnstableForkSessionResponse{SessionId: acp.SessionId(s.id)}, nil
	}
	go s.connect(servers)
	return acp.UnstableForkSessionResponse{SessionId: acp.SessionId(s.id)}, nil
}
