package canonical

import (
	"encoding/base64"

	"github.com/acp-test/acp-test/golden"
	"github.com/acp-test/acp-test/wire"
)

// The values of the enums in the schema of version 1, such as ToolKind, ToolCallStatus and StopReason. Lines show
// these values without quotes.
var (
	toolKinds   = []string{"read", "edit", "delete", "move", "search", "execute", "think", "fetch", "switch_mode", "other"}
	statuses    = []string{"pending", "in_progress", "completed", "failed"}
	stopReasons = []string{"end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled"}
	actions     = []string{"accept", "decline", "cancel"}
	modes       = []string{"form", "url"}
)

// block shows a ContentBlock.
func (l *line) block(v wire.Value) {
	o := golden.Open(v)
	if v.Kind() != wire.Object {
		l.Item("", v)
		return
	}
	kind := o.Take("type")
	switch kind.Str() {
	case "text":
		if l.joined != nil {
			o.Take("text")
			l.Text(*l.joined)
			l.joined = nil
			break
		}
		l.Quoted(o, "text")
	case "image", "audio":
		l.Word(kind.Str())
		l.Formed(o, "mimeType", golden.PathText)
		l.base64(o, "data")
		l.Keys(o, "uri")
	case "resource_link":
		l.Word("resource_link")
		l.Quoted(o, "name")
		l.Path(o, "uri")
		l.Keys(o, "title", "description", "mimeType", "size")
	case "resource":
		l.Word("resource")
		if r := o.Value.Get("resource"); r.Kind() == wire.Object {
			o.Take("resource")
			in := golden.Open(r)
			l.Path(in, "uri")
			l.Keys(in, "mimeType")
			l.Quoted(in, "text")
			l.base64(in, "blob")
			l.Rest(in)
		}
	default:
		l.Known("type", kind)
	}
	l.Keys(o, "annotations", "_meta")
	l.Rest(o)
}

// base64 shows the size and the hash of the data that a base64 text encodes.
func (l *line) base64(o golden.Object, key string) {
	l.Formed(o, key, func(s string) string {
		if data, err := base64.StdEncoding.DecodeString(s); err == nil {
			return golden.Digest(string(data))
		}
		return "not-base64 " + golden.Digest(s)
	})
}

// toolContent shows a ToolCallContent.
func (l *line) toolContent(v wire.Value) {
	if v.Kind() != wire.Object {
		l.Item("", v)
		return
	}
	o := golden.Open(v)
	kind := o.Take("type")
	switch kind.Str() {
	case "content":
		l.block(o.Take("content"))
	case "diff":
		l.Word("diff")
		l.Path(o, "path")
		if old := o.Take("oldText"); old.Kind() == wire.String {
			l.Text(old.Str())
			l.Word("=>")
		} else {
			l.Known("oldText", old)
		}
		l.Quoted(o, "newText")
	case "terminal":
		l.ID(o, "terminalId", terminalID)
	case "session":
		l.ID(o, "sessionId", sessionID)
	default:
		l.Known("type", kind)
	}
	l.Keys(o, "_meta")
	l.Rest(o)
}

// location shows a ToolCallLocation as PATH:LINE.
func (l *line) location(v wire.Value) {
	if v.Kind() != wire.Object {
		l.Item("", v)
		return
	}
	o := golden.Open(v)
	l.Path(o, "path")
	if n := o.Take("line"); n.Kind() == wire.Number {
		l.Append(":", "line", n)
	} else {
		l.Known("line", n)
	}
	l.Keys(o, "_meta")
	l.Rest(o)
}

// tool shows the members of a ToolCall or ToolCallUpdate, which have the same
// names (schema v1, ToolCall, ToolCallUpdate).
func (l *line) tool(o golden.Object) {
	l.ID(o, "toolCallId", callID)
	l.Bare(o, "kind", toolKinds...)
	l.Quoted(o, "title")
	l.Bare(o, "status", statuses...)
	if v := o.Take("content"); v.Kind() == wire.Array {
		l.Word("content")
		l.List("content", v, l.toolContent)
	} else {
		l.Known("content", v)
	}
	if v := o.Take("locations"); v.Kind() == wire.Array {
		l.Word("at")
		l.List("locations", v, l.location)
	} else {
		l.Known("locations", v)
	}
	l.Keys(o, "rawInput", "rawOutput", "_meta")
}
