package sweep

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/acp-test/acp-test/internal/lists"
	"github.com/acp-test/acp-test/internal/printable"
	"github.com/acp-test/acp-test/scenarios/results"
)

// marks maps verdicts to their signs in a chart.
var marks = map[results.Verdict]string{
	results.Error: "E", results.Fail: "X", results.Warn: "w", results.Lint: "l",
	results.Inconclusive: "?", results.Skip: "-", results.Pass: "·",
}

// Chart writes the results of a sweep as a text table, with a row for each point and a column for each action. It
// joins neighboring points with equal rows.
func Chart(w io.Writer, s *results.Sweep) error {
	var b strings.Builder
	var names []string
	for _, c := range s.Cells {
		names = lists.With(names, c.Scenario)
	}
	for _, name := range names {
		chartOf(&b, s, name)
	}
	if len(names) > 0 {
		b.WriteString("X fail, w warn, l lint, ? inconclusive, · nothing found")
		if slices.ContainsFunc(s.Cells, func(c results.SweepCell) bool { return c.Verdict == results.Error }) {
			b.WriteString(", E error")
		}
		b.WriteString("\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func chartOf(b *strings.Builder, s *results.Sweep, name string) {
	at := map[[2]string]results.Verdict{}
	var actions []string
	for _, c := range s.Cells {
		if c.Scenario == name {
			at[[2]string{c.Point, c.Action}] = c.Verdict
			actions = lists.With(actions, c.Action)
		}
	}
	slices.SortFunc(actions, func(a, b string) int { return slices.Index(s.Actions, a) - slices.Index(s.Actions, b) })
	type row struct{ first, last, cells string }
	var rows []row
	for _, p := range s.Points {
		cells, any := "", false
		for _, a := range actions {
			m := " "
			if v, ok := at[[2]string{p, a}]; ok {
				m, any = mark(v), true
			}
			cells += "  " + m + " "
		}
		if !any {
			continue
		}
		if n := len(rows); n > 0 && rows[n-1].cells == cells && sameSort(rows[n-1].first, p) {
			rows[n-1].last = p
			continue
		}
		rows = append(rows, row{p, p, cells})
	}
	width := 0
	title := func(r row) string {
		if r.first == r.last {
			return r.first
		}
		return r.first + " … " + r.last
	}
	for _, r := range rows {
		width = max(width, utf8.RuneCountInString(title(r)))
	}
	b.WriteString(name)
	if covered := s.Covered(name); covered != "" {
		b.WriteString("  " + covered)
	}
	b.WriteString("\n")
	for i, a := range actions {
		fmt.Fprintf(b, "  %2d %s\n", i+1, a)
	}
	fmt.Fprintf(b, "  %s", strings.Repeat(" ", width))
	for i := range actions {
		fmt.Fprintf(b, " %2d ", i+1)
	}
	b.WriteString("\n")
	for _, r := range rows {
		t := title(r)
		fmt.Fprintf(b, "  %s%s%s\n", t, strings.Repeat(" ", width-utf8.RuneCountInString(t)), strings.TrimRight(r.cells, " "))
	}
}

// sameSort reports whether the names of two points differ only in numbers.
func sameSort(a, b string) bool {
	strip := func(s string) string {
		return strings.Map(func(r rune) rune {
			if r >= '0' && r <= '9' || r == '.' {
				return -1
			}
			return r
		}, s)
	}
	return strip(a) == strip(b)
}

func mark(v results.Verdict) string { return cmp.Or(marks[v], "?") }

// Describe describes a finding for users in a few lines.
func Describe(f Finding) string {
	var b strings.Builder
	class := f.Class.String()
	if f.Known != "" {
		class = "known"
	}
	fmt.Fprintf(&b, "%s  %s  %s\n  %s\n", class, f.Rule, f.Scenario, sentence(f.Message))
	if f.Known != "" {
		fmt.Fprintf(&b, "  expected: %s\n", f.Known)
	}
	if f.Action == "" {
		b.WriteString("  in the baseline: no action is needed for it")
		return b.String()
	}
	seen := fmt.Sprintf("in %s, first in schedule %d", printable.Plural(f.Seen, "schedule", "schedules"), f.First)
	if f.schedule.State == SessionState {
		seen = fmt.Sprintf("in %s, first in session %d: --again %s",
			printable.Plural(f.Seen, "session", "sessions"), f.First, f.schedule.Drawn)
	}
	if f.shared() {
		seen = "no schedule shows it in a process of its own"
	}
	if f.schedule.State != SessionState {
		fmt.Fprintf(&b, "  %s, %s; ", f.Action, f.Point)
	} else {
		b.WriteString("  ")
	}
	b.WriteString(seen)
	if f.Runs > 0 {
		fmt.Fprintf(&b, "; again in %s", f.often())
	}
	if len(f.Elsewhere) > 0 {
		fmt.Fprintf(&b, "\n  also after %s", f.elsewhere())
	}
	if len(f.With) > 0 {
		fmt.Fprintf(&b, "\n  with it %s", strings.Join(f.With, ", "))
	}
	if f.File != "" {
		fmt.Fprintf(&b, "\n  %s", f.Command)
	}
	if t := f.result.Artifacts["transcript"]; t != "" {
		fmt.Fprintf(&b, "\n  evidence %s", t)
	}
	return b.String()
}
