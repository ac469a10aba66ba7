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
var marks = map[results.Verdict]rune{
	results.Error: 'E', results.Fail: 'X', results.Warn: 'w', results.Lint: 'l',
	results.Inconclusive: '?', results.Skip: '-', results.Pass: '·',
}

// Chart writes the results of a sweep as a text table, with a row for each point and a column for each action. It
// joins neighboring points with equal rows. If the table would be wider than 160 columns, as for drawn sessions, a row
// counts the actions by their results instead.
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
	var rows []chartRow
	for _, p := range s.Points {
		cells, any := []rune(strings.Repeat(" ", len(actions))), false
		for i, a := range actions {
			if v, ok := at[[2]string{p, a}]; ok {
				cells[i], any = mark(v), true
			}
		}
		if !any {
			continue
		}
		if n := len(rows); n > 0 && slices.Equal(rows[n-1].cells, cells) && sameSort(rows[n-1].first, p) {
			rows[n-1].last = p
			continue
		}
		rows = append(rows, chartRow{p, p, cells})
	}
	b.WriteString(name)
	if covered := s.Covered(name); covered != "" {
		b.WriteString("  " + covered)
	}
	b.WriteString("\n")
	width := 0
	for _, r := range rows {
		width = max(width, utf8.RuneCountInString(r.title()))
	}
	if width+columnWidth*len(actions) <= widest {
		table(b, rows, actions, width)
		return
	}
	for _, r := range rows {
		fmt.Fprintf(b, "  %s%s  %s\n", r.title(), strings.Repeat(" ", width-utf8.RuneCountInString(r.title())),
			r.counts(actions))
	}
}

const (
	widest      = 160 // columns; a wider table is not written
	columnWidth = 4
)

// chartRow is one row of a chart: points with equal cells. A cell is a mark, or a space for an action that was not
// tried.
type chartRow struct {
	first, last string
	cells       []rune
}

func (r chartRow) title() string {
	if r.first == r.last {
		return r.first
	}
	return r.first + " … " + r.last
}

// table writes rows as a table. Each title is padded to width characters.
func table(b *strings.Builder, rows []chartRow, actions []string, width int) {
	for i, a := range actions {
		fmt.Fprintf(b, "  %2d %s\n", i+1, a)
	}
	fmt.Fprintf(b, "  %s", strings.Repeat(" ", width))
	for i := range actions {
		fmt.Fprintf(b, " %2d ", i+1)
	}
	b.WriteString("\n")
	for _, r := range rows {
		line := ""
		for _, c := range r.cells {
			line += "  " + string(c) + " "
		}
		t := r.title()
		fmt.Fprintf(b, "  %s%s%s\n", t, strings.Repeat(" ", width-utf8.RuneCountInString(t)), strings.TrimRight(line, " "))
	}
}

// counts lists the marks of a row, each with its number of actions. It names up to three of these actions if the mark
// says that something was found.
func (r chartRow) counts(actions []string) string {
	var signs []rune
	of := map[rune][]string{}
	for i, c := range r.cells {
		if c == ' ' {
			continue
		}
		signs, of[c] = lists.With(signs, c), append(of[c], actions[i])
	}
	slices.SortFunc(signs, func(a, b rune) int { return cmp.Compare(len(of[b]), len(of[a])) })
	return strings.Join(lists.Map(signs, func(c rune) string {
		text := fmt.Sprintf("%d %c", len(of[c]), c)
		if some := of[c]; c != '·' {
			text += " (" + strings.Join(some[:min(3, len(some))], ", ")
			if len(some) > 3 {
				text += ", …"
			}
			text += ")"
		}
		return text
	}), ", ")
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

func mark(v results.Verdict) rune { return cmp.Or(marks[v], '?') }

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
