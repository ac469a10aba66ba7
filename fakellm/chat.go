package fakellm

import (
	"strconv"

	"github.com/acp-test/acp-test/wire"
)

// OpenAIChat is the name of OpenAI's Chat Completions API.
const OpenAIChat = "openai-chat"

// chat implements the wire format of OpenAI's Chat Completions API. It sends reasoning in reasoning_content, as
// servers for open models do.
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
	r *request
	a *answer
	around
}

func (*chatEncoder) contentType() string { return sse }

// chunk appends one chunk of the stream. choices is a template for the array of choices and the members that follow
// it.
func (e *chatEncoder) chunk(b []byte, choices string, values ...any) []byte {
	b = e.head(append(b, "data: "...), "chat.completion.chunk")
	return append(template(b, `,"choices":[`+choices, values...), "}\n\n"...)
}

func (e *chatEncoder) head(b []byte, kind string) []byte {
	return template(b, `{"id":?,"object":?,"created":?,"model":?`, "chatcmpl-"+e.a.id, kind, created, e.a.model)
}

func (e *chatEncoder) delta(b []byte, body string, values ...any) []byte {
	return e.chunk(b, `{"index":0,"delta":{`+body+`},"logprobs":null,"finish_reason":null}]`, values...)
}

func (e *chatEncoder) open(b []byte) []byte { return e.delta(b, `"role":"assistant","content":""`) }

func (e *chatEncoder) start(b []byte, bl *block) []byte {
	if bl.kind != StepTool {
		return b
	}
	return e.delta(b, `"tool_calls":[?]`, append(object{{"index", bl.tool}}, chatCall(bl, "")...))
}

// chatCall renders a tool call. args is the part of the arguments to include.
func chatCall(bl *block, args string) object {
	kind, content := callKeys(bl)
	return object{{"id", "call_" + bl.id}, {"type", kind}, {kind, object{{"name", bl.call.name}, {content, args}}}}
}

// callKeys returns the type of a tool call and the name of the member that has its arguments.
func callKeys(bl *block) (kind, content string) {
	if bl.call.custom {
		return "custom", "input"
	}
	return "function", "arguments"
}

func (e *chatEncoder) piece(b []byte, bl *block, s string) []byte {
	return e.around.piece(b, bl, s, func() []byte {
		switch bl.kind {
		case StepThinking:
			return e.delta(nil, `"reasoning_content":?`, hole)
		case StepRefusal:
			return e.delta(nil, `"refusal":?`, hole)
		case StepTool:
			kind, content := callKeys(bl)
			return e.delta(nil, `"tool_calls":[{"index":?,?:{?:?}}]`, bl.tool, kind, content, hole)
		}
		return e.delta(nil, `"content":?`, hole)
	})
}

func (e *chatEncoder) end(b []byte, _ *block) []byte { return b }

func (e *chatEncoder) close(b []byte) []byte {
	delta := object{}
	if e.a.whole {
		delta = e.message(func(bl *block) any { return append(object{{"index", bl.tool}}, chatCall(bl, bl.text)...) })
	} else if late := e.a.late(); late != "" {
		delta = object{{"content", late}}
	}
	b = e.chunk(b, `{"index":0,"delta":?,"logprobs":null,"finish_reason":?}]`, delta, e.finish())
	// Some servers send it without being asked, so a script that gives it does.
	if !e.a.silent && (e.r.includeUsage || e.a.usage != defaultUsage) {
		b = e.chunk(b, `]?`, e.usage)
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
	message := e.message(func(bl *block) any { return chatCall(bl, bl.text) })
	b = template(e.head(b, "chat.completion"), `,"choices":[{"index":0,"message":?`, message)
	b = template(b, `,"logprobs":null,"finish_reason":?}]`, e.finish())
	if !e.a.silent {
		b = e.usage(b)
	}
	return append(b, '}')
}

// message renders the model's complete message. It renders each tool call with the function call.
func (e *chatEncoder) message(call func(*block) any) object {
	said := map[StepKind]string{}
	var calls []any
	for _, bl := range e.a.blocks {
		if bl.kind == StepTool {
			calls = append(calls, call(&bl))
		} else {
			said[bl.kind] += bl.text
		}
	}
	content := any(said[StepText])
	if len(calls) > 0 || said[StepRefusal] != "" {
		content = textOr(said[StepText])
	}
	message := object{{"role", "assistant"}, {"content", content}}
	if t := said[StepThinking]; t != "" {
		message = append(message, member{"reasoning_content", t})
	}
	message = append(message, member{"refusal", textOr(said[StepRefusal])})
	if len(calls) > 0 {
		message = append(message, member{"tool_calls", calls})
	}
	return message
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
