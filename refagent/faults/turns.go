package faults

import (
	"maps"
	"strings"
	"time"

	"github.com/acp-test/acp-test/refagent"
)

func turnFaults() []Fault {
	return []Fault{
		fault("last-chunk-late", "sends the last piece of text after the answer to the prompt",
			with(func(t *tap) { holdLastChunk(t, true) })).copies("anomalyco/opencode#17505").hangs(),
		fault("last-chunk-lost", "never sends the last piece of text",
			with(func(t *tap) { holdLastChunk(t, false) })).copies("anomalyco/opencode#29492").hangs(),
		fault("text-truncated", "cuts every piece of text after 12 characters", changeUpdate(func(u object, tag string) {
			if c, s := textOf(u); tag == "agent_message_chunk" {
				if r := []rune(s); len(r) > 12 {
					c["text"] = string(r[:12])
				}
			}
		})).hangs(),
		fault("text-twice", "repeats the whole text of a turn under another message id",
			with(repeatText)).copies("zed-industries/zed#62503"),
		fault("chunks-empty", "sends a chunk without a text behind each piece of a text",
			onOutTap(func(t *tap) func(f frame) bool {
				return func(f frame) bool {
					u, tag := f.Update()
					if c, s := textOf(u); c == nil || s == "" || tag != "agent_message_chunk" {
						return true
					}
					t.Emit(f.Message)
					u = maps.Clone(u)
					u["content"] = object{"type": "text", "text": ""}
					t.Emit(updateOf(f.Session, u))
					return false
				}
			})),
		fault("chunks-swapped", "sends neighbouring pieces of text in the wrong order",
			with(swapChunks)).copies("coder/acp-go-sdk#27").hangs(),
		fault("characters-broken", "replaces every character outside ASCII by U+FFFD",
			onUpdate(func(u object, _ string) bool {
				if c, s := textOf(u); c != nil {
					c["text"] = strings.Map(func(r rune) rune {
						if r > 127 {
							return '\uFFFD'
						}
						return r
					}, s)
				}
				return true
			})).copies("agentclientprotocol/codex-acp#345"),
		fault("thoughts-as-text", "sends the model's reasoning as its answer",
			changeOnly("agent_thought_chunk", func(u object) {
				u["sessionUpdate"] = "agent_message_chunk"
			})),
		fault("echoes-the-prompt", "sends the live prompt back as user_message_chunk",
			with(echoPrompt)).copies("anomalyco/opencode#22468"),
		fault("prompt-never-answered", "streams the whole turn but never answers the prompt",
			onOut(func(f frame) bool { return !answers(f, "session/prompt") })).
			copies("agentclientprotocol/claude-agent-acp#970").hangs(),
		fault("prompt-answered-twice", "answers every prompt twice", onAnswerTo("session/prompt", func(t *tap, f frame) {
			t.Emit(f.Message)
		})).copies("agentclientprotocol/claude-agent-acp#551"),
		fault("stop-reason-unknown", "ends a turn with the stop reason stop, which does not exist",
			onResult("session/prompt", func(r object) {
				if r["stopReason"] == "end_turn" {
					r["stopReason"] = "stop"
				}
			})).copies("esengine/DeepSeek-Reasonix#8241"),
		fault("stop-reason-missing", "answers a prompt with an empty object",
			onResult("session/prompt", func(r object) { delete(r, "stopReason") })),
		fault("max-tokens-as-end-turn", "says end_turn when the model ran out of tokens",
			onStop("max_tokens", "end_turn")),
		fault("end-turn-as-max-tokens", "says max_tokens where the model has said all that it wanted",
			onStop("end_turn", "max_tokens")),
		fault("refusal-as-end-turn", "says end_turn when the model refused", onStop("refusal", "end_turn")),
		fault("request-limit-as-end-turn", "says end_turn when it gave up after its limit of model requests",
			onStop("max_turn_requests", "end_turn")),
		fault("model-failure-masked", "ends a turn whose model request failed with an empty end_turn",
			func() refagent.Hooks {
				return refagent.Hooks{Stop: func(_, reason string, err error) (string, error) {
					if err != nil {
						return "end_turn", nil
					}
					return reason, nil
				}}
			}).copies("MoonshotAI/kimi-code#3107"),
		fault("model-failure-as-text", "reports a failed model request as text of the assistant and ends with end_turn",
			with(func(t *tap) {
				t.sending = func(f frame) {
					if answers(f, "session/prompt") && f.Message["error"] != nil {
						t.Emit(chunk(f.Session, "The provider answered with an error."))
						delete(f.Message, "error")
						f.Message["result"] = object{"stopReason": "end_turn"}
					}
				}
			})).copies("NousResearch/hermes-agent#89948"),
		fault("forgets-former-turns", "shows the model only the prompt at hand", func() refagent.Hooks {
			return refagent.Hooks{Request: sinceLastUser}
		}),
		fault("answers-before-it-is-free", "refuses a prompt that comes within a second of the answer to the one before",
			with(refuseQuickPrompts)).copies("can1357/oh-my-pi#1070"),
		fault("links-refused", "refuses prompts with a resource link", with(func(t *tap) {
			t.refusing("session/prompt", -32602, "unsupported content type resource_link",
				func(m message) bool { return hasBlock(m, "resource_link") })
		})).copies("getsentry/junior#1691"),
		fault("content-dropped", "accepts links, images and embedded resources but shows the model the text alone",
			onRequestOf("session/prompt", func(t *tap, m message) {
				keepText(m)
			})).copies("PrimeIntellect-ai/prime-agent#613"),
	}
}

func sinceLastUser(_ string, messages []refagent.ModelMessage) []refagent.ModelMessage {
	for i := len(messages) - 1; i > 0; i-- {
		if messages[i].Role == "user" {
			return messages[i:]
		}
	}
	return messages
}

// holdLastChunk keeps one piece of text back until the next one comes; the
// last one goes out after the answer, or never.
func holdLastChunk(t *tap, send bool) {
	held := map[string]message{}
	t.out = func(f frame) bool {
		if _, tag := f.Update(); tag == "agent_message_chunk" {
			if m := held[f.Session]; m != nil {
				t.Emit(m)
			}
			held[f.Session] = f.Message
			return false
		}
		if answers(f, "session/prompt") {
			t.Emit(f.Message)
			if m := held[f.Session]; m != nil && send {
				t.Emit(m)
			}
			delete(held, f.Session)
			return false
		}
		return true
	}
}

func repeatText(t *tap) {
	said := map[string]string{}
	t.sending = func(f frame) {
		if u, tag := f.Update(); tag == "agent_message_chunk" {
			_, s := textOf(u)
			said[f.Session] += s
		}
		if answers(f, "session/prompt") {
			if s := said[f.Session]; s != "" {
				again := chunk(f.Session, s)
				again.Object("params", "update")["messageId"] = "again-" + s[:min(8, len(s))]
				t.Emit(again)
			}
			delete(said, f.Session)
		}
	}
}

func swapChunks(t *tap) {
	held := map[string]message{}
	t.out = func(f frame) bool {
		_, tag := f.Update()
		first := held[f.Session]
		if tag == "agent_message_chunk" && first == nil {
			held[f.Session] = f.Message
			return false
		}
		delete(held, f.Session)
		if first == nil {
			return true
		}
		if tag == "agent_message_chunk" {
			t.Emit(f.Message)
			t.Emit(first)
			return false
		}
		t.Emit(first)
		return true
	}
}

func echoPrompt(t *tap) {
	t.received = func(m message) {
		blocks, _ := m.Object("params")["prompt"].([]any)
		for _, b := range blocks {
			if is(m, "session/prompt") {
				t.Emit(updateOf(sessionOf(m), object{"sessionUpdate": "user_message_chunk", "content": b}))
			}
		}
	}
}

func refuseQuickPrompts(t *tap) {
	ended := map[string]time.Time{}
	t.refusing("session/prompt", -32600, "a prompt is already running in this session",
		func(m message) bool { return time.Since(ended[sessionOf(m)]) < time.Second })
	t.sending = func(f frame) {
		if answers(f, "session/prompt") {
			ended[f.Session] = time.Now()
		}
	}
}

func hasBlock(m message, kind string) bool {
	blocks, _ := m.Object("params")["prompt"].([]any)
	for _, b := range blocks {
		if o, ok := b.(object); ok && o["type"] == kind {
			return true
		}
	}
	return false
}

// keepText leaves only the text blocks of a prompt.
func keepText(m message) {
	blocks, _ := m.Object("params")["prompt"].([]any)
	texts := []any{}
	for _, b := range blocks {
		if o, ok := b.(object); ok && o["type"] == "text" {
			texts = append(texts, b)
		}
	}
	if len(texts) > 0 {
		m.Object("params")["prompt"] = texts
	}
}
