package scenarios

import (
	"slices"
	"time"

	"github.com/acp-test/acp-test/agents"
)

// unlisted reports whether there is a failure that no list of known failures
// has: then a golden must not be blessed.
func (r *run) unlisted(res *Result) bool {
	for _, c := range res.Checks {
		if c.Verdict == Fail && !r.isKnown(c.ID, c.Slug) {
			return true
		}
	}
	for _, f := range res.Findings {
		if f.Class == Fail && !r.isKnown(f.Rule) {
			return true
		}
	}
	return res.Failure != nil || res.Verdict == Error
}

// beforeChecks is what lists of known failures call a line that missed before
// the first check. An agent that does not start and a scenario that hits its
// deadline are no such lines, and cannot be listed.
const beforeChecks = "before-checks"

// missedBefore reports whether a line missed before the first check.
func (r *Result) missedBefore() bool {
	return r.Failure != nil && r.Failure.Where != "" && !r.NotStarted
}

func (r *run) isKnown(ids ...string) bool {
	return covered(r.engine.knownFailures(), r.scenario.ID, ids...)
}

// Expects says why a check or a rule of a scenario is expected to fail, by the
// baseline or the profile; ok is false if it is not.
func (e *Engine) Expects(scenario, id string) (reason string, ok bool) {
	for _, k := range e.knownFailures() {
		if k.Covers(scenario, id) && !k.Expired(time.Now()) {
			return k.Reason, true
		}
	}
	return "", false
}

// knownFailures are those of the baseline and those of the profile.
func (e *Engine) knownFailures() []agents.KnownFailure {
	return append(slices.Clone(e.Known), e.Profile.KnownFailures...)
}

// covered reports whether a list of known failures has one of these checks or
// rules of a scenario.
func covered(list []agents.KnownFailure, scenario string, ids ...string) bool {
	for _, k := range list {
		for _, id := range ids {
			if k.Covers(scenario, id) {
				return true
			}
		}
	}
	return false
}

// known marks the parts that are known to fail, and the whole if nothing else
// does.
func (r *run) known(res *Result) { res.mark(r.isKnown) }

// An inconclusive part beside a failure that is known does not make it unknown.
func (r *Result) mark(isKnown func(ids ...string) bool) {
	all := true
	counts := func(v Verdict) bool { return v == Fail || v == Inconclusive && r.Verdict == Inconclusive }
	for i, c := range r.Checks {
		if c.Verdict == Pass || c.Verdict == Skip {
			continue
		}
		r.Checks[i].Known = isKnown(c.ID, c.Slug)
		if counts(c.Verdict) && !r.Checks[i].Known && !c.NotReached {
			all = false
		}
	}
	for i, f := range r.Findings {
		r.Findings[i].Known = isKnown(f.Rule)
		if counts(f.Class) && !r.Findings[i].Known {
			all = false
		}
	}
	if r.Golden.failed() {
		r.Golden.Known = isKnown("golden")
		all = all && r.Golden.Known
	}
	if r.Failure != nil && !(r.missedBefore() && isKnown(beforeChecks)) || r.Verdict == Error {
		all = false
	}
	r.Known = all && (r.Verdict == Fail || r.Verdict == Inconclusive)
}
