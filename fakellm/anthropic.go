package fakellm

import (
	"net/http"
	"strconv"

	"github.com/acp-test/acp-test/wire"
)

// anthropic is the Messages API.
type anthropic struct{}

func (anthropic) name() string                          { return Anthropic }
func (anthropic) encoder(r *request, a *answer) encoder { return &anthropicEncoder{a: a} }

func (anthropic) key(h http.Header, _ string) (string, bool) {
	if k := h.Get("X-Api-Key"); k != "" {
		return k, true
	}
	return bearer(h)
}

func (anthropic) problem(p *problem) []byte {
	kind := errorKind(p, map[int]string{
		401: "authentication_error", 403: "permission_error", 404: "not_found_error", 413: "request_too_large",
		429: "rate_limit_error", 500: "api_error", 529: "overloaded_error",
	}, "invalid_request_error")
	return appendJSON(nil, object{
		{"type", "error"},
		{"error", object{{"type", kind}, {"message", messageOr(p, http.StatusText(p.status))}}},
		{"request_id", "req_fake"},
	})
}

func (anthropic) parse(r *request, v wire.Value) *problem {
	messages := v.Get("messages")
	if messages.Kind() != wire.Array || messages.Len() == 0 {
		return &problem{status: 400, message: "messages: at least one message is required"}
	}
	if _, ok := v.Get("max_tokens").Int(); !ok && !hasSuffix(r.path, "/count_tokens") {
		return &problem{status: 400, message: "max_tokens: Field required"}
	}
	r.stream, _ = v.Get("stream").Bool()
	if s := v.Get("system"); s.Exists() {
		r.system = append(r.system, joined(s))
	}
	for m := range messages.Items() {
		switch role := m.Get("role").Str(); role {
		case "user":
			anthropicUser(r, m.Get("content"))
		case "assistant":
			r.add(roleModel, joined(m.Get("content")))
		case "system":
			r.system = append(r.system, joined(m.Get("content")))
		default:
			return &problem{status: 400, message: "messages: Unexpected role \"" + role +
				"\". Allowed roles are \"user\" or \"assistant\"."}
		}
	}
	for t := range v.Get("tools").Items() {
		r.tools = append(r.tools, offer{name: t.Get("name").Str(), schema: t.Get("input_schema")})
	}
	for _, f := range []wire.Value{v.Path("output_config.format"), v.Get("output_format")} {
		if f.Get("type").Is("json_schema") {
			r.wantJSON, r.schema = true, f.Get("schema")
		}
	}
	if v.Path("tool_choice.type").Is("tool") {
		forcedTool(r, v.Path("tool_choice.name").Str())
	}
	return nil
}

func anthropicUser(r *request, content wire.Value) {
	if content.Kind() == wire.String {
		r.add(roleUser, content.Str())
		return
	}
	for part := range content.Items() {
		switch {
		case part.Get("type").Is("tool_result"):
			r.add(roleResult, joined(part.Get("content")))
		case part.Get("text").Exists():
			r.add(roleUser, part.Get("text").Str())
		default:
			r.add(roleUser, "")
		}
	}
}

type anthropicEncoder struct {
	a *answer
}

func (*anthropicEncoder) contentType() string { return sse }

// named appends an event with its name; body continues after the type.
func (e *anthropicEncoder) named(b []byte, name string, body func([]byte) []byte) []byte {
	b = append(b, "event: "...)
	b = append(b, name...)
	b = append(b, "\ndata: {\"type\":\""...)
	b = append(b, name...)
	b = append(b, '"')
	b = body(b)
	return append(b, "}\n\n"...)
}

func (e *anthropicEncoder) open(b []byte) []byte {
	b = e.named(b, "message_start", func(b []byte) []byte {
		b = append(b, `,"message":`...)
		b = e.message(b, func(b []byte) []byte { return b })
		b = append(b, `"stop_reason":null,"stop_sequence":null,"usage":{`...)
		return append(e.input(b), `,"output_tokens":1}}`...)
	})
	return append(b, "event: ping\ndata: {\"type\":\"ping\"}\n\n"...)
}

// message appends a message up to its stop reason.
func (e *anthropicEncoder) message(b []byte, content func([]byte) []byte) []byte {
	b = append(b, `{"id":`...)
	b = wire.AppendString(b, "msg_"+e.a.id)
	b = append(b, `,"type":"message","role":"assistant","model":`...)
	b = wire.AppendString(b, e.a.model)
	b = append(b, `,"content":[`...)
	b = content(b)
	return append(b, `],`...)
}

func (e *anthropicEncoder) input(b []byte) []byte {
	b = append(b, `"input_tokens":`...)
	b = strconv.AppendInt(b, int64(e.a.usage.Input), 10)
	b = append(b, `,"cache_creation_input_tokens":0,"cache_read_input_tokens":`...)
	return strconv.AppendInt(b, int64(e.a.usage.Cached), 10)
}

func (e *anthropicEncoder) start(b []byte, bl *block) []byte {
	return e.named(b, "content_block_start", func(b []byte) []byte {
		b = e.at(b, bl)
		b = append(b, `,"content_block":`...)
		return e.content(b, bl, false)
	})
}

func (e *anthropicEncoder) at(b []byte, bl *block) []byte {
	return strconv.AppendInt(append(b, `,"index":`...), int64(bl.index), 10)
}

// signature is what a client has to send back with thinking.
const signature = "ZmFrZS1zaWduYXR1cmU="

// content appends a content block, empty or with its content.
func (e *anthropicEncoder) content(b []byte, bl *block, full bool) []byte {
	text, sign := "", ""
	if full {
		text, sign = bl.text, signature
	}
	switch bl.kind {
	case StepThinking:
		b = wire.AppendString(append(b, `{"type":"thinking","thinking":`...), text)
		b = wire.AppendString(append(b, `,"signature":`...), sign)
	case StepTool:
		b = wire.AppendString(append(b, `{"type":"tool_use","id":`...), "toolu_"+bl.id)
		b = wire.AppendString(append(b, `,"name":`...), bl.call.name)
		b = append(b, `,"input":`...)
		if !full {
			text = "{}"
		}
		b = append(b, orEmptyObject(text)...)
	default:
		b = wire.AppendString(append(b, `{"type":"text","text":`...), text)
	}
	return append(b, '}')
}

// orEmptyObject keeps a body that is JSON as a whole valid when the script
// gave arguments that are not.
func orEmptyObject(s string) string {
	if v, err := wire.Parse([]byte(s)); err == nil && v.Kind() == wire.Object {
		return s
	}
	return "{}"
}

func (e *anthropicEncoder) piece(b []byte, bl *block, s string) []byte {
	return e.named(b, "content_block_delta", func(b []byte) []byte {
		b = append(e.at(b, bl), `,"delta":{"type":`...)
		switch bl.kind {
		case StepThinking:
			b = append(b, `"thinking_delta","thinking":`...)
		case StepTool:
			b = append(b, `"input_json_delta","partial_json":`...)
		default:
			b = append(b, `"text_delta","text":`...)
		}
		return append(wire.AppendString(b, s), '}')
	})
}

func (e *anthropicEncoder) end(b []byte, bl *block) []byte {
	if bl.kind == StepThinking {
		b = e.named(b, "content_block_delta", func(b []byte) []byte {
			b = append(e.at(b, bl), `,"delta":{"type":"signature_delta","signature":`...)
			return append(wire.AppendString(b, signature), '}')
		})
	}
	return e.named(b, "content_block_stop", func(b []byte) []byte { return e.at(b, bl) })
}

func (e *anthropicEncoder) stop() string {
	switch e.a.stop {
	case StopLength:
		return "max_tokens"
	case StopRefusal:
		return "refusal"
	case StopTool:
		return "tool_use"
	}
	return "end_turn"
}

func (e *anthropicEncoder) close(b []byte) []byte {
	b = e.named(b, "message_delta", func(b []byte) []byte {
		b = append(b, `,"delta":{"stop_reason":"`...)
		b = append(b, e.stop()...)
		b = append(b, `","stop_sequence":null},"usage":{`...)
		b = append(e.input(b), `,"output_tokens":`...)
		return append(strconv.AppendInt(b, int64(e.a.usage.Output), 10), '}')
	})
	return e.named(b, "message_stop", func(b []byte) []byte { return b })
}

func (e *anthropicEncoder) fail(b []byte, p *problem) []byte {
	return e.event(b, string(anthropic{}.problem(p)))
}

func (e *anthropicEncoder) event(b []byte, s string) []byte {
	name := "content_block_delta"
	if len(s) > 15 && s[:15] == `{"type":"error"` {
		name = "error"
	}
	b = append(b, "event: "+name+"\ndata: "...)
	return append(append(b, s...), "\n\n"...)
}

func (e *anthropicEncoder) whole(b []byte) []byte {
	b = e.message(b, func(b []byte) []byte {
		for i := range e.a.blocks {
			if i > 0 {
				b = append(b, ',')
			}
			b = e.content(b, &e.a.blocks[i], true)
		}
		return b
	})
	b = append(b, `"stop_reason":"`...)
	b = append(b, e.stop()...)
	b = append(b, `","stop_sequence":null,"usage":{`...)
	b = append(e.input(b), `,"output_tokens":`...)
	return append(strconv.AppendInt(b, int64(e.a.usage.Output), 10), `}}`...)
}
