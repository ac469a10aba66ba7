package second

import (
	"slices"
	"sync"

	"github.com/acp-test/acp-test/refagent"
)

func cancelFaults() []Fault {
	stop := func(reason string) func(f frame) {
		return func(f frame) {
			if u, tag := f.Update(); tag == "state_update" && u["stopReason"] == "cancelled" {
				u["stopReason"] = reason
				if reason == "error" {
					u["error"] = object{"code": -32603, "message": "aborted"}
				}
			}
		}
	}
	missing := func(method string) func(f frame) {
		return func(f frame) {
			if f.IsResponse() && f.Method == method {
				fail(f, -32601, "no such method")
			}
		}
	}
	return []Fault{
		changing("cancel-is-an-error", "CAN-001", "says that cancelled work failed", stop("error")),
		changing("cancel-is-an-end", "CAN-001", "says that cancelled work ended well", stop("end_turn")),
		fault("tool-update-after-idle", "CAN-001", "ends a cancelled tool call after the state idle",
			func() func(port, frame) []object {
				var held []object
				return func(_ port, f frame) []object {
					u, tag := f.Update()
					switch {
					case tag == "tool_call_update" && u["status"] == "cancelled":
						held = append(held, f.Message)
						return nil
					case tag == "state_update" && u["stopReason"] == "cancelled":
						out := append(one(f), held...)
						held = nil
						return out
					}
					return one(f)
				}
			}),
		{Name: "queue-outlives-a-cancel", Breaks: "V2-CAN-002",
			Summary: "goes on with prompts that were cancelled in the queue",
			hooks: func() refagent.Hooks {
				prompts := map[string][]byte{}
				h := fault("", "", "", func() func(port, frame) []object {
					return func(p port, f frame) []object {
						if e := failure(f, "session/prompt"); e != nil {
							if line := prompts[id(f.Message)]; line != nil {
								p.After(0, func() { p.Deliver(line) })
								return nil
							}
						}
						return one(f)
					}
				}).Hooks()
				h.Receive = func(p port, line []byte) {
					if m := refagent.Decode(line); m["method"] == "session/prompt" {
						prompts[id(m)] = slices.Clone(line)
					}
					p.Deliver(line)
				}
				return h
			}},
		changing("queue-as-internal-error", "CAN-002", "answers a cancelled prompt of the queue with -32603", func(f frame) {
			if e := failure(f, "session/prompt"); e != nil {
				e["code"] = -32603
			}
		}),
		changing("cancels-any-call", "CAN-004", "says that it cancels a tool call that is not there", func(f frame) {
			if failure(f, "tool_call/cancel") != nil {
				succeed(f, object{})
			}
		}),
		changing("cancels-any-terminal", "CAN-004", "says that it cancels a terminal that is not there", func(f frame) {
			if failure(f, "terminal/cancel") != nil {
				succeed(f, object{})
			}
		}),
		changing("no-cancel-of-calls", "CAN-004", "advertises the cancel of calls and has it not",
			missing("tool_call/cancel")),
		changing("no-cancel-of-terminals", "CAN-004", "advertises the cancel of terminals and has it not",
			missing("terminal/cancel")),
		hearing("call-cancel-ends-the-turn", "CAN-004", "cancels all work with one tool call",
			func(p port, m refagent.Message) refagent.Message {
				if m["method"] != "tool_call/cancel" {
					return m
				}
				p.DeliverMessage(m)
				return refagent.Message{"jsonrpc": "2.0", "method": "session/cancel",
					"params": object{"sessionId": m.Object("params")["sessionId"]}}
			}),
		fault("call-cancel-does-nothing", "CAN-004", "answers the cancel of a call and does not stop it",
			func() func(port, frame) []object {
				return func(_ port, f frame) []object {
					if u, tag := f.Update(); tag == "tool_call_update" && u["status"] == "cancelled" {
						u["status"] = "completed"
					}
					return one(f)
				}
			}),
	}
}

func id(m object) string { return string(must(m["id"])) }

func must(v any) []byte {
	switch v := v.(type) {
	case string:
		return []byte(v)
	case interface{ String() string }:
		return []byte(v.String())
	}
	return nil
}

// update is what changes the updates of one kind.
func update(kind string, change func(u object)) func(f frame) {
	return func(f frame) {
		if u, tag := f.Update(); tag == kind {
			change(u)
		}
	}
}

func terminalFaults() []Fault {
	return []Fault{
		changing("output-as-text", "UPD-004", "sends the output of terminals as text",
			update("terminal_output_chunk", func(u object) { u["data"] = "plain text!" })),
		changing("terminal-in-a-relative-folder", "UPD-004", "has terminals in a relative folder",
			update("terminal_update", func(u object) {
				if u["cwd"] != nil {
					u["cwd"] = "."
				}
			})),
		fault("terminal-begins-again", "UPD-004", "uses the id of a terminal again", func() func(port, frame) []object {
			return func(_ port, f frame) []object {
				if u, tag := f.Update(); tag == "terminal_update" && u["exitStatus"] != nil {
					return append(one(f), telling(f, object{"sessionUpdate": "terminal_update", "terminalId": u["terminalId"],
						"command": "true", "cwd": "/"}))
				}
				return one(f)
			}
		}),
	}
}

func updateFaults() []Fault {
	call := func(change func(u object)) func(f frame) { return update("tool_call_update", change) }
	return []Fault{
		changing("chunks-without-message", "UPD-001", "sends pieces of text without the id of their message",
			update("agent_message_chunk", func(u object) { delete(u, "messageId") })),
		changing("tool-call", "UPD-002", "begins tool calls as in version 1", call(func(u object) {
			if u["status"] == "pending" {
				u["sessionUpdate"] = "tool_call"
			}
		})),
		changing("plan", "UPD-002", "sends plans as in version 1", update("plan_update", func(u object) {
			u["sessionUpdate"], u["entries"] = "plan", u["plan"].(object)["entries"]
			delete(u, "plan")
		})),
		changing("plan-without-id", "UPD-003", "sends plans without an id",
			update("plan_update", func(u object) { delete(u["plan"].(object), "planId") })),
		changing("plan-of-one-entry", "UPD-003", "sends only the last entry of a plan",
			update("plan_update", func(u object) {
				p := u["plan"].(object)
				if list, ok := p["entries"].([]any); ok && len(list) > 1 {
					p["entries"] = list[len(list)-1:]
				}
			})),
		changing("diff-by-a-relative-path", "UPD-006", "names files in diffs by relative paths", call(func(u object) {
			for _, c := range members(u, "content") {
				for _, change := range members(c, "changes") {
					change["path"] = "main.go"
				}
			}
		})),
		changing("place-by-a-relative-path", "UPD-006", "names places by relative paths", call(func(u object) {
			for _, l := range members(u, "locations") {
				l["path"] = "main.go"
			}
		})),
		changing("status-in-words", "UPD-001", "says the status of a call by a number",
			call(func(u object) {
				if u["toolCallId"] != nil {
					u["toolCallId"] = 7
				}
			})),
		fault("background-forgotten", "STA-002", "lists background work once", func() func(port, frame) []object {
			seen := false
			return func(_ port, f frame) []object {
				if u, tag := f.Update(); tag == "state_update" && u["background"] != nil {
					if seen {
						delete(u, "background")
					}
					seen = true
				}
				return one(f)
			}
		}),
		fault("background-unannounced", "STA-002", "lists a terminal that it has not announced", func() func(port,
			frame) []object {
			return func(_ port, f frame) []object {
				if u, tag := f.Update(); tag == "terminal_update" && u["command"] != nil {
					return nil
				}
				return one(f)
			}
		}),
		fault("background-without-an-end", "STA-002", "removes a terminal from the list and does not say how it ended",
			func() func(port, frame) []object {
				return func(_ port, f frame) []object {
					if u, tag := f.Update(); tag == "terminal_update" && u["exitStatus"] != nil {
						return nil
					}
					return one(f)
				}
			}),
		fault("background-end-untold", "STA-002", "tells nothing of the end of background work", func() func(port,
			frame) []object {
			ended := map[string]bool{} // sessions
			return func(_ port, f frame) []object {
				u, tag := f.Update()
				switch {
				case tag == "terminal_update" && u["exitStatus"] != nil:
					ended[f.Session] = true
					return nil
				case state(f) == "idle" && ended[f.Session]:
					delete(ended, f.Session)
					return nil
				}
				return one(f)
			}
		}),
		{Name: "prompt-ends-background", Breaks: "V2-STA-002", Summary: "ends background work when a prompt comes",
			hooks: func() refagent.Hooks {
				var mu sync.Mutex
				background, held := map[string][]any{}, map[string][]byte{} // by session
				return refagent.Hooks{
					Send: func(p port, f frame) {
						mu.Lock()
						defer mu.Unlock()
						if u, tag := f.Update(); tag == "state_update" {
							background[f.Session], _ = u["background"].([]any)
						}
						if f.Message["id"] != "own" { // nobody asked for that
							p.Emit(f.Message)
						}
						if line := held[f.Session]; line != nil && len(background[f.Session]) == 0 {
							delete(held, f.Session)
							p.After(0, func() { p.Deliver(line) })
						}
					},
					Receive: func(p port, line []byte) {
						m := refagent.Decode(line)
						session, _ := m.Object("params")["sessionId"].(string)
						mu.Lock()
						list := background[session]
						if m["method"] != "session/prompt" || len(list) == 0 {
							mu.Unlock()
							p.Deliver(line)
							return
						}
						held[session] = slices.Clone(line)
						mu.Unlock()
						for _, item := range list {
							p.DeliverMessage(refagent.Message{"jsonrpc": "2.0", "id": "own", "method": "terminal/cancel",
								"params": object{"sessionId": session, "terminalId": item.(object)["terminalId"]}})
						}
					},
				}
			}},
		changing("error-member-of-a-stranger", "SHAPE-001", "answers with a code that is text", func(f frame) {
			if e := f.Message.Object("error"); e != nil && f.IsResponse() {
				e["code"] = "wrong"
			}
		}),
	}
}

func askFaults() []Fault {
	ask := func(change func(params object)) func(f frame) {
		return func(f frame) {
			if f.Method == "session/request_permission" && f.IsRequest() {
				change(f.Message.Object("params"))
			}
		}
	}
	// once sends a request of version 1 when the first prompt is answered.
	once := func(method string, params func(session string) object) func() func(port, frame) []object {
		return func() func(port, frame) []object {
			sent := false
			return func(_ port, f frame) []object {
				if result(f, "session/prompt") == nil || sent {
					return one(f)
				}
				sent = true
				return append(one(f), object{"jsonrpc": "2.0", "id": "first", "method": method, "params": params(f.Session)})
			}
		}
	}
	return []Fault{
		changing("permission-without-title", "PER-001", "asks the user without a title",
			ask(func(params object) { delete(params, "title") })),
		changing("permission-without-options", "PER-001", "asks the user without options",
			ask(func(params object) { params["options"] = []any{} })),
		changing("permission-of-one-id", "PER-001", "gives all options one id", ask(func(params object) {
			for _, o := range members(params, "options") {
				o["optionId"] = "allow-once"
			}
		})),
		changing("null-as-id", "RPC-002", "asks the user with the id null", func(f frame) {
			if f.Method == "session/request_permission" && f.IsRequest() {
				f.Message["id"] = nil
			}
		}),
		fault("asks-twice-with-one-id", "RPC-002", "asks the user twice with one id", func() func(port, frame) []object {
			return func(_ port, f frame) []object {
				if f.Method == "session/request_permission" && f.IsRequest() {
					return append(one(f), f.Message)
				}
				return one(f)
			}
		}),
		{Name: "any-answer-allows", Breaks: "V2-PER-002", Summary: "takes an outcome that it does not know for a yes",
			hooks: func() refagent.Hooks {
				return refagent.Hooks{Allowed: func(_, _, answer string, allowed bool) bool { return allowed || answer == "error" }}
			}},
		{Name: "any-option-allows", Breaks: "V2-PER-002", Summary: "takes an option that was not offered for a yes",
			hooks: func() refagent.Hooks {
				return refagent.Hooks{Allowed: func(_, _, answer string, allowed bool) bool {
					return allowed ||
						answer == "made-up"
				}}
			}},
		fault("still-waiting", "STA-001", "does not say that it goes on after a question", func() func(port, frame) []object {
			waits := false
			return func(_ port, f frame) []object {
				was := waits
				if s := state(f); s != "" {
					waits = s == "requires_action"
					if was && s == "running" {
						return nil
					}
				}
				return one(f)
			}
		}),
		fault("reads-through-the-client", "RPC-004", "asks the client for a file", once("fs/read_text_file",
			func(s string) object { return object{"sessionId": s, "path": "/etc/hostname"} })),
		fault("terminal-of-the-client", "RPC-004", "asks the client for a terminal", once("terminal/create",
			func(s string) object { return object{"sessionId": s, "command": "true"} })),
		fault("elicits-from-everybody", "SHAPE-001", "asks a client that did not advertise it", once("elicitation/create",
			func(s string) object {
				return object{"sessionId": s, "mode": "form", "message": "Well?",
					"requestedSchema": object{"type": "object", "properties": object{}}}
			})),
	}
}
