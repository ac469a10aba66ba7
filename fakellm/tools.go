package fakellm

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/acp-test/acp-test/internal/lazy"
	"github.com/acp-test/acp-test/internal/lists"
	"github.com/acp-test/acp-test/wire"
)

// Tool is an agent's own tool for a neutral one. Strings in Args may hold $path
// and the other arguments of the neutral call: a string that is just "$path"
// becomes the argument's value, in other strings its text is inserted.
// ${content|prefix:+} changes the text first, see Transforms. A member is left
// out if it is only an argument that the call does not have. Nil Args passes the
// neutral arguments on. For mcp, Name may hold $server and $tool, and nil Args
// passes the arguments of the MCP tool on. In the Args for plan, a list of one
// template is written once for each step.
type Tool struct {
	Name string
	Args map[string]any
}

// call is a tool call as the wire format needs it.
type call struct {
	name   string
	custom bool
	// namespace is the beginning of name that the call carries in a separate
	// member; "" if the tool has no namespace.
	namespace string
	args      string // JSON text, or anything at all if the script gave it raw
}

// toolCall maps a step's neutral tool to the agent's tool.
func (s *Server) toolCall(st *Step, r *request) call {
	if st.Raw {
		o := r.offered(st.Tool)
		return call{st.Tool, o.custom, o.namespace, strings.Join(st.Chunks, "")}
	}
	name, args := st.Tool, st.Args
	switch t, mapped := s.cfg.Tools[st.Tool]; {
	case st.Tool == ownTool:
		o, _ := s.own(r, st)
		name, args = o.name, lists.Where(st.Args, func(m member) bool { return m.key != "nth" })
		if args = rewrite(o, "", args); len(properties(o.schema)) == 0 {
			args = nil // the tool takes no arguments
		}
	case mapped && len(st.Args.objects(edits)) > 0:
		name, args = t.patch(st.Args.objects(edits))
	case mapped:
		name, args = t.apply(st.Tool, st.Args)
		name = r.spelled(name)
		s.noteStrange(st.Tool, name, r)
	case s.cfg.Tools == nil:
		name, args = learn(r, st.Tool, st.Args)
		s.note(st.Tool, name, r.offered(name).name != "")
	}
	o := r.offered(name)
	text := string(appendJSON(nil, args))
	if o.custom {
		text = textOf(args)
	}
	return call{name, o.custom, o.namespace, text}
}

// ownTool is the name by which a script calls a tool of the agent that matches no
// neutral tool. Its argument nth selects the tool, from 1; the tool gets the
// other arguments if it takes them.
const ownTool = "own"

// own returns the tool that a step with the name ownTool selects. ok is false if there
// are fewer than nth such tools. For any other step it returns an empty offer and true.
func (s *Server) own(r *request, st *Step) (o offer, ok bool) {
	if st.Tool != ownTool {
		return offer{}, true
	}
	known := map[string]bool{}
	for neutral := range toolWords()["tool"] {
		o, _ := resembling(r.tools, neutral)
		known[o.name] = true
	}
	for _, t := range s.cfg.Tools {
		known[t.Name] = true
	}
	rest := lists.Where(r.tools, func(t offer) bool { return !known[t.name] && !t.custom })
	which, _ := st.Args.get("nth")
	nth, err := strconv.Atoi(fmt.Sprint(which))
	if err != nil || nth < 1 || nth > len(rest) {
		return offer{}, false
	}
	return rest[nth-1], true
}

func (r *request) offered(name string) offer {
	return lists.First(r.tools, func(t offer) bool { return t.name == name })
}

// spelled returns the offered tool name that has the same letters as name, or name itself if no tool has. An agent may
// change punctuation in the name of an MCP server.
func (r *request) spelled(name string) string {
	if r.offered(name).name == "" {
		same := func(t offer) bool { return letters(t.name) == letters(name) }
		return cmp.Or(lists.First(r.tools, same).name, name)
	}
	return name
}

// textOf returns the input of a tool that takes a text: its only argument, or all
// arguments as JSON.
func textOf(args object) string {
	if len(args) == 1 {
		if s, ok := args[0].value.(string); ok {
			return s
		}
	}
	return string(appendJSON(nil, args))
}

// edits are the arguments of an edit_file call that changes several places: a list of arguments of single edits. A
// tool that takes patches gets all of them in one call, any other tool one call for each.
const edits = "edits"

// section matches the first and the last line of a patch, which enclose its sections.
var section = lazy.Regexp(`(?m)^\*\*\* (Begin|End) Patch\n?`)

// patches reports whether the tool takes patches with a section for each file.
func (t Tool) patches() bool {
	return slices.ContainsFunc(slices.Collect(maps.Values(t.Args)), func(v any) bool {
		text, _ := v.(string)
		return strings.Contains(text, "*** Update File: $path")
	})
}

// patch returns the arguments of one call for several edits of a tool that takes patches.
func (t Tool) patch(list []object) (string, object) {
	name, whole := t.apply("edit_file", list[0])
	for i, m := range whole {
		text, is := m.value.(string)
		if !is || !strings.Contains(text, "*** Update File: ") {
			continue
		}
		for _, edit := range list[1:] {
			_, more := t.apply("edit_file", edit)
			next, _ := more.get(m.key)
			begin, end, framed := strings.Cut(text, "*** End Patch")
			text = strings.TrimSuffix(begin, "\n") + "\n" + section().ReplaceAllString(next.(string), "")
			if framed {
				text = strings.TrimSuffix(text, "\n") + "\n*** End Patch" + end
			}
		}
		whole[i].value = text
	}
	return name, whole
}

func (t Tool) apply(neutral string, args object) (string, object) {
	name := insert(t.Name, args)
	if t.Args == nil {
		if inner, ok := args.get("args"); ok && neutral == "mcp" {
			o, _ := inner.(object)
			return name, o
		}
		return name, args
	}
	filled, _ := fill(t.Args, args)
	return name, filled.(object)
}

// fill inserts the neutral arguments into a template. ok is false if the template
// is only an argument that the call does not have.
func fill(template any, args object) (value any, ok bool) {
	switch t := template.(type) {
	case string:
		if name, whole := strings.CutPrefix(t, "$"); whole && isName(name) {
			return args.get(name)
		}
		return insert(t, args), true
	case map[string]any:
		o := object{}
		keys := slices.Sorted(maps.Keys(t))
		for _, k := range keys {
			if v, ok := fill(t[k], args); ok {
				o = append(o, member{k, v})
			}
		}
		return o, true
	case []any:
		list, each := []any{}, []object{args}
		if steps := args.objects("steps"); len(t) == 1 && steps != nil {
			each = steps
		}
		for _, args := range each {
			for _, item := range t {
				if v, ok := fill(item, args); ok {
					list = append(list, v)
				}
			}
		}
		return list, true
	}
	return template, true
}

func isName(s string) bool { return s != "" && strings.Trim(s, "_abcdefghijklmnopqrstuvwxyz") == "" }

// needs returns the schema's required members.
func needs(schema wire.Value) []string {
	return lists.Collect(schema.Get("required").Items(), wire.Value.Str)
}

// transform converts the text of an argument to the form that an agent's tool
// wants. with is the text after the colon, or "".
type transform func(text, with string) string

// transforms maps the names allowed in ${name|transform} to their functions.
var transforms = map[string]transform{
	"prefix": func(text, with string) string {
		var b strings.Builder
		for line := range strings.Lines(text) {
			b.WriteString(with + line)
		}
		return b.String()
	},
	"chomp": func(text, _ string) string { return strings.TrimSuffix(text, "\n") },
	"json": func(text, _ string) string {
		quoted := appendJSON(nil, text)
		return string(quoted[1 : len(quoted)-1])
	},
	"shell": func(text, _ string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" },
}

// Transforms returns the names of the transformations that a Tool's templates
// may ask for, sorted:
//
//	chomp     without the newline at the end
//	json      as the inside of a JSON string
//	prefix:X  with X before each line
//	shell     as one word of a POSIX shell
func Transforms() []string { return slices.Sorted(maps.Keys(transforms)) }

// place matches where an argument is inserted: $$, ${name|transform:with|…} or
// $name.
var place = lazy.Regexp(`\$\$|\$\{([a-z_]+)((?:\|[^|}]*)*)\}|\$([a-z_]+)`)

// insert replaces argument names by their values; $$ is a dollar. A name that is
// not an argument stays.
func insert(s string, args object) string {
	return place().ReplaceAllStringFunc(s, func(found string) string {
		m := place().FindStringSubmatch(found)
		switch {
		case found == "$$":
			return "$"
		case m[1] != "":
			text, ok := args.text(m[1])
			if !ok {
				return found
			}
			for step := range strings.SplitSeq(strings.TrimPrefix(m[2], "|"), "|") {
				name, with, _ := strings.Cut(step, ":")
				if change := transforms[name]; change != nil {
					text = change(text, with)
				}
			}
			return text
		}
		// A name may be followed by more letters: mcp__$server__$tool.
		for name := m[3]; name != ""; name = name[:len(name)-1] {
			if text, ok := args.text(name); ok {
				return text + m[3][len(name):]
			}
		}
		return found
	})
}

// text returns an argument as text. A value that is not a text is written as
// JSON.
func (o object) text(name string) (string, bool) {
	v, ok := o.get(name)
	if text, is := v.(string); is {
		return text, true
	}
	return string(appendJSON(nil, v)), ok
}
