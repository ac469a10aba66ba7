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

// Tool is the agent's tool that corresponds to a neutral tool. Strings in Args may refer to the arguments of the
// neutral call, such as $path. A string that is exactly "$path" becomes the argument's value. In a longer string, the
// argument's text is inserted; ${content|prefix:+} transforms the text first, see Transforms. If a string is exactly
// one argument and the call lacks this argument, the member is left out. If Args is nil, the neutral arguments are
// passed unchanged.
//
// For the neutral tool mcp, Name may contain $server and $tool, and nil Args passes the MCP tool's arguments
// unchanged. For plan, a list in Args with one element is a template, which is repeated for each step.
type Tool struct {
	Name string
	Args map[string]any
}

// call is a tool call with the values that the wire formats need.
type call struct {
	name   string
	custom bool
	// namespace is the prefix of name that the call sends in a separate member; "" if the tool has no namespace.
	namespace string
	args      string // JSON text, or any text if the script gave it raw
}

// toolCall returns the call that the wire format sends for a tool step. A neutral tool in the step is replaced by the
// agent's tool.
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
			args = nil // nil, because the tool takes no arguments
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

// ownTool is the name by which a script calls an agent's tool that matches no neutral tool. The argument nth selects
// one of these tools, counted from 1. The other arguments are passed to the tool if it takes arguments.
const ownTool = "own"

// own returns the offered tool that a step selects, if the step's tool is ownTool. ok is false if there are fewer
// than nth such tools. For any other step, own returns an empty offer and true.
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

// spelled returns the name of an offered tool that has the same letters as name. If there is none, it returns name.
// The comparison ignores punctuation, because an agent may change it in the name of an MCP server.
func (r *request) spelled(name string) string {
	if r.offered(name).name == "" {
		same := func(t offer) bool { return letters(t.name) == letters(name) }
		return cmp.Or(lists.First(r.tools, same).name, name)
	}
	return name
}

// textOf returns the input for a tool that takes a text instead of JSON: the only argument if it is a string, else
// all arguments as JSON.
func textOf(args object) string {
	if len(args) == 1 {
		if s, ok := args[0].value.(string); ok {
			return s
		}
	}
	return string(appendJSON(nil, args))
}

// edits is the argument of an edit_file call that changes several places. Its value is a list with the arguments of
// each single edit. A tool that takes patches gets all edits in one call; any other tool gets one call per edit.
const edits = "edits"

// section matches the first and the last line of a patch, between which its sections are.
var section = lazy.Regexp(`(?m)^\*\*\* (Begin|End) Patch\n?`)

// patches reports whether the tool takes patches, which have a section for each file.
func (t Tool) patches() bool {
	return slices.ContainsFunc(slices.Collect(maps.Values(t.Args)), func(v any) bool {
		text, _ := v.(string)
		return strings.Contains(text, "*** Update File: $path")
	})
}

// patch returns the name and the arguments of one call that makes several edits. The tool must take patches.
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

// fill inserts the neutral arguments into a template. ok is false if the template is exactly one argument, such as
// "$path", and args lacks this argument.
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

// transform converts the text of an argument to the form that an agent's tool requires. with is the text after the
// colon in a template, or "".
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

// Transforms returns the names of the transformations that the templates in Tool.Args may use, sorted. Each returns
// the text of an argument:
//
//	chomp     without the newline at the end
//	json      as the inside of a JSON string
//	prefix:X  with X before each line
//	shell     as one word of a POSIX shell
func Transforms() []string { return slices.Sorted(maps.Keys(transforms)) }

// place matches the text in a template that an argument replaces: $$, ${name|transform:with|…} or $name.
var place = lazy.Regexp(`\$\$|\$\{([a-z_]+)((?:\|[^|}]*)*)\}|\$([a-z_]+)`)

// insert replaces references to arguments, such as $path, by the arguments' values, and $$ by a dollar sign. A name
// that is not an argument stays unchanged.
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
		// The argument's name may be followed directly by other letters, as in mcp__$server__$tool.
		for name := m[3]; name != ""; name = name[:len(name)-1] {
			if text, ok := args.text(name); ok {
				return text + m[3][len(name):]
			}
		}
		return found
	})
}

// text returns an argument as text. A value that is not a string is encoded as JSON. ok is false if there is no such
// argument.
func (o object) text(name string) (string, bool) {
	v, ok := o.get(name)
	if text, is := v.(string); is {
		return text, true
	}
	return string(appendJSON(nil, v)), ok
}
