package agents

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/acp-test/acp-test/mistake"
	"github.com/goccy/go-yaml/ast"
)

//go:embed profiles
var shipped embed.FS

// Names lists the shipped profiles, sorted.
func Names() []string {
	files, err := fs.Glob(shipped, "profiles/*.yaml")
	if err != nil {
		return nil
	}
	var out []string
	for _, f := range files {
		if name := strings.TrimSuffix(path.Base(f), ".yaml"); !strings.HasSuffix(name, ".known") {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// Shipped gives the shipped profile of that name, or an error that suggests
// one.
func Shipped(name string) (*Profile, error) {
	if !slices.Contains(Names(), name) {
		return nil, fmt.Errorf("no profile is named %q (%s)", name, mistake.Suggest(name, Names()))
	}
	dir, err := fs.Sub(shipped, "profiles")
	if err != nil {
		return nil, err
	}
	p, err := load(dir, name+".yaml", name+".yaml")
	if err != nil {
		return nil, fmt.Errorf("reading the shipped profile %s: %w", name, err)
	}
	p.Source = "shipped"
	return p, nil
}

// Load reads a profile from disk. A mistake in it is a *Mistake.
func Load(file string) (*Profile, error) {
	dir, name := filepath.Split(file)
	if dir == "" {
		dir = "."
	}
	p, err := load(os.DirFS(dir), name, file)
	if err != nil {
		return nil, err
	}
	p.Source = file
	p.base = filepath.Clean(dir)
	return p, nil
}

// Find gives the profile that --agent names: a file if name looks like one,
// else a shipped one.
func Find(name string) (*Profile, error) {
	if strings.ContainsAny(name, `/\`) || strings.HasSuffix(name, ".yaml") || strings.HasSuffix(name, ".yml") {
		return Load(name)
	}
	return Shipped(name)
}

// load reads the profile name of dir; shown names it in messages.
func load(dir fs.FS, name, shown string) (p *Profile, err error) {
	defer mistake.Catch(&err)
	src, err := fs.ReadFile(dir, name)
	if err != nil {
		return nil, fmt.Errorf("reading profile %s: %w", shown, cause(err))
	}
	r := &reader{file: shown, src: src}
	p, known := r.profile(r.parse())
	if known != nil {
		file := r.text(known, "known-failures")
		src, err := fs.ReadFile(dir, path.Clean(file))
		if err != nil {
			r.fail(known, "", "reading %s: %v", file, cause(err))
		}
		shownAs := filepath.Join(filepath.Dir(shown), file)
		if p.KnownFailures, err = ParseKnownFailures(shownAs, src); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// cause leaves out the path that the caller's message already names.
func cause(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

var profileKeys = []string{"name", "title", "command", "dir", "install", "env", "home", "caches", "model",
	"tools", "lanes", "normalize", "timeouts", "policy", "known-failures"}

// profile reads everything but the file of known failures, whose name it
// gives.
func (r *reader) profile(root ast.Node) (p *Profile, known ast.Node) {
	if root == nil {
		panic(&Mistake{File: r.file, Line: 1, Column: 1, Message: "the profile is empty", Hint: "it needs at least name and command"})
	}
	p = &Profile{}
	for i, list := 0, r.known(root, "a profile", profileKeys...); i < len(list); i++ {
		m := list[i]
		switch m.key {
		case "name":
			p.Name = r.text(m.value, "name")
			if p.Name != clean(p.Name) {
				r.fail(m.value, "such as "+clean(p.Name), "a name consists of small letters, digits, dots, dashes and underscores, not %q", p.Name)
			}
		case "title":
			p.Title = r.text(m.value, "title")
		case "command":
			p.Command = r.texts(m.value, "command")
			for _, w := range p.Command {
				r.variables(m.value, w)
			}
		case "dir":
			p.Dir = r.text(m.value, "dir")
			r.variables(m.value, p.Dir)
		case "install":
			p.Install = r.install(m.value)
		case "env":
			p.Env = r.table(m.value, "env")
			for _, v := range r.members(m.value, "env") {
				r.variables(v.value, p.Env[v.key])
			}
		case "home":
			p.Home = r.home(m.value)
		case "caches":
			if v := r.text(m.value, "caches"); v != "none" && v != "host" {
				r.fail(m.value, "", "caches is host (the default) or none, not %q", v)
			} else {
				p.NoCaches = v == "none"
			}
		case "model":
			p.Model = r.model(m.value)
		case "tools":
			p.Tools = r.tools(m.value)
		case "lanes":
			r.members(m.value, "lanes")
			p.Lanes = Lanes{File: r.file, YAML: r.section(list, i)}
		case "normalize":
			p.Normalize = r.normalize(m.value)
		case "timeouts":
			for _, t := range r.known(m.value, "timeouts", "start", "step", "scenario") {
				d := r.duration(t.value, "timeouts."+t.key)
				switch t.key {
				case "start":
					p.Timeouts.Start = d
				case "step":
					p.Timeouts.Step = d
				case "scenario":
					p.Timeouts.Scenario = d
				}
			}
		case "policy":
			p.Policy = r.table(m.value, "policy")
		case "known-failures":
			known = m.value
		}
	}
	switch {
	case p.Name == "":
		r.fail(root, "", "the profile has no name")
	case len(p.Command) == 0 || p.Command[0] == "":
		r.fail(root, "", "the profile has no command")
	}
	return p, known
}

func (r *reader) install(n ast.Node) (in Install) {
	for _, m := range r.known(n, "install", "npm", "node", "note") {
		switch m.key {
		case "npm":
			in.NPM = r.text(m.value, "install.npm")
		case "node":
			v, err := strconv.Atoi(r.text(m.value, "install.node"))
			if err != nil {
				r.fail(m.value, "", "install.node must be a major version such as 22, not %s", kind(m.value))
			}
			in.Node = v
		case "note":
			in.Note = r.text(m.value, "install.note")
		}
	}
	return in
}

func (r *reader) home(n ast.Node) map[string]string {
	files := r.table(n, "home")
	for _, m := range r.members(n, "home") {
		if !fs.ValidPath(m.key) || m.key == "." {
			r.fail(m.at, "", "%q is no path below HOME: write it with slashes, without a leading one and without ..", m.key)
		}
		r.variables(m.value, files[m.key])
	}
	return files
}

// wires are the formats the model server speaks.
var wires = []string{"openai-chat", "openai-responses", "anthropic", "gemini"}

func (r *reader) model(n ast.Node) (out Model) {
	for _, m := range r.known(n, "model", "wire") {
		out.Wire = r.text(m.value, "model.wire")
		if !slices.Contains(wires, out.Wire) {
			r.fail(m.value, mistake.Suggest(out.Wire, wires), "unknown wire format %q", out.Wire)
		}
	}
	return out
}

// neutral gives the tools that scenarios name, with their arguments.
func neutral(tool string) (args []string, ok bool) {
	switch tool {
	case "write_file":
		return []string{"path", "content"}, true
	case "edit_file":
		return []string{"path", "old", "new"}, true
	case "read_file":
		return []string{"path"}, true
	case "run_shell":
		return []string{"command"}, true
	case "search":
		return []string{"pattern"}, true
	case "fetch":
		return []string{"url"}, true
	case "ask_user":
		return []string{"question", "options", "url"}, true
	case "mcp":
		return []string{"server", "tool", "args"}, true
	}
	return nil, false
}

var neutralTools = []string{"write_file", "edit_file", "read_file", "run_shell", "search", "fetch", "ask_user", "mcp"}

var argument = regexp.MustCompile(`\$\$|\$([a-z_]+)`)

func (r *reader) tools(n ast.Node) map[string]Tool {
	out := map[string]Tool{}
	for _, m := range r.known(n, "tools", neutralTools...) {
		var t Tool
		what := "tools." + m.key
		if _, short := plain(m.value).(*ast.StringNode); short {
			out[m.key] = Tool{Name: r.text(m.value, what)}
			continue
		}
		for _, f := range r.known(m.value, what, "name", "args") {
			switch f.key {
			case "name":
				t.Name = r.text(f.value, what+".name")
				r.arguments(f.value, m.key, t.Name)
			case "args":
				r.members(f.value, what+".args")
				t.Args, _ = r.value(f.value).(map[string]any)
				r.arguments(f.value, m.key, t.Args)
			}
		}
		if t.Name == "" {
			r.fail(m.at, "", "%s has no name", what)
		}
		out[m.key] = t
	}
	return out
}

// arguments rejects a $name that the neutral tool does not have.
func (r *reader) arguments(at ast.Node, tool string, v any) {
	known, _ := neutral(tool)
	switch v := v.(type) {
	case string:
		for _, m := range argument.FindAllStringSubmatch(v, -1) {
			// A name may be followed by more letters: mcp_$server_$tool.
			fits := func(k string) bool { return strings.HasPrefix(m[1], k) }
			if m[1] != "" && !slices.ContainsFunc(known, fits) {
				r.fail(at, mistake.Suggest(m[1], known), "%s has no argument %q", tool, m[1])
			}
		}
	case map[string]any:
		for _, x := range v {
			r.arguments(at, tool, x)
		}
	case []any:
		for _, x := range v {
			r.arguments(at, tool, x)
		}
	}
}

func (r *reader) normalize(n ast.Node) (out Normalize) {
	for _, m := range r.known(n, "normalize", "replace", "unordered", "omit", "values", "without", "merge-tool-calls") {
		switch m.key {
		case "values":
			out.Values = r.texts(m.value, "normalize.values")
		case "without":
			out.Without = r.texts(m.value, "normalize.without")
		case "merge-tool-calls":
			out.MergeCalls = r.flag(m.value, "normalize.merge-tool-calls")
		case "omit":
			out.Omit = r.texts(m.value, "normalize.omit")
		case "unordered":
			out.Unordered = r.texts(m.value, "normalize.unordered")
		case "replace":
			for _, item := range r.items(m.value, "normalize.replace") {
				var one Replacement
				for _, f := range r.known(item, "a replacement", "pattern", "with") {
					switch f.key {
					case "pattern":
						one.Pattern = r.pattern(f.value, "pattern")
					case "with":
						one.With = r.text(f.value, "with")
					}
				}
				if one.Pattern == nil {
					r.fail(item, "", "a replacement needs a pattern")
				}
				out.Replace = append(out.Replace, one)
			}
		}
	}
	return out
}

// section is the file with everything blanked but the value of the i-th key of
// the document, so that places in it are places in the file.
func (r *reader) section(list []member, i int) []byte {
	key := list[i].at.GetToken().Position
	lines := bytes.SplitAfter(r.src, []byte("\n"))
	end := len(lines)
	if i+1 < len(list) {
		end = list[i+1].at.GetToken().Position.Line - 1
	}
	if end < key.Line {
		r.fail(list[i].at, "", "%s must stand on lines of its own", list[i].key)
	}
	var out []byte
	for n, line := range lines[:end] {
		switch at := n + 1; {
		case at < key.Line:
			line = []byte("\n")
		case at == key.Line:
			from := key.Column + bytes.IndexByte(line[key.Column-1:], ':')
			line = append(bytes.Repeat([]byte(" "), from), line[from:]...)
		}
		out = append(out, line...)
	}
	return out
}

var notClean = regexp.MustCompile(`[^a-z0-9._-]+`)

// clean makes a name fit for a folder of goldens.
func clean(name string) string {
	s := strings.Trim(notClean.ReplaceAllString(strings.ToLower(name), "-"), "-.")
	if s == "" {
		return "agent"
	}
	return s
}
