package fakellm

import (
	"slices"
	"strings"

	"github.com/acp-test/acp-test/transcript"
)

// Asked is what a model request in a transcript shows of the agent that made it.
type Asked struct {
	Wire string
	// Run is the NAME of a base URL that ends with /run/NAME; "" if it has none.
	Run string
	// Offered are the names of the tools, sorted.
	Offered []string
	// Partial says that the request goes on from an answer that the server keeps.
	Partial bool
	req     *request
}

// Part is a part of the conversation in a request.
type Part struct {
	// Who said it: user, model, or result for what came of a tool call.
	Who, Text string
	// Calls says that it is the call of the tool Name, and Text its arguments. Call is the id of
	// that, or of the call whose result it is; "" if the request names none.
	Calls      bool
	Call, Name string
}

// Conversation returns the parts of the conversation in order; instructions are none of them.
func (a Asked) Conversation() []Part {
	var all []Part
	for _, it := range a.req.items {
		who := [...]string{roleUser: "user", roleModel: "model", roleResult: "result"}[it.role]
		all = append(all, Part{Who: who, Text: it.text, Calls: it.calls, Call: it.call, Name: it.name})
	}
	return all
}

// System returns the instructions of the request, at the level of the system or the developer.
func (a Asked) System() string { return a.req.systemText() }

// ReadAsked reads an entry of kind transcript.ModelRequest. ok is false if it asked for no
// answer of a model, or cannot be read.
func ReadAsked(e transcript.Entry) (a Asked, ok bool) {
	req, _, ok := readRequest(e.JSON())
	if !ok {
		return a, false
	}
	a = Asked{Wire: req.wire, Run: req.run, Partial: req.previous != "", req: req,
		Offered: slices.Sorted(slices.Values(req.toolNames()))}
	return a, true
}

// Tool returns the tool on offer that is the neutral one with these arguments, in the form
// of a profile; ok is false if none is.
func (a Asked) Tool(neutral string, arguments []string) (t Tool, ok bool) {
	var call object
	for _, name := range arguments {
		call = append(call, member{name, "$" + name})
	}
	name, args := learn(a.req, neutral, call)
	if a.req.offered(name).name == "" {
		return t, false
	}
	if letters(name) == "applypatch" {
		for i, m := range args { // each line of a patch begins with a sign
			if text, is := m.value.(string); is {
				args[i].value = strings.Replace(text, "+$content", "${content|prefix:+}", 1)
			}
		}
	}
	t = Tool{Name: name, Args: map[string]any{}}
	for _, m := range args {
		t.Args[m.key] = plainValue(m.value)
		if list, is := m.value.([]any); is && len(list) == 1 && list[0] == "$options" {
			t.Args[m.key] = "$options" // it is a list itself
		}
	}
	return t, true
}

// plainValue is a value without the order of its members.
func plainValue(v any) any {
	switch v := v.(type) {
	case object:
		all := map[string]any{}
		for _, m := range v {
			all[m.key] = plainValue(m.value)
		}
		return all
	case []any:
		list := slices.Clone(v)
		for i := range list {
			list[i] = plainValue(list[i])
		}
		return list
	}
	return v
}

// MCPTool returns how the agent calls the tool of an MCP server, with $server and $tool in
// the place of their names; "" if it offers none.
func (a Asked) MCPTool(server, tool string) string {
	for _, name := range a.Offered {
		at := strings.LastIndex(name, tool)
		if at < 0 {
			continue
		}
		return strings.Replace(name[:at], server, "$server", 1) + "$tool" + name[at+len(tool):]
	}
	return ""
}
