package reports

import (
	"fmt"
	"strings"

	"github.com/acp-test/acp-test/scenarios/results"
)

// differences tells what came out differently in the rounds of a perturbed run:
// why, and both transcripts side by side.
func differences(run results.Run, width int) string {
	var b strings.Builder
	for _, d := range run.Differences {
		fmt.Fprintf(&b, "differs: %s\n", difference(d))
		if len(d.How) > 0 {
			fmt.Fprintf(&b, "  round %d: %s\n", d.Rounds[1], strings.Join(d.How, ", "))
		}
		const most = 30
		for _, r := range d.Rows[:min(most, len(d.Rows))] {
			b.WriteString(beside(r, max(width, 100)))
		}
		if n := len(d.Rows) - most; n > 0 {
			fmt.Fprintf(&b, "  and %s\n", plural(n, "more line", "more lines"))
		}
	}
	return b.String()
}

// difference is one difference in a line.
func difference(d results.Difference) string {
	return fmt.Sprintf("%s, round %d (%s) and round %d (%s): %s", d.ID, d.Rounds[0], d.Verdicts[0], d.Rounds[1],
		d.Verdicts[1], d.Explanation)
}

// beside is a row of two columns. Where they differ behind what fits, both are
// cut in front.
func beside(row [2]string, width int) string {
	column := (width - 7) / 2
	mark := " "
	left, right := []rune(row[0]), []rune(row[1])
	if row[0] != row[1] {
		mark = "|"
		same := 0
		for same < min(len(left), len(right)) && left[same] == right[same] {
			same++
		}
		const before = 20
		if len(left) > 0 && len(right) > 0 && same > column-before {
			left = append([]rune("…"), left[same-before:]...)
			right = append([]rune("…"), right[same-before:]...)
		}
	}
	return strings.TrimRight(fmt.Sprintf("  %-*s %s %s", column, clipped(left, column), mark, clipped(right, column)),
		" ") + "\n"
}

func clipped(text []rune, width int) string {
	if len(text) > width {
		return string(text[:width-1]) + "…"
	}
	return string(text)
}
