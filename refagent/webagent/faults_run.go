package webagent

import (
	_ "embed"
	"maps"
)

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
