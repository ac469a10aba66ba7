package fakellm

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/acp-test/acp-test/wire"
)

// habits are what agents call a neutral tool, best first, in letters only.
var habits = map[string][]string{
	"write_file": {"writefile", "write", "createfile", "writetofile", "filewrite", "fswrite", "writetextfile",
		"savefile", "create", "strreplacebasededittool", "strreplaceeditor", "texteditor"},
	"edit_file": {"editfile", "edit", "replace", "strreplace", "searchreplace", "replaceinfile", "fileedit",
		"updatefile", "modifyfile", "applyedit", "strreplacebasededittool", "strreplaceeditor", "texteditor"},
	"read_file": {"readfile", "read", "viewfile", "view", "fileread", "fsread", "readtextfile", "openfile", "getfile",
		"cat", "strreplacebasededittool", "strreplaceeditor", "texteditor"},
	"run_shell": {"runshellcommand", "runshell", "bash", "shell", "shellcommand", "execcommand", "executecommand",
		"runcommand", "runterminalcommand", "runterminalcmd", "runinterminal", "executebash", "execute", "exec", "terminal",
		"localshell", "containerexec", "command"},
	"search": {"grep", "search", "searchfilecontent", "grepsearch", "ripgrep", "searchfiles", "searchtext",
		"codesearch", "codebasesearch", "findinfiles", "rg"},
	"ask_user": {"askuser", "askuserquestion", "askquestion", "askfollowupquestion", "asktheuser", "question",
		"elicit", "requestuserinput", "userinput"},
	"fetch": {"webfetch", "fetch", "fetchurl", "urlfetch", "readurl", "httpget", "httprequest", "browse"},
}

// spelled are what agents call an argument of a neutral tool.
var spelled = map[string][]string{
	"path": {"path", "filepath", "absolutepath", "abspath", "file", "filename", "targetfile", "target", "uri",
		"relativepath"},
	"content":  {"content", "contents", "text", "filetext", "filecontent", "codecontent", "body", "data", "newcontent"},
	"old":      {"old", "oldstring", "oldstr", "oldtext", "search", "find", "original", "from"},
	"new":      {"new", "newstring", "newstr", "newtext", "replacement", "replacewith", "replace", "updated", "to"},
	"command":  {"command", "cmd", "script", "commandline", "code", "input"},
	"pattern":  {"pattern", "query", "regex", "search", "term", "text", "q"},
	"question": {"question", "prompt", "message", "text", "query", "title"},
	"options":  {"options", "choices", "suggestions", "answers"},
	"url":      {"url", "uri", "link", "address", "prompt"},
}

func spellings(arg string) []string {
	if s := spelled[arg]; s != nil {
		return s
	}
	return []string{letters(arg)}
}

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

// learn finds the tool of the request that is the neutral one, by its name,
// and writes the arguments the way its schema wants them. A tool that is not
// neutral, or that nothing resembles, stays as it is.
func learn(r *request, neutral string, args object) (string, object) {
	if r.offered(neutral).name != "" && habits[neutral] == nil {
		return neutral, args
	}
	if neutral == "mcp" {
		return learnMCP(r, args)
	}
	o, ok := resembling(r.tools, neutral)
	if !ok {
		return neutral, args
	}
	return o.name, rewrite(o, neutral, args)
}

// wanted are the arguments without which a tool is not the neutral one: what
// writes to a running process may be called write, too.
var wanted = map[string][]string{
	"write_file": {"path", "content"}, "edit_file": {"path", "old", "new"}, "read_file": {"path"},
	"run_shell": {"command"}, "search": {"pattern"}, "fetch": {"url"},
}

// takes reports whether a tool has a property for each argument of the neutral
// one. A tool whose schema names none may.
func takes(o offer, neutral string) bool {
	rest := map[string]wire.Value{}
	for name, schema := range o.schema.Get("properties").Members() {
		rest[name] = schema
	}
	if len(rest) == 0 {
		return true
	}
	_, edits := rest["edits"]
	for _, arg := range wanted[neutral] {
		name := property(rest, arg)
		if name == "" && !(edits && neutral == "edit_file" && arg != "path") {
			return false
		}
		delete(rest, name)
	}
	return true
}

// exactly reports whether a tool requires the arguments of the neutral one and
// nothing else.
func exactly(o offer, neutral string) bool {
	return len(wanted[neutral]) > 0 && len(needs(o.schema)) == len(wanted[neutral]) && takes(o, neutral)
}

// telling are the neutral tools that their arguments alone give away; with a
// path alone a tool may as well delete.
var telling = []string{"write_file", "edit_file"}

// elsewhere is in the names of tools that take the same and do something else.
var elsewhere = regexp.MustCompile(`append|insert|delete|remove|move|copy|memory|note|log|send|process|stdin`)

// resembling finds the tool that is the neutral one: by its name, if its schema
// agrees, else by what it takes.
func resembling(tools []offer, neutral string) (offer, bool) {
	names := habits[neutral]
	for _, name := range names {
		for _, t := range tools {
			if letters(t.name) == name && takes(t, neutral) {
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
	for _, t := range tools {
		if slices.Contains(telling, neutral) && exactly(t, neutral) && !elsewhere.MatchString(letters(t.name)) {
			return t, true
		}
	}
	return offer{}, false
}

// learnMCP finds the tool whose name holds the names of server and tool in
// that order, else the one named like the tool.
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

// rewrite names the arguments after the properties of the tool's schema and
// fills in what it requires beside them.
func rewrite(o offer, neutral string, args object) object {
	props := o.schema.Get("properties")
	if props.Len() == 0 {
		return args
	}
	out := object{}
	rest := map[string]wire.Value{}
	for name, schema := range props.Members() {
		rest[name] = schema
	}
	for _, m := range args {
		name := property(rest, m.key)
		if name == "" {
			continue
		}
		out = append(out, member{name, shaped(m, rest[name])})
		delete(rest, name)
	}
	if edits, ok := rest["edits"]; ok && neutral == "edit_file" {
		inner := rewrite(offer{schema: edits.Get("items")}, neutral, args)
		out = append(out, member{"edits", []any{inner}})
		delete(rest, "edits")
	}
	for _, name := range needs(o.schema) {
		schema, missing := rest[name]
		if !missing {
			continue
		}
		var v any = verb(neutral, schema)
		if v == nil {
			v = fit(schema, "ok")
		}
		out = append(out, member{name, v})
	}
	return out
}

// property finds the property that stands for an argument, "" if none does.
func property(rest map[string]wire.Value, arg string) string {
	names := slices.Sorted(maps.Keys(rest))
	for _, want := range spellings(arg) {
		for _, name := range names {
			if letters(name) == want {
				return name
			}
		}
	}
	for _, name := range names {
		if len(arg) > 3 && strings.Contains(letters(name), arg) {
			return name
		}
	}
	return ""
}

// shaped gives a command the form of an argument list where one is wanted, and
// wraps a path into a list of paths.
func shaped(m member, schema wire.Value) any {
	if text, ok := m.value.(string); ok && schema.Get("type").Is("array") {
		if m.key == "command" {
			return []any{"bash", "-lc", text}
		}
		return []any{text}
	}
	return m.value
}

// verb is the value of a property that says what an editor tool is to do.
func verb(neutral string, schema wire.Value) any {
	want := map[string]string{"write_file": "create", "edit_file": "str_replace", "read_file": "view"}[neutral]
	for v := range schema.Get("enum").Items() {
		if want != "" && v.Is(want) {
			return want
		}
	}
	return nil
}
