package reports

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/acp-test/acp-test/internal/lazy"
	"github.com/acp-test/acp-test/internal/lists"
	"github.com/acp-test/acp-test/internal/printable"
	"github.com/acp-test/acp-test/scenarios/results"
)

// causes returns the text with the causes of the run's failures, each once. It leaves out known failures.
func (c *Console) causes(run results.Run) string {
	var b strings.Builder
	const most = 12 // maximum number of causes per class
	left, again := map[results.Verdict]int{}, map[string]string{}
	for _, r := range run.Results {
		again[r.ID] = r.Rerun
	}
	for _, cause := range run.Causes {
		if cause.Known {
			continue
		}
		if left[cause.Class]++; left[cause.Class] > most {
			continue
		}
		head := strings.TrimSpace(cause.ID + "  " + firstLine(cause.Title))
		fmt.Fprintf(&b, "%s %s\n", c.paintVerdict(cause.Class, fmt.Sprintf("%-5s", headline(cause.Class))), harmless(head))
		where := in(cause.Scenarios, 3)
		if cause.Everywhere && run.Counts.Apart > 0 {
			where += "; scenarios that show nothing else count as passed"
		}
		switch {
		case cause.Class == results.Warn || cause.Class == results.Lint:
			if !c.o.Quiet {
				b.WriteString(block("      ", "seen", where))
			}
		default:
			b.WriteString(harmless(block("      ", "seen", where, "citation", cause.Citation,
				"run again", again[cause.Scenarios[0]])))
		}
	}
	for _, v := range []results.Verdict{
		results.Error, results.Fail, results.Inconclusive, results.Warn, results.Lint,
	} {
		if n := left[v] - most; n > 0 {
			fmt.Fprintf(&b, "%-5s and %d more\n", headline(v), n)
		}
	}
	return b.String()
}

// headline returns the word for a class at the start of a line.
func headline(v results.Verdict) string {
	switch v {
	case results.Fail, results.Error:
		return strings.ToUpper(v.String())
	case results.Inconclusive:
		return "?"
	}
	return v.String()
}

// in returns a text such as "in 5 scenarios: a, b, c and 2 more". most is the maximum number of ids in the text.
func in(ids []string, most int) string {
	if len(ids) == 1 {
		return "in " + ids[0]
	}
	first := strings.Join(ids[:min(most, len(ids))], ", ")
	return fmt.Sprintf("in %d scenarios: %s%s", len(ids), first, andMore(len(ids)-most))
}

// Summary removes the live line and writes the counts, the failures and the slowest scenarios. It returns the first
// error of the writer.
func (c *Console) Summary(run results.Run) error {
	c.Close()
	c.mu.Lock()
	defer c.mu.Unlock()
	var b strings.Builder
	fmt.Fprintf(&b, "\n")
	b.WriteString(c.causes(run))
	for _, t := range run.Flaky {
		fmt.Fprintf(&b, "flaky: %s passed %d of %d times\n", t.ID, t.Passed, t.Of)
	}
	b.WriteString(harmless(differences(run, c.o.Width())))
	b.WriteString(harmless(changes(run.Against, 40)))
	for _, s := range run.Stale {
		fmt.Fprintf(&b, "stale: %s\n", harmless(s))
	}
	if slow := slowest(run.Results, 3); len(run.Results) > 3 && !c.o.Quiet {
		parts := lists.Map(slow, func(r results.Result) string { return name(r) + " " + short(r.Duration) + mostlyWaited(r) })
		fmt.Fprintf(&b, "slowest: %s\n", strings.Join(parts, ", "))
	}
	if c.o.Verbose {
		b.WriteString(waited(run.Results))
	}
	for _, n := range run.Notes {
		fmt.Fprintf(&b, "%s\n", harmless(n))
	}
	if run.Conformance != nil {
		b.WriteString("\n" + requirementTable(run.Conformance, c.o.Verbose))
		fmt.Fprintf(&b, "%s\n", run.Conformance.Verdict)
	}
	if s := run.Sweep; s != nil {
		fmt.Fprintf(&b, "sweep: %s; %d of %d pairs of situation and action; %s\n", s.Counts(), s.PairsTried, s.Pairs,
			printable.Plural(len(s.Repros), "repro", "repros"))
		if s.Drawn != nil {
			fmt.Fprintln(&b, s.Drawn)
		}
	}
	if run.Interrupted {
		b.WriteString("interrupted: not all scenarios ran\n")
	}
	verdict := run.Verdict
	if verdict == results.Skip && run.Counts.Pass > 0 {
		verdict = results.Pass // shown as SKIP: no scenario applied
	}
	fmt.Fprintf(&b, "%s  %s\n      %s, %s\n", c.paintVerdict(verdict, strings.ToUpper(verdict.String())),
		harmless(run.Agent.String()), counts(run), short(run.Duration))
	if line := next(run); line != "" {
		fmt.Fprintf(&b, "      %s\n", line)
	}
	c.print(b.String())
	return c.err
}

// explained matches the ids of rules and requirements, which acp-test help explains.
var explained = lazy.Regexp(`^[A-Z][A-Z0-9]*(-[A-Z0-9]+)*$`)

// next returns one line that suggests the user's next step, or "" if there is nothing to suggest.
func next(run results.Run) string {
	var steps []string
	differ := slices.ContainsFunc(run.Causes, func(c results.Cause) bool { return c.ID == "golden" && !c.Known })
	for _, cause := range run.Causes {
		id, _, _ := strings.Cut(cause.ID, " ")
		if !cause.Known && cause.Class == results.Fail && explained().MatchString(id) {
			steps = append(steps, "acp-test help "+id+" explains the first cause")
			break
		}
	}
	if slices.ContainsFunc(run.Results, func(r results.Result) bool {
		return r.Golden != nil && !r.Golden.Recording && (r.Golden.State == "new" || r.Golden.State == "differs" && differ)
	}) {
		steps = append(steps, "acp-test review goes through the goldens")
	}
	if len(steps) == 0 && (run.Counts.Error > 0 || run.Counts.Inconclusive > 0) {
		steps = append(steps, "acp-test help verdicts")
	}
	if run.Out != "" {
		name, _ := File("html")
		steps = append(steps, filepath.Join(run.Out, name))
	}
	return strings.Join(steps, "; ")
}

// differences returns the text about the scenarios whose results differ between the rounds of a perturbed run. It
// shows an explanation for each scenario, and the two transcripts next to each other.
func differences(run results.Run, width int) string {
	var b strings.Builder
	for _, d := range run.Differences {
		fmt.Fprintf(&b, "differs: %s, round %d (%s) and round %d (%s): %s\n", d.ID, d.Rounds[0], d.Verdicts[0], d.Rounds[1],
			d.Verdicts[1], d.Explanation)
		if len(d.How) > 0 {
			fmt.Fprintf(&b, "  round %d: %s\n", d.Rounds[1], strings.Join(d.How, ", "))
		}
		const most = 30
		for _, r := range d.Rows[:min(most, len(d.Rows))] {
			b.WriteString(beside(r, max(width, 100)))
		}
		if n := len(d.Rows) - most; n > 0 {
			fmt.Fprintf(&b, "  and %s\n", printable.Plural(n, "more line", "more lines"))
		}
	}
	return b.String()
}

// beside returns a row with two texts next to each other. If the first difference would be outside of the columns,
// the beginnings of both texts are cut off.
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

// wait is a kind of waiting and the time it took.
type wait struct {
	what string
	took time.Duration
}

func waitsOf(w results.Waits) []wait {
	return []wait{{"starting", w.Start}, {"at deadlines", w.Deadline}, {"lingering", w.Linger}, {"at the exit", w.Exit}}
}

// mostlyWaited returns a text with the kind of waiting that took more than half of a scenario's time, or "" if none
// did.
func mostlyWaited(r results.Result) string {
	for _, w := range waitsOf(r.Waits) {
		if 2*w.took > r.Duration {
			return fmt.Sprintf(" (%s %s)", short(w.took), w.what)
		}
	}
	return ""
}

// waited returns a line with the total time that all scenarios spent on each kind of waiting.
func waited(outcomes []results.Result) string {
	var all results.Waits
	var took time.Duration
	for _, r := range outcomes {
		all.Add(r.Waits)
		took += r.Duration
	}
	parts := lists.Map(waitsOf(all), func(w wait) string { return short(w.took) + " " + w.what })
	return fmt.Sprintf("waited: %s; all scenarios took %s\n", strings.Join(parts, ", "), short(took))
}

// requirementTable returns the table of requirements for a terminal. It has the counts by tier, and a line for each
// failed or inconclusive requirement. If all is set, it has a line for every requirement.
func requirementTable(c *results.Conformance, all bool) string {
	var b strings.Builder
	counts := map[string]map[string]int{} // by tier and word; the word "" counts the whole tier
	var tiers []string
	for _, q := range c.Requirements {
		if counts[q.Tier] == nil {
			counts[q.Tier] = map[string]int{}
			tiers = append(tiers, q.Tier)
		}
		word := q.Verdict.String()
		if !slices.Contains([]results.Verdict{results.Pass, results.Fail, results.Inconclusive}, q.Verdict) {
			word = "untested"
		}
		counted := word
		if word == "untested" && q.Excluded {
			counted = "excluded"
		}
		counts[q.Tier][""]++
		counts[q.Tier][counted]++
		if !all && (q.Verdict == results.Pass || q.Verdict == results.Skip) {
			continue
		}
		fmt.Fprintf(&b, "%-12s %-13s %-6s %-12s %6d  %-15s %s\n", q.ID, q.Tier, q.Level, word, q.Evidence, q.TCK,
			harmless(q.Reason))
	}
	var head strings.Builder
	if b.Len() > 0 {
		fmt.Fprintf(&head, "%-12s %-13s %-6s %-12s %6s  %-15s %s\n", "requirement", "tier", "level", "verdict", "seen",
			"acp-tck", "by")
	}
	b.WriteString("\n")
	for _, t := range tiers {
		n := counts[t]
		fmt.Fprintf(&b, "%-13s %3d requirements: %d pass, %d fail, %d inconclusive, %d untested", t, n[""], n["pass"],
			n["fail"], n["inconclusive"], n["untested"])
		if n["excluded"] > 0 {
			fmt.Fprintf(&b, ", %d excluded", n["excluded"])
		}
		b.WriteString("\n")
	}
	if len(c.Because) > 0 {
		fmt.Fprintf(&b, "decided by: %s\n", strings.Join(c.Because, " "))
	}
	return head.String() + b.String()
}
