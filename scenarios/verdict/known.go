package verdict

import (
	"slices"
	"time"

	"github.com/acp-test/acp-test/agents"
	"github.com/acp-test/acp-test/scenarios/results"
)

// beforeChecks is what lists of known failures call a line that missed before
// the first check. An agent that does not start and a scenario that hits its
// deadline are no such lines, and cannot be listed.
const beforeChecks = "before-checks"

// missedBefore reports whether a line missed before the first check.
func missedBefore(r *results.Result) bool {
	return r.Failure != nil && r.Failure.Where != "" && !r.NotStarted
}

// Listed reports whether a list of known failures has one of these checks or
// rules of a scenario.
func Listed(list []agents.KnownFailure, scenario string, ids ...string) bool {
	return slices.ContainsFunc(list, func(k agents.KnownFailure) bool { return k.Covers(scenario, ids...) })
}

// Expect marks the parts of a result that a list says are known to fail, and the whole if
// nothing else does.
func Expect(r *results.Result, list []agents.KnownFailure) {
	now := time.Now()
	list = slices.DeleteFunc(slices.Clone(list), func(k agents.KnownFailure) bool { return k.Expired(now) })
	Mark(r, func(ids ...string) bool { return Listed(list, r.ID, ids...) })
}

// An inconclusive part beside a failure that is known does not make it unknown.
func Mark(r *results.Result, isKnown func(ids ...string) bool) {
	all := true
	counts := func(v results.Verdict) bool {
		return v == results.Fail || v == results.Inconclusive && r.Verdict == results.Inconclusive
	}
	for i, c := range r.Checks {
		if c.Verdict == results.Pass || c.Verdict == results.Skip {
			continue
		}
		r.Checks[i].Known = isKnown(r.Names(c)...)
		if counts(c.Verdict) && !r.Checks[i].Known && !c.NotReached {
			all = false
		}
	}
	for i, f := range r.Findings {
		r.Findings[i].Known = isKnown(f.Names()...)
		if counts(f.Class) && !r.Findings[i].Known {
			all = false
		}
	}
	if r.Golden.Failed() {
		r.Golden.Known = isKnown("golden")
		all = all && r.Golden.Known
	}
	if counts(r.FailureClass) && !(missedBefore(r) && isKnown(beforeChecks)) || r.Verdict == results.Error {
		all = false
	}
	r.Known = all && (r.Verdict == results.Fail || r.Verdict == results.Inconclusive)
}
