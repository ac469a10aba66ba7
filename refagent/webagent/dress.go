package webagent

import (
	"strings"
	"time"
)

// dressed applies the habits to an event and returns the resulting events.
func (r *run) dressed(e Event) []Event {
	h := &r.Habits
	if h.NoRole && e.Type() == "TEXT_MESSAGE_START" {
		e = e.Without("role")
	}
	if h.Parts && e.Type() == "TOOL_CALL_RESULT" {
		e["content"] = []any{map[string]any{"type": "text", "text": e["content"]}}
	}
	list := []Event{e}
	for _, change := range []struct {
		on bool
		do func(Event) []Event
	}{{h.Reopens, r.reopened}, {h.Retired, retired}, {h.Chunks, r.inChunks}} {
		if !change.on {
			continue
		}
		var next []Event
		for _, e := range list {
			next = append(next, change.do(e)...)
		}
		list = next
	}
	for i, e := range list {
		if h.Times {
			list[i] = e.With("timestamp", time.Now().UnixMilli())
		}
		if h.Raw && strings.HasSuffix(e.Type(), "_CONTENT") {
			list[i] = list[i].With("rawEvent", map[string]any{"choices": []any{}})
		}
		if h.Subagent && attributable(e.Type()) && !(h.Brief && !h.Chunks && r.told(e)) {
			list[i] = list[i].With("subagentRunId", "writer-"+r.in.RunID)
		}
	}
	return list
}

func attributable(kind string) bool {
	return strings.HasPrefix(kind, "TEXT_") || strings.HasPrefix(kind, "TOOL_CALL_") && kind != "TOOL_CALL_RESULT"
}

// told reports whether an event may omit the subagent's name, because an earlier event of the message contained it.
func (r *run) told(e Event) bool {
	id := e.Text("messageId")
	was := r.tagged[id] || strings.HasPrefix(e.Type(), "TOOL_CALL_")
	if r.tagged == nil {
		r.tagged = map[string]bool{}
	}
	r.tagged[id] = true
	return was
}

// reopened ends a message after each piece and starts it again before the next piece.
func (r *run) reopened(e Event) []Event {
	if e.Type() != "TEXT_MESSAGE_CONTENT" {
		return []Event{e}
	}
	id := e.Text("messageId")
	return []Event{e, {"type": "TEXT_MESSAGE_END", "messageId": id},
		{"type": "TEXT_MESSAGE_START", "messageId": id, "role": "assistant"}}
}

// retired returns a reasoning event in the form that was used before version 1.0.
func retired(e Event) []Event {
	switch e.Type() {
	case "REASONING_START", "REASONING_END":
		return []Event{{"type": strings.Replace(e.Type(), "REASONING_", "THINKING_", 1)}}
	case "REASONING_MESSAGE_START", "REASONING_MESSAGE_END":
		return []Event{{"type": strings.Replace(e.Type(), "REASONING_", "THINKING_TEXT_", 1)}}
	case "REASONING_MESSAGE_CONTENT":
		return []Event{{"type": "THINKING_TEXT_MESSAGE_CONTENT", "delta": e["delta"]}}
	}
	return []Event{e}
}

// inChunks converts the events of a streamed item to chunk events.
func (r *run) inChunks(e Event) []Event {
	kind := e.Type()
	family, verb := "", ""
	for _, f := range []string{"TEXT_MESSAGE_", "TOOL_CALL_", "REASONING_MESSAGE_"} {
		if rest, ok := strings.CutPrefix(kind, f); ok {
			family, verb = f, rest
		}
	}
	id := e.Text("messageId") + e.Text("toolCallId")
	open := r.chunked
	if r.chunked = ""; verb == "START" || verb == "CONTENT" || verb == "ARGS" {
		r.chunked = family + id
	}
	switch verb {
	case "START":
		c := e.With("type", family+"CHUNK")
		if family == "REASONING_MESSAGE_" {
			c = c.Without("role")
		}
		return []Event{c}
	case "CONTENT", "ARGS":
		c := e.With("type", family+"CHUNK")
		if r.Habits.Bare && open == family+id { // any other event in between ends the item
			c = c.Without("messageId").Without("toolCallId")
		}
		return []Event{c}
	case "END":
		return nil
	}
	return []Event{e}
}
