package fakellm

import (
	"bytes"
	"strconv"

	"github.com/acp-test/acp-test/wire"
)

// heard is an answer of a real provider, read back into steps.
type heard struct {
	steps []Step
	tools map[string]int // the step of each tool call, by what the API calls it
	usage Usage
	used  bool
	stop  Stop
	ended bool
}

// say appends a piece of a text; empty ones say nothing.
func (h *heard) say(kind StepKind, piece string) {
	if piece == "" {
		return
	}
	if n := len(h.steps); n > 0 && h.steps[n-1].Kind == kind {
		h.steps[n-1].Chunks = append(h.steps[n-1].Chunks, piece)
		return
	}
	h.steps = append(h.steps, Step{Kind: kind, Chunks: []string{piece}})
}

func (h *heard) tool(key, name string) {
	if h.tools == nil {
		h.tools = map[string]int{}
	}
	h.tools[key] = len(h.steps)
	h.steps = append(h.steps, Step{Kind: StepTool, Tool: name, Raw: true})
}

func (h *heard) args(key, piece string) {
	if i, ok := h.tools[key]; ok && piece != "" {
		h.steps[i].Chunks = append(h.steps[i].Chunks, piece)
	}
}

func (h *heard) end(s Stop) { h.stop, h.ended = s, true }

// ear reads the answers of one API.
type ear func(h *heard, v wire.Value)

// earFor returns what reads an event of a stream, and what reads a body.
func earFor(f format) (event, body ear) {
	switch f.name() {
	case Anthropic:
		return hearAnthropicEvent, hearAnthropic
	case Gemini:
		return hearGemini, hearGemini
	case OpenAIResponses:
		return hearResponsesEvent, hearResponses
	}
	return hearChat, hearChat
}

// listen reads a whole body, streamed or not.
func listen(f format, body []byte) *heard {
	h := &heard{}
	event, whole := earFor(f)
	if v, err := wire.Parse(body); err == nil {
		if v.Kind() != wire.Array {
			whole(h, v)
			return h
		}
		for item := range v.Items() {
			event(h, item)
		}
		return h
	}
	var data []byte
	for line := range bytes.Lines(body) {
		line = bytes.TrimRight(line, "\r\n")
		if rest, ok := bytes.CutPrefix(line, []byte("data:")); ok {
			data = append(data, bytes.TrimPrefix(rest, []byte(" "))...)
			continue
		}
		if len(line) == 0 && len(data) > 0 {
			if v, err := wire.Parse(data); err == nil {
				event(h, v)
			}
			data = nil
		}
	}
	return h
}

func number64(v wire.Value, to *int) bool {
	n, ok := v.Int()
	if ok {
		*to = int(n)
	}
	return ok
}

func hearChat(h *heard, v wire.Value) {
	c := v.Path("choices.0")
	d := c.Get("delta")
	if !d.Exists() {
		d = c.Get("message")
	}
	for _, key := range []string{"reasoning_content", "reasoning"} {
		if t := d.Get(key); t.Kind() == wire.String {
			h.say(StepThinking, t.Str())
			break
		}
	}
	h.say(StepText, d.Get("content").Str())
	h.say(StepRefusal, d.Get("refusal").Str())
	i := 0
	for t := range d.Get("tool_calls").Items() {
		number64(t.Get("index"), &i)
		key := strconv.Itoa(i)
		f := t.Get("function")
		if !f.Exists() {
			f = t.Get("custom")
		}
		if name := f.Get("name").Str(); name != "" {
			h.tool(key, name)
		}
		h.args(key, f.Get("arguments").Str()+f.Get("input").Str())
		i++
	}
	switch c.Get("finish_reason").Str() {
	case "stop":
		h.end(StopEnd)
	case "length":
		h.end(StopLength)
	case "content_filter":
		h.end(StopRefusal)
	case "tool_calls", "function_call":
		h.end(StopTool)
	}
	h.spent(v.Get("usage"), "prompt_tokens", "completion_tokens", "prompt_tokens_details.cached_tokens",
		"completion_tokens_details.reasoning_tokens")
}

// spent reads the members of a usage that are there.
func (h *heard) spent(u wire.Value, input, output, cached, reasoning string) {
	if u.Kind() != wire.Object {
		return
	}
	h.used = true
	number64(u.Path(input), &h.usage.Input)
	number64(u.Path(output), &h.usage.Output)
	number64(u.Path(cached), &h.usage.Cached)
	if reasoning != "" {
		number64(u.Path(reasoning), &h.usage.Reasoning)
	}
}

func hearAnthropicEvent(h *heard, v wire.Value) {
	key := string(v.Get("index").Raw())
	switch v.Get("type").Str() {
	case "message_start":
		h.spent(v.Path("message.usage"), "input_tokens", "output_tokens", "cache_read_input_tokens", "")
	case "content_block_start":
		hearAnthropicBlock(h, key, v.Get("content_block"), false)
	case "content_block_delta":
		d := v.Get("delta")
		switch d.Get("type").Str() {
		case "text_delta":
			h.say(StepText, d.Get("text").Str())
		case "thinking_delta":
			h.say(StepThinking, d.Get("thinking").Str())
		case "input_json_delta":
			h.args(key, d.Get("partial_json").Str())
		}
	case "message_delta":
		h.anthropicStop(v.Path("delta.stop_reason"))
		h.spent(v.Get("usage"), "input_tokens", "output_tokens", "cache_read_input_tokens", "")
	}
}

func hearAnthropicBlock(h *heard, key string, b wire.Value, whole bool) {
	switch b.Get("type").Str() {
	case "text":
		h.say(StepText, b.Get("text").Str())
	case "thinking":
		h.say(StepThinking, b.Get("thinking").Str())
	case "tool_use":
		h.tool(key, b.Get("name").Str())
		if whole {
			h.args(key, string(b.Get("input").Raw()))
		}
	}
}

func (h *heard) anthropicStop(v wire.Value) {
	switch v.Str() {
	case "max_tokens":
		h.end(StopLength)
	case "refusal":
		h.end(StopRefusal)
	case "tool_use":
		h.end(StopTool)
	case "":
	default:
		h.end(StopEnd)
	}
}

func hearAnthropic(h *heard, v wire.Value) {
	i := 0
	for b := range v.Get("content").Items() {
		hearAnthropicBlock(h, strconv.Itoa(i), b, true)
		i++
	}
	h.anthropicStop(v.Get("stop_reason"))
	h.spent(v.Get("usage"), "input_tokens", "output_tokens", "cache_read_input_tokens", "")
}

func hearGemini(h *heard, v wire.Value) {
	c := v.Path("candidates.0")
	for part := range c.Path("content.parts").Items() {
		thought, _ := part.Get("thought").Bool()
		switch call := part.Get("functionCall"); {
		case call.Exists():
			key := strconv.Itoa(len(h.steps))
			h.tool(key, call.Get("name").Str())
			h.args(key, string(call.Get("args").Raw()))
		case thought:
			h.say(StepThinking, part.Get("text").Str())
		default:
			h.say(StepText, part.Get("text").Str())
		}
	}
	switch c.Get("finishReason").Str() {
	case "":
	case "MAX_TOKENS":
		h.end(StopLength)
	case "STOP":
		h.end(StopAuto)
	default:
		h.end(StopRefusal)
	}
	h.spent(v.Get("usageMetadata"), "promptTokenCount", "candidatesTokenCount", "cachedContentTokenCount",
		"thoughtsTokenCount")
}

func hearResponsesEvent(h *heard, v wire.Value) {
	key := v.Get("item_id").Str()
	switch v.Get("type").Str() {
	case "response.output_text.delta":
		h.say(StepText, v.Get("delta").Str())
	case "response.refusal.delta":
		h.say(StepRefusal, v.Get("delta").Str())
	case "response.reasoning_summary_text.delta", "response.reasoning_text.delta":
		h.say(StepThinking, v.Get("delta").Str())
	case "response.output_item.added":
		if it := v.Get("item"); it.Get("name").Exists() {
			h.tool(it.Get("id").Str(), it.Get("name").Str())
		}
	case "response.function_call_arguments.delta", "response.custom_tool_call_input.delta":
		h.args(key, v.Get("delta").Str())
	case "response.completed", "response.incomplete":
		h.responsesEnd(v.Get("response"))
	}
}

func (h *heard) responsesEnd(v wire.Value) {
	switch {
	case v.Path("incomplete_details.reason").Is("max_output_tokens"):
		h.end(StopLength)
	case v.Get("status").Is("incomplete"):
		h.end(StopRefusal)
	default:
		h.end(StopAuto)
	}
	h.spent(v.Get("usage"), "input_tokens", "output_tokens", "input_tokens_details.cached_tokens",
		"output_tokens_details.reasoning_tokens")
}

func hearResponses(h *heard, v wire.Value) {
	for it := range v.Get("output").Items() {
		switch {
		case it.Get("type").Is("reasoning"):
			for part := range it.Get("summary").Items() {
				h.say(StepThinking, part.Get("text").Str())
			}
		case it.Get("type").Is("message"):
			for part := range it.Get("content").Items() {
				h.say(StepText, part.Get("text").Str())
				h.say(StepRefusal, part.Get("refusal").Str())
			}
		case it.Get("name").Exists():
			key := it.Get("id").Str()
			h.tool(key, it.Get("name").Str())
			h.args(key, it.Get("arguments").Str()+it.Get("input").Str())
		}
	}
	h.responsesEnd(v)
}
