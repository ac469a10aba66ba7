package webagent

import (
	_ "embed"
	"encoding/json"
	"slices"

	"github.com/acp-test/acp-test/refagent"
)

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
		fault("activity-with-the-id-of-a-message", "ag-ui-protocol/ag-ui#1350", "shows an activity with the id of a message",
			once("TEXT_MESSAGE_START", func(_ *Port, e Event) []Event {
				return []Event{{"type": "ACTIVITY_SNAPSHOT", "messageId": e["messageId"], "activityType": "PLAN",
					"content": map[string]any{"step": 1}}, e}
			})),
		fault("calls-doubled-in-history", "agno-agi/agno#5116", "tells the model each call of the history twice",
			func() Hooks {
				return Hooks{Request: func(_ *Input, list []refagent.ModelMessage) (out []refagent.ModelMessage) {
					for _, m := range list {
						if out = append(out, m); len(m.Calls) > 0 {
							out = append(out, m)
						}
					}
					return out
				}}
			}),
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
		fault("call-of-another-owner", "", "calls tools as another subagent than the one whose message it is",
			sends(func(p *Port, e Event) {
				if attributable(e.Type()) {
					e = e.With("subagentRunId", "sub-1")
				}
				if e.Type() == "TOOL_CALL_START" {
					e = e.With("subagentRunId", "sub-2")
				}
				p.Emit(e)
			})),
		fault("null-result", "", "gives a run without a result the result null",
			instead("RUN_FINISHED", with("result", json.RawMessage("null")))),
		fault("half-milliseconds", "", "has fractions in its timestamps", sends(func(p *Port, e Event) {
			p.Emit(e.With("timestamp", 1e12+0.5))
		})),
		fault("message-takes-the-id-of-a-result", "", "gives the message behind a tool the id of its result",
			sends(func(p *Port, e Event) {
				switch e.Type() {
				case "TOOL_CALL_RESULT":
					p.Notes["result"] = e["messageId"]
				case "TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END":
					if id := p.Notes["result"]; id != nil {
						e = e.With("messageId", id)
					}
				}
				p.Emit(e)
			})),
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
