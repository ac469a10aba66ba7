// gofer: a small coding agent on the Go SDK. Anthropic Messages, streamed; its one tool is a shell, run in the
// editor's terminal where the client offers one and as a child process otherwise. It lists and closes sessions.
package main

import (
	"context"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"

	acp "github.com/coder/acp-go-sdk"
)

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
	offered  acp.ProtocolVersion     // by the editor
	writes   bool                    // the editor writes files
	logins   int                     // the key of the environment is one
	always   map[string]bool         // what the user has said yes to for every session
	making   chan struct{}           // full while the editor makes a terminal
	bare     bool                    // the editor has said nothing of what it can do
	views    map[string]string       // command -> the terminal that shows it
	ids      sync.Mutex
	open     string            // request of the agent that is not answered yet
	nested   int               // how many others it has sent in the meantime
	below    map[string]string // the id that one of them was sent with -> its own
	forms    bool              // the editor shows forms
	chosen   string            // the mode that the user has chosen last
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
	g.offered = p.ProtocolVersion
	g.writes = p.ClientCapabilities.Fs.WriteTextFile
	g.reads = p.ClientCapabilities.Fs.ReadTextFile
	g.forms = p.ClientCapabilities.Elicitation != nil && p.ClientCapabilities.Elicitation.Form != nil
	g.files = g.reads || p.ClientCapabilities.Fs.WriteTextFile
	g.terminal = p.ClientCapabilities.Terminal ||
		p.ClientCapabilities.Fs.WriteTextFile && fault("terminal-used-when-only-files-offered") || g.bare
	return acp.InitializeResponse{
		ProtocolVersion: acp.ProtocolVersionNumber,
		AgentInfo:       &acp.Implementation{Name: "gofer", Version: "1.0.0-beta.2"},
		AuthMethods:     logins(p.ClientCapabilities),
		AgentCapabilities: acp.AgentCapabilities{
			LoadSession: loads(),
			PromptCapabilities: acp.PromptCapabilities{
				Image: true, EmbeddedContext: fault("embedded-file-of-bytes-refused"),
				Audio: fault("recording-other-than-wav-refused")},
			SessionCapabilities: abilities(),
			Auth:                auth(),
			Meta:                extensions(),
		},
	}, nil
}

// logins lists how the user can log in.
func logins(c acp.ClientCapabilities) []acp.AuthMethod {
	if fault("authenticate-closes-open-sessions") || counted() {
		return []acp.AuthMethod{{Agent: &acp.AuthMethodAgent{Id: "key", Name: "Key from the environment"}}}
	}
	offered := (c.Terminal || c.Auth.Terminal) && fault("terminal-login-offered-for-terminals")
	if !offered && !(c.Auth.Terminal && logsIn()) {
		return []acp.AuthMethod{}
	}
	return []acp.AuthMethod{{Terminal: &acp.AuthMethodTerminalInline{
		Id: "login", Name: "Log in", Type: "terminal", Args: []string{"login"}}}}
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
	if p.MethodId == "key" && counted() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.logins++
		return acp.AuthenticateResponse{}, nil
	}
	return acp.AuthenticateResponse{}, acp.NewInvalidParams("this agent has no auth methods")
}

// Prompt answers a prompt when its turn has ended.
func (g *gofer) Prompt(request context.Context, p acp.PromptRequest) (acp.PromptResponse, error) {
	if fault("pause-of-model-told-as-end-turn") {
		return g.settled(request, p)
	}
	if g.offered > acp.ProtocolVersionNumber && fault("prompt-of-newer-client-answered-when-accepted") {
		return g.accepted(request, p)
	}
	return g.prompt(request, p, nil)
}

// prompt runs one turn. The SDK's own context is left alone: it also ends when a second prompt arrives. idle, where
// there is one, gets an element when the model has nothing more to say.
func (g *gofer) prompt(
	request context.Context, p acp.PromptRequest, idle chan struct{},
) (acp.PromptResponse, error) {
	if !fault("second-prompt-ends-running-turn") {
		request = context.Background()
	}
	ctx, stop := context.WithCancel(request)
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
	s.done, s.mute = make(chan struct{}), false
	if g.cancels[s.id] != int(seen) || s.owed > 0 && fault("second-cancel-of-turn-hits-next-prompt") ||
		s.ending && fault("session-closed-in-turn-cancels-after-resume") || s.overtaken() { // it is about to be closed
		stop()
	}
	g.mu.Unlock()
	failed := false
	t := &turn{g: g, s: s, ctx: ctx, idle: idle}
	defer g.reply(s)
	defer func() {
		g.mu.Lock()
		s.keep()
		g.put(s)
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
	if g.untold(s) {
		t.commands()
	}
	t.said(p.Prompt)
	alone := len(p.Prompt) == 1 || !fault("reset-beside-other-blocks-ignored")
	if isReset(strings.TrimSpace(words)) && alone {
		sure, err := t.confirmed()
		switch {
		case t.ctx.Err() != nil && confirms():
			return acp.PromptResponse{StopReason: acp.StopReasonCancelled}, nil
		case err != nil:
			return acp.PromptResponse{}, err
		case !sure:
			t.tell(acp.UpdateAgentMessageText("Nothing is forgotten."))
			return acp.PromptResponse{StopReason: acp.StopReasonEndTurn}, nil
		}
		s.history = nil
		t.modelBack()
		t.forget()
		t.untitle()
		t.tell(acp.UpdateAgentMessageText("Forgotten."))
		t.emptied()
		return acp.PromptResponse{StopReason: acp.StopReasonEndTurn}, nil
	}
	if g.stranger() && fault("prompt-after-logout-answered-with-words") {
		t.tell(acp.UpdateAgentMessageText("You are logged out. Please log in first."))
		return acp.PromptResponse{StopReason: acp.StopReasonEndTurn}, nil
	}
	if t.noCommand(words) {
		return acp.PromptResponse{StopReason: acp.StopReasonEndTurn}, nil
	}
	if s.again(p.Prompt) {
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
	t.checkpoint()
	reason, err := t.run()
	t.outlast()
	if reason, err = t.end(before, reason, err); err != nil {
		failed = true
		if t.refused && fault("model-failure-told-as-stop-reason-error") {
			return acp.PromptResponse{StopReason: "error"}, nil
		}
		return acp.PromptResponse{}, err
	}
	t.touched(before)
	return acp.PromptResponse{StopReason: reason}, nil
}

func main() {
	if len(os.Args) > 1 && os.Args[1] == "login" && logsIn() && !keyThere() {
		logIn()
	}
	g := &gofer{sessions: map[string]*session{}, cancels: map[string]int{}, asking: map[string]*question{},
		decided: map[acp.ToolCallId]bool{}, model: models()[0], prompts: map[string]string{}, logins: 1,
		always: map[string]bool{}, making: make(chan struct{}, 1), views: map[string]string{},
		below: map[string]string{}}
	g.conn = acp.NewAgentSideConnection(g, g.wire(), g.tap(os.Stdin))
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
		default: // some server does not answer
			var closed sync.WaitGroup
			started.Range(func(m, _ any) bool {
				closed.Add(1)
				go func() {
					defer closed.Done()
					m.(*mcpServer).close()
				}()
				return true
			})
			closed.Wait()
		}
	}
	g.mu.Unlock()
	time.Sleep(100 * time.Millisecond) // let killed children be reaped
	g.unlock()
}
