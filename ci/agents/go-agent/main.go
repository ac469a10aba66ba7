// gofer: a small coding agent on the Go SDK. Anthropic Messages, streamed; its one tool is a shell, run in the
// editor's terminal where the client offers one and as a child process otherwise. It lists and closes sessions.
package main

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strconv"
	"strings"
	"sync"
	"time"

	acp "github.com/coder/acp-go-sdk"
)

const tag = "gofer/cancels"

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
}

type gofer struct {
	conn     *acp.AgentSideConnection
	mu       sync.Mutex
	sessions map[string]*session
	cancels  map[string]int
	terminal bool
	reads    bool // the editor reads files
	files    bool // the editor has files of its own
	told     bool // some session has the commands
	calls    int
	folder   string // of the first session
	newest   string // session of the newest prompt
	term     string // newest terminal
	asking   map[string]*question
	decided  map[acp.ToolCallId]bool // what the user said about calls
	wrong    string                  // a client capability that is neither on nor off
	line     sync.Mutex              // one stream at a time
	model    string                  // that the user has chosen
	tools    []block                 // what the model may call
	prompts  map[string]string       // session -> request id of its newest prompt
}

// tap reads the client's lines in their order, before the SDK spreads requests over goroutines: a prompt is
// marked with how many cancels its session had seen, so that one that follows at once is never lost.
func (g *gofer) tap(in io.Reader) io.Reader {
	r, w := io.Pipe()
	go func() {
		br := bufio.NewReaderSize(in, 1<<16)
		for {
			line, err := br.ReadBytes('\n')
			if err != nil {
				w.CloseWithError(io.EOF)
				return
			}
			if len(line) > 1<<16 && fault("editor-line-over-64-kib-lost") {
				fmt.Fprintln(os.Stderr, "gofer: a line is too long")
				continue
			}
			w.Write(g.mark(line))
		}
	}()
	return r
}

func (g *gofer) mark(line []byte) []byte {
	var m map[string]json.RawMessage
	var method string
	if json.Unmarshal(line, &m) != nil || json.Unmarshal(m["method"], &method) != nil {
		return line
	}
	if method == acp.AgentMethodInitialize {
		g.check(m["params"])
	}
	if method == "$/cancel_request" {
		g.withdrawn(m["params"])
	}
	if strings.HasPrefix(method, "_") && fault("custom-request-never-answered") {
		return []byte("\n") // there are none that this agent knows
	}
	var p map[string]json.RawMessage
	var sid string
	if json.Unmarshal(m["params"], &p) != nil || json.Unmarshal(p["sessionId"], &sid) != nil {
		return line
	}
	var flat map[string]string
	if method == acp.AgentMethodSessionCancel && fault("cancel-with-meta-not-heard") &&
		json.Unmarshal(m["params"], &flat) != nil {
		return line
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	switch method {
	case acp.AgentMethodSessionCancel, acp.AgentMethodSessionClose:
		g.cancels[sid]++
		if method == acp.AgentMethodSessionClose && fault("close-does-not-stop-turn") {
			return line
		}
		if s := g.sessions[sid]; s != nil && s.stop != nil {
			s.owed++
			s.ending = method == acp.AgentMethodSessionClose
		}
		for id, s := range g.sessions {
			if s.stop != nil && (id == sid || fault("cancel-stops-every-session")) {
				s.stop()
			}
		}
	case acp.AgentMethodSessionPrompt:
		g.newest = sid
		if s := g.sessions[sid]; s != nil && s.done == nil {
			g.prompts[sid] = string(m["id"])
		}
		if p["_meta"] != nil && fault("prompt-with-meta-cancelled-after-earlier-cancel") {
			return line // what the client says there is its own
		}
		p["_meta"], _ = json.Marshal(map[string]any{tag: g.cancels[sid]})
		m["params"], _ = json.Marshal(p)
		renumber(m)
		if out, err := json.Marshal(m); err == nil {
			return append(out, '\n')
		}
	}
	return line
}

// withdrawn stops the turn whose request the client has taken back.
func (g *gofer) withdrawn(params json.RawMessage) {
	var p struct {
		RequestID json.RawMessage `json:"requestId"`
	}
	_ = json.Unmarshal(params, &p)
	g.mu.Lock()
	defer g.mu.Unlock()
	if s := g.sessions[g.newest]; s != nil && s.stop != nil && fault("late-cancel-request-stops-running-turn") {
		s.stop()
	}
	for id, s := range g.sessions {
		if s.stop != nil && g.prompts[id] == string(p.RequestID) && fault("withdrawn-prompt-never-answered") {
			s.withdrawn = true
			s.stop()
		}
	}
}

// reply lets a prompt be answered, unless nobody waits for it any more.
func (g *gofer) reply(s *session) {
	g.mu.Lock()
	gone := s.withdrawn
	s.withdrawn = false
	g.mu.Unlock()
	if gone {
		select {}
	}
}

// renumber brings the id of a request into one form.
func renumber(m map[string]json.RawMessage) {
	var id any
	if m["id"] == nil || json.Unmarshal(m["id"], &id) != nil {
		return
	}
	if fault("large-prompt-id-rounded") {
		m["id"], _ = json.Marshal(id)
	}
	if word, is := id.(string); is && fault("digits-in-string-id-answered-as-number") {
		if n, err := strconv.ParseInt(word, 10, 64); err == nil {
			m["id"], _ = json.Marshal(n)
		}
	}
}

// check looks for a capability of the client that says neither yes nor no, or that is none.
func (g *gofer) check(params json.RawMessage) {
	var p struct {
		ClientCapabilities map[string]any `json:"clientCapabilities"`
	}
	if json.Unmarshal(params, &p) != nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case fault("null-capability-refused"):
		g.wrong = unset(p.ClientCapabilities)
	case fault("unknown-capability-refused"):
		g.wrong = unknown(p.ClientCapabilities)
	}
}

// unknown returns the name of a key that no client of this version has.
func unknown(of map[string]any) string {
	known := []string{"_meta", "auth", "elicitation", "fs", "nes", "positionEncodings", "terminal"}
	for name := range of {
		if !slices.Contains(known, name) {
			return name
		}
	}
	return ""
}

// unset returns the name of a key without a value.
func unset(of map[string]any) string {
	for name, value := range of {
		inner, _ := value.(map[string]any)
		if value == nil {
			return name
		}
		if name := unset(inner); name != "" {
			return name
		}
	}
	return ""
}

func notFound(id acp.SessionId) error {
	return &acp.RequestError{Code: -32002, Message: "Session not found", Data: map[string]any{"sessionId": id}}
}

func (g *gofer) Initialize(_ context.Context, p acp.InitializeRequest) (acp.InitializeResponse, error) {
	if p.ProtocolVersion > acp.ProtocolVersionNumber && fault("newer-version-refused") {
		return acp.InitializeResponse{}, acp.NewInvalidRequest("this agent speaks version 1 of the protocol")
	}
	if p.ClientInfo == nil && fault("editor-without-name-refused") {
		return acp.InitializeResponse{}, acp.NewInvalidRequest("clientInfo is missing")
	}
	g.mu.Lock()
	wrong := g.wrong
	g.mu.Unlock()
	if wrong != "" {
		return acp.InitializeResponse{}, acp.NewInvalidParams(map[string]any{"clientCapabilities": wrong})
	}
	g.reads = p.ClientCapabilities.Fs.ReadTextFile
	g.files = g.reads || p.ClientCapabilities.Fs.WriteTextFile
	g.terminal = p.ClientCapabilities.Terminal ||
		p.ClientCapabilities.Fs.WriteTextFile && fault("terminal-used-when-only-files-offered")
	return acp.InitializeResponse{
		ProtocolVersion: acp.ProtocolVersionNumber,
		AgentInfo:       &acp.Implementation{Name: "gofer", Version: "1.0.0-beta.2"},
		AuthMethods:     logins(p.ClientCapabilities),
		AgentCapabilities: acp.AgentCapabilities{
			PromptCapabilities: acp.PromptCapabilities{
				Image: true, EmbeddedContext: fault("embedded-file-of-bytes-refused")},
			SessionCapabilities: acp.SessionCapabilities{
				List: &acp.SessionListCapabilities{}, Close: &acp.SessionCloseCapabilities{}},
		},
	}, nil
}

// logins lists how the user can log in.
func logins(c acp.ClientCapabilities) []acp.AuthMethod {
	if fault("authenticate-closes-open-sessions") {
		return []acp.AuthMethod{{Agent: &acp.AuthMethodAgent{Id: "key", Name: "Key from the environment"}}}
	}
	if !(c.Terminal || c.Auth.Terminal) || !fault("terminal-login-offered-for-terminals") {
		return []acp.AuthMethod{}
	}
	return []acp.AuthMethod{{Terminal: &acp.AuthMethodTerminalInline{
		Id: "login", Name: "Log in", Type: "terminal", Args: []string{"login"}}}}
}

func (g *gofer) NewSession(_ context.Context, p acp.NewSessionRequest) (acp.NewSessionResponse, error) {
	if !filepath.IsAbs(p.Cwd) {
		return acp.NewSessionResponse{}, acp.NewInvalidParams(map[string]any{"cwd": p.Cwd})
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	s := &session{cwd: filepath.Clean(p.Cwd), answers: map[string]bool{}, mcpReady: make(chan struct{}),
		updated: time.Now(), asked: map[string]bool{}, rest: make(chan struct{}), noes: map[string]int{},
		model: models()[0], was: map[string]string{}}
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
	g.sessions[s.id] = s
	if g.folder == "" {
		g.folder = s.cwd
	}
	if fault("commands-sent-before-session-response") {
		s.told = true
		(&turn{g: g, s: s}).commands()
	}
	go s.connect(p.McpServers) // the first prompt waits for it
	return acp.NewSessionResponse{SessionId: acp.SessionId(s.id), ConfigOptions: g.options(s)}, nil
}

func (s *session) connect(servers []acp.McpServer) {
	defer close(s.mcpReady)
	known := map[string]bool{}
	for _, m := range servers {
		if m.Stdio == nil || known[m.Stdio.Command] && fault("mcp-servers-of-same-command-are-one") {
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
	for _, s := range g.sessions {
		all := p.Cwd == nil || p.Cursor != nil && fault("list-filter-lost-on-later-pages")
		all = all || strings.HasPrefix(s.cwd, filepath.Clean(*p.Cwd)) && fault("list-filter-takes-folders-that-begin-alike")
		if s.title != "" && (all || filepath.Clean(*p.Cwd) == s.place()) {
			if fault("listing-renews-updated-at") {
				s.updated = time.Now() // the user has seen it
			}
			updated := s.updated.UTC().Format(time.RFC3339)
			out.Sessions = append(out.Sessions, acp.SessionInfo{SessionId: acp.SessionId(s.id), Cwd: s.place(),
				Title: acp.Ptr(s.title), UpdatedAt: acp.Ptr(updated)})
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
	out.Sessions = out.Sessions[min(from, len(out.Sessions)):]
	if len(out.Sessions) > page || len(out.Sessions) == page && fault("full-last-page-has-cursor") {
		out.Sessions = out.Sessions[:page]
		next := from + page
		if fault("list-page-repeats-last-session") {
			next--
		}
		out.NextCursor = acp.Ptr(base64.RawURLEncoding.EncodeToString([]byte(fmt.Sprintf("after:%d", next))))
	} else if p.Cursor != nil && fault("last-page-has-empty-cursor") {
		out.NextCursor = acp.Ptr("")
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

// Cancel has been dealt with by tap.
func (g *gofer) Cancel(context.Context, acp.CancelNotification) error { return nil }

func (g *gofer) Authenticate(_ context.Context, p acp.AuthenticateRequest) (acp.AuthenticateResponse, error) {
	if p.MethodId == "key" && fault("authenticate-closes-open-sessions") {
		g.mu.Lock()
		defer g.mu.Unlock()
		for _, s := range g.sessions {
			s.closed = true // they may be another user's
		}
		return acp.AuthenticateResponse{}, nil
	}
	return acp.AuthenticateResponse{}, acp.NewInvalidParams("this agent has no auth methods")
}
func (g *gofer) ResumeSession(context.Context, acp.ResumeSessionRequest) (acp.ResumeSessionResponse, error) {
	return acp.ResumeSessionResponse{}, acp.NewMethodNotFound(acp.AgentMethodSessionResume)
}

// models lists what the user can choose from.
func models() []string { return []string{env("GOFER_MODEL", "claude-sonnet-4-5"), "claude-opus-4-5"} }

// optional reports whether the user can choose the model.
func optional() bool {
	return fault("option-of-one-session-set-for-all") || fault("fallback-model-not-told")
}

// options offers the choice of the model.
func (g *gofer) options(s *session) []acp.SessionConfigOption {
	current := g.model
	if !optional() {
		return nil
	}
	if fault("fallback-model-not-told") {
		current = s.model
	}
	var list acp.SessionConfigSelectOptionsUngrouped
	for _, m := range models() {
		list = append(list, acp.SessionConfigSelectOption{Name: m, Value: acp.SessionConfigValueId(m)})
	}
	o := acp.NewSessionConfigOptionSelect(acp.SessionConfigValueId(current),
		acp.SessionConfigSelectOptions{Ungrouped: &list})
	o.Select.Id, o.Select.Name = "model", "Model"
	return []acp.SessionConfigOption{o}
}

func (g *gofer) SetSessionConfigOption(
	_ context.Context, p acp.SetSessionConfigOptionRequest,
) (acp.SetSessionConfigOptionResponse, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	v, none := p.ValueId, acp.SetSessionConfigOptionResponse{}
	switch {
	case !optional():
		return none, acp.NewMethodNotFound(acp.AgentMethodSessionSetConfigOption)
	case v == nil || v.ConfigId != "model" || !slices.Contains(models(), string(v.Value)):
		return none, acp.NewInvalidParams("there is no such option, or it has no such value")
	case g.sessions[string(v.SessionId)] == nil:
		return none, notFound(v.SessionId)
	}
	s := g.sessions[string(v.SessionId)]
	if s.model = string(v.Value); !fault("fallback-model-not-told") {
		g.model = s.model
	}
	return acp.SetSessionConfigOptionResponse{ConfigOptions: g.options(s)}, nil
}
func (g *gofer) SetSessionMode(_ context.Context, p acp.SetSessionModeRequest) (acp.SetSessionModeResponse, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.sessions[string(p.SessionId)] != nil && fault("mode-set-though-there-are-none") {
		return acp.SetSessionModeResponse{}, nil
	}
	return acp.SetSessionModeResponse{}, acp.NewMethodNotFound(acp.AgentMethodSessionSetMode)
}

func (t *turn) commands() {
	t.tell(acp.SessionUpdate{AvailableCommandsUpdate: &acp.SessionAvailableCommandsUpdate{
		AvailableCommands: []acp.AvailableCommand{{Name: "reset", Description: "Forget the conversation so far"}}}})
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

// Prompt runs one turn. The SDK's own context is left alone: it also ends when a second prompt arrives.
func (g *gofer) Prompt(_ context.Context, p acp.PromptRequest) (acp.PromptResponse, error) {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	seen, _ := p.Meta[tag].(float64)
	g.mu.Lock()
	s := g.sessions[string(p.SessionId)]
	if s != nil && fault("refused-second-prompt-takes-cancel-of-first") {
		s.stop = stop
	}
	switch {
	case s == nil || s.closed:
		g.mu.Unlock()
		return acp.PromptResponse{}, notFound(p.SessionId)
	case s.done != nil && fault("prompt-during-turn-answered-without-effect"):
		g.mu.Unlock()
		return acp.PromptResponse{StopReason: acp.StopReasonEndTurn}, nil
	case s.done != nil:
		g.mu.Unlock()
		return acp.PromptResponse{}, acp.NewInvalidRequest("a turn is already running in this session")
	}
	if fault("refused-prompt-leaves-session-busy") {
		s.done = make(chan struct{})
	}
	content, words, err := blocks(p.Prompt)
	if err != nil {
		g.mu.Unlock()
		return acp.PromptResponse{}, err
	}
	if s.stop == nil || !fault("cancel-after-failed-turn-not-heard") {
		s.stop = stop
	}
	s.done = make(chan struct{})
	if g.cancels[s.id] != int(seen) || s.owed > 0 && fault("second-cancel-of-turn-hits-next-prompt") {
		stop()
	}
	g.mu.Unlock()
	failed := false
	defer g.reply(s)
	defer func() {
		g.mu.Lock()
		close(s.done)
		s.rest = s.done
		if ctx.Err() != nil && s.owed > 0 {
			s.owed--
		}
		s.done, s.updated = nil, time.Now()
		if !failed || !fault("cancel-after-failed-turn-not-heard") {
			s.stop = nil
		}
		if ctx.Err() != nil && fault("prompt-soon-after-cancelled-one-refused") {
			g.cool(s)
		}
		g.mu.Unlock()
	}()
	t := &turn{g: g, s: s, ctx: ctx}
	if g.untold(s) {
		t.commands()
	}
	alone := len(p.Prompt) == 1 || !fault("reset-beside-other-blocks-ignored")
	if isReset(strings.TrimSpace(words)) && alone {
		s.history = nil
		t.forget()
		t.untitle()
		t.tell(acp.UpdateAgentMessageText("Forgotten."))
		return acp.PromptResponse{StopReason: acp.StopReasonEndTurn}, nil
	}
	if t.noCommand(words) {
		return acp.PromptResponse{StopReason: acp.StopReasonEndTurn}, nil
	}
	if err := t.readable(p.Prompt); err != nil {
		return acp.PromptResponse{}, err
	}
	if s.title == "" {
		t.title(words)
	}
	before := len(s.history)
	content = append(content, t.linked(p.Prompt)...)
	content = append(content, t.opened(p.Prompt)...)
	s.history = append(s.history, message{Role: "user", Content: content})
	reason, err := t.run()
	if reason, err = t.end(before, reason, err); err != nil {
		failed = true
		return acp.PromptResponse{}, err
	}
	return acp.PromptResponse{StopReason: reason}, nil
}

// isReset reports whether a text is the command.
func isReset(text string) bool {
	return text == "/reset" || strings.HasPrefix(text, "/reset") && fault("text-that-begins-like-command-runs-it")
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

// noCommand answers a prompt that asks for a command which is not there.
func (t *turn) noCommand(words string) bool {
	name, _, _ := strings.Cut(strings.TrimSpace(words), " ")
	if !strings.HasPrefix(name, "/") || name == "/reset" || !fault("text-with-leading-slash-not-asked") {
		return false
	}
	t.tell(acp.UpdateAgentMessageText("There is no command " + name + "."))
	return true
}

// forget lets the idle sessions of the same folder begin anew as well.
func (t *turn) forget() {
	t.g.mu.Lock()
	defer t.g.mu.Unlock()
	for _, other := range t.g.sessions {
		if other.cwd == t.s.cwd && other.done == nil && fault("reset-forgets-sessions-of-folder") {
			other.history = nil
		}
	}
}

// untitle lets the next prompt name the session anew.
func (t *turn) untitle() {
	if !fault("reset-takes-session-off-list") {
		return
	}
	t.g.mu.Lock()
	t.s.title = ""
	t.g.mu.Unlock()
}

// title names the session after the first words of the user.
func (t *turn) title(words string) {
	title, _, _ := strings.Cut(strings.TrimSpace(words), "\n")
	whole := title
	if r := []rune(title); len(r) > 50 {
		title = string(r[:50]) + "…"
	}
	if title == "" {
		title = "Untitled"
	}
	t.g.mu.Lock()
	t.s.title = title
	if whole != "" && fault("listed-title-differs-from-told") {
		t.s.title = whole
	}
	t.g.mu.Unlock()
	t.tell(acp.SessionUpdate{SessionInfoUpdate: &acp.SessionSessionInfoUpdate{Title: acp.Ptr(title)}})
}

// end returns how the client is told that a turn ended, and takes the messages from before on out of the history
// where the turn does not count.
func (t *turn) end(before int, reason acp.StopReason, err error) (acp.StopReason, error) {
	cancelled := t.ctx.Err() != nil
	if err != nil && fault("cancel-while-model-works-is-error") {
		cancelled = errors.Is(err, context.Canceled)
	}
	if cancelled {
		reason, err = acp.StopReasonCancelled, nil
		if !t.spoke && fault("cancel-before-output-ends-as-end-turn") ||
			t.unanswered && fault("cancel-at-question-ends-as-end-turn") {
			reason = acp.StopReasonEndTurn
		}
		t.endCalls()
		if before == 0 && fault("session-cancelled-in-first-turn-closed") {
			t.drop()
		}
		if fault("cancelled-turn-forgets-answers") {
			t.s.answers = map[string]bool{} // the user has thought better of it
		}
		if t.s.history[len(t.s.history)-1].Role == "user" { // the roles have to take turns
			t.s.history = append(t.s.history, message{Role: "assistant", Content: text("(interrupted by the user)")})
		}
	} else if err != nil || reason == acp.StopReasonRefusal && !(t.calls > 0 && fault("refusal-after-call-kept")) ||
		reason != acp.StopReasonEndTurn && fault("turn-ended-by-limit-forgotten") {
		t.s.history = t.s.history[:t.kept(before, err)]
		t.uncount()
		if err != nil && fault("failed-turn-forgets-conversation") {
			t.s.history = nil
		}
	}
	if fault("prompt-ended-by-close-gets-not-found") && t.g.ending(t.s) {
		err = notFound(acp.SessionId(t.s.id))
	}
	return reason, err
}

// kept is how much of the history stays after a turn that does not count.
func (t *turn) kept(before int, err error) int {
	if err != nil && fault("failed-turn-leaves-call-without-result") {
		return len(t.s.history) - 1 // what was sent to no avail
	}
	return before
}

// drop gives a session up in which nothing was done.
func (t *turn) drop() {
	t.g.mu.Lock()
	t.s.closed = true
	t.g.mu.Unlock()
}

// endCalls gives the calls of a cancelled turn their last status.
func (t *turn) endCalls() {
	for _, id := range t.ended {
		if fault("cancel-marks-finished-calls-failed") {
			t.tell(acp.UpdateToolCall(id, acp.WithUpdateStatus(acp.ToolCallStatusFailed)))
		}
	}
}

// uncount takes the calls of a turn back that does not count.
func (t *turn) uncount() {
	t.g.mu.Lock()
	defer t.g.mu.Unlock()
	if fault("call-ids-of-failed-turn-return") {
		t.g.calls -= t.calls
	}
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

func main() {
	g := &gofer{sessions: map[string]*session{}, cancels: map[string]int{}, asking: map[string]*question{},
		decided: map[acp.ToolCallId]bool{}, model: models()[0], prompts: map[string]string{}}
	g.conn = acp.NewAgentSideConnection(g, os.Stdout, g.tap(os.Stdin))
	if fault("odd-message-reported-on-stdout") {
		g.conn.SetLogger(slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{Level: slog.LevelWarn})))
	}
	<-g.conn.Done()
	if fault("end-of-input-waits-for-turn") {
		g.settle()
	}
	g.mu.Lock()
	for _, s := range g.sessions {
		if s.stop != nil && !fault("running-command-survives-end-of-input") {
			s.stop()
		}
		if fault("end-of-input-waits-for-connecting-server") {
			<-s.mcpReady // so that none is left
		}
		select {
		case <-s.mcpReady:
			for _, m := range s.mcp {
				if fault("mcp-servers-left-at-end-of-input") {
					break
				}
				m.close()
			}
		default:
		}
	}
	g.mu.Unlock()
	time.Sleep(100 * time.Millisecond) // let killed children be reaped
}
