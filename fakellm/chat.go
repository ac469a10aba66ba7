package fakellm

import (
	"strconv"

	"github.com/acp-test/acp-test/wire"
)

// OpenAIChat is the name of OpenAI's Chat Completions API.
const OpenAIChat = "openai-chat"

// chat is OpenAI's Chat Completions API, with reasoning in reasoning_content
// as the servers do that offer open models by it.
type chat struct{ openai }

func (chat) name() string                          { return OpenAIChat }
func (chat) encoder(r *request, a *answer) encoder { return &chatEncoder{r: r, a: a} }

func (chat) parse(r *request, v wire.Value) *problem {
	messages := v.Get("messages")
	if messages.Kind() != wire.Array || messages.Len() == 0 {
		return &problem{status: 400, message: "Invalid 'messages': expected a non-empty array of messages."}
	}
	r.stream, _ = v.Get("stream").Bool()
	r.includeUsage, _ = v.Path("stream_options.include_usage").Bool()
	for m := range messages.Items() {
		content := joined(m.Get("content"))
		switch role := m.Get("role").Str(); role {
		case "system", "developer":
			r.system = append(r.system, content)
		case "user":
			r.add(roleUser, content)
		case "assistant":
			r.add(roleModel, content)
			for c := range m.Get("tool_calls").Items() {
				r.addCall(c.Get("id").Str(), c.Path("function.name").Str()+c.Path("custom.name").Str(),
					c.Path("function.arguments").Str()+c.Path("custom.input").Str())
			}
		case "tool":
			r.addResult(m.Get("tool_call_id").Str(), content)
		case "function":
			r.add(roleResult, content)
		default:
			return &problem{status: 400, message: "Invalid value: '" + role +
				"'. Supported values are: 'system', 'developer', 'user', 'assistant', and 'tool'."}
		}
		r.message++
	}
	for t := range v.Get("tools").Items() {
		f := t.Get("function")
		if t.Get("type").Is("custom") {
			f = t.Get("custom")
		}
		if name := f.Get("name").Str(); name != "" {
			r.tools = append(r.tools, offer{name: name, custom: t.Get("type").Is("custom"), schema: f.Get("parameters")})
		}
	}
	formatWanted(r, v.Get("response_format"))
	forcedTool(r, v.Path("tool_choice.function.name").Str())
	return nil
}

func (chat) endpoint(path string) (route, bool) {
	return route{task: taskGenerate}, path == "/chat/completions"
}

type chatEncoder struct {
	r         *request
	a         *answer
	chunkHead []byte // what every chunk begins with
}

func (*chatEncoder) contentType() string { return sse }

// chunk appends one chunk with the given choices.
func (e *chatEncoder) chunk(b []byte, choices func([]byte) []byte, usage bool) []byte {
	return data(b, func(b []byte) []byte {
		if e.chunkHead == nil {
			e.chunkHead = append(e.head(nil, "chat.completion.chunk"), `,"choices":[`...)
		}
		b = append(b, e.chunkHead...)
		b = choices(b)
		b = append(b, ']')
		if usage {
			b = e.usage(b)
		}
		return append(b, '}')
	})
}

func (e *chatEncoder) head(b []byte, kind string) []byte {
	return template(b, `{"id":?,"object":?,"created":?,"model":?`, "chatcmpl-"+e.a.id, kind, created, e.a.model)
}

func (e *chatEncoder) delta(b []byte, body func([]byte) []byte) []byte {
	return e.chunk(b, func(b []byte) []byte {
		b = append(b, `{"index":0,"delta":{`...)
		b = body(b)
		return append(b, `},"logprobs":null,"finish_reason":null}`...)
	}, false)
}

func (e *chatEncoder) open(b []byte) []byte {
	return e.delta(b, func(b []byte) []byte { return append(b, `"role":"assistant","content":""`...) })
}

func (e *chatEncoder) start(b []byte, bl *block) []byte {
	if bl.kind != StepTool {
		return b
	}
	return e.delta(b, func(b []byte) []byte {
		return e.call(template(b, `"tool_calls":[{"index":?,`, bl.tool), bl, "", `}]`)
	})
}

// call appends the members of a tool call, and what ends it.
func (e *chatEncoder) call(b []byte, bl *block, args, end string) []byte {
	kind, content := callKeys(bl)
	b = template(b, `"id":?,"type":?,?:{"name":?,?:?}`, "call_"+bl.id, kind, kind, bl.call.name, content, args)
	return append(b, end...)
}

// callKeys returns the kind of a tool call and the member that has its arguments.
func callKeys(bl *block) (kind, content string) {
	if bl.call.custom {
		return "custom", "input"
	}
	return "function", "arguments"
}

func (e *chatEncoder) piece(b []byte, bl *block, s string) []byte {
	return e.delta(b, func(b []byte) []byte {
		switch bl.kind {
		case StepThinking:
			return wire.AppendString(append(b, `"reasoning_content":`...), s)
		case StepRefusal:
			return wire.AppendString(append(b, `"refusal":`...), s)
		case StepTool:
			kind, content := callKeys(bl)
			return template(b, `"tool_calls":[{"index":?,?:{?:?}}]`, bl.tool, kind, content, s)
		}
		return wire.AppendString(append(b, `"content":`...), s)
	})
}

func (e *chatEncoder) end(b []byte, _ *block) []byte { return b }

func (e *chatEncoder) close(b []byte) []byte {
	b = e.chunk(b, func(b []byte) []byte {
		b = append(b, `{"index":0,"delta":{`...)
		if late := e.a.late(); late != "" {
			b = wire.AppendString(append(b, `"content":`...), late)
		}
		return template(b, `},"logprobs":null,"finish_reason":?}`, e.finish())
	}, false)
	if e.r.includeUsage {
		b = e.chunk(b, func(b []byte) []byte { return b }, true)
	}
	return append(b, "data: [DONE]\n\n"...)
}

func (e *chatEncoder) finish() string {
	return map[Stop]string{StopLength: "length", StopRefusal: "content_filter", StopTool: "tool_calls",
		StopEnd: "stop"}[e.a.stop]
}

func (e *chatEncoder) usage(b []byte) []byte {
	u := e.a.usage
	return template(b, `,"usage":{"prompt_tokens":?,"completion_tokens":?,"total_tokens":?,`+
		`"prompt_tokens_details":{"cached_tokens":?},"completion_tokens_details":{"reasoning_tokens":?}}`,
		u.Input, u.Output, u.Input+u.Output, u.Cached, u.Reasoning)
}

func (e *chatEncoder) fail(b []byte, p *problem) []byte { return e.event(b, string(chat{}.problem(p))) }

func (e *chatEncoder) event(b []byte, s string) []byte {
	return append(append(append(b, "data: "...), s...), "\n\n"...)
}

func (e *chatEncoder) whole(b []byte) []byte {
	said := map[StepKind]string{}
	var calls []block
	for _, bl := range e.a.blocks {
		if bl.kind == StepTool {
			calls = append(calls, bl)
		} else {
			said[bl.kind] += bl.text
		}
	}
	content := any(said[StepText])
	if len(calls) > 0 || said[StepRefusal] != "" {
		content = textOr(said[StepText])
	}
	b = template(e.head(b, "chat.completion"), `,"choices":[{"index":0,"message":{"role":"assistant","content":?`, content)
	if t := said[StepThinking]; t != "" {
		b = template(b, `,"reasoning_content":?`, t)
	}
	b = template(b, `,"refusal":?`, textOr(said[StepRefusal]))
	if len(calls) > 0 {
		b = template(b, `,"tool_calls":[?]`, list(calls, func(b []byte, bl *block) []byte {
			return e.call(append(b, '{'), bl, bl.text, `}`)
		}))
	}
	return append(e.usage(template(b, `},"logprobs":null,"finish_reason":?}]`, e.finish())), '}')
}

func (c chat) readEvent(h *said, v wire.Value) { c.readBody(h, v) }

func (chat) readBody(h *said, v wire.Value) {
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
