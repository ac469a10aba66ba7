package faults

import (
	"os"

	"github.com/acp-test/acp-test/refagent"
)

func setupFaults() []Fault {
	return []Fault{
		fault("update-before-new-response", "sends the commands of a session before the answer that introduces it",
			with(commandsFirst)).copies("OpenHands/OpenHands-CLI#543"),
		fault("update-for-unknown-session", "sends an update for a session that nobody opened",
			onAnswerTo("session/new", func(t *tap, f frame) {
				t.Emit(updateOf("sess_ghost", object{"sessionUpdate": "session_info_update", "title": "Ghost"}))
			})),
		fault("new-never-answered", "never answers session/new",
			with(func(t *tap) { t.in = func(m message) bool { return !is(m, "session/new") } })).
			copies("svkozak/pi-acp#46").hangs(),
		fault("initialize-never-answered", "never answers initialize",
			with(func(t *tap) { t.in = func(m message) bool { return !is(m, "initialize") } })).
			copies("google-gemini/gemini-cli#22782").hangs(),
		fault("talks-before-initialize", "sends a notification before initialize has been answered", with(func(t *tap) {
			t.start = func() { t.Emit(notify("_refagent/ready", object{})) }
		})),
		fault("version-echoed", "answers initialize with version 9999",
			onResult("initialize", func(r object) { r["protocolVersion"] = 9999 })),
		fault("version-as-string", "answers initialize with the version \"1.0\", a string",
			onResult("initialize", func(r object) { r["protocolVersion"] = "1.0" })),
		fault("version-refused", "answers an offer of another version with an error instead of its own version",
			with(func(t *tap) {
				t.in = func(m message) bool {
					if v, _ := m.Object("params")["protocolVersion"].(interface{ Int64() (int64, error) }); is(m, "initialize") &&
						v != nil {
						if n, err := v.Int64(); err == nil && n != 1 {
							t.Emit(refuse(m["id"], -32600, "unsupported protocol version"))
							return false
						}
					}
					return true
				}
			})).copies("speakeasy-api/kit#213"),
		fault("capability-without-method", "advertises session/list but does not know the method",
			with(func(t *tap) { unknownMethod(t, "session/list") })),
		fault("agent-info-incomplete", "leaves the version out of agentInfo",
			onResult("initialize", func(r object) { delete(r["agentInfo"].(object), "version") })),
		fault("capabilities-as-booleans", "advertises session capabilities as booleans where objects are wanted",
			onResult("initialize", func(r object) {
				r["agentCapabilities"].(object)["sessionCapabilities"] = object{"list": true, "resume": true, "close": true,
					"delete": true}
			})),
		fault("cwd-ignored", "works in the directory it was started in, whatever the session asks for",
			func() refagent.Hooks {
				return refagent.Hooks{Cwd: func(cwd string) string {
					if wd, err := os.Getwd(); err == nil {
						return wd
					}
					return cwd
				}}
			}).copies("anomalyco/opencode#12193").process(),
		fault("bad-directories-accepted", "drops additional directories that are not absolute instead of refusing them",
			with(func(t *tap) {
				t.received = func(m message) {
					delete(m.Object("params"), "additionalDirectories")
				}
			})),
		fault("mcp-ignored", "accepts MCP servers but never connects to them", with(func(t *tap) {
			t.received = func(m message) {
				if p := m.Object("params"); p["mcpServers"] != nil {
					p["mcpServers"] = []any{}
				}
			}
		})).hangs(),
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
	t.refusing(method, -32601, "method not found", func(message) bool { return true })
}
