package fakellm

import (
	"net/http"
	"slices"
	"strings"
)

// task is what a path asks for.
type task uint8

const (
	taskGenerate task = iota
	taskModels
	taskModel
	taskCount
	taskUnknown
)

// route is what can be told from method and path alone.
type route struct {
	task   task
	format format
	model  string // in the path
	stream bool   // the path says so
	run    string
}

// findRoute reads a path: an optional /run/NAME that tells the agents that
// share a server apart, an optional API name and version, and the endpoint.
func findRoute(r *http.Request) route {
	rt := route{task: taskUnknown}
	path := r.URL.Path
	if rest, ok := strings.CutPrefix(path, "/run/"); ok {
		rt.run, path, _ = strings.Cut(rest, "/")
		path = "/" + path
	}
	api := ""
	for _, name := range []string{"openai", "anthropic", "gemini"} {
		if rest, ok := strings.CutPrefix(path, "/"+name+"/"); ok {
			api, path = name, "/"+rest
		}
	}
	version := ""
	for _, v := range []string{"v1", "v1beta", "v1alpha", "v1beta1"} {
		if rest, ok := strings.CutPrefix(path, "/"+v+"/"); ok && version == "" {
			version, path = v, "/"+rest
		}
	}
	if rest, ok := strings.CutPrefix(path, "/openai/"); ok && version != "" {
		api, path = "openai", "/"+rest
	}
	rt.format = guessFormat(r, api, version, path)
	model, verb, isVerb := strings.Cut(strings.TrimPrefix(path, "/models/"), ":")
	switch {
	case r.Method == http.MethodPost && path == "/chat/completions":
		rt.task, rt.format = taskGenerate, chat{}
	case r.Method == http.MethodPost && path == "/responses":
		rt.task, rt.format = taskGenerate, responses{}
	case r.Method == http.MethodPost && path == "/messages":
		rt.task, rt.format = taskGenerate, anthropic{}
	case r.Method == http.MethodPost && path == "/messages/count_tokens":
		rt.task, rt.format = taskCount, anthropic{}
	case r.Method == http.MethodPost && strings.HasPrefix(path, "/models/") && isVerb:
		rt.format, rt.model = gemini{}, model
		switch verb {
		case "generateContent":
			rt.task = taskGenerate
		case "streamGenerateContent":
			rt.task, rt.stream = taskGenerate, true
		case "countTokens":
			rt.task = taskCount
		}
	case r.Method == http.MethodGet && path == "/models":
		rt.task = taskModels
	case r.Method == http.MethodGet && strings.HasPrefix(path, "/models/"):
		rt.task, rt.model = taskModel, strings.TrimPrefix(path, "/models/")
	}
	return rt
}

// guessFormat says in whose form an answer is expected where the endpoint is
// one that several APIs have.
func guessFormat(r *http.Request, api, version, path string) format {
	switch {
	case api == "openai":
		return chat{}
	case api == "anthropic", r.Header.Get("Anthropic-Version") != "", strings.HasPrefix(path, "/messages"):
		return anthropic{}
	case api == "gemini", strings.HasPrefix(version, "v1beta"), version == "v1alpha", r.Header.Get("X-Goog-Api-Key") != "":
		return gemini{}
	}
	return chat{}
}

// exists reports whether a model is one of the script's.
func (s *Server) exists(model string) bool {
	return len(s.cfg.Script.Models) == 0 || slices.Contains(s.cfg.Script.Models, strings.TrimPrefix(model, "models/"))
}

func noSuchModel(f format, model string) *problem {
	switch f.name() {
	case Anthropic:
		return &problem{status: 404, message: "model: " + model}
	case Gemini:
		return &problem{status: 404, message: "models/" + model +
			" is not found for API version v1beta, or is not supported for generateContent."}
	}
	return &problem{status: 404, code: "model_not_found", message: "The model `" + model +
		"` does not exist or you do not have access to it."}
}

// models returns the names a list of models shows.
func (s *Server) models() []string {
	if len(s.cfg.Script.Models) > 0 {
		return s.cfg.Script.Models
	}
	return []string{"fake-model"}
}

func modelInfo(f format, name string) object {
	switch f.name() {
	case Anthropic:
		return object{{"type", "model"}, {"id", name}, {"display_name", name}, {"created_at", "2025-01-01T00:00:00Z"}}
	case Gemini:
		return object{
			{"name", "models/" + name}, {"version", "001"}, {"displayName", name},
			{"inputTokenLimit", 1048576}, {"outputTokenLimit", 65536},
			{"supportedGenerationMethods", []any{"generateContent", "countTokens"}},
		}
	}
	return object{{"id", name}, {"object", "model"}, {"created", created}, {"owned_by", "fakellm"}}
}

func (s *Server) modelList(f format) []byte {
	list := []any{}
	names := s.models()
	for _, name := range names {
		list = append(list, modelInfo(f, name))
	}
	switch f.name() {
	case Anthropic:
		return appendJSON(nil, object{{"data", list}, {"has_more", false}, {"first_id", names[0]},
			{"last_id", names[len(names)-1]}})
	case Gemini:
		return appendJSON(nil, object{{"models", list}})
	}
	return appendJSON(nil, object{{"object", "list"}, {"data", list}})
}

// tokens answers a request to count tokens: one for every four bytes of text.
func tokens(f format, r *request) []byte {
	n := len(r.systemText())
	for _, it := range r.items {
		n += len(it.text)
	}
	n = n/4 + 1
	if f.name() == Gemini {
		return appendJSON(nil, object{{"totalTokens", n}})
	}
	return appendJSON(nil, object{{"input_tokens", n}})
}
