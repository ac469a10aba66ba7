package rules

import (
	"fmt"
	"maps"
	"slices"

	"github.com/acp-test/acp-test/internal/lists"
)

// Outcome is the result for one requirement, from one or more runs.
type Outcome uint8

// The outcomes, mildest first. If runs differ, the worst outcome counts.
const (
	Untested   Outcome = iota // nothing checked the requirement
	NotReached                // an earlier failure prevented the check
	Passed                    // at least one check, and no violation
	Undecided                 // the requirement was checked, but no judgment was possible
	Broken                    // a finding of class Fail, or a failed check
)

var outcomeNames = [...]string{"untested", "not reached", "pass", "inconclusive", "fail"}

func (o Outcome) String() string { return outcomeNames[min(o, Broken)] }

// MarshalText returns the name of the outcome.
func (o Outcome) MarshalText() ([]byte, error) { return []byte(o.String()), nil }

// Verdict is the result of a conformance run.
type Verdict uint8

// The verdicts.
const (
	Conformant Verdict = iota
	InconclusiveVerdict
	NotConformant
)

func (v Verdict) String() string {
	return [...]string{"CONFORMANT", "INCONCLUSIVE", "NOT CONFORMANT"}[min(v, NotConformant)]
}

// MarshalText returns the verdict in capitals.
func (v Verdict) MarshalText() ([]byte, error) { return []byte(v.String()), nil }

// Conclusion is a verdict and the reasons for it.
type Conclusion struct {
	Verdict Verdict
	// Because lists the requirements that decided the verdict, in the order of the
	// registry. It is empty for CONFORMANT.
	Because []string
	// Counts is the number of requirements with each outcome, per tier.
	Counts map[Tier]map[Outcome]int
}

// Conclude returns the verdict for the outcomes of requirements. A requirement
// that is missing in outcomes counts as Untested. If a MANDATORY or CAPABILITY
// requirement is broken, the agent is not conformant. Otherwise the run is
// inconclusive if a MANDATORY requirement could not be judged, or if none of
// its checks was reached. Equal outcomes give equal verdicts.
func (s *Set) Conclude(outcomes map[string]Outcome) Conclusion {
	c := Conclusion{Counts: map[Tier]map[Outcome]int{}}
	var broken, undecided []string
	for _, q := range s.registry.all {
		o := outcomes[q.ID]
		if c.Counts[q.Tier] == nil {
			c.Counts[q.Tier] = map[Outcome]int{}
		}
		c.Counts[q.Tier][o]++
		switch {
		case (q.Tier == Mandatory || q.Tier == Capability) && o == Broken:
			broken = append(broken, q.ID)
		case q.Tier == Mandatory && (o == Undecided || o == NotReached):
			undecided = append(undecided, q.ID)
		}
	}
	switch {
	case len(broken) > 0:
		c.Verdict, c.Because = NotConformant, broken
	case len(undecided) > 0:
		c.Verdict, c.Because = InconclusiveVerdict, undecided
	}
	return c
}

// Tally collects the outcomes of requirements over several runs. The zero value
// is empty.
type Tally struct {
	outcomes map[string]Outcome
	evidence map[string]int
	sources  map[string]map[string]bool
}

// AddFindings adds the findings of one run, except those about the client.
// support is how many times the rules checked each requirement
// (Checker.Support).
func (t *Tally) AddFindings(findings []Finding, support map[string]int) {
	for id, n := range support {
		if n > 0 {
			t.add(id, Passed, n, "")
		}
	}
	for _, f := range findings {
		outcome := Passed
		switch {
		case f.Side == OfClient:
			continue
		case f.Class == Fail:
			outcome = Broken
		case f.Class == Inconclusive:
			outcome = Undecided
		}
		for _, id := range f.Requirements {
			t.add(id, outcome, 0, f.Rule)
		}
	}
}

// AddCheck adds the outcome of one check of a scenario. about lists the
// requirements that the check tests. An Untested outcome is ignored, because
// the check was skipped.
func (t *Tally) AddCheck(check string, about []string, o Outcome) {
	if o == Untested {
		return
	}
	for _, id := range about {
		t.add(id, o, 1, check)
	}
}

func (t *Tally) add(id string, o Outcome, evidence int, source string) {
	if t.outcomes == nil {
		t.outcomes, t.evidence, t.sources = map[string]Outcome{}, map[string]int{}, map[string]map[string]bool{}
	}
	if o > t.outcomes[id] {
		t.outcomes[id] = o
		t.sources[id] = nil
	}
	t.evidence[id] += evidence
	if o == t.outcomes[id] && o > Passed && source != "" {
		if t.sources[id] == nil {
			t.sources[id] = map[string]bool{}
		}
		t.sources[id][source] = true
	}
}

// Outcomes returns the outcomes so far, for Conclude.
func (t *Tally) Outcomes() map[string]Outcome { return maps.Clone(t.outcomes) }

// Row is one requirement in the table of results.
type Row struct {
	Requirement Requirement
	Outcome     Outcome
	// Evidence is how many times the requirement was checked. A pass without
	// evidence counts as Untested.
	Evidence int
	// Sources lists the rules and checks that caused an outcome worse than a pass.
	Sources []string
}

// Rows returns a row for each requirement of a set, in the registry's order.
func (t *Tally) Rows(s *Set) []Row {
	return lists.Map(s.registry.all, func(q Requirement) Row {
		return Row{q, t.outcomes[q.ID], t.evidence[q.ID], slices.Sorted(maps.Keys(t.sources[q.ID]))}
	})
}

// String returns the row as one line of text.
func (r Row) String() string {
	return fmt.Sprintf("%s %s %s (evidence: %d)", r.Requirement.ID, r.Requirement.Tier, r.Outcome, r.Evidence)
}
