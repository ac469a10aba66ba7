package faults

import (
	"sync"

	"github.com/acp-test/acp-test/refagent"
)

func permissionFaults() []Fault {
	return []Fault{
		{
			Name:    "permission-never-asked",
			Summary: "runs every tool without asking",
			Copies:  "github/copilot-cli#4537",
			Hooks: func() refagent.Hooks {
				return refagent.Hooks{Ask: func(_, _ string, _ bool) bool { return false }}
			},
		},
		{
			Name:    "permission-global",
			Summary: "after one allowed tool in any session asks in no session any more",
			Copies:  "NousResearch/hermes-agent#55569",
			Hooks:   globalPermission,
		},
		{
			Name:    "permission-bogus-option",
			Summary: "takes an option that it never offered for a yes",
			Copies:  "Gitlawb/zero#915",
			Hooks:   allowAnswers(func(answer string) bool { return !offered(answer) && answer != "cancelled" && answer != "error" }),
		},
		{
			Name:    "permission-error-allows",
			Summary: "takes an error of the editor for a yes",
			Hooks:   allowAnswers(func(answer string) bool { return answer == "error" }),
		},
		{
			Name:    "permission-cancelled-allows",
			Summary: "takes the outcome cancelled for a yes",
			Hooks:   allowAnswers(func(answer string) bool { return answer == "cancelled" }),
		},
		{
			Name:    "rejected-tool-completes",
			Summary: "runs a rejected tool and says so",
			Hooks:   allowAnswers(rejects),
		},
		{
			Name:    "rejected-tool-runs",
			Summary: "says that a rejected tool failed, but runs it",
			Hooks:   runRejected,
		},
		{
			Name:    "permission-not-remembered",
			Summary: "treats allow_always like allow_once",
			Copies:  "stacklok/mecatl#3",
			Hooks:   with(func(t *tap) { replaceOption(t, "allow-always", "allow-once") }),
		},
		{
			Name:    "rejection-not-remembered",
			Summary: "treats reject_always like reject_once",
			Hooks:   with(func(t *tap) { replaceOption(t, "reject-always", "reject-once") }),
		},
		{
			Name:    "permission-remembered-wrongly",
			Summary: "treats allow_once like allow_always",
			Hooks:   with(func(t *tap) { replaceOption(t, "allow-once", "allow-always") }),
		},
		{
			Name:    "permission-first-option-wins",
			Summary: "does what the first option says, whichever was chosen",
			Hooks:   with(func(t *tap) { replaceOption(t, "", "allow-once") }),
		},
		{
			Name:    "permission-unannounced",
			Summary: "asks for permission for a tool call before announcing it",
			Copies:  "google-gemini/gemini-cli#29439",
			Hooks:   with(announceLate),
		},
		{
			Name:    "permission-early-start",
			Summary: "starts a tool while the user is still being asked",
			Hooks:   with(startEarly),
		},
		{
			Name:    "rejection-cancels-turn",
			Summary: "ends the turn with cancelled when a permission is rejected",
			Copies:  "zed-industries/codex-acp#267",
			Hooks:   with(rejectCancels),
		},
		{
			Name:    "permission-options-alike",
			Summary: "offers two options with the same id",
			Hooks: onRequest("session/request_permission", func(p object) {
				list, _ := p["options"].([]any)
				p["options"] = append(list, list[0])
			}),
		},
		{
			Name:    "permission-kind-unknown",
			Summary: "offers an option of a kind that does not exist",
			Hooks: onRequest("session/request_permission", func(p object) {
				p["options"] = append(p["options"].([]any), object{"optionId": "edit", "name": "Edit first", "kind": "modify"})
			}),
		},
		{
			Name:    "permission-one-way",
			Summary: "offers no way to reject",
			Hooks: onRequest("session/request_permission", func(p object) {
				p["options"] = p["options"].([]any)[:2]
			}),
		},
		{
			Name:    "permission-wrong-session",
			Summary: "asks for permission in the name of another session",
			Copies:  "topcheer/ggcode#1116",
			Hooks:   with(wrongSession),
		},
		{
			Name:    "permission-answer-never-read",
			Summary: "handles prompts on the loop that reads, so that no answer of the editor arrives while one runs",
			Copies:  "bug-ops/zeph#6656",
			Hooks:   with(answersBetweenTurns),
			Hangs:   true,
		},
	}
}

func offered(answer string) bool {
	switch answer {
	case "allow-once", "allow-always", "reject-once", "reject-always":
		return true
	}
	return false
}

func rejects(answer string) bool { return answer == "reject-once" || answer == "reject-always" }

// allowAnswers takes more answers for a yes than it should.
func allowAnswers(also func(answer string) bool) func() refagent.Hooks {
	return func() refagent.Hooks {
		return refagent.Hooks{Allowed: func(_, _, answer string, allowed bool) bool { return allowed || also(answer) }}
	}
}

func runRejected() refagent.Hooks {
	h := with(func(t *tap) {
		rejected := map[any]bool{}
		asked := map[string]any{}
		t.in = func(m message) bool {
			option, _ := m.Object("result", "outcome")["optionId"].(string)
			if m["method"] == nil && rejects(option) {
				rejected[asked[key(m["id"])]] = true
			}
			return true
		}
		t.out = func(f frame) bool {
			if f.Method == "session/request_permission" {
				asked[key(f.Message["id"])] = f.Message.Object("params", "toolCall")["toolCallId"]
			}
			u, tag := f.Update()
			if tag == "tool_call_update" && rejected[u["toolCallId"]] {
				if u["status"] == "in_progress" {
					return false
				}
				u["status"] = "failed"
				delete(u, "content")
			}
			return true
		}
	})()
	h.Allowed = func(_, _, answer string, allowed bool) bool { return allowed || rejects(answer) }
	return h
}

// globalPermission keeps in one flag what belongs to each session.
func globalPermission() refagent.Hooks {
	var mu sync.Mutex
	everything := false
	return refagent.Hooks{
		Ask: func(_, _ string, ask bool) bool {
			mu.Lock()
			defer mu.Unlock()
			return ask && !everything
		},
		Allowed: func(_, _, _ string, allowed bool) bool {
			mu.Lock()
			defer mu.Unlock()
			everything = everything || allowed
			return allowed
		},
	}
}

// replaceOption reads another option out of the editor's answers; from ""
// stands for every option.
func replaceOption(t *tap, from, to string) {
	t.in = func(m message) bool {
		if o := m.Object("result", "outcome"); o != nil && o["outcome"] == "selected" && (from == "" || o["optionId"] == from) {
			o["optionId"] = to
		}
		return true
	}
}

func announceLate(t *tap) {
	held := map[any]message{}
	t.out = func(f frame) bool {
		u, tag := f.Update()
		id := u["toolCallId"]
		if tag == "tool_call" {
			held[id] = f.Message
			return false
		}
		if m := held[id]; tag == "tool_call_update" && m != nil {
			delete(held, id)
			t.Emit(m)
		}
		return true
	}
}

func startEarly(t *tap) {
	t.out = func(f frame) bool {
		if f.Method == "session/request_permission" {
			t.Emit(f.Message)
			t.Emit(updateOf(f.Session, object{
				"sessionUpdate": "tool_call_update", "status": "in_progress",
				"toolCallId": f.Message.Object("params", "toolCall")["toolCallId"],
			}))
			return false
		}
		return true
	}
}

func rejectCancels(t *tap) {
	asked := map[string]string{}
	t.in = func(m message) bool {
		option, _ := m.Object("result", "outcome")["optionId"].(string)
		if s := asked[key(m["id"])]; m["method"] == nil && s != "" && rejects(option) {
			t.give(cancelOf(s), m)
			return false
		}
		return true
	}
	t.out = func(f frame) bool {
		if f.Method == "session/request_permission" {
			asked[key(f.Message["id"])] = f.Session
		}
		return true
	}
}

func wrongSession(t *tap) {
	var known []string
	t.out = func(f frame) bool {
		if answers(f, "session/new") && f.Session != "" {
			known = append(known, f.Session)
		}
		for _, s := range known {
			if f.Method == "session/request_permission" && s != f.Session {
				f.Message.Object("params")["sessionId"] = s
			}
		}
		return true
	}
}

func answersBetweenTurns(t *tap) {
	var backlog []message
	t.in = func(m message) bool {
		if m["method"] == nil && len(t.open) > 0 {
			backlog = append(backlog, m)
			return false
		}
		return true
	}
	t.out = func(f frame) bool {
		if answers(f, "session/prompt") {
			t.give(backlog...)
			backlog = nil
		}
		return true
	}
}
