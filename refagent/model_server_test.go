package refagent_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"

	. "github.com/onsi/ginkgo/v2"
)

// step is one thing the fake model does within a reply.
type step func(m *modelServer, w http.ResponseWriter, r *http.Request) (more bool)

func sse(w http.ResponseWriter, data string) {
	fmt.Fprintf(w, "data: %s\n\n", data)
	w.(http.Flusher).Flush()
}

func delta(field string, value any) string {
	b, _ := json.Marshal(map[string]any{"id": "r", "object": "chat.completion.chunk", "choices": []any{
		map[string]any{"index": 0, "delta": map[string]any{field: value}},
	}})
	return string(b)
}

func say(text string) step {
	return func(_ *modelServer, w http.ResponseWriter, _ *http.Request) bool {
		sse(w, delta("content", text))
		return true
	}
}

func reason(text string) step {
	return func(_ *modelServer, w http.ResponseWriter, _ *http.Request) bool {
		sse(w, delta("reasoning_content", text))
		return true
	}
}

func callTool(id, name string, args map[string]any) step {
	return callTools(toolCall{id, name, args})
}

type toolCall struct {
	id, name string
	args     map[string]any
}

func callTools(calls ...toolCall) step {
	return func(_ *modelServer, w http.ResponseWriter, _ *http.Request) bool {
		for i, c := range calls {
			raw, _ := json.Marshal(c.args)
			half := len(raw) / 2
			sse(w, delta("tool_calls", []any{map[string]any{"index": i, "id": c.id, "type": "function",
				"function": map[string]any{"name": c.name, "arguments": string(raw[:half])}}}))
			sse(w, delta("tool_calls", []any{map[string]any{"index": i,
				"function": map[string]any{"arguments": string(raw[half:])}}}))
		}
		return true
	}
}

func usage(total int) step {
	return func(_ *modelServer, w http.ResponseWriter, _ *http.Request) bool {
		sse(w, fmt.Sprintf(`{"id":"r","choices":[],"usage":{"prompt_tokens":1,"completion_tokens":1,`+
			`"total_tokens":%d}}`, total))
		return true
	}
}

func finish(reason string) step {
	return func(_ *modelServer, w http.ResponseWriter, _ *http.Request) bool {
		sse(w, fmt.Sprintf(`{"id":"r","choices":[{"index":0,"delta":{},"finish_reason":%q}]}`, reason))
		return true
	}
}

// hold keeps the reply open until the test releases it or the agent hangs up.
func hold(name string) step {
	return func(m *modelServer, w http.ResponseWriter, r *http.Request) bool {
		w.(http.Flusher).Flush()
		g := m.gate(name)
		close(g.reached)
		select {
		case <-g.release:
			return true
		case <-r.Context().Done():
			close(g.aborted)
			return false
		}
	}
}

func status(code int, header ...string) step {
	return func(_ *modelServer, w http.ResponseWriter, _ *http.Request) bool {
		w.Header().Set("Content-Type", "application/json")
		for i := 0; i+1 < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(code)
		fmt.Fprintf(w, `{"error":{"message":"status %d on purpose","type":"test"}}`, code)
		return false
	}
}

func hangUp() step {
	return func(_ *modelServer, _ http.ResponseWriter, _ *http.Request) bool { return false }
}

type gate struct{ reached, release, aborted chan struct{} }

// modelServer plays replies in order, one for each request.
type modelServer struct {
	*httptest.Server
	mu       sync.Mutex
	replies  [][]step
	byPrompt map[string][][]step // instead of replies, for prompts that run at once
	requests []map[string]any
	gates    map[string]*gate
}

func newModelServer(replies ...[]step) *modelServer {
	m := &modelServer{replies: replies, gates: map[string]*gate{}}
	m.Server = httptest.NewServer(http.HandlerFunc(m.serve))
	DeferCleanup(m.Close)
	return m
}

func (m *modelServer) gate(name string) *gate {
	m.mu.Lock()
	defer m.mu.Unlock()
	g := m.gates[name]
	if g == nil {
		g = &gate{make(chan struct{}), make(chan struct{}), make(chan struct{})}
		m.gates[name] = g
	}
	return g
}

func (m *modelServer) then(replies ...[]step) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.replies = append(m.replies, replies...)
}

func (m *modelServer) count() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.requests)
}

// messages are those of the n-th request, from 0, with the system prompt left
// out, each as "role: text".
func (m *modelServer) messages(n int) []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []string
	for _, raw := range m.requests[n]["messages"].([]any)[1:] {
		msg := raw.(map[string]any)
		content, ok := msg["content"].(string)
		if !ok {
			b, _ := json.Marshal(msg["content"])
			content = string(b)
		}
		out = append(out, fmt.Sprintf("%s: %s", msg["role"], content))
	}
	return out
}

func (m *modelServer) tools(n int) []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []string
	for _, t := range m.requests[n]["tools"].([]any) {
		out = append(out, t.(map[string]any)["function"].(map[string]any)["name"].(string))
	}
	return out
}

func (m *modelServer) serve(w http.ResponseWriter, r *http.Request) {
	var body map[string]any
	_ = json.NewDecoder(r.Body).Decode(&body)
	m.mu.Lock()
	m.requests = append(m.requests, body)
	var reply []step
	text, _ := json.Marshal(body["messages"])
	for key, list := range m.byPrompt {
		if strings.Contains(string(text), key) && len(list) > 0 {
			reply, m.byPrompt[key] = list[0], list[1:]
		}
	}
	if reply == nil && len(m.replies) > 0 {
		reply, m.replies = m.replies[0], m.replies[1:]
	}
	m.mu.Unlock()
	if reply == nil {
		status(418)(m, w, r)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	for _, s := range reply {
		if !s(m, w, r) {
			return
		}
	}
	sse(w, "[DONE]")
}

func reply(steps ...step) []step { return steps }

func answer(text string) []step { return reply(say(text), finish("stop")) }
