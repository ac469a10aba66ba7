package agents

import (
	"cmp"
	"regexp"
	"strings"

	"github.com/acp-test/acp-test/internal/lazy"
)

// symptom is something an agent's stderr says when it cannot start, and what to
// do about it.
type symptom struct {
	shows func() *regexp.Regexp
	hint  string // $1 is what the expression's first group matched
}

// In this order: the first that shows is the answer, so the more telling stand
// first.
var symptoms = []symptom{
	{lazy.Regexp(`(?i)pyenv: .*version [\x60'"]?([^\s'"\x60]+)[\x60'"]? is not installed`),
		"this pyenv has no Python $1: pyenv install $1, or --env PYENV_VERSION=<one that is installed>"},
	{lazy.Regexp(`(?i)rustup could not choose a version|no override and no default toolchain`),
		"rustup has no default toolchain for the agent: --env RUSTUP_TOOLCHAIN=stable"},
	{lazy.Regexp(`(?i)(ENOTCACHED|ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ETIMEDOUT|ENETUNREACH)[^\n]*(registry|npm)|` +
		`npm (?:error|ERR!) code (?:E404|ENOTCACHED|ENOTFOUND|EAI_AGAIN)`),
		"npm wanted to download a package: run the command once by itself so that npm's cache has it, or install the " +
			"package and name its program"},
	{lazy.Regexp(`(?i)(failed to fetch|error sending request|could not connect)[^\n]*(pypi|simple/|` +
		`files\.pythonhosted)|No solution found when resolving (tool|script) dependencies`),
		"uv wanted to download a package: run the command once by itself so that uv's cache has it, or install it with uv " +
			"tool install"},
	{lazy.Regexp(`(?i)failed to (?:get|download|fetch)[^\n]*(?:crates\.io|index)|` +
		`proxy\.golang\.org[^\n]*(?:dial|lookup|no such host)`),
		"the toolchain wanted to download packages: build the agent first and name the built program"},
	{lazy.Regexp(`(?i)ModuleNotFoundError: No module named ['"]?([\w.]+)`),
		"Python has no module $1: activate the virtual environment first (VIRTUAL_ENV and PATH are passed on), or " +
			"--pass-env PYTHONPATH"},
	{lazy.Regexp(`(?i)(?:Cannot find (?:module|package)|ERR_MODULE_NOT_FOUND)[^\n'"]*['"]?([^\s'"]*)`),
		"Node cannot find $1: install the agent's dependencies, or give the script's path from where you are"},
	{lazy.Regexp(`(?i)unsupported engine|requires node(?:\.js)? ?(?:version)? ?[>=v]*\s*(\d+)|Node\.js ` +
		`(?:version )?[>=v]*(\d+)[^\n]* (?:is )?required|SyntaxError: Unexpected (?:token '[?|&.]|identifier 'using')|` +
		`does not provide an export named|ERR_REQUIRE_ESM`),
		"the Node it found is too old: put a newer one first in PATH, for example with npm install --prefix DIR node@22 " +
			"and PATH=DIR/node_modules/.bin:$$PATH"},
	{lazy.Regexp(`(?i)env: ['‘"]?([\w.+-]+)['’"]?: No such file or directory`),
		"the agent's script needs the program $1, which is not in PATH: install it, or --env PATH=<with its folder>"},
	{lazy.Regexp(`(?im)(?:^|: )([\w.+-]+): (?:command )?not found|exec: "?([\w.+-]+)"?: executable file not ` +
		`found|spawn ([\w./+-]+) ENOENT`),
		"it looked for the program $1, which is not in PATH: install it, or --env PATH=<with its folder>"},
	{lazy.Regexp(`(?i)error while loading shared libraries: ([\w.+-]+)|Library not loaded: (\S+)`),
		"the library $1 is missing: install it, or --pass-env LD_LIBRARY_PATH"},
	{lazy.Regexp(`(?i)exec format error|bad CPU type in executable|cannot execute binary file`),
		"the program is built for another system or has no #! line"},
	{lazy.Regexp(`\b([A-Z][A-Z0-9]*_(?:API_)?(?:KEY|TOKEN))\b`),
		"it wants $1: --env $1=test if any value will do, --pass-env $1 to hand over yours"},
	{lazy.Regexp(`(?i)not (?:logged|signed) in|please (?:log|sign) ?in|authenticat\w+ required|unauthorized|no ` +
		`(?:auth|credentials|api key)|missing (?:api key|credentials)`),
		"it wants credentials, and an agent under test gets none: --env NAME=test for a key it only checks for, " +
			"--pass-env NAME for yours, or a profile with the file it reads (home:)"},
	{lazy.Regexp(`(?i)no (?:\w+ )?(?:providers?|models?) (?:is |are )?(?:configured|set up|available|found|selected)|` +
		`not a configured (?:model|provider)|(?:model|provider) (?:is )?not configured`),
		"it has no model here, because its HOME is empty: name the model server in a variable (--env NAME='$$LLM'), in a " +
			"profile with the configuration file in which it lists its providers (home:)"},
	{lazy.Regexp(`(?i)(?:ENOENT|no such file or directory)[^\n]*?((?:~|/)[^\s'":]*/\.[\w-]+[^\s'":]*)`),
		"it looked for $1, and its HOME is empty here: write a profile with that file (home:), or --pass-env HOME to give " +
			"it yours"},
	{lazy.Regexp(`(?i)permission denied|EACCES`),
		"something it needs may not be opened or executed: see the path in its stderr"},
}

// Diagnose says what to do about an agent that died before it answered
// initialize, from what it wrote to stderr; "" if nothing is known.
func Diagnose(stderr string) string {
	for _, s := range symptoms {
		m := s.shows().FindStringSubmatch(stderr)
		if m == nil {
			continue
		}
		what := cmp.Or(strings.TrimRight(strings.Join(m[1:], ""), ".,;:"), "what it needs")
		return strings.NewReplacer("$$", "$", "$1", what).Replace(s.hint)
	}
	return ""
}
