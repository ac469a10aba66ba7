package fakellm

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/acp-test/acp-test/wire"
)

// gemini is generateContent and streamGenerateContent, as SSE (alt=sse) or as
// a JSON array. A function call is one part here: its arguments are not cut,
// and a gate inside them holds the whole call.
type gemini struct{}

func (gemini) name() string                          { return Gemini }
func (gemini) encoder(r *request, a *answer) encoder { return &geminiEncoder{r: r, a: a, first: true} }

func (gemini) key(h http.Header, query string) (string, bool) {
	if k := h.Get("X-Goog-Api-Key"); k != "" {
		return k, true
	}
	if q, err := url.ParseQuery(query); err == nil && q.Get("key") != "" {
		return q.Get("key"), true
	}
	return bearer(h)
}

func (gemini) problem(p *problem) []byte {
	kind := errorKind(p, map[int]string{
		401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED", 404: "NOT_FOUND", 429: "RESOURCE_EXHAUSTED",
		499: "CANCELLED", 500: "INTERNAL", 503: "UNAVAILABLE", 504: "DEADLINE_EXCEEDED",
	}, "INVALID_ARGUMENT")
	return appendJSON(nil, object{{"error", object{
		{"code", p.status}, {"message", messageOr(p, http.StatusText(p.status))}, {"status", kind},
	}}})
}

// either reads a member that is spelt in camel case or with underscores.
func either(v wire.Value, camel, snake string) wire.Value {
	if m := v.Get(camel); m.Exists() {
		return m
	}
	return v.Get(snake)
}

func (gemini) parse(r *request, v wire.Value) *problem {
	if g := either(v, "generateContentRequest", "generate_content_request"); g.Exists() {
		v = g
	}
	contents := v.Get("contents")
	if contents.Kind() != wire.Array || contents.Len() == 0 {
		return &problem{status: 400, message: "* GenerateContentRequest.contents: contents is not specified"}
	}
	if s := either(v, "systemInstruction", "system_instruction"); s.Exists() {
		r.system = append(r.system, joined(s.Get("parts")))
	}
	for c := range contents.Items() {
		model := c.Get("role").Is("model")
		if role := c.Get("role"); !model && role.Exists() && !role.Is("user") && !role.Is("function") {
			return &problem{status: 400, message: "Please use a valid role: user, model."}
		}
		for part := range c.Get("parts").Items() {
			result := either(part, "functionResponse", "function_response")
			switch {
			case model:
				r.add(roleModel, part.Get("text").Str())
			case result.Exists():
				r.add(roleResult, string(result.Get("response").Raw()))
			default:
				r.add(roleUser, part.Get("text").Str())
			}
		}
	}
	for t := range v.Get("tools").Items() {
		for d := range either(t, "functionDeclarations", "function_declarations").Items() {
			schema := either(d, "parametersJsonSchema", "parameters_json_schema")
			if !schema.Exists() {
				schema = d.Get("parameters")
			}
			r.tools = append(r.tools, offer{name: d.Get("name").Str(), schema: schema})
		}
	}
	g := either(v, "generationConfig", "generation_config")
	r.wantJSON = either(g, "responseMimeType", "response_mime_type").Is("application/json")
	for _, names := range [][2]string{{"responseJsonSchema", "response_json_schema"},
		{"responseSchema", "response_schema"}} {
		if s := either(g, names[0], names[1]); s.Exists() && !r.schema.Exists() {
			r.wantJSON, r.schema = true, s
		}
	}
	f := either(either(v, "toolConfig", "tool_config"), "functionCallingConfig", "function_calling_config")
	if f.Get("mode").Is("ANY") {
		forcedTool(r, either(f, "allowedFunctionNames", "allowed_function_names").Path("0").Str())
	}
	return nil
}

type geminiEncoder struct {
	r     *request
	a     *answer
	first bool   // no element of the array was written
	tail  []byte // what every response but the last ends with
}

func (e *geminiEncoder) contentType() string {
	if e.r.array {
		return "application/json; charset=UTF-8"
	}
	return sse
}

// element appends one response of the stream.
func (e *geminiEncoder) element(b []byte, body func([]byte) []byte) []byte {
	if !e.r.array {
		return data(b, body)
	}
	if !e.first {
		b = append(b, ",\r\n"...)
	}
	e.first = false
	return body(b)
}

func (e *geminiEncoder) open(b []byte) []byte {
	if e.r.array {
		return append(b, '[')
	}
	return b
}

func (e *geminiEncoder) start(b []byte, _ *block) []byte { return b }

func (e *geminiEncoder) piece(b []byte, bl *block, s string) []byte {
	if bl.kind == StepTool {
		return b
	}
	return e.element(b, func(b []byte) []byte {
		return e.response(b, func(b []byte) []byte { return e.text(b, bl, s) }, false)
	})
}

func (e *geminiEncoder) end(b []byte, bl *block) []byte {
	if bl.kind != StepTool {
		return b
	}
	return e.element(b, func(b []byte) []byte {
		return e.response(b, func(b []byte) []byte { return e.call(b, bl) }, false)
	})
}

func (e *geminiEncoder) text(b []byte, bl *block, s string) []byte {
	b = wire.AppendString(append(b, `{"text":`...), s)
	if bl.kind == StepThinking {
		b = append(b, `,"thought":true`...)
	}
	return append(b, '}')
}

func (e *geminiEncoder) call(b []byte, bl *block) []byte {
	b = wire.AppendString(append(b, `{"functionCall":{"id":`...), "call_"+bl.id)
	b = wire.AppendString(append(b, `,"name":`...), bl.call.name)
	b = append(b, `,"args":`...)
	b = append(b, orEmptyObject(bl.text)...)
	return append(b, `}}`...)
}

// response appends one GenerateContentResponse; the last has the reason.
func (e *geminiEncoder) response(b []byte, parts func([]byte) []byte, last bool) []byte {
	b = append(b, `{"candidates":[{"content":{"parts":[`...)
	b = parts(b)
	b = append(b, `],"role":"model"}`...)
	if last {
		return e.rest(b, true)
	}
	if e.tail == nil {
		e.tail = e.rest(nil, false)
	}
	return append(b, e.tail...)
}

// rest appends what stands behind the content.
func (e *geminiEncoder) rest(b []byte, last bool) []byte {
	if last {
		b = append(b, `,"finishReason":"`...)
		b = append(b, e.finish()...)
		b = append(b, '"')
	}
	b = append(b, `,"index":0}],"usageMetadata":{"promptTokenCount":`...)
	u := e.a.usage
	b = strconv.AppendInt(b, int64(u.Input), 10)
	total := u.Input
	if last {
		b = append(b, `,"candidatesTokenCount":`...)
		b = strconv.AppendInt(b, int64(u.Output), 10)
		total += u.Output
		if u.Reasoning > 0 {
			b = append(b, `,"thoughtsTokenCount":`...)
			b = strconv.AppendInt(b, int64(u.Reasoning), 10)
			total += u.Reasoning
		}
	}
	if u.Cached > 0 {
		b = append(b, `,"cachedContentTokenCount":`...)
		b = strconv.AppendInt(b, int64(u.Cached), 10)
	}
	b = append(b, `,"totalTokenCount":`...)
	b = strconv.AppendInt(b, int64(total), 10)
	b = append(b, `},"modelVersion":`...)
	b = wire.AppendString(b, e.a.model)
	b = append(b, `,"responseId":`...)
	b = wire.AppendString(b, "resp-"+e.a.id)
	return append(b, '}')
}

func (e *geminiEncoder) finish() string {
	switch e.a.stop {
	case StopLength:
		return "MAX_TOKENS"
	case StopRefusal:
		return "SAFETY"
	}
	return "STOP"
}

func (e *geminiEncoder) close(b []byte) []byte {
	b = e.element(b, func(b []byte) []byte {
		return e.response(b, func(b []byte) []byte { return append(b, `{"text":""}`...) }, true)
	})
	if e.r.array {
		b = append(b, ']')
	}
	return b
}

func (e *geminiEncoder) fail(b []byte, p *problem) []byte {
	return e.event(b, string(gemini{}.problem(p)))
}

func (e *geminiEncoder) event(b []byte, s string) []byte {
	return e.element(b, func(b []byte) []byte { return append(b, s...) })
}

func (e *geminiEncoder) whole(b []byte) []byte {
	return e.response(b, func(b []byte) []byte {
		for i := range e.a.blocks {
			if i > 0 {
				b = append(b, ',')
			}
			if bl := &e.a.blocks[i]; bl.kind == StepTool {
				b = e.call(b, bl)
			} else {
				b = e.text(b, bl, bl.text)
			}
		}
		return b
	}, true)
}

func hasSuffix(path, suffix string) bool {
	path, _, _ = strings.Cut(path, "?")
	return strings.HasSuffix(path, suffix)
}
