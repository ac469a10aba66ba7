package faults

import (
	"strings"
	"time"
)

// reportedFaults are what public reports tell of and no other fault does.
func reportedFaults() []Fault {
	return []Fault{
		fault("cancel-lost-while-reading", "loses a cancel that comes while the attachments of a prompt are read",
			with(loseWhileReading)).copies("Nano-Collective/nanocoder#869").hangs(),
		fault("cancel-deaf-after-tool", "hears no cancel any more once a turn has used a tool",
			with(deafAfterTool)).copies("aaif-goose/goose#5583").hangs(),
		fault("load-detaches-cancel", "loads the session whose prompt runs, and then no cancel reaches that prompt",
			with(loadDetaches)).copies("agentclientprotocol/claude-agent-acp#415").hangs(),
		fault("cancel-never-settles", "stops its work on a cancel, but never answers the prompt",
			onOut(func(f frame) bool { return stopOf(f) != "cancelled" })).copies("apache/maka#4862").hangs(),
		fault("cancel-waits-for-the-answer", "does not hear of a cancel while a permission is open",
			with(deafWhileAsking)).copies("topcheer/ggcode#1046").hangs(),
		fault("cancel-fails-next-prompt", "answers the prompt after a cancelled one with an internal error",
			with(func(t *tap) {
				refuseAfterCancel(t, -32603, "'NoneType' object is not subscriptable")
			})).copies("NousResearch/hermes-agent#62776"),
		fault("cancel-queues-the-rest", "after a cancel answers every prompt by saying that it is queued",
			with(queueAfterCancel)).copies("NousResearch/hermes-agent#64471"),
		fault("cancel-ends-next-turn", "ends the turn after a cancelled one as soon as it has begun",
			with(endNextTurn)).copies("agentclientprotocol/claude-agent-acp#551"),
		fault("cancel-at-permission-end-turn", "says end_turn of a turn that was cancelled while a permission was open",
			with(endTurnAtPermission)).copies("QwenLM/qwen-code#7295"),
		fault("cancel-skips-one-call",
			"lets a cancel at a permission skip that tool call alone, and goes on with the next of the reply",
			with(skipOneCall)).copies("QwenLM/qwen-code#5258"),

		fault("turn-ends-at-first-tool", "answers the prompt when the first tool runs, and goes on after that",
			with(endAtFirstTool)).copies("zed-industries/codex-acp#302"),
		fault("background-tool-after-turn", "shows a tool call of its own after the answer to the prompt",
			afterTurn(func(t *tap, f frame) {
				t.Emit(updateOf(f.Session, object{"sessionUpdate": "tool_call", "toolCallId": "background", "kind": "other",
					"title": "Work on", "status": "in_progress"}))
				t.Emit(updateOf(f.Session, object{"sessionUpdate": "tool_call_update", "toolCallId": "background",
					"status": "completed"}))
			})).copies("agentclientprotocol/claude-agent-acp#824"),
		fault("tool-output-after-turn", "shows more output of a tool call after the answer to the prompt",
			with(outputAfterTurn)).copies("agentclientprotocol/codex-acp#365"),
		fault("notice-after-turn", "tells of a newer version in a message after the answer to the prompt",
			afterTurn(func(t *tap, f frame) {
				notice := chunk(f.Session, "A new version is available.")
				notice.Object("params", "update")["messageId"] = "notice-" + key(f.Message["id"])
				t.Emit(notice)
			})).copies("svkozak/pi-acp#70"),
		fault("banner-before-prompt", "greets with a message before the first prompt of a session",
			onOutTap(func(t *tap) func(f frame) bool {
				return func(f frame) bool {
					if !answers(f, "session/new") || f.Session == "" {
						return true
					}
					t.Emit(f.Message)
					t.Emit(chunk(f.Session, "Welcome!"))
					return false
				}
			})).copies("svkozak/pi-acp#68"),
		fault("single-piece-lost", "loses the text of a reply that comes in one piece",
			with(loseSinglePiece)).copies("agentclientprotocol/codex-acp#500").hangs(),
		fault("failed-turn-unanswered", "never answers a prompt whose model stream broke off",
			onOut(func(f frame) bool { return !answers(f, "session/prompt") || f.Message["error"] == nil })).
			copies("agentclientprotocol/claude-agent-acp#630").hangs(),
		fault("failed-turn-replayed", "works on the prompt that failed when the next one comes",
			replayFailed).copies("NousResearch/hermes-agent#114167"),
		fault("broken-server-blocks-session", "waits for MCP servers that cannot be started before it answers session/new",
			with(func(t *tap) {
				t.in = func(m message) bool { return !is(m, "session/new") || !hasBrokenServer(m) }
			})).copies("repoprompt/repoprompt-ce#789").hangs(),
		fault("dead-server-ends-no-turn", "never ends a turn in which an MCP server gave no answer",
			with(waitForDeadServer)).hangs(),
		fault("cancel-deaf-in-server", "does not hear of a cancel while an MCP server works",
			with(deafInServer)).hangs(),

		fault("permission-answer-ignored", "never acts on the answer to a permission, and leaves the tool call pending",
			with(ignoreAnswers)).copies("can1357/oh-my-pi#10850").hangs(),
		fault("permission-never-sent", "waits for the answer to a permission that it never asked for",
			onOut(func(f frame) bool { return f.Method != "session/request_permission" })).
			copies("anomalyco/opencode#12133").hangs(),
		fault("rejects-without-asking", "rejects by itself what it would have to ask the user",
			with(rejectUnasked)).copies("anomalyco/opencode#29785"),
		fault("permission-bare", "asks for permission with the id of a tool call alone, before it announces it",
			with(func(t *tap) {
				announceLate(t)
				t.sending = func(f frame) {
					if f.Method == "session/request_permission" {
						p := f.Message.Object("params")
						p["toolCall"] = object{"toolCallId": p["toolCall"].(object)["toolCallId"]}
					}
				}
			})).copies("can1357/oh-my-pi#1133"),
		fault("rejection-drops-the-rest", "gives up the other tool calls of a reply when one is rejected",
			with(dropTheRest)).copies("agentclientprotocol/claude-agent-acp#402"),

		fault("empty-after-load", "ends the first turn after a load without a word",
			with(emptyAfterLoad)).copies("cline/cline#14045"),
		fault("two-tools-break-session", "fails every prompt after a turn with two tool calls",
			with(brokenByTwoTools)).copies("kirodotdev/Kiro#6110"),
		fault("deleted-session-returns", "writes a session down again that was deleted while its prompt ran",
			with(resurrect)).copies("shindgew/agy-acp#77"),
		fault("servers-shared", "gives a session the MCP servers of the sessions before it, too",
			with(shareServers)).copies("anomalyco/opencode#40978"),
		fault("unknown-block-hangs", "never answers a prompt with a content block that it does not know",
			with(func(t *tap) {
				t.in = func(m message) bool { return !is(m, "session/prompt") || !hasUnknownBlock(m) }
			})).copies("esengine/DeepSeek-Reasonix#8271").hangs(),
		fault("usage-of-a-lifetime", "reports all tokens of a session's turns as what fills its context",
			with(addUsage)).copies("NousResearch/hermes-agent#70204"),
	}
}

// serverCalls follows the calls of tools of MCP servers: it reports the status of one that an
// update is about.
func serverCalls() func(f frame) (status any, ours bool) {
	calls := map[string]bool{}
	return func(f frame) (any, bool) {
		u, tag := f.Update()
		id := f.Session + key(u["toolCallId"])
		if title, _ := u["title"].(string); tag == "tool_call" && strings.HasPrefix(title, "mcp__") {
			calls[id] = true
		}
		return u["status"], calls[id] && strings.HasPrefix(tag, "tool_call")
	}
}

func waitForDeadServer(t *tap) {
	dead, stopped, call := map[string]bool{}, map[string]bool{}, serverCalls()
	t.received = func(m message) {
		switch s := sessionOf(m); {
		case is(m, "session/prompt"):
			delete(stopped, s)
		case is(m, "session/cancel"):
			delete(dead, s)
			stopped[s] = true
		}
	}
	t.out = func(f frame) bool {
		if status, ours := call(f); ours && status == "failed" && !stopped[f.Session] {
			dead[f.Session] = true
		}
		return !dead[f.Session]
	}
}

func deafInServer(t *tap) {
	busy, call := map[string]bool{}, serverCalls()
	t.in = func(m message) bool { return !is(m, "session/cancel") || !busy[sessionOf(m)] }
	t.sending = func(f frame) {
		if status, ours := call(f); ours {
			busy[f.Session] = !final(status)
		}
	}
}

// reading is how long attachments take.
const reading = 300 * time.Millisecond

func loseWhileReading(t *tap) {
	busy := map[string]time.Time{}
	t.in = func(m message) bool {
		s := sessionOf(m)
		if is(m, "session/prompt") {
			busy[s] = time.Time{}
			if attaches(m) {
				busy[s] = time.Now().Add(reading)
			}
		}
		return !is(m, "session/cancel") || time.Now().After(busy[s])
	}
}

// attaches reports whether a message is a prompt with something to read.
func attaches(m message) bool {
	return is(m, "session/prompt") && (hasBlock(m, "resource") || hasBlock(m, "resource_link") || hasBlock(m, "image"))
}

func deafAfterTool(t *tap) {
	used := map[string]bool{}
	t.in = func(m message) bool {
		s := sessionOf(m)
		if is(m, "session/prompt") {
			used[s] = false
		}
		return !is(m, "session/cancel") || !used[s]
	}
	t.sending = func(f frame) {
		if _, tag := f.Update(); tag == "tool_call" {
			used[f.Session] = true
		}
	}
}

func loadDetaches(t *tap) {
	detached := map[string]bool{}
	t.in = func(m message) bool {
		s := sessionOf(m)
		_, open := t.open[s]
		switch {
		case is(m, "session/load") && open:
			detached[s] = true
			t.Emit(respond(m["id"], object{}))
			return false
		case is(m, "session/prompt"):
			delete(detached, s)
		}
		return !is(m, "session/cancel") || !detached[s]
	}
}

func queueAfterCancel(t *tap) {
	stuck := map[string]bool{}
	t.in = func(m message) bool {
		if !is(m, "session/prompt") || !stuck[sessionOf(m)] {
			return true
		}
		t.Emit(chunk(sessionOf(m), "Queued: the turn before still runs."))
		t.Emit(respond(m["id"], object{"stopReason": "end_turn"}))
		return false
	}
	t.sending = func(f frame) {
		if stopOf(f) == "cancelled" {
			stuck[f.Session] = true
		}
	}
}

func endNextTurn(t *tap) {
	stale, ended := map[string]bool{}, map[string]bool{}
	t.received = func(m message) {
		s := sessionOf(m)
		if is(m, "session/prompt") && stale[s] {
			delete(stale, s)
			ended[s] = true
			t.Emit(respond(m["id"], object{"stopReason": "end_turn"}))
		}
	}
	t.out = func(f frame) bool {
		if stopOf(f) == "cancelled" {
			stale[f.Session] = true
		}
		if answers(f, "session/prompt") && ended[f.Session] {
			delete(ended, f.Session)
			return false
		}
		return true
	}
}

func endTurnAtPermission(t *tap) {
	asked := map[string]int{}    // session → open permissions
	at := map[string]string{}    // request → session
	stopped := map[string]bool{} // cancelled at a permission
	t.received = func(m message) {
		s := sessionOf(m)
		switch {
		case is(m, "session/cancel"):
			stopped[s] = asked[s] > 0
		case is(m, "session/prompt"):
			delete(stopped, s)
		case m["method"] == nil && at[key(m["id"])] != "":
			asked[at[key(m["id"])]]--
		}
	}
	t.sending = func(f frame) {
		if f.Method == "session/request_permission" {
			asked[f.Session]++
			at[key(f.Message["id"])] = f.Session
		}
		if stopOf(f) == "cancelled" && stopped[f.Session] {
			f.Message.Object("result")["stopReason"] = "end_turn"
		}
	}
}

// skipOneCall keeps a cancel from the agent while a permission is open, and takes
// the answer cancelled for a rejection.
func skipOneCall(t *tap) {
	open := map[string]string{} // request → session
	t.in = func(m message) bool {
		if is(m, "session/cancel") {
			for _, s := range open {
				if s == sessionOf(m) {
					return false
				}
			}
		}
		if o := m.Object("result", "outcome"); o != nil && open[key(m["id"])] != "" {
			delete(open, key(m["id"]))
			if o["outcome"] == "cancelled" {
				o["outcome"], o["optionId"] = "selected", "reject-once"
			}
		}
		return true
	}
	t.sending = func(f frame) {
		if f.Method == "session/request_permission" {
			open[key(f.Message["id"])] = f.Session
		}
	}
}

// endAtFirstTool answers a prompt as soon as a tool runs; the agent's own answer is
// dropped.
func endAtFirstTool(t *tap) {
	ended := map[string]bool{}
	t.out = func(f frame) bool {
		u, tag := f.Update()
		id, open := t.open[f.Session]
		if tag == "tool_call_update" && u["status"] == "in_progress" && open && !ended[key(id)] {
			ended[key(id)] = true
			t.Emit(f.Message)
			t.Emit(respond(id, object{"stopReason": "end_turn"}))
			return false
		}
		return !answers(f, "session/prompt") || !ended[key(f.Message["id"])]
	}
}

// afterTurn does something after the answer to each prompt.
func afterTurn(do func(t *tap, f frame)) func() hooks {
	return onOutTap(func(t *tap) func(f frame) bool {
		return func(f frame) bool {
			if stopOf(f) == "" {
				return true
			}
			t.Emit(f.Message)
			do(t, f)
			return false
		}
	})
}

func outputAfterTurn(t *tap) {
	last := map[string]any{}
	t.out = func(f frame) bool {
		if u, tag := f.Update(); tag == "tool_call_update" {
			last[f.Session] = u["toolCallId"]
		}
		id := last[f.Session]
		if stopOf(f) == "" || id == nil {
			return true
		}
		delete(last, f.Session)
		t.Emit(f.Message)
		t.Emit(updateOf(f.Session, object{"sessionUpdate": "tool_call_update", "toolCallId": id, "content": []any{
			object{"type": "content", "content": object{"type": "text", "text": "still running"}}}}))
		return false
	}
}

// loseSinglePiece sends the text of a reply only when a second piece comes.
func loseSinglePiece(t *tap) {
	held := map[string]message{}
	t.out = func(f frame) bool {
		_, tag := f.Update()
		first, waits := held[f.Session]
		switch {
		case tag == "agent_message_chunk" && !waits:
			held[f.Session] = f.Message
			return false
		case tag == "agent_message_chunk" && first != nil:
			t.Emit(first)
			held[f.Session] = nil
		case tag == "tool_call", answers(f, "session/prompt"):
			delete(held, f.Session)
		}
		return true
	}
}
