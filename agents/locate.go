package agents

import (
	"cmp"
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
)

// Where names the kind of place where an agent's program was found.
type Where string

// The places where a program is searched, in this order.
const (
	InSelf     Where = "built in"
	InPlace    Where = "as given"         // the command is a path
	InAgents   Where = "$ACP_TEST_AGENTS" // a list of folders
	InCheckout Where = "ci/agents"        // the folder in the nearest checkout
	InPath     Where = "PATH"
	AtURL      Where = "url" // the agent runs already; no program is searched
)

// Found is a program and the place where it was found.
type Found struct {
	Path  string
	Where Where
	// AgentDir is the folder in which the agent is installed. It contains node_modules or the program. It is "" if
	// the program was found in PATH.
	AgentDir string
}

// bin returns the folder node_modules/.bin of the agent, "" if it has none.
func (f Found) bin() string {
	if dir := filepath.Dir(f.Path); filepath.Base(dir) == ".bin" {
		return dir
	}
	return ""
}

// MissingError says that an agent's program was not found. It contains the command that installs the agent, if one is
// known.
type MissingError struct {
	Agent   string // the profile's name
	Program string
	Looked  []string // where the program was searched
	Fix     string   // a command that installs the agent, or advice; "" if unknown
}

func (e *MissingError) Error() string {
	s := fmt.Sprintf("starting %s: no program %q in %s", e.Agent, e.Program, strings.Join(e.Looked, ", "))
	if e.Fix != "" {
		s += "; to fix it: " + e.Fix
	}
	return s
}

// Locate finds the agent's program. If the command is a path, Locate uses the path. If the command is a name, Locate
// searches the folders of the host's ACP_TEST_AGENTS, then ci/agents of the nearest checkout, then PATH. In the first
// two it also searches NAME/node_modules/.bin, where NAME is the profile's name. If no program is found, Locate
// returns a *MissingError.
func (p *Profile) Locate(s Sandbox) (Found, error) {
	if p.Remote() {
		return Found{Path: p.URL, Where: AtURL}, nil
	}
	host := environment(s.HostEnv)
	program := p.Command[0]
	if program == "$SELF" && s.Self != "" {
		return Found{Path: s.Self, Where: InSelf, AgentDir: filepath.Dir(s.Self)}, nil
	}
	missing := &MissingError{Agent: p.Name, Program: program}
	if strings.ContainsAny(program, `/\`) {
		values := map[string]string{"WORK": s.Work, "HOME": s.Home, "TMP": s.Temp, "CWD": s.Cwd}
		path := p.absolute(expand(program, values, p.literal), s.Cwd)
		if try := executable(path, host); try != "" {
			return Found{Path: try, Where: InPlace, AgentDir: filepath.Dir(try)}, nil
		}
		missing.Program = path
		missing.Looked = []string{filepath.Dir(path)}
		missing.Fix = p.fix("")
		if info, err := os.Stat(path); err == nil && !info.IsDir() {
			missing.Looked = []string{filepath.Dir(path) + " that may be executed"}
			missing.Fix = "chmod +x " + path
		}
		return Found{}, missing
	}
	for _, dir := range filepath.SplitList(host["ACP_TEST_AGENTS"]) {
		missing.Looked = append(missing.Looked, dir)
		if f, ok := p.installed(dir, program, host); ok {
			f.Where = InAgents
			return f, nil
		}
	}
	checkout := nearest(s.Cwd, filepath.Join("ci", "agents"))
	if checkout != "" {
		dir := filepath.Join(checkout, "ci", "agents")
		missing.Looked = append(missing.Looked, filepath.Join(dir, p.Name))
		if f, ok := p.installed(dir, program, host); ok {
			f.Where = InCheckout
			return f, nil
		}
	}
	path := cmp.Or(host["PATH"], host["Path"])
	for _, dir := range filepath.SplitList(path) {
		if !filepath.IsAbs(dir) {
			continue // files in the user's folder are not installed programs
		}
		if try := executable(filepath.Join(dir, program), host); try != "" {
			return Found{Path: try, Where: InPath}, nil
		}
	}
	missing.Looked = append(missing.Looked, "PATH")
	missing.Fix = p.fix(checkout)
	return Found{}, missing
}

// installed searches a program in dir. Agents are installed in folders of dir named after their profiles, or directly
// in dir.
func (p *Profile) installed(dir, program string, host map[string]string) (Found, bool) {
	own := filepath.Join(dir, p.Name)
	for _, c := range []struct{ path, agent string }{
		{filepath.Join(own, "node_modules", ".bin", program), own},
		{filepath.Join(own, program), own},
		{filepath.Join(dir, program), dir},
	} {
		if try := executable(c.path, host); try != "" {
			return Found{Path: try, AgentDir: c.agent}, true
		}
	}
	return Found{}, false
}

// fix returns the command that installs the agent, or a note on how to install it.
func (p *Profile) fix(checkout string) string {
	script := filepath.Join(checkout, "ci", "agents", "install")
	if info, err := os.Stat(script); checkout != "" && err == nil && !info.IsDir() {
		if _, err := os.Stat(filepath.Join(checkout, "ci", "agents", p.Name, "package.json")); err == nil {
			return script + " " + p.Name
		}
	}
	switch {
	case p.Install.NPM != "":
		return "npm install --global " + p.Install.NPM
	case p.Install.Note != "":
		return p.Install.Note
	}
	return ""
}

// nearest returns the closest folder, dir or one above it, that contains a folder called name; "" if there is none.
func nearest(dir, name string) string {
	for up := ""; filepath.IsAbs(dir) && up != dir; up, dir = dir, filepath.Dir(dir) {
		if info, err := os.Stat(filepath.Join(dir, name)); err == nil && info.IsDir() {
			return dir
		}
	}
	return ""
}

// executable returns the file that the system would start for a path, or "" if no such file is executable. On Windows
// the file may have an extension such as .exe.
func executable(path string, host map[string]string) string {
	for _, try := range executables(path, host) {
		info, err := os.Stat(try)
		if err == nil && !info.IsDir() && (runtime.GOOS == "windows" || info.Mode()&0o111 != 0) {
			return try
		}
	}
	return ""
}

// executables returns the file names that a program may have on this system.
func executables(path string, host map[string]string) []string {
	if runtime.GOOS != "windows" {
		return []string{path}
	}
	exts := cmp.Or(host["PATHEXT"], ".COM;.EXE;.BAT;.CMD")
	out := []string{}
	if filepath.Ext(path) != "" {
		out = append(out, path)
	}
	for ext := range strings.SplitSeq(exts, ";") {
		out = append(out, path+strings.ToLower(ext))
	}
	return out
}

// symptoms maps patterns in the stderr of an agent that did not start to hints. Each block has one regular expression
// per line, followed by an indented hint. In the hint, $1 stands for the text that a group of the expressions
// matched. Diagnose uses the first block that matches.
//
//go:embed tables/symptoms.txt
var symptoms string

// Diagnose returns advice about an agent that died before it answered
// initialize, based on its stderr; "" if no known symptom matches.
func Diagnose(stderr string) string {
	for block := range strings.SplitSeq(symptoms, "\n\n") {
		expressions, hint, _ := strings.Cut(block, "\n  ")
		m := regexp.MustCompile(strings.ReplaceAll(expressions, "\n", "|")).FindStringSubmatch(stderr)
		if m == nil {
			continue
		}
		what := cmp.Or(strings.TrimRight(strings.Join(m[1:], ""), ".,;:"), "what it needs")
		return strings.NewReplacer("$$", "$", "$1", what).Replace(strings.Join(strings.Fields(hint), " "))
	}
	return ""
}
