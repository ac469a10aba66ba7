package webagent

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/acp-test/acp-test/refagent"
)

// tool is a tool that the model can call and the agent itself runs.
type tool struct {
	name, about string
	needs       []string // names of its arguments
	gated       bool     // the user must approve each call
	run         func(r *run, args map[string]any) (string, error)
}

func tools() []tool {
	return []tool{
		{"read_file", "Read a text file", []string{"path"}, false, (*run).readFile},
		{"write_file", "Create or overwrite a text file", []string{"path", "content"}, false, (*run).writeFile},
		{"edit_file", "Replace one passage of a text file", []string{"path", "old", "new"}, false, (*run).editFile},
		{"delete_file", "Delete a file", []string{"path"}, true, (*run).deleteFile},
		{"run_shell", "Run a shell command", []string{"command"}, true, (*run).shell},
		{"set_state", "Change the state that the user sees", []string{"path", "value"}, false, (*run).setState},
	}
}

// find returns the tool with a name, or the zero value if there is none.
func find(name string) tool {
	for _, t := range tools() {
		if t.name == name {
			return t
		}
	}
	return tool{}
}

// offers returns the tools for a model request.
func (r *run) offers() (list []refagent.Offer) {
	for _, t := range tools() {
		properties := map[string]any{}
		for _, name := range t.needs {
			properties[name] = map[string]any{"type": "string"}
		}
		if t.name == "set_state" {
			properties["value"] = map[string]any{}
		}
		list = append(list, refagent.Offer{Name: t.name, About: t.about,
			Schema: map[string]any{"type": "object", "properties": properties, "required": t.needs}})
	}
	for _, t := range r.in.Tools {
		if t.Parameters == nil {
			t.Parameters = map[string]any{"type": "object"}
		}
		list = append(list, refagent.Offer{Name: t.Name, About: t.Description, Schema: t.Parameters})
	}
	return list
}

// gated reports whether calls of a tool need the user's approval.
func (r *run) gated(name string) bool {
	ask := find(name).gated
	if r.Hooks.Ask != nil {
		ask = r.Hooks.Ask(name, ask)
	}
	return ask
}

// interruptOf returns the interrupt that asks the user to approve a call.
func interruptOf(c Call) map[string]any {
	return map[string]any{"id": "int-" + c.ID, "reason": "tool_call", "toolCallId": c.ID,
		"message": fmt.Sprintf("May the agent use %s?", c.Function.Name),
		"responseSchema": map[string]any{"type": "object",
			"properties": map[string]any{"approved": map[string]any{"type": "boolean"}}, "required": []string{"approved"}}}
}

// carryOut runs the tool calls of a reply. An error ends the run.
func (r *run) carryOut(calls []Call) error {
	var waits []map[string]any
	var front []string
	waiting := func(c Call) bool { return r.in.frontTool(c.Function.Name) || r.gated(c.Function.Name) }
	if r.Habits.Backwards && !slices.ContainsFunc(calls, waiting) {
		calls = slices.Clone(calls)
		slices.Reverse(calls)
	}
	for _, c := range calls {
		switch {
		case r.in.frontTool(c.Function.Name):
			front = append(front, c.ID)
		case r.gated(c.Function.Name):
			waits = append(waits, interruptOf(c))
		default:
			r.answer(c, r.perform(c))
		}
	}
	switch {
	case r.gone():
		return r.ctx.Err()
	case waits != nil:
		return interrupted{waits}
	case front != nil:
		return pending{front}
	}
	return nil
}

// resume handles the open tool calls of earlier runs according to the client's answers.
func (r *run) resume() error {
	answered := map[string]bool{}
	for _, m := range r.in.Messages {
		answered[m.ToolCallID] = true
	}
	var waits []map[string]any
	for _, m := range r.in.Messages {
		for _, c := range m.ToolCalls {
			if answered[c.ID] || !r.gated(c.Function.Name) {
				continue
			}
			switch approved, given := r.decision(c); {
			case !given:
				waits = append(waits, interruptOf(c))
			case approved:
				r.answer(c, r.perform(c))
			default:
				r.answer(c, "The user does not allow it.")
			}
		}
	}
	if waits != nil {
		return interrupted{waits}
	}
	return nil
}

// decision returns the user's decision about a call that needs approval. given is false if the client sent none.
func (r *run) decision(c Call) (approved, given bool) {
	for _, e := range r.in.Resume {
		if e.InterruptID == "int-"+c.ID {
			payload, _ := e.Payload.(map[string]any)
			approved, given = e.Status == "resolved" && payload["approved"] == true, true
		}
	}
	if r.Hooks.Answer != nil {
		return r.Hooks.Answer(approved, given)
	}
	return approved, given
}

// gone reports whether the client has disconnected and the run must end.
func (r *run) gone() bool { return r.ctx.Err() != nil && !r.Hooks.Detached }

// perform runs a tool and returns the result for the model.
func (r *run) perform(c Call) string {
	if r.gone() {
		return "The user has left."
	}
	t := find(c.Function.Name)
	if t.run == nil {
		return fmt.Sprintf("Error: there is no tool %q", c.Function.Name)
	}
	var args map[string]any
	if err := json.Unmarshal([]byte(c.Function.Arguments), &args); err != nil {
		return "Error: the arguments are not a JSON object: " + err.Error()
	}
	result, err := t.run(r, args)
	if err != nil {
		result = "Error: " + err.Error()
	}
	return result
}

// answer sends the result of a call to the client and adds it to the messages for the model.
func (r *run) answer(c Call, result string) {
	content, _ := json.Marshal(result) // a string can always be encoded
	m := Message{ID: newID("msg"), Role: "tool", ToolCallID: c.ID, Content: content}
	if r.Hooks.Result != nil {
		result = r.Hooks.Result(c.Function.Name, result)
	}
	r.messages = append(r.messages, m)
	if !r.Habits.NoResults {
		r.send("TOOL_CALL_RESULT", "messageId", m.ID, "toolCallId", c.ID, "content", result, "role", "tool")
	}
}

func str(args map[string]any, key string) string { s, _ := args[key].(string); return s }

// path returns the path of the file in args. A relative path begins at the agent's directory.
func (r *run) path(args map[string]any) string {
	name := str(args, "path")
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(r.Dir, name)
}

func (r *run) readFile(args map[string]any) (string, error) {
	data, err := os.ReadFile(r.path(args))
	return string(data), err
}

func (r *run) writeFile(args map[string]any) (string, error) {
	err := os.MkdirAll(filepath.Dir(r.path(args)), 0o755)
	if err == nil {
		err = os.WriteFile(r.path(args), []byte(str(args, "content")), 0o644)
	}
	return "The file is written.", err
}

func (r *run) editFile(args map[string]any) (string, error) {
	data, err := os.ReadFile(r.path(args))
	if err != nil {
		return "", err
	}
	before, after, found := strings.Cut(string(data), str(args, "old"))
	if !found {
		return "", fmt.Errorf("the file has no such passage")
	}
	return "The file is changed.", os.WriteFile(r.path(args), []byte(before+str(args, "new")+after), 0o644)
}

func (r *run) deleteFile(args map[string]any) (string, error) {
	return "The file is deleted.", os.Remove(r.path(args))
}

func (r *run) shell(args map[string]any) (string, error) {
	c := exec.CommandContext(r.ctx, "sh", "-c", str(args, "command"))
	c.Dir = r.Dir
	out, err := c.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%w\n%s", err, out)
	}
	return string(out), nil
}

// setState sets a value in the state at a JSON pointer. It creates missing objects on the way.
func (r *run) setState(args map[string]any) (string, error) {
	pointer := str(args, "path")
	if pointer == "" || pointer[0] != '/' {
		return "", fmt.Errorf("%q is not a JSON pointer", pointer)
	}
	at, ok := r.state.(map[string]any)
	if !ok {
		at = map[string]any{}
		r.state = at
		r.send("STATE_SNAPSHOT", "snapshot", at)
	}
	var patch []any
	keys := strings.Split(pointer[1:], "/")
	done := ""
	for _, key := range keys[:len(keys)-1] {
		done += "/" + key
		inner, ok := at[unescaped(key)].(map[string]any)
		if !ok {
			inner = map[string]any{}
			at[unescaped(key)] = inner
			patch = append(patch, map[string]any{"op": "add", "path": done, "value": map[string]any{}})
		}
		at = inner
	}
	at[unescaped(keys[len(keys)-1])] = args["value"]
	patch = append(patch, map[string]any{"op": "add", "path": pointer, "value": args["value"]})
	r.send("STATE_DELTA", "delta", patch)
	return "The state is changed.", nil
}

func unescaped(key string) string { return strings.NewReplacer("~1", "/", "~0", "~").Replace(key) }
