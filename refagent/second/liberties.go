package second

import (
	"encoding/base64"
	"fmt"
	"strings"
	"time"

	"github.com/acp-test/acp-test/refagent"
)

// Liberties lists what another correct agent does differently in version 2.
func Liberties() []Liberty {
	type habits = refagent.Habits
	liberty := func(name, allows, summary string, set func(h *habits)) Liberty {
		return Liberty{Name: name, Summary: summary, Allows: "V2-" + allows, set: set}
	}
	// out changes updates on their way.
	out := func(change func(u object, tag string, m object) []object) func(h *habits) {
		return func(h *habits) {
			h.Out = append(h.Out, func(m refagent.Message) []refagent.Message {
				f := frame{Message: m, Method: fmt.Sprint(m["method"])}
				u, tag := f.Update()
				var list []refagent.Message
				for _, m := range change(u, tag, m) {
					list = append(list, m)
				}
				return list
			})
		}
	}
	beside := func(m, update object) object {
		return object{"jsonrpc": "2.0", "method": "session/update", "params": object{
			"sessionId": refagent.Message(m).Object("params")["sessionId"], "update": update}}
	}
	// at sends another update when a state comes.
	at := func(state string, update func(n int) object) func(h *habits) {
		n := 0
		return out(func(u object, tag string, m object) []object {
			if tag != "state_update" || u["state"] != state {
				return []object{m}
			}
			n++
			return []object{m, beside(m, update(n))}
		})
	}
	changed := func(kind string, change func(u object)) func(h *habits) {
		return out(func(u object, tag string, m object) []object {
			if tag != "" && (kind == "" || tag == kind) {
				change(u)
			}
			return []object{m}
		})
	}
	without := func(capability string) func(h *habits) {
		return func(h *habits) { h.Without = append(h.Without, capability) }
	}
	return []Liberty{
		liberty("greets", "UPD-001", "says that there is a newer version of it, at the beginning of a session's first turn",
			func(h *habits) { h.Greeting = "A newer version of this agent is there.\n" }),
		liberty("notices", "UPD-001", "says what will change, at the end of a session's first turn",
			func(h *habits) { h.Notice = "**Note:** commands will be counted from next month on." }),
		liberty("inserts-late", "CAN-002",
			"takes 30 ms until a prompt is part of the conversation, and refuses one that is cancelled before",
			func(h *habits) { h.TakeUpDelay = 30 * time.Millisecond }),
		liberty("echo-in-chunks", "PRM-002", "shows the message of a prompt in chunks", out(
			func(u object, tag string, m object) []object {
				if tag != "user_message" {
					return []object{m}
				}
				var all []object
				for _, block := range u["content"].([]any) {
					all = append(all, beside(m, object{"sessionUpdate": "user_message_chunk", "messageId": u["messageId"],
						"content": block}))
				}
				return all
			})),
		liberty("echo-twice", "PRM-002", "shows the message of a prompt again, as it is", out(
			func(_ object, tag string, m object) []object {
				if tag == "user_message" {
					return []object{m, refagent.Message(m).Clone()}
				}
				return []object{m}
			})),
		liberty("idle-again", "STA-003", "repeats the state idle", out(func(u object, tag string, m object) []object {
			if tag == "state_update" && u["state"] == "idle" {
				return []object{m, refagent.Message(m).Clone()}
			}
			return []object{m}
		})),
		liberty("running-again", "PRM-003", "repeats the state running", out(func(u object, tag string, m object) []object {
			if tag == "state_update" && u["state"] == "running" {
				return []object{m, refagent.Message(m).Clone()}
			}
			return []object{m}
		})),
		liberty("message-as-a-whole-first", "UPD-001", "begins messages by telling them whole", wholeFirst()),
		liberty("empty-background", "STA-002", "says on every state that nothing goes on in the background",
			changed("state_update", func(u object) {
				if u["background"] == nil {
					u["background"] = []any{}
				}
			})),
		liberty("metadata", "META-001", "has _meta on all updates", changed("", func(u object) {
			u["_meta"] = object{"vendor.example/trace": "1"}
		})),
		liberty("own-updates", "TOL-001", "sends updates of its own", at("running", func(int) object {
			return object{"sessionUpdate": "_vendor.example/mood", "mood": "fine"}
		})),
		liberty("notices", "UPD-001", "sends a notice in each turn", at("running", func(int) object {
			return object{"sessionUpdate": "notice", "severity": "info", "title": "Working"}
		})),
		liberty("compactions", "UPD-001", "compacts in each turn", at("running", func(n int) object {
			return object{"sessionUpdate": "compaction_update", "compactionId": fmt.Sprint("c", n), "status": "completed"}
		})),
		liberty("cost", "UPD-001", "says what a turn cost", changed("usage_update", func(u object) {
			u["cost"] = object{"amount": 0.01, "currency": "USD"}
		})),
		liberty("null-members", "UPD-001", "clears members of tool calls that it never set", changed("tool_call_update",
			func(u object) { u["name"] = nil })),
		liberty("names-of-tools", "UPD-001", "says the name of the tool", changed("tool_call_update",
			func(u object) { u["name"] = "tool" })),
		liberty("size-of-terminals", "UPD-004", "says how large terminals are", changed("terminal_update",
			func(u object) { u["size"] = object{"cols": 80, "rows": 24} })),
		liberty("never-requires-action", "STA-001", "says running while it waits for the user", out(
			func(u object, tag string, m object) []object {
				if tag == "state_update" && u["state"] == "requires_action" {
					u["state"] = "running"
				}
				return []object{m}
			})),
		liberty("described-questions", "PER-001", "describes what it asks", func(h *habits) {
			h.Out = append(h.Out, func(m refagent.Message) []refagent.Message {
				if m["method"] == "session/request_permission" {
					m.Object("params")["description"] = "The agent wants to do this."
				}
				return []refagent.Message{m}
			})
		}),
		liberty("commands-later", "CMD-001", "tells its commands by an update", func(h *habits) {
			h.Out = append(h.Out, func(m refagent.Message) []refagent.Message {
				r := m.Object("result")
				if r["availableCommands"] == nil || r["sessionId"] == nil {
					return []refagent.Message{m}
				}
				list := r["availableCommands"]
				delete(r, "availableCommands")
				return []refagent.Message{m, {"jsonrpc": "2.0", "method": "session/update", "params": object{
					"sessionId": r["sessionId"], "update": object{"sessionUpdate": "available_commands_update",
						"availableCommands": list}}}}
			})
		}),
		liberty("idle-at-first", "SES-002", "says that a new session is idle", func(h *habits) {
			h.Out = append(h.Out, func(m refagent.Message) []refagent.Message {
				r := m.Object("result")
				if r["sessionId"] == nil {
					return []refagent.Message{m}
				}
				return []refagent.Message{m, {"jsonrpc": "2.0", "method": "session/update", "params": object{
					"sessionId": r["sessionId"], "update": object{"sessionUpdate": "state_update", "state": "idle"}}}}
			})
		}),
		liberty("text-ids", "RPC-002", "has texts as the ids of its requests", func(h *habits) {
			h.RequestID = func(n int64) any { return fmt.Sprint("request-", n) }
		}),
		liberty("refuses-while-busy", "PRM-007", "refuses a prompt while it works", func(h *habits) { h.BusyCode = -32600 }),
		liberty("refuses-late", "PRM-007", "takes 30 ms until it refuses a prompt while it works", func(h *habits) {
			h.BusyCode, h.TakeUpDelay = -32600, 30*time.Millisecond
		}),
		liberty("no-terminals", "UPD-004", "shows no terminals", func(h *habits) { h.OwnShell = true }),
		liberty("first-only", "INIT-001", "speaks version 1 alone", func(h *habits) { h.FirstOnly = true }),
		liberty("second-only", "INIT-001", "speaks version 2 alone", func(h *habits) { h.SecondOnly = true }),
		liberty("no-images", "SES-001", "takes no images", without("image")),
		liberty("no-audio", "SES-001", "takes no audio", without("audio")),
		liberty("no-embedded", "SES-001", "takes no embedded resources", without("embedded")),
		liberty("no-http", "MCP-001", "has no MCP servers over HTTP", without("http")),
		liberty("no-stdio", "MCP-001", "has no MCP servers over stdio", without("stdio")),
		liberty("forgets", "SES-004", "keeps no session beyond its process", func(h *habits) { h.Forgets = true }),
		liberty("no-delete", "SES-001", "deletes no sessions", without("delete")),
		liberty("no-folders", "SES-001", "takes no further folders", without("directories")),
		liberty("grouped-values", "CFG-002", "puts the values of options into groups",
			func(h *habits) { h.GroupedOptions = true }),
		liberty("items-first", "CAN-004",
			"refuses the cancel of a call in an unknown session since it does not know the call",
			func(h *habits) { h.ItemsFirst = true }),
		liberty("output-at-the-end", "UPD-004", "shows what a command printed when it has ended, without its last newline",
			outputLast()),
		liberty("untitled", "UPD-001", "gives sessions no title", func(h *habits) { h.Untitled = true }),
		liberty("titles-by-the-model", "UPD-001", "asks the model for titles", func(h *habits) { h.TitleByModel = true }),
		liberty("whole-replies", "UPD-001", "does not stream", func(h *habits) { h.NoStream = true }),
	}
}

// outputLast tells the output of a terminal with its end, as a whole.
func outputLast() func(h *refagent.Habits) {
	held := map[any]string{}
	return func(h *refagent.Habits) {
		h.Out = append(h.Out, func(m refagent.Message) []refagent.Message {
			u, tag := frame{Message: m, Method: fmt.Sprint(m["method"])}.Update()
			switch {
			case tag == "terminal_output_chunk":
				raw, _ := base64.StdEncoding.DecodeString(fmt.Sprint(u["data"])) // it is the agent's own
				held[u["terminalId"]] += string(raw)
				return nil
			case tag == "terminal_update" && u["exitStatus"] != nil:
				text := strings.TrimRight(held[u["terminalId"]], "\n")
				u["output"] = object{"data": base64.StdEncoding.EncodeToString([]byte(text))}
			}
			return []refagent.Message{m}
		})
	}
}

// wholeFirst tells the first piece of each message as a message.
func wholeFirst() func(h *refagent.Habits) {
	seen := map[any]bool{}
	return func(h *refagent.Habits) {
		h.Out = append(h.Out, func(m refagent.Message) []refagent.Message {
			u, tag := frame{Message: m, Method: "session/update"}.Update()
			if tag == "agent_message_chunk" && m["method"] == "session/update" {
				key := fmt.Sprint(m.Object("params")["sessionId"], u["messageId"])
				if !seen[key] {
					seen[key] = true
					u["sessionUpdate"], u["content"] = "agent_message", []any{u["content"]}
				}
			}
			return []refagent.Message{m}
		})
	}
}
