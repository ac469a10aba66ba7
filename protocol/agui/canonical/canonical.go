// Package canonical turns transcripts of AG-UI into text, one line per event, stream by stream. It joins the chunks of
// a text, and numbers ids in the order of first use.
package canonical

import (
	"iter"
	"slices"
	"strings"

	"github.com/acp-test/acp-test/golden"
	"github.com/acp-test/acp-test/protocol/agui/aguiframe"
	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/wire"
)

// V1 returns the renderer of AG-UI.
func V1() golden.Renderer { return renderer{} }

type renderer struct{}

// ids maps each member that has opaque ids to the class of these ids.
var ids = map[string]golden.IDClass{
	"threadId": "thread", "runId": "run", "parentRunId": "run", "messageId": "msg", "parentMessageId": "msg",
	"toolCallId": "call", "parentToolCallId": "call", "interruptId": "int", "entityId": "msg",
	"subagentRunId": "sub", "parentSubagentRunId": "sub",
}

// first has the members that come first in a line, in this order.
var first = []string{"threadId", "runId", "messageId", "toolCallId", "subagentRunId", "toolCallName", "stepName",
	"role",
	"name", "parentMessageId"}

// Line returns any entry as one readable line.
func (renderer) Line(e transcript.Entry) string {
	if !e.Frame() {
		return golden.Event(e)
	}
	return line(golden.PlainMask(), e, "")
}

// Render returns the text of the frames among entries: each input of a run, followed by the events that answer it.
func (renderer) Render(entries iter.Seq[transcript.Entry], o golden.Options) string {
	mask := golden.NewMask(o)
	var order []int
	streams := map[int][]transcript.Entry{}
	for e := range entries {
		if !e.Frame() {
			continue
		}
		learn(mask, "", e.JSON())
		at := e.Ref
		if e.Source == transcript.Editor {
			at = e.Seq
		}
		if streams[at] == nil {
			order = append(order, at)
		}
		streams[at] = append(streams[at], e)
	}
	slices.Sort(order)
	var b strings.Builder
	for _, at := range order {
		for list := streams[at]; len(list) > 0; {
			n, joined := 1, delta(list[0])
			for !o.Exact && joined != "" && n < len(list) && continues(list[0], list[n]) {
				joined += delta(list[n])
				n++
			}
			b.WriteString(line(mask, list[0], joined) + "\n")
			list = list[n:]
		}
	}
	return b.String()
}

// learn passes all ids in a value to the mask. key is the member that has the value, or "".
func learn(m *golden.Mask, key string, v wire.Value) {
	switch v.Kind() {
	case wire.String:
		if class, ok := ids[key]; ok {
			m.Learn(class, v.Str())
		}
	case wire.Object:
		for k, inner := range v.Members() {
			switch {
			case k == "id" && (key == "messages" || key == "toolCalls" || key == "interrupts"):
				k = map[string]string{"messages": "messageId", "toolCalls": "toolCallId", "interrupts": "interruptId"}[key]
			}
			learn(m, k, inner)
		}
	case wire.Array:
		for inner := range v.Items() {
			learn(m, key, inner)
		}
	}
}

// delta returns the text of a chunk, or "" for an event of another type.
func delta(e transcript.Entry) string {
	if !strings.HasSuffix(e.Method, "_CONTENT") && !strings.HasSuffix(e.Method, "_ARGS") &&
		!strings.HasSuffix(e.Method, "_CHUNK") {
		return ""
	}
	return e.JSON().Get("delta").Str()
}

// continues reports whether next is the next chunk of the same text and has no members that e lacks.
func continues(e, next transcript.Entry) bool {
	if next.Kind != e.Kind || next.Method != e.Method {
		return false
	}
	v, w := e.JSON(), next.JSON()
	for _, id := range []string{"messageId", "toolCallId", "subagentRunId"} {
		if a, b := v.Get(id), w.Get(id); b.Exists() && a.Str() != b.Str() ||
			a.Exists() && !b.Exists() && !strings.HasSuffix(e.Method, "_CHUNK") {
			return false
		}
	}
	for key := range w.Members() {
		if !v.Get(key).Exists() {
			return false
		}
	}
	return true
}

// line returns the text for one frame. If the frame is the first of several chunks, joined is the text of all of them.
// If joined is "", the frame's own text is shown.
func line(m *golden.Mask, e transcript.Entry, joined string) string {
	l := golden.NewLine(m)
	l.Word(golden.Arrow(e.Source))
	v := e.JSON()
	o := golden.Open(v)
	switch {
	case e.Kind == transcript.Malformed:
		l.Malformed(e)
	case e.Kind == transcript.Request:
		l.Word(aguiframe.Run)
		input(l, m, o)
	case e.Kind == transcript.Response && m.Plain():
		l.Word("answer")
		l.Details(v)
	case e.Kind == transcript.Response:
		l.Word(v.Get("status").Text())
		l.Keys(o, "type")
		if body := v.Get("body"); v.Get("status").Text() != "200" {
			l.Known("body", body)
		}
	case e.Kind == transcript.Ended:
		l.Word("end")
		l.Word(v.Get("end").Str())
		if m.Plain() {
			l.Details(v)
		} else if outcome := v.Get("outcome").Str(); outcome != "" && outcome != "success" {
			l.Word(outcome)
		}
	default:
		l.Word(golden.QuoteUnlessWord(e.Method))
		o.Take("type")
		named(l, m, o)
		if joined != "" {
			o.Take("delta")
			l.Text(joined)
		}
		l.Members(o)
	}
	return l.String()
}

// named shows the members that distinguish an event from other events of the same type.
func named(l *golden.Line, m *golden.Mask, o golden.Object) {
	for _, key := range first {
		v := o.Value.Get(key)
		class, id := ids[key]
		switch {
		case v.Kind() != wire.String || v.Str() == "":
		case id:
			l.ID(o, key, class)
		default:
			l.Formed(o, key, func(s string) string { return golden.QuoteUnlessWord(m.Text(s)) })
		}
	}
}

// input shows a RunAgentInput without its empty members.
func input(l *golden.Line, m *golden.Mask, o golden.Object) {
	named(l, m, o)
	for _, key := range []string{"messages", "tools", "context", "state", "forwardedProps"} {
		if v := o.Value.Get(key); v.Kind() == wire.Array && v.Len() == 0 || v.Kind() == wire.Object && v.Len() == 0 {
			o.Take(key)
		}
	}
	messages := o.Take("messages")
	l.Members(o)
	for msg := range messages.Items() {
		l.Word("/ " + golden.QuoteUnlessWord(msg.Get("role").Str()))
		if content := msg.Get("content"); content.Kind() == wire.String {
			l.Text(content.Str())
		} else {
			l.Known("content", content)
		}
		l.Known("toolCalls", msg.Get("toolCalls"))
		l.Known("toolCallId", msg.Get("toolCallId"))
	}
}
