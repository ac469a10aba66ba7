package fakellm

import (
	"cmp"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"

	"github.com/acp-test/acp-test/internal/lists"
	"github.com/acp-test/acp-test/wire"
)

// Anthropic is the name of Anthropic's Messages API.
const Anthropic = "anthropic"

// anthropic implements the wire format of the Messages API.
type anthropic struct{}

func (anthropic) name() string                          { return Anthropic }
func (anthropic) encoder(r *request, a *answer) encoder { return &anthropicEncoder{a: a} }

func (anthropic) key(h http.Header, _ string) (string, bool) {
	return keyIn(h, "X-Api-Key")
}

func (anthropic) problem(p *problem) []byte {
	kind := errorKind(p, map[int]string{
		401: "authentication_error", 403: "permission_error", 404: "not_found_error", 413: "request_too_large",
		429: "rate_limit_error", 500: "api_error", 529: "overloaded_error",
	}, "invalid_request_error")
	return appendJSON(nil, object{
		{"type", "error"},
		{"error", object{{"type", kind}, {"message", p.text()}}},
		{"request_id", "req_fake"},
	})
}

func (anthropic) parse(r *request, v wire.Value) *problem {
	messages := v.Get("messages")
	if messages.Kind() != wire.Array || messages.Len() == 0 {
		return &problem{status: 400, message: "messages: at least one message is required"}
	}
	if _, ok := v.Get("max_tokens").Int(); !ok && !strings.HasSuffix(r.path, "/count_tokens") {
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
			for part := range m.Get("content").Items() {
				if part.Get("type").Is("tool_use") {
					r.addCall(part.Get("id").Str(), part.Get("name").Str(), string(part.Get("input").Raw()))
				}
			}
		case "system":
			r.system = append(r.system, joined(m.Get("content")))
		default:
			return &problem{status: 400, message: "messages: Unexpected role \"" + role +
				"\". Allowed roles are \"user\" or \"assistant\"."}
		}
		r.message++
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
			r.addResult(part.Get("tool_use_id").Str(), joined(part.Get("content")))
		case part.Get("text").Exists():
			r.add(roleUser, part.Get("text").Str())
		default:
			r.add(roleUser, "")
		}
	}
}

func (anthropic) endpoint(path string) (route, bool) {
	t, ok := map[string]task{"/messages": taskGenerate, "/messages/count_tokens": taskCount}[path]
	return route{task: t}, ok
}

func (anthropic) unknown(model string) *problem {
	return &problem{status: 404, message: "model: " + model}
}
func (anthropic) tokens(n int) object { return object{{"input_tokens", n}} }

func (anthropic) model(name string) object {
	return object{{"type", "model"}, {"id", name}, {"display_name", name}, {"created_at", "2025-01-01T00:00:00Z"}}
}

func (anthropic) models(infos []any, names []string) object {
	return object{{"data", infos}, {"has_more", false}, {"first_id", names[0]}, {"last_id", names[len(names)-1]}}
}

type anthropicEncoder struct {
	a *answer
	around
}

func (*anthropicEncoder) contentType() string { return sse }

// named appends an event. rest is a template of the JSON members after the member "type".
func (e *anthropicEncoder) named(b []byte, name, rest string, values ...any) []byte {
	b = append(append(append(b, "event: "...), name...), "\ndata: {\"type\":\""...)
	return append(template(append(append(b, name...), '"'), rest, values...), "}\n\n"...)
}

func (e *anthropicEncoder) open(b []byte) []byte {
	b = e.named(b, "message_start", `,"message":?`, e.message([]any{}, nil, 1))
	return append(b, "event: ping\ndata: {\"type\":\"ping\"}\n\n"...)
}

func (e *anthropicEncoder) message(content []any, stop any, output int) object {
	return object{{"id", "msg_" + e.a.id}, {"type", "message"}, {"role", "assistant"}, {"model", e.a.model},
		{"content", content}, {"stop_reason", stop}, {"stop_sequence", nil}, {"usage", e.usage(output)}}
}

func (e *anthropicEncoder) usage(output int) object {
	return object{{"input_tokens", e.a.usage.Input}, {"cache_creation_input_tokens", 0},
		{"cache_read_input_tokens", e.a.usage.Cached}, {"output_tokens", output}}
}

func (e *anthropicEncoder) start(b []byte, bl *block) []byte {
	return e.named(b, "content_block_start", `,"index":?,"content_block":?`, bl.index, e.content(bl, false))
}

// signature is the value that the server sends as the signature of every thinking block. A client must send it back
// with the block.
const signature = "ZmFrZS1zaWduYXR1cmU="

// content renders a content block. If full is false, the block's text and signature are empty.
func (e *anthropicEncoder) content(bl *block, full bool) object {
	text, sign := "", ""
	if full {
		text, sign = bl.text, signature
	}
	switch bl.kind {
	case StepThinking:
		return object{{"type", "thinking"}, {"thinking", text}, {"signature", sign}}
	case StepTool:
		return object{{"type", "tool_use"}, {"id", "toolu_" + bl.id}, {"name", bl.call.name}, {"input", orEmptyObject(text)}}
	}
	return object{{"type", "text"}, {"text", text}}
}

// orEmptyObject returns s if it is a JSON object, and {} otherwise. Invalid arguments in a script must not make the
// whole body invalid.
func orEmptyObject(s string) json.RawMessage {
	if v, err := wire.Parse([]byte(s)); err == nil && v.Kind() == wire.Object {
		return json.RawMessage(s)
	}
	return json.RawMessage("{}")
}

func (e *anthropicEncoder) piece(b []byte, bl *block, s string) []byte {
	kind, content := "text_delta", "text"
	switch bl.kind {
	case StepThinking:
		kind, content = "thinking_delta", "thinking"
	case StepTool:
		kind, content = "input_json_delta", "partial_json"
		if bl.text == "{}" {
			s = "" // without arguments, the delta is empty
		}
	}
	return e.around.piece(b, bl, s, func() []byte {
		return e.named(nil, "content_block_delta", `,"index":?,"delta":{"type":?,?:?}`, bl.index, kind, content, hole)
	})
}

func (e *anthropicEncoder) end(b []byte, bl *block) []byte {
	if bl.late {
		b = e.piece(b, bl, bl.text) // clients read the text only from deltas
	}
	if bl.kind == StepThinking {
		b = e.named(b, "content_block_delta", `,"index":?,"delta":{"type":"signature_delta","signature":?}`, bl.index,
			signature)
	}
	return e.named(b, "content_block_stop", `,"index":?`, bl.index)
}

func (e *anthropicEncoder) stop() string {
	return map[Stop]string{StopLength: "max_tokens", StopRefusal: "refusal", StopTool: "tool_use",
		StopEnd: "end_turn"}[e.a.stop]
}

func (e *anthropicEncoder) close(b []byte) []byte {
	b = e.named(b, "message_delta", `,"delta":{"stop_reason":?,"stop_sequence":null},"usage":?`, e.stop(),
		e.usage(e.a.usage.Output))
	return e.named(b, "message_stop", "")
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
	content := lists.Map(e.a.blocks, func(bl block) any { return e.content(&bl, true) })
	return appendJSON(b, e.message(content, e.stop(), e.a.usage.Output))
}

func (a anthropic) readEvent(h *said, v wire.Value) {
	key := string(v.Get("index").Raw())
	switch v.Get("type").Str() {
	case "message_start":
		h.spent(v.Path("message.usage"), "input_tokens", "output_tokens", "cache_read_input_tokens", "")
	case "content_block_start":
		a.readBlock(h, key, v.Get("content_block"), false)
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
		a.readStop(h, v.Path("delta.stop_reason"))
		h.spent(v.Get("usage"), "input_tokens", "output_tokens", "cache_read_input_tokens", "")
	}
}

func (anthropic) readBlock(h *said, key string, b wire.Value, whole bool) {
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

func (anthropic) readStop(h *said, v wire.Value) {
	if why := v.Str(); why != "" {
		stops := map[string]Stop{"max_tokens": StopLength, "refusal": StopRefusal, "tool_use": StopTool}
		h.end(cmp.Or(stops[why], StopEnd))
	}
}

func (a anthropic) readBody(h *said, v wire.Value) {
	i := 0
	for b := range v.Get("content").Items() {
		a.readBlock(h, strconv.Itoa(i), b, true)
		i++
	}
	a.readStop(h, v.Get("stop_reason"))
	h.spent(v.Get("usage"), "input_tokens", "output_tokens", "cache_read_input_tokens", "")
}
