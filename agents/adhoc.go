package agents

import (
	"cmp"
	_ "embed"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/acp-test/acp-test/internal/lazy"
	"github.com/acp-test/acp-test/internal/lists"
)

// AdHoc returns a profile for a command that no profile describes. The profile is named after the program or, for a
// launcher or interpreter, after the script or package that the program runs. The environment contains base URLs and
// dummy keys for all wire formats. There are no known failures. The model server learns the wire format and the tools
// from the first request. The agent starts in the user's current directory, so that a command that works in a shell
// works here. argv must not be empty.
func AdHoc(argv []string) *Profile {
	start := 20 * time.Second
	if slices.Contains(launchers, base(argv[0])) {
		start = 60 * time.Second
	}
	return &Profile{
		Name:     clean(nameOf(argv)),
		Command:  slices.Clone(argv),
		Dir:      "$CWD",
		Env:      anyModel(),
		Timeouts: Timeouts{Start: start},
		Source:   "command line",
		literal:  true,
	}
}

// launchers are programs that may unpack, install or build the agent before they
// start it.
var launchers = []string{"npx", "bunx", "pnpx", "npm", "pnpm", "yarn", "uvx", "uv", "pipx", "poetry", "pdm", "hatch",
	"pixi",
	"go", "cargo", "deno", "bun", "dotnet", "mvn", "gradle", "bazel", "nix", "docker", "podman"}

// providers lists, for each model provider, the environment variables with its base URL and its key that SDKs,
// frameworks and agents read. A provider without a base URL variable is left out: with a key alone, an agent would
// connect to the real provider.
//
//go:embed tables/providers.txt
var providers string

// anyModel returns variables that point the SDKs and the common frameworks of all providers to the model server. The
// dummy keys are for agents that only check that a key is set.
func anyModel() map[string]string {
	env, base := map[string]string{}, ""
	for line := range strings.Lines(providers) {
		if !strings.HasPrefix(line, " ") {
			base = "$LLM"
			if strings.Contains(line, "/v1") {
				base = "$LLM/v1"
			}
			continue
		}
		for name := range strings.FieldsSeq(line) {
			env[name] = base
			if strings.HasSuffix(name, "_KEY") {
				env[name] = "$KEY"
			}
		}
	}
	return env
}

// Marked returns an ad-hoc profile in which each base URL contains the name of its variable. The path of a model
// request, /run/NAME/…, therefore shows which variable the agent read.
func (p *Profile) Marked() *Profile {
	env := map[string]string{}
	for name, value := range p.Env {
		if rest, ok := strings.CutPrefix(value, "$LLM"); ok {
			env[name] = "$LLM/run/" + name + rest
		}
	}
	return p.WithEnv(env)
}

// Reaching returns an ad-hoc profile with only one base URL variable and the keys
// of the same provider.
func (p *Profile) Reaching(variable string) *Profile {
	q := *p
	q.Env = map[string]string{variable: p.Env[variable]}
	for line := range strings.Lines(providers) {
		if names := strings.Fields(line); slices.Contains(names, variable) {
			for _, name := range names {
				if strings.HasSuffix(name, "_KEY") {
					q.Env[name] = p.Env[name]
				}
			}
		}
	}
	return &q
}

const dummyKey = "sk-test"

// isWord reports whether a word of a command line is not a flag.
func isWord(s string) bool { return s != "" && !strings.HasPrefix(s, "-") }

var assignment = lazy.Regexp(`^[A-Za-z_][A-Za-z0-9_]*=`)

// namer finds the agent's name in the arguments of a launcher or interpreter; "" means that the arguments contain
// none.
type namer func(args []string) string

// namers returns the namer of each program that only runs another program, by the program's name.
func namers() map[string]namer {
	all := map[string]namer{}
	for programs, n := range map[string]namer{
		"env nohup nice time exec command sudo setsid":      wrapped,
		"npx bunx pnpx uvx pipx":                            func(args []string) string { return packageName(fetched(args)) },
		"node nodejs tsx ts-node ruby perl php sh bash zsh": script,
		"deno bun uv poetry pdm hatch pixi":                 ranScript,
		"java": func(args []string) string {
			return scriptName(after(args, "-jar"))
		},
		"dotnet": func(args []string) string {
			if w := firstWord(args); w != "run" {
				return scriptName(w)
			}
			return ""
		},
		"cargo": func(args []string) string { return after(args, "--bin") },
		"go": func(args []string) string {
			if i := slices.Index(args, "run"); i >= 0 && after(args, "--bin") == "" {
				return scriptName(firstWord(args[i+1:]))
			}
			return after(args, "--bin")
		},
	} {
		for p := range strings.FieldsSeq(programs) {
			all[p] = n
		}
	}
	return all
}

// nameOf returns the agent's name, derived from its command line.
func nameOf(argv []string) string {
	program, name := base(argv[0]), ""
	if n := namers()[program]; n != nil {
		name = n(argv[1:])
	} else if python().MatchString(program) {
		name = cmp.Or(strings.TrimSuffix(after(argv[1:], "-m"), ".__main__"), script(argv[1:]))
	}
	return cmp.Or(name, program)
}

// wrapped returns the name of the agent whose command follows the options and variable assignments in args.
func wrapped(args []string) string {
	i := slices.IndexFunc(args, func(w string) bool { return isWord(w) && !assignment().MatchString(w) })
	if i < 0 {
		return ""
	}
	return nameOf(args[i:])
}

// fetched returns the package that a launcher fetches, with scope and version as the user wrote them.
func fetched(args []string) string {
	for i, w := range args {
		value, joined := strings.CutPrefix(w, "--package=")
		switch {
		case joined:
			return value
		case (w == "-p" || w == "--package" || w == "--from") && i+1 < len(args):
			return args[i+1]
		case isWord(w) && w != "run":
			return w
		}
	}
	return ""
}

// script returns the name of the script that an interpreter runs, or "" if it runs code from the command line.
func script(args []string) string {
	w := firstWord(args)
	if slices.Contains(args[:max(0, slices.Index(args, w))], "-c") {
		return ""
	}
	return scriptName(w)
}

// ranScript returns the name of the script after the word "run", as in "uv run agent.py".
func ranScript(args []string) string {
	args = args[slices.Index(args, "run")+1:]
	if w := firstWord(args); w == "python" || w == "python3" {
		return nameOf(args[slices.Index(args, w):])
	}
	return scriptName(firstWord(args))
}

// after returns the argument that follows a flag, or "" if no argument follows.
func after(args []string, flag string) string {
	if i := slices.Index(args, flag); i >= 0 && i+1 < len(args) {
		return args[i+1]
	}
	return ""
}

var python = lazy.Regexp(`^(python|pypy)[0-9.]*$`)

func firstWord(args []string) string { return lists.First(args, isWord) }

// slashed replaces the backslashes of a path by slashes, because the path may be a Windows path on any system.
func slashed(path string) string { return strings.ReplaceAll(path, `\`, "/") }

// base returns a program's name without folder and without Windows extensions.
func base(program string) string {
	b := path.Base(slashed(program))
	for _, ext := range []string{".exe", ".cmd", ".bat"} {
		b = strings.TrimSuffix(b, ext)
	}
	return b
}

// packageName removes the scope and the version from a package name. It returns "" for "".
func packageName(spec string) string {
	if spec == "" {
		return ""
	}
	if strings.HasPrefix(spec, "@") {
		if _, after, ok := strings.Cut(spec, "/"); ok {
			spec = after
		}
	}
	spec = path.Base(spec)
	spec, _, _ = strings.Cut(spec, "@")
	spec, _, _ = strings.Cut(spec, "==")
	return strings.TrimSuffix(spec, ".git")
}

// generic contains names of scripts and folders that do not identify an agent.
var generic = []string{"index", "main", "__main__", "cli", "server", "start", "app", "run", "mod",
	"dist", "build", "src", "lib", "out", "bin", "cmd", "bundle", "target", "release", "debug", ".", "..", "/", ""}

var scriptEnding = lazy.Regexp(`\.(c?m?[jt]sx?|py|rb|pl|php|jar|dll|go|sh|exe|pyz)$`)

// scriptName returns the name of a script. If the name is generic, such as "index", it returns the name of the
// closest parent folder whose name is not generic.
func scriptName(file string) string {
	if file == "" {
		return ""
	}
	file = path.Clean(slashed(file))
	for at := file; ; at = path.Dir(at) {
		name := scriptEnding().ReplaceAllString(path.Base(at), "")
		if !slices.Contains(generic, name) {
			return name
		}
		if at == path.Dir(at) {
			return scriptEnding().ReplaceAllString(path.Base(file), "")
		}
	}
}

// Recognize returns the shipped profile of the agent that a command starts. It compares the name of the program or
// script. For a launcher that fetches packages, it compares the full package name. It returns nil if no profile
// matches.
func Recognize(argv []string) *Profile {
	return recognized(func(p *Profile) bool { return p.starts(argv) })
}

// RecognizeInfo returns the shipped profile whose agent calls itself name in its initialize response, or nil if no
// profile matches.
func RecognizeInfo(name string) *Profile {
	return recognized(func(p *Profile) bool { return slices.Contains(p.AgentInfo, name) })
}

// recognized returns the first shipped profile that match accepts, or nil if it accepts none.
func recognized(match func(*Profile) bool) *Profile {
	for _, name := range Names() {
		if p, err := Shipped(name); err == nil && match(p) {
			return p
		}
	}
	return nil
}

// starts reports whether running the command would start the profile's agent.
func (p *Profile) starts(argv []string) bool {
	if len(p.Command) == 0 || p.Command[0] == "$SELF" {
		return false
	}
	if fetchers[base(argv[0])] {
		return p.Install.NPM != "" && unversioned(fetched(argv[1:])) == unversioned(p.Install.NPM)
	}
	return nameOf(argv) == scriptName(base(p.Command[0]))
}

// fetchers are programs that fetch and start a package given its name.
var fetchers = map[string]bool{"npx": true, "bunx": true, "pnpx": true}

// unversioned returns the name of a package without its version.
func unversioned(spec string) string {
	if at := strings.LastIndex(spec, "@"); at > 0 {
		return spec[:at]
	}
	return spec
}

// IsDressed reports whether the profile came from Dressed.
func (p *Profile) IsDressed() bool { return p.dressed }

// Dressed returns an ad-hoc profile with the settings of a known profile of the same agent: environment, HOME, set-up
// step, login, model, tools and times. Known failures and goldens are not copied, because they apply only to the
// agent version that the known profile was written for.
func (p *Profile) Dressed(known *Profile) *Profile {
	q := p.WithEnv(known.Env)
	q.dressed = true
	q.Home, q.NoCaches, q.Model, q.Auth = known.Home, known.NoCaches, known.Model, known.Auth
	q.Tools, q.Lanes, q.Normalize, q.Policy = known.Tools, known.Lanes, known.Normalize, known.Policy
	q.Timeouts, q.Setup, q.setupBase = known.Timeouts, known.Setup, known.base
	q.Timeouts.Start = max(p.Timeouts.Start, known.Timeouts.Start)
	return q
}
