// Package words has what AG-UI adds to the scenario language: the commands of a front
// end, the patterns of what an agent sends, and the front end that plays them.
package words

import (
	"cmp"
	"strings"

	"github.com/acp-test/acp-test/fakellm"
	"github.com/acp-test/acp-test/protocol/agui/aguiframe"
	"github.com/acp-test/acp-test/protocol/agui/endpoint"
	"github.com/acp-test/acp-test/scenarios"
	"github.com/acp-test/acp-test/scenarios/language"
	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/transport"
)

// Events are the types of events, those that are retired among them.
var Events = []string{
	"RUN_STARTED", "RUN_FINISHED", "RUN_ERROR", "STEP_STARTED", "STEP_FINISHED",
	"TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END", "TEXT_MESSAGE_CHUNK",
	"TOOL_CALL_START", "TOOL_CALL_ARGS", "TOOL_CALL_END", "TOOL_CALL_CHUNK", "TOOL_CALL_RESULT",
	"STATE_SNAPSHOT", "STATE_DELTA", "MESSAGES_SNAPSHOT", "ACTIVITY_SNAPSHOT", "ACTIVITY_DELTA", "RAW", "CUSTOM",
	"REASONING_START", "REASONING_END", "REASONING_MESSAGE_START", "REASONING_MESSAGE_CONTENT",
	"REASONING_MESSAGE_END", "REASONING_MESSAGE_CHUNK", "REASONING_ENCRYPTED_VALUE",
	"SUBAGENT_STARTED", "SUBAGENT_FINISHED", "SUBAGENT_ERROR",
	"THINKING_START", "THINKING_END", "THINKING_TEXT_MESSAGE_START", "THINKING_TEXT_MESSAGE_CONTENT",
	"THINKING_TEXT_MESSAGE_END",
}

// Add adds the words of AG-UI, and its reading of frames, to a protocol.
func Add(p *scenarios.Protocol) {
	p.Words = append(actCommands(), backCommands()...)
	p.AgentActs, p.Events = agentActs(), map[string]string{"run": aguiframe.Run}
	p.Kinds = kinds()
	p.PatternHelp = "A path is looked up in the event, or in what the answer or its end has. " +
		"arguments of\na tool call are all that has come of them.\n"
	p.CapabilityHelp = ""
	p.Client, p.Served = newClient, true
	p.Reach = func(url string, headers map[string]string) transport.Reaching {
		at := endpoint.At(url)
		at.Header = headers
		return at
	}
	p.StopReasons = endings()
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

// endings are the ways in which a run may end, as patterns; the first is the plain one.
func endings() []string {
	return []string{"finished", "interrupt", "cancelled", "refused", "no-stream", "truncated", "hung-up", "unreachable"}
}

// kinds are the patterns of an agent's events.
func kinds() []language.Kind {
	of := func(name string) func(language.Bound, transcript.Entry, bool) bool {
		return func(_ language.Bound, e transcript.Entry, own bool) bool { return own && endpoint.EndOf(e) == name }
	}
	help := map[string]string{
		"finished":    "the end of a stream whose run finished: with success, or without an outcome",
		"interrupt":   "the end of a stream whose run waits for an answer of the user",
		"cancelled":   "the end of a stream whose run was stopped on purpose",
		"error":       "the end of a stream whose run failed, with RUN_ERROR",
		"refused":     "the end of an answer with another status than 200",
		"no-stream":   "the end of an answer that is no event stream",
		"truncated":   "the end of a stream without the end of its run",
		"hung-up":     "the end of a stream that the client closed, before the end of its run",
		"unreachable": "a post that nobody answered",
	}
	all := []language.Kind{
		{Name: "event", Arg: "TYPE", Help: "an event of this type", Of: "AG-UI", Events: Events, Inner: true,
			Match: func(x language.Bound, e transcript.Entry, own bool) bool {
				return own && aguiframe.Event(e) == x.Arg
			}},
		{Name: "said", Help: "a piece of the agent's text, in either form; delta is the text", Inner: true,
			Match: streamed("TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_CHUNK", "delta")},
		{Name: "called", Help: "the beginning of a tool call, in either form; toolCallName, arguments", Inner: true,
			Match: streamed("TOOL_CALL_START", "TOOL_CALL_CHUNK", "toolCallName")},
		{Name: "thought", Help: "a piece of reasoning, in any form; delta is the text", Inner: true,
			Match: func(x language.Bound, e transcript.Entry, own bool) bool {
				return streamed("REASONING_MESSAGE_CONTENT", "REASONING_MESSAGE_CHUNK", "delta")(x, e, own) ||
					own && aguiframe.Event(e) == "THINKING_TEXT_MESSAGE_CONTENT"
			}},
		{Name: "end", Arg: "REF", Help: "the end of the answer to the run a line named with as, whatever it is", Effect: true,
			Match: func(x language.Bound, e transcript.Entry, _ bool) bool {
				return e.Kind == transcript.Ended && e.Ref == x.Ref
			}},
		{Name: "answer", Help: "the head of an answer: status, type, headers.NAME", Inner: true,
			Match: func(_ language.Bound, e transcript.Entry, own bool) bool {
				return own && e.Source == transcript.Agent && e.Kind == transcript.Response
			}},
	}
	for _, name := range append(endings(), "error") {
		all = append(all, language.Kind{Name: name, Help: help[name], Inner: true, Effect: true, Match: of(name)})
	}
	return all
}

// streamed matches an event of one type, or a chunk that has a member.
func streamed(kind, chunk, member string) func(language.Bound, transcript.Entry, bool) bool {
	return func(_ language.Bound, e transcript.Entry, own bool) bool {
		of := aguiframe.Event(e)
		return own && (of == kind || of == chunk && e.JSON().Get(member).Str() != "")
	}
}

// further posts one more run in the thread that was used last, if it is idle and waits for nothing that
// the front end owes.
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

// owes reports whether calls of the front end's own tools wait for an answer in a thread.
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

// whole names a message or a tool call of a stream.
type whole struct {
	ref int
	id  string
}

// newStories keeps what comes in pieces: the arguments of a tool call and the text of a
// message, for patterns about the event that began it.
func newStories() (observe func(transcript.Entry), told func(transcript.Entry, string) (string, bool)) {
	texts := map[whole]*strings.Builder{}
	last := map[int]string{} // of a stream: what a chunk without an id continues
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

// idOf is the id of the message or the tool call that an event is about.
func idOf(e transcript.Entry) string {
	v := e.JSON()
	if strings.HasPrefix(e.Method, "TOOL_CALL_") {
		return v.Get("toolCallId").Str()
	}
	return v.Get("messageId").Str()
}
