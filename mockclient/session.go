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

// NotAdvertised is the error for a method or a parameter whose capability the agent did not advertise. The request
// was not sent. Editor.Call sends a request without this check.
type NotAdvertised struct {
	Method     string
	Capability string // path in the initialize result
}

func (e *NotAdvertised) Error() string {
	return fmt.Sprintf("%s: the agent does not advertise %s", e.Method, e.Capability)
}

// VersionError is the error if the agent answers initialize with a protocol version that this editor does not
// support. The editor has closed the agent's input.
type VersionError struct{ Answered string }

func (e *VersionError) Error() string {
	return fmt.Sprintf("the agent speaks protocol version %s, this editor speaks 1", e.Answered)
}

// AgentInfo is an agent's initialize result.
type AgentInfo struct{ result wire.Value }

// Result returns the complete result. It is missing if i is nil.
func (i *AgentInfo) Result() wire.Value {
	if i == nil {
		return wire.Value{}
	}
	return i.result
}

// Capability returns a value of the result by its path, such as "agentCapabilities.loadSession".
func (i *AgentInfo) Capability(path string) wire.Value { return i.Result().Path(path) }

// Has reports whether a capability is advertised, which means that its value is true or an object.
func (i *AgentInfo) Has(path string) bool {
	v := i.Capability(path)
	if on, ok := v.Bool(); ok {
		return on
	}
	return v.Kind() == wire.Object
}

// Info returns the agent's latest initialize result, or nil if there is none yet.
func (e *Editor) Info() *AgentInfo {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.info
}

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

// Initialize sends initialize and returns the agent's result, which contains the agent's capabilities. If the agent
// answers with a version that this editor does not support, Initialize closes the agent's input and returns a
// *VersionError.
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

// SessionOptions are the options for opening a session.
type SessionOptions struct {
	Cwd string // absolute path
	// Additional lists additional directories, which require a capability of the agent. Every method that opens the
	// session sends the complete list.
	Additional []string
	// MCP lists the session's MCP servers, as MCPServer, HTTPServer or any other JSON. Nil means no servers.
	MCP  []any
	Meta map[string]any
}

// MCPServer is a stdio MCP server, which every agent must support.
type MCPServer struct {
	Name    string        `json:"name"`
	Command string        `json:"command"` // absolute path
	Args    []string      `json:"args"`
	Env     []EnvVariable `json:"env"`
}

// HTTPServer is an MCP server at a URL. Type is "http" or "sse".
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

// params returns the params of a method that opens a session. It returns an error if the options violate a
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

// errNotInitialized means that the caller did not wait for the initialize response, as ACP requires of clients.
var errNotInitialized = errors.New("initialize has not been answered")

// need checks that a method may be called on this agent. It returns an error if the connection is not initialized or
// the agent lacks the capability; "" means that the method needs no capability.
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
	// ID is the agent's id for the session.
	ID string
	// Options are the options with which the session was opened.
	Options SessionOptions
	// How is the method that opened the session, such as "session/new".
	How string
	// Request and Response are the transcript entries of the call that opened the session.
	Request, Response transcript.Entry
	// Tried contains, in order, the errors of the methods that EnsureSession tried before the successful one.
	Tried []error

	e *Editor
}

// Editor returns the editor to which the session belongs.
func (s *Session) Editor() *Editor { return s.e }

// Result returns the result of the method that opened the session.
func (s *Session) Result() wire.Value { return s.Response.JSON().Get("result") }

// NewSession opens a new session.
func (e *Editor) NewSession(ctx context.Context, o SessionOptions) (*Session, error) {
	return e.open(ctx, "session/new", "", "", o)
}

// open opens a session by the given method: a new session or, for other methods, the existing session id.
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

// Session returns a session by its id. It is for a session that was opened by Call. Only ID is set.
func (e *Editor) Session(id string) *Session { return &Session{ID: id, e: e} }

// Cancel cancels the session's running turn. The editor answers the session's open permission requests with
// cancelled, and also those that arrive before the turn ends, unless the policy says otherwise. Cancel returns the
// transcript entry even if the write failed.
func (s *Session) Cancel() (transcript.Entry, error) {
	return s.e.Notify("session/cancel", map[string]any{"sessionId": s.ID})
}

// Turn is one prompt and the agent's response to it.
type Turn struct {
	*Call
	Session *Session
}

// Prompt starts a turn. It returns when the prompt is written. If the prompt could not be written, or the agent does
// not support its blocks, the turn is done at once, and Wait returns the error. A session may have several turns at
// the same time.
func (s *Session) Prompt(ctx context.Context, blocks ...Content) *Turn {
	return s.PromptMeta(ctx, nil, blocks...)
}

// PromptMeta is like Prompt, but adds a _meta object, such as a trace context.
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

// promptGates maps block types to the capability that an agent must advertise for them (ACP v1, Prompt Capabilities).
// Every agent supports text and resource_link.
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

// Ended matches the end of the turn with a stop reason; "" matches every reason. It can no longer be met if the turn
// ends with another reason or with an error.
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
