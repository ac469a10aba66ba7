package fakellm

import (
	"net/http"
	"strconv"

	"github.com/acp-test/acp-test/wire"
)

// chat is OpenAI's Chat Completions API, with reasoning in reasoning_content
// as the servers do that offer open models by it.
type chat struct{}

func (chat) name() string                                   { return OpenAIChat }
func (chat) problem(p *problem) []byte                      { return openaiProblem(p) }
func (chat) key(h http.Header, query string) (string, bool) { return openaiKey(h, query) }
func (chat) encoder(r *request, a *answer) encoder          { return &chatEncoder{r: r, a: a} }

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
		case "tool", "function":
			r.add(roleResult, content)
		default:
			return &problem{status: 400, message: "Invalid value: '" + role +
				"'. Supported values are: 'system', 'developer', 'user', 'assistant', and 'tool'."}
		}
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
	b = append(b, `{"id":`...)
	b = wire.AppendString(b, "chatcmpl-"+e.a.id)
	b = append(b, `,"object":"`...)
	b = append(b, kind...)
	b = append(b, `","created":`...)
	b = strconv.AppendInt(b, created, 10)
	b = append(b, `,"model":`...)
	return wire.AppendString(b, e.a.model)
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
		b = append(b, `"tool_calls":[{"index":`...)
		b = strconv.AppendInt(b, int64(bl.tool), 10)
		b = append(b, ',')
		return append(e.call(b, bl, ""), `}]`...)
	})
}

// call appends the members of a tool call.
func (e *chatEncoder) call(b []byte, bl *block, args string) []byte {
	b = append(b, `"id":`...)
	b = wire.AppendString(b, "call_"+bl.id)
	kind, member := "function", "arguments"
	if bl.call.custom {
		kind, member = "custom", "input"
	}
	b = append(b, `,"type":"`+kind+`","`+kind+`":{"name":`...)
	b = wire.AppendString(b, bl.call.name)
	b = append(b, `,"`+member+`":`...)
	b = wire.AppendString(b, args)
	return append(b, '}')
}

func (e *chatEncoder) piece(b []byte, bl *block, s string) []byte {
	return e.delta(b, func(b []byte) []byte {
		switch bl.kind {
		case StepThinking:
			return wire.AppendString(append(b, `"reasoning_content":`...), s)
		case StepRefusal:
			return wire.AppendString(append(b, `"refusal":`...), s)
		case StepTool:
			b = append(b, `"tool_calls":[{"index":`...)
			b = strconv.AppendInt(b, int64(bl.tool), 10)
			if bl.call.custom {
				b = append(b, `,"custom":{"input":`...)
			} else {
				b = append(b, `,"function":{"arguments":`...)
			}
			return append(wire.AppendString(b, s), `}}]`...)
		}
		return wire.AppendString(append(b, `"content":`...), s)
	})
}

func (e *chatEncoder) end(b []byte, _ *block) []byte { return b }

func (e *chatEncoder) close(b []byte) []byte {
	b = e.chunk(b, func(b []byte) []byte {
		b = append(b, `{"index":0,"delta":{},"logprobs":null,"finish_reason":"`...)
		b = append(b, e.finish()...)
		return append(b, `"}`...)
	}, false)
	if e.r.includeUsage {
		b = e.chunk(b, func(b []byte) []byte { return b }, true)
	}
	return append(b, "data: [DONE]\n\n"...)
}

func (e *chatEncoder) finish() string {
	switch e.a.stop {
	case StopLength:
		return "length"
	case StopRefusal:
		return "content_filter"
	case StopTool:
		return "tool_calls"
	}
	return "stop"
}

func (e *chatEncoder) usage(b []byte) []byte {
	u := e.a.usage
	b = append(b, `,"usage":{"prompt_tokens":`...)
	b = strconv.AppendInt(b, int64(u.Input), 10)
	b = append(b, `,"completion_tokens":`...)
	b = strconv.AppendInt(b, int64(u.Output), 10)
	b = append(b, `,"total_tokens":`...)
	b = strconv.AppendInt(b, int64(u.Input+u.Output), 10)
	b = append(b, `,"prompt_tokens_details":{"cached_tokens":`...)
	b = strconv.AppendInt(b, int64(u.Cached), 10)
	b = append(b, `},"completion_tokens_details":{"reasoning_tokens":`...)
	b = strconv.AppendInt(b, int64(u.Reasoning), 10)
	return append(b, `}}`...)
}

func (e *chatEncoder) fail(b []byte, p *problem) []byte { return e.event(b, string(openaiProblem(p))) }

func (e *chatEncoder) event(b []byte, s string) []byte {
	return append(append(append(b, "data: "...), s...), "\n\n"...)
}

func (e *chatEncoder) whole(b []byte) []byte {
	var text, thinking, refusal string
	var calls []*block
	for i := range e.a.blocks {
		switch bl := &e.a.blocks[i]; bl.kind {
		case StepText:
			text += bl.text
		case StepThinking:
			thinking += bl.text
		case StepRefusal:
			refusal += bl.text
		case StepTool:
			calls = append(calls, bl)
		}
	}
	b = e.head(b, "chat.completion")
	b = append(b, `,"choices":[{"index":0,"message":{"role":"assistant","content":`...)
	if text == "" && (len(calls) > 0 || refusal != "") {
		b = append(b, "null"...)
	} else {
		b = wire.AppendString(b, text)
	}
	if thinking != "" {
		b = wire.AppendString(append(b, `,"reasoning_content":`...), thinking)
	}
	if refusal != "" {
		b = wire.AppendString(append(b, `,"refusal":`...), refusal)
	} else {
		b = append(b, `,"refusal":null`...)
	}
	for i, bl := range calls {
		if i == 0 {
			b = append(b, `,"tool_calls":[{`...)
		} else {
			b = append(b, `,{`...)
		}
		b = append(e.call(b, bl, bl.text), '}')
	}
	if len(calls) > 0 {
		b = append(b, ']')
	}
	b = append(b, `},"logprobs":null,"finish_reason":"`...)
	b = append(b, e.finish()...)
	b = append(b, `"}]`...)
	return append(e.usage(b), '}')
}
