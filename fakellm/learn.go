package fakellm

import (
	_ "embed"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/acp-test/acp-test/internal/lazy"
	"github.com/acp-test/acp-test/internal/lists"
	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/wire"
)

//go:embed tools.txt
var toolsFile string

// toolWords returns the names that agents use for tools and arguments. The keys are the kind of entry in tools.txt,
// then the neutral name.
var toolWords = sync.OnceValue(func() map[string]map[string][]string {
	all := map[string]map[string][]string{"tool": {}, "argument": {}, "needs": {}}
	for line := range strings.Lines(toolsFile) {
		if f := strings.Fields(line); len(f) > 0 && f[0] != "#" {
			all[f[0]][f[1]] = f[2:]
		}
	}
	return all
})

func words(kind, name string) []string { return toolWords()[kind][name] }

func letters(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'A' && r <= 'Z':
			return r - 'A' + 'a'
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			return r
		}
		return -1
	}, s)
}

// learn finds the offered tool that corresponds to a neutral tool, and converts the arguments to that tool's schema.
// If the name is not a neutral tool, or the request offers no similar tool, learn returns both unchanged.
func learn(r *request, neutral string, args object) (string, object) {
	if r.offered(neutral).name != "" && words("tool", neutral) == nil {
		return neutral, args
	}
	if neutral == "mcp" {
		return learnMCP(r, args)
	}
	o, ok := resembling(r.tools, neutral)
	if !ok {
		return patched(r, neutral, args)
	}
	if neutral == planTool {
		args = planned(o, args)
	}
	return o.name, rewrite(o, neutral, args)
}

// planTool is the neutral tool with which a model publishes its plan, a list of steps.
const planTool = "plan"

// planned returns the arguments for an offered tool that takes a plan. The steps have the form that the tool's schema
// requires.
func planned(o offer, args object) object {
	list := grouped(properties(o.schema), words("needs", planTool))
	items := offer{schema: properties(o.schema)[list].Get("items")}
	all := []any{}
	for _, step := range args.objects("steps") {
		all = append(all, rewrite(items, planTool, step))
	}
	return object{{list, all}}
}

// objects returns an argument that is a list of objects, such as the steps of a plan; nil if the argument is missing
// or not a list.
func (o object) objects(name string) (list []object) {
	value, _ := o.get(name)
	all, ok := value.([]any)
	if ok {
		list = []object{}
	}
	for _, x := range all {
		if one, ok := x.(object); ok {
			list = append(list, one)
		}
	}
	return list
}

// patched converts a write_file call to a call of the offered tool that applies patches, if there is one. It does not
// convert edit_file, because patches replace whole lines.
func patched(r *request, neutral string, args object) (string, object) {
	path, _ := args.get("path")
	content, _ := args.get("content")
	text, isText := content.(string)
	for _, o := range r.tools {
		if letters(o.name) != "applypatch" || neutral != "write_file" || !isText {
			continue
		}
		lines := "+" + strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "\n", "\n+")
		patch := fmt.Sprintf("*** Begin Patch\n*** Add File: %v\n%s\n*** End Patch\n", path, lines)
		name := "input"
		if of := slices.Sorted(maps.Keys(properties(o.schema))); len(of) == 1 {
			name = of[0]
		}
		return o.name, object{{name, patch}}
	}
	return neutral, args
}

// takes reports whether a tool has a property for each argument of the neutral tool, either at the top level or in
// the items of a list. It returns true for a tool whose schema has no properties.
func takes(o offer, neutral string) bool {
	rest := properties(o.schema)
	if neutral == planTool {
		return grouped(rest, words("needs", neutral)) != ""
	}
	if len(rest) == 0 {
		return true
	}
	var left []string
	for _, arg := range words("needs", neutral) {
		name := property(rest, arg)
		if name == "" {
			left = append(left, arg)
		}
		delete(rest, name)
	}
	return len(left) == 0 || grouped(rest, left) != ""
}

func properties(schema wire.Value) map[string]wire.Value {
	return maps.Collect(schema.Get("properties").Members())
}

// grouped finds the list property of a tool that performs several operations in one call. The list's items must be
// objects with properties for all these arguments. It returns "" if the tool has no such property.
func grouped(rest map[string]wire.Value, args []string) string {
list:
	for _, name := range slices.Sorted(maps.Keys(rest)) {
		of := properties(rest[name].Get("items"))
		for _, arg := range args {
			p := property(of, arg)
			if p == "" {
				continue list
			}
			delete(of, p)
		}
		return name
	}
	return ""
}

// exactly reports whether a tool requires exactly the arguments of the neutral tool.
func exactly(o offer, neutral string) bool {
	return len(words("needs", neutral)) > 0 && len(needs(o.schema)) == len(words("needs", neutral)) && takes(o, neutral)
}

// telling lists the neutral tools that can be recognised by their arguments alone. Others cannot: for example, a tool
// that only takes a path may read the file or delete it.
var telling = []string{"write_file", "edit_file"}

// elsewhere matches names of tools that take the same arguments as a neutral tool but do something else.
var elsewhere = lazy.Regexp(`append|insert|delete|remove|move|copy|memory|note|log|send|process|stdin`)

// resembling returns the offered tool that corresponds to a neutral tool. It first looks for a known name with a
// suitable schema, then for suitable arguments. ok is false if no tool corresponds.
func resembling(tools []offer, neutral string) (offer, bool) {
	names := words("tool", neutral)
	for _, name := range names {
		for _, t := range tools {
			if got := letters(t.name); (got == name || got == name+"s") && takes(t, neutral) {
				return t, true
			}
		}
	}
	for _, name := range names[:min(3, len(names))] {
		for _, t := range tools {
			got := letters(t.name)
			if (strings.HasPrefix(got, name) || strings.HasSuffix(got, name)) && takes(t, neutral) {
				return t, true
			}
		}
	}
	return lists.Find(tools, func(t offer) bool {
		return slices.Contains(telling, neutral) && exactly(t, neutral) && !elsewhere().MatchString(letters(t.name))
	})
}

// learnMCP returns the offered tool for a tool of an MCP server. It prefers a name that contains the server's name
// followed by the tool's name. Otherwise it takes a tool whose name ends with the MCP tool's name.
func learnMCP(r *request, args object) (string, object) {
	server, _ := args.get("server")
	tool, _ := args.get("tool")
	inner, _ := args.get("args")
	pass, _ := inner.(object)
	s, _ := server.(string)
	t, _ := tool.(string)
	for _, o := range r.tools {
		got := letters(o.name)
		if at := strings.Index(got, letters(s)); at >= 0 && strings.HasSuffix(got[at:], letters(t)) && t != "" {
			return o.name, pass
		}
	}
	for _, o := range r.tools {
		if strings.HasSuffix(letters(o.name), letters(t)) && t != "" {
			return o.name, pass
		}
	}
	return t, pass
}

// rewrite renames the arguments to the properties of the offered tool's schema. It adds the other properties that the
// schema requires.
func rewrite(o offer, neutral string, args object) object {
	rest := properties(o.schema)
	if len(rest) == 0 {
		return args
	}
	var out, left object
	var missing []string
	for _, m := range args {
		name := property(rest, m.key)
		if name == "" {
			left, missing = append(left, m), append(missing, m.key)
			continue
		}
		out = append(out, member{name, shaped(m, name, rest[name])})
		delete(rest, name)
	}
	if name := grouped(rest, missing); len(left) > 0 && name != "" {
		out = append(out, member{name, []any{rewrite(offer{schema: rest[name].Get("items")}, neutral, left)}})
		delete(rest, name)
	}
	for _, name := range needs(o.schema) {
		schema, missing := rest[name]
		if !missing {
			continue
		}
		var v any = verb(neutral, schema)
		if v == nil {
			said, is := args.text("step") // use the text of the plan's step, for example as its id
			if !is {
				said = "ok"
			}
			v = fit(schema, said)
		}
		out = append(out, member{name, v})
	}
	return out
}

// property returns the name of the schema's property for a neutral argument, or "" if the schema has none.
func property(rest map[string]wire.Value, arg string) string {
	names := slices.Sorted(maps.Keys(rest))
	for _, want := range slices.Concat(words("argument", arg), []string{letters(arg)}) {
		for _, name := range names {
			if letters(name) == want || several(name, want, rest[name]) {
				return name
			}
		}
	}
	for _, name := range names {
		ofObjects := rest[name].Path("items.properties").Len() > 0
		if len(arg) > 3 && !ofObjects && strings.Contains(letters(name), arg) {
			return name
		}
	}
	return ""
}

// several reports whether a property is a list of plain values whose name is the plural of want.
func several(name, want string, schema wire.Value) bool {
	plural := strings.TrimSuffix(want, "y")
	if plural != want {
		plural += "ie"
	}
	return schema.Get("type").Is("array") && schema.Path("items.properties").Len() == 0 && letters(name) == plural+"s"
}

// shaped converts an argument's value to the property's schema. If the schema requires an array, a command becomes a
// bash argument list, and any other text a list with one element. A status becomes the schema's word for it.
func shaped(m member, name string, schema wire.Value) any {
	text, ok := m.value.(string)
	if m.key == "status" && ok {
		return worded(text, schema.Get("enum"))
	}
	if ok && schema.Get("type").Is("array") {
		if m.key == "command" && !strings.HasSuffix(letters(name), "s") {
			return []any{"bash", "-lc", text}
		}
		return []any{text}
	}
	return m.value
}

// worded returns the status of a step in a tool's own words. If none of the tool's words is similar, worded assumes
// that the tool lists them in the order pending, in progress, completed.
func worded(status string, enum wire.Value) string {
	ours := []string{"pending", "in_progress", "completed"}
	words := lists.Collect(enum.Items(), wire.Value.Str)
	at := slices.Index(ours, status)
	for _, w := range words {
		if letters(w) == letters(status) {
			return w
		}
	}
	if at < 0 || at >= len(words) {
		return status
	}
	return words[at]
}

// verb returns the value for a property that selects the operation of a combined editor tool, or nil for other
// properties.
func verb(neutral string, schema wire.Value) any {
	want := map[string]string{"write_file": "create", "edit_file": "str_replace", "read_file": "view"}[neutral]
	for v := range schema.Get("enum").Items() {
		if want != "" && v.Is(want) {
			return want
		}
	}
	return nil
}

// Asked is a model request in a transcript: its offered tools, instructions and conversation.
type Asked struct {
	Wire string
	// Run is NAME if the agent's base URL ends with /run/NAME, and "" otherwise.
	Run string
	// Offered contains the names of the tools that the agent offers the model, sorted.
	Offered []string
	// Partial is true if the request continues a stored response by its id, so that it contains only the new part of
	// the conversation.
	Partial bool
	req     *request
}

type Part struct {
	// Who is the author of Text: user, model, or result for the result of a tool call.
	Who, Text string
	// Calls is true if the part is a call of the tool Name; Text then has the arguments. Call is the call's id. In a
	// result, Call is the id of the call that the result belongs to. "" means that the request has no id.
	Calls      bool
	Call, Name string
}

// Conversation returns the parts of the conversation in order, without the
// instructions.
func (a Asked) Conversation() []Part {
	var all []Part
	for _, it := range a.req.items {
		who := [...]string{roleUser: "user", roleModel: "model", roleResult: "result"}[it.role]
		all = append(all, Part{Who: who, Text: it.text, Calls: it.calls, Call: it.call, Name: it.name})
	}
	return all
}

// System returns the instructions of the request: the messages with the role system or developer.
func (a Asked) System() string { return a.req.systemText() }

// ReadAsked reads an entry of kind transcript.ModelRequest. ok is false if the entry cannot be read or the request
// does not ask for a model's answer.
func ReadAsked(e transcript.Entry) (a Asked, ok bool) {
	req, _, ok := readRequest(e.JSON())
	if !ok {
		return a, false
	}
	a = Asked{Wire: req.wire, Run: req.run, Partial: req.previous != "", req: req,
		Offered: slices.Sorted(slices.Values(req.toolNames()))}
	return a, true
}

// Tool returns the offered tool that corresponds to a neutral tool with these arguments, in the form used in
// profiles. ok is false if no offered tool corresponds.
func (a Asked) Tool(neutral string, arguments []string) (t Tool, ok bool) {
	var call object = lists.Map(arguments, func(name string) member { return member{name, "$" + name} })
	if neutral == planTool {
		call = object{{"steps", []any{object{{"step", "$step"}, {"status", "$status"}}}}}
	}
	name, args := learn(a.req, neutral, call)
	if a.req.offered(name).name == "" {
		return t, false
	}
	if letters(name) == "applypatch" {
		for i, m := range args { // every line in a patch needs the prefix +
			if text, is := m.value.(string); is {
				args[i].value = strings.Replace(text, "+$content", "${content|prefix:+}", 1)
			}
		}
	}
	t = Tool{Name: name, Args: map[string]any{}}
	for _, m := range args {
		t.Args[m.key] = plainValue(m.value)
		if list, is := m.value.([]any); is && len(list) == 1 && list[0] == "$options" {
			t.Args[m.key] = "$options" // the argument is itself a list
		}
	}
	return t, true
}

// plainValue converts each object in a value to a map, so the order of the members is lost.
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

// MCPTool returns the name under which the agent offers a tool of an MCP server, with $server and $tool in place of
// their names; "" if the agent does not offer that tool.
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
