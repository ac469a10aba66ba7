// Package results holds the outcome of a run as plain data: what scenarios, checks and
// rules showed, in the form that reports read and results.json stores. It judges nothing;
// package verdict does.
package results

import (
	"github.com/acp-test/acp-test/rules"
)

// Verdict is the judgement of a scenario or of a part of one: a class, in the one order of
// severity that rules, checks and scenarios share. The greater one is the more severe.
type Verdict = rules.Class

// The verdicts, mildest first.
const (
	Pass = rules.Pass
	// Lint and Warn are verdicts of checks and findings. They never change the verdict of
	// their scenario.
	Lint = rules.Lint
	Warn = rules.Warn
	// Skip: the agent did not advertise what the scenario needs.
	Skip = rules.Skip
	// Inconclusive: the harness could not create the situation that the scenario needs, so
	// neither pass nor fail would be honest.
	Inconclusive = rules.Inconclusive
	// Fail: the agent broke something that was required of it.
	Fail = rules.Fail
	// Error: the command line, scenario, profile, environment or harness is at fault, not
	// the agent.
	Error = rules.Error
)

// Worst returns the more severe verdict for a whole that consists of a and b. Lint and Warn
// count as Pass there.
func Worst(a, b Verdict) Verdict { return max(ofWhole(a), ofWhole(b)) }

func ofWhole(v Verdict) Verdict {
	if v == Warn || v == Lint {
		return Pass
	}
	return v
}

// Rules of the engine itself, for what no frame shows.
const (
	// EgressRule is the rule of findings about hosts that the agent wanted to reach.
	EgressRule = "EGRESS"
	// ToolOfferedRule is the rule of findings about tools of a profile that the agent does
	// not offer its model.
	ToolOfferedRule = "TOOL-OFFERED"
	// AfterOthersRule is the rule of findings that show only in a process that has run
	// other scenarios before.
	AfterOthersRule = "AFTER-OTHERS"
)

// FurtherCheck is the slug of the check of the plain turn that follows each scenario.
const FurtherCheck = "further"
