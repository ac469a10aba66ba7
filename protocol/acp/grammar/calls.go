package grammar

import (
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/acp-test/acp-test/fakellm"
)

// call is a call of a tool that the model makes.
type call struct {
	tool, shape string
	step        fakellm.StepNode
	args        object
	// mark is a text that its path or command has and no other call.
	mark string
	// after is a line that asks for its effect, by a requirement; "" if nothing shows it.
	after, requirement string
}

// shape is a way to call a tool. In its texts MARK is the mark of the call, NUMBER the number of
// that, and FOLDER the session's folder.
type shape struct {
	weight     int
	tool, name string
	// file is made before the call: its name behind the mark and its text, DRAWN for one that is drawn.
	file [2]string
	// paths are the path, and where a file is moved to, behind the mark.
	paths []string
	args  object
	// after is a line that asks for the effect, by a requirement; "" if nothing shows it.
	after, requirement string
	hangs              bool // no later call reaches the server
}

const drawn = "DRAWN"

func command(text string) object { return object{"command": text} }

func sings(text string) object {
	return object{"server": "canary", "tool": "canary_sing", "args": object{"text": text}}
}

var shapes = sync.OnceValue(func() []shape {
	return []shape{
		{weight: 4, tool: "read_file", name: "read", file: [2]string{"in.txt", drawn}, paths: []string{"in.txt"}},
		{weight: 1, tool: "read_file", name: "read nothing", paths: []string{"missing.txt"}},
		{weight: 1, tool: "read_file", name: "read much", paths: []string{"long.txt"},
			file: [2]string{"long.txt", strings.Repeat("Zeile für Zeile\n", 2000)}},
		{weight: 4, tool: "write_file", name: "write", paths: []string{"out.txt"}, args: object{"content": drawn},
			after: "exists FOLDERMARKout.txt"},
		{weight: 1, tool: "write_file", name: "write a long name", paths: []string{"größe 日本 (1).txt"},
			args: object{"content": drawn}, after: "exists 'FOLDERMARKgröße 日本 (1).txt'"},
		{weight: 1, tool: "write_file", name: "write into a new folder", paths: []string{"dir/ö.txt"},
			args: object{"content": drawn}},
		{weight: 1, tool: "write_file", name: "write over a file", file: [2]string{"old.txt", "vorher NUMBER\n"},
			paths: []string{"old.txt"}, args: object{"content": drawn}},
		{weight: 2, tool: "edit_file", name: "edit", file: [2]string{"edit.txt", "vorher\nold word\nnachher\n"},
			paths: []string{"edit.txt"}, args: object{"old": "old word", "new": "neues Wört"},
			after: "exec grep -q neues FOLDERMARKedit.txt"},
		{weight: 1, tool: "edit_file", name: "edit what is not there", file: [2]string{"edit.txt", "vorher\n"},
			paths: []string{"edit.txt"}, args: object{"old": "no such word", "new": "neues Wört"},
			after: "exec grep -q -x vorher FOLDERMARKedit.txt"},
		{weight: 3, tool: "run_shell", name: "run", args: command("echo MARK; echo 'Grüße, 日本語'")},
		{weight: 1, tool: "run_shell", name: "run in the folder", file: [2]string{"here.txt", "im Ordner NUMBER\n"},
			args: command("cat MARKhere.txt"), after: "saw model request raw~'im Ordner NUMBER'", requirement: "SESSION-006"},
		{weight: 1, tool: "run_shell", name: "run and write", args: command("echo hier > MARKran.txt"),
			after: "exists FOLDERMARKran.txt", requirement: "SESSION-006"},
		{weight: 1, tool: "run_shell", name: "run what goes on", args: command("(sleep 2) > /dev/null 2>&1 & echo MARK")},
		{weight: 1, tool: "run_shell", name: "both outputs",
			args: command("echo MARK plain; echo error-$$((NUMBER*7)) >&2"), after: "saw model request raw~error-PRODUCT"},
		{weight: 1, tool: "run_shell", name: "run and fail", args: command("echo MARK >&2; exit 3")},
		{weight: 1, tool: "run_shell", name: "missing program", args: command("MARKno-such-program")},
		{weight: 1, tool: "run_shell", name: "large output", args: command("echo MARK; seq 1 3000")},
		{weight: 1, tool: "run_shell", name: "binary output", args: command(`echo MARK; printf '\377\376\200'`)},
		{weight: 2, tool: "delete_file", name: "delete", file: [2]string{"gone.txt", "weg\n"}, paths: []string{"gone.txt"},
			after: "! exists FOLDERMARKgone.txt"},
		{weight: 2, tool: "move_file", name: "move", file: [2]string{"here.txt", "hier\n"},
			paths: []string{"here.txt", "there.txt"}, after: "exists FOLDERMARKthere.txt"},
		{weight: 1, tool: "search", name: "search", file: [2]string{"hay.txt", "Nadel MARK\n"},
			args: object{"pattern": "MARK"}},
		{weight: 1, tool: "fetch", name: "fetch nothing", args: object{"url": "http://127.0.0.1:9/MARK.html"},
			after: "! saw tool kind=edit|delete|move raw~MARK"},
		{weight: 2, tool: "delegate", name: "delegate", args: object{"task": "Look at MARK."}},
		{weight: 3, tool: "mcp", name: "server", args: sings("MARKü"), after: "canary called text=MARKü",
			requirement: "SESSION-012"},
		{weight: 1, tool: "mcp", name: "server ends", args: sings("crash"), hangs: true},
	}
})

// make makes the file of a shape and returns the arguments of the call.
func (s shape) make(w *writer, fill func(string) string) object {
	args := object{}
	if s.file[0] != "" {
		w.put(fill("MARK"+s.file[0]), w.or(fill(s.file[1])))
	}
	for i, name := range s.paths {
		args[[]string{"path", "to"}[i]] = w.path(fill("MARK" + name))
	}
	for key, value := range s.args {
		switch value := value.(type) {
		case string:
			args[key] = w.or(fill(value))
		case object:
			args[key] = object{"text": fill(value["text"].(string))}
		}
	}
	w.hung = w.hung || s.hangs
	return args
}

// or is a text, or the content of a file that is drawn.
func (w *writer) or(text string) string {
	if text == drawn {
		return w.content()
	}
	return text
}

// call draws a call of a tool, "" of any that works; ok is false if none does.
func (w *writer) call(of string) (c call, ok bool) {
	c.mark = fmt.Sprintf("nota%dx", w.n+1)
	w.n++
	var list []weighted[int]
	for i, s := range shapes() {
		out := !w.works(s.tool) || of != "" && of != s.tool || s.tool == "mcp" && !w.served()
		list = append(list, weighted[int]{s.weight, i, out})
	}
	i, ok := choose(w.r, list)
	if !ok {
		return c, false
	}
	s, n := shapes()[i], w.n
	fill := strings.NewReplacer("MARK", c.mark, "NUMBER", strconv.Itoa(n), "PRODUCT", strconv.Itoa(n*7), "FOLDER",
		w.folder).Replace
	c.tool, c.shape, c.args = s.tool, s.name, s.make(w, fill)
	c.step = tool(s.tool, c.args)
	c.after, c.requirement = fill(s.after), s.requirement
	if c.tool == "delegate" {
		w.lanes += lane(c.mark, "")
	}
	w.made = append(w.made, c)
	return c, true
}

// lane is the model of a child that the agent starts for a call. A gate may hold it.
func lane(mark, gate string) string {
	held := ""
	if gate != "" {
		held = "      - gate: " + gate + "\n      - text: Looked at it.\n"
	}
	return fmt.Sprintf("  %s:\n    when: {user~: %[1]q}\n    reply:\n      - text: Begun with %[1]s.\n%s", mark, held)
}

// path names a file in the folder of the session: absolute, or relative to it.
func (w *writer) path(name string) string {
	if w.one(3) {
		return name
	}
	return "$WORK/" + w.folder + name
}

// put puts a file into the folder of the session.
func (w *writer) put(name, content string) { w.file(w.folder+name, content) }

// content is the text of a file.
func (w *writer) content() string {
	first := pick(w.r, []string{"hello\n", "Grüße\n", "日本語\nzweite Zeile\n", "no newline", "tab\there\n", "🙂\n"})
	return first + w.textLine()
}

// textLine is a line that no other file has.
func (w *writer) textLine() string {
	w.n++
	return fmt.Sprintf("Zeile %d\n", w.n)
}
