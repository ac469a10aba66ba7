package refagent

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// The statuses of a tool call.
const (
	statusPending    = "pending"
	statusInProgress = "in_progress"
	statusCompleted  = "completed"
	statusFailed     = "failed"
	statusCancelled  = "cancelled" // only in version 2
)

// tool is a tool that the model may call.
type tool struct {
	name   string
	about  string
	schema object
	// show sets the parts of the call that the editor can show before the tool runs. It may be nil.
	show func(w *work)
	run  func(ctx context.Context, w *work) error
	// alias is the name of the tool in model requests; "" means name.
	alias string
}

// work is the state of one tool call. The function tool.run stores its result here.
type work struct {
	a    *agent
	s    *session
	id   string // toolCallId
	name string
	args arguments

	title     string
	locations []location
	content   []toolContent
	rawOutput any
	result    string // result that the model gets
}

// arguments contains the decoded arguments of a call.
type arguments object

func (g arguments) str(key string) string { s, _ := g[key].(string); return s }

func (g arguments) number(key string) int { n, _ := g[key].(float64); return int(n) }

// builtin returns the tools that the agent itself provides.
func (a *agent) builtin() []tool {
	list := []tool{
		{"read_file", "Read a text file", schema("path", "line?#", "limit?#"), showPath, readFile, ""},
		{"write_file", "Create or overwrite a text file", schema("path", "content"), showWrite, writeFile, ""},
		{"edit_file", "Replace one passage of a text file", schema("path", "old", "new"), showEdit, editFile, ""},
		{"delete_file", "Delete a file", schema("path"), showPath, deleteFile, ""},
		{"move_file", "Move or rename a file", schema("path", "to"), showPath, moveFile, ""},
		{"search", "Search the workspace for a regular expression", schema("pattern", "path?"), nil, search, ""},
		{"run_shell", "Run a shell command", schema("command"), nil, runShell, ""},
		{"fetch", "Get a URL", schema("url"), nil, fetch, ""},
		{"think", "Think something through", schema("thought"), nil, think, ""},
		{"plan", "Show the user the steps of the task, all of them each time", planSchema(), nil, updatePlan, ""},
		{"switch_mode", "Switch the session to another mode", schema("mode"), nil, switchMode, ""},
		{askTool, "Ask the user something", askSchema(), nil, askUser, ""},
		{"delegate", "Give a task to a subagent, a new one or one that had a task before", schema("task", "child?"), nil,
			delegate, ""},
	}
	if a.habits.PatchTool {
		list = slices.DeleteFunc(list, func(t tool) bool { return t.name == "write_file" || t.name == "edit_file" })
		list = append(list, tool{"edit_patch", "Change a file by a patch: lines that begin with a blank, - or +",
			schema("path", "patch"), showPath, patchFile, ""})
	}
	if only := a.habits.Tools; only != nil {
		list = slices.DeleteFunc(list, func(t tool) bool { return !slices.Contains(only, t.name) })
		slices.SortFunc(list, func(x, y tool) int { return slices.Index(only, x.name) - slices.Index(only, y.name) })
	}
	if a.v2() {
		list = append(list, tool{"start_command", "Start a shell command that goes on in the background", schema("command"),
			nil, startCommand, ""})
	}
	for i := range list {
		list[i].alias = a.habits.Names[list[i].name]
		list[i].schema = a.inModelWords(list[i].schema)
	}
	return list
}

// offers returns the tools in the form for model requests.
func offers(tools []tool) (list []Offer) {
	for _, t := range tools {
		list = append(list, Offer{t.called(), t.about, t.schema})
	}
	return list
}

// called returns the name of the tool in model requests.
func (t *tool) called() string { return cmp.Or(t.alias, t.name) }

// inModelWords renames the properties of a schema according to the habit Arguments. inOwnWords gives the arguments of
// a call their original names again.
func (a *agent) inModelWords(s object) object {
	if len(a.habits.Arguments) == 0 {
		return s
	}
	properties, required := object{}, []string{}
	for key, v := range s["properties"].(object) {
		properties[cmp.Or(a.habits.Arguments[key], key)] = v
	}
	for _, key := range s["required"].([]string) {
		required = append(required, cmp.Or(a.habits.Arguments[key], key))
	}
	return object{"type": "object", "properties": properties, "required": required}
}

func (a *agent) inOwnWords(args arguments) arguments {
	for own, other := range a.habits.Arguments {
		if v, ok := args[other]; ok {
			delete(args, other)
			args[own] = v
		}
	}
	return args
}

// schema returns a JSON Schema for an object with the given properties, which are required strings. A name that ends
// in "?" is optional, and one that ends in "#" is an integer.
func schema(names ...string) object {
	properties, required := object{}, []string{}
	for _, n := range names {
		kind := "string"
		if strings.HasSuffix(n, "#") {
			kind = "integer"
		}
		key := strings.TrimRight(n, "?#")
		properties[key] = object{"type": kind}
		if key == n {
			required = append(required, key)
		}
	}
	return object{"type": "object", "properties": properties, "required": required}
}

// tools returns the agent's own tools and those of the session's MCP servers.
func (a *agent) tools(ctx context.Context, s *session) []tool {
	served := s.mcp.tools(ctx)
	if a.hooks.Offer != nil {
		var names []string
		for _, t := range served {
			names = append(names, t.name)
		}
		names = a.hooks.Offer(s.id, names)
		served = slices.DeleteFunc(served, func(t tool) bool { return !slices.Contains(names, t.name) })
	}
	return append(a.builtin(), served...)
}

// kindOf returns a tool's kind, which it derives from the first word of the tool's name.
func kindOf(name string) string {
	first, _, _ := strings.Cut(name, "_")
	return cmp.Or(kinds[first], "other")
}

// kinds maps the first word of a tool's name to the tool's kind.
var kinds = map[string]string{
	"read": "read", "list": "read", "search": "search", "grep": "search", "find": "search", "fetch": "fetch",
	"write": "edit", "edit": "edit", "create": "edit", "delete": "delete", "remove": "delete",
	"move": "move", "rename": "move", "run": "execute", "execute": "execute", "think": "think", "plan": "think",
	"switch": "switch_mode",
}

// changes reports whether a tool of this name may change files or anything else.
func changes(name string) bool {
	return name != askTool && !slices.Contains([]string{"read", "search", "think", "fetch", "switch_mode"}, kindOf(name))
}

// announced returns the update that announces the call. It is sent before the tool runs.
func (w *work) announced() update {
	return update{Tag: "tool_call", ToolCallID: w.id, Title: w.title, Kind: kindOf(w.name), Status: statusPending,
		RawInput: w.args, Locations: w.locations, Content: anyContent(w.content)}
}

// progress tells the editor that the tool is running.
func (w *work) progress(content []toolContent) {
	w.a.record(w.s, update{Tag: "tool_call_update", ToolCallID: w.id, Status: statusInProgress,
		Content: anyContent(content)})
}

// anyContent returns c, or nil if c is empty, so that encoding omits it.
func anyContent(c []toolContent) any {
	if len(c) == 0 {
		return nil
	}
	return c
}

// missing returns an error if a required argument is missing.
func (a *agent) missing(t *tool, args arguments) error {
	required, _ := t.schema["required"].([]string)
	for _, key := range required {
		for own, other := range a.habits.Arguments {
			if other == key {
				key = own
			}
		}
		if v, ok := args[key].(string); !ok || v == "" && key == "path" {
			return fmt.Errorf("the argument %q is missing", key)
		}
	}
	return nil
}

// describe returns the title of a call: the verb and the object of its action.
func (w *work) describe() string {
	verb, _, _ := strings.Cut(w.name, "_")
	verb = strings.ToUpper(verb[:min(1, len(verb))]) + verb[min(1, len(verb)):]
	for _, key := range []string{"path", "command", "pattern", "question", "url", "mode", "task"} {
		v := w.args.str(key)
		if v == "" {
			continue
		}
		if key == "path" {
			if rel, err := filepath.Rel(w.s.cwd, w.s.absolute(v)); err == nil && filepath.IsLocal(rel) {
				v = filepath.ToSlash(rel)
			}
			return verb + " " + v // not shortened, because a cut path is useless
		}
		return verb + " " + titleOf(v)
	}
	if strings.HasPrefix(w.name, "mcp__") {
		return w.name
	}
	return verb
}

// absolute resolves a path from the model against the session's working directory.
func (s *session) absolute(p string) string {
	if !filepath.IsAbs(p) {
		cwd := s.cwd
		if s.a.hooks.Relative != nil {
			cwd = s.a.hooks.Relative(cwd)
		}
		p = filepath.Join(cwd, p)
	}
	if s.a.habits.RealPaths {
		p = filepath.Join(s.a.real(filepath.Dir(p)), filepath.Base(p))
	}
	return filepath.Clean(p)
}

// matches reports whether a tool's name matches one of the patterns.
func matches(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { ok, _ := path.Match(p, name); return ok })
}
