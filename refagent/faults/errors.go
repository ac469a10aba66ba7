package faults

import (
	"encoding/json"

	"github.com/acp-test/acp-test/refagent"
)

func errorFaults() []Fault {
	return []Fault{
		fault("error-without-message", "sends errors without a message",
			onError(func(e object) { delete(e, "message") })),
		fault("error-code-string", "sends the code of an error as a string",
			onError(func(e object) { e["code"] = key(e["code"]) })),
		fault("error-over-many-lines", "puts a stack trace into the message of an error", onError(func(e object) {
			e["message"] = "Error: failed\n    at handle (agent.js:12:7)\n    at main (agent.js:90:3)"
		})),
		fault("error-and-result", "sends a result beside every error", changeFrame(func(f frame) {
			if f.Message["error"] != nil {
				f.Message["result"] = nil
			}
		})),
		fault("unknown-method-silent", "never answers a method it does not know", onOut(func(f frame) bool {
			e, _ := f.Message["error"].(object)
			return e == nil || key(e["code"]) != "-32601"
		})).hangs(),
		fault("unknown-method-succeeds", "answers a method it does not know with an empty result",
			changeFrame(func(f frame) {
				if e, _ := f.Message["error"].(object); e != nil && key(e["code"]) == "-32601" {
					delete(f.Message, "error")
					f.Message["result"] = object{}
				}
			})).copies("kurrent-io/kcap-cli#308"),
		fault("bad-params-internal", "answers bad parameters with an internal error",
			onError(func(e object) { recode(e, "-32602", -32603) })),
		fault("auth-code-for-anything", "uses the code for a missing login when a session is unknown or busy",
			onError(func(e object) { recode(e, "-32002", -32000); recode(e, "-32600", -32000) })).
			copies("openonion/connectonion#962"),
		fault("auth-code-for-model-failure", "reports every failure of the model as a missing login",
			onError(func(e object) { recode(e, "-32050", -32000) })).copies("agentclientprotocol/codex-acp#244"),
		fault("auth-in-words", "reports a failure of the model as an internal error that asks for a login",
			onError(func(e object) { recode(e, "-32050", -32603); e["message"] = "401 Unauthorized: please log in" })),
		fault("login-without-effect", "asks for a login, accepts it, and asks again",
			with(loginForever)).copies("github/copilot-cli#3902"),
		fault("notification-answered", "answers a notification it does not know with an error", with(func(t *tap) {
			t.received = func(m message) {
				if _, hasID := m["id"]; !hasID && m["method"] != nil && !is(m, "session/cancel") {
					t.Emit(refuse(nil, -32601, "method not found"))
				}
			}
		})),
		fault("dies-of-stray-answer", "dies of an answer nobody waits for", with(dieOfStray)),
		fault("dies-of-error-answer", "dies when the editor answers one of its requests with an error", with(func(t *tap) {
			t.received = func(m message) {
				if m["method"] == nil && m["error"] != nil {
					t.Exit()
				}
			}
		})),
	}
}

// onError is a tap that changes the error objects of answers.
func onError(change func(e object)) func() refagent.Hooks {
	return changeFrame(func(f frame) {
		if e, ok := f.Message["error"].(object); ok {
			change(e)
		}
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
	t.sending = func(f frame) {
		if r, ok := f.Message["result"].(object); ok && answers(f, "initialize") {
			r["authMethods"] = []any{object{"id": "agent", "name": "Reference login"}}
		}
	}
}

func dieOfStray(t *tap) {
	asked := map[string]bool{}
	t.received = func(m message) {
		if m["method"] == nil {
			if !asked[key(m["id"])] {
				t.Exit()
			}
			delete(asked, key(m["id"]))
		}
	}
	t.sending = func(f frame) {
		if f.IsRequest() {
			asked[key(f.Message["id"])] = true
		}
	}
}
