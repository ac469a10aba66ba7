package webagent

import (
	"bytes"
	_ "embed"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/acp-test/acp-test/refagent"
)

// Fault is one deliberate defect.
type Fault struct {
	Name    string // kebab case, unique
	Summary string // what the agent does wrong, in plain words
	// Copies is the public report that it copies (owner/repo#number), or "".
	Copies string
	// Hooks makes fresh hooks for one server.
	Hooks func() Hooks
	// Scenarios show it; Reddens are the rules and checks that find it there. One that
	// ends in ? may be missing.
	Scenarios, Reddens []string
}

//go:embed reddens.txt
var reddens string

// effects are what the proof has measured, by fault.
var effects = sync.OnceValue(func() map[string][2][]string {
	all := map[string][2][]string{}
	name := ""
	for line := range strings.Lines(reddens) {
		words := strings.Fields(line)
		switch {
		case len(words) == 0 || line[0] == '#':
		case line[0] != ' ':
			name = words[0]
		default:
			e := all[name]
			e[map[string]int{"in": 0, "reddens": 1}[words[0]]] = words[1:]
			all[name] = e
		}
	}
	return all
})

// Faults lists all faults.
func Faults() []Fault {
	all := slices.Concat(runFaults(), textFaults(), toolFaults(), stateFaults(), httpFaults(), stopFaults())
	for i := range all {
		all[i].Scenarios, all[i].Reddens = effects()[all[i].Name][0], effects()[all[i].Name][1]
	}
	return all
}

// Take gives the server a fault and liberties, by their names.
func (o *Options) Take(fault string, liberties []string) error {
	if fault != "" {
		i := slices.IndexFunc(Faults(), func(f Fault) bool { return f.Name == fault })
		if i < 0 {
			return fmt.Errorf("--fault: there is no fault %q of the AG-UI agent: acp-test refagent --ag-ui= --faults "+
				"lists them", fault)
		}
		o.Hooks = Faults()[i].Hooks()
	}
	for _, name := range liberties {
		i := slices.IndexFunc(Liberties(), func(l Liberty) bool { return l.Name == name })
		if i < 0 {
			return fmt.Errorf("--liberty: there is no liberty %q of the AG-UI agent: acp-test refagent --ag-ui= "+
				"--liberties lists them",
				name)
		}
		Liberties()[i].set(&o.Habits)
	}
	return nil
}

func fault(name, copies, summary string, hooks func() Hooks) Fault {
	return Fault{Name: name, Summary: summary, Copies: copies, Hooks: hooks}
}

// sends is a fault of what is sent.
func sends(f func(p *Port, e Event)) func() Hooks {
	return func() Hooks { return Hooks{Send: f} }
}

// instead sends other events in the place of those of a type.
func instead(kind string, f func(p *Port, e Event) []Event) func() Hooks {
	return sends(func(p *Port, e Event) {
		if e.Type() != kind {
			p.Emit(e)
			return
		}
		for _, e := range f(p, e) {
			p.Emit(e)
		}
	})
}

// dropping sends no events of some types.
func dropping(kinds ...string) func() Hooks {
	return sends(func(p *Port, e Event) {
		if !slices.Contains(kinds, e.Type()) {
			p.Emit(e)
		}
	})
}

// once is instead for the first event of a type in each run.
func once(kind string, f func(p *Port, e Event) []Event) func() Hooks {
	return instead(kind, func(p *Port, e Event) []Event {
		if p.Notes[kind] != nil {
			return []Event{e}
		}
		p.Notes[kind] = true
		return f(p, e)
	})
}

// plus sends an event and others behind it.
func plus(more ...Event) func(*Port, Event) []Event {
	return func(_ *Port, e Event) []Event { return append([]Event{e}, more...) }
}

// with sends events with another value of a member; nil leaves it out.
func with(name string, value any) func(*Port, Event) []Event {
	return func(_ *Port, e Event) []Event {
		if value == nil {
			return []Event{e.Without(name)}
		}
		return []Event{e.With(name, value)}
	}
}

func runFaults() []Fault {
	late := Event{"type": "CUSTOM", "name": "acp-test.late", "value": 1}
	return []Fault{
		fault("no-run-started", "", "does not say that the run starts", dropping("RUN_STARTED")),
		fault("no-terminal-event", "ag-ui-protocol/ag-ui#2300", "closes the stream without the end of the run",
			dropping("RUN_FINISHED")),
		fault("failed-run-without-end", "ag-ui-protocol/ag-ui#2416", "says nothing when the model fails",
			dropping("RUN_ERROR")),
		fault("finished-after-error", "ag-ui-protocol/ag-ui#1892", "says RUN_FINISHED after RUN_ERROR",
			instead("RUN_ERROR", func(p *Port, e Event) []Event {
				return []Event{e, {"type": "RUN_FINISHED", "threadId": p.Input.ThreadID, "runId": p.Input.RunID}}
			})),
		fault("error-as-finished", "agno-agi/agno#9486", "says RUN_FINISHED when the model fails",
			instead("RUN_ERROR", func(p *Port, _ Event) []Event {
				return []Event{{"type": "RUN_FINISHED", "threadId": p.Input.ThreadID, "runId": p.Input.RunID}}
			})),
		fault("end-after-error", "CopilotKit/CopilotKit#5812", "closes a message after RUN_ERROR",
			sends(func(p *Port, e Event) {
				if e.Type() == "TEXT_MESSAGE_START" {
					p.Notes["open"] = e["messageId"]
				}
				p.Emit(e)
				if id, ok := p.Notes["open"]; ok && e.Type() == "RUN_ERROR" {
					p.Emit(Event{"type": "TEXT_MESSAGE_END", "messageId": id})
				}
			})),
		fault("event-after-finished", "", "sends an event of its own after RUN_FINISHED", instead("RUN_FINISHED",
			plus(late))),
		fault("snapshot-after-finished", "ag-ui-protocol/ag-ui#640", "sends the last snapshot after RUN_FINISHED",
			sends(func(p *Port, e Event) {
				switch e.Type() {
				case "MESSAGES_SNAPSHOT":
					p.Notes["kept"] = e
					return
				case "RUN_FINISHED":
					p.Emit(e)
					if kept, ok := p.Notes["kept"].(Event); ok {
						p.Emit(kept)
					}
					return
				}
				p.Emit(e)
			})),
		fault("run-started-twice", "", "says RUN_STARTED again in mid-run", once("STEP_STARTED", func(p *Port,
			e Event) []Event {
			return []Event{e, {"type": "RUN_STARTED", "threadId": p.Input.ThreadID, "runId": p.Input.RunID,
				"protocolVersion": Version}}
		})),
		fault("state-before-start", "", "sends the state before RUN_STARTED", instead("RUN_STARTED", func(_ *Port,
			e Event) []Event {
			return []Event{{"type": "STATE_SNAPSHOT", "snapshot": map[string]any{}}, e}
		})),
		fault("own-thread-id", "", "makes a thread id of its own", instead("RUN_STARTED", with("threadId",
			"thread-of-the-server"))),
		fault("own-run-id", "", "makes a run id of its own", sends(func(p *Port, e Event) {
			if e["runId"] != nil {
				e = e.With("runId", "run-of-the-server")
			}
			p.Emit(e)
		})),
		fault("run-ids-disagree", "", "ends another run than it has begun", instead("RUN_FINISHED", with("runId",
			"another-run"))),
		fault("error-without-message", "", "says RUN_ERROR without a message", instead("RUN_ERROR", with("message", nil))),
		fault("trace-in-error", "", "shows a stack trace in RUN_ERROR", instead("RUN_ERROR", with("message",
			"Error: no\n    at run (/srv/app/agent.js:12:7)\n    at main (/srv/app/index.js:3:1)"))),
		fault("step-left-open", "", "does not close its steps", dropping("STEP_FINISHED")),
		fault("step-not-opened", "", "closes steps that it has not opened", dropping("STEP_STARTED")),
		fault("step-opened-twice", "", "opens a step twice", once("STEP_STARTED", func(_ *Port,
			e Event) []Event {
			return []Event{e, e}
		})),
		fault("unknown-event", "", "sends a type of event that the protocol has not", once("STEP_STARTED",
			plus(Event{"type": "AGENT_THOUGHTS", "text": "hm"}))),
		fault("null-members", "", "sends null where there is no value", instead("TEXT_MESSAGE_START", with("name",
			any(nullValue)))),
		fault("outcome-unknown", "", "ends with an outcome of its own", instead("RUN_FINISHED", with("outcome",
			map[string]any{"type": "done"}))),
		fault("usage-does-not-add-up", "", "counts cached tokens beside the input", instead("RUN_FINISHED", with("usage",
			[]any{map[string]any{"inputTokens": 10, "outputTokens": 5, "cachedInputTokens": 40, "totalTokens": 55}}))),
		fault("interrupt-as-success", "ag-ui-protocol/ag-ui#2205", "calls a run that waits for an approval a success",
			instead("RUN_FINISHED", func(_ *Port, e Event) []Event {
				if outcome, _ := e["outcome"].(map[string]any); outcome["type"] == "interrupt" {
					e = e.With("outcome", map[string]any{"type": "success"})
				}
				return []Event{e}
			})),
		fault("interrupt-without-end", "", "ends nothing where it waits for an approval", instead("RUN_FINISHED",
			func(_ *Port, e Event) []Event {
				if outcome, _ := e["outcome"].(map[string]any); outcome["type"] == "interrupt" {
					return nil
				}
				return []Event{e}
			})),
		fault("interrupts-empty", "", "names no interrupt", instead("RUN_FINISHED",
			interruptsOf(func([]map[string]any) []map[string]any {
				return []map[string]any{}
			}))),
		fault("interrupt-ids-equal", "", "gives all interrupts one id", instead("RUN_FINISHED",
			interruptsOf(func(list []map[string]any) []map[string]any {
				var out []map[string]any
				for _, i := range list {
					c := maps.Clone(i)
					c["id"] = "approval"
					out = append(out, c)
				}
				return out
			}))),
		fault("approval-ignored", "ag-ui-protocol/ag-ui#2205", "does nothing with an approval", func() Hooks {
			return Hooks{Answer: func(_, answered bool) (bool, bool) { return false, answered }}
		}),
		fault("rejection-ignored", "", "does what the user has refused", func() Hooks {
			return Hooks{Answer: func(_, answered bool) (bool, bool) { return true, answered }}
		}),
		fault("omission-as-consent", "", "does what nobody has decided", func() Hooks {
			return Hooks{Answer: func(approved, answered bool) (bool, bool) { return approved || !answered, true }}
		}),
		fault("never-asks", "", "asks for no approval", func() Hooks {
			return Hooks{Ask: func(string,
				bool) bool {
				return false
			}}
		}),
	}
}

// nullValue is what encodes as null.
var nullValue *int

func interruptsOf(f func([]map[string]any) []map[string]any) func(*Port, Event) []Event {
	return func(_ *Port, e Event) []Event {
		if outcome, _ := e["outcome"].(map[string]any); outcome["type"] == "interrupt" {
			list, _ := outcome["interrupts"].([]map[string]any)
			e = e.With("outcome", map[string]any{"type": "interrupt", "interrupts": f(list)})
		}
		return []Event{e}
	}
}

func textFaults() []Fault {
	return []Fault{
		fault("text-without-start", "", "sends text without opening its message", dropping("TEXT_MESSAGE_START")),
		fault("text-left-open", "", "does not close its messages", dropping("TEXT_MESSAGE_END")),
		fault("text-opened-twice", "", "opens a message twice", instead("TEXT_MESSAGE_START",
			func(_ *Port, e Event) []Event { return []Event{e, e} })),
		fault("text-after-end", "", "sends the last piece after the end of its message", sends(func(p *Port, e Event) {
			if last, ok := p.Notes["last"].(Event); ok {
				delete(p.Notes, "last")
				if e.Type() == "TEXT_MESSAGE_END" {
					p.Emit(e)
					p.Emit(last)
					return
				}
				p.Emit(last)
			}
			if e.Type() == "TEXT_MESSAGE_CONTENT" {
				p.Notes["last"] = e
				return
			}
			p.Emit(e)
		})),
		fault("text-without-id", "", "sends text without the id of its message", instead("TEXT_MESSAGE_CONTENT",
			with("messageId", nil))),
		fault("text-empty-pieces", "", "sends a piece for each token, the empty ones too", instead("TEXT_MESSAGE_CONTENT",
			func(_ *Port, e Event) []Event { return []Event{e.With("delta", ""), e} })),
		fault("text-repeated", "ag-ui-protocol/ag-ui#742", "sends the whole text once more at the end", sends(func(p *Port,
			e Event) {
			said, _ := p.Notes["said"].(string)
			switch e.Type() {
			case "TEXT_MESSAGE_START":
				p.Notes["said"] = ""
			case "TEXT_MESSAGE_CONTENT":
				p.Notes["said"] = said + e.Text("delta")
			case "TEXT_MESSAGE_END":
				if said != "" {
					p.Emit(Event{"type": "TEXT_MESSAGE_CONTENT", "messageId": e["messageId"], "delta": said})
				}
			}
			p.Emit(e)
		})),
		fault("text-lost", "", "loses the second piece of a reply", func() Hooks {
			return Hooks{Piece: func(n int, p refagent.Piece) []refagent.Piece {
				if n == 2 && p.Text != "" {
					return nil
				}
				return []refagent.Piece{p}
			}}
		}),
		fault("text-bytes-mangled", "", "cuts text at bytes", instead("TEXT_MESSAGE_CONTENT", func(_ *Port, e Event) []Event {
			return []Event{e.With("delta", strings.Map(func(r rune) rune {
				if r > 127 {
					return '\uFFFD'
				}
				return r
			}, e.Text("delta")))}
		})),
		fault("text-role-tool", "", "streams text with the role tool", instead("TEXT_MESSAGE_START", with("role", "tool"))),
		fault("text-id-reused", "", "uses one message id for all replies of a run", sends(func(p *Port, e Event) {
			if strings.HasPrefix(e.Type(), "TEXT_MESSAGE_") {
				e = e.With("messageId", "the-message")
			}
			p.Emit(e)
		})),
		fault("thoughts-as-text", "", "sends reasoning as the text of a message", sends(func(p *Port, e Event) {
			switch e.Type() {
			case "REASONING_START", "REASONING_END":
				return
			case "REASONING_MESSAGE_START":
				e = Event{"type": "TEXT_MESSAGE_START", "messageId": e["messageId"], "role": "assistant"}
			case "REASONING_MESSAGE_CONTENT", "REASONING_MESSAGE_END":
				e = e.With("type", strings.Replace(e.Type(), "REASONING_", "TEXT_", 1))
			}
			p.Emit(e)
		})),
		fault("reasoning-left-open", "pydantic/pydantic-ai#2766", "does not close its reasoning",
			dropping("REASONING_MESSAGE_END")),
		fault("reasoning-span-left-open", "", "does not close the span of its reasoning", dropping("REASONING_END")),
		fault("reasoning-role-assistant", "agno-agi/agno#7556", "gives reasoning the role assistant",
			instead("REASONING_MESSAGE_START", with("role", "assistant"))),
		fault("reasoning-wrapped-per-delta", "microsoft/agent-framework#5162", "opens its reasoning for each piece",
			instead("REASONING_MESSAGE_CONTENT", func(_ *Port, e Event) []Event {
				return []Event{{"type": "REASONING_MESSAGE_START", "messageId": e["messageId"], "role": "reasoning"}, e}
			})),
		fault("thinking-in-new-stream", "", "spells reasoning as before 1.0", sends(func(p *Port, e Event) {
			for _, e := range retired(e) {
				p.Emit(e)
			}
		})),
		fault("chunk-without-id", "", "sends a first chunk without an id", chunked(func(_ int, e Event) []Event {
			return []Event{e.Without("messageId")}
		})),
		fault("chunk-contradicts", "", "gives a later chunk another role", chunked(func(n int, e Event) []Event {
			if n == 1 {
				return []Event{e.With("role", "assistant")}
			}
			return []Event{e.With("role", "system")}
		})),
		fault("chunk-and-end", "", "closes with an event what it has sent in chunks", sends(func(p *Port, e Event) {
			switch e.Type() {
			case "TEXT_MESSAGE_START":
				return
			case "TEXT_MESSAGE_CONTENT":
				e = e.With("type", "TEXT_MESSAGE_CHUNK")
			}
			p.Emit(e)
		})),
	}
}

// chunked sends text in chunks, each of them changed.
func chunked(f func(n int, e Event) []Event) func() Hooks {
	return sends(func(p *Port, e Event) {
		switch e.Type() {
		case "TEXT_MESSAGE_START", "TEXT_MESSAGE_END":
			return
		case "TEXT_MESSAGE_CONTENT":
			n, _ := p.Notes["n"].(int)
			p.Notes["n"] = n + 1
			for _, e := range f(n+1, e.With("type", "TEXT_MESSAGE_CHUNK")) {
				p.Emit(e)
			}
			return
		}
		p.Emit(e)
	})
}

func toolFaults() []Fault {
	return []Fault{
		fault("args-before-start", "", "sends arguments while the model streams, and the beginning of the call later",
			sends(func(p *Port, e Event) {
				switch e.Type() {
				case "TOOL_CALL_START":
					p.Notes[e.Text("toolCallId")] = e
					return
				case "TOOL_CALL_END":
					if start, ok := p.Notes[e.Text("toolCallId")].(Event); ok {
						p.Emit(start)
					}
				}
				p.Emit(e)
			})),
		fault("args-lost", "", "sends those pieces of the arguments alone that have an id", func() Hooks {
			return Hooks{Piece: func(_ int, p refagent.Piece) []refagent.Piece {
				if p.Call && p.ID == "" {
					p.Arguments = ""
				}
				return []refagent.Piece{p}
			}}
		}),
		fault("call-without-args", "ag-ui-protocol/ag-ui#2463", "sends no arguments", dropping("TOOL_CALL_ARGS")),
		fault("args-after-end", "pydantic/pydantic-ai#4733", "sends arguments after the end of the call",
			sends(func(p *Port, e Event) {
				if e.Type() == "TOOL_CALL_ARGS" {
					list, _ := p.Notes["args"].([]Event)
					p.Notes["args"] = append(list, e)
					return
				}
				p.Emit(e)
				if e.Type() == "TOOL_CALL_END" {
					list, _ := p.Notes["args"].([]Event)
					delete(p.Notes, "args")
					for _, e := range list {
						p.Emit(e)
					}
				}
			})),
		fault("call-left-open", "ag-ui-protocol/ag-ui#2024", "does not close its tool calls", dropping("TOOL_CALL_END")),
		fault("call-without-start", "ag-ui-protocol/ag-ui#2668", "does not open its tool calls", dropping("TOOL_CALL_START")),
		fault("args-bound-to-first", "microsoft/agent-framework#6342", "sends all arguments to the first call",
			sends(func(p *Port, e Event) {
				switch e.Type() {
				case "TOOL_CALL_START":
					if p.Notes["call"] == nil {
						p.Notes["call"] = e["toolCallId"]
					}
				case "TOOL_CALL_ARGS":
					e = e.With("toolCallId", p.Notes["call"])
				}
				p.Emit(e)
			})),
		fault("no-result", "ag-ui-protocol/ag-ui#9", "sends no results of its tools", dropping("TOOL_CALL_RESULT")),
		fault("result-of-another-id", "", "gives a result the id of another call", instead("TOOL_CALL_RESULT",
			with("toolCallId", "call-of-nobody"))),
		fault("result-with-message-id", "", "gives a result the id of the message of its call", sends(func(p *Port, e Event) {
			switch e.Type() {
			case "TOOL_CALL_START":
				p.Notes["parent"] = e["toolCallId"]
			case "TOOL_CALL_RESULT":
				e = e.With("messageId", p.Notes["parent"])
			}
			p.Emit(e)
		})),
		fault("result-without-id", "", "sends results without an id of their own", instead("TOOL_CALL_RESULT",
			with("messageId", nil))),
		fault("results-swapped", "", "swaps the results of two calls", sends(func(p *Port, e Event) {
			if e.Type() != "TOOL_CALL_RESULT" {
				p.Emit(e)
				return
			}
			first, ok := p.Notes["result"].(Event)
			if !ok {
				p.Notes["result"] = e
				return
			}
			p.Emit(first.With("content", e["content"]))
			p.Emit(e.With("content", first["content"]))
		})),
		fault("result-twice", "", "sends each result twice", instead("TOOL_CALL_RESULT", func(_ *Port, e Event) []Event {
			return []Event{e, e.With("messageId", e.Text("messageId")+"-again")}
		})),
		fault("result-changed", "", "shows another result than the tool gave", func() Hooks {
			return Hooks{Result: func(string, string) string { return "ok" }}
		}),
		fault("answers-front-end", "ag-ui-protocol/ag-ui#1346", "invents the answer of a tool of the front end",
			instead("TOOL_CALL_END", func(p *Port, e Event) []Event {
				if len(p.Input.Tools) == 0 {
					return []Event{e}
				}
				return []Event{e, {"type": "TOOL_CALL_RESULT", "messageId": newID("msg"), "toolCallId": e["toolCallId"],
					"content": "done"}}
			})),
		fault("front-end-as-interrupt", "", "calls a run interrupted that has called a tool of the front end",
			instead("RUN_FINISHED", func(_ *Port, e Event) []Event {
				outcome, _ := e["outcome"].(map[string]any)
				ids, _ := outcome["pendingToolCallIds"].([]string)
				if len(ids) == 0 {
					return []Event{e}
				}
				return []Event{e.With("outcome", map[string]any{"type": "interrupt", "interrupts": []any{
					map[string]any{"id": "wait", "reason": "tool_call", "toolCallId": ids[0]}}})}
			})),
		fault("pending-incomplete", "ag-ui-protocol/ag-ui#1346", "names the first pending call alone", instead("RUN_FINISHED",
			func(_ *Port, e Event) []Event {
				outcome, _ := e["outcome"].(map[string]any)
				if ids, _ := outcome["pendingToolCallIds"].([]string); len(ids) > 1 {
					e = e.With("outcome", map[string]any{"type": "success", "pendingToolCallIds": ids[:1]})
				}
				return []Event{e}
			})),
		fault("wrong-tool-name", "", "names tools as it likes", instead("TOOL_CALL_START", func(_ *Port, e Event) []Event {
			return []Event{e.With("toolCallName", "tool_"+e.Text("toolCallName"))}
		})),
		fault("own-call-ids", "", "gives calls other ids than the model", sends(func(p *Port, e Event) {
			if id := e.Text("toolCallId"); id != "" {
				e = e.With("toolCallId", "own-"+id)
			}
			p.Emit(e)
		})),
		fault("forgets-tool-answers", "microsoft/agent-framework#3790",
			"does not tell the model what the front end's tool gave",
			func() Hooks {
				return Hooks{Request: func(_ *Input, list []refagent.ModelMessage) []refagent.ModelMessage {
					for i := range list {
						if list[i].Role == "tool" {
							list[i].Text = "(no answer)"
						}
					}
					return list
				}}
			}),
	}
}

func stateFaults() []Fault {
	replace := func(op, path string) func(*Port, Event) []Event {
		return func(_ *Port, e Event) []Event {
			return []Event{e.With("delta", []any{map[string]any{"op": op, "path": path, "value": 1}})}
		}
	}
	return []Fault{
		fault("patch-replaces-missing", "ag-ui-protocol/ag-ui#2242", "replaces what the state has not", instead("STATE_DELTA",
			replace("replace", "/not/there"))),
		fault("patch-pointer-dotted", "", "sends paths with dots", instead("STATE_DELTA", replace("add", "progress.done"))),
		fault("patch-pointer-unescaped", "ag-ui-protocol/ag-ui#2242", "does not escape the ~ of a name",
			instead("STATE_DELTA", replace("add", "/a~b"))),
		fault("patch-no-list", "", "sends an object in the place of a patch", instead("STATE_DELTA", with("delta",
			map[string]any{"a": 1}))),
		fault("state-forgotten", "", "begins each run with an empty state", func() Hooks {
			return Hooks{Parse: func(_ []byte, in *Input, err error) (*Input, error) {
				if in != nil {
					in.State = map[string]any{}
				}
				return in, err
			}}
		}),
		fault("state-delta-lost", "", "does not tell of changes of the state", dropping("STATE_DELTA")),
		fault("key-in-state", "", "has its key in the state", instead("STATE_SNAPSHOT", with("snapshot",
			map[string]any{"_config": map[string]any{"apiKey": "sk-proj-abcdefghijklmnop0123"}}))),
		fault("snapshot-drops-user", "", "leaves the user out of the snapshot of the messages",
			snapshot(func(list []Message) []Message {
				return slices.DeleteFunc(slices.Clone(list), func(m Message) bool { return m.Role == "user" })
			})),
		fault("snapshot-empty-twin", "ag-ui-protocol/ag-ui#1426", "has an empty message beside each of the assistant",
			snapshot(func(list []Message) []Message {
				return append(slices.Clone(list), Message{ID: newID("msg"), Role: "assistant"})
			})),
		fault("snapshot-changes-text", "", "has another text in the snapshot than it has streamed",
			snapshot(func(list []Message) []Message {
				list = slices.Clone(list)
				for i := range list {
					if list[i].Role == "assistant" && len(list[i].Content) > 0 {
						list[i].Content = []byte(`"Something else."`)
					}
				}
				return list
			})),
		fault("snapshot-tool-orphaned", "run-llama/llama_index#22068", "has a tool message for a call of nobody",
			snapshot(func(list []Message) []Message {
				return append(slices.Clone(list), Message{ID: newID("msg"), Role: "tool", ToolCallID: "call-of-nobody",
					Content: []byte(`"?"`)})
			})),
		fault("history-streamed", "ag-ui-protocol/ag-ui#1524", "streams the history again", instead("RUN_STARTED",
			func(p *Port, e Event) []Event {
				list := []Event{e}
				for _, m := range p.Input.Messages {
					if m.Role == "assistant" && m.text() != "" {
						list = append(list, Event{"type": "TEXT_MESSAGE_START", "messageId": m.ID, "role": "assistant"},
							Event{"type": "TEXT_MESSAGE_CONTENT", "messageId": m.ID, "delta": m.text()},
							Event{"type": "TEXT_MESSAGE_END", "messageId": m.ID})
					}
				}
				return list
			})),
		fault("history-forgotten", "", "tells the model the last message alone", func() Hooks {
			return Hooks{Request: func(_ *Input, list []refagent.ModelMessage) []refagent.ModelMessage {
				for i := len(list) - 1; i > 0; i-- {
					if list[i].Role == "user" {
						return list[i:]
					}
				}
				return list
			}}
		}),
		fault("context-forgotten", "", "does not tell the model of the context", func() Hooks {
			return Hooks{Request: func(_ *Input, list []refagent.ModelMessage) []refagent.ModelMessage {
				return slices.DeleteFunc(list, func(m refagent.ModelMessage) bool { return m.Role == "system" })
			}}
		}),
		fault("activity-without-snapshot", "", "changes an activity that it has not shown", once("STEP_STARTED", plus(Event{
			"type": "ACTIVITY_DELTA", "messageId": "act-1", "activityType": "PLAN",
			"patch": []any{map[string]any{"op": "add", "path": "/a", "value": 1}}}))),
		fault("raw-wraps-events", "ag-ui-protocol/ag-ui#2600", "sends each event as RAW too", sends(func(p *Port, e Event) {
			p.Emit(e)
			if e.Type() == "TEXT_MESSAGE_CONTENT" {
				p.Emit(Event{"type": "RAW", "event": e})
			}
		})),
		fault("subagent-not-announced-in-time", "", "announces a subagent after its first event", sends(func(p *Port,
			e Event) {
			if e.Type() == "TEXT_MESSAGE_START" {
				e = e.With("subagentRunId", "sub-1")
			}
			p.Emit(e)
			if e.Type() == "TEXT_MESSAGE_START" {
				p.Emit(Event{"type": "SUBAGENT_STARTED", "subagentRunId": "sub-1", "name": "writer"})
			}
			if e.Type() == "TEXT_MESSAGE_END" {
				p.Emit(Event{"type": "SUBAGENT_FINISHED", "subagentRunId": "sub-1"})
			}
		})),
		fault("subagent-left-active", "", "does not end a subagent", once("STEP_STARTED", plus(Event{
			"type": "SUBAGENT_STARTED", "subagentRunId": "sub-1", "name": "writer"}))),
		fault("subagent-takes-over", "", "continues a message as another subagent", instead("TEXT_MESSAGE_CONTENT",
			with("subagentRunId", "sub-9"))),
	}
}

func snapshot(f func([]Message) []Message) func() Hooks {
	return instead("MESSAGES_SNAPSHOT", func(_ *Port, e Event) []Event {
		list, _ := e["messages"].([]Message)
		return []Event{e.With("messages", f(list))}
	})
}

func httpFaults() []Fault {
	frame := func(f func([]byte) []byte) func() Hooks { return func() Hooks { return Hooks{Frame: f} } }
	return []Fault{
		fault("crlf", "", "ends lines with CRLF", frame(func(b []byte) []byte {
			return bytes.ReplaceAll(b, []byte("\n"),
				[]byte("\r\n"))
		})),
		fault("content-type-json", "", "answers with the content type application/json", func() Hooks {
			return Hooks{Head: func(h http.Header) { h.Set("Content-Type", "application/json") }}
		}),
		fault("content-type-html", "", "answers with the content type text/html", func() Hooks {
			return Hooks{Head: func(h http.Header) { h.Set("Content-Type", "text/html") }}
		}),
		fault("two-events-in-one", "", "sends two events as the data of one", once("STEP_STARTED", func(p *Port,
			e Event) []Event {
			one := "data: {\"type\":\"CUSTOM\",\"name\":\"a.b\",\"value\":1}\n"
			p.Write(one + one + "\n")
			return []Event{e}
		})),
		fault("half-an-event", "", "sends half an event", once("STEP_STARTED", func(p *Port, e Event) []Event {
			p.Write("data: {\"type\":\"CUSTOM\",\"na\n\n")
			return []Event{e}
		})),
		fault("done-marker", "", "ends the stream with [DONE]", func() Hooks {
			return Hooks{End: func(p *Port) { p.Write("data: [DONE]\n\n") }}
		}),
		fault("last-event-unterminated", "", "ends the body without an empty line", sends(func(p *Port, e Event) {
			if e.Type() == "RUN_FINISHED" {
				p.Write(fmt.Sprintf("data: {\"type\":\"RUN_FINISHED\",\"threadId\":%q,\"runId\":%q}", p.Input.ThreadID,
					p.Input.RunID))
				return
			}
			p.Emit(e)
		})),
		fault("byte-order-mark", "", "begins the stream with a byte order mark", instead("RUN_STARTED", func(p *Port,
			e Event) []Event {
			p.Write("\uFEFF")
			return []Event{e}
		})),
		fault("body-left-open", "mastra-ai/mastra#19820", "does not close the body", func() Hooks {
			return Hooks{End: func(p *Port) { <-p.Gone() }}
		}),
		fault("connection-broken", "ag-ui-protocol/ag-ui#2455", "breaks the connection where the model fails",
			sends(func(p *Port, e Event) {
				if e.Type() == "RUN_ERROR" {
					p.Break()
				}
				p.Emit(e)
			})),
		fault("buffers-all", "", "sends all events at the end", sends(func(p *Port, e Event) {
			list, _ := p.Notes["all"].([]Event)
			list = append(list, e)
			p.Notes["all"] = list
			if e.Type() == "RUN_FINISHED" || e.Type() == "RUN_ERROR" {
				for _, e := range list {
					p.Emit(e)
				}
			}
		})),
		fault("accepts-anything", "", "runs whatever is posted", func() Hooks {
			return Hooks{Parse: func(_ []byte, in *Input, err error) (*Input, error) {
				if err != nil {
					in = &Input{ThreadID: "thread", RunID: "run", State: map[string]any{}}
				}
				return in, nil
			}}
		}),
		fault("refuses-new-members", "", "refuses an input with members that it does not know", func() Hooks {
			return Hooks{Parse: func(_ []byte, in *Input, err error) (*Input, error) {
				for name := range in.wholeOf() {
					if !slices.Contains([]string{"threadId", "runId", "messages", "tools", "context", "state", "forwardedProps",
						"resume",
						"parentRunId"}, name) {
						return nil, fmt.Errorf("unknown member %s", name)
					}
				}
				return in, err
			}}
		}),
		fault("wants-all-members", "", "refuses an input without tools, context and state", func() Hooks {
			return Hooks{Parse: func(_ []byte, in *Input, err error) (*Input, error) {
				for _, name := range []string{"tools", "context", "state"} {
					if _, ok := in.wholeOf()[name]; !ok && err == nil {
						return nil, fmt.Errorf("%s is missing", name)
					}
				}
				return in, err
			}}
		}),
	}
}

// wholeOf is all of an input that could be read; nil if none could.
func (in *Input) wholeOf() map[string]any {
	if in == nil {
		return nil
	}
	return in.Whole
}

func stopFaults() []Fault {
	return []Fault{
		fault("goes-on-after-hang-up", "ag-ui-protocol/ag-ui#2417", "goes on with its model when the client has hung up",
			func() Hooks { return Hooks{Detached: true} }),
		fault("runs-share-a-message", "", "has one variable for the message that is open, for all runs", func() Hooks {
			var mu sync.Mutex
			var open string
			var owner *Port
			return Hooks{Mixes: true, Send: func(p *Port, e Event) {
				mu.Lock()
				switch e.Type() {
				case "TEXT_MESSAGE_START":
					if owner == nil {
						open, owner = e.Text("messageId"), p
					}
				case "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END":
					e = e.With("messageId", open)
					if owner == p && e.Type() == "TEXT_MESSAGE_END" {
						owner = nil
					}
				}
				mu.Unlock()
				p.Emit(e)
			}}
		}),
	}
}
