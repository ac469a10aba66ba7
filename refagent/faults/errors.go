package faults

import (
	"encoding/json"

	"github.com/acp-test/acp-test/refagent"
)

func errorFaults() []Fault {
	return []Fault{
		{
			Name:    "error-without-message",
			Summary: "sends errors without a message",
			Hooks:   onError(func(e object) { delete(e, "message") }),
		},
		{
			Name:    "error-code-string",
			Summary: "sends the code of an error as a string",
			Hooks:   onError(func(e object) { e["code"] = key(e["code"]) }),
		},
		{
			Name:    "error-over-many-lines",
			Summary: "puts a stack trace into the message of an error",
			Hooks: onError(func(e object) {
				e["message"] = "Error: failed\n    at handle (agent.js:12:7)\n    at main (agent.js:90:3)"
			}),
		},
		{
			Name:    "error-and-result",
			Summary: "sends a result beside every error",
			Hooks: onOut(func(f frame) bool {
				if f.Message["error"] != nil {
					f.Message["result"] = nil
				}
				return true
			}),
		},
		{
			Name:    "unknown-method-silent",
			Summary: "never answers a method it does not know",
			Hooks: onOut(func(f frame) bool {
				e, _ := f.Message["error"].(object)
				return e == nil || key(e["code"]) != "-32601"
			}),
			Hangs: true,
		},
		{
			Name:    "unknown-method-succeeds",
			Summary: "answers a method it does not know with an empty result",
			Copies:  "kurrent-io/kcap-cli#308",
			Hooks: onOut(func(f frame) bool {
				if e, _ := f.Message["error"].(object); e != nil && key(e["code"]) == "-32601" {
					delete(f.Message, "error")
					f.Message["result"] = object{}
				}
				return true
			}),
		},
		{
			Name:    "bad-params-internal",
			Summary: "answers bad parameters with an internal error",
			Hooks:   onError(func(e object) { recode(e, "-32602", -32603) }),
		},
		{
			Name:    "auth-code-for-anything",
			Summary: "uses the code for a missing login when a session is unknown or busy",
			Copies:  "openonion/connectonion#962",
			Hooks:   onError(func(e object) { recode(e, "-32002", -32000); recode(e, "-32600", -32000) }),
		},
		{
			Name:    "auth-code-for-model-failure",
			Summary: "reports every failure of the model as a missing login",
			Copies:  "agentclientprotocol/codex-acp#244",
			Hooks:   onError(func(e object) { recode(e, "-32050", -32000) }),
		},
		{
			Name:    "auth-in-words",
			Summary: "reports a failure of the model as an internal error that asks for a login",
			Hooks:   onError(func(e object) { recode(e, "-32050", -32603); e["message"] = "401 Unauthorized: please log in" }),
		},
		{
			Name:    "login-without-effect",
			Summary: "asks for a login, accepts it, and asks again",
			Copies:  "github/copilot-cli#3902",
			Hooks:   with(loginForever),
		},
		{
			Name:    "notification-answered",
			Summary: "answers a notification it does not know with an error",
			Hooks: with(func(t *tap) {
				t.in = func(m message) bool {
					if _, hasID := m["id"]; !hasID && m["method"] != nil && !is(m, "session/cancel") {
						t.Emit(refuse(nil, -32601, "method not found"))
					}
					return true
				}
			}),
		},
		{
			Name:    "dies-of-stray-answer",
			Summary: "dies of an answer nobody waits for",
			Hooks:   with(dieOfStray),
		},
		{
			Name:    "dies-of-error-answer",
			Summary: "dies when the editor answers one of its requests with an error",
			Hooks: with(func(t *tap) {
				t.in = func(m message) bool {
					if m["method"] == nil && m["error"] != nil {
						t.Exit()
					}
					return true
				}
			}),
		},
	}
}

// onError is a tap that changes the error objects of answers.
func onError(change func(e object)) func() refagent.Hooks {
	return onOut(func(f frame) bool {
		if e, ok := f.Message["error"].(object); ok {
			change(e)
		}
		return true
	})
}

func recode(e object, from string, to int) {
	if key(e["code"]) == from {
		e["code"] = json.Number(key(to))
	}
}

func loginForever(t *tap) {
	t.in = func(m message) bool {
		switch {
		case is(m, "authenticate"):
			t.Emit(respond(m["id"], object{}))
			return false
		case is(m, "session/new"):
			t.Emit(refuse(m["id"], -32000, "authentication required"))
			return false
		}
		return true
	}
	t.out = func(f frame) bool {
		if r, ok := f.Message["result"].(object); ok && answers(f, "initialize") {
			r["authMethods"] = []any{object{"id": "login", "name": "Log in"}}
		}
		return true
	}
}

func dieOfStray(t *tap) {
	asked := map[string]bool{}
	t.in = func(m message) bool {
		if m["method"] == nil {
			if !asked[key(m["id"])] {
				t.Exit()
			}
			delete(asked, key(m["id"]))
		}
		return true
	}
	t.out = func(f frame) bool {
		if f.IsRequest() {
			asked[key(f.Message["id"])] = true
		}
		return true
	}
}
