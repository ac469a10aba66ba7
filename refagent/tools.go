package refagent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"strings"
)

// The states of a tool call.
const (
	statusPending    = "pending"
	statusInProgress = "in_progress"
	statusCompleted  = "completed"
	statusFailed     = "failed"
)

// tool is something the model may call.
type tool struct {
	name   string
	about  string
	schema map[string]any
	// show fills in what can be told before the tool runs; optional.
	show func(w *work)
	run  func(ctx context.Context, w *work) error
}

// work is one tool call while it is carried out. run leaves its result in it.
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
	result    string // what the model is told
}

// arguments are the decoded arguments of a call.
type arguments map[string]any

func (g arguments) str(key string) string { s, _ := g[key].(string); return s }

func (g arguments) number(key string) int { n, _ := g[key].(float64); return int(n) }

// builtin lists the agent's own tools.
func builtin() []tool {
	return []tool{
		{"read_file", "Read a text file", schema("path", "line?#", "limit?#"), showPath, readFile},
		{"write_file", "Create or overwrite a text file", schema("path", "content"), showWrite, writeFile},
		{"edit_file", "Replace one passage of a text file", schema("path", "old", "new"), showEdit, editFile},
		{"delete_file", "Delete a file", schema("path"), showPath, deleteFile},
		{"move_file", "Move or rename a file", schema("path", "to"), showPath, moveFile},
		{"search", "Search the workspace for a regular expression", schema("pattern", "path?"), nil, search},
		{"run_shell", "Run a shell command", schema("command"), nil, runShell},
		{"fetch", "Get a URL", schema("url"), nil, fetch},
		{"think", "Think something through", schema("thought"), nil, think},
		{"switch_mode", "Switch the session to another mode", schema("mode"), nil, switchMode},
		{askTool, "Ask the user something", askSchema(), nil, askUser},
	}
}

// schema builds a JSON Schema: names are required strings, "?" marks optional
// ones, "#" integers.
func schema(names ...string) map[string]any {
	properties, required := map[string]any{}, []string{}
	for _, n := range names {
		kind := "string"
		if strings.HasSuffix(n, "#") {
			kind = "integer"
		}
		key := strings.TrimRight(n, "?#")
		properties[key] = map[string]any{"type": kind}
		if key == n {
			required = append(required, key)
		}
	}
	return map[string]any{"type": "object", "properties": properties, "required": required}
}

// tools are the built-in ones and those of the session's MCP servers.
func (a *agent) tools(ctx context.Context, s *session) []tool {
	return append(builtin(), s.mcp.tools(ctx)...)
}

// kindOf derives the kind of a tool from its name.
func kindOf(name string) string {
	first, _, _ := strings.Cut(name, "_")
	switch first {
	case "read", "list":
		return "read"
	case "write", "edit", "create":
		return "edit"
	case "delete", "remove":
		return "delete"
	case "move", "rename":
		return "move"
	case "search", "grep", "find":
		return "search"
	case "run", "execute":
		return "execute"
	case "think":
		return "think"
	case "fetch":
		return "fetch"
	case "switch":
		return "switch_mode"
	}
	return "other"
}

// changes tells whether a tool of this name may change anything.
func changes(name string) bool {
	if name == askTool {
		return false
	}
	switch kindOf(name) {
	case "read", "search", "think", "fetch", "switch_mode":
		return false
	}
	return true
}

var errCancelled = errors.New("cancelled")

// runTools carries out the calls of one reply, in order. When the user
// cancels a permission the later calls of the same reply do not run either.
func (a *agent) runTools(s *session, t *turn, tools []tool, calls []ModelCall) {
	var skip error
	for _, c := range calls {
		if t.ctx.Err() != nil {
			return // the record fills in the missing results
		}
		result, err := a.runTool(s, t, tools, c, skip)
		if errors.Is(err, errDismissed) {
			skip = errors.New("not run, because the user dismissed the one before")
		}
		s.write(event{Type: eventMessage, Message: &ModelMessage{Role: roleTool, CallID: c.ID, Text: result}})
	}
}

// runTool announces one call, asks where it has to, runs it, and closes it. It
// returns what the model is told, and why the tool did not succeed.
func (a *agent) runTool(s *session, t *turn, tools []tool, c ModelCall, skip error) (string, error) {
	w := &work{a: a, s: s, name: c.Name, args: arguments{}}
	argErr := json.Unmarshal([]byte(c.Arguments), &w.args)
	if w.args == nil {
		w.args = arguments{}
	}
	w.title = w.describe()
	s.mu.Lock()
	current := s.rec.mode
	s.mu.Unlock()
	if a.hooks.Mode != nil {
		current = a.hooks.Mode(s.id, current)
	}
	if current == modePlanning && changes(c.Name) {
		a.plan(s, w.title)
		return "Deferred: this is now a step of the plan. It was not carried out.", nil
	}

	s.mu.Lock()
	w.id = s.rec.callID(c.ID)
	s.mu.Unlock()
	var chosen *tool
	for i := range tools {
		if tools[i].name == c.Name {
			chosen = &tools[i]
		}
	}
	if chosen != nil && chosen.show != nil {
		chosen.show(w)
	}
	a.record(s, update{
		Tag: "tool_call", ToolCallID: w.id, Title: w.title, Kind: kindOf(c.Name), Status: statusPending,
		RawInput: w.args, Locations: w.locations, Content: anyContent(w.content),
	})

	var err error
	switch {
	case skip != nil:
		err = skip
	case chosen == nil:
		err = fmt.Errorf("there is no tool %q", c.Name)
	case argErr != nil:
		err = fmt.Errorf("the arguments are not a JSON object: %s", plain(argErr))
	case current == modeReadonly && changes(c.Name):
		err = fmt.Errorf("refused: the session is in %s mode", modeReadonly)
	default:
		if err = a.missing(chosen, w.args); err == nil {
			err = a.permit(t.ctx, s, w, current)
		}
		if err == nil {
			err = t.ctx.Err()
		}
		if err == nil {
			w.progress(nil)
			a.planStep(s, w.title, statusInProgress)
			w.content = nil
			err = chosen.run(t.ctx, w)
		}
	}
	if t.ctx.Err() != nil && err != nil {
		err = errCancelled
	}
	if err != nil {
		a.record(s, update{
			Tag: "tool_call_update", ToolCallID: w.id, Status: statusFailed,
			Content: textContent(err.Error()), RawOutput: w.rawOutput,
		})
		return "Error: " + err.Error(), err
	}
	a.record(s, update{
		Tag: "tool_call_update", ToolCallID: w.id, Status: statusCompleted,
		Content: anyContent(w.content), Locations: w.locations, RawOutput: w.rawOutput,
	})
	a.planStep(s, w.title, statusCompleted)
	return w.result, nil
}

// progress says that the tool runs now.
func (w *work) progress(content []toolContent) {
	w.a.record(w.s, update{Tag: "tool_call_update", ToolCallID: w.id, Status: statusInProgress,
		Content: anyContent(content)})
}

// anyContent keeps an empty list out of the message.
func anyContent(c []toolContent) any {
	if len(c) == 0 {
		return nil
	}
	return c
}

// missing checks the required arguments.
func (a *agent) missing(t *tool, args arguments) error {
	required, _ := t.schema["required"].([]string)
	for _, key := range required {
		if v, ok := args[key].(string); !ok || v == "" && key == "path" {
			return fmt.Errorf("the argument %q is missing", key)
		}
	}
	return nil
}

// describe is the title of a call: what is done to what.
func (w *work) describe() string {
	verb, _, _ := strings.Cut(w.name, "_")
	verb = strings.ToUpper(verb[:min(1, len(verb))]) + verb[min(1, len(verb)):]
	for _, key := range []string{"path", "command", "pattern", "question", "url", "mode"} {
		v := w.args.str(key)
		if v == "" {
			continue
		}
		if key == "path" {
			if rel, err := filepath.Rel(w.s.cwd, w.s.absolute(v)); err == nil && filepath.IsLocal(rel) {
				v = filepath.ToSlash(rel)
			}
			return verb + " " + v // a path that is cut leads nowhere
		}
		return verb + " " + titleOf(v)
	}
	if strings.HasPrefix(w.name, "mcp__") {
		return w.name
	}
	return verb
}

// absolute resolves a path of the model against the session's directory.
func (s *session) absolute(p string) string {
	if filepath.IsAbs(p) {
		return filepath.Clean(p)
	}
	return filepath.Join(s.cwd, p)
}

// matches tells whether a tool's name fits one of the patterns.
func matches(patterns []string, name string) bool {
	for _, p := range patterns {
		if ok, _ := path.Match(p, name); ok {
			return true
		}
	}
	return false
}
