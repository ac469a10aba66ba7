package reports

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/acp-test/acp-test/internal/lists"
	"github.com/acp-test/acp-test/internal/printable"
	"github.com/acp-test/acp-test/scenarios/results"
	"github.com/acp-test/acp-test/transcript"
)

// block returns labelled texts, one below the other. pairs contains labels and texts in turn. Empty texts are left
// out.
func block(indent string, pairs ...string) string {
	var b strings.Builder
	for i := 0; i+1 < len(pairs); i += 2 {
		label := pairs[i]
		text := strings.TrimRight(pairs[i+1], "\n")
		if text == "" {
			continue
		}
		for line := range strings.SplitSeq(text, "\n") {
			fmt.Fprintf(&b, "%s%-12s %s\n", indent, label, line)
			label = ""
		}
	}
	return b.String()
}

// cut returns the first lines of a text, followed by a line with the number of lines that it left out.
func cut(text string, lines int) string {
	all := strings.Split(strings.TrimRight(text, "\n"), "\n")
	if len(all) <= lines {
		return text
	}
	return strings.Join(all[:lines], "\n") + fmt.Sprintf("\n… %d more lines", len(all)-lines)
}

// causes returns up to three lines that explain a failure.
func causes(f *transcript.Failure) []string {
	why := []string{}
	if len(f.Expected) > 0 {
		why = append(why, "expected "+strings.Join(f.Expected, " or "))
	}
	if f.Observed != "" {
		why = append(why, "observed "+firstLine(f.Observed))
	}
	if f.Reason != "" {
		why = append(why, "because "+firstLine(f.Reason))
	}
	if len(why) == 0 {
		why = append(why, changed(f.Diff)...)
	}
	return why
}

// changed returns the first removed and the first added line of a diff.
func changed(diff string) []string {
	var minus, plus []string
	for line := range strings.SplitSeq(diff, "\n") {
		switch {
		case line == "-want +got":
		case strings.HasPrefix(line, "-") && minus == nil:
			minus = []string{line}
		case strings.HasPrefix(line, "+") && plus == nil:
			plus = []string{line}
		}
	}
	return append(minus, plus...)
}

func firstLine(s string) string {
	line, _, more := strings.Cut(strings.TrimRight(s, "\n"), "\n")
	if more {
		line += " …"
	}
	return line
}

func nonEmpty(all ...string) []string {
	return lists.Map(lists.Where(all, func(s string) bool { return s != "" }), firstLine)
}

// lineOf returns the line in "file:line" or "file:line:column", or 0 if there is none.
func lineOf(where string) int {
	for part := range strings.SplitSeq(where, ":") {
		if n, err := strconv.Atoi(part); err == nil && n > 0 {
			return n
		}
	}
	return 0
}

// harmless makes a text from an agent safe to print on terminals and in CI logs.
func harmless(s string) string { return printable.Text(s) }

// short formats a duration for people, such as 340ms, 2.3s or 4m05s.
func short(d time.Duration) string {
	switch {
	case d < 0:
		return "0ms"
	case d < time.Second:
		return strconv.FormatInt(d.Milliseconds(), 10) + "ms"
	case d < time.Minute:
		return strconv.FormatFloat(float64(d.Truncate(100*time.Millisecond))/1e9, 'f', 1, 64) + "s"
	}
	return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
}

// counts returns a text such as "3 scenarios: 1 pass, 2 fail by 1 cause, 1 lint". Warnings and lints are counted by
// their causes.
func counts(run results.Run) string {
	c, causes := run.Counts, map[results.Verdict]int{}
	for _, cause := range run.Causes {
		if !cause.Known {
			causes[cause.Class]++
		}
	}
	by := ""
	if c.Fail > 0 && causes[results.Fail] > 0 {
		by = " by " + printable.Plural(causes[results.Fail], "cause", "causes")
	}
	parts := []string{}
	for _, p := range []struct {
		n         int
		one, many string
	}{
		{c.Pass + c.Apart, "pass" + apart(run), "pass" + apart(run)},
		{c.Fail, "fail" + by, "fail" + by}, {c.Error, "error", "errors"},
		{c.Inconclusive, "inconclusive", "inconclusive"},
		{c.Known, "known failure", "known failures"}, {c.Skip, "skip", "skip"}, {c.Flaky, "flaky", "flaky"},
		{c.NewGoldens, "new golden", "new goldens"},
		{causes[results.Warn], "warning", "warnings"}, {causes[results.Lint], "lint", "lints"},
	} {
		if p.n > 0 {
			parts = append(parts, printable.Plural(p.n, p.one, p.many))
		}
	}
	head := printable.Plural(c.Total, "scenario", "scenarios")
	if len(parts) == 0 {
		return head
	}
	return head + ": " + strings.Join(parts, ", ")
}

// apart returns a text such as " (36 of them apart from AUTH-003)". It has the number of scenarios that pass only if
// the causes with Everywhere set are ignored, and the ids of these causes. It returns "" if there are no such
// scenarios.
func apart(run results.Run) string {
	if run.Counts.Apart == 0 {
		return ""
	}
	of := "all"
	if run.Counts.Pass > 0 {
		of = fmt.Sprintf("%d of them", run.Counts.Apart)
	}
	return fmt.Sprintf(" (%s apart from %s)", of, strings.Join(everywhere(run.Causes), ", "))
}

// everywhere returns the ids of the causes with Everywhere set.
func everywhere(causes []results.Cause) []string {
	spread := lists.Where(causes, func(c results.Cause) bool { return c.Everywhere })
	return lists.Map(spread, func(c results.Cause) string { return c.ID })
}

// unknownEverywhere returns the causes with Everywhere set that are not known failures. Report formats with one line
// per scenario also have one line for each of these causes.
func unknownEverywhere(causes []results.Cause) []results.Cause {
	return slices.DeleteFunc(slices.Clone(causes), func(c results.Cause) bool { return !c.Everywhere || c.Known })
}

// name returns the id of a result. If the scenario was repeated (--repeat), the number of the repeat follows.
func name(r results.Result) string {
	if r.Repeat > 0 {
		return fmt.Sprintf("%s (%d)", r.ID, r.Repeat)
	}
	return r.ID
}

// shownVerdict returns the word for a result's verdict, which is "known" for a known failure.
func shownVerdict(r results.Result) string {
	if r.Known && r.Verdict == results.Fail {
		return "known"
	}
	return r.Verdict.String()
}

// slowest returns the n results with the longest durations, longest first.
func slowest(outcomes []results.Result, n int) []results.Result {
	sorted := slices.SortedStableFunc(slices.Values(outcomes), func(a, b results.Result) int {
		return cmp.Compare(b.Duration, a.Duration)
	})
	return sorted[:min(n, len(sorted))]
}

// passes returns a text such as "passed 2 of 3 times" for a flaky scenario, or "" for other scenarios.
func passes(run results.Run, id string) string {
	if f, ok := lists.Find(run.Flaky, func(f results.Flaky) bool { return f.ID == id }); ok {
		return fmt.Sprintf("passed %d of %d times", f.Passed, f.Of)
	}
	return ""
}

// changes returns the changes since an earlier run, one line each, followed by the diffs of texts. most is the
// maximum number of changes that it shows.
func changes(a *results.Against, most int) string {
	if a == nil {
		return ""
	}
	var b strings.Builder
	if len(a.Changes) == 0 {
		return "nothing changed since " + a.Run + "\n"
	}
	fmt.Fprintf(&b, "changed since %s:\n", a.Run)
	for _, c := range a.Changes[:min(most, len(a.Changes))] {
		fmt.Fprintf(&b, "  %s\n", change(c))
		if c.Diff != "" {
			b.WriteString(block("    ", "", cut(c.Diff, 24)))
		}
	}
	if n := len(a.Changes) - most; n > 0 {
		fmt.Fprintf(&b, "  and %d more\n", n)
	}
	return b.String()
}

// change returns the line for one change.
func change(c results.Change) string {
	switch {
	case c.What == "text":
		return c.ID + ": the messages changed"
	case c.What == "scenario" && c.Was == 0:
		return fmt.Sprintf("%s: new, %s", c.ID, c.Is)
	case c.What == "scenario":
		return fmt.Sprintf("%s: did not run, was %s", c.ID, c.Was)
	case c.What == "rule" && c.Was == 0:
		return fmt.Sprintf("%s: rule %s is now broken (%s)", c.ID, c.Name, c.Is)
	case c.What == "rule" && c.Is == 0:
		return fmt.Sprintf("%s: rule %s is no longer broken (%s)", c.ID, c.Name, c.Was)
	case c.What == "verdict":
		return fmt.Sprintf("%s: was %s, is %s", c.ID, c.Was, c.Is)
	}
	return fmt.Sprintf("%s: %s %s was %s, is %s", c.ID, c.What, c.Name, orNone(c.Was), orNone(c.Is))
}

func orNone(v results.Verdict) string {
	if v == 0 {
		return "not there"
	}
	return v.String()
}
