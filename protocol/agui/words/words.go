// Package words adds AG-UI to the scenario language: the commands of a front end, the patterns for an agent's events,
// and the front end that executes the commands.
package words

import (
	"cmp"
	_ "embed"
	"strings"

	"github.com/acp-test/acp-test/fakellm"
	"github.com/acp-test/acp-test/protocol/agui/aguiframe"
	"github.com/acp-test/acp-test/protocol/agui/endpoint"
	"github.com/acp-test/acp-test/protocol/agui/invariants"
	"github.com/acp-test/acp-test/protocol/lexicon"
	"github.com/acp-test/acp-test/scenarios"
	"github.com/acp-test/acp-test/scenarios/language"
	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/transport"
)

//go:embed commands.txt
var commands string

// Add adds the words of AG-UI, and the functions that read its frames, to a protocol.
func Add(p *scenarios.Protocol) {
	p.Words = lexicon.Commands(commands, lexicon.Compilers{
		"thread": compileThread, "run": compileRun, "tool-result": compileToolResult, "resume": compileResume,
		"hang-up": compileHangUp, "post": compilePost, "messages": compileMessages, "state": compileState,
	})
	p.AgentActs, p.Events = agentActs(), map[string]string{"run": aguiframe.Run}
	p.Kinds = kinds()
	p.PatternHelp = "A path is looked up in the event, in the response's head, or in its end. " +
		"arguments of\na tool call are all those received so far.\n"
	p.CapabilityHelp = ""
	p.Client, p.Served = newClient, true
	p.Reach = func(url string, headers map[string]string) transport.Reaching {
		at := endpoint.At(url)
		at.Header = headers
		return at
	}
	p.StopReasons = []string{"finished", "interrupt", "cancelled", "refused", "no-stream", "truncated", "hung-up",
		"unreachable"} // the first one is the usual one
	p.Prompts = func(e transcript.Entry) bool {
		return e.Source == transcript.Editor && e.Kind == transcript.Request
	}
	p.TurnEnd = func(e transcript.Entry) (string, bool) {
		end := endpoint.EndOf(e)
		return end, end != ""
	}
	p.Said = func(e transcript.Entry) string {
		if kind := aguiframe.Event(e); kind == "TEXT_MESSAGE_CONTENT" || kind == "TEXT_MESSAGE_CHUNK" {
			return e.JSON().Get("delta").Str()
		}
		return ""
	}
	p.Stories = newStories
	p.Stands = func(transcript.Entry) []string {
		return []string{"toolCallId", "messageId", "runId", "outcome.interrupts.0.id"}
	}
	p.Brief = func(e transcript.Entry) string { return "status " + e.JSON().Get("status").Text() }
	p.Start = func(method string) bool { return method == start }
	p.Further = further
}

//go:embed kinds.txt
var kindTable string

// kinds returns the patterns for an agent's events, and for how its answers end.
func kinds() []language.Kind {
	thought := streamed("REASONING_MESSAGE_CONTENT", "REASONING_MESSAGE_CHUNK", "delta")
	all := lexicon.Kinds(kindTable, map[string]lexicon.Match{
		"event":  func(x language.Bound, e transcript.Entry, own bool) bool { return own && aguiframe.Event(e) == x.Arg },
		"said":   streamed("TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_CHUNK", "delta"),
		"called": streamed("TOOL_CALL_START", "TOOL_CALL_CHUNK", "toolCallName"),
		"thought": func(x language.Bound, e transcript.Entry, own bool) bool {
			return thought(x, e, own) || own && aguiframe.Event(e) == "THINKING_TEXT_MESSAGE_CONTENT"
		},
		"end": func(x language.Bound, e transcript.Entry, _ bool) bool {
			return e.Kind == transcript.Ended && e.Ref == x.Ref
		},
		"answer": func(_ language.Bound, e transcript.Entry, own bool) bool {
			return own && e.Source == transcript.Agent && e.Kind == transcript.Response
		},
	}, func(names ...string) lexicon.Match {
		return func(_ language.Bound, e transcript.Entry, own bool) bool { return own && endpoint.EndOf(e) == names[0] }
	})
	all[0].Of, all[0].Events = "AG-UI", invariants.Types()
	return all
}

// streamed returns a pattern for events of type kind, and for events of type chunk in which member is not empty.
func streamed(kind, chunk, member string) lexicon.Match {
	return func(_ language.Bound, e transcript.Entry, own bool) bool {
		of := aguiframe.Event(e)
		return own && (of == kind || of == chunk && e.JSON().Get(member).Str() != "")
	}
}

// further posts one more run in the current thread, and returns the entry of the post. It returns false, without a
// post, if a run is open or if the thread waits for the front end.
func further(b *scenarios.Branch, p fakellm.Prompt) (transcript.Entry, bool) {
	c, s := of(b), b.Session()
	if s == nil || c.at == nil {
		return transcript.Entry{}, false
	}
	open, last, own := 0, "", map[string]bool{}
	for e := range b.Transcript().All() {
		switch {
		case e.Source == transcript.Editor && e.Kind == transcript.Request:
			open++
			for tool := range e.JSON().Get("tools").Items() {
				own[tool.Get("name").Str()] = true
			}
		case e.Kind == transcript.Ended:
			open--
			last = endpoint.EndOf(e)
		}
	}
	if open > 0 || last != "finished" && last != "error" || c.owes(s.ID, own) {
		return transcript.Entry{}, false
	}
	p.Session = s.ID
	b.Model().Begin(p)
	e, err := c.runs(b, s, &order{text: p.Text})
	return e, err == nil
}

// owes reports whether a thread has tool calls without a result that the front end must execute. own has the names of
// the front end's tools.
func (c *client) owes(id string, own map[string]bool) (yes bool) {
	c.change(id, func(t *thread) {
		for _, call := range t.Unanswered() {
			f, _ := t.Call(call)["function"].(map[string]any)
			name, _ := f["name"].(string)
			yes = yes || own[name]
		}
	})
	return yes
}

// whole identifies a message or a tool call in a stream.
type whole struct {
	ref int
	id  string
}

// newStories returns two functions. observe records the text of each message and tool call. For the path "arguments",
// told returns the recorded arguments of the tool call that an event is about; ok is false for other paths and events.
func newStories() (observe func(transcript.Entry), told func(transcript.Entry, string) (string, bool)) {
	texts := map[whole]*strings.Builder{}
	last := map[int]string{} // by stream: id of the item that a chunk without an id continues
	observe = func(e transcript.Entry) {
		kind := aguiframe.Event(e)
		if !strings.HasPrefix(kind, "TEXT_MESSAGE_") && !strings.HasPrefix(kind, "TOOL_CALL_") {
			return
		}
		v := e.JSON()
		id := idOf(e)
		if strings.HasSuffix(kind, "_CHUNK") {
			id = cmp.Or(id, last[e.Ref])
			last[e.Ref] = id
		}
		at := whole{e.Ref, id}
		if texts[at] == nil {
			texts[at] = &strings.Builder{}
		}
		texts[at].WriteString(v.Get("delta").Str())
	}
	told = func(e transcript.Entry, path string) (string, bool) {
		kind := aguiframe.Event(e)
		if path != "arguments" || !strings.HasPrefix(kind, "TOOL_CALL_") {
			return "", false
		}
		text := texts[whole{e.Ref, idOf(e)}]
		if text == nil {
			return "", false
		}
		return text.String(), true
	}
	return observe, told
}

// idOf returns the id of the message or tool call that an event is about.
func idOf(e transcript.Entry) string {
	v := e.JSON()
	if strings.HasPrefix(e.Method, "TOOL_CALL_") {
		return v.Get("toolCallId").Str()
	}
	return v.Get("messageId").Str()
}
