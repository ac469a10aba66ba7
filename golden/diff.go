package golden

import (
	"fmt"
	"strings"

	udiff "github.com/aymanbagabas/go-udiff"
)

// contextLines is how many equal lines Diff shows around a difference.
const contextLines = 3

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
