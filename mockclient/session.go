package mockclient

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/wire"
)

// NotAdvertised is the error for a method that the agent did not advertise. The
// request was not sent; Editor.Call would send it.
type NotAdvertised struct {
	Method     string
	Capability string // path in the result of initialize
}

func (e *NotAdvertised) Error() string {
	return fmt.Sprintf("%s: the agent does not advertise %s", e.Method, e.Capability)
}

// VersionError says that the agent answered initialize with a protocol version
// this editor does not speak. The editor has closed the agent's input.
type VersionError struct{ Answered string }

func (e *VersionError) Error() string {
	return fmt.Sprintf("the agent speaks protocol version %s, this editor speaks 1", e.Answered)
}

// AgentInfo is an agent's answer to initialize.
type AgentInfo struct{ result wire.Value }

// Result returns the whole result.
func (i *AgentInfo) Result() wire.Value {
	if i == nil {
		return wire.Value{}
	}
	return i.result
}

// Capability returns a value by its path, such as
// "agentCapabilities.loadSession".
func (i *AgentInfo) Capability(path string) wire.Value { return i.Result().Path(path) }

// Has reports whether a capability is advertised: true, or an object.
func (i *AgentInfo) Has(path string) bool {
	v := i.Capability(path)
	if on, ok := v.Bool(); ok {
		return on
	}
	return v.Kind() == wire.Object
}

// Info returns the agent's answer to the latest initialize; nil before the first.
func (e *Editor) Info() *AgentInfo {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.info
}

// InitializeParams returns the params that Initialize sends.
func (e *Editor) InitializeParams() map[string]any {
	params := map[string]any{
		"protocolVersion":    e.opts.Version,
		"clientCapabilities": map[string]any(e.caps),
		"clientInfo":         e.opts.Info,
	}
	if e.opts.Meta != nil {
		params["_meta"] = e.opts.Meta
	}
	return params
}

// Initialize opens the connection and returns the agent's answer, which has its
// capabilities. If the agent answers with a version this editor does not speak,
// Initialize closes the agent's input.
func (e *Editor) Initialize(ctx context.Context) (*AgentInfo, error) {
	resp, err := e.CallContext(ctx, "initialize", e.InitializeParams()).Wait(ctx)
	if err != nil {
		return nil, err
	}
	info := &AgentInfo{result: resp.JSON().Get("result")}
	if n, ok := info.result.Get("protocolVersion").Int(); !ok || n != int64(e.opts.Version) {
		e.agent.CloseStdin()
		return info, &VersionError{info.result.Get("protocolVersion").Text()}
	}
	return info, nil
}

// SessionOptions are the options to open a session with.
type SessionOptions struct {
	Cwd string // absolute
	// Additional directories need the agent's capability. Each method that opens
	// the session gets the full list.
	Additional []string
	// MCP are the MCP servers: MCPServer values, or any other JSON. Nil means no servers.
	MCP  []any
	Meta map[string]any
}

// MCPServer is a stdio MCP server, which every agent must support.
type MCPServer struct {
	Name    string        `json:"name"`
	Command string        `json:"command"` // absolute
	Args    []string      `json:"args"`
	Env     []EnvVariable `json:"env"`
}

// HTTPServer is an MCP server behind a URL; Type is "http" or "sse".
type HTTPServer struct {
	Type    string        `json:"type"`
	Name    string        `json:"name"`
	URL     string        `json:"url"`
	Headers []EnvVariable `json:"headers"`
}

// EnvVariable is the name and value of an environment variable or a header.
type EnvVariable struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// params renders the options as params. It returns an error if they violate a
// requirement on clients.
func (e *Editor) params(method string, o SessionOptions) (map[string]any, error) {
	if !filepath.IsAbs(o.Cwd) {
		return nil, fmt.Errorf("%s: the cwd %q is not absolute", method, o.Cwd)
	}
	p := map[string]any{"cwd": o.Cwd, "mcpServers": []any{}}
	if len(o.Additional) > 0 {
		const capability = "agentCapabilities.sessionCapabilities.additionalDirectories"
		if !e.Info().Has(capability) {
			return nil, &NotAdvertised{method + " with additionalDirectories", capability}
		}
		for _, dir := range o.Additional {
			if !filepath.IsAbs(dir) {
				return nil, fmt.Errorf("%s: the additional directory %q is not absolute", method, dir)
			}
		}
		p["additionalDirectories"] = o.Additional
	}
	if o.MCP != nil {
		for _, server := range o.MCP {
			if s, ok := server.(HTTPServer); ok && !e.Info().Has("agentCapabilities.mcpCapabilities."+s.Type) {
				return nil, &NotAdvertised{
					method + " with an MCP server over " + s.Type, "agentCapabilities.mcpCapabilities." + s.Type,
				}
			}
		}
		p["mcpServers"] = slices.Clone(o.MCP)
	}
	if o.Meta != nil {
		p["_meta"] = o.Meta
	}
	return p, nil
}

// errNotInitialized says that the caller did not wait for initialize, as ACP
// demands of clients.
var errNotInitialized = errors.New("initialize has not been answered")

// need returns an error that says why a method must not be called on this agent,
// nil if it may.
func (e *Editor) need(method, capability string) error {
	info := e.Info()
	if info == nil {
		return fmt.Errorf("%s: %w", method, errNotInitialized)
	}
	if capability != "" && !info.Has(capability) {
		return &NotAdvertised{method, capability}
	}
	return nil
}

// Session is one conversation on a connection.
type Session struct {
	// ID is the agent's name for the session.
	ID string
	// Options are the options the session was opened with.
	Options SessionOptions
	// How is the method that opened it: "session/new", …
	How string
	// Request and Response are the transcript entries of the method that opened
	// it.
	Request, Response transcript.Entry
	// Tried are the errors of the methods that EnsureSession tried before, in
	// order.
	Tried []error

	e *Editor
}

// Editor returns the connection of the session.
func (s *Session) Editor() *Editor { return s.e }

// Result returns the agent's answer to the method that opened the session.
func (s *Session) Result() wire.Value { return s.Response.JSON().Get("result") }

// NewSession opens a new conversation.
func (e *Editor) NewSession(ctx context.Context, o SessionOptions) (*Session, error) {
	return e.open(ctx, "session/new", "", "", o)
}

// open opens a new session, or the one with an id.
func (e *Editor) open(ctx context.Context, method, capability, id string, o SessionOptions) (*Session, error) {
	if err := e.need(method, capability); err != nil {
		return nil, err
	}
	params, err := e.params(method, o)
	if err != nil {
		return nil, err
	}
	if method != "session/new" {
		params["sessionId"] = id
	}
	call := e.CallContext(ctx, method, params)
	resp, err := call.Wait(ctx)
	if err != nil {
		return nil, err
	}
	if method == "session/new" {
		v := resp.JSON().Path("result.sessionId")
		if v.Kind() != wire.String {
			return nil, fmt.Errorf("%s: the response has no sessionId", method)
		}
		id = v.Str()
	}
	return &Session{ID: id, Options: o, How: method, Request: call.Entry, Response: resp, e: e}, nil
}

// Session returns a session by its id, for a session that was opened by Call.
func (e *Editor) Session(id string) *Session { return &Session{ID: id, e: e} }

// Cancel cancels the session's running turn. The editor answers its open
// permission requests with cancelled, and those that arrive before the turn ends,
// unless the policy says otherwise. Cancel returns the entry even if the write
// failed.
func (s *Session) Cancel() (transcript.Entry, error) {
	return s.e.Notify("session/cancel", map[string]any{"sessionId": s.ID})
}

// Turn is one prompt and the agent's answer to it.
type Turn struct {
	*Call
	Session *Session
}

// Prompt starts a turn. It returns when the prompt is written. If the prompt
// could not be written, or the agent does not take such blocks, the turn is done
// at once, and Wait returns the error. A session may have two turns at once.
func (s *Session) Prompt(ctx context.Context, blocks ...Content) *Turn {
	return s.PromptMeta(ctx, nil, blocks...)
}

// PromptMeta is like Prompt, with a _meta object such as a trace context.
func (s *Session) PromptMeta(ctx context.Context, meta map[string]any, blocks ...Content) *Turn {
	params := map[string]any{"sessionId": s.ID, "prompt": append([]Content{}, blocks...)}
	if meta != nil {
		params["_meta"] = meta
	}
	if err := s.e.mayPrompt(blocks); err != nil {
		c := &Call{e: s.e, done: make(chan struct{})}
		c.Entry.Method = "session/prompt"
		c.finish(transcript.Entry{}, err)
		return &Turn{Call: c, Session: s}
	}
	return &Turn{Call: s.e.CallContext(ctx, "session/prompt", params), Session: s}
}

// promptGates maps block types to the capability an agent must advertise for them
// (ACP v1, Prompt Capabilities). text and resource_link go to every agent.
var promptGates = map[string]string{"image": "image", "audio": "audio", "resource": "embeddedContext"}

func (e *Editor) mayPrompt(blocks []Content) error {
	if err := e.need("session/prompt", ""); err != nil {
		return err
	}
	for _, b := range blocks {
		kind, _ := b["type"].(string)
		if gate := promptGates[kind]; gate != "" {
			if err := e.need("session/prompt with "+kind, "agentCapabilities.promptCapabilities."+gate); err != nil {
				return err
			}
		}
	}
	return nil
}

// Wait waits for the end of the turn and returns its stop reason.
func (t *Turn) Wait(ctx context.Context) (stop string, err error) {
	resp, err := t.Call.Wait(ctx)
	if err != nil {
		return "", err
	}
	return resp.JSON().Path("result.stopReason").Str(), nil
}

// Ended matches the end of the turn with a stop reason; "" is any. After another
// reason or an error answer, it can never be met.
func (t *Turn) Ended(stop string) transcript.Expectation {
	what := "the turn's end"
	if stop != "" {
		what += " with " + stop
	}
	return transcript.Expect(what, func() transcript.Fold {
		return func(f transcript.Entry) (transcript.Verdict, string) {
			if f.Kind != transcript.Response || f.Source != transcript.Agent || f.Ref != t.Entry.Seq || f.Ref == 0 {
				return transcript.Unmet, "the turn is open"
			}
			if rpc := errorOf(f); rpc != nil {
				return transcript.Unmeetable, fmt.Sprintf("the turn ended with the error %v", rpc)
			}
			got := f.JSON().Path("result.stopReason").Str()
			if stop != "" && got != stop {
				return transcript.Unmeetable, fmt.Sprintf("the turn ended with %q", got)
			}
			return transcript.Met, ""
		}
	})
}
