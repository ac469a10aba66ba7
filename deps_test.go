// Package acptest_test holds the rules about which package may know which.
package acptest_test

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/acp-test/acp-test/protocol/acp/schema"
)

const module = "github.com/acp-test/acp-test"

// layers are the packages from the top down. A package may import those of the
// layers below its own, never one of its own layer: what two of them share
// belongs below both.
var layers = [][]string{
	{"cmd/acp-test"},
	{"protocol/acp", "protocol/agui"},
	{"editors", "sabotage"},
	{"protocol/translate", "protocol/agui/words", "protocol/agui/aguirecord", "protocol/agui/aguireport",
		"protocol/agui/schedules", "protocol/agui/grammar", "protocol/acp/acpreport", "protocol/acp/schedules",
		"protocol/acp/grammar", "protocol/acp/words", "protocol/acp/prompt", "protocol/acp/scratch",
		"protocol/acp/recordings"},
	{"reports", "sweep", "replay", "acptest", "protocol/lexicon"},
	{"scenarios"},
	{"scenarios/verdict", "scenarios/language"},
	{"scenarios/results"},
	{"protocol/agui/invariants", "protocol/agui/canonical"},
	{"protocol/agui/endpoint", "protocol/acp/remote", "protocol/acp/invariants", "protocol/acp/canonical"},
	{"agents", "inspector", "internal/canary", "protocol/hearing", "serve/obedient", "editors/personas"},
	{"rules", "golden", "mockclient", "fakellm"},
	{"protocol/agui/aguiframe", "protocol/agui/aguiproto", "protocol/agui/fold", "protocol/acp/acpframe", "transport"},
	{"serve"},
	{"protocol/acp/schema", "transcript", "internal/slots"},
	{"scenarios/script", "internal/process", "internal/form", "internal/yamlfile", "internal/logs"},
	{"wire", "mistake", "internal/isolate", "internal/pipe", "internal/workspace", "internal/glob", "internal/bugs"},
	{"internal/confined", "internal/evidence", "internal/printable", "internal/secret", "docs"},
	{"internal/lazy", "internal/lists", "internal/loopback", "internal/sse"},
}

// kernel are the packages that serve any protocol: they contain no name of a
// message of one, and import nothing of what only one needs.
var kernel = []string{"wire", "transcript", "mistake", "fakellm", "golden", "rules", "agents", "serve", "transport",
	"reports", "inspector", "scenarios", "replay", "sweep"}

// alone are packages that import none of ours, and only the commands and the tools in ci
// import them: the reference agent is an independent second opinion of the protocol,
// which it could not be if it shared code with what judges it.
var alone = []string{"refagent", "refagent/faults", "refagent/liberties", "refagent/mutation", "refagent/netagent",
	"refagent/webagent"}

// forbidden says what a library package must not import, and why.
var forbidden = []struct{ path, why string }{
	{"testing", "a library that imports it registers its flags in every program"},
	{"github.com/onsi/ginkgo", "users choose their own test framework"},
	{"github.com/onsi/gomega", "matchers are plain values with gomega's methods; only tests need the library"},
	{"github.com/sebdah/goldie", "it registers global flags"},
	{"flag", "flags belong to the command; a library has options"},
	{"github.com/spf13/cobra", "flags belong to the command; a library has options"},
	{"github.com/spf13/pflag", "flags belong to the command; a library has options"},
	{"math/rand", "randomness comes from a seed, through math/rand/v2"},
}

// only says which packages alone may import what, and why.
var only = []struct {
	path, why string
	by        []string
}{
	{"github.com/creack/pty", "the protocol runs over pipes; pseudo-terminals are for terminal/* alone",
		[]string{"mockclient"}},
	{"github.com/goccy/go-yaml", "one package reads YAML, so that it means the same everywhere",
		[]string{"mistake", "internal/yamlfile", "protocol/acp/schema"}},
	{"encoding/json/v2", "it is an experiment of the standard library", nil},
	{"github.com/openai/openai-go", "only tests use it, as a client of the fake model", nil},
	{"github.com/tmaxmax/go-sse", "the reference agent reads a stream; the fake model writes its own",
		[]string{"refagent"}},
	{"github.com/hashicorp/go-retryablehttp", "an agent retries; a test tool must not", []string{"refagent"}},
	{"github.com/anthropics/anthropic-sdk-go", "only tests use it, as a client of the fake model", nil},
	{"google.golang.org/protobuf", "the binary form of AG-UI is one package, and the reference agent writes its own",
		[]string{"protocol/agui/aguiproto", "refagent/webagent"}},
	{"google.golang.org/genai", "only tests use it, as a client of the fake model", nil},
}

// standardOnly are packages that need nothing but the standard library and
// ours, because everything else rests on them.
var standardOnly = []string{"wire", "transcript", "protocol/acp/schema"}

// calls that a library must not make, and why.
var calls = []struct{ call, why string }{
	{"os.Getenv", "the environment is handed in"},
	{"os.LookupEnv", "the environment is handed in"},
	{"os.Environ", "the environment is handed in"},
	{"os.ExpandEnv", "the environment is handed in"},
	{"os.Setenv", "it changes the caller's process"},
	{"os.Unsetenv", "it changes the caller's process"},
	{"os.Chdir", "it changes the caller's process"},
	{"os.Exit", "a library returns errors"},
	{"syscall.Exit", "a library returns errors"},
	{"runtime.Goexit", "a library returns errors"},
	{"signal.Notify", "signals belong to the command"},
	{"signal.NotifyContext", "signals belong to the command"},
	{"log.Print", "who prints is the caller's business"},
	{"log.Printf", "who prints is the caller's business"},
	{"log.Println", "who prints is the caller's business"},
	{"log.Fatal", "a library returns errors"},
	{"log.Fatalf", "a library returns errors"},
	{"log.Fatalln", "a library returns errors"},
	{"log.Panic", "a library returns errors"},
	{"log.Panicf", "a library returns errors"},
	{"log.Default", "who prints is the caller's business"},
	{"log.SetOutput", "it changes the caller's process"},
	{"slog.Default", "who prints is the caller's business"},
	{"slog.SetDefault", "it changes the caller's process"},
	{"fmt.Print", "standard output belongs to the command"},
	{"fmt.Printf", "standard output belongs to the command"},
	{"fmt.Println", "standard output belongs to the command"},
}

// exempt are the calls that have a reason of their own: file and call.
var exempt = map[string]string{
	"acptest/acptest.go os.Environ": "an agent under a Go test is started as from the shell that " +
		"runs the test; agents.Launch passes little of it on",
	"internal/isolate/isolate_linux.go os.Environ": "the helper is a program of its own, which becomes the agent " +
		"and passes its environment on",
	"internal/process/keeper_unix.go signal.Notify": "it is the body of a command, which must survive its " +
		"parent's signals",
	"internal/isolate/isolate_linux.go os.Chdir":   "it is the body of a command, whose root is another one by then",
	"internal/isolate/lead_linux.go os.Environ":    "it is the body of a command, which starts the agent with its own",
	"internal/isolate/lead_linux.go signal.Notify": "it is the body of a command, which its agent must not end",
	"internal/isolate/view_linux.go os.Chdir":      "it is the body of a command, which changes its root",
}

// latched are variables that change once, with the reason.
var latched = map[string]string{
	"internal/process.resting": "a keeper rests for whatever in this process starts an agent next, as children are " +
		"of the process",
	"acptest.canKeep": "a test runs in a goroutine of its own: nothing else tells Start that TestMain called Main",
}

// nameless are package names that say nothing.
var nameless = []string{"util", "utils", "common", "types", "helpers", "helper", "base", "misc", "shared", "lib", "pkg",
	"internal"}

// source is one parsed file of the module, tests left out.
type source struct {
	dir  string // with slashes, relative to the root
	file string
	ast  *ast.File
	pos  *token.FileSet
}

func sources(t *testing.T) []source {
	t.Helper()
	var out []source
	set := token.NewFileSet()
	err := filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if base := d.Name(); name != "." &&
				(strings.HasPrefix(base, ".") || strings.HasPrefix(base, "acp-test-out") ||
					slices.Contains([]string{"node_modules", "testdata", "vendor"}, base)) {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		f, err := parser.ParseFile(set, name, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		out = append(out, source{path.Dir(filepath.ToSlash(name)), name, f, set})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func (s source) at(n ast.Node) string { return s.pos.Position(n.Pos()).String() }

// layer is the index of a package's layer from the top; -1: none.
func layer(dir string) int {
	return slices.IndexFunc(layers, func(l []string) bool { return slices.Contains(l, owner(dir)) })
}

// owner is the package of the table that a folder is, or belongs to.
func owner(dir string) string {
	longest := ""
	for _, l := range append(slices.Clone(layers), alone) {
		for _, p := range l {
			if (dir == p || strings.HasPrefix(dir, p+"/")) && len(p) > len(longest) {
				longest = p
			}
		}
	}
	return cmp.Or(longest, dir)
}

func isLibrary(dir string) bool {
	return !strings.HasPrefix(dir, "cmd/") && !strings.HasPrefix(dir, "ci/")
}

// matches reports whether an import is of the module or package named.
func matches(imported, name string) bool {
	return imported == name || strings.HasPrefix(imported, name+"/")
}

// complaint is nil if from may import ours.
func complaint(from, ours string) error {
	switch {
	case owner(from) == owner(ours):
		return nil
	case slices.Contains(alone, owner(from)) && slices.Contains(alone, owner(ours)):
		return nil
	case slices.Contains(alone, owner(from)):
		return fmt.Errorf("%s imports none of ours: it is an independent second opinion of the protocol", from)
	case slices.Contains(alone, owner(ours)):
		if !isLibrary(from) || from == "sabotage" && ours == "refagent/mutation" { // it plays what those play
			return nil
		}
		return fmt.Errorf("only the command and the tools in ci know %s: to everything else it is an agent "+
			"like any other", ours)
	}
	if strings.HasPrefix(from, "ci/") && strings.HasPrefix(ours, "ci/") {
		return nil
	}
	above, below := layer(from), layer(ours)
	switch {
	case below < 0:
		return fmt.Errorf("%s has no layer: add it to layers in deps_test.go", ours)
	case above < 0 && strings.HasPrefix(from, "ci/"):
		return nil
	case above < 0:
		return fmt.Errorf("%s has no layer: add it to layers in deps_test.go", from)
	case above == below:
		return fmt.Errorf("%s and %s are of one layer: move shared code below both, or change layers in deps_test.go",
			from, ours)
	case above > below:
		return fmt.Errorf("%s is above %s: move the code down, or change layers in deps_test.go", ours, from)
	}
	return nil
}

func TestImports(t *testing.T) {
	for _, s := range sources(t) {
		for _, spec := range s.ast.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				t.Fatal(err)
			}
			if ours, ok := strings.CutPrefix(imported, module+"/"); ok {
				if err := complaint(s.dir, ours); err != nil {
					t.Errorf("%s imports %s, but %v", s.at(spec), ours, err)
				}
				continue
			}
			if !isLibrary(s.dir) {
				continue
			}
			for _, f := range forbidden {
				if imported == f.path || strings.Contains(f.path, ".") && matches(imported, f.path) {
					t.Errorf("%s imports %s: %s", s.at(spec), imported, f.why)
				}
			}
			for _, o := range only {
				if matches(imported, o.path) && !slices.Contains(o.by, owner(s.dir)) {
					t.Errorf("%s imports %s: %s; only in deps_test.go lists the packages that may", s.at(spec),
						imported, o.why)
				}
			}
			first, _, _ := strings.Cut(imported, "/")
			if strings.Contains(first, ".") && slices.Contains(standardOnly, owner(s.dir)) {
				t.Errorf("%s imports %s: %s rests on the standard library alone", s.at(spec), imported, s.dir)
			}
		}
	}
}

func TestTheKernelKnowsNoProtocol(t *testing.T) {
	v := schema.V1()
	var names []string
	for _, m := range v.Methods() {
		names = append(names, m.Name)
	}
	for _, u := range v.Updates() {
		if strings.Contains(u.Kind, "_") { // others are words of English
			names = append(names, u.Kind)
		}
	}
	for _, s := range sources(t) {
		if !slices.Contains(kernel, owner(s.dir)) {
			continue
		}
		ast.Inspect(s.ast, func(n ast.Node) bool {
			if text := literal(n); slices.Contains(names, text) || namesMethod(text) {
				t.Errorf("%s names %q of ACP: a package of the kernel takes it from the protocol's value, made "+
					"in protocol/",
					s.at(n), text)
			}
			return true
		})
		for _, spec := range s.ast.Imports {
			imported := literal(spec.Path)
			if matches(imported, module+"/protocol") || matches(imported, module+"/mockclient") {
				t.Errorf("%s imports %s: %s serves any protocol", s.at(spec), imported, s.dir)
			}
		}
	}
}

// literal is the text of a string literal, "" of anything else.
func literal(n ast.Node) string {
	if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
		text, _ := strconv.Unquote(lit.Value)
		return text
	}
	return ""
}

// namesMethod reports whether a text has a method, or a path of a capability.
func namesMethod(text string) bool {
	return slices.ContainsFunc([]string{"session/", "fs/", "terminal/", "elicitation/", "agentCapabilities",
		"clientCapabilities"},
		func(part string) bool { return strings.Contains(" "+text, part) && !strings.Contains(text, "/"+part) })
}

func TestCallsOfLibraries(t *testing.T) {
	for _, s := range sources(t) {
		if !isLibrary(s.dir) {
			continue
		}
		ast.Inspect(s.ast, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			x, ok := sel.X.(*ast.Ident)
			if !ok {
				return true
			}
			for _, c := range calls {
				if x.Name+"."+sel.Sel.Name == c.call && exempt[filepath.ToSlash(s.file)+" "+c.call] == "" {
					t.Errorf("%s uses %s: %s; a use with a reason of its own is listed in exempt in deps_test.go",
						s.at(n), c.call, c.why)
				}
			}
			return true
		})
	}
}

func TestNamesOfPackages(t *testing.T) {
	for _, s := range sources(t) {
		if slices.Contains(nameless, s.ast.Name.Name) {
			t.Errorf("%s: package %s: rename it after its content (nameless in deps_test.go lists such names)",
				s.file, s.ast.Name.Name)
		}
	}
}

// Package-level variables hold what is fixed once: tables, errors, regular
// expressions, embedded files. None is assigned, appended to, incremented or
// written through an index or a field, and none has its address taken.
func TestNoMutableState(t *testing.T) {
	byDir := map[string][]source{}
	for _, s := range sources(t) {
		if isLibrary(s.dir) {
			byDir[s.dir] = append(byDir[s.dir], s)
		}
	}
	for _, files := range byDir {
		vars := map[string]bool{}
		for _, s := range files {
			for _, d := range s.ast.Decls {
				g, ok := d.(*ast.GenDecl)
				if !ok || g.Tok != token.VAR {
					continue
				}
				for _, spec := range g.Specs {
					v := spec.(*ast.ValueSpec)
					for _, name := range v.Names {
						if name.Name != "_" {
							vars[name.Name] = true
						}
					}
					if stateful(v) && latched[s.dir+"."+v.Names[0].Name] == "" {
						t.Errorf("%s: %s is state of the package: make it a field, or list it with its reason "+
							"in latched "+
							"in deps_test.go", s.at(v), v.Names[0].Name)
					}
				}
			}
		}
		for _, s := range files {
			for _, d := range s.ast.Decls {
				f, ok := d.(*ast.FuncDecl)
				if !ok || f.Body == nil {
					continue
				}
				for _, w := range writes(f) {
					if vars[w.Name] && !shadowed(f, w) {
						t.Errorf("%s changes the package's variable %s", s.at(w), w.Name)
					}
				}
			}
		}
	}
}

// stateful reports a variable whose type exists to change. A sync.Pool is none:
// nobody can tell what was in it.
func stateful(v *ast.ValueSpec) bool {
	typ := v.Type
	if len(v.Values) > 0 && typ == nil {
		if lit, ok := v.Values[0].(*ast.CompositeLit); ok {
			typ = lit.Type
		}
	}
	sel, ok := typ.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	x, _ := sel.X.(*ast.Ident)
	return x != nil && (x.Name == "atomic" || x.Name == "sync" && sel.Sel.Name != "Pool")
}

// writes lists the variables a function changes: the first name of what stands
// to the left of an assignment, of ++ and --, and behind &.
func writes(f *ast.FuncDecl) []*ast.Ident {
	var out []*ast.Ident
	add := func(e ast.Expr) {
		for {
			switch x := e.(type) {
			case *ast.Ident:
				out = append(out, x)
				return
			case *ast.SelectorExpr:
				e = x.X
			case *ast.IndexExpr:
				e = x.X
			case *ast.StarExpr:
				e = x.X
			case *ast.ParenExpr:
				e = x.X
			default:
				return
			}
		}
	}
	ast.Inspect(f.Body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			if n.Tok != token.DEFINE {
				for _, e := range n.Lhs {
					add(e)
				}
			}
		case *ast.IncDecStmt:
			add(n.X)
		case *ast.UnaryExpr:
			// The address of an element of a table is how it is read without
			// a copy; of the variable itself, how it is changed elsewhere.
			if x, ok := n.X.(*ast.Ident); ok && n.Op == token.AND {
				out = append(out, x)
			}
		case *ast.CallExpr:
			if fun, ok := n.Fun.(*ast.Ident); ok && (fun.Name == "delete" || fun.Name == "clear") && len(n.Args) > 0 {
				add(n.Args[0])
			}
		}
		return true
	})
	return out
}

// shadowed reports whether the function has a variable of that name of its own.
// It looks at the whole function, which is coarse but needs no type checker.
func shadowed(f *ast.FuncDecl, use *ast.Ident) bool {
	found := false
	note := func(names []*ast.Ident) {
		for _, n := range names {
			found = found || n.Name == use.Name
		}
	}
	fields := func(l *ast.FieldList) {
		if l != nil {
			for _, x := range l.List {
				note(x.Names)
			}
		}
	}
	fields(f.Recv)
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncType:
			fields(n.Params)
			fields(n.Results)
		case *ast.AssignStmt:
			if n.Tok == token.DEFINE {
				for _, e := range n.Lhs {
					if id, ok := e.(*ast.Ident); ok {
						note([]*ast.Ident{id})
					}
				}
			}
		case *ast.ValueSpec:
			note(n.Names)
		case *ast.RangeStmt:
			for _, e := range []ast.Expr{n.Key, n.Value} {
				if id, ok := e.(*ast.Ident); ok && n.Tok == token.DEFINE {
					note([]*ast.Ident{id})
				}
			}
		}
		return true
	})
	return found
}

// The rules above can fail: each of these breaks one.
func TestTheTableCanFail(t *testing.T) {
	for _, c := range []struct {
		from, to string
		allowed  bool
	}{
		{"cmd/acp-test", "refagent", true},
		{"cmd/acp-test", "wire", true},
		{"scenarios", "rules", true},
		{"reports", "scenarios", true},
		{"mockclient", "transcript", true},
		{"transcript", "wire", true},
		{"refagent", "refagent/faults", true},
		{"refagent", "wire", false},
		{"scenarios", "refagent", false},
		{"scenarios", "reports", false},
		{"rules", "golden", false},
		{"agents", "fakellm", true},
		{"fakellm", "agents", false},
		{"protocol/acp/schema", "transcript", false},
		{"wire", "protocol/acp/schema", false},
		{"reports", "sweep", false},
		{"helpers", "wire", false},
		{"rules", "stuff", false},
	} {
		if err := complaint(c.from, c.to); (err == nil) != c.allowed {
			t.Errorf("%s imports %s: got %v, want allowed %v", c.from, c.to, err, c.allowed)
		}
	}
	for _, c := range []struct {
		code string
		want string
	}{
		{"func f() { v = 1 }", "v"},
		{"func f() { v++ }", "v"},
		{"func f() { v[1] = 2 }", "v"},
		{"func f() { v.x.y = 2 }", "v"},
		{"func f() { g(&v) }", "v"},
		{"func f() { delete(v, 1) }", "v"},
		{"func f() { v := 1; v = 2 }", ""},
		{"func f(v int) { v = 2 }", ""},
		{"func f() { g(&v[1]) }", ""},
		{"func f() { x := v; _ = x }", ""},
	} {
		file, err := parser.ParseFile(token.NewFileSet(), "x.go", "package x\n"+c.code, 0)
		if err != nil {
			t.Fatal(err)
		}
		f := file.Decls[0].(*ast.FuncDecl)
		got := ""
		for _, w := range writes(f) {
			if w.Name == "v" && !shadowed(f, w) {
				got = "v"
			}
		}
		if got != c.want {
			t.Errorf("%s: got %q, want %q", c.code, got, c.want)
		}
	}
}

// A version of a protocol is a value, or is named as v2. "Second" is the second prompt, session
// or process, or a unit of time.
var (
	second  = regexp.MustCompile(`^second|Second`)
	seconds = regexp.MustCompile(`^(at)?Second$|^second$|[sS]econds`)
)

func TestVersionTwoIsCalledV2(t *testing.T) {
	for _, s := range sources(t) {
		if strings.Contains(filepath.Base(s.file), "second") {
			t.Errorf("%s: name the version v2 in file names", s.file)
		}
		for _, d := range s.ast.Decls {
			for _, name := range declared(d) {
				if second.MatchString(name.Name) && !seconds.MatchString(name.Name) {
					t.Errorf("%s: %s: name the version v2, or hand it down as a value", s.at(name), name.Name)
				}
			}
		}
	}
}

// declared returns the names that a declaration at the top of a file gives.
func declared(d ast.Decl) (names []*ast.Ident) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		return []*ast.Ident{d.Name}
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			switch spec := spec.(type) {
			case *ast.TypeSpec:
				names = append(names, spec.Name)
			case *ast.ValueSpec:
				names = append(names, spec.Names...)
			}
		}
	}
	return names
}
