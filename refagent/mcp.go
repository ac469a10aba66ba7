package refagent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// mcpPatience is the maximum time that a turn waits for MCP servers to start, and that a server may take to end.
const mcpPatience = 5 * time.Second

// mcpServer is an entry of mcpServers in session/new: a stdio server, or an HTTP server if Type is "http" or "sse".
type mcpServer struct {
	Type, Name, Command, URL string
	Args                     []string
	Env, Headers             []struct{ Name, Value string }
}

// mcpServers are the MCP servers of one session. They start in the background. A server that does not start is logged
// and omitted.
type mcpServers struct {
	stop  context.CancelFunc
	start func()        // connects the servers; further calls do nothing
	ready chan struct{} // closed when every server has started or failed

	mu       sync.Mutex
	sessions []*mcp.ClientSession
	offered  []tool
	failed   []string // servers that failed to start and are not reported yet
}

func (a *agent) connectServers(entries []json.RawMessage) *mcpServers {
	ctx, stop := context.WithCancel(a.ctx)
	m := &mcpServers{stop: stop, ready: make(chan struct{})}
	m.start = sync.OnceFunc(func() { a.startServers(ctx, m, entries) })
	if !a.habits.LateServers {
		m.start()
	}
	return m
}

func (a *agent) startServers(ctx context.Context, m *mcpServers, entries []json.RawMessage) {
	if ctx.Err() != nil { // the session ended before it needed the servers
		close(m.ready)
		return
	}
	var all sync.WaitGroup
	for _, raw := range entries {
		var e mcpServer
		if json.Unmarshal(raw, &e) != nil || e.Name == "" {
			a.log.Printf("an MCP server was skipped: its entry is malformed")
			continue
		}
		all.Add(1)
		a.spawn(func() {
			defer all.Done()
			without := a.habits.lacks(e.Type)
			if a.hooks.Reach != nil && e.URL != "" {
				e.Type = a.hooks.Reach(e.Type)
			}
			if err := m.connect(ctx, e, without, a.hooks); err != nil && ctx.Err() == nil {
				a.log.Printf("MCP server %q is not available: %v", e.Name, err)
				m.mu.Lock()
				m.failed = append(m.failed, e.Name)
				m.mu.Unlock()
			}
		})
	}
	a.spawn(func() { all.Wait(); close(m.ready) })
}

func (m *mcpServers) connect(ctx context.Context, e mcpServer, without bool, hooks Hooks) error {
	var t mcp.Transport
	switch {
	case e.Type == "http" && e.URL != "" && !without:
		client := &http.Client{Transport: &headers{list: e.Headers}}
		t = &mcp.StreamableClientTransport{Endpoint: e.URL, HTTPClient: client, MaxRetries: -1}
	case e.Type == "sse" && e.URL != "" && !without:
		t = &mcp.SSEClientTransport{Endpoint: e.URL, HTTPClient: &http.Client{Transport: &headers{list: e.Headers}}}
	case e.Command != "":
		cmd := exec.Command(e.Command, e.Args...)
		cmd.Env = cmd.Environ()
		for _, v := range e.Env {
			cmd.Env = append(cmd.Env, v.Name+"="+v.Value)
		}
		if hooks.Server != nil {
			hooks.Server(cmd)
		}
		t = &mcp.CommandTransport{Command: cmd, TerminateDuration: linger / 4}
	default:
		return fmt.Errorf("transport %q is not supported", e.Type)
	}
	// The connection lasts as long as ctx, but must be made in time.
	life, end := context.WithCancel(ctx)
	late := time.AfterFunc(mcpPatience, end)
	client := mcp.NewClient(&mcp.Implementation{Name: "acp-test-refagent", Version: Version}, nil)
	cs, err := client.Connect(life, t, nil)
	if !late.Stop() && err == nil {
		_ = cs.Close() // it was made too late
		err = context.DeadlineExceeded
	}
	if err != nil {
		end()
		return err
	}
	m.mu.Lock()
	m.sessions = append(m.sessions, cs)
	m.mu.Unlock()
	if hooks.Unlisted {
		return nil
	}
	starting, done := context.WithTimeout(ctx, mcpPatience)
	defer done()
	for found, err := range cs.Tools(starting, nil) {
		if err != nil {
			return err
		}
		m.mu.Lock()
		m.offered = append(m.offered, mcpTool(e.Name, cs, found))
		m.mu.Unlock()
	}
	return nil
}

// headers is an HTTP transport that adds a server's headers to each request.
type headers struct {
	http.Transport
	list []struct{ Name, Value string }
}

func (h *headers) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	for _, v := range h.list {
		r.Header.Set(v.Name, v.Value)
	}
	return h.Transport.RoundTrip(r)
}

var notInNames = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`[^A-Za-z0-9_-]`) })

// mcpTool returns a tool of an MCP server as a tool of the agent, with the name mcp__server__tool.
func mcpTool(server string, cs *mcp.ClientSession, found *mcp.Tool) tool {
	name := notInNames().ReplaceAllString("mcp__"+server+"__"+found.Name, "_")
	shape, _ := found.InputSchema.(object)
	if shape == nil {
		shape = object{"type": "object"}
	}
	return tool{
		name: name[:min(len(name), 64)], about: found.Description, schema: shape,
		run: func(ctx context.Context, w *work) error {
			call := func(ctx context.Context) (string, error) { return callServer(ctx, w, cs, server, found.Name) }
			if w.a.hooks.Serve != nil {
				plain := call
				call = func(ctx context.Context) (string, error) { return w.a.hooks.Serve(ctx, plain) }
			}
			said, err := call(ctx)
			if err == nil {
				w.say(said)
			}
			return err
		},
	}
}

// callServer calls a tool of an MCP server with the arguments of w, and returns the text of the result.
func callServer(ctx context.Context, w *work, cs *mcp.ClientSession, server, name string) (string, error) {
	res, err := cs.CallTool(ctx, &mcp.CallToolParams{Name: name, Arguments: object(w.args)})
	if err != nil && ctx.Err() == nil {
		w.s.a.log.Printf("MCP server %q: %v", server, err) // what it says depends on when the server ended
		return "", fmt.Errorf("the MCP server %s gave no answer", server)
	}
	if err != nil {
		return "", err
	}
	var texts []string
	for _, c := range res.Content {
		if t, ok := c.(*mcp.TextContent); ok {
			texts = append(texts, t.Text)
		} else {
			texts = append(texts, fmt.Sprintf("(%T)", c))
		}
	}
	said := strings.Join(texts, "\n")
	if res.IsError {
		return "", errors.New(said)
	}
	return said, nil
}

// tools waits a limited time until the servers have started, and returns their
// tools in a fixed order.
func (m *mcpServers) tools(ctx context.Context) []tool {
	m.start()
	select {
	case <-m.ready:
	case <-ctx.Done():
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	list := slices.Clone(m.offered)
	slices.SortFunc(list, func(x, y tool) int { return strings.Compare(x.name, y.name) })
	return list
}

// failures returns the servers that failed to start since the last call.
func (m *mcpServers) failures() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	list := slices.Sorted(slices.Values(m.failed))
	m.failed = nil
	return list
}

// close cancels MCP servers that are still starting and ends the others.
func (m *mcpServers) close() {
	m.stop()
	m.start()
	<-m.ready
	m.mu.Lock()
	sessions := m.sessions
	m.sessions = nil
	m.mu.Unlock()
	for _, cs := range sessions {
		cs.Close()
	}
}
