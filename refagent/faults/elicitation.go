package faults

import "strings"

func elicitationFaults() []Fault {
	return []Fault{
		{
			Name:    "elicitation-answer-unread",
			Summary: "waits for ever for an answer to its form that has come",
			Hooks:   onElicited(func(message) bool { return false }),
			Hangs:   true,
		},
		{
			Name:    "elicitation-only-accepts",
			Summary: "goes on only when a form is accepted, and waits for ever otherwise",
			Hooks: onElicited(func(m message) bool {
				return m.Object("result")["action"] == "accept"
			}),
			Hangs: true,
		},
		{
			Name:    "elicitation-any-answer-accepts",
			Summary: "takes whatever comes back with a form for the user's answer, declined or not",
			Hooks: onElicited(func(m message) bool {
				if r := m.Object("result"); r != nil {
					r["action"] = "accept"
				}
				return true
			}),
		},
		{
			Name:    "elicitation-values-trusted",
			Summary: "dies of a form whose values have another type than it asked for",
			Hooks:   with(trustValues),
		},
		{
			Name:    "elicitation-answer-dropped",
			Summary: "forgets what the user typed into a form",
			Hooks: onElicited(func(m message) bool {
				for k := range m.Object("result", "content") {
					m.Object("result", "content")[k] = ""
				}
				return true
			}),
		},
		{
			Name:    "elicitation-capability-ignored",
			Summary: "asks with forms and pages without looking whether the editor can show them",
			Hooks:   withClient(func(c *client) { c.ElicitForm, c.ElicitURL = true, true }),
		},
		{
			Name:    "elicitation-page-without-id",
			Summary: "has a page opened without an elicitationId",
			Hooks:   onRequest("elicitation/create", func(p object) { delete(p, "elicitationId") }),
		},
		{
			Name:    "elicitation-indispensable",
			Summary: "fails the turn when it wants to ask something and the editor cannot show forms",
			Hooks:   with(giveUpWithoutForms),
		},
	}
}

// onElicited is a tap that changes the editor's answers to elicitations; drop
// with false.
func onElicited(change func(m message) bool) func() hooks {
	return with(func(t *tap) {
		open := map[string]bool{}
		t.out = func(f frame) bool {
			if f.IsRequest() && f.Method == "elicitation/create" {
				open[key(f.Message["id"])] = true
			}
			return true
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
	t.in = func(m message) bool {
		for _, v := range m.Object("result", "content") {
			if _, ok := v.(string); !ok {
				t.Exit()
			}
		}
		return true
	}
}

func giveUpWithoutForms(t *tap) {
	able, wanted := false, map[string]bool{}
	t.in = func(m message) bool {
		if is(m, "initialize") {
			able = m.Object("params", "clientCapabilities", "elicitation") != nil
		}
		return true
	}
	t.out = func(f frame) bool {
		if u, tag := f.Update(); tag == "tool_call" && !able {
			title, _ := u["title"].(string)
			wanted[f.Session] = wanted[f.Session] || strings.HasPrefix(title, "Ask")
		}
		if answers(f, "session/prompt") && wanted[f.Session] {
			delete(f.Message, "result")
			f.Message["error"] = object{"code": -32603, "message": "the editor cannot show forms"}
		}
		return true
	}
}
