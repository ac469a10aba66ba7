package golden

import (
	"encoding/base64"

	"github.com/acp-test/acp-test/wire"
)

// Vocabularies of ACP v1 (schema v1, enums ToolKind, ToolCallStatus,
// PermissionOptionKind, StopReason): their values stand as bare words.
var (
	toolKinds   = []string{"read", "edit", "delete", "move", "search", "execute", "think", "fetch", "switch_mode", "other"}
	statuses    = []string{"pending", "in_progress", "completed", "failed"}
	stopReasons = []string{"end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled"}
	optionKinds = []string{"allow_once", "allow_always", "reject_once", "reject_always"}
	actions     = []string{"accept", "decline", "cancel"}
	modes       = []string{"form", "url"}
)

// list shows the items of an array with show: a single one as it is, others in
// brackets. Anything but an array is shown as it came.
func (l *line) list(key string, v wire.Value, show func(wire.Value)) {
	if v.Kind() != wire.Array {
		l.known(key, v)
		return
	}
	if v.Len() == 1 {
		for item := range v.Items() {
			show(item)
		}
		return
	}
	l.bracketed(v, ", ", show)
}

func (l *line) bracketed(v wire.Value, separator string, show func(wire.Value)) {
	l.word("[")
	before := l.b
	first := true
	for item := range v.Items() {
		if !first {
			before = append(before, separator...)
		}
		first = false
		l.b = nil
		show(item)
		before = append(before, l.b...)
	}
	l.b = append(before, ']')
}

// block shows a ContentBlock.
func (l *line) block(v wire.Value) {
	o := open(v)
	if v.Kind() != wire.Object {
		l.word(string(compact(nil, l.m, "", v)))
		return
	}
	kind := o.take("type")
	switch kind.Str() {
	case "text":
		if l.joined != nil {
			o.take("text")
			l.text(*l.joined)
			l.joined = nil
			break
		}
		l.quoted(o, "text")
	case "image", "audio":
		l.word(kind.Str())
		l.string(o, "mimeType", pathText)
		l.base64(o, "data")
		l.keys(o, "uri")
	case "resource_link":
		l.word("resource_link")
		l.quoted(o, "name")
		l.path(o, "uri")
		l.keys(o, "title", "description", "mimeType", "size")
	case "resource":
		l.word("resource")
		if r := o.v.Get("resource"); r.Kind() == wire.Object {
			o.take("resource")
			in := open(r)
			l.path(in, "uri")
			l.keys(in, "mimeType")
			l.quoted(in, "text")
			l.base64(in, "blob")
			l.rest(in)
		}
	default:
		l.known("type", kind)
	}
	l.keys(o, "annotations", "_meta")
	l.rest(o)
}

// base64 shows data by the size and hash of what it encodes.
func (l *line) base64(o object, key string) {
	l.string(o, key, func(s string) string {
		if data, err := base64.StdEncoding.DecodeString(s); err == nil {
			return digest(string(data))
		}
		return "not-base64 " + digest(s)
	})
}

// toolContent shows a ToolCallContent.
func (l *line) toolContent(v wire.Value) {
	if v.Kind() != wire.Object {
		l.word(string(compact(nil, l.m, "", v)))
		return
	}
	o := open(v)
	kind := o.take("type")
	switch kind.Str() {
	case "content":
		l.block(o.take("content"))
	case "diff":
		l.word("diff")
		l.path(o, "path")
		if old := o.take("oldText"); old.Kind() == wire.String {
			l.text(old.Str())
			l.word("=>")
		} else {
			l.known("oldText", old)
		}
		l.quoted(o, "newText")
	case "terminal":
		l.id(o, "terminalId", terminalID)
	default:
		l.known("type", kind)
	}
	l.keys(o, "_meta")
	l.rest(o)
}

// location shows a ToolCallLocation as PATH:LINE.
func (l *line) location(v wire.Value) {
	if v.Kind() != wire.Object {
		l.word(string(compact(nil, l.m, "", v)))
		return
	}
	o := open(v)
	l.path(o, "path")
	if n := o.take("line"); n.Kind() == wire.Number {
		l.b = append(append(l.b, ':'), n.Raw()...)
	} else {
		l.known("line", n)
	}
	l.keys(o, "_meta")
	l.rest(o)
}

// tool shows the members of a ToolCall or ToolCallUpdate, which have the same
// names (schema v1, ToolCall, ToolCallUpdate).
func (l *line) tool(o object) {
	l.id(o, "toolCallId", callID)
	l.bare(o, "kind", toolKinds...)
	l.quoted(o, "title")
	l.bare(o, "status", statuses...)
	if v := o.take("content"); v.Kind() == wire.Array {
		l.word("content")
		l.list("content", v, l.toolContent)
	} else {
		l.known("content", v)
	}
	if v := o.take("locations"); v.Kind() == wire.Array {
		l.word("at")
		l.list("locations", v, l.location)
	} else {
		l.known("locations", v)
	}
	l.keys(o, "rawInput", "rawOutput", "_meta")
}
