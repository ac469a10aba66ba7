package sweep

import (
	"slices"

	"github.com/acp-test/acp-test/scenarios"
	"github.com/acp-test/acp-test/scenarios/script"
)

// Looks reports whether a line of a scenario leaves the run as it is.
func Looks(commands map[string]*scenarios.Command, l *script.Line) bool {
	if l.Kind != script.Command || l.Negated {
		return true
	}
	c := commands[l.Name.Raw()]
	return c != nil && c.Looks()
}

// Waiting are the lines of a scenario in which what it needs to come is waited for: a
// baseline shows that it comes, but in a schedule it has to have come.
func Waiting(lines []*script.Line) []*script.Line {
	lines = slices.Clone(lines)
	for i, l := range lines {
		if l.Says("needs", "await") {
			waits := *l
			waits.Name, waits.Words = l.Words[0], l.Words[1:]
			lines[i] = &waits
		}
	}
	return lines
}
