// Package fold applies events of AG-UI to what a client shows: the messages of a thread and the state of the thread.
// Where the specification leaves something open, the package behaves like the official client.
package fold

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	jsonpatch "github.com/evanphx/json-patch/v5"

	"github.com/acp-test/acp-test/internal/lists"
	"github.com/acp-test/acp-test/wire"
)

// Message is a message of a thread, with the same members as in a post.
type Message map[string]any

// ID returns the id of the message.
func (m Message) ID() string { return m.text("id") }

// Role returns the role of the message.
func (m Message) Role() string { return m.text("role") }

// Text returns the content of the message if the content is a text, else "".
func (m Message) Text() string { return m.text("content") }

func (m Message) text(key string) string { s, _ := m[key].(string); return s }

// calls returns the tool calls of an assistant's message.
func (m Message) calls() []any { list, _ := m["toolCalls"].([]any); return list }

// Thread is a conversation as the client sees it. The zero value is an empty thread.
type Thread struct {
	Messages []Message
	// State is the state as JSON; nil means {}.
	State json.RawMessage

	last map[string]string // by family of event types, the item to which a chunk without an id belongs
}

// Apply applies an event to the thread. If a patch does not apply, it returns an error and leaves the thread unchanged.
func (t *Thread) Apply(event wire.Value) error {
	id, call := event.Get("messageId").Str(), event.Get("toolCallId").Str()
	switch kind := event.Get("type").Str(); kind {
	case "TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_CHUNK":
		role := cmp.Or(event.Get("role").Str(), "assistant")
		t.stream(kind, id, event, func() { t.open(id, role) }, t.say)
	case "REASONING_MESSAGE_START", "REASONING_MESSAGE_CONTENT", "REASONING_MESSAGE_CHUNK":
		t.stream(kind, id, event, func() { t.open(id, "reasoning") }, t.say)
	case "TOOL_CALL_START", "TOOL_CALL_ARGS", "TOOL_CALL_CHUNK":
		t.stream(kind, call, event, func() { t.begin(call, event) }, t.argue)
	case "TOOL_CALL_RESULT":
		t.result(Message{"id": id, "role": "tool", "toolCallId": call, "content": decoded(event.Get("content"))})
	case "STATE_SNAPSHOT":
		t.State = slices.Clone(event.Get("snapshot").Raw())
	case "STATE_DELTA":
		next, err := Patched(t.State, event.Get("delta").Raw())
		if err != nil {
			return err
		}
		t.State = next
	case "MESSAGES_SNAPSHOT":
		t.replace(event.Get("messages"))
	}
	return nil
}

// stream begins a streamed item, or adds text to one. A chunk without an id adds to the last item of its family.
func (t *Thread) stream(kind, id string, event wire.Value, open func(), add func(id, delta string)) {
	end := strings.LastIndexByte(kind, '_')
	family, verb, delta := kind[:end], kind[end+1:], event.Get("delta").Str()
	switch {
	case verb == "START":
		open()
	case verb != "CHUNK":
		add(id, delta)
	default:
		if id != "" {
			if t.last == nil {
				t.last = map[string]string{}
			}
			t.last[family] = id
			open()
		}
		add(t.last[family], delta)
	}
}

func decoded(v wire.Value) any {
	var out any
	_ = json.Unmarshal(v.Raw(), &out) // cannot fail: the value was parsed
	return out
}

// Find returns the message with the given id, or nil.
func (t *Thread) Find(id string) Message {
	i := slices.IndexFunc(t.Messages, func(m Message) bool { return m.ID() == id })
	if i < 0 {
		return nil
	}
	return t.Messages[i]
}

func (t *Thread) open(id, role string) {
	if t.Find(id) == nil {
		t.Messages = append(t.Messages, Message{"id": id, "role": role, "content": ""})
	}
}

func (t *Thread) say(id, delta string) {
	if m := t.Find(id); m != nil {
		m["content"] = m.Text() + delta
	}
}

// begin adds a tool call to its parent message. If there is no such message, it adds the call to a new message.
func (t *Thread) begin(id string, event wire.Value) {
	if t.Call(id) != nil {
		return
	}
	parent := event.Get("parentMessageId").Str()
	m := t.Find(parent)
	switch {
	case m == nil:
		m = Message{"id": cmp.Or(parent, id), "role": "assistant"}
		t.Messages = append(t.Messages, m)
	case m.Role() != "assistant":
		m = Message{"id": id, "role": "assistant"}
		t.Messages = append(t.Messages, m)
	}
	m["toolCalls"] = append(m.calls(), map[string]any{"id": id, "type": "function",
		"function": map[string]any{"name": event.Get("toolCallName").Str(), "arguments": ""}})
}

// Call returns the tool call with the given id, or nil.
func (t *Thread) Call(id string) map[string]any {
	for _, m := range t.Messages {
		for _, c := range m.calls() {
			if call, _ := c.(map[string]any); call["id"] == id {
				return call
			}
		}
	}
	return nil
}

// Unanswered returns the ids of the tool calls that have no result, in the order of the calls.
func (t *Thread) Unanswered() (ids []string) {
	answered := lists.Set(lists.Map(t.Messages, func(m Message) any { return m["toolCallId"] }))
	for _, m := range t.Messages {
		for _, c := range m.calls() {
			if call, _ := c.(map[string]any); !answered[call["id"]] {
				id, _ := call["id"].(string)
				ids = append(ids, id)
			}
		}
	}
	return ids
}

func (t *Thread) argue(id, delta string) {
	if call := t.Call(id); call != nil {
		if f, ok := call["function"].(map[string]any); ok {
			args, _ := f["arguments"].(string)
			f["arguments"] = args + delta
		}
	}
}

// result inserts a tool result after the message that has the tool call, and after earlier results for that message.
func (t *Thread) result(m Message) {
	at := slices.IndexFunc(t.Messages, func(o Message) bool {
		return slices.ContainsFunc(o.calls(), func(c any) bool {
			call, _ := c.(map[string]any)
			return call["id"] == m["toolCallId"]
		})
	}) + 1
	if at == 0 {
		at = len(t.Messages)
	}
	for at < len(t.Messages) && t.Messages[at].Role() == "tool" {
		at++
	}
	t.Messages = slices.Insert(t.Messages, at, m)
}

// replace replaces the messages with those of a snapshot. A known message keeps its place; new messages come last.
// Activity and reasoning messages are kept even if the snapshot lacks them.
func (t *Thread) replace(list wire.Value) {
	var fresh []Message
	if json.Unmarshal(list.Raw(), &fresh) != nil {
		return
	}
	known := map[string]Message{}
	for _, m := range fresh {
		known[m.ID()] = m
	}
	var out []Message
	for _, m := range t.Messages {
		if n, ok := known[m.ID()]; ok {
			out = append(out, n)
			delete(known, m.ID())
		} else if m.Role() == "activity" || m.Role() == "reasoning" {
			out = append(out, m)
		}
	}
	for _, m := range fresh {
		if _, left := known[m.ID()]; left {
			out = append(out, m)
			delete(known, m.ID())
		}
	}
	t.Messages = out
}

// Patched applies a JSON Patch (RFC 6902) to a document and returns the result. It does not change doc. A nil doc
// stands for {}.
func Patched(doc, delta []byte) ([]byte, error) {
	if doc == nil {
		doc = []byte("{}")
	}
	patch, err := jsonpatch.DecodePatch(delta)
	if err != nil {
		return nil, fmt.Errorf("it is not a JSON Patch: %w", err)
	}
	for _, op := range patch {
		path, err := op.Path()
		if err != nil || path != "" && !strings.HasPrefix(path, "/") {
			return nil, fmt.Errorf("the path %q is not a JSON Pointer", path)
		}
	}
	return patch.ApplyWithOptions(doc, &jsonpatch.ApplyOptions{EnsurePathExistsOnAdd: false,
		AllowMissingPathOnRemove: false})
}
