package agents

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"time"
)

// AdHoc is a profile for a command nobody wrote one for: named after the
// program, or after the script or package where the program only runs one,
// with base URLs and dummy keys for all wire formats in its environment. It
// has no known failures; wire format and tools are learned. It starts where
// the user is, so that a command that works in a shell works here. argv must
// not be empty.
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

// launchers may unpack, install or build the agent before they start it.
var launchers = []string{"npx", "bunx", "pnpx", "npm", "pnpm", "yarn", "uvx", "uv", "pipx", "poetry", "pdm", "hatch", "pixi",
	"go", "cargo", "deno", "bun", "dotnet", "mvn", "gradle", "bazel", "nix", "docker", "podman"}

// anyModel points the official SDKs and the common frameworks of all wire
// formats to the model server. A dummy key keeps agents that only check that
// there is one working.
func anyModel() map[string]string {
	return map[string]string{
		"OPENAI_BASE_URL":        "$LLM/v1",
		"OPENAI_API_BASE":        "$LLM/v1", // LangChain, LiteLLM
		"OPENAI_API_KEY":         dummyKey,
		"ANTHROPIC_BASE_URL":     "$LLM",
		"ANTHROPIC_API_KEY":      dummyKey,
		"GOOGLE_GEMINI_BASE_URL": "$LLM",
		"GEMINI_API_KEY":         dummyKey,
		"GOOGLE_API_KEY":         dummyKey,
	}
}

const dummyKey = "sk-test"

// A word of a command line that is no flag.
func isWord(s string) bool { return s != "" && !strings.HasPrefix(s, "-") }

var assignment = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*=`)

// nameOf finds the word of a command line that says what agent it is.
func nameOf(argv []string) string {
	program := base(argv[0])
	rest := argv[1:]
	switch program {
	case "env", "nohup", "nice", "time", "exec", "command", "sudo", "setsid":
		for len(rest) > 0 && (!isWord(rest[0]) || assignment.MatchString(rest[0])) {
			rest = rest[1:]
		}
		if len(rest) > 0 {
			return nameOf(rest)
		}
	case "npx", "bunx", "pnpx", "uvx", "pipx":
		for i, w := range rest {
			value, joined := strings.CutPrefix(w, "--package=")
			switch {
			case joined:
				return packageName(value)
			case (w == "-p" || w == "--package" || w == "--from") && i+1 < len(rest):
				return packageName(rest[i+1])
			case isWord(w) && w != "run":
				return packageName(w)
			}
		}
	case "node", "nodejs", "tsx", "ts-node", "ruby", "perl", "php", "sh", "bash", "zsh":
		if w := firstWord(rest); w != "" && !slices.Contains(rest[:max(0, slices.Index(rest, w))], "-c") {
			return scriptName(w)
		}
	case "deno", "bun", "uv", "poetry", "pdm", "hatch", "pixi":
		if i := slices.Index(rest, "run"); i >= 0 {
			rest = rest[i+1:]
		}
		if w := firstWord(rest); w == "python" || w == "python3" {
			return nameOf(rest[slices.Index(rest, w):])
		} else if w != "" {
			return scriptName(w)
		}
	case "java":
		if i := slices.Index(rest, "-jar"); i >= 0 && i+1 < len(rest) {
			return scriptName(rest[i+1])
		}
	case "dotnet":
		if w := firstWord(rest); w != "" && w != "run" {
			return scriptName(w)
		}
	case "go", "cargo":
		if i := slices.Index(rest, "--bin"); i >= 0 && i+1 < len(rest) {
			return rest[i+1]
		}
		if i := slices.Index(rest, "run"); i >= 0 && program == "go" {
			if w := firstWord(rest[i+1:]); w != "" {
				return scriptName(w)
			}
		}
	}
	if python.MatchString(program) {
		if i := slices.Index(rest, "-m"); i >= 0 && i+1 < len(rest) {
			return strings.TrimSuffix(rest[i+1], ".__main__")
		}
		if w := firstWord(rest); w != "" && !slices.Contains(rest, "-c") {
			return scriptName(w)
		}
	}
	return program
}

var python = regexp.MustCompile(`^(python|pypy)[0-9.]*$`)

func firstWord(args []string) string {
	for _, w := range args {
		if isWord(w) {
			return w
		}
	}
	return ""
}

// slashed is a path with slashes, whichever system it was written for.
func slashed(path string) string { return strings.ReplaceAll(path, `\`, "/") }

// base is a program's name without folder and the endings of Windows.
func base(program string) string {
	b := path.Base(slashed(program))
	for _, ext := range []string{".exe", ".cmd", ".bat"} {
		b = strings.TrimSuffix(b, ext)
	}
	return b
}

// packageName leaves out the scope and the version of a package.
func packageName(spec string) string {
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

// Names of scripts and folders that say nothing about the agent.
var generic = []string{"index", "main", "__main__", "cli", "server", "start", "app", "run", "mod",
	"dist", "build", "src", "lib", "out", "bin", "cmd", "bundle", "target", "release", "debug", ".", "..", "/", ""}

var scriptEnding = regexp.MustCompile(`\.(c?m?[jt]sx?|py|rb|pl|php|jar|dll|go|sh|exe|pyz)$`)

// scriptName is the name of a script, or of the closest folder above it whose
// name says more than "dist" or "index".
func scriptName(file string) string {
	file = path.Clean(slashed(file))
	for at := file; ; at = path.Dir(at) {
		name := scriptEnding.ReplaceAllString(path.Base(at), "")
		if !slices.Contains(generic, name) {
			return name
		}
		if at == path.Dir(at) {
			return scriptEnding.ReplaceAllString(path.Base(file), "")
		}
	}
}
