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

// NotAdvertised is the error of a method the agent did not advertise. Nothing
// was sent. Call sends it all the same.
type NotAdvertised struct {
	Method     string
	Capability string // path in the result of initialize
}

func (e *NotAdvertised) Error() string {
	return fmt.Sprintf("%s: the agent does not advertise %s", e.Method, e.Capability)
}

// VersionError says that the agent answered initialize with a protocol version
// this editor does not speak. The agent's input has been closed.
type VersionError struct{ Answered string }

func (e *VersionError) Error() string {
	return fmt.Sprintf("the agent speaks protocol version %s, this editor speaks 1", e.Answered)
}

// AgentInfo is what an agent answered to initialize.
type AgentInfo struct{ result wire.Value }

// Result is the whole result.
func (i *AgentInfo) Result() wire.Value {
	if i == nil {
		return wire.Value{}
	}
	return i.result
}

// Capability is a value by its path, such as "agentCapabilities.loadSession".
func (i *AgentInfo) Capability(path string) wire.Value { return i.Result().Path(path) }

// Has reports whether a capability is advertised: true, or an object.
func (i *AgentInfo) Has(path string) bool {
	v := i.Capability(path)
	if on, ok := v.Bool(); ok {
		return on
	}
	return v.Kind() == wire.Object
}

// Info is what the agent answered to the latest initialize; nil before.
func (e *Editor) Info() *AgentInfo {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.info
}

// InitializeParams are the params Initialize sends.
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

// Initialize opens the connection and returns what the agent can do. An answer
// with a version this editor does not speak closes the agent's input.
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

// SessionOptions are what a session is opened with.
type SessionOptions struct {
	Cwd string // absolute
	// Additional directories need the agent's capability, and are given in
	// full each time.
	Additional []string
	// MCP are the servers: MCPServer values, or any other JSON. Nil is none.
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

// EnvVariable is a name and a value, of an environment variable or a header.
type EnvVariable struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// params renders the options as params, with the duties of a client checked.
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

// errNotInitialized is a mistake of the caller: ACP forbids it to clients.
var errNotInitialized = errors.New("initialize has not been answered")

// need reports why a method must not be called on this agent.
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
	// Options are what it was opened with.
	Options SessionOptions
	// How is the method that opened it: "session/new", …
	How string
	// Request and Response are the entries that opened it.
	Request, Response transcript.Entry
	// Tried is what EnsureSession tried before, in order.
	Tried []error

	e *Editor
}

// Editor is the connection of the session.
func (s *Session) Editor() *Editor { return s.e }

// Result is what the agent answered when the session was opened.
func (s *Session) Result() wire.Value { return s.Response.JSON().Get("result") }

// NewSession opens a new conversation.
func (e *Editor) NewSession(ctx context.Context, o SessionOptions) (*Session, error) {
	return e.open(ctx, "session/new", "", "", o)
}

// open opens a session: a new one, or the one with an id.
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
			return nil, fmt.Errorf("%s: the answer names no sessionId", method)
		}
		id = v.Str()
	}
	return &Session{ID: id, Options: o, How: method, Request: call.Entry, Response: resp, e: e}, nil
}

// Session is a session by its id, for one that was opened by Call.
func (e *Editor) Session(id string) *Session { return &Session{ID: id, e: e} }

// Cancel cancels the session's running turn. Its open permission requests are
// answered with cancelled, and so are those that arrive before the turn ends,
// unless the policy says otherwise. The error is that of the write; the entry
// is there also then.
func (s *Session) Cancel() (transcript.Entry, error) {
	return s.e.Notify("session/cancel", map[string]any{"sessionId": s.ID})
}

// Turn is one prompt and what the agent makes of it.
type Turn struct {
	*Call
	Session *Session
}

// Prompt starts a turn. It returns when the prompt is written; a prompt that
// was not, because it could not or because the agent does not take such blocks,
// is a turn that is done, with the error in Wait. Nothing
// keeps two turns of a session from running at once.
func (s *Session) Prompt(ctx context.Context, blocks ...Content) *Turn {
	return s.PromptMeta(ctx, nil, blocks...)
}

// PromptMeta is Prompt with a _meta object, such as a trace context.
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

// promptGates are the block types an agent must ask for (ACP v1, Prompt
// Capabilities); text and resource_link go to every agent.
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

// Ended is the end of the turn with a stop reason; with "" any reason. An error
// answer, and any other reason, make it unmeetable.
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
