package faults

import (
	"bytes"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"github.com/acp-test/acp-test/refagent"
)

func loadFaults() []Fault {
	return []Fault{
		fault("load-replays-nothing", "answers session/load at once and replays nothing",
			with(func(t *tap) { duringLoad(t, func(frame) bool { return false }) })).copies("NousResearch/hermes-agent#12285"),
		fault("load-replays-late", "replays the history after the answer to session/load",
			with(replayLate)).copies("NousResearch/hermes-agent#26957"),
		fault("load-without-user", "leaves what the user said out of a replay", with(func(t *tap) {
			duringLoad(t, func(f frame) bool { _, tag := f.Update(); return tag != "user_message_chunk" })
		})).copies("anomalyco/opencode#30761"),
		fault("load-without-thoughts", "leaves its thoughts out of a replay", with(func(t *tap) {
			duringLoad(t, func(f frame) bool { _, tag := f.Update(); return tag != "agent_thought_chunk" })
		})),
		fault("load-without-conclusions", "leaves what it said after a tool call out of a replay",
			with(withoutConclusions)),
		fault("load-without-tools", "leaves the tool calls out of a replay", with(func(t *tap) {
			duringLoad(t, func(f frame) bool { _, tag := f.Update(); return tag != "tool_call" })
		})).copies("agentclientprotocol/codex-acp#206"),
		fault("load-tools-unnamed", "replays tool calls without kind and with the name of the tool as their title",
			with(func(t *tap) {
				duringLoad(t, func(f frame) bool {
					if u, tag := f.Update(); tag == "tool_call" {
						u["title"] = "exec_command"
						delete(u, "kind")
					}
					return true
				})
			})).copies("zed-industries/codex-acp#191"),
		fault("load-tools-pending", "replays tool calls as if they were still pending", with(replayPending)),
		fault("load-varies", "replays something else each time", with(varyReplay)).copies("Hezaerd/noyau#64"),
		fault("load-asks-again", "asks for permission while it replays a tool call", with(askInReplay)),
		fault("load-within-a-minute-erases", "loses the history of a session that is loaded within a minute of its creation",
			eraseYoung).copies("google-gemini/gemini-cli#28693"),
		fault("load-forgets", "replays the history but does not show it to the model",
			forgetOnReopen).copies("cline/cline#14045"),
		fault("load-unknown-succeeds", "answers session/load for a session that does not exist as if all were well",
			with(loadAnything)).copies("NousResearch/hermes-agent#62780"),
		fault("load-only-own", "cannot load a session that another process made",
			with(loadOnlyOwn)).copies("google-gemini/gemini-cli#29288"),
		fault("load-answers-null", "answers session/load with null",
			onOut(func(f frame) bool { nullResult(f, "session/load"); return true })),
		fault("resume-replays", "replays the history on session/resume",
			with(resumeAsLoad)).copies("NousResearch/hermes-agent#17874"),
		fault("saves-at-end-of-turn", "writes a turn down only when it has ended, so that a kill loses it",
			saveLate).copies("kurrent-io/kcap-cli#458").process(),
		fault("kill-breaks-session", "fails every prompt of a loaded session whose last turn was cut short",
			brokenByKill).copies("bug-ops/zeph#5646").process(),
	}
}

// duringLoad filters the content updates between a load and its answer.
func duringLoad(t *tap, keep func(f frame) bool) {
	loading := map[string]any{}
	t.received = func(m message) {
		if is(m, "session/load") {
			loading[sessionOf(m)] = m["id"]
		}
	}
	t.out = func(f frame) bool {
		for session, id := range loading {
			if _, called := f.Message["method"]; !called && key(id) == key(f.Message["id"]) {
				delete(loading, session) // also by an error
			}
		}
		_, open := loading[f.Session]
		_, tag := f.Update()
		return !open || !isContent(tag) || keep(f)
	}
}

// withoutConclusions drops what the agent says in a replay between a tool call and the next
// words of the user.
func withoutConclusions(t *tap) {
	after := map[string]bool{} // sessions in which a tool call was the last to be seen
	duringLoad(t, func(f frame) bool {
		switch _, tag := f.Update(); tag {
		case "tool_call":
			after[f.Session] = true
		case "user_message_chunk":
			delete(after, f.Session)
		case "agent_message_chunk":
			return !after[f.Session]
		}
		return true
	})
}

func replayLate(t *tap) {
	held := map[string][]message{}
	duringLoad(t, func(f frame) bool {
		held[f.Session] = append(held[f.Session], f.Message)
		return false
	})
	filter := t.out
	t.out = func(f frame) bool {
		pass := filter(f)
		if answers(f, "session/load") {
			t.Emit(f.Message)
			for _, m := range held[f.Session] {
				t.Emit(m)
			}
			delete(held, f.Session)
			return false
		}
		return pass
	}
}

func replayPending(t *tap) {
	duringLoad(t, func(f frame) bool {
		if u, tag := f.Update(); tag == "tool_call" {
			u["status"] = "pending"
		}
		return true
	})
}

func varyReplay(t *tap) {
	n := 0
	duringLoad(t, func(f frame) bool {
		if _, tag := f.Update(); tag == "agent_message_chunk" {
			n++
			return n%2 == 1
		}
		return true
	})
}

func askInReplay(t *tap) {
	duringLoad(t, func(f frame) bool {
		if u, tag := f.Update(); tag == "tool_call" {
			t.Emit(f.Message)
			t.Emit(message{"jsonrpc": "2.0", "id": "replay", "method": "session/request_permission", "params": object{
				"sessionId": f.Session, "toolCall": object{"toolCallId": u["toolCallId"]},
				"options": []any{
					object{"optionId": "yes", "name": "Allow", "kind": "allow_once"},
					object{"optionId": "no", "name": "Reject", "kind": "reject_once"},
				},
			}})
			return false
		}
		return true
	})
}

func eraseYoung() refagent.Hooks {
	return refagent.Hooks{Restore: func(_ string, lines [][]byte) [][]byte {
		var first struct{ At time.Time }
		if len(lines) > 0 && json.Unmarshal(lines[0], &first) == nil && time.Since(first.At) < time.Minute {
			return lines[:1]
		}
		return lines
	}}
}

func forgetOnReopen() refagent.Hooks {
	var mu sync.Mutex
	reopened := map[string]bool{}
	return refagent.Hooks{
		Restore: func(session string, lines [][]byte) [][]byte {
			mu.Lock()
			defer mu.Unlock()
			reopened[session] = true
			return lines
		},
		Request: func(session string, messages []refagent.ModelMessage) []refagent.ModelMessage {
			mu.Lock()
			defer mu.Unlock()
			if reopened[session] {
				return sinceLastUser(session, messages)
			}
			return messages
		},
	}
}

func loadAnything(t *tap) {
	t.sending = func(f frame) {
		if answers(f, "session/load") && f.Message["error"] != nil {
			delete(f.Message, "error")
			f.Message["result"] = object{}
		}
	}
}

func loadOnlyOwn(t *tap) {
	made := map[string]bool{}
	t.refusing("session/load", -32602, "invalid session identifier", func(m message) bool { return !made[sessionOf(m)] })
	t.sending = func(f frame) {
		if answers(f, "session/new") {
			made[f.Session] = true
		}
	}
}

func nullResult(f frame, method string) {
	if answers(f, method) && f.Message["error"] == nil {
		f.Message["result"] = nil
	}
}

// resumeAsLoad serves resume with load, so that its replay comes out.
func resumeAsLoad(t *tap) {
	t.received = func(m message) {
		if is(m, "session/resume") {
			m["method"] = "session/load"
			if p := m.Object("params"); p != nil && p["mcpServers"] == nil {
				p["mcpServers"] = []any{}
			}
		}
	}
}

func saveLate() refagent.Hooks {
	var mu sync.Mutex
	waiting := map[string][]byte{}
	return refagent.Hooks{Persist: func(session string, line []byte) []byte {
		mu.Lock()
		defer mu.Unlock()
		waiting[session] = append(waiting[session], line...)
		if kind := eventType(line); kind != "end" && kind != "session" {
			return nil
		}
		out := waiting[session]
		delete(waiting, session)
		return out
	}}
}

func brokenByKill() refagent.Hooks {
	var mu sync.Mutex
	broken := map[string]bool{}
	return refagent.Hooks{
		Restore: func(session string, lines [][]byte) [][]byte {
			running := false
			for _, line := range lines {
				switch eventType(line) {
				case "prompt":
					running = true
				case "end":
					running = false
				}
			}
			mu.Lock()
			defer mu.Unlock()
			broken[session] = broken[session] || running
			return lines
		},
		Stop: func(session, reason string, err error) (string, error) {
			mu.Lock()
			defer mu.Unlock()
			if broken[session] && reason != "cancelled" {
				return "", errors.New("tool calls without results in the history")
			}
			return reason, err
		},
	}
}

func eventType(line []byte) string {
	var e struct{ Type string }
	_ = json.Unmarshal(bytes.TrimSpace(line), &e) // a torn line has no type
	return e.Type
}
