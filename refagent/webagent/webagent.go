// Package webagent is the reference agent for AG-UI: a small and correct HTTP server that shares no code with the
// tests of acp-test. It is stateless: the input of each run contains everything that the run needs.
package webagent

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/acp-test/acp-test/refagent"
)

// Version is the version of the protocol that the agent declares.
const Version = "1.1"

// Options configures a server. Listen or Listener is required.
type Options struct {
	// Listen is the address to listen on, HOST:PORT; port 0 means any free port. A non-nil Listener is used instead.
	Listen   string
	Listener net.Listener
	// Out receives a line with the server's URL. Log receives messages for people. nil means that nothing is written.
	Out, Log io.Writer
	// Getenv looks up the model's configuration; see refagent.EnvBaseURL.
	Getenv func(string) string
	// Dir is the directory that the tools work in.
	Dir string
	// Hooks contains functions by which faults change the agent. Habits are permitted differences from the reference
	// agent.
	Hooks  Hooks
	Habits Habits
}

// turn is a run that is in progress in a thread.
type turn struct {
	client context.Context // ends when the client disconnects
	over   chan struct{}
}

// server is the state of a running server.
type server struct {
	Options
	model *refagent.Model
	mu    sync.Mutex
	busy  map[string]*turn // runs in progress, by thread
	runs  int
}

// Serve runs the server until ctx ends.
func Serve(ctx context.Context, o Options) error {
	if o.Getenv == nil {
		o.Getenv = func(string) string { return "" }
	}
	o.Log = cmp.Or(o.Log, io.Discard)
	s := &server{Options: o, model: refagent.OpenModel(o.Getenv, &refagent.Habits{}), busy: map[string]*turn{}}
	defer s.model.Close()
	return refagent.Serve(ctx, "AG-UI", "/", o.Listen, o.Listener, o.Out, func(string) http.Handler { return s })
}

// mostInput is the maximum size of an input in bytes.
const mostInput = 64 << 20

// ServeHTTP handles the request for one run.
func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		refuse(w, http.StatusMethodNotAllowed, "a run is posted")
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, mostInput))
	if err != nil {
		refuse(w, http.StatusBadRequest, "the input cannot be read: "+err.Error())
		return
	}
	in, err := Parse(body)
	if err == nil && s.Habits.Lists && (in.Tools == nil || in.Context == nil) {
		err = errors.New("the input lacks tools or context")
	}
	if s.Hooks.Parse != nil {
		in, err = s.Hooks.Parse(body, in, err)
	}
	if err != nil {
		refuse(w, http.StatusBadRequest, err.Error())
		return
	}
	done, free := s.enter(r.Context(), in.ThreadID)
	if !free {
		refuse(w, http.StatusConflict, "another run of this thread has not ended yet")
		return
	}
	defer done()
	// The binary encoding does not support retired events.
	binary := !s.Habits.TextAlone && !s.Habits.Retired && s.admits(strings.Join(r.Header.Values("Accept"), ","))
	kind := "text/event-stream"
	switch {
	case binary:
		kind = BinaryType
	case s.Habits.Charset:
		kind += "; charset=utf-8"
	}
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Cache-Control", "no-cache")
	w.Header().Set("X-Accel-Buffering", "no")
	if s.Hooks.Head != nil {
		s.Hooks.Head(w.Header())
	}
	ctx := r.Context()
	if s.Hooks.Detached {
		ctx = context.WithoutCancel(ctx)
	}
	w.WriteHeader(http.StatusOK)
	s.mu.Lock()
	s.runs++
	n := s.runs
	s.mu.Unlock()
	run := &run{server: s, ctx: ctx, in: in, w: w, number: n, state: in.State, binary: binary}
	run.port = &Port{run: run, Input: in}
	_ = http.NewResponseController(w).Flush() // the context ends if the client disconnects
	run.play()
	if s.Hooks.End != nil {
		s.Hooks.End(run.port)
	}
}

// admits reports whether a response may use the binary encoding, given the client's Accept header.
func (s *server) admits(accept string) bool {
	if s.Hooks.Admits != nil {
		return s.Hooks.Admits(accept)
	}
	return WantsBinary(accept)
}

// enter registers a run of a thread. free is false if another run of the thread is in progress. done ends the
// registration.
func (s *server) enter(ctx context.Context, thread string) (done func(), free bool) {
	for {
		s.mu.Lock()
		other := s.busy[thread]
		if other == nil || s.Hooks.Mixes {
			mine := &turn{ctx, make(chan struct{})}
			s.busy[thread] = mine
			s.mu.Unlock()
			return func() {
				s.mu.Lock()
				if !s.Hooks.Clings || ctx.Err() == nil {
					delete(s.busy, thread)
				}
				s.mu.Unlock()
				close(mine.over)
			}, true
		}
		s.mu.Unlock()
		if s.Hooks.Clings && other.client.Err() != nil || !s.Habits.Queues && other.client.Err() == nil {
			return nil, false
		}
		select {
		case <-other.over:
		case <-ctx.Done():
			return nil, false
		}
	}
}

func refuse(w http.ResponseWriter, status int, why string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]string{"error": why}) // fails only if the client has disconnected
}

// Input is the input of a run, which the client sends.
type Input struct {
	ThreadID string
	RunID    string
	Messages []Message
	Tools    []FrontTool
	Context  []struct{ Description, Value string }
	State    any
	Resume   []struct {
		InterruptID, Status string
		Payload             any
	}
	Whole map[string]any `json:"-"` // all members of the input
	Notes map[string]any `json:"-"` // state of hooks for the run
}

// FrontTool is a tool that the front end provides.
type FrontTool struct {
	Name, Description string
	Parameters        map[string]any
}

// Message is one message of the conversation.
type Message struct {
	ID         string          `json:"id"`
	Role       string          `json:"role"`
	Content    json.RawMessage `json:"content,omitempty"`
	ToolCallID string          `json:"toolCallId,omitempty"`
	ToolCalls  []Call          `json:"toolCalls,omitempty"`
}

// Call is a tool call in a message.
type Call = refagent.Call

// text returns the message's text. If the content is a list of parts, it joins the texts of the text parts.
func (m Message) text() string {
	var whole string
	if json.Unmarshal(m.Content, &whole) == nil {
		return whole
	}
	var parts []struct{ Type, Text string }
	if json.Unmarshal(m.Content, &parts) != nil {
		return ""
	}
	var b strings.Builder
	for _, p := range parts {
		if p.Type == "text" {
			b.WriteString(p.Text)
		}
	}
	return b.String()
}

var roles = []string{"developer", "system", "assistant", "user", "tool", "activity", "reasoning"}

// Parse parses the input of a run. The error describes what is wrong.
func Parse(body []byte) (*Input, error) {
	in := &Input{Notes: map[string]any{}}
	if err := json.Unmarshal(body, &in.Whole); err != nil {
		return nil, fmt.Errorf("the input is not a JSON object: %w", err)
	}
	if err := json.Unmarshal(body, in); err != nil {
		return nil, fmt.Errorf("the input is malformed: %w", err)
	}
	_, listed := in.Whole["messages"].([]any)
	switch {
	case in.ThreadID == "" || in.RunID == "":
		return nil, errors.New("the input lacks threadId or runId")
	case !listed:
		return nil, errors.New("the input has no list of messages")
	}
	for _, m := range in.Messages {
		if m.ID == "" || !slices.Contains(roles, m.Role) {
			return nil, fmt.Errorf("a message has no id, or its role %q is unknown", m.Role)
		}
	}
	if in.State == nil {
		in.State = map[string]any{}
	}
	return in, nil
}

// frontTool reports whether the front end provides a tool.
func (in *Input) frontTool(name string) bool {
	return slices.ContainsFunc(in.Tools, func(t FrontTool) bool { return t.Name == name })
}

// Event is an event for the client.
type Event map[string]any

// Type returns the type of the event.
func (e Event) Type() string { s, _ := e["type"].(string); return s }

// Text returns a string member, or "" if there is none.
func (e Event) Text(name string) string { s, _ := e[name].(string); return s }

// With returns a copy of the event with one member added or replaced.
func (e Event) With(name string, value any) Event {
	c := maps.Clone(e)
	c[name] = value
	return c
}

// Without returns a copy of the event without one member.
func (e Event) Without(name string) Event {
	c := maps.Clone(e)
	delete(c, name)
	return c
}

// Hooks contains functions by which a fault changes the agent. With the zero value, the agent is correct.
type Hooks struct {
	// Send gets every event before it is written. It passes the event on with Port.Emit.
	Send func(p *Port, e Event)
	// Frame changes the bytes of a complete server-sent event.
	Frame func(frame []byte) []byte
	// Binary changes the binary encoding of an event, including its length. Admits decides whether an Accept header
	// allows that encoding.
	Binary func(frame []byte) []byte
	Admits func(accept string) bool
	// Head changes the headers of a streamed response.
	Head func(h http.Header)
	// End runs after the last event, before the response's body is closed.
	End func(p *Port)
	// Parse changes the result of parsing the input.
	Parse func(body []byte, in *Input, err error) (*Input, error)
	// Ask decides whether a call needs approval. ask is the correct decision.
	Ask func(tool string, ask bool) bool
	// Answer decides what the client's answer to an interrupt means. ok is false if the client sent no answer.
	Answer func(approved, ok bool) (approves, answered bool)
	// Request changes the messages of a model request.
	Request func(in *Input, messages []refagent.ModelMessage) []refagent.ModelMessage
	// Result changes the result of a tool.
	Result func(tool, result string) string
	// Piece changes or drops the n-th piece of the model's reply.
	Piece func(n int, p refagent.Piece) []refagent.Piece
	// Detached continues the run after the client has disconnected. Mixes allows several concurrent runs of a thread.
	// Clings keeps a thread busy after its client has disconnected.
	Detached, Mixes, Clings bool
}

// Port gives a hook access to the event stream.
type Port struct {
	run   *run
	Input *Input
}

// Emit sends an event without calling the Send hook.
func (p *Port) Emit(e Event) { p.run.write(e) }

// Write writes bytes to the stream without changing them.
func (p *Port) Write(raw string) { p.run.raw([]byte(raw)) }

// Break closes the connection at once.
func (p *Port) Break() { panic(http.ErrAbortHandler) }

// Gone returns a channel that is closed when the client disconnects or the server ends.
func (p *Port) Gone() <-chan struct{} { return p.run.ctx.Done() }
