// Package results holds the outcome of a run as plain data: what scenarios, checks and
// rules showed, in the form that reports read and results.json stores. It judges nothing;
// package verdict does.
package results

import "slices"

// Verdict is the judgement of a scenario or of a part of one. Verdicts have one order of
// severity: Pass, Lint, Warn, Skip, Inconclusive, Fail, Error.
type Verdict string

// The verdicts, mildest first.
const (
	Pass Verdict = "pass"
	// Lint and Warn are verdicts of checks and findings. They never change the verdict of
	// their scenario.
	Lint Verdict = "lint"
	Warn Verdict = "warn"
	// Skip: the agent did not advertise what the scenario needs.
	Skip Verdict = "skip"
	// Inconclusive: the harness could not create the situation that the scenario needs, so
	// neither pass nor fail would be honest.
	Inconclusive Verdict = "inconclusive"
	// Fail: the agent broke something that was required of it.
	Fail Verdict = "fail"
	// Error: the command line, scenario, profile, environment or harness is at fault, not
	// the agent.
	Error Verdict = "error"
)

// scale is the order of severity. The zero Verdict, which judges nothing, comes first.
var scale = []Verdict{"", Pass, Lint, Warn, Skip, Inconclusive, Fail, Error}

// Compare orders verdicts by severity, for slices.SortFunc: negative if a is milder than b.
func Compare(a, b Verdict) int { return slices.Index(scale, a) - slices.Index(scale, b) }

// Worse reports whether v is more severe than other.
func (v Verdict) Worse(other Verdict) bool { return Compare(v, other) > 0 }

// Worst returns the more severe verdict for a whole that consists of a and b. Lint and Warn
// count as Pass there.
func Worst(a, b Verdict) Verdict {
	a, b = a.ofWhole(), b.ofWhole()
	if b.Worse(a) {
		return b
	}
	return a
}

func (v Verdict) ofWhole() Verdict {
	if v == Warn || v == Lint {
		return Pass
	}
	return v
}
