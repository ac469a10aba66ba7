package faults

import (
	"sync"

	"github.com/acp-test/acp-test/refagent"
)

func permissionFaults() []Fault {
	return []Fault{
		fault("permission-never-asked", "runs every tool without asking", func() refagent.Hooks {
			return refagent.Hooks{Ask: func(_, _ string, _ bool) bool { return false }}
		}).copies("github/copilot-cli#4537"),
		fault("permission-global", "after one allowed tool in any session asks in no session any more",
			globalPermission).copies("NousResearch/hermes-agent#55569"),
		fault("permission-bogus-option", "takes an option that it never offered for a yes",
			allowAnswers(func(answer string) bool { return !offered(answer) && answer != "cancelled" && answer != "error" })).
			copies("Gitlawb/zero#915"),
		fault("permission-error-allows", "takes an error of the editor for a yes",
			allowAnswers(func(answer string) bool { return answer == "error" })),
		fault("permission-cancelled-allows", "takes the outcome cancelled for a yes",
			allowAnswers(func(answer string) bool { return answer == "cancelled" })),
		fault("rejected-tool-completes", "runs a rejected tool and says so", allowAnswers(rejects)),
		fault("rejected-tool-runs", "says that a rejected tool failed, but runs it", runRejected),
		fault("permission-not-remembered", "treats allow_always like allow_once",
			with(func(t *tap) { replaceOption(t, "allow-always", "allow-once") })).copies("stacklok/mecatl#3"),
		fault("rejection-not-remembered", "treats reject_always like reject_once",
			with(func(t *tap) { replaceOption(t, "reject-always", "reject-once") })),
		fault("permission-remembered-wrongly", "treats allow_once like allow_always",
			with(func(t *tap) { replaceOption(t, "allow-once", "allow-always") })),
		fault("permission-first-option-wins", "does what the first option says, whichever was chosen",
			with(func(t *tap) { replaceOption(t, "", "allow-once") })),
		fault("permission-unannounced", "asks for permission for a tool call before announcing it",
			with(announceLate)).copies("google-gemini/gemini-cli#29439"),
		fault("permission-early-start", "starts a tool while the user is still being asked", with(startEarly)),
		fault("rejection-cancels-turn", "ends the turn with cancelled when a permission is rejected",
			with(rejectCancels)).copies("zed-industries/codex-acp#267"),
		fault("permission-options-alike", "offers two options with the same id",
			onRequest("session/request_permission", func(p object) {
				list, _ := p["options"].([]any)
				p["options"] = append(list, list[0])
			})),
		fault("permission-kind-unknown", "offers an option of a kind that does not exist",
			onRequest("session/request_permission", func(p object) {
				p["options"] = append(p["options"].([]any), object{"optionId": "edit", "name": "Edit first", "kind": "modify"})
			})),
		fault("permission-one-way", "offers no way to reject", onRequest("session/request_permission", func(p object) {
			p["options"] = p["options"].([]any)[:2]
		})),
		fault("permission-wrong-session", "asks for permission in the name of another session",
			with(wrongSession)).copies("topcheer/ggcode#1116"),
		fault("permission-answer-never-read",
			"handles prompts on the loop that reads, so that no answer of the editor arrives while one runs",
			with(answersBetweenTurns)).copies("bug-ops/zeph#6656").hangs(),
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
		t.received = func(m message) {
			option, _ := m.Object("result", "outcome")["optionId"].(string)
			if m["method"] == nil && rejects(option) {
				rejected[asked[key(m["id"])]] = true
			}
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
	t.received = func(m message) {
		if o := m.Object("result", "outcome"); o != nil && o["outcome"] == "selected" &&
			(from == "" || o["optionId"] == from) {
			o["optionId"] = to
		}
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
	t.sending = func(f frame) {
		if f.Method == "session/request_permission" {
			asked[key(f.Message["id"])] = f.Session
		}
	}
}

func wrongSession(t *tap) {
	var known []string
	t.sending = func(f frame) {
		if answers(f, "session/new") && f.Session != "" {
			known = append(known, f.Session)
		}
		for _, s := range known {
			if f.Method == "session/request_permission" && s != f.Session {
				f.Message.Object("params")["sessionId"] = s
			}
		}
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
	t.sending = func(f frame) {
		if answers(f, "session/prompt") {
			t.give(backlog...)
			backlog = nil
		}
	}
}
