package faults

import (
	"time"

	"github.com/acp-test/acp-test/refagent"
)

func cancelFaults() []Fault {
	return []Fault{
		{
			Name:    "cancel-end-turn",
			Summary: "answers a cancelled prompt with end_turn 20 ms later, while the model's reply is still open",
			Copies:  "anomalyco/opencode#25899",
			Hooks:   with(func(t *tap) { endEarly(t, 20*time.Millisecond, 100*time.Millisecond, "end_turn") }),
		},
		{
			Name:    "cancel-end-turn-settled",
			Summary: "aborts its work on a cancel, but then says end_turn",
			Copies:  "github/copilot-cli#4561",
			Hooks:   onStop("cancelled", "end_turn"),
		},
		{
			Name:    "cancel-error",
			Summary: "answers a cancelled prompt with an internal error",
			Copies:  "google-gemini/gemini-cli#13399",
			Hooks: onOut(func(f frame) bool {
				if stopOf(f) == "cancelled" {
					delete(f.Message, "result")
					f.Message["error"] = object{"code": -32603, "message": "AbortError: the operation was aborted"}
				}
				return true
			}),
		},
		{
			Name:    "cancel-lost-before-first-update",
			Summary: "loses a cancel that arrives before the turn's first update",
			Copies:  "agentclientprotocol/claude-agent-acp#442",
			Hooks:   with(loseEarlyCancels),
			Hangs:   true,
		},
		{
			Name:    "cancel-lost-in-slow-setup",
			Summary: "sets a turn up for 300 ms before a cancel can reach it",
			Copies:  "aaif-goose/goose#9804",
			Hooks:   slowSetup,
			Hangs:   true,
		},
		{
			Name:    "cancel-ignored",
			Summary: "does not support session/cancel at all",
			Copies:  "anomalyco/opencode#30146",
			Hooks:   with(func(t *tap) { t.in = func(m message) bool { return !is(m, "session/cancel") } }),
			Hangs:   true,
		},
		{
			Name:    "reads-only-between-turns",
			Summary: "reads its input only when no prompt runs",
			Copies:  "justrach/codegraff#809",
			Hooks:   with(readBetweenTurns),
			Hangs:   true,
		},
		{
			Name:    "cancel-deaf-in-permission",
			Summary: "waits for the answer to a permission whatever else the editor says",
			Copies:  "topcheer/ggcode#1046",
			Hooks:   func() refagent.Hooks { return refagent.Hooks{Patient: func(string) bool { return true }} },
			Hangs:   true,
		},
		{
			Name:    "cancel-twice-poisons-permission",
			Summary: "after two cancels in a row cancels the next turn at its first permission",
			Copies:  "clawbench-dev/clawbench#433",
			Hooks:   with(poisonPermission),
		},
		{
			Name:    "cancel-hits-every-session",
			Summary: "cancels the prompts of all sessions when one is cancelled",
			Copies:  "langchain-ai/deepagents#5107",
			Hooks:   with(cancelEverything),
		},
		{
			Name:    "cancel-idle-sticks",
			Summary: "remembers a cancel that came while nothing ran and applies it to the next prompt",
			Hooks:   with(stickyCancel),
		},
		{
			Name:    "always-cancelled",
			Summary: "says cancelled at the end of every turn",
			Copies:  "esengine/DeepSeek-Reasonix#3509",
			Hooks:   onStop("end_turn", "cancelled"),
		},
		{
			Name:    "cancel-leaves-tool-open",
			Summary: "never gives a final status to the tool call that a cancel interrupts",
			Copies:  "Hezaerd/noyau#64",
			Hooks:   with(leaveToolOpen),
		},
		{
			Name:    "cancel-keeps-working",
			Summary: "says cancelled at once, but goes on with the model and the tools for a while",
			Copies:  "can1357/oh-my-pi#862",
			Hooks:   with(func(t *tap) { endEarly(t, 0, 10*time.Second, "cancelled") }),
		},
		{
			Name:    "cancel-then-late-text",
			Summary: "sends a piece of text 20 ms after the answer to a cancelled prompt",
			Copies:  "can1357/oh-my-pi#1113",
			Hooks:   with(lateText),
		},
		{
			Name:    "cancel-ends-session",
			Summary: "forgets the session when a prompt is cancelled",
			Copies:  "PrimeIntellect-ai/nano-rlm#116",
			Hooks:   with(func(t *tap) { refuseAfterCancel(t, -32002, "unknown session") }),
		},
		{
			Name:    "cancel-leaves-session-busy",
			Summary: "believes after a cancel that the prompt still runs",
			Copies:  "Yeachan-Heo/gajae-code#4324",
			Hooks:   with(func(t *tap) { refuseAfterCancel(t, -32600, "a prompt is already running in this session") }),
		},
		{
			Name:    "cancel-answered",
			Summary: "answers the notification session/cancel",
			Hooks: with(func(t *tap) {
				t.in = func(m message) bool {
					if is(m, "session/cancel") {
						t.Emit(respond(nil, object{}))
					}
					return true
				}
			}),
		},
		{
			Name:    "cancel-crashes",
			Summary: "dies when a prompt is cancelled",
			Hooks: with(func(t *tap) {
				t.in = func(m message) bool {
					if is(m, "session/cancel") {
						t.Exit()
					}
					return true
				}
			}),
		},
		{
			Name:    "cancel-runs-the-tool-anyway",
			Summary: "says completed of a tool whose permission was answered with cancelled",
			Copies:  "QwenLM/qwen-code#5258",
			Hooks:   with(completeCancelled),
		},
		{
			Name:    "cancel-request-ignored",
			Summary: "does not honour $/cancel_request for a prompt",
			Copies:  "anomalyco/opencode#49563",
			Hooks:   with(func(t *tap) { t.in = func(m message) bool { return !is(m, "$/cancel_request") } }),
			Hangs:   true,
		},
		{
			Name:    "cancel-request-internal-error",
			Summary: "answers a prompt that $/cancel_request ended with an internal error",
			Hooks:   with(failCancelRequest),
		},
		{
			Name:    "cancel-request-of-nothing",
			Summary: "sends $/cancel_request for a request it never made",
			Hooks:   with(cancelNothing),
		},
	}
}
