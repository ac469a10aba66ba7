package grammar

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/acp-test/acp-test/fakellm"
)

// call is a call of a tool that the model makes.
type call struct {
	tool, shape string
	step        fakellm.StepNode
	args        map[string]any
	// mark is a text that its path or command has and no other call.
	mark string
	// after is a line that asks for its effect, by a requirement; "" if nothing shows it.
	after, requirement string
}

// shapes of calls, by their tool: the weight, and the arguments, for which the files are made.
var shapes = []struct {
	weight      int
	tool, shape string
	args        func(w *writer, mark string) map[string]any
}{
	{4, "read_file", "read", func(w *writer, mark string) map[string]any {
		w.put(mark+"in.txt", w.content())
		return map[string]any{"path": w.path(mark + "in.txt")}
	}},
	{1, "read_file", "read nothing", func(w *writer, mark string) map[string]any {
		return map[string]any{"path": w.path(mark + "missing.txt")}
	}},
	{1, "read_file", "read much", func(w *writer, mark string) map[string]any {
		w.put(mark+"long.txt", strings.Repeat("Zeile für Zeile\n", 2000))
		return map[string]any{"path": w.path(mark + "long.txt")}
	}},
	{4, "write_file", "write", func(w *writer, mark string) map[string]any {
		return map[string]any{"path": w.path(mark + "out.txt"), "content": w.content()}
	}},
	{1, "write_file", "write a long name", func(w *writer, mark string) map[string]any {
		return map[string]any{"path": w.path(mark + "größe 日本 (1).txt"), "content": w.content()}
	}},
	{1, "write_file", "write into a new folder", func(w *writer, mark string) map[string]any {
		return map[string]any{"path": w.path(mark + "dir/ö.txt"), "content": w.content()}
	}},
	{2, "edit_file", "edit", func(w *writer, mark string) map[string]any {
		w.put(mark+"edit.txt", "vorher\nold word\nnachher\n")
		return map[string]any{"path": w.path(mark + "edit.txt"), "old": "old word", "new": "neues Wört"}
	}},
	{3, "run_shell", "run", func(w *writer, mark string) map[string]any {
		return map[string]any{"command": fmt.Sprintf("echo %s; echo 'Grüße, 日本語'", mark)}
	}},
	{1, "run_shell", "both outputs", func(_ *writer, mark string) map[string]any {
		return map[string]any{"command": fmt.Sprintf("echo %s plain; echo error-$$((%s*7)) >&2", mark, number(mark))}
	}},
	{1, "run_shell", "run and fail", func(_ *writer, mark string) map[string]any {
		return map[string]any{"command": fmt.Sprintf("echo %s >&2; exit 3", mark)}
	}},
	{1, "run_shell", "missing program", func(_ *writer, mark string) map[string]any {
		return map[string]any{"command": mark + "no-such-program"}
	}},
	{1, "run_shell", "large output", func(_ *writer, mark string) map[string]any {
		return map[string]any{"command": fmt.Sprintf("echo %s; seq 1 3000", mark)}
	}},
	{1, "run_shell", "binary output", func(_ *writer, mark string) map[string]any {
		return map[string]any{"command": fmt.Sprintf(`echo %s; printf '\377\376\200'`, mark)}
	}},
	{2, "delete_file", "delete", func(w *writer, mark string) map[string]any {
		w.put(mark+"gone.txt", "weg\n")
		return map[string]any{"path": w.path(mark + "gone.txt")}
	}},
	{2, "move_file", "move", func(w *writer, mark string) map[string]any {
		w.put(mark+"here.txt", "hier\n")
		return map[string]any{"path": w.path(mark + "here.txt"), "to": w.path(mark + "there.txt")}
	}},
	{1, "search", "search", func(w *writer, mark string) map[string]any {
		w.put(mark+"hay.txt", "Nadel "+mark+"\n")
		return map[string]any{"pattern": mark}
	}},
	{3, "mcp", "server", func(_ *writer, mark string) map[string]any {
		return map[string]any{"server": "canary", "tool": "canary_sing", "args": map[string]any{"text": mark + "ü"}}
	}},
	{1, "mcp", "server ends", func(w *writer, _ string) map[string]any {
		w.hung = true // no later call reaches it
		return map[string]any{"server": "canary", "tool": "canary_sing", "args": map[string]any{"text": "crash"}}
	}},
}

// call draws a call of a tool, "" of any that works; ok is false if none does.
func (w *writer) call(of string) (c call, ok bool) {
	c.mark = fmt.Sprintf("nota%dx", w.n+1)
	w.n++
	var list []weighted[int]
	for i, s := range shapes {
		out := !w.works(s.tool) || of != "" && of != s.tool || s.tool == "mcp" && !w.served()
		list = append(list, weighted[int]{s.weight, i, out})
	}
	i, ok := choose(w.r, list)
	if !ok {
		return c, false
	}
	s := shapes[i]
	c.tool, c.shape, c.args = s.tool, s.shape, s.args(w, c.mark)
	c.step = tool(s.tool, c.args)
	c.after, c.requirement = c.effect(w.folder)
	w.made = append(w.made, c)
	return c, true
}

// number is the number of a mark.
func number(mark string) string { return strings.Trim(mark, "notax") }

// effect is a line that asks for what the call has done, and its requirement.
func (c call) effect(folder string) (line, requirement string) {
	n, _ := strconv.Atoi(number(c.mark))
	switch c.shape {
	case "write":
		return "exists " + folder + c.mark + "out.txt", ""
	case "write a long name":
		return "exists '" + folder + c.mark + "größe 日本 (1).txt'", ""
	case "delete":
		return "! exists " + folder + c.mark + "gone.txt", ""
	case "both outputs":
		return fmt.Sprintf("saw model request raw~error-%d", n*7), ""
	case "server":
		return "canary called text=" + c.mark + "ü", "SESSION-012"
	}
	return "", ""
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
