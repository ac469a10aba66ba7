package agents

import (
	"regexp"
	"slices"
	"strings"

	"github.com/acp-test/acp-test/internal/yamlfile"
	"github.com/acp-test/acp-test/mistake"
)

var variableNames = []string{"LLM", "KEY", "WORK", "HOME", "TMP", "AGENT_DIR", "SELF", "CWD",
	"PORT", "PRINTED"}

var reference = regexp.MustCompile(`\$\$|\$[A-Za-z_][A-Za-z0-9_]*|\$`)

// variables rejects a $NAME that Launch would not know.
func variables(at *yamlfile.Node, text string) {
	for _, v := range reference.FindAllString(text, -1) {
		name := v[1:]
		if v != "$$" && !slices.Contains(variableNames, name) {
			at.Fail(mistake.Suggest(name, variableNames)+"; $$ is a dollar", "unknown variable %q", v)
		}
	}
}

// expand puts the values of variables in. In a literal text, one that a user
// typed, everything else that begins with a dollar stays.
func expand(text string, values map[string]string, literal bool) string {
	if !strings.Contains(text, "$") {
		return text
	}
	return reference.ReplaceAllStringFunc(text, func(v string) string {
		if value, ok := values[v[1:]]; ok {
			return value
		}
		if v == "$$" && !literal {
			return "$"
		}
		return v
	})
}
