package schedules

import (
	"strings"

	"github.com/acp-test/acp-test/scenarios/script"
	"github.com/acp-test/acp-test/sweep"
)

// looks reports whether a line leaves the run as it is.
func (b *base) looks(l *script.Line) bool { return sweep.Looks(b.commands, l) }

// setsUp reports whether a line stands before the agent starts, or may. needs saw
// and needs pick ask what has come, so they do not.
func (b *base) setsUp(l *script.Line) bool {
	c := b.commands[l.Name.Raw()]
	return c != nil && c.SetsUp() && !l.Says("needs", "saw") && !l.Says("needs", "!") &&
		!l.Says("needs", "pick")
}

// command is the name of the command of a line, "" if it has none.
func command(l *script.Line) string {
	if l.Kind != script.Command {
		return ""
	}
	return l.Name.Raw()
}

// opensSession returns the name of the session that a line opens, "" if it opens
// none.
func opensSession(l *script.Line) string {
	if len(l.Words) > 1 && (l.Says("session", "new") || l.Says("session", "load") || l.Says("session", "resume")) {
		return l.Words[1].Raw()
	}
	return ""
}

// plainPrompt returns the quoted text of a prompt, as it is spelled; "" if it has
// none.
func plainPrompt(l *script.Line) string {
	for _, w := range l.Words {
		if s := w.String(); strings.HasPrefix(s, "'") && strings.HasSuffix(s, "'") && !strings.ContainsAny(s, "$@") {
			return s
		}
	}
	return ""
}
