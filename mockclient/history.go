package mockclient

import (
	"cmp"
	"iter"
	"slices"
	"strings"

	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/wire"
)

// History is a conversation in the form in which a person reads it.
type History []Message

// Message contains what one side sent without an interruption by the other side.
type Message struct {
	Role  string // "user" or "agent"
	ID    string // messageId; "" if the agent sends none
	Parts []Part
}

// Part is one part of a message. Tool is set only for the kind "tool", Plan only for the kind "plan".
type Part struct {
	Kind string // "text", "thought", "tool", "plan", or the type of other content
	Text string // for other content: its URI, or its type and size
	Tool *ToolCall
	Plan []PlanEntry
}

// ToolCall is a tool call with all its updates applied.
type ToolCall struct {
	ID     string
	Name   string // name in _meta, else the title
	Title  string
	Kind   string // "other" if the agent sent none
	Status string // "pending" if the agent sent none
	Input  string // rawInput as JSON
	// Output is rawOutput as JSON or text. Without rawOutput, it is the output in an agent-specific _meta, else the
	// text of the content.
	Output    string
	Diffs     []FileDiff
	Terminals []string
	Locations []string // each is path or path:line

	named, text, raw, meta string // candidates for Name and Output
}

// FileDiff is a diff in a tool call. OldText is "" for a new file.
type FileDiff struct{ Path, OldText, NewText string }

// PlanEntry is one entry of a plan.
type PlanEntry struct{ Content, Priority, Status string }

// FoldHistory builds the conversation of a session from transcript entries: the editor's prompts and the agent's
// updates, live or replayed. The session "" means all sessions.
func FoldHistory(entries iter.Seq[transcript.Entry], session string) History {
	f := folder{tools: map[string]*ToolCall{}}
	for e := range entries {
		if session != "" && e.Session != session {
			continue
		}
		switch {
		case e.Source == transcript.Editor && e.Kind == transcript.Request && e.Method == "session/prompt":
			f.prompt(e.JSON().Path("params.prompt"))
		case e.Source == transcript.Agent && e.Kind == transcript.Notification && e.Method == "session/update":
			f.update(e.JSON().Path("params.update"))
		}
	}
	return f.history
}

type folder struct {
	history History
	tools   map[string]*ToolCall
	echo    string // rest of the latest prompt's text that the agent may still send back
}

func (f *folder) prompt(blocks wire.Value) {
	m := Message{Role: "user"}
	var said strings.Builder
	for b := range blocks.Items() {
		p := partOf(b, "text")
		m.Parts = append(m.Parts, p)
		said.WriteString(p.Text)
	}
	f.history = append(f.history, m)
	f.echo = said.String()
}

func (f *folder) update(u wire.Value) {
	switch kind := u.Get("sessionUpdate").Str(); kind {
	case "user_message_chunk":
		p := partOf(u.Get("content"), "text")
		if f.echo != "" && strings.HasPrefix(f.echo, p.Text) {
			f.echo = f.echo[len(p.Text):]
			return
		}
		f.add("user", u.Get("messageId").Str(), p)
	case "agent_message_chunk", "agent_thought_chunk":
		f.echo = ""
		text := "text"
		if kind == "agent_thought_chunk" {
			text = "thought"
		}
		f.add("agent", u.Get("messageId").Str(), partOf(u.Get("content"), text))
	case "user_message", "agent_message", "agent_thought": // complete messages of version 2
		f.whole(kind, u)
	case "tool_call", "tool_call_update":
		f.echo = ""
		id := u.Get("toolCallId").Str()
		t := f.tools[id]
		if t == nil {
			t = &ToolCall{ID: id, Kind: "other", Status: "pending"}
			f.tools[id] = t
			f.add("agent", "", Part{Kind: "tool", Tool: t})
		}
		t.apply(u)
	case "plan":
		f.plan(u.Get("entries"))
	}
}

// whole adds a message that one update contains completely. It replaces an earlier message with the same id.
func (f *folder) whole(kind string, u wire.Value) {
	role, of, id := "agent", "text", u.Get("messageId").Str()
	switch kind {
	case "user_message":
		role = "user"
	case "agent_thought":
		of = "thought"
	}
	var parts []Part
	said := ""
	for b := range u.Get("content").Items() {
		parts = append(parts, partOf(b, of))
		said += parts[len(parts)-1].Text
	}
	at := slices.IndexFunc(f.history, func(m Message) bool { return id != "" && m.ID == id && m.Role == role })
	switch {
	case len(parts) == 0 || role == "user" && f.echo != "" && said == f.echo:
		f.echo = ""
	case at >= 0:
		f.history[at].Parts = parts
	default:
		f.history = append(f.history, Message{Role: role, ID: id, Parts: parts})
	}
}

// add appends a part to the last message. It begins a new message if the role or the message id changes.
func (f *folder) add(role, id string, p Part) {
	n := len(f.history)
	if n == 0 || f.history[n-1].Role != role || id != "" && f.history[n-1].ID != "" && f.history[n-1].ID != id {
		f.history = append(f.history, Message{Role: role, ID: id, Parts: []Part{p}})
		return
	}
	m := &f.history[n-1]
	m.ID = cmp.Or(m.ID, id)
	if k := len(m.Parts); k > 0 && m.Parts[k-1].Kind == p.Kind && (p.Kind == "text" || p.Kind == "thought") {
		m.Parts[k-1].Text += p.Text
		return
	}
	m.Parts = append(m.Parts, p)
}

// plan replaces the plan in the current message, because each update contains the complete plan (ACP v1, Agent Plan).
func (f *folder) plan(entries wire.Value) {
	plan := []PlanEntry{}
	for v := range entries.Items() {
		plan = append(plan, PlanEntry{v.Get("content").Str(), v.Get("priority").Str(), v.Get("status").Str()})
	}
	if n := len(f.history); n > 0 && f.history[n-1].Role == "agent" {
		for i := range f.history[n-1].Parts {
			if p := &f.history[n-1].Parts[i]; p.Kind == "plan" {
				p.Plan = plan
				return
			}
		}
	}
	f.add("agent", "", Part{Kind: "plan", Plan: plan})
}

// partOf returns the part for a content block. The parameter text is the Kind of the part for a text block.
func partOf(b wire.Value, text string) Part {
	kind := b.Get("type").Str()
	switch kind {
	case "text":
		return Part{Kind: text, Text: b.Get("text").Str()}
	case "resource_link":
		return Part{Kind: kind, Text: b.Get("uri").Str()}
	case "resource":
		return Part{Kind: kind, Text: b.Path("resource.uri").Str()}
	case "image", "audio":
		return Part{Kind: kind, Text: b.Get("mimeType").Str()}
	}
	return Part{Kind: cmp.Or(kind, "unknown"), Text: b.Text()}
}

// apply changes the fields that an update contains and keeps all other fields. A list in the update replaces the
// complete old list (ACP v1, Tool Calls, Updating).
func (t *ToolCall) apply(u wire.Value) {
	set := func(to *string, key string) {
		if v := u.Get(key); v.Kind() == wire.String {
			*to = v.Str()
		}
	}
	set(&t.Title, "title")
	set(&t.Kind, "kind")
	set(&t.Status, "status")
	if v := u.Get("rawInput"); v.Exists() && !v.IsNull() {
		t.Input = string(v.Raw())
	}
	if v := u.Get("rawOutput"); v.Exists() && !v.IsNull() {
		t.raw = v.Text()
	}
	if meta := u.Get("_meta"); meta.Kind() == wire.Object {
		if name := find(meta, 2, "toolName", "tool_name"); name.Kind() == wire.String {
			t.named = name.Str()
		}
		out := find(meta, 2, "toolResponse", "toolOutput", "tool_response", "tool_output", "terminal_output")
		if out.Exists() {
			t.meta = out.Text()
		}
	}
	if v := u.Get("content"); v.Kind() == wire.Array {
		t.content(v)
	}
	if v := u.Get("locations"); v.Kind() == wire.Array {
		t.Locations = nil
		for l := range v.Items() {
			place := l.Get("path").Str()
			if line := l.Get("line"); line.Kind() == wire.Number {
				place += ":" + line.Text()
			}
			t.Locations = append(t.Locations, place)
		}
	}
	t.Name = cmp.Or(t.named, t.Title)
	t.Output = cmp.Or(t.raw, t.meta, t.text)
}

func (t *ToolCall) content(list wire.Value) {
	t.text, t.Diffs, t.Terminals = "", nil, nil
	for c := range list.Items() {
		switch c.Get("type").Str() {
		case "content":
			t.text += partOf(c.Get("content"), "text").Text
		case "diff":
			t.Diffs = append(t.Diffs, FileDiff{c.Get("path").Str(), c.Get("oldText").Str(), c.Get("newText").Str()})
		case "terminal":
			t.Terminals = append(t.Terminals, c.Get("terminalId").Str())
		}
	}
}

// find searches an object for the first of the keys that it has. If it has none, find searches the objects inside it,
// up to the given depth.
func find(v wire.Value, depth int, keys ...string) wire.Value {
	for _, key := range keys {
		if found := v.Get(key); found.Exists() && !found.IsNull() {
			return found
		}
	}
	if depth > 1 {
		for _, inner := range v.Members() {
			if inner.Kind() == wire.Object {
				if found := find(inner, depth-1, keys...); found.Exists() {
					return found
				}
			}
		}
	}
	return wire.Value{}
}
