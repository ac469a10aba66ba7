package faults_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
)

// model answers by the last user message: "say …", "use TOOL {json}", "hold", "break",
// "mute", "fail", "stop REASON"; after a tool's result it says what it was told.
type model struct {
	*httptest.Server
	mu      sync.Mutex
	seen    []string // the messages of each request, as text
	reached chan struct{}
	aborted chan struct{}
	release chan struct{}
}

func newModel() *model {
	m := &model{reached: make(chan struct{}, 16), aborted: make(chan struct{}, 16), release: make(chan struct{}, 16)}
	m.Server = httptest.NewServer(http.HandlerFunc(m.serve))
	return m
}

func (m *model) serve(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Messages []struct {
			Role    string
			Content any
		}
		Tools []struct{ Function struct{ Name string } }
	}
	_ = json.NewDecoder(r.Body).Decode(&body)
	var ask, told string
	var all []string
	for _, msg := range body.Messages {
		if text, _ := msg.Content.(string); msg.Role == "system" && !strings.Contains(text, "Rhyme") &&
			!strings.HasPrefix(text, "Work in ") {
			continue // the agent's own
		}
		content, ok := msg.Content.(string)
		if !ok {
			raw, _ := json.Marshal(msg.Content)
			content = string(raw)
		}
		all = append(all, msg.Role+": "+content)
		switch msg.Role {
		case "user":
			ask, told = content, ""
		case "tool":
			told = content
		}
	}
	emit := func(data string) {
		fmt.Fprintf(w, "data: %s\n\n", data)
		w.(http.Flusher).Flush()
	}
	delta := func(key string, v any) {
		raw, _ := json.Marshal(map[string]any{"id": "r",
			"choices": []any{map[string]any{"index": 0, "delta": map[string]any{key: v}}}})
		emit(string(raw))
	}
	stop := func(reason string) {
		emit(fmt.Sprintf(`{"id":"r","choices":[{"index":0,"delta":{},"finish_reason":%q}]}`, reason))
		emit(`{"id":"r","choices":[],"usage":{"prompt_tokens":4,"completion_tokens":6,"total_tokens":10}}`)
		emit("[DONE]")
	}
	verb, rest, _ := strings.Cut(ask, " ")
	if strings.Contains(ask, "mute") {
		// Whether a turn that is cancelled at once asks at all is left to chance.
		<-r.Context().Done()
		return
	}
	m.mu.Lock()
	m.seen = append(m.seen, fmt.Sprintf("%q, %d tools", all, len(body.Tools)))
	m.mu.Unlock()
	if verb == "fail" {
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	switch {
	case verb == "flood" && told == "":
		for range 100 {
			delta("content", strings.Repeat("flood ", 400))
		}
		delta("tool_calls", []any{map[string]any{"index": 0, "id": "c",
			"function": map[string]any{"name": "think", "arguments": `{"thought":"x"}`}}})
		stop("tool_calls")
	case verb == "flood":
		m.reached <- struct{}{}
		stop("stop")
	case verb == "use" && (told == "" || strings.HasPrefix(rest, "think")):
		name, args, _ := strings.Cut(rest, " ")
		delta("tool_calls", []any{map[string]any{"index": 0, "id": "c",
			"function": map[string]any{"name": name, "arguments": args}}})
		stop("tool_calls")
	case verb == "twice" && told == "":
		for i, id := range []string{"c", "d"} {
			function := map[string]any{"name": "delete_file", "arguments": `{"path":"` + id + `"}`}
			delta("tool_calls", []any{map[string]any{"index": i, "id": id, "function": function}})
		}
		stop("tool_calls")
	case verb == "use", verb == "twice":
		delta("content", "I was told: "+told)
		stop("stop")
	case verb == "break":
		delta("content", "Half of it ")
	case verb == "hold":
		delta("content", "First. ")
		m.reached <- struct{}{}
		select {
		case <-m.release:
			delta("content", "Second.")
			stop("stop")
		case <-r.Context().Done():
			m.aborted <- struct{}{}
		}
	case verb == "stop":
		delta("content", "Some text.")
		stop(rest)
	default:
		delta("reasoning_content", "Thinking.")
		for _, word := range []string{"Well,", " ", "these are ", "a féw ", "wörds about it."} {
			delta("content", word)
		}
		stop("stop")
	}
}
