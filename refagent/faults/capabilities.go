package faults

import "github.com/acp-test/acp-test/refagent"

type client = refagent.ClientCapabilities

func capabilityFaults() []Fault {
	return []Fault{
		{
			Name:    "capabilities-ignored",
			Summary: "uses the editor's files and terminals without looking whether it has any",
			Copies:  "stakpak/agent#389",
			Hooks:   withClient(func(c *client) { c.ReadTextFile, c.WriteTextFile, c.Terminal = true, true, true }),
		},
		{
			Name:    "boolean-option-ungated",
			Summary: "sends boolean options to an editor that does not know them",
			Hooks:   withClient(func(c *client) { c.BooleanOptions = true }),
		},
		{
			Name:    "elicitation-ungated",
			Summary: "asks an editor to fill in a form that cannot show forms",
			Hooks:   with(func(t *tap) { elicit(t, func(object) {}) }),
		},
		{
			Name:    "elicitation-without-scope",
			Summary: "asks for a form without saying for which session or request",
			Hooks:   with(func(t *tap) { elicit(t, func(p object) { delete(p, "sessionId") }) }),
		},
		{
			Name:    "elicitation-for-two",
			Summary: "asks for a form for a session and a request at once",
			Hooks:   with(func(t *tap) { elicit(t, func(p object) { p["requestId"] = 1 }) }),
		},
		{
			Name:    "unstable-plan",
			Summary: "sends plan_update to an editor that did not ask for it",
			Hooks: with(func(t *tap) {
				t.out = func(f frame) bool {
					if answers(f, "session/prompt") {
						t.Emit(updateOf(f.Session, object{"sessionUpdate": "plan_update", "plan": object{"type": "items", "planId": "p", "entries": []any{}}}))
					}
					return true
				}
			}),
		},
		{
			Name:    "auth-methods-alike",
			Summary: "offers two ways to log in under one id",
			Hooks: onResult("initialize", func(r object) {
				r["authMethods"] = []any{object{"id": "login", "name": "Browser"}, object{"id": "login", "name": "API key"}}
			}),
		},
		{
			Name:    "auth-terminal-ungated",
			Summary: "offers a login in a terminal to an editor that cannot do that",
			Hooks: onResult("initialize", func(r object) {
				r["authMethods"] = []any{object{"id": "login", "name": "Terminal", "type": "terminal", "args": []any{"login"}}}
			}),
		},
		{
			Name:    "key-at-root",
			Summary: "puts a key of its own beside those of the protocol",
			Copies:  "esengine/DeepSeek-Reasonix#8241",
			Hooks:   onResult("session/new", func(r object) { r["transcriptPath"] = "/tmp/transcript.jsonl" }),
		},
		{
			Name:    "method-unprefixed",
			Summary: "sends a notification of its own without the underscore",
			Hooks: with(func(t *tap) {
				t.out = func(f frame) bool {
					if answers(f, "session/new") {
						t.Emit(f.Message)
						t.Emit(notify("refagent/ready", object{}))
						return false
					}
					return true
				}
			}),
		},
		{
			Name:    "update-unknown",
			Summary: "sends an update of a kind that does not exist",
			Copies:  "anomalyco/opencode#28453",
			Hooks: with(func(t *tap) {
				t.out = func(f frame) bool {
					if answers(f, "session/prompt") {
						t.Emit(updateOf(f.Session, object{"sessionUpdate": "agent_status", "text": "done"}))
					}
					return true
				}
			}),
		},
		{
			Name:    "meta-as-list",
			Summary: "sends _meta as a list",
			Hooks:   onRequest("session/update", func(p object) { p["_meta"] = []any{"refagent"} }),
		},
	}
}

// withClient changes what the agent believes of the editor.
func withClient(change func(c *client)) func() refagent.Hooks {
	return func() refagent.Hooks { return refagent.Hooks{Client: change} }
}

// elicit asks for a form at the start of every prompt. Nothing waits for the
// answer.
func elicit(t *tap, change func(params object)) {
	n := 0
	t.in = func(m message) bool {
		if is(m, "session/prompt") {
			n++
			p := object{
				"mode": "form", "sessionId": sessionOf(m), "message": "Which name?",
				"requestedSchema": object{"type": "object", "properties": object{"name": object{"type": "string"}}},
			}
			change(p)
			t.Emit(message{"jsonrpc": "2.0", "id": "form-" + key(n), "method": "elicitation/create", "params": p})
		}
		return true
	}
}
