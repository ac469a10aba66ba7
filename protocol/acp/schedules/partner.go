package schedules

import (
	"bytes"
	"slices"
	"strings"

	"github.com/acp-test/acp-test/scenarios/script"
	"github.com/acp-test/acp-test/sweep"
)

// beside reports whether the first turn of the other scenario can run next to this scenario. Only set-up lines may
// come before that turn. Both scenarios must have the same set-up, and their files must not conflict.
func beside(s *sweep.Script, other sweep.Observed) bool {
	o, turn := other.Script, other.Seen.Turn
	text := plainPrompt(o.Lines[turn.Line])
	for _, l := range before(o, turn) {
		if !setsUp(o, l) {
			return false
		}
	}
	own, others := permits(o), permits(s)
	switch {
	case text == "", strings.HasPrefix(text, "'/"), len(turn.Rest) > 0, other.Seen.End == "":
	case o.Spoken.Rest != "" && o.Spoken.Rest != s.Spoken.Rest, s.Says(turn.Text):
	case !equal(settings(o), settings(s)), !agree(o.Archive, s.Archive):
	case !equal(own, others) && of(other.Seen).asked > 0 && (len(others) > 0 || asksAnywhere(s)):
	case slices.ContainsFunc(s.Reached, func(t sweep.Observed) bool {
		return both(of(t.Seen).effects, of(other.Seen).effects)
	}):
	default:
		return true
	}
	return false
}

// both reports whether some file is changed by both a and b.
func both(a, b []sweep.Effect) bool {
	return slices.ContainsFunc(a, func(e sweep.Effect) bool {
		return slices.ContainsFunc(b, func(f sweep.Effect) bool { return f.File == e.File })
	})
}

// settings returns the set-up lines that must be equal in two scenarios that share a process.
func settings(s *sweep.Script) []*script.Line {
	return slices.DeleteFunc(slices.Clone(s.Lines), func(l *script.Line) bool {
		return l.Kind != script.Command || !setsUp(s, l) || l.Is("needs") || l.Is("permit")
	})
}

// equal reports whether two lists have the same lines.
func equal(a, b []*script.Line) bool {
	return slices.EqualFunc(a, b, func(l, m *script.Line) bool { return l.String() == m.String() })
}

// asksAnywhere reports whether the agent asks for permission in any turn of the scenario.
func asksAnywhere(s *sweep.Script) bool {
	return slices.ContainsFunc(s.Reached, func(o sweep.Observed) bool { return of(o.Seen).asked > 0 })
}

// agree reports whether files with the same name have the same content in both archives.
func agree(a, b sweep.Archive) bool {
	for _, f := range a.Files {
		for _, g := range b.Files {
			if f.Name == g.Name && !bytes.Equal(f.Data, g.Data) {
				return false
			}
		}
	}
	return true
}
