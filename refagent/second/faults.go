package second

import (
	"slices"

	"github.com/acp-test/acp-test/refagent"
)

func greetFaults() []Fault {
	return []Fault{
		changing("no-info", "INIT-002", "does not say what it is", func(f frame) { delete(result(f, "initialize"), "info") }),
		changing("capabilities-are-true", "INIT-002", "says true instead of an object", func(f frame) {
			if r := result(f, "initialize"); r != nil {
				r["capabilities"] = object{"session": true}
			}
		}),
		changing("unsupported-without-data", "INIT-001", "does not say which versions there are", func(f frame) {
			delete(failure(f, "initialize"), "data")
		}),
		changing("unsupported-and-listed", "INIT-001", "refuses a version and says that it speaks it", func(f frame) {
			if data, ok := failure(f, "initialize")["data"].(object); ok {
				data["supported"] = []any{data["requested"], 1, 2}
			}
		}),
		changing("answers-the-highest", "INIT-001", "answers a lower version with its highest", func(f frame) {
			if r := result(f, "initialize"); r != nil {
				r["protocolVersion"] = 2
			}
		}),
		fault("ends-after-a-refusal", "INIT-003", "ends when it has refused initialize", func() func(port, frame) []object {
			return func(p port, f frame) []object {
				if failure(f, "initialize") != nil {
					p.Emit(f.Message)
					p.Exit()
					return nil
				}
				return one(f)
			}
		}),
		changing("terminal-login", "INIT-005", "offers a terminal login to everybody", func(f frame) {
			if r := result(f, "initialize"); r != nil {
				r["authMethods"] = []any{object{"type": "terminal", "methodId": "setup", "name": "Set up"}}
			}
		}),
		changing("no-logout", "INIT-004", "offers a login and has no auth/logout", func(f frame) {
			if result(f, "auth/logout") != nil {
				fail(f, -32601, "no such method")
			}
		}),
		changing("first-methods-stay", "RPC-003", "has session/load and session/set_mode still", func(f frame) {
			if failure(f, "session/load") != nil || failure(f, "session/set_mode") != nil {
				succeed(f, object{})
			}
		}),
		{Name: "takes-arrays", Breaks: "V2-RPC-001", Summary: "carries out the requests of an array",
			hooks: func() refagent.Hooks {
				return refagent.Hooks{Receive: func(p port, line []byte) {
					if items := array(line); items != nil {
						for _, item := range items {
							p.Deliver(item)
						}
						return
					}
					p.Deliver(line)
				}}
			}},
		changing("no-session-in-the-error", "RPC-005", "does not name the unknown session in the data", func(f frame) {
			if e := f.Message.Object("error"); f.IsResponse() && e != nil {
				if data, ok := e["data"].(object); ok && data["sessionId"] != nil {
					delete(e, "data")
				}
			}
		}),
		changing("unknown-session-as-parameter", "RPC-005", "answers -32602 about an unknown session", func(f frame) {
			if e := failure(f, "session/prompt"); e != nil {
				if data, ok := e["data"].(object); ok && data["sessionId"] != nil {
					e["code"] = -32602
				}
			}
		}),
		changing("command-of-two-words", "CMD-001", "has a command whose name has a blank", func(f frame) {
			for _, c := range commandsOf(f) {
				c["name"] = "two words"
			}
		}),
		changing("command-twice", "CMD-001", "has two commands of one name", func(f frame) {
			for _, c := range commandsOf(f) {
				c["name"] = "status"
			}
		}),
		changing("option-by-id", "SHAPE-001", "calls configId id, as version 1 does", func(f frame) {
			for _, o := range optionsOf(f) {
				o["id"] = o["configId"]
				delete(o, "configId")
			}
		}),
		changing("value-not-on-offer", "CFG-002", "has a mode that is not among its modes", func(f frame) {
			for _, o := range optionsOf(f) {
				if o["type"] == "select" {
					o["currentValue"] = "elsewhere"
				}
			}
		}),
		changing("value-twice", "CFG-002", "offers a value twice", func(f frame) {
			for _, o := range optionsOf(f) {
				if list, ok := o["options"].([]any); ok && len(list) > 0 {
					o["options"] = append(slices.Clone(list), list[0])
				}
			}
		}),
	}
}

// commandsOf are the commands that opening a session is answered with.
func commandsOf(f frame) (all []object) {
	return members(result(f, "session/new"), "availableCommands")
}

// optionsOf are the options of any message.
func optionsOf(f frame) []object {
	u, _ := f.Update()
	return append(members(f.Message.Object("result"), "configOptions"), members(u, "configOptions")...)
}

func members(of object, key string) (all []object) {
	list, _ := of[key].([]any)
	for _, item := range list {
		if m, ok := item.(object); ok {
			all = append(all, m)
		}
	}
	return all
}

// resuming tells whether a resume is open: the session is not live in this process.
func resuming(change func(p port, f frame, open bool) []object) func() func(port, frame) []object {
	return func() func(port, frame) []object {
		prompted := map[string]bool{} // sessions that are live in this process
		return func(p port, f frame) []object {
			if f.IsResponse() && (f.Method == "session/new" || f.Method == "session/prompt" || f.Method == "session/resume") {
				out := change(p, f, false)
				prompted[f.Session] = true
				return out
			}
			return change(p, f, !prompted[f.Session])
		}
	}
}

func sessionFaults() []Fault {
	return []Fault{
		hearing("resume-replays", "SES-003", "replays the history although nobody asked for it",
			func(_ port, m refagent.Message) refagent.Message {
				if params := m.Object("params"); m["method"] == "session/resume" && params["replayFrom"] == nil {
					params["replayFrom"] = object{"type": "start"}
				}
				return m
			}),
		hearing("resume-from-anywhere", "SES-005", "takes a place that it does not know for the start of the history",
			func(_ port, m refagent.Message) refagent.Message {
				if from, ok := m.Object("params")["replayFrom"].(map[string]any); ok && m["method"] == "session/resume" {
					from["type"] = "start"
				}
				return m
			}),
		fault("resume-without-state", "SES-003", "tells no state before a resume is answered",
			resuming(func(_ port, f frame, open bool) []object {
				if open && state(f) != "" {
					return nil
				}
				return one(f)
			})),
		fault("state-before-history", "SES-004", "tells the state before the history",
			resuming(func(_ port, f frame, open bool) []object {
				if u, tag := f.Update(); open && tag == "user_message_chunk" && u["messageId"] == "msg-1" {
					return []object{telling(f, object{"sessionUpdate": "state_update", "state": "idle"}), f.Message}
				}
				return one(f)
			})),
		fault("history-with-new-ids", "SES-004", "gives the messages of the history new ids",
			resuming(func(_ port, f frame, open bool) []object {
				if u, _ := f.Update(); open && u["messageId"] != nil {
					u["messageId"] = u["messageId"].(string) + "-again"
				}
				return one(f)
			})),
		fault("history-with-a-note", "SES-004", "adds a message to the history that was never there",
			resuming(func(_ port, f frame, open bool) []object {
				if u, tag := f.Update(); open && tag == "user_message_chunk" && u["messageId"] == "msg-1" {
					return []object{f.Message, like(f, object{"messageId": "note", "content": object{"type": "text",
						"text": "[interrupted by the user]"}})}
				}
				return one(f)
			})),
		fault("idle-after-the-close", "SES-006", "ends the work when the close is answered", func() func(port,
			frame) []object {
			var held []object
			return func(_ port, f frame) []object {
				if u, tag := f.Update(); tag == "state_update" && u["stopReason"] == "cancelled" {
					held = one(f)
					return nil
				}
				if result(f, "session/close") != nil {
					return append(one(f), held...)
				}
				return one(f)
			}
		}),
		fault("speaks-after-the-close", "SES-006", "tells a title when the session is closed", func() func(port,
			frame) []object {
			return func(_ port, f frame) []object {
				if result(f, "session/close") != nil && f.Session != "" {
					return append(one(f), telling(f, object{"sessionUpdate": "session_info_update", "title": "Closed"}))
				}
				return one(f)
			}
		}),
		changing("close-of-nothing-fails", "SES-007", "fails to close what is not there", func(f frame) {
			if result(f, "session/close") != nil && f.Session == "" {
				fail(f, -32002, "unknown session")
				f.Message.Object("error")["data"] = object{"sessionId": "nobody"}
			}
		}),
		fault("speaks-of-nobody", "UPD-005", "tells a title of a session that nobody opened", func() func(port,
			frame) []object {
			return func(_ port, f frame) []object {
				if result(f, "session/new") == nil {
					return one(f)
				}
				f.Session = "sess_nobody"
				return append(one(f), telling(f, object{"sessionUpdate": "state_update", "state": "idle"}))
			}
		}),
		hearing("any-transport", "MCP-001", "leaves out servers that it cannot reach",
			func(_ port, m refagent.Message) refagent.Message {
				if params := m.Object("params"); m["method"] == "session/new" {
					list, _ := params["mcpServers"].([]any)
					params["mcpServers"] = slices.DeleteFunc(list, func(s any) bool {
						o, _ := s.(object)
						return o["type"] != "stdio" && o["type"] != "http"
					})
				}
				return m
			}),
		changing("any-option", "CFG-001", "takes an option that it does not have", func(f frame) {
			if failure(f, "session/set_config_option") != nil {
				succeed(f, object{"configOptions": []any{}})
			}
		}),
		changing("option-as-internal-error", "CFG-001", "answers an unknown option with -32603", func(f frame) {
			if e := failure(f, "session/set_config_option"); e != nil {
				e["code"] = -32603
			}
		}),
	}
}

func turnFaults() []Fault {
	late := func(answer func(f frame, idle object)) func() func(port, frame) []object {
		return func() func(port, frame) []object {
			held := map[string][]frame{}
			return func(_ port, f frame) []object {
				if result(f, "session/prompt") != nil {
					held[f.Session] = append(held[f.Session], f)
					return nil
				}
				if state(f) != "idle" {
					return one(f)
				}
				u, _ := f.Update()
				var out []object
				for _, h := range held[f.Session] {
					answer(h, u)
					out = append(out, h.Message)
				}
				delete(held, f.Session)
				return append(out, f.Message)
			}
		}
	}
	return []Fault{
		changing("answers-with-a-stop-reason", "PRM-001", "answers a prompt as in version 1", func(f frame) {
			if r := result(f, "session/prompt"); r != nil {
				delete(r, "messageId")
				r["stopReason"] = "end_turn"
			}
		}),
		changing("answers-with-nothing", "PRM-001", "answers a prompt without the id of its message", func(f frame) {
			delete(result(f, "session/prompt"), "messageId")
		}),
		changing("stop-reason-too", "PRM-001", "answers a prompt with the id and a stop reason", func(f frame) {
			if r := result(f, "session/prompt"); r != nil {
				r["stopReason"] = "end_turn"
			}
		}),
		fault("answers-at-the-end", "PRM-008", "answers a prompt when its work is over", late(func(frame, object) {})),
		fault("fails-after-insertion", "PRM-005", "answers a prompt that it has shown with an error",
			late(func(f frame, idle object) {
				if idle["stopReason"] == "error" {
					fail(f, -32603, "the model failed")
				}
			})),
		fault("no-echo", "PRM-002", "does not show the message of a prompt", dropping("user_message")),
		changing("echo-by-another-id", "PRM-002", "shows the message of a prompt under another id", func(f frame) {
			if u, tag := f.Update(); tag == "user_message" {
				u["messageId"] = "other"
			}
		}),
		changing("one-id-for-all", "PRM-002", "gives all messages of the user one id", func(f frame) {
			if r := result(f, "session/prompt"); r != nil {
				r["messageId"] = "msg-1"
			}
			if u, tag := f.Update(); tag == "user_message" {
				u["messageId"] = "msg-1"
			}
		}),
		fault("never-running", "PRM-003", "does not say that it works", func() func(port, frame) []object {
			return func(_ port, f frame) []object {
				if state(f) == "running" {
					return nil
				}
				return one(f)
			}
		}),
		fault("never-idle", "PRM-003", "does not say that its work is over", func() func(port, frame) []object {
			return func(_ port, f frame) []object {
				if state(f) == "idle" {
					return nil
				}
				return one(f)
			}
		}),
		changing("no-stop-reason", "PRM-004", "does not say how its work ended", func(f frame) {
			if u, tag := f.Update(); tag == "state_update" {
				delete(u, "stopReason")
				delete(u, "error")
			}
		}),
		changing("error-without-error", "ERR-001", "says that its work failed, and not why", func(f frame) {
			if u, tag := f.Update(); tag == "state_update" {
				delete(u, "error")
			}
		}),
		changing("failure-is-an-end", "PRM-005", "says that work ended well which failed", func(f frame) {
			if u, tag := f.Update(); tag == "state_update" && u["stopReason"] == "error" {
				u["stopReason"] = "end_turn"
				delete(u, "error")
			}
		}),
		hearing("takes-an-empty-prompt", "PRM-006", "takes a prompt without content",
			func(_ port, m refagent.Message) refagent.Message {
				params := m.Object("params")
				if list, ok := params["prompt"].([]any); ok && m["method"] == "session/prompt" && len(list) == 0 {
					params["prompt"] = []any{object{"type": "text", "text": "Nothing."}}
				}
				return m
			}),
		hearing("takes-any-block", "PRM-010", "leaves out blocks that it does not know",
			func(_ port, m refagent.Message) refagent.Message {
				params := m.Object("params")
				if list, ok := params["prompt"].([]any); ok {
					params["prompt"] = slices.DeleteFunc(list, func(b any) bool {
						o, _ := b.(object)
						return o["type"] == "_hologram"
					})
				}
				return m
			}),
		{Name: "second-prompt-lost", Breaks: "V2-PRM-007", Summary: "forgets a prompt that comes while it works",
			hooks: func() refagent.Hooks {
				busy := false
				h := fault("", "", "", func() func(port, frame) []object {
					return func(_ port, f frame) []object {
						if s := state(f); s != "" {
							busy = s != "idle"
						}
						return one(f)
					}
				}).Hooks()
				h.Receive = func(p port, line []byte) {
					if m := refagent.Decode(line); m["method"] != "session/prompt" || !busy {
						p.Deliver(line)
					}
				}
				return h
			}},
	}
}

// dropping sends no updates of a kind.
func dropping(kind string) func() func(port, frame) []object {
	return func() func(port, frame) []object {
		return func(_ port, f frame) []object {
			if _, tag := f.Update(); tag == kind {
				return nil
			}
			return one(f)
		}
	}
}
