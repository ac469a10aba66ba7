package fakellm

import (
	"bytes"
	"cmp"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/acp-test/acp-test/internal/lists"
	"github.com/acp-test/acp-test/wire"
)

// Gemini is the name of Google's Gemini API.
const Gemini = "gemini"

// gemini implements generateContent and streamGenerateContent, which stream as SSE (alt=sse) or as a JSON array. In
// this format a function call is one part whose arguments are never split, so a gate inside the arguments delays the
// whole call.
type gemini struct{}

func (gemini) name() string                          { return Gemini }
func (gemini) encoder(r *request, a *answer) encoder { return &geminiEncoder{r: r, a: a, first: true} }

func (gemini) key(h http.Header, query string) (string, bool) {
	if q, err := url.ParseQuery(query); err == nil && h.Get("X-Goog-Api-Key") == "" && q.Get("key") != "" {
		return q.Get("key"), true
	}
	return keyIn(h, "X-Goog-Api-Key")
}

func (gemini) problem(p *problem) []byte {
	kind := errorKind(p, map[int]string{
		401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED", 404: "NOT_FOUND", 429: "RESOURCE_EXHAUSTED",
		499: "CANCELLED", 500: "INTERNAL", 503: "UNAVAILABLE", 504: "DEADLINE_EXCEEDED",
	}, "INVALID_ARGUMENT")
	return appendJSON(nil, object{{"error", object{
		{"code", p.status}, {"message", p.text()}, {"status", kind},
	}}})
}

// either returns the member with the camelCase name or, if it is missing, the member with the snake_case name.
func either(v wire.Value, camel, snake string) wire.Value {
	if m := v.Get(camel); m.Exists() {
		return m
	}
	return v.Get(snake)
}

func (gemini) parse(r *request, v wire.Value) *problem {
	if g := either(v, "generateContentRequest", "generate_content_request"); g.Exists() {
		v, r.body = g, g
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
			geminiPart(r, model, part)
		}
		r.message++
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

func geminiPart(r *request, model bool, part wire.Value) {
	call, result := either(part, "functionCall", "function_call"), either(part, "functionResponse", "function_response")
	switch {
	case model && call.Exists():
		r.addCall(call.Get("id").Str(), call.Get("name").Str(), string(call.Get("args").Raw()))
	case model:
		r.add(roleModel, part.Get("text").Str())
	case result.Exists():
		r.addResult(result.Get("id").Str(), string(result.Get("response").Raw()))
	default:
		r.add(roleUser, part.Get("text").Str())
	}
}

func (gemini) endpoint(path string) (route, bool) {
	model, verb, ok := strings.Cut(strings.TrimPrefix(path, "/models/"), ":")
	rt := route{task: taskUnknown, model: model, stream: verb == "streamGenerateContent"}
	switch verb {
	case "generateContent", "streamGenerateContent":
		rt.task = taskGenerate
	case "countTokens":
		rt.task = taskCount
	}
	return rt, ok && strings.HasPrefix(path, "/models/")
}

func (gemini) unknown(model string) *problem {
	return &problem{status: 404, message: "models/" + model +
		" is not found for API version v1beta, or is not supported for generateContent."}
}

func (gemini) model(name string) object {
	return object{
		{"name", "models/" + name}, {"version", "001"}, {"displayName", name},
		{"inputTokenLimit", 1048576}, {"outputTokenLimit", 65536},
		{"supportedGenerationMethods", []any{"generateContent", "countTokens"}},
	}
}

func (gemini) models(infos []any, _ []string) object { return object{{"models", infos}} }
func (gemini) tokens(n int) object                   { return object{{"totalTokens", n}} }

type geminiEncoder struct {
	r     *request
	a     *answer
	first bool // true until the first element of the array is written
	around
}

func (e *geminiEncoder) contentType() string {
	if e.r.array {
		return "application/json; charset=UTF-8"
	}
	return sse
}

// element appends one response of the stream, as an SSE event or as an element of the JSON array. body appends the
// response itself.
func (e *geminiEncoder) element(b []byte, body func([]byte) []byte) []byte {
	if !e.r.array {
		return append(body(append(b, "data: "...)), "\n\n"...)
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
		from := len(b)
		b = e.around.piece(b, bl, s, func() []byte { return e.response(nil, false, []any{partOfGemini(bl, hole)}) })
		return escapeSigns(b, from)
	})
}

func (e *geminiEncoder) end(b []byte, bl *block) []byte {
	if bl.kind != StepTool {
		return b
	}
	return e.said(b, false, partOfGemini(bl, bl.text))
}

// partOfGemini renders a block as a part. s is the text of a part that is not a tool call.
func partOfGemini(bl *block, s any) object {
	switch bl.kind {
	case StepTool:
		call := object{{"id", "call_" + bl.id}, {"name", bl.call.name}, {"args", orEmptyObject(bl.text)}}
		return object{{"functionCall", call}}
	case StepThinking:
		return object{{"text", s}, {"thought", true}}
	}
	return object{{"text", s}}
}

// said appends one response with one part to the stream. last is true for the final response.
func (e *geminiEncoder) said(b []byte, last bool, part object) []byte {
	return e.element(b, func(b []byte) []byte { return e.response(b, last, []any{part}) })
}

// response appends one GenerateContentResponse. The final one has the finish reason and the token counts of the
// output.
func (e *geminiEncoder) response(b []byte, last bool, parts []any) []byte {
	from := len(b)
	b = template(b, `{"candidates":[{"content":{"parts":?,"role":"model"}`, parts)
	u, total := e.a.usage, e.a.usage.Input
	usage := object{{"promptTokenCount", u.Input}}
	if last {
		reason := map[Stop]string{StopLength: "MAX_TOKENS", StopRefusal: "SAFETY"}[e.a.stop]
		b = template(b, `,"finishReason":?`, cmp.Or(reason, "STOP"))
		usage = append(usage, member{"candidatesTokenCount", u.Output})
		if u.Reasoning > 0 {
			usage = append(usage, member{"thoughtsTokenCount", u.Reasoning})
		}
		total += u.Output + u.Reasoning
	}
	if u.Cached > 0 {
		usage = append(usage, member{"cachedContentTokenCount", u.Cached})
	}
	usage = append(usage, member{"totalTokenCount", total})
	b = append(b, `,"index":0}]`...)
	if !e.a.silent {
		b = template(b, `,"usageMetadata":?`, usage)
	}
	b = template(b, `,"modelVersion":?,"responseId":?}`, e.a.model, "resp-"+e.a.id)
	return escapeSigns(b, from)
}

var signs = strings.NewReplacer("<", `\u003c`, ">", `\u003e`, "\u2028", `\u2028`, "\u2029", `\u2029`)

// escapeSigns escapes the characters that Google's servers escape in JSON strings. It changes only the text from
// index from on.
func escapeSigns(b []byte, from int) []byte {
	if !bytes.ContainsAny(b[from:], "<>\u2028\u2029") {
		return b
	}
	return append(b[:from], signs.Replace(string(b[from:]))...)
}

func (e *geminiEncoder) close(b []byte) []byte {
	if e.a.whole {
		b = e.element(b, e.whole)
	} else {
		b = e.said(b, true, object{{"text", e.a.late()}})
	}
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
	return e.response(b, true, lists.Map(e.a.blocks, func(bl block) any { return partOfGemini(&bl, bl.text) }))
}

func (g gemini) readEvent(h *said, v wire.Value) { g.readBody(h, v) }

func (gemini) readBody(h *said, v wire.Value) {
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
