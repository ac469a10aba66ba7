package faults

import "time"

func cancelFaults() []Fault {
	return []Fault{
		fault("cancel-end-turn",
			"answers a cancelled prompt with end_turn 20 ms later, while the model's reply is still open",
			with(func(t *tap) { endEarly(t, 20*time.Millisecond, 100*time.Millisecond, "end_turn") })).
			copies("anomalyco/opencode#25899"),
		fault("cancel-end-turn-settled", "aborts its work on a cancel, but then says end_turn",
			onStop("cancelled", "end_turn")).copies("github/copilot-cli#4561"),
		fault("cancel-error", "answers a cancelled prompt with an internal error", changeFrame(func(f frame) {
			if stopOf(f) == "cancelled" {
				delete(f.Message, "result")
				f.Message["error"] = object{"code": -32603, "message": "AbortError: the operation was aborted"}
			}
		})).copies("google-gemini/gemini-cli#13399"),
		fault("cancel-speaks",
			"says in a message of its own that the turn was interrupted, before it answers a cancelled prompt",
			onOutTap(func(t *tap) func(f frame) bool {
				return func(f frame) bool {
					if stopOf(f) == "cancelled" {
						notice := chunk(f.Session, "*Conversation interrupted*")
						notice.Object("params", "update")["messageId"] = "interrupted-" + key(f.Message["id"])
						t.Emit(notice)
					}
					return true
				}
			})).copies("agentclientprotocol/codex-acp#358"),
		fault("cancel-lost-before-first-update", "loses a cancel that arrives before the turn's first update",
			with(loseEarlyCancels)).copies("agentclientprotocol/claude-agent-acp#442").hangs(),
		fault("cancel-lost-in-slow-setup", "sets a turn up for 300 ms before a cancel can reach it",
			slowSetup).copies("aaif-goose/goose#9804").hangs(),
		fault("cancel-ignored", "does not support session/cancel at all",
			with(func(t *tap) { t.in = func(m message) bool { return !is(m, "session/cancel") } })).
			copies("anomalyco/opencode#30146").hangs(),
		fault("reads-only-between-turns", "reads its input only when no prompt runs",
			with(readBetweenTurns)).copies("justrach/codegraff#809").hangs(),
		fault("cancel-twice-poisons-permission", "after two cancels in a row cancels the next turn at its first permission",
			with(poisonPermission)).copies("clawbench-dev/clawbench#433"),
		fault("cancel-hits-every-session", "cancels the prompts of all sessions when one is cancelled",
			with(cancelEverything)).copies("langchain-ai/deepagents#5107"),
		fault("cancel-idle-sticks", "remembers a cancel that came while nothing ran and applies it to the next prompt",
			with(stickyCancel)),
		fault("always-cancelled", "says cancelled at the end of every turn",
			onStop("end_turn", "cancelled")).copies("esengine/DeepSeek-Reasonix#3509"),
		fault("cancel-leaves-tool-open", "never gives a final status to the tool call that a cancel interrupts",
			with(leaveToolOpen)).copies("Hezaerd/noyau#64"),
		fault("cancel-keeps-working", "says cancelled at once, but goes on with the model and the tools for a while",
			with(func(t *tap) { endEarly(t, 0, 10*time.Second, "cancelled") })).copies("can1357/oh-my-pi#862").process(),
		fault("cancel-then-late-text", "sends a piece of text 20 ms after the answer to a cancelled prompt",
			with(lateText)).copies("can1357/oh-my-pi#1113"),
		fault("cancel-ends-session", "forgets the session when a prompt is cancelled",
			with(func(t *tap) { refuseAfterCancel(t, -32002, "unknown session") })).copies("PrimeIntellect-ai/nano-rlm#116"),
		fault("cancel-leaves-session-busy", "believes after a cancel that the prompt still runs",
			with(func(t *tap) { refuseAfterCancel(t, -32600, "a prompt is already running in this session") })).
			copies("Yeachan-Heo/gajae-code#4324"),
		fault("cancel-answered", "answers the notification session/cancel",
			onRequestOf("session/cancel", func(t *tap, m message) {
				t.Emit(respond(nil, object{}))
			})),
		fault("cancel-crashes", "dies when a prompt is cancelled", onRequestOf("session/cancel", func(t *tap, m message) {
			t.Exit()
		})),
		fault("cancel-runs-the-tool-anyway", "says completed of a tool whose permission was answered with cancelled",
			with(completeCancelled)).copies("QwenLM/qwen-code#5258"),
		fault("cancel-request-internal-error", "answers a prompt that $/cancel_request ended with an internal error",
			with(failCancelRequest)),
		fault("cancel-request-of-nothing", "sends $/cancel_request for a request it never made",
			with(cancelNothing)),
	}
}
