package refagent

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// The states of a tool call.
const (
	statusPending    = "pending"
	statusInProgress = "in_progress"
	statusCompleted  = "completed"
	statusFailed     = "failed"
	statusCancelled  = "cancelled" // in version 2 alone
)

// tool is something the model may call.
type tool struct {
	name   string
	about  string
	schema map[string]any
	// show fills in what can be told before the tool runs; optional.
	show func(w *work)
	run  func(ctx context.Context, w *work) error
	// alias is what the model calls it; "" is the name.
	alias string
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
		{"switch_mode", "Switch the session to another mode", schema("mode"), nil, switchMode, ""},
		{askTool, "Ask the user something", askSchema(), nil, askUser, ""},
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
	if a.second() {
		list = append(list, tool{"start_command", "Start a shell command that goes on in the background", schema("command"),
			nil, startCommand, ""})
	}
	for i := range list {
		list[i].alias = a.habits.Names[list[i].name]
		list[i].schema = a.inModelWords(list[i].schema)
	}
	return list
}

// called is what the model calls the tool.
func (t *tool) called() string { return cmp.Or(t.alias, t.name) }

// inModelWords names the properties of a schema as the model knows them,
// inOwnWords names arguments as the tools do.
func (a *agent) inModelWords(s map[string]any) map[string]any {
	if len(a.habits.Arguments) == 0 {
		return s
	}
	properties, required := map[string]any{}, []string{}
	for key, v := range s["properties"].(map[string]any) {
		properties[cmp.Or(a.habits.Arguments[key], key)] = v
	}
	for _, key := range s["required"].([]string) {
		required = append(required, cmp.Or(a.habits.Arguments[key], key))
	}
	return map[string]any{"type": "object", "properties": properties, "required": required}
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
	return append(a.builtin(), s.mcp.tools(ctx)...)
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
// cancels a permission the later calls of the same reply do not run either. An
// error ends the turn.
func (a *agent) runTools(s *session, t *turn, tools []tool, calls []ModelCall) (rejected bool, err error) {
	if a.habits.ExtraQuestion {
		t.barred = a.mayUseTools(s, t)
	}
	all := make([]*step, len(calls))
	done := func(st *step) {
		result, failed := a.carryOut(s, t, st)
		var own *rpcError
		switch {
		case errors.Is(failed, errRejected):
			rejected = true
		case errors.As(failed, &own) && a.habits.ErrorsEnd && t.ctx.Err() == nil && st.work.name != askTool:
			err = own
		}
		s.write(event{Type: eventMessage, Message: &ModelMessage{Role: roleTool, CallID: st.call.ID, Text: result}})
	}
	if a.habits.AskOrder != "" || a.habits.Parallel {
		for i, c := range calls {
			all[i] = a.announceCall(s, t, tools, c, nil)
		}
		a.allowAll(s, t, all)
		if a.habits.Parallel {
			a.sideBySide(s, t, all)
		}
		for _, st := range all {
			done(st)
		}
		return rejected, err
	}
	var skip error
	for _, c := range calls {
		if t.ctx.Err() != nil || err != nil {
			return rejected, err // the record fills in the missing results
		}
		st := a.announceCall(s, t, tools, c, skip)
		a.allow(s, t, st)
		if errors.Is(st.err, errDismissed) {
			skip = errSkipped
		}
		done(st)
	}
	return rejected, err
}

var errSkipped = errors.New("not run, because the user dismissed the one before")

// allowAll asks for all calls of a reply, in the order that is the habit.
func (a *agent) allowAll(s *session, t *turn, all []*step) {
	order := slices.Clone(all)
	if a.habits.AskOrder == "reversed" {
		slices.Reverse(order)
	}
	if a.habits.AskOrder == "together" {
		var asked sync.WaitGroup
		for _, st := range order {
			asked.Go(func() { a.allow(s, t, st) })
		}
		asked.Wait()
		return
	}
	dismissed := false
	for _, st := range order {
		if dismissed && st.err == nil {
			st.err = errSkipped
		}
		a.allow(s, t, st)
		dismissed = dismissed || errors.Is(st.err, errDismissed)
	}
}

// sideBySide runs calls at the same time.
func (a *agent) sideBySide(s *session, t *turn, all []*step) {
	var running sync.WaitGroup
	for _, st := range all {
		running.Go(func() { a.execute(s, t, st) })
	}
	running.Wait()
}

// step is one call of a reply on its way.
type step struct {
	call    ModelCall
	work    *work
	chosen  *tool
	mode    string
	err     error // why it does not run, or did not succeed
	ran     bool
	planned bool // it became a step of the plan
}

// announceCall tells the editor of a call.
func (a *agent) announceCall(s *session, t *turn, tools []tool, c ModelCall, skip error) *step {
	w := &work{a: a, s: s, name: c.Name, args: arguments{}}
	st := &step{call: c, work: w, err: skip}
	for i := range tools {
		if tools[i].called() == c.Name {
			st.chosen = &tools[i]
			w.name = tools[i].name
		}
	}
	argErr := json.Unmarshal([]byte(c.Arguments), &w.args)
	if w.args == nil {
		w.args = arguments{}
	}
	w.args = a.inOwnWords(w.args)
	w.title = w.describe()
	s.mu.Lock()
	st.mode = s.rec.mode
	s.mu.Unlock()
	if a.hooks.Mode != nil {
		st.mode = a.hooks.Mode(s.id, st.mode)
	}
	if st.mode == modePlanning && changes(w.name) {
		a.plan(s, w.title)
		st.planned = true
		return st
	}

	s.mu.Lock()
	w.id = s.rec.callID(c.ID)
	s.mu.Unlock()
	if st.chosen != nil && st.chosen.show != nil {
		st.chosen.show(w)
	}
	a.record(s, update{
		Tag: "tool_call", ToolCallID: w.id, Title: w.title, Kind: kindOf(w.name), Status: statusPending,
		RawInput: w.args, Locations: w.locations, Content: anyContent(w.content),
	})
	switch {
	case skip != nil:
	case st.chosen == nil:
		st.err = fmt.Errorf("there is no tool %q", c.Name)
	case argErr != nil:
		st.err = fmt.Errorf("the arguments are not a JSON object: %s", plain(argErr))
	case st.mode == modeReadonly && changes(w.name):
		st.err = fmt.Errorf("refused: the session is in %s mode", modeReadonly)
	default:
		st.err = a.missing(st.chosen, w.args)
	}
	return st
}

// allow asks the user where it has to.
func (a *agent) allow(s *session, t *turn, st *step) {
	switch {
	case st.planned || st.err != nil:
	case t.barred != nil:
		st.err = t.barred
	default:
		st.err = a.permit(t.ctx, s, st.work, st.mode)
	}
	if st.err == nil {
		st.err = t.ctx.Err()
	}
}

// execute runs an allowed call, once.
func (a *agent) execute(s *session, t *turn, st *step) {
	if st.planned || st.err != nil || st.ran {
		return
	}
	if st.err = t.ctx.Err(); st.err != nil {
		return
	}
	st.ran = true
	st.work.progress(nil)
	a.planStep(s, st.work.title, statusInProgress)
	st.work.content = nil
	own, done := s.stoppable(t.ctx, st.work.id)
	st.err = st.chosen.run(own, st.work)
	if done() && st.err != nil {
		st.err = errStopped
	}
}

// carryOut runs a call and closes it. It returns what the model is told, and why
// the tool did not succeed.
func (a *agent) carryOut(s *session, t *turn, st *step) (string, error) {
	if st.planned {
		return "Deferred: this is now a step of the plan. It was not carried out.", nil
	}
	a.execute(s, t, st)
	w, err := st.work, st.err
	if t.ctx.Err() != nil && err != nil {
		err = errCancelled
	}
	if err != nil {
		failed := update{
			Tag: "tool_call_update", ToolCallID: w.id, Status: statusFailed,
			Content: textContent(err.Error()), RawOutput: w.rawOutput,
		}
		if a.second() && (err == errCancelled || err == errStopped) {
			failed.Status = statusCancelled
		}
		switch {
		case err == errCancelled && a.habits.LeavesCalls:
			s.write(event{Type: eventUpdate, Update: &failed})
		case err == errCancelled && a.habits.CompletesCalls && st.ran:
			failed.Status = statusCompleted
			fallthrough
		default:
			a.record(s, failed)
		}
		return "Error: " + err.Error(), err
	}
	a.record(s, update{
		Tag: "tool_call_update", ToolCallID: w.id, Status: statusCompleted,
		Content: anyContent(w.content), Locations: w.locations, RawOutput: w.rawOutput,
	})
	a.planStep(s, w.title, statusCompleted)
	return w.result, nil
}

// mayUseTools asks the user before the first call of a turn; the error is why no
// tool may be used in it.
func (a *agent) mayUseTools(s *session, t *turn) error {
	if t.asked {
		return t.barred
	}
	t.asked = true
	s.mu.Lock()
	w := &work{a: a, s: s, name: "confirm", title: "Use tools in this turn", id: s.rec.callID("confirm")}
	s.mu.Unlock()
	a.record(s, update{Tag: "tool_call", ToolCallID: w.id, Title: w.title, Kind: "other", Status: statusPending})
	_, kind, err := a.question(t.ctx, s, w, []permissionOption{
		{"tools", "Use tools", kindAllowOnce}, {"no-tools", "Use none", kindRejectOnce}})
	status, barred := statusCompleted, error(nil)
	if err != nil || kind != kindAllowOnce {
		status, barred = statusFailed, fmt.Errorf("no tool may be used in this turn: %w", cmp.Or(err, errRejected))
	}
	if t.ctx.Err() == nil || !a.habits.LeavesCalls {
		a.record(s, update{Tag: "tool_call_update", ToolCallID: w.id, Status: status})
	}
	return barred
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
	if !filepath.IsAbs(p) {
		p = filepath.Join(s.cwd, p)
	}
	if s.a.habits.RealPaths {
		p = filepath.Join(s.a.real(filepath.Dir(p)), filepath.Base(p))
	}
	return filepath.Clean(p)
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
