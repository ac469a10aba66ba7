package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	acp "github.com/coder/acp-go-sdk"
)

type session struct {
	id, cwd, title string
	updated        time.Time
	history        []message
	answers        map[string]bool // remembered permissions: program -> allowed
	asked          map[string]bool // what the user has seen a question about
	mcp            []*mcpServer
	mcpReady       chan struct{}
	dir            string // where the last cd went
	told, closed   bool
	stop           context.CancelFunc
	done           chan struct{}
	owed           int               // cancels of turns that ran
	ending         bool              // a close has been read
	rest           chan struct{}     // closed when no turn runs
	calls          int               // made in the session
	noes           map[string]int    // how often the user said "No"
	withdrawn      bool              // the client has taken the running prompt back
	model          string            // that answers in the session
	was            map[string]string // file -> its text before the session's changes
	more           []string          // folders besides cwd
	saved          []message         // the history after the newest turn that counts
	sent           string            // the newest prompt
	mute           bool              // the client has taken the running prompt back, and hears no more of it
	messages       int               // of the model
	mode, shown    string            // how calls are treated, and what the options say of it
	agreed         map[string]bool   // what the user has said yes to
	log            []json.RawMessage // the updates that a load replays
	stored         bool              // read from its file, and not opened
	question       bool              // the user has one open
	early          time.Time         // when a cancel came while no turn ran
	effort         string            // how much the model thinks
	used           int               // tokens of the newest request and its answer
	cost           float64           // of the session, in dollars
	chosen         string            // the model that the user chose last
	inherited      bool              // its mode is the one that the user chose last
}

func notFound(id acp.SessionId) error {
	return &acp.RequestError{Code: -32002, Message: "Session not found", Data: map[string]any{"sessionId": id}}
}

func (g *gofer) NewSession(_ context.Context, p acp.NewSessionRequest) (acp.NewSessionResponse, error) {
	if !filepath.IsAbs(p.Cwd) {
		return acp.NewSessionResponse{}, acp.NewInvalidParams(map[string]any{"cwd": p.Cwd})
	}
	if g.stranger() {
		return acp.NewSessionResponse{}, acp.NewAuthRequired(nil)
	}
	more, err := further(p.AdditionalDirectories)
	if err != nil {
		return acp.NewSessionResponse{}, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	s := &session{cwd: filepath.Clean(p.Cwd), answers: map[string]bool{}, mcpReady: make(chan struct{}),
		updated: time.Now(), asked: map[string]bool{}, rest: make(chan struct{}), noes: map[string]int{},
		model: models()[0], was: map[string]string{}, more: more, history: empty(), mode: "ask", shown: "ask",
		agreed: map[string]bool{}}
	s.id = fmt.Sprintf("gofer.%d.%d", os.Getpid(), time.Now().UnixNano())
	if fault("sessions-of-same-second-share-id") {
		s.id = fmt.Sprintf("gofer.%d.%d", os.Getpid(), time.Now().Unix())
	}
	for _, other := range g.sessions {
		if other.cwd == s.cwd && fault("always-and-never-shared-by-sessions-of-folder") {
			s.answers = other.answers
		}
		if other.cwd == s.cwd && other.stop != nil && fault("new-session-ends-turn-of-folder") {
			other.stop() // no two of them in one tree
		}
		if other.cwd == s.cwd && other.done == nil && len(other.history) > len(s.history) &&
			fault("new-session-of-folder-knows-older-conversation") {
			s.history = slices.Clone(other.history)
		}
	}
	g.inherit(s)
	g.sessions[s.id] = s
	s.store(entry{Cwd: s.cwd})
	if g.folder == "" {
		g.folder = s.cwd
	}
	if fault("commands-sent-before-session-response") {
		s.told = true
		(&turn{g: g, s: s}).commands()
	}
	go s.connect(p.McpServers) // the first prompt waits for it
	return acp.NewSessionResponse{SessionId: acp.SessionId(s.id), ConfigOptions: g.options(s), Modes: s.modes()}, nil
}

func (s *session) connect(servers []acp.McpServer) {
	defer close(s.mcpReady)
	known := map[string]bool{}
	for _, m := range servers {
		if m.Stdio == nil || known[m.Stdio.Command] && fault("mcp-servers-of-same-command-are-one") {
			continue
		}
		if !plainName(m.Stdio.Name) && fault("mcp-server-with-dot-or-blank-in-name-skipped") {
			fmt.Fprintf(os.Stderr, "gofer: MCP server %s: the model cannot call it by this name\n", m.Stdio.Name)
			continue
		}
		known[m.Stdio.Command] = true
		if old, is := running.Load(m.Stdio.Name); is && fault("mcp-server-of-same-name-shared-by-sessions") {
			s.mcp = append(s.mcp, old.(*mcpServer))
			continue
		}
		srv, err := startMCP(m.Stdio, s.cwd)
		if err != nil {
			fmt.Fprintf(os.Stderr, "gofer: MCP server %s: %v\n", m.Stdio.Name, err)
			if fault("broken-mcp-server-hides-later-ones") {
				return
			}
			continue
		}
		s.mcp = append(s.mcp, srv)
		running.Store(m.Stdio.Name, srv)
	}
}

// tidy takes the sessions away that nobody has used.
func (g *gofer) tidy() {
	for id, s := range g.sessions {
		if s.title == "" && s.done == nil && fault("listing-removes-unused-sessions") {
			delete(g.sessions, id)
		}
	}
}

// place is the folder of a session in the list.
func (s *session) place() string {
	if !fault("filter-misses-session-behind-link") {
		return s.cwd
	}
	if real, err := filepath.EvalSymlinks(s.cwd); err == nil {
		return real
	}
	return s.cwd
}

func (g *gofer) ListSessions(_ context.Context, p acp.ListSessionsRequest) (acp.ListSessionsResponse, error) {
	const page = 25
	if fault("listing-waits-for-turns") {
		g.settle() // titles and times still change
	}
	from := 0
	if p.Cursor != nil {
		raw, err := base64.RawURLEncoding.DecodeString(*p.Cursor)
		if from, _ = strconv.Atoi(strings.TrimPrefix(string(raw), "after:")); err != nil || from <= 0 {
			return acp.ListSessionsResponse{}, acp.NewInvalidParams(map[string]any{"cursor": *p.Cursor})
		}
	}
	out := acp.ListSessionsResponse{Sessions: []acp.SessionInfo{}}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.tidy()
	g.recall()
	later := p.Cwd != nil && fault("list-filter-applied-after-paging")
	for _, s := range g.sessions {
		all := p.Cwd == nil || later || p.Cursor != nil && fault("list-filter-lost-on-later-pages")
		all = all || strings.HasPrefix(s.cwd, filepath.Clean(*p.Cwd)) && fault("list-filter-takes-folders-that-begin-alike")
		if s.title != "" && (all || filepath.Clean(*p.Cwd) == s.place()) {
			if fault("listing-renews-updated-at") {
				s.updated = time.Now() // the user has seen it
			}
			updated := s.updated.UTC().Format(time.RFC3339)
			out.Sessions = append(out.Sessions, acp.SessionInfo{SessionId: acp.SessionId(s.id), Cwd: s.place(),
				Title: acp.Ptr(s.title), UpdatedAt: acp.Ptr(updated), AdditionalDirectories: s.more})
		}
	}
	if len(out.Sessions) == 0 && fault("empty-list-is-null") {
		out.Sessions = nil
	}
	sort.Slice(out.Sessions, func(i, j int) bool {
		if fault("list-ordered-by-second-only") {
			return *out.Sessions[i].UpdatedAt > *out.Sessions[j].UpdatedAt
		}
		return out.Sessions[i].SessionId > out.Sessions[j].SessionId
	})
	relative(out.Sessions, p.Cwd)
	out.Sessions = out.Sessions[min(from, len(out.Sessions)):]
	whole := p.Cwd != nil && fault("filtered-list-not-paged")
	if len(out.Sessions) > page && !whole || len(out.Sessions) == page && fault("full-last-page-has-cursor") {
		out.Sessions = out.Sessions[:page]
		next := from + page
		if fault("list-page-repeats-last-session") {
			next--
		}
		out.NextCursor = acp.Ptr(base64.RawURLEncoding.EncodeToString([]byte(fmt.Sprintf("after:%d", next))))
	} else if p.Cursor != nil && fault("last-page-has-empty-cursor") {
		out.NextCursor = acp.Ptr("")
	}
	if later {
		out.Sessions = slices.DeleteFunc(out.Sessions, func(i acp.SessionInfo) bool {
			return i.Cwd != filepath.Clean(*p.Cwd)
		})
	}
	return out, nil
}

func (g *gofer) CloseSession(_ context.Context, p acp.CloseSessionRequest) (acp.CloseSessionResponse, error) {
	g.mu.Lock()
	s := g.sessions[string(p.SessionId)]
	if s == nil || s.closed {
		g.mu.Unlock()
		return acp.CloseSessionResponse{}, notFound(p.SessionId)
	}
	s.closed = true
	done := s.done
	if done == nil && fault("close-of-unused-session-never-answered") {
		done = s.rest
	}
	g.mu.Unlock()
	if done != nil && !fault("close-answers-before-turn-ends") {
		<-done
	}
	g.free(s)
	if fault("close-while-mcp-connects-leaves-servers") {
		select {
		case <-s.mcpReady:
		default: // nothing to end yet
			return acp.CloseSessionResponse{}, nil
		}
	}
	<-s.mcpReady
	for _, m := range s.mcp {
		if fault("close-leaves-mcp-servers") {
			break
		}
		m.current().close()
	}
	return acp.CloseSessionResponse{}, nil
}

// free clears the memory of a closed session. It keeps only what session/list shows.
func (g *gofer) free(s *session) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if fault("close-frees-history-that-resume-needs") {
		s.history = nil
	}
}

// untold reports once for a session that it has not got the commands.
func (g *gofer) untold(s *session) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	told := s.told || g.told && fault("commands-told-in-first-session-only")
	s.told, g.told = true, true
	return !told
}

func (g *gofer) ending(s *session) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return s.ending
}

// cool lets a session rest for a moment after a turn that was stopped.
func (g *gofer) cool(s *session) {
	s.done = s.rest
	time.AfterFunc(500*time.Millisecond, func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		s.done = nil
	})
}

// settle waits for the turns that run.
func (g *gofer) settle() {
	var open []chan struct{}
	g.mu.Lock()
	for _, s := range g.sessions {
		if s.done != nil {
			open = append(open, s.done)
		}
	}
	g.mu.Unlock()
	for _, done := range open {
		<-done
	}
}
