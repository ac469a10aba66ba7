package faults

import "strings"

func elicitationFaults() []Fault {
	return []Fault{
		fault("elicitation-answer-unread", "waits for ever for an answer to its form that has come",
			onElicited(func(message) bool { return false })).hangs(),
		fault("elicitation-only-accepts", "goes on only when a form is accepted, and waits for ever otherwise",
			onElicited(func(m message) bool {
				return m.Object("result")["action"] == "accept"
			})).hangs(),
		fault("elicitation-any-answer-accepts",
			"takes whatever comes back with a form for the user's answer, declined or not",
			onElicited(func(m message) bool {
				if r := m.Object("result"); r != nil {
					r["action"] = "accept"
				}
				return true
			})),
		fault("elicitation-values-trusted", "dies of a form whose values have another type than it asked for",
			with(trustValues)),
		fault("elicitation-answer-dropped", "forgets what the user typed into a form", onElicited(func(m message) bool {
			for k := range m.Object("result", "content") {
				m.Object("result", "content")[k] = ""
			}
			return true
		})),
		fault("elicitation-capability-ignored", "asks with forms and pages without looking whether the editor can show them",
			withClient(func(c *client) { c.ElicitForm, c.ElicitURL = true, true })),
		fault("elicitation-page-without-id", "has a page opened without an elicitationId",
			onRequest("elicitation/create", func(p object) { delete(p, "elicitationId") })),
		fault("elicitation-indispensable", "fails the turn when it wants to ask something and the editor cannot show forms",
			with(giveUpWithoutForms)),
	}
}

// onElicited is a tap that changes the editor's answers to elicitations; drop
// with false.
func onElicited(change func(m message) bool) func() hooks {
	return with(func(t *tap) {
		open := map[string]bool{}
		t.sending = func(f frame) {
			if f.IsRequest() && f.Method == "elicitation/create" {
				open[key(f.Message["id"])] = true
			}
		}
		t.in = func(m message) bool {
			if _, asks := m["method"]; asks || !open[key(m["id"])] {
				return true
			}
			return change(m)
		}
	})
}

func trustValues(t *tap) {
	t.received = func(m message) {
		for _, v := range m.Object("result", "content") {
			if _, ok := v.(string); !ok {
				t.Exit()
			}
		}
	}
}

func giveUpWithoutForms(t *tap) {
	able, wanted := false, map[string]bool{}
	t.received = func(m message) {
		if is(m, "initialize") {
			able = m.Object("params", "clientCapabilities", "elicitation") != nil
		}
	}
	t.sending = func(f frame) {
		if u, tag := f.Update(); tag == "tool_call" && !able {
			title, _ := u["title"].(string)
			wanted[f.Session] = wanted[f.Session] || strings.HasPrefix(title, "Ask")
		}
		if answers(f, "session/prompt") && wanted[f.Session] {
			delete(f.Message, "result")
			f.Message["error"] = object{"code": -32603, "message": "the editor cannot show forms"}
		}
	}
}
