package fakellm

import (
	"net/http"
	"slices"
	"strings"

	"github.com/acp-test/acp-test/internal/lists"
)

// task is the purpose of a request, such as generating an answer or counting tokens.
type task uint8

const (
	taskGenerate task = iota
	taskModels
	taskModel
	taskCount
	taskUnknown
)

// route is the meaning of a request's method and path.
type route struct {
	task   task
	format format
	model  string // the model in the path; "" if there is none
	stream bool   // the path asks for a stream
	run    string
}

// findRoute reads a path: an optional /run/NAME, an optional API name and version, and the endpoint. Agents that
// share a server use different NAMEs.
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
	for _, f := range formats() {
		if e, ok := f.endpoint(path); ok && r.Method == http.MethodPost {
			e.format, e.run = f, rt.run
			rt = e
		}
	}
	if model, one := strings.CutPrefix(path, "/models/"); r.Method == http.MethodGet && one {
		rt.task, rt.model = taskModel, model
	} else if r.Method == http.MethodGet && path == "/models" {
		rt.task = taskModels
	}
	return rt
}

// guessFormat returns the wire format for an endpoint that several APIs have. It looks at the API name, the version,
// the path and the headers.
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

// exists reports whether the script allows a model name. A script without models allows every name.
func (s *Server) exists(model string) bool {
	return len(s.cfg.Script.Models) == 0 || slices.Contains(s.cfg.Script.Models, strings.TrimPrefix(model, "models/"))
}

// models returns the names for the response to a request for the list of models.
func (s *Server) models() []string {
	if len(s.cfg.Script.Models) > 0 {
		return s.cfg.Script.Models
	}
	return []string{"fake-model"}
}

func (s *Server) modelList(f format) []byte {
	names := s.models()
	return appendJSON(nil, f.models(lists.Map(names, func(name string) any { return f.model(name) }), names))
}

// tokens returns the response to a request to count tokens. It counts one token for every four bytes of text.
func tokens(f format, r *request) []byte {
	n := len(r.systemText())
	for _, it := range r.items {
		n += len(it.text)
	}
	return appendJSON(nil, f.tokens(n/4+1))
}
