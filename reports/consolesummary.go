package reports

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/acp-test/acp-test/scenarios/results"
)

// causes are what is wrong, each once; what was known is left out.
func (c *Console) causes(run results.Run) string {
	var b strings.Builder
	const most = 12 // of a class
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

// headline is a class as a line begins with it.
func headline(v results.Verdict) string {
	switch v {
	case results.Fail, results.Error:
		return strings.ToUpper(v.String())
	case results.Inconclusive:
		return "?"
	}
	return v.String()
}

// in is "in 5 scenarios: a, b, c and 2 more".
func in(ids []string, most int) string {
	if len(ids) == 1 {
		return "in " + ids[0]
	}
	first := strings.Join(ids[:min(most, len(ids))], ", ")
	return fmt.Sprintf("in %d scenarios: %s%s", len(ids), first, andMore(len(ids)-most))
}

// Summary ends the live line and shows the counts, what failed and the slowest.
// It returns the first error of the writer.
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
		var parts []string
		for _, r := range slow {
			parts = append(parts, name(r)+" "+short(r.Duration)+mostlyWaited(r))
		}
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
		fmt.Fprintf(&b, "sweep: %d schedules explored, %d pruned, %d inconclusive; "+
			"%d of %d pairs of situation and action; %s\n",
			s.Explored, s.Pruned, s.Inconclusive, s.PairsTried, s.Pairs, plural(len(s.Repros), "repro", "repros"))
		if s.Drawn != nil {
			fmt.Fprintln(&b, s.Drawn)
		}
	}
	if run.Interrupted {
		b.WriteString("interrupted: not all scenarios ran\n")
	}
	who := run.Agent.Profile
	if run.Agent.Version != "" {
		who += " " + run.Agent.Version
	}
	verdict := run.Verdict
	if verdict == results.Skip && run.Counts.Pass > 0 {
		verdict = results.Pass // SKIP is a run in which nothing applied
	}
	fmt.Fprintf(&b, "%s  %s\n      %s, %s\n", c.paintVerdict(verdict, strings.ToUpper(verdict.String())),
		harmless(who), counts(run), short(run.Duration))
	if line := next(run); line != "" {
		fmt.Fprintf(&b, "      %s\n", line)
	}
	c.print(b.String())
	return c.err
}

// explained are the ids of rules and requirements.
var explained = regexp.MustCompile(`^[A-Z][A-Z0-9]*(-[A-Z0-9]+)*$`)

// next is what to do with a result, in a line; "" if there is nothing.
func next(run results.Run) string {
	var steps []string
	differ := slices.ContainsFunc(run.Causes, func(c results.Cause) bool { return c.ID == "golden" && !c.Known })
	for _, cause := range run.Causes {
		id, _, _ := strings.Cut(cause.ID, " ")
		if !cause.Known && cause.Class == results.Fail && explained.MatchString(id) {
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
