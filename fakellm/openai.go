package fakellm

import (
	"net/http"

	"github.com/acp-test/acp-test/wire"
)

// openai implements the methods of format that Chat Completions and Responses share.
type openai struct{}

func (openai) problem(p *problem) []byte {
	kind := errorKind(p, map[int]string{
		401: "invalid_request_error", 404: "invalid_request_error", 413: "invalid_request_error",
		429: "rate_limit_exceeded", 500: "server_error",
	}, "invalid_request_error")
	return appendJSON(nil, object{{"error", object{
		{"message", p.text()}, {"type", kind}, {"param", nil}, {"code", textOr(p.code)},
	}}})
}

func (openai) key(h http.Header, _ string) (string, bool) {
	return keyIn(h, "Api-Key")
}

// formatWanted reads whether the client asks for JSON output. v is response_format (Chat Completions) or text.format
// (Responses).
func formatWanted(r *request, v wire.Value) {
	switch {
	case v.Get("type").Is("json_object"):
		r.wantJSON = true
	case v.Get("type").Is("json_schema"):
		r.wantJSON = true
		if r.schema = v.Get("schema"); !r.schema.Exists() {
			r.schema = v.Path("json_schema.schema")
		}
	}
}

// forcedTool recognises structured output that is requested through a tool: the request offers exactly one tool and
// forces the model to call it.
func forcedTool(r *request, name string) {
	if name == "" || len(r.tools) != 1 || r.tools[0].name != name || r.wantJSON {
		return
	}
	r.wantJSON, r.forced, r.schema = true, name, r.tools[0].schema
}

func (openai) unknown(model string) *problem {
	return &problem{status: 404, code: "model_not_found", message: "The model `" + model +
		"` does not exist or you do not have access to it."}
}

func (openai) model(name string) object {
	return object{{"id", name}, {"object", "model"}, {"created", created}, {"owned_by", "fakellm"}}
}

func (openai) tokens(n int) object { return object{{"input_tokens", n}} }

func (openai) models(infos []any, _ []string) object {
	return object{{"object", "list"}, {"data", infos}}
}
