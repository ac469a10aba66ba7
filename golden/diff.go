package golden

import (
	"fmt"
	"strings"

	udiff "github.com/aymanbagabas/go-udiff"

	"github.com/acp-test/acp-test/transcript"
)

// contextLines is how many equal lines Diff shows around a difference.
const contextLines = 3

// GoesOn reports whether got has the lines of want in their order, and more of them only
// after the last thing that the editor did in want; there a line of want may also be the
// beginning of one of got. Want is then the same conversation, broken off earlier.
func GoesOn(want, got string) bool {
	rest := strings.Split(strings.TrimRight(want, "\n"), "\n")
	acts := 0
	for i, line := range rest {
		if strings.HasPrefix(strings.TrimSpace(line), Arrow(transcript.Editor)) {
			acts = i + 1
		}
	}
	for line := range strings.Lines(got) {
		line = strings.TrimSuffix(line, "\n")
		switch {
		case len(rest) == 0:
			return true
		case line == rest[0], acts <= 0 && strings.HasPrefix(line, strings.TrimSuffix(rest[0], `"`)):
			rest, acts = rest[1:], acts-1
		case acts > 0:
			return false
		}
	}
	return len(rest) == 0
}

// Diff returns what must change in want to make it got: lines with "-" are
// wanted and missing, lines with "+" came instead, others are context. The first
// line says so. It is "" if the texts are equal.
func Diff(want, got string) string {
	if want == got {
		return ""
	}
	edits := udiff.Lines(want, got)
	unified, err := udiff.ToUnifiedDiff("want", "got", want, edits, contextLines)
	if err != nil {
		// The edits were made from these very texts.
		return fmt.Sprintf("-%s\n+%s\n", want, got)
	}
	var b strings.Builder
	b.WriteString("-want +got\n")
	for _, h := range unified.Hunks {
		fmt.Fprintf(&b, "@@ line %d @@\n", h.FromLine)
		for _, l := range h.Lines {
			switch l.Kind {
			case udiff.Delete:
				b.WriteByte('-')
			case udiff.Insert:
				b.WriteByte('+')
			default:
				b.WriteByte(' ')
			}
			b.WriteString(strings.TrimSuffix(l.Content, "\n"))
			if !strings.HasSuffix(l.Content, "\n") {
				b.WriteString("\n\\ no line break at the end")
			}
			b.WriteByte('\n')
		}
	}
	return b.String()
}
