package grammar

import (
	"cmp"
	_ "embed"
	"fmt"
	"path"
	"strconv"
	"strings"
	"sync"

	"github.com/acp-test/acp-test/fakellm"
	"github.com/acp-test/acp-test/internal/lists"
	"github.com/acp-test/acp-test/internal/yamlfile"
)

// call is one call of a tool by the model.
type call struct {
	tool, shape string
	step        fakellm.StepNode
	args        object
	// mark is a text that occurs only in this call, in its path or command.
	mark string
	// mayFail says that an agent may report the call as failed.
	mayFail bool
	// after is a script line that checks the effect of the call; "" if nothing shows the effect. requirement is the id
	// of the requirement that this line tests.
	after, requirement string
	traces             string // what, besides the effect that after checks, must not exist if the user rejects the call
}

// shape is a way to call a tool. Its texts contain placeholders, and writer.or replaces the texts DRAWN, LONG and
// LARGE.
//   - MARK is the mark of the call, NUMBER the number in that mark, and PRODUCT seven times NUMBER.
//   - FOLDER is the session's folder.
//   - SERVER is the name of an MCP server, and STDIO the name of the server over stdio.
//   - OVER is the option over= that names the server if the session has two servers.
type shape struct {
	Weight int    `yaml:"weight"`
	Tool   string `yaml:"tool"`
	Name   string `yaml:"name"`
	// Called is the name of a tool that the agent lacks, which the model calls instead of Tool; "" for a call of Tool.
	Called string `yaml:"called"`
	// Raw is the text that the model gives instead of arguments in JSON.
	Raw string `yaml:"raw"`
	// File describes a file that must exist before the call: the end of its name, after the mark, and its text.
	File []string `yaml:"file"`
	// Beside is how many other files with long names are in the folder of that file.
	Beside int `yaml:"beside"`
	// Paths are the ends of file names, after the mark: of the path, and of the target if the call moves a file.
	Paths []string `yaml:"paths"`
	Args  object   `yaml:"args"`
	// After is the script line that checks the call's effect; "" if nothing shows the effect.
	After       string `yaml:"after"`
	Requirement string `yaml:"requirement"`
	// Traces is a folder that the call creates. It must not exist after the user has rejected the call.
	Traces string `yaml:"traces"`
	Hangs  bool   `yaml:"hangs"` // no later call reaches the server
	Fails  bool   `yaml:"fails"` // the call cannot succeed
	// MayFail says that an agent may report the call as failed although the tool works.
	MayFail bool `yaml:"mayFail"`
}

//go:embed shapes.yaml
var shapeTable []byte

var shapes = sync.OnceValue(func() (all []shape) {
	root, err := yamlfile.Parse("shapes.yaml", shapeTable)
	if err != nil {
		panic(err) // it is embedded
	}
	root.Decode(&all, "the shapes", "")
	return all
})

// make writes the file that the shape needs, and returns the arguments of the call. fill replaces placeholders.
func (s shape) make(w *writer, fill func(string) string) object {
	args := object{}
	if s.File != nil {
		name := fill("MARK" + s.File[0])
		w.put(name, w.or(fill(s.File[1])))
		for n := range s.Beside {
			w.put(fmt.Sprintf("%s/eine-datei-mit-einem-recht-langen-namen-im-selben-ordner-%d.txt", path.Dir(name), n), "\n")
		}
	}
	for i, name := range s.Paths {
		args[[]string{"path", "to"}[i]] = w.path(fill("MARK" + name))
	}
	for key, value := range s.Args {
		args[key] = w.filled(value, fill)
	}
	w.hung = w.hung || s.Hangs
	return args
}

// filled returns an argument in which the placeholders are replaced.
func (w *writer) filled(value any, fill func(string) string) any {
	switch value := value.(type) {
	case string:
		return strings.ReplaceAll(w.or(fill(value)), "LONG", w.or("LONG"))
	case object:
		out := object{}
		for key, v := range value {
			out[key] = w.filled(v, fill)
		}
		return out
	case []any:
		return append([]any{}, lists.Map(value, func(v any) any { return w.filled(v, fill) })...) // [] is not null
	}
	return value
}

// or returns a generated text for DRAWN, LONG or LARGE. It returns any other text unchanged.
func (w *writer) or(text string) string {
	switch text {
	case "DRAWN":
		return w.content()
	case "LONG":
		return longText(2000)
	case "LARGE": // larger than many limits of caches
		return longText(18_000) + "old word\n"
	}
	return text
}

// longText returns lines that all differ, so that a part of them cannot be taken for another part.
func longText(lines int) string {
	var b strings.Builder
	for n := range lines {
		fmt.Fprintf(&b, "Zeile %d von vielen\n", n+1)
	}
	return b.String()
}

// marked reports whether a permission request can be matched to a call of the shape. The call must show its mark, and
// must be able to succeed: otherwise it may fail before the agent asks.
func (s shape) marked() bool {
	args, _ := s.Args["args"].(object)
	text, _ := args["text"].(string)
	return !s.Fails && (s.Tool != "mcp" || strings.Contains(text, "MARK"))
}

func (shape) any() bool { return true }

// call draws a call of the tool named of, or of any tool if of is "". ok is false if no such tool works.
func (w *writer) call(of string) (c call, ok bool) { return w.callLike(of, shape.any) }

// callLike is like call, but draws only shapes that fits accepts.
func (w *writer) callLike(of string, fits func(shape) bool) (c call, ok bool) {
	c.mark = fmt.Sprintf("nota%dx", w.n+1)
	w.n++
	var list []weighted[int]
	for i, s := range shapes() {
		out := !w.works(s.Tool) || of != "" && of != s.Tool || s.Tool == "mcp" && !w.served() ||
			!fits(s)
		list = append(list, weighted[int]{s.Weight, i, out})
	}
	i, ok := choose(w.r, list)
	if !ok {
		return c, false
	}
	s, n := shapes()[i], w.n
	fill := strings.NewReplacer("MARK", c.mark, "NUMBER", strconv.Itoa(n), "PRODUCT", strconv.Itoa(n*7), "FOLDER",
		w.folder, "SERVER", w.server, "STDIO", w.server, " OVER", "").Replace
	if w.another != "" {
		over := pick(w.r, []string{"stdio", w.another})
		named := strings.NewReplacer("SERVER",
			map[string]string{"stdio": w.server, "http": "canary_http", "twin": w.server + "_twin"}[over], "OVER", "over="+over)
		if s.Name == "server" && over == "twin" {
			w.covered("call", twinCall)
		}
		plain := fill
		fill = func(text string) string { return plain(named.Replace(text)) }
	}
	c.tool, c.shape, c.args, c.mayFail = s.Tool, s.Name, s.make(w, fill), s.Fails || s.MayFail
	if c.step = tool(s.Tool, c.args); s.Called+s.Raw != "" {
		raw := cmp.Or(fill(s.Raw), strings.TrimSpace(marshal(c.args)))
		c.step = fakellm.NewStep("tool", cmp.Or(s.Called, s.Tool), "raw: "+marshal(raw))
	}
	c.after, c.requirement, c.traces = fill(s.After), s.Requirement, fill(s.Traces)
	if c.tool == "delegate" {
		w.lanes += lane(c.mark, "")
	}
	w.made = append(w.made, c)
	return c, true
}

// twinCall names a call of the twin of an MCP server.
const twinCall = "server, twin"

// lane returns the model script of a subagent that the agent starts for a call. If gate is not "", a gate of that name
// holds the subagent's turn.
func lane(mark, gate string) string {
	held := ""
	if gate != "" {
		held = "      - gate: " + gate + "\n      - text: Looked at it.\n"
	}
	return fmt.Sprintf("  %s:\n    when: {user~: %[1]q}\n    reply:\n      - text: %s\n%s", mark, begun(mark), held)
}

// begun returns the first text of the subagent that the agent starts for a call.
func begun(mark string) string { return "Begun with " + mark + "." }

// path returns a name in the session's folder, as an absolute path or relative to that folder.
func (w *writer) path(name string) string {
	if w.one(3) {
		return w.relative(name)
	}
	return "$WORK/" + w.folder + name
}

// relative returns a name in the session's folder, or the same with a dot before it.
func (w *writer) relative(name string) string {
	if w.one(3) {
		return "./" + name
	}
	return name
}

// put puts a file into the folder of the session.
func (w *writer) put(name, content string) { w.file(w.folder+name, content) }

// content returns a drawn text for a file.
func (w *writer) content() string {
	first := pick(w.r, []string{"hello\n", "Grüße\n", "日本語\nzweite Zeile\n", "no newline", "tab\there\n", "🙂\n",
		"\ufeffmit BOM\n"})
	return first + w.textLine()
}

// textLine returns a line of text that no other file has.
func (w *writer) textLine() string {
	w.n++
	return fmt.Sprintf("Zeile %d\n", w.n)
}
