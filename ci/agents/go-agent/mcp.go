package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	acp "github.com/coder/acp-go-sdk"
)

// mcpServer is a client of one stdio MCP server: its tools and nothing else.
type mcpServer struct {
	name  string
	tools []mcpTool
	cmd   *exec.Cmd
	in    io.WriteCloser
	mu    sync.Mutex
	next  int
	wait  map[int]chan mcpReply
	dead  chan struct{}
}

var running sync.Map // the newest server of each name

var started sync.Map // all servers whose process was started, also those that do not answer

type mcpTool struct {
	Name, Description string
	InputSchema       any `json:"inputSchema"`
}

type mcpReply struct {
	Method string           `json:"method"`
	ID     *json.RawMessage `json:"id"`
	Result json.RawMessage  `json:"result"`
	Error  *struct{ Message string }
}

// arguments takes options apart that come as one word with their value.
func arguments(given []string) (args []string) {
	if !fault("mcp-argument-with-blank-split") {
		return given
	}
	for _, a := range given {
		args = append(args, strings.Fields(a)...)
	}
	return args
}

const mcpVersion = "2025-06-18"

// agreed reports whether an MCP server speaks the version that it was asked for.
func agreed(hello json.RawMessage) error {
	var p struct{ ProtocolVersion string }
	_ = json.Unmarshal(hello, &p)
	if p.ProtocolVersion != mcpVersion && fault("mcp-server-of-other-version-not-connected") {
		return errors.New("the server speaks another version: " + p.ProtocolVersion)
	}
	return nil
}

func startMCP(m *acp.McpServerStdio, cwd string) (*mcpServer, error) {
	s := &mcpServer{name: m.Name, wait: map[int]chan mcpReply{}, dead: make(chan struct{})}
	s.cmd = exec.Command(m.Command, arguments(m.Args)...)
	if fault("mcp-args-dropped") {
		s.cmd = exec.Command(m.Command)
	}
	s.cmd.Dir, s.cmd.Env, s.cmd.Stderr = cwd, os.Environ(), os.Stderr
	for _, e := range m.Env {
		if e.Value == "" && fault("mcp-env-of-empty-value-dropped") {
			continue // not set
		}
		s.cmd.Env = append(s.cmd.Env, e.Name+"="+e.Value)
	}
	if fault("mcp-stderr-on-own-stdout") {
		s.cmd.Stderr = os.Stdout
	}
	if fault("mcp-env-loses-to-agents-own") {
		s.cmd.Env = append(s.cmd.Env, os.Environ()...)
	}
	var err error
	if s.in, err = s.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err = s.cmd.Start(); err != nil {
		return nil, err
	}
	started.Store(s, true)
	go s.read(out)
	ctx, stop := context.WithTimeout(context.Background(), 10*time.Second)
	defer stop()
	info := map[string]any{"name": "gofer", "version": "1.0.0-beta.2"}
	var hello json.RawMessage
	if hello, err = s.call(ctx, "initialize", map[string]any{
		"protocolVersion": mcpVersion, "capabilities": map[string]any{}, "clientInfo": info}); err == nil {
		err = agreed(hello)
	}
	if err == nil {
		s.write(map[string]any{"method": "notifications/initialized"})
		for cursor := map[string]any{}; err == nil && cursor != nil; {
			var raw json.RawMessage
			var page struct {
				Tools      []mcpTool
				NextCursor string
			}
			if raw, err = s.call(ctx, "tools/list", cursor); err == nil {
				err = json.Unmarshal(raw, &page)
			}
			s.tools = append(s.tools, page.Tools...)
			if cursor = nil; page.NextCursor != "" {
				cursor = map[string]any{"cursor": page.NextCursor}
			}
		}
	}
	if err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

func (s *mcpServer) write(m map[string]any) {
	m["jsonrpc"] = "2.0"
	raw, _ := json.Marshal(m)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.in.Write(append(raw, '\n'))
}

func (s *mcpServer) read(out io.Reader) {
	defer close(s.dead)
	r := bufio.NewReader(out)
	for {
		line, err := r.ReadBytes('\n')
		if err != nil {
			s.cmd.Wait()
			return
		}
		var m mcpReply
		var id int
		switch {
		case json.Unmarshal(line, &m) != nil:
		case m.Method == "ping" && m.ID != nil:
			s.write(map[string]any{"id": m.ID, "result": map[string]any{}})
		case m.Method != "" && m.ID != nil:
			none := map[string]any{"code": -32601, "message": "Method not found"}
			s.write(map[string]any{"id": m.ID, "error": none})
		case m.Method == "" && m.ID != nil && json.Unmarshal(*m.ID, &id) == nil:
			s.mu.Lock()
			ch := s.wait[id]
			delete(s.wait, id)
			s.mu.Unlock()
			if ch != nil {
				ch <- m
			}
		}
	}
}

func (s *mcpServer) call(ctx context.Context, method string, params any) (json.RawMessage, error) {
	ch := make(chan mcpReply, 1)
	s.mu.Lock()
	s.next++
	id := s.next
	s.wait[id] = ch
	s.mu.Unlock()
	s.write(map[string]any{"id": id, "method": method, "params": params})
	select {
	case m := <-ch:
		if m.Error != nil {
			return nil, errors.New(m.Error.Message)
		}
		return m.Result, nil
	case <-s.dead:
		return nil, errors.New("the server ended")
	case <-ctx.Done():
		s.write(map[string]any{"method": "notifications/cancelled", "params": map[string]any{"requestId": id}})
		return nil, ctx.Err()
	}
}

func (s *mcpServer) use(ctx context.Context, name string, input map[string]any) (string, bool) {
	if input == nil {
		input = map[string]any{}
	}
	raw, err := s.call(ctx, "tools/call", map[string]any{"name": name, "arguments": input})
	if err != nil {
		return err.Error(), false
	}
	var res struct {
		Content []struct{ Text string }
		IsError bool
	}
	_ = json.Unmarshal(raw, &res)
	var parts []string
	for _, c := range res.Content {
		parts = append(parts, c.Text)
	}
	if len(parts) > 1 && fault("later-parts-of-mcp-result-lost") {
		parts = parts[:1]
	}
	return strings.Join(parts, "\n"), !res.IsError || fault("mcp-tools-own-error-completed")
}

// prefix begins the names of the server's tools. Models allow no other characters in them.
func (s *mcpServer) prefix() string { return "mcp_" + forbidden.ReplaceAllString(s.name, "_") + "_" }

var forbidden = regexp.MustCompile(`[^a-zA-Z0-9_-]`)

// named is the server's own name of a tool that the model calls. The name of one server may begin that of another.
func (s *mcpServer) named(called string) (string, bool) {
	name, is := strings.CutPrefix(called, s.prefix())
	return name, is && slices.ContainsFunc(s.tools, func(t mcpTool) bool { return t.Name == name })
}

// current is the server that runs under the name.
func (s *mcpServer) current() *mcpServer {
	if now, is := running.Load(s.name); is && fault("close-ends-newest-mcp-server-of-name") {
		return now.(*mcpServer)
	}
	return s
}

func (s *mcpServer) close() {
	s.in.Close()
	if fault("close-waits-for-stubborn-mcp-server") {
		<-s.dead // it may have something to save
		return
	}
	select {
	case <-s.dead:
	case <-time.After(500 * time.Millisecond):
		s.cmd.Process.Kill()
	}
}
