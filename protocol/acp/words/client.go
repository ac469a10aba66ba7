package words

import (
	"context"
	"net/url"
	"runtime"
	"strconv"
	"sync"

	"github.com/acp-test/acp-test/editors/personas"
	"github.com/acp-test/acp-test/internal/isolate"
	"github.com/acp-test/acp-test/mockclient"
	"github.com/acp-test/acp-test/protocol/acp/schema"
	"github.com/acp-test/acp-test/scenarios"
	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/transport"
	"github.com/acp-test/acp-test/wire"
)

// client is the editor of one run. In a scenario for both sides, the agent's part and the editor's part of the script
// use the client concurrently, so mu guards all fields.
type client struct {
	version int // v2 for version 2; any other value for version 1

	mu     sync.Mutex
	editor *mockclient.Editor // nil while no agent runs
	offers mockclient.Capabilities
	as     *personas.Persona // editor that the client imitates, or nil for acp-test itself

	// Set-up lines set these fields.
	permits  []mockclient.Rule
	remember mockclient.Memory
	files    mockclient.Files
	hold     []held
	once     map[string]func(wire.Value) bool // the condition of the latest hold for one request, by method
	refuse   map[string]bool                  // methods that the editor refuses
	ids      mockclient.IDs
	theirIDs bool
	escapes  bool // write characters as escapes of JSON
	// adds adds optional members to each message of the editor; nil adds none.
	adds      func(v *schema.Version, method string, result bool, raw []byte) []byte
	terminals mockclient.Terminals
	elicits   []mockclient.ElicitRule
	mcp       mcpServers
	system    map[string]any // the system prompt, or nil

	greeting wire.Value       // the result of initialize
	asked    bool             // the login was done or skipped for this connection
	opening  transcript.Entry // the answer to the latest session/new
}

// held says which requests of a method the editor leaves unanswered: those whose params satisfy is.
type held struct {
	method string
	is     func(params wire.Value) bool
}

func newClient() scenarios.Client { return &client{offers: mockclient.DefaultCapabilities()} }

// As returns a version 1 client that behaves like the editor p.
func As(p *personas.Persona) scenarios.Client {
	c := &client{offers: mockclient.Capabilities(p.Capabilities).Clone(), as: p,
		ids: mockclient.CountingIDs(int64(p.FirstID))}
	c.files.MissingEmpty = p.MissingEmpty
	return c
}

// of returns the client of a run.
func of(b *scenarios.Branch) *client { return b.Client().(*client) }

// change calls f under the client's lock.
func (c *client) change(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f()
}

// live returns the editor for a line that needs one. If no agent runs, it returns a Miss.
func live(b *scenarios.Branch, l *scenarios.Line) (e *mockclient.Editor, err error) {
	c := of(b)
	if c.change(func() { e = c.editor }); e == nil {
		return nil, b.Unsent(l, transport.ErrExited)
	}
	return e, nil
}

// Connect creates the editor for an agent that was just started. By default the editor's terminals really run the
// agent's commands, because an agent may need commands in any scenario. They do not if the scenario scripts the
// terminals, or if the agent is isolated, because a command in a terminal would run outside the isolation.
func (c *client) Connect(a *transport.Agent, env []string, root string, isolated bool) {
	c.change(func() {
		c.asked = false
		t := &c.terminals
		t.Env = env
		if t.Script == nil && !t.Real && !isolated && runtime.GOOS != "windows" {
			t.Real, t.Allow = true, []string{"*"}
		}
		var add func(string, bool, []byte) []byte
		if c.adds != nil {
			of := schema.V1()
			if c.version == v2 {
				of = schema.V2()
			}
			add = func(method string, result bool, raw []byte) []byte { return c.adds(of, method, result, raw) }
		}
		c.editor = mockclient.NewEditor(a, mockclient.Options{
			Capabilities: c.offers, Policy: c.policy(), Files: &c.files, IDs: c.ids, TheirIDs: c.theirIDs,
			Version: c.version, Members: c.members(), Add: add, Escape: c.escapes,
			Within:    root,
			Terminals: &c.terminals, Elicitation: &mockclient.Elicitation{Rules: c.elicits},
		})
		for method, on := range c.refuse {
			c.editor.Refuse(method, on)
		}
		for _, h := range c.hold {
			c.editor.HoldIf(h.method, h.is)
		}
	})
}

// members returns the members that the persona adds to each JSON-RPC message, or nil.
func (c *client) members() map[string]any {
	if c.as == nil {
		return nil
	}
	return c.as.Members
}

// Greet sends initialize.
func (c *client) Greet(ctx context.Context, b *scenarios.Branch, l *scenarios.Line) error {
	if l == nil {
		l = scenarios.Implied("initialize")
	}
	return initialize(ctx, b, l, nil)
}

// Disconnect drops the editor after the agent has ended.
func (c *client) Disconnect() { c.change(func() { c.editor = nil }) }

// Send writes raw to the agent unchanged.
func (c *client) Send(raw []byte) (transcript.Entry, error) {
	var e *mockclient.Editor
	if c.change(func() { e = c.editor }); e == nil {
		return transcript.Entry{}, transport.ErrExited
	}
	return e.Send(raw)
}

// Settle waits until the editor has carried out all requests of the agent.
func (c *client) Settle(ctx context.Context) {
	var e *mockclient.Editor
	if c.change(func() { e = c.editor }); e != nil {
		e.Settle(ctx)
	}
}

// capability returns the value of a capability in the agent's answer to initialize.
func (c *client) capability(path string) (v wire.Value) {
	c.change(func() { v = c.greeting.Path(c.path(path)) })
	return v
}

// Advertises reports whether the agent has a capability. capability is a path below agentCapabilities, or authMethods,
// modes or configOptions. The last two are read from the answer to the latest session/new. known is false while the
// answer that would show the capability has not come.
func (c *client) Advertises(capability string) (has, known bool) {
	c.change(func() {
		switch known = c.greeting.Exists(); capability {
		case "modes", "configOptions":
			if c.version == v2 {
				capability = "configOptions"
			}
			has, known = c.opening.JSON().Path("result."+capability).Exists(), c.opening.Seq > 0
		case "authMethods":
			has = c.greeting.Get("authMethods").Len() > 0
		default:
			has = on(c.greeting.Path(c.path(capability)))
		}
	})
	return has, known
}

// AgentInfo returns the name and the version that the agent gave in its answer to initialize.
func (c *client) AgentInfo() (name, version string) {
	c.change(func() {
		info := c.greeting.Get("agentInfo")
		if c.version == v2 {
			info = c.greeting.Get("info")
		}
		name, version = info.Get("name").Str(), info.Get("version").Str()
	})
	return name, version
}

// Ports returns the port of the MCP server over http, or nil if there is no such server.
func (c *client) Ports() ([]isolate.Port, error) {
	s := c.servers()
	if s.http == nil {
		return nil, nil
	}
	u, err := url.Parse(s.http.Entry(canaryName).URL)
	if err != nil {
		return nil, err
	}
	port, err := strconv.Atoi(u.Port())
	return []isolate.Port{{Number: port, Serve: s.http.Serve}}, err
}

// Masks returns the address of the MCP server over http and the text that replaces it in transcripts.
func (c *client) Masks() map[string]string {
	if s := c.servers(); s.http != nil {
		return map[string]string{s.http.Entry(canaryName).URL: "$CANARY"}
	}
	return nil
}

// Close stops the MCP server over http.
func (c *client) Close() error {
	if s := c.servers(); s.http != nil {
		return s.http.Close()
	}
	return nil
}
