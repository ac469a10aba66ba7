package faults

import "github.com/acp-test/acp-test/refagent"

type client = refagent.ClientCapabilities

func capabilityFaults() []Fault {
	return []Fault{
		fault("capabilities-ignored", "uses the editor's files and terminals without looking whether it has any",
			withClient(func(c *client) { c.ReadTextFile, c.WriteTextFile, c.Terminal = true, true, true })).
			copies("stakpak/agent#389"),
		fault("boolean-option-ungated", "sends boolean options to an editor that does not know them",
			withClient(func(c *client) { c.BooleanOptions = true })),
		fault("elicitation-ungated", "asks an editor to fill in a form that cannot show forms",
			with(func(t *tap) { elicit(t, func(object) {}) })),
		fault("elicitation-without-scope", "asks for a form without saying for which session or request",
			with(func(t *tap) { elicit(t, func(p object) { delete(p, "sessionId") }) })),
		fault("elicitation-for-two", "asks for a form for a session and a request at once",
			with(func(t *tap) { elicit(t, func(p object) { p["requestId"] = 1 }) })),
		fault("unstable-plan", "sends plan_update to an editor that did not ask for it",
			onAnswerTo("session/prompt", func(t *tap, f frame) {
				t.Emit(updateOf(f.Session, object{"sessionUpdate": "plan_update",
					"plan": object{"type": "items", "planId": "p", "entries": []any{}}}))
			})),
		fault("auth-methods-alike", "offers two ways to log in under one id", onResult("initialize", func(r object) {
			r["authMethods"] = []any{object{"id": "login", "name": "Browser"}, object{"id": "login", "name": "API key"}}
		})),
		fault("auth-terminal-ungated", "offers a login in a terminal to an editor that cannot do that",
			onResult("initialize", func(r object) {
				r["authMethods"] = []any{object{"id": "login", "name": "Terminal", "type": "terminal", "args": []any{"login"}}}
			})),
		fault("key-at-root", "puts a key of its own beside those of the protocol",
			onResult("session/new", func(r object) { r["transcriptPath"] = "/tmp/transcript.jsonl" })).
			copies("esengine/DeepSeek-Reasonix#8241"),
		fault("method-unprefixed", "sends a notification of its own without the underscore", with(func(t *tap) {
			t.out = func(f frame) bool {
				if answers(f, "session/new") {
					t.Emit(f.Message)
					t.Emit(notify("refagent/ready", object{}))
					return false
				}
				return true
			}
		})),
		fault("update-unknown", "sends an update of a kind that does not exist",
			onAnswerTo("session/prompt", func(t *tap, f frame) {
				t.Emit(updateOf(f.Session, object{"sessionUpdate": "agent_status", "text": "done"}))
			})).copies("anomalyco/opencode#28453"),
		fault("meta-as-list", "sends _meta as a list",
			onRequest("session/update", func(p object) { p["_meta"] = []any{"refagent"} })),
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
	t.received = func(m message) {
		if is(m, "session/prompt") {
			n++
			p := object{
				"mode": "form", "sessionId": sessionOf(m), "message": "Which name?",
				"requestedSchema": object{"type": "object", "properties": object{"name": object{"type": "string"}}},
			}
			change(p)
			t.Emit(message{"jsonrpc": "2.0", "id": "form-" + key(n), "method": "elicitation/create", "params": p})
		}
	}
}
