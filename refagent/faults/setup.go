package faults

import (
	"os"

	"github.com/acp-test/acp-test/refagent"
)

func setupFaults() []Fault {
	return []Fault{
		{
			Name:    "update-before-new-response",
			Summary: "sends the commands of a session before the answer that introduces it",
			Copies:  "OpenHands/OpenHands-CLI#543",
			Hooks:   with(commandsFirst),
		},
		{
			Name:    "update-for-unknown-session",
			Summary: "sends an update for a session that nobody opened",
			Hooks: with(func(t *tap) {
				t.out = func(f frame) bool {
					if answers(f, "session/new") {
						t.Emit(updateOf("sess_ghost", object{"sessionUpdate": "session_info_update", "title": "Ghost"}))
					}
					return true
				}
			}),
		},
		{
			Name:    "new-never-answered",
			Summary: "never answers session/new",
			Copies:  "svkozak/pi-acp#46",
			Hooks:   with(func(t *tap) { t.in = func(m message) bool { return !is(m, "session/new") } }),
			Hangs:   true,
		},
		{
			Name:    "initialize-never-answered",
			Summary: "never answers initialize",
			Copies:  "google-gemini/gemini-cli#22782",
			Hooks:   with(func(t *tap) { t.in = func(m message) bool { return !is(m, "initialize") } }),
			Hangs:   true,
		},
		{
			Name:    "talks-before-initialize",
			Summary: "sends a notification before initialize has been answered",
			Hooks: with(func(t *tap) {
				t.start = func() { t.Emit(notify("_refagent/ready", object{})) }
			}),
		},
		{
			Name:    "version-echoed",
			Summary: "answers initialize with version 9999",
			Hooks:   onResult("initialize", func(r object) { r["protocolVersion"] = 9999 }),
		},
		{
			Name:    "version-as-string",
			Summary: "answers initialize with the version \"1.0\", a string",
			Hooks:   onResult("initialize", func(r object) { r["protocolVersion"] = "1.0" }),
		},
		{
			Name:    "version-refused",
			Summary: "answers an offer of another version with an error instead of its own version",
			Copies:  "speakeasy-api/kit#213",
			Hooks: with(func(t *tap) {
				t.in = func(m message) bool {
					if v, _ := m.Object("params")["protocolVersion"].(interface{ Int64() (int64, error) }); is(m, "initialize") && v != nil {
						if n, err := v.Int64(); err == nil && n != 1 {
							t.Emit(refuse(m["id"], -32600, "unsupported protocol version"))
							return false
						}
					}
					return true
				}
			}),
		},
		{
			Name:    "capability-without-method",
			Summary: "advertises session/list but does not know the method",
			Hooks:   with(func(t *tap) { unknownMethod(t, "session/list") }),
		},
		{
			Name:    "agent-info-incomplete",
			Summary: "leaves the version out of agentInfo",
			Hooks:   onResult("initialize", func(r object) { delete(r["agentInfo"].(object), "version") }),
		},
		{
			Name:    "capabilities-as-booleans",
			Summary: "advertises session capabilities as booleans where objects are wanted",
			Hooks: onResult("initialize", func(r object) {
				r["agentCapabilities"].(object)["sessionCapabilities"] = object{"list": true, "resume": true, "close": true, "delete": true}
			}),
		},
		{
			Name:    "cwd-ignored",
			Summary: "works in the directory it was started in, whatever the session asks for",
			Copies:  "anomalyco/opencode#12193",
			Hooks: func() refagent.Hooks {
				return refagent.Hooks{Cwd: func(cwd string) string {
					if wd, err := os.Getwd(); err == nil {
						return wd
					}
					return cwd
				}}
			},
		},
		{
			Name:    "bad-directories-accepted",
			Summary: "drops additional directories that are not absolute instead of refusing them",
			Hooks: with(func(t *tap) {
				t.in = func(m message) bool {
					delete(m.Object("params"), "additionalDirectories")
					return true
				}
			}),
		},
		{
			Name:    "mcp-ignored",
			Summary: "accepts MCP servers but never connects to them",
			Hooks: with(func(t *tap) {
				t.in = func(m message) bool {
					if p := m.Object("params"); p["mcpServers"] != nil {
						p["mcpServers"] = []any{}
					}
					return true
				}
			}),
		},
	}
}

func commandsFirst(t *tap) {
	var held message
	t.out = func(f frame) bool {
		if answers(f, "session/new") && f.Message["result"] != nil {
			held = f.Message
			return false
		}
		if _, tag := f.Update(); tag == "available_commands_update" && held != nil {
			t.Emit(f.Message)
			t.Emit(held)
			held = nil
			return false
		}
		return true
	}
}

func unknownMethod(t *tap, method string) {
	t.in = func(m message) bool {
		if is(m, method) {
			t.Emit(refuse(m["id"], -32601, "method not found"))
			return false
		}
		return true
	}
}
