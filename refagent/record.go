package refagent

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The kinds of event in a session's log.
const (
	eventSession = "session" // first line: Cwd, and for a child session its Parent
	eventPrompt  = "prompt"  // a turn began: Blocks, MessageID, Key, Message
	eventUpdate  = "update"  // a content update was sent
	eventMessage = "message" // a message was added to the model's context
	eventState   = "state"   // Mode, Thoughts or Title changed
	eventEnd     = "end"     // a turn ended: Stop, or "" after an error
)

// event is one line of a session's log. The line is written as soon as the event happens.
type event struct {
	Type      string            `json:"type"`
	At        time.Time         `json:"at"`
	Cwd       string            `json:"cwd,omitempty"`
	Parent    string            `json:"parent,omitempty"`
	Key       string            `json:"key,omitempty"`
	Blocks    []json.RawMessage `json:"blocks,omitempty"`
	MessageID string            `json:"messageId,omitempty"`
	Message   *ModelMessage     `json:"message,omitempty"`
	Update    *update           `json:"update,omitempty"`
	Mode      string            `json:"mode,omitempty"`
	Thoughts  *bool             `json:"thoughts,omitempty"`
	Title     string            `json:"title,omitempty"`
	Setting   string            `json:"setting,omitempty"` // id of the setting; Value is its value
	Value     string            `json:"value,omitempty"`
	Stop      string            `json:"stop,omitempty"`
}

// record is the state of a session that results from the events in its log. It is computed in the same way while the
// session runs and when a log is read. The log may be incomplete because of a crash.
type record struct {
	cwd, parent      string
	stop             string            // stop reason of the latest turn that has ended
	keys             map[string]string // ids of prompts' messages, by idempotency key
	created, updated time.Time
	title            string
	mode             string
	thoughts         bool
	settings         map[string]string
	history          []ModelMessage // the model's context
	plan             []planEntry
	usage            *update
	messages         int // number of message ids used
	calls            map[string]bool

	showing bool // collect updates in shown
	pieces  bool // keep the original chunks of texts
	shown   []update

	partial strings.Builder // text of an incomplete reply
	started int             // length of history at the turn's start
	open    map[string]int  // unfinished tool calls → index in shown
}

func newRecord() *record {
	return &record{mode: modeAgentic, thoughts: true, settings: map[string]string{}, keys: map[string]string{},
		calls: map[string]bool{}, open: map[string]int{}}
}

func (r *record) apply(e event) {
	r.updated = e.At
	switch e.Type {
	case eventSession:
		r.cwd, r.parent, r.created = e.Cwd, e.Parent, e.At
	case eventPrompt:
		r.settle()
		r.started = len(r.history)
		r.count(e.MessageID)
		r.stop, r.keys[e.Key] = "", e.MessageID
		if e.Message != nil {
			r.history = append(r.history, *e.Message)
		}
		for _, b := range e.Blocks {
			r.show(update{Tag: "user_message_chunk", MessageID: e.MessageID, Content: b})
		}
	case eventMessage:
		if e.Message != nil {
			if e.Message.Role == roleAssistant {
				r.partial.Reset()
			}
			r.history = append(r.history, *e.Message)
		}
	case eventUpdate:
		if e.Update != nil {
			r.update(*e.Update)
		}
	case eventState:
		r.mode, r.title = cmp.Or(e.Mode, r.mode), cmp.Or(e.Title, r.title)
		if e.Thoughts != nil {
			r.thoughts = *e.Thoughts
		}
		if e.Setting != "" {
			r.settings[e.Setting] = e.Value
		}
	case eventEnd:
		r.settle()
		r.stop = e.Stop
		if e.Stop == stopRefusal {
			// Remove a refused prompt and the messages after it from the context.
			r.history = r.history[:min(r.started, len(r.history))]
		}
	}
}

func (r *record) update(u update) {
	switch u.Tag {
	case "agent_message_chunk", "agent_thought_chunk":
		r.count(u.MessageID)
		s := chunkText(u)
		if u.Tag == "agent_message_chunk" {
			r.partial.WriteString(s)
		}
		if n := len(r.shown); r.showing && n > 0 && !r.pieces &&
			r.shown[n-1].Tag == u.Tag && r.shown[n-1].MessageID == u.MessageID {
			// For a replay, one chunk per message is enough.
			r.shown[n-1].Content = text(chunkText(r.shown[n-1]) + s)
			return
		}
		u.Content = text(s)
		r.show(u)
	case "tool_call":
		r.calls[u.ToolCallID] = true
		r.open[u.ToolCallID] = len(r.shown)
		r.show(u)
	case "tool_call_update":
		at, open := r.open[u.ToolCallID]
		if !open {
			return
		}
		if at < len(r.shown) && r.showing {
			r.shown[at] = merged(r.shown[at], u)
		}
		if u.Status == statusCompleted || u.Status == statusFailed || u.Status == statusCancelled {
			delete(r.open, u.ToolCallID)
		}
	case "compaction_update": // only a completed one is logged
		r.compact(u)
	case "subagent_update", "session_message":
		r.show(u)
	case "plan":
		r.plan = u.Entries
		r.show(u)
	case "usage_update":
		r.usage = &u
	}
}

// compact replaces the conversation by its summary.
func (r *record) compact(u update) {
	r.history = []ModelMessage{{Role: roleUser, Text: "What was said so far?"}}
	for _, b := range u.Summary {
		r.history = append(r.history, ModelMessage{Role: roleAssistant, Text: b.Text})
	}
	r.started = len(r.history)
	r.show(u)
}

func (r *record) show(u update) {
	if r.showing {
		r.shown = append(r.shown, u)
	}
}

// settle completes the history of an interrupted turn. Afterwards no tool call is open, every call of the model has a
// result, and every prompt has an answer.
func (r *record) settle() {
	for _, id := range slices.Sorted(maps.Keys(r.open)) {
		r.update(update{Tag: "tool_call_update", ToolCallID: id, Status: statusFailed, Content: textContent(interrupted)})
	}
	for i := len(r.history) - 1; i >= 0; i-- {
		m := r.history[i]
		if m.Role == roleTool {
			continue
		}
		for _, c := range m.Calls[min(len(r.history)-1-i, len(m.Calls)):] {
			r.history = append(r.history, ModelMessage{Role: roleTool, CallID: c.ID, Text: interrupted})
		}
		break
	}
	if r.partial.Len() > 0 {
		r.history = append(r.history, ModelMessage{Role: roleAssistant, Text: r.partial.String()})
		r.partial.Reset()
	}
	if n := len(r.history); n > 0 && r.history[n-1].Role != roleAssistant {
		r.history = append(r.history, ModelMessage{Role: roleAssistant, Text: interrupted})
	}
}

const interrupted = "[interrupted]"

// merged returns a tool call to which an update was applied. Content that shows a terminal or a child session is
// replaced by the output, because neither exists any more when a log is read.
func merged(call, u update) update {
	call.Status = u.Status
	call.Content, call.RawOutput = cmp.Or(u.Content, call.Content), cmp.Or(u.RawOutput, call.RawOutput)
	if u.Locations != nil {
		call.Locations = u.Locations
	}
	if refers(call.Content) {
		call.Content = nil
	}
	if out, ok := call.RawOutput.(object); ok && call.Content == nil {
		if s, ok := out["output"].(string); ok && s != "" {
			call.Content = textContent(s)
		}
	}
	return call
}

// refers reports whether content shows a terminal or a child session, neither of which exists any more when a log is
// read.
func refers(content any) bool {
	list, _ := content.([]any)
	for _, item := range list {
		if m, ok := item.(object); ok && (m["type"] == "terminal" || m["type"] == "session") {
			return true
		}
	}
	return false
}

func chunkText(u update) string {
	switch c := u.Content.(type) {
	case textBlock:
		return c.Text
	case object:
		s, _ := c["text"].(string)
		return s
	}
	return ""
}

// messageID returns a new message id. A session never reuses an id.
func (r *record) messageID() string {
	r.messages++
	return "msg-" + strconv.Itoa(r.messages)
}

func (r *record) count(id string) {
	if n, err := strconv.Atoi(strings.TrimPrefix(id, "msg-")); err == nil {
		r.messages = max(r.messages, n)
	}
}

// callID returns an id for a tool call that is unique in the session. It is the model's id, with a number appended if
// necessary.
func (r *record) callID(id string) string {
	id = cmp.Or(id, "call")
	unique := id
	for n := 2; r.calls[unique]; n++ {
		unique = id + "-" + strconv.Itoa(n)
	}
	r.calls[unique] = true
	return unique
}
