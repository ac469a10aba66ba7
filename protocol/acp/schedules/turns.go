package schedules

import (
	"cmp"
	"slices"
	"strings"

	"github.com/acp-test/acp-test/scenarios/script"
	"github.com/acp-test/acp-test/sweep"
)

// finals has the commands after which no turn is swept, because the rest of such a script tests how something ends.
var finals = []string{"session", "kill", "close-stdin", "signal", "send", "request", "cancel-tool", "cancel-terminal"}

// turns finds the turns that can be swept. All earlier turns must have ended, and the script must not act during the
// turn. The notes name the turns that cannot be swept.
func turns(s *sweep.Script) (notes []string) {
	open, prompts := 0, 0
	session, opened := "main", false
	for i, l := range s.Lines {
		if s.Looks(l) {
			continue
		}
		switch name := command(l); {
		case name == "both" || name == "group" && open == 0:
			return append(notes, s.Unswept(l, "script after", "the line runs two blocks at the same time"))
		case name == "beside":
			return append(notes, s.Unswept(l, "script after", "the line starts a second agent process"))
		case opensSession(l) != "":
			session, opened = opensSession(l), true
		case l.Says("session", "list"):
		case slices.Contains(finals, name):
			return notes
		case name == "prompt":
			t := turn(l, sweep.Turn{Line: i, Nth: prompts, Session: session, Opened: opened})
			prompts++
			if why := stands(s, t, open); why != "" {
				notes = append(notes, s.Unswept(l, "turn on", why))
			} else {
				s.Turns = append(s.Turns, t)
			}
			open++
			opened = true
		default:
			for l := range (&script.File{Lines: s.Lines[i : i+1]}).All() {
				if l.Says("await", "turn") {
					open = max(open-1, 0)
				}
			}
		}
	}
	return notes
}

// turn adds the text and the options of a prompt line to t, and the session if the line names one.
func turn(l *script.Line, t sweep.Turn) sweep.Turn {
	w := l.Words
	if len(w) > 1 && !strings.HasPrefix(w[0].String(), "'") && !strings.Contains(w[1].Raw(), "=") {
		t.Session, w = w[0].Raw(), w[1:]
	}
	if len(w) > 0 {
		t.Text, t.Rest = w[0], w[1:]
	}
	return t
}

// stands returns the reason why a turn cannot be swept, or "". open is the number of other open turns.
func stands(s *sweep.Script, t sweep.Turn, open int) string {
	switch {
	case open > 0:
		return "another turn is open"
	case !last(s, t):
		return "a session was opened after the turn's own session"
	case s.Silent(t.Nth):
		return "the model gives no reply that a gate can hold"
	}
	for _, l := range s.Lines[t.Line+1:] {
		switch {
		case s.Looks(l):
		case l.Says("await", "turn") && t.Text.Exists():
			return ""
		case l.Is("await"), l.Is("release"):
		default:
			return "the script acts in it"
		}
	}
	return "the script acts in it"
}

// inBlocks reports whether the option blocks replaces the prompt's text. The model would then not recognise a changed
// text as another prompt.
func inBlocks(t sweep.Turn) bool {
	return slices.ContainsFunc(t.Rest, func(w script.Word) bool {
		key, _, _, ok := w.Cut("=")
		return ok && key == "blocks"
	})
}

// before returns the lines that lead up to a turn. It omits lines that only check, and the opening of other sessions
// that have got no prompt. The turn's session must be the last one opened, so that lines need not name it.
func before(s *sweep.Script, t sweep.Turn) []*script.Line {
	return slices.DeleteFunc(slices.Clone(s.Lines[:t.Line]), func(l *script.Line) bool {
		other := l.Says("session", "new") && opensSession(l) != t.Session && !spokenIn(s, opensSession(l), t.Line)
		return other || s.Looks(l) && !prepares(s, l)
	})
}

// prepares reports whether a line creates something for the turns without involving the agent. Only exec lines before
// the first prompt do.
func prepares(s *sweep.Script, l *script.Line) bool {
	first := slices.IndexFunc(s.Lines, func(l *script.Line) bool { return l.Is("prompt") })
	return l.Is("exec") && slices.Contains(s.Lines[:max(first, 0)], l)
}

// spokenIn reports whether the script sends a prompt to a session before a line.
func spokenIn(s *sweep.Script, session string, line int) bool {
	return slices.ContainsFunc(s.Lines[:line], func(l *script.Line) bool {
		return len(l.Words) > 1 && l.Says("prompt", session)
	})
}

// last reports whether, among the lines that the function before returns, no session is opened after the turn's
// session.
func last(s *sweep.Script, t sweep.Turn) bool {
	name := t.Session
	for _, l := range before(s, t) {
		name = cmp.Or(opensSession(l), name)
	}
	return name == t.Session
}

// setsUp reports whether a line may come before the agent starts. The lines "needs saw" and "needs pick" may not,
// because they check earlier entries.
func setsUp(s *sweep.Script, l *script.Line) bool {
	c := s.Command(l)
	return c != nil && c.SetsUp() && !l.Says("needs", "saw") && !l.Says("needs", "!") && !l.Says("needs", "pick")
}

// command returns the name of a line's command, or "".
func command(l *script.Line) string {
	if l.Kind != script.Command {
		return ""
	}
	return l.Name.Raw()
}

// opensSession returns the name of the session that a line opens, or "".
func opensSession(l *script.Line) string {
	if len(l.Words) > 1 && (l.Says("session", "new") || l.Says("session", "load") || l.Says("session", "resume")) {
		return l.Words[1].Raw()
	}
	return ""
}

// plainPrompt returns the text of a prompt line with its quotes. It returns "" for another line, and for a text with
// variables.
func plainPrompt(l *script.Line) string {
	for _, w := range l.Words {
		if s := w.String(); strings.HasPrefix(s, "'") && strings.HasSuffix(s, "'") && !strings.ContainsAny(s, "$@") {
			return s
		}
	}
	return ""
}

// permits returns the permit lines of a scenario.
func permits(s *sweep.Script) []*script.Line {
	return slices.DeleteFunc(slices.Clone(s.Lines), func(l *script.Line) bool { return !l.Is("permit") })
}
