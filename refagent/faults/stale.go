package faults

import (
	"cmp"
	"os"

	"github.com/acp-test/acp-test/refagent"
)

// staleFaults tell the editor something else than what is so.
func staleFaults() []Fault {
	return []Fault{
		fault("list-replays", "replays a message of the newest session whenever sessions are listed",
			onOutTap(replayOnList)),
		fault("list-without-titles", "lists sessions without the titles it gave them",
			onResult("session/list", func(r object) {
				for s := range objects(r["sessions"], "") {
					delete(s, "title")
				}
			})),
		fault("usage-only-in-turns", "does not say how full the context of a loaded session is",
			onOutTap(usageOnlyInTurns)),
		fault("diff-former-text-wrong", "shows every change as if the file had been empty before",
			changeUpdate(func(u object, _ string) {
				for c := range objects(u["content"], "diff") {
					c["oldText"] = ""
				}
			})),
		fault("tool-in-first-session", "shows the tool calls of all sessions in the one made first",
			onOutTap(toolsInFirstSession)),
		fault("words-in-first-session", "says what belongs to any session in the one that came first",
			onOutTap(wordsInFirstSession)),
		fault("tool-results-hidden", "does not tell the model what its tools returned", func() hooks {
			return hooks{Request: func(_ string, messages []refagent.ModelMessage) []refagent.ModelMessage {
				for i := range messages {
					if messages[i].Role == "tool" {
						messages[i].Text = "done"
					}
				}
				return messages
			}}
		}),
		fault("failed-edit-writes", "says that an edit failed, but writes the new text over the file",
			onOutTap(writeAfterFailure)),
		fault("mode-option-behind", "shows a mode that was set in its option only when the option is asked for",
			onUpdate(func(_ object, tag string) bool {
				return tag != "config_option_update"
			})),
		fault("login-unneeded", "says that a login is needed, but makes sessions without one", with(loginUnneeded)),
		fault("login-answers-null", "answers authenticate and logout with null", onOut(nullLogin)),
		fault("login-any-method", "accepts a way to log in that it never offered",
			onRequestOf("authenticate", func(t *tap, m message) {
				m.Object("params")["methodId"] = "agent"
			})),
	}
}

// onOutTap is a tap whose out needs the tap itself.
func onOutTap(build func(t *tap) func(f frame) bool) func() hooks {
	return with(func(t *tap) { t.out = build(t) })
}

func replayOnList(t *tap) func(f frame) bool {
	newest := ""
	return func(f frame) bool {
		if answers(f, "session/new") {
			newest, _ = f.Message.Object("result")["sessionId"].(string)
		}
		if answers(f, "session/list") && newest != "" {
			t.Emit(updateOf(newest, object{"sessionUpdate": "user_message_chunk",
				"content": object{"type": "text", "text": "Hello again."}}))
		}
		return true
	}
}

func usageOnlyInTurns(t *tap) func(f frame) bool {
	return func(f frame) bool {
		_, tag := f.Update()
		_, busy := t.open[f.Session]
		return tag != "usage_update" || busy
	}
}

func toolsInFirstSession(*tap) func(f frame) bool {
	first := ""
	return func(f frame) bool {
		if answers(f, "session/new") && first == "" {
			first, _ = f.Message.Object("result")["sessionId"].(string)
		}
		if _, tag := f.Update(); tag == "tool_call" || tag == "tool_call_update" {
			f.Message.Object("params")["sessionId"] = first
		}
		return true
	}
}

func wordsInFirstSession(*tap) func(f frame) bool {
	first := ""
	return func(f frame) bool {
		first = cmp.Or(first, f.Session)
		if _, tag := f.Update(); tag == "agent_message_chunk" {
			f.Message.Object("params")["sessionId"] = first
		}
		return true
	}
}

func writeAfterFailure(*tap) func(f frame) bool {
	edits := map[string]func(){}
	return func(f frame) bool {
		u, tag := f.Update()
		id, _ := u["toolCallId"].(string)
		in, _ := u["rawInput"].(object)
		switch text, edit := in["new"].(string); {
		case tag == "tool_call" && edit:
			list, _ := u["locations"].([]any)
			for _, l := range list {
				at, _ := l.(object)
				path, _ := at["path"].(string)
				edits[id] = func() { _ = os.WriteFile(path, []byte(text), 0o644) }
			}
		case tag == "tool_call_update" && u["status"] == "failed" && edits[id] != nil:
			edits[id]()
		}
		return true
	}
}

// loginUnneeded logs in for the editor as soon as it is initialized, and again
// after each logout.
func loginUnneeded(t *tap) {
	own := "login"
	t.in = func(m message) bool {
		if !is(m, "session/new") {
			return true
		}
		t.give(message{"jsonrpc": "2.0", "id": own, "method": "authenticate", "params": object{"methodId": "agent"}}, m)
		return false
	}
	t.out = func(f frame) bool { return f.Message["id"] != own }
}

func nullLogin(f frame) bool {
	if _, ok := f.Message["result"]; ok && (answers(f, "authenticate") || answers(f, "logout")) {
		f.Message["result"] = nil
	}
	return true
}
