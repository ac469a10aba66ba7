package verdict

import (
	"slices"
	"strings"

	"github.com/acp-test/acp-test/rules"
	"github.com/acp-test/acp-test/scenarios/results"
)

// Conform adds the requirement table and its verdict to a run: for each requirement, the outcomes of checks and rules
// over all scenarios and repeats. Known failures count like any other failure, because the specification has no
// baselines. The exit status is 0 only for CONFORMANT; it stays 2 if the harness could not judge.
func Conform(set *rules.Set, run *results.Run) {
	var t rules.Tally
	for _, r := range run.Results {
		if r.Verdict == results.Error {
			continue // the harness is at fault, so the result proves nothing
		}
		var findings []rules.Finding
		for _, f := range r.Findings {
			if f.Class != results.Error { // an error is about the editor
				findings = append(findings, rules.Finding{Rule: f.Rule, Class: f.Class, Requirements: f.Requirements})
			}
		}
		t.AddFindings(findings, r.Support)
		for _, c := range r.Checks {
			t.AddCheck(c.ID, c.Requirements, outcome(&c))
		}
	}
	end := set.Conclude(t.Outcomes())
	if unbound := unbound(run); len(unbound) > 0 {
		if end.Verdict != rules.NotConformant {
			end.Verdict, end.Because = rules.NotConformant, nil
		}
		end.Because = append(end.Because, unbound...)
	}
	table := &results.Conformance{Verdict: end.Verdict.String(), Because: end.Because}
	for _, row := range t.Rows(set) {
		q := row.Requirement
		if q.Side == rules.OfClient {
			continue
		}
		out := results.RequirementOutcome{ID: q.ID, Tier: q.Tier.String(), Level: q.Level, TCK: q.Kit,
			Verdict: verdictOfOutcome(row.Outcome), Evidence: row.Evidence,
			Checks: q.Checks, Rules: q.Rules}
		switch {
		case len(row.Sources) > 0:
			out.Reason = strings.Join(row.Sources, ", ")
		case row.Outcome == rules.Untested && q.Excluded != "":
			out.Reason, out.Excluded = q.Excluded, true
		case row.Outcome == rules.Untested:
			out.Reason = "the requirement never applied to what the agent did in this run"
		}
		table.Requirements = append(table.Requirements, out)
	}
	run.Conformance = table
	if run.Exit != 2 {
		run.Exit = 0
		if end.Verdict != rules.Conformant {
			run.Exit = 1
		}
	}
}

// unbound returns the sorted ids of failures without a requirement: checks, rules, and scenarios that failed before
// their first check.
func unbound(run *results.Run) (ids []string) {
	for _, r := range run.Results {
		if r.Verdict == results.Error {
			continue
		}
		if r.FailureClass == results.Fail && !r.NotStarted {
			ids = append(ids, r.ID)
		}
		for _, c := range r.Checks {
			if c.Verdict == results.Fail && len(c.Requirements) == 0 {
				ids = append(ids, c.ID)
			}
		}
		for _, f := range r.Findings {
			if f.Class == results.Fail && len(f.Requirements) == 0 {
				ids = append(ids, f.Rule)
			}
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// outcome returns the outcome of a check, which counts for each of its requirements.
func outcome(c *results.Check) rules.Outcome {
	switch {
	case c.NotReached && c.Verdict != results.Error:
		return rules.NotReached
	case c.Verdict == results.Pass:
		return rules.Passed
	case c.Verdict == results.Inconclusive:
		return rules.Undecided
	case c.Verdict == results.Fail, c.Verdict == results.Warn, c.Verdict == results.Lint:
		return rules.Broken
	}
	return rules.Untested
}

func verdictOfOutcome(o rules.Outcome) results.Verdict {
	switch o {
	case rules.Passed:
		return results.Pass
	case rules.Undecided, rules.NotReached:
		return results.Inconclusive
	case rules.Broken:
		return results.Fail
	}
	return results.Skip
}
