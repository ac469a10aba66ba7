package faults

import (
	"strings"
	"time"

	"github.com/acp-test/acp-test/refagent"
)

func turnFaults() []Fault {
	return []Fault{
		{
			Name:    "last-chunk-late",
			Summary: "sends the last piece of text after the answer to the prompt",
			Copies:  "anomalyco/opencode#17505",
			Hooks:   with(func(t *tap) { holdLastChunk(t, true) }),
			Hangs:   true,
		},
		{
			Name:    "last-chunk-lost",
			Summary: "never sends the last piece of text",
			Copies:  "anomalyco/opencode#29492",
			Hooks:   with(func(t *tap) { holdLastChunk(t, false) }),
			Hangs:   true,
		},
		{
			Name:    "text-truncated",
			Summary: "cuts every piece of text after 12 characters",
			Hooks: onUpdate(func(u object, tag string) bool {
				if c, s := textOf(u); tag == "agent_message_chunk" {
					if r := []rune(s); len(r) > 12 {
						c["text"] = string(r[:12])
					}
				}
				return true
			}),
			Hangs: true,
		},
		{
			Name:    "text-twice",
			Summary: "repeats the whole text of a turn under another message id",
			Copies:  "zed-industries/zed#62503",
			Hooks:   with(repeatText),
		},
		{
			Name:    "chunks-swapped",
			Summary: "sends neighbouring pieces of text in the wrong order",
			Copies:  "coder/acp-go-sdk#27",
			Hooks:   with(swapChunks),
			Hangs:   true,
		},
		{
			Name:    "characters-broken",
			Summary: "replaces every character outside ASCII by U+FFFD",
			Copies:  "agentclientprotocol/codex-acp#345",
			Hooks: onUpdate(func(u object, _ string) bool {
				if c, s := textOf(u); c != nil {
					c["text"] = strings.Map(func(r rune) rune {
						if r > 127 {
							return '\uFFFD'
						}
						return r
					}, s)
				}
				return true
			}),
		},
		{
			Name:    "thoughts-as-text",
			Summary: "sends the model's reasoning as its answer",
			Hooks: onUpdate(func(u object, tag string) bool {
				if tag == "agent_thought_chunk" {
					u["sessionUpdate"] = "agent_message_chunk"
				}
				return true
			}),
		},
		{
			Name:    "echoes-the-prompt",
			Summary: "sends the live prompt back as user_message_chunk",
			Copies:  "anomalyco/opencode#22468",
			Hooks:   with(echoPrompt),
		},
		{
			Name:    "prompt-never-answered",
			Summary: "streams the whole turn but never answers the prompt",
			Copies:  "agentclientprotocol/claude-agent-acp#970",
			Hooks:   onOut(func(f frame) bool { return !answers(f, "session/prompt") }),
			Hangs:   true,
		},
		{
			Name:    "prompt-answered-twice",
			Summary: "answers every prompt twice",
			Copies:  "agentclientprotocol/claude-agent-acp#551",
			Hooks: with(func(t *tap) {
				t.out = func(f frame) bool {
					if answers(f, "session/prompt") {
						t.Emit(f.Message)
					}
					return true
				}
			}),
		},
		{
			Name:    "stop-reason-unknown",
			Summary: "ends a turn with the stop reason stop, which does not exist",
			Copies:  "esengine/DeepSeek-Reasonix#8241",
			Hooks: onResult("session/prompt", func(r object) {
				if r["stopReason"] == "end_turn" {
					r["stopReason"] = "stop"
				}
			}),
		},
		{
			Name:    "stop-reason-missing",
			Summary: "answers a prompt with an empty object",
			Hooks:   onResult("session/prompt", func(r object) { delete(r, "stopReason") }),
		},
		{
			Name:    "max-tokens-as-end-turn",
			Summary: "says end_turn when the model ran out of tokens",
			Hooks:   onStop("max_tokens", "end_turn"),
		},
		{
			Name:    "refusal-as-end-turn",
			Summary: "says end_turn when the model refused",
			Hooks:   onStop("refusal", "end_turn"),
		},
		{
			Name:    "request-limit-as-end-turn",
			Summary: "says end_turn when it gave up after its limit of model requests",
			Hooks:   onStop("max_turn_requests", "end_turn"),
		},
		{
			Name:    "model-failure-masked",
			Summary: "ends a turn whose model request failed with an empty end_turn",
			Copies:  "MoonshotAI/kimi-code#3107",
			Hooks: func() refagent.Hooks {
				return refagent.Hooks{Stop: func(_, reason string, err error) (string, error) {
					if err != nil {
						return "end_turn", nil
					}
					return reason, nil
				}}
			},
		},
		{
			Name:    "model-failure-as-text",
			Summary: "reports a failed model request as text of the assistant and ends with end_turn",
			Copies:  "NousResearch/hermes-agent#89948",
			Hooks: with(func(t *tap) {
				t.out = func(f frame) bool {
					if answers(f, "session/prompt") && f.Message["error"] != nil {
						t.Emit(chunk(f.Session, "The provider answered with an error."))
						delete(f.Message, "error")
						f.Message["result"] = object{"stopReason": "end_turn"}
					}
					return true
				}
			}),
		},
		{
			Name:    "forgets-former-turns",
			Summary: "shows the model only the prompt at hand",
			Hooks: func() refagent.Hooks {
				return refagent.Hooks{Request: sinceLastUser}
			},
		},
		{
			Name:    "answers-before-it-is-free",
			Summary: "refuses a prompt that comes within a second of the answer to the one before",
			Copies:  "can1357/oh-my-pi#1070",
			Hooks:   with(refuseQuickPrompts),
		},
		{
			Name:    "links-refused",
			Summary: "refuses prompts with a resource link",
			Copies:  "getsentry/junior#1691",
			Hooks: with(func(t *tap) {
				t.in = func(m message) bool {
					if is(m, "session/prompt") && hasBlock(m, "resource_link") {
						t.Emit(refuse(m["id"], -32602, "unsupported content type resource_link"))
						return false
					}
					return true
				}
			}),
		},
		{
			Name:    "content-dropped",
			Summary: "accepts links, images and embedded resources but shows the model the text alone",
			Copies:  "PrimeIntellect-ai/prime-agent#613",
			Hooks: with(func(t *tap) {
				t.in = func(m message) bool {
					if is(m, "session/prompt") {
						keepText(m)
					}
					return true
				}
			}),
		},
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
	t.out = func(f frame) bool {
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
		return true
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
	t.in = func(m message) bool {
		blocks, _ := m.Object("params")["prompt"].([]any)
		for _, b := range blocks {
			if is(m, "session/prompt") {
				t.Emit(updateOf(sessionOf(m), object{"sessionUpdate": "user_message_chunk", "content": b}))
			}
		}
		return true
	}
}

func refuseQuickPrompts(t *tap) {
	ended := map[string]time.Time{}
	t.in = func(m message) bool {
		if is(m, "session/prompt") && time.Since(ended[sessionOf(m)]) < time.Second {
			t.Emit(refuse(m["id"], -32600, "a prompt is already running in this session"))
			return false
		}
		return true
	}
	t.out = func(f frame) bool {
		if answers(f, "session/prompt") {
			ended[f.Session] = time.Now()
		}
		return true
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
