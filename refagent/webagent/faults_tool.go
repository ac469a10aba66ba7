package webagent

import (
	_ "embed"

	"github.com/acp-test/acp-test/refagent"
)

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
