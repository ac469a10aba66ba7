package schedules

import (
	"slices"

	"github.com/acp-test/acp-test/fakellm"
	"github.com/acp-test/acp-test/internal/lists"
	"github.com/acp-test/acp-test/scenarios/script"
	"github.com/acp-test/acp-test/sweep"
)

// natural returns a scenario in which nothing disturbs the turns. It keeps the lines that lead from one turn to the
// next, and awaits the end of each turn. So the acts that a sweep adds cannot conflict with acts of the script.
func natural(s *sweep.Script) sweep.Archive {
	a := sweep.Archive{Files: s.Files, Lines: append(s.Head(""), undisturbed(s, s.Lines)...)}
	m := &fakellm.Document{Rest: s.Spoken.Rest}
	m.Turns = lists.Map(s.Spoken.Turns, sweep.Plain)
	a.Model = m.Format()
	return a
}

// undisturbed returns those lines of a script that its turns need.
func undisturbed(s *sweep.Script, lines []*script.Line) (out []*script.Line) {
	for i, l := range lines {
		switch name := command(l); {
		case name == "prompt":
			prompt := *l
			prompt.As = script.Word{}
			end := script.New("await turn any|error")
			if w := l.Words; len(w) > 1 && names(s, w[0]) {
				end = script.New("await turn any|error session=%s", w[0])
			}
			out = append(out, &prompt, end)
		case name == "both" || name == "group":
			for _, block := range l.Blocks {
				out = append(out, undisturbed(s, block)...)
			}
		case opensSession(l) != "":
			opens := *l
			opens.As = script.Word{}
			opens.Words = slices.DeleteFunc(slices.Clone(l.Words), func(w script.Word) bool { return w.String() == "wait=no" })
			out = append(out, &opens)
		case name == "kill" && !slices.ContainsFunc(lines[i:], func(l *script.Line) bool { return l.Is("restart") }):
			return out
		case name == "terminal":
			ends := *l
			ends.Words = slices.DeleteFunc(slices.Clone(l.Words), func(w script.Word) bool { return w.String() == "hold" })
			out = append(out, &ends)
		case name == "" && i == 0, name == "restart", name == "write", name == "authenticate", name == "start":
			out = append(out, l)
		case name != "" && (setsUp(s, l) || prepares(s, l)) && !holds(l):
			out = append(out, l)
		}
	}
	return out
}

// names reports whether a word of a prompt is the name of a session.
func names(s *sweep.Script, w script.Word) bool {
	return !w.Quoted && slices.ContainsFunc(slices.Collect((&script.File{Lines: s.Lines}).All()),
		func(l *script.Line) bool { return opensSession(l) == w.Raw() })
}

// holds reports whether a line makes the editor leave a request unanswered, or waits for an entry.
func holds(l *script.Line) bool {
	return l.Is("hold") || l.Says("needs", "await") || slices.ContainsFunc(l.Words, func(w script.Word) bool {
		return slices.Contains([]string{"hold", "never", "late", "twice"}, w.Raw())
	})
}
