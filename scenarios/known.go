package scenarios

import (
	"slices"
	"strings"
	"time"

	"github.com/acp-test/acp-test/agents"
)

// unlisted reports whether there is a failure that no list of known failures
// has: then a golden must not be blessed.
func (r *run) unlisted(res *Result) bool {
	for _, c := range res.Checks {
		if c.Verdict == Fail && !r.isKnown(res.Names(c)...) {
			return true
		}
	}
	for _, f := range res.Findings {
		if f.Class == Fail && !r.isKnown(f.Names()...) {
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

// Names are what a list of known failures may call a finding.
func (f Finding) Names() []string {
	return append([]string{f.Rule, f.cause()}, f.Requirements[:min(1, len(f.Requirements))]...)
}

// cause is a rule with its point.
func (f Finding) cause() string { return strings.TrimSpace(f.Rule + " " + f.Point) }

// Names are what a list of known failures may call a check: its id, its requirement,
// and the cause of a finding beside it that breaks the same requirement.
func (r *Result) Names(c Check) []string {
	names := append([]string{c.ID, c.Slug}, c.Requirements[:min(1, len(c.Requirements))]...)
	for _, f := range r.Findings {
		if f.Class == c.Verdict && overlap(f.Requirements, c.Requirements) {
			names = append(names, f.cause())
		}
	}
	return names
}

// Expects says why what has these names, a check or a rule and its cause, is expected to
// fail in a scenario, by the baseline or the profile; ok is false if it is not.
func (e *Engine) Expects(scenario string, names ...string) (reason string, ok bool) {
	for _, k := range e.knownFailures() {
		if k.Covers(scenario, names...) && !k.Expired(time.Now()) {
			return k.Reason, true
		}
	}
	return "", false
}

// knownFailures are those of the baseline and those of the profile, in the engine's protocol.
func (e *Engine) knownFailures() []agents.KnownFailure {
	return e.Protocol.KnownOf(e.Profile, append(slices.Clone(e.Known), e.Profile.KnownFailures...))
}

// covered reports whether a list of known failures has one of these checks or
// rules of a scenario.
func covered(list []agents.KnownFailure, scenario string, ids ...string) bool {
	return slices.ContainsFunc(list, func(k agents.KnownFailure) bool { return k.Covers(scenario, ids...) })
}

// known marks the parts that are known to fail, and the whole if nothing else
// does.
func (r *run) known(res *Result) { res.mark(r.isKnown) }

// Expect marks the parts of a result that a list says are known to fail, and the whole if
// nothing else does.
func (r *Result) Expect(list []agents.KnownFailure) {
	now := time.Now()
	list = slices.DeleteFunc(slices.Clone(list), func(k agents.KnownFailure) bool { return k.Expired(now) })
	r.mark(func(ids ...string) bool { return covered(list, r.ID, ids...) })
}

// An inconclusive part beside a failure that is known does not make it unknown.
func (r *Result) mark(isKnown func(ids ...string) bool) {
	all := true
	counts := func(v Verdict) bool { return v == Fail || v == Inconclusive && r.Verdict == Inconclusive }
	for i, c := range r.Checks {
		if c.Verdict == Pass || c.Verdict == Skip {
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
	if r.Golden.failed() {
		r.Golden.Known = isKnown("golden")
		all = all && r.Golden.Known
	}
	if counts(r.FailureClass) && !(r.missedBefore() && isKnown(beforeChecks)) || r.Verdict == Error {
		all = false
	}
	r.Known = all && (r.Verdict == Fail || r.Verdict == Inconclusive)
}
