package verdict

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/acp-test/acp-test/scenarios/results"
)

// missedFurther reports whether a check is that of the further turn, which did not end well.
func missedFurther(c results.Check) bool {
	return c.Slug == results.FurtherCheck && c.InTurn && c.Verdict != results.Pass && !c.Known
}

// SinglyWithoutModel returns the result as it stands where no scenario of the run had a
// model: what rests on a turn is inconclusive, and the further turn is no check.
func SinglyWithoutModel(res results.Result) results.Result {
	further := slices.ContainsFunc(res.Checks, missedFurther)
	if !res.Unreached && !further || res.Verdict == results.Error || res.Verdict == results.Skip {
		return res
	}
	res.Checks = slices.DeleteFunc(slices.Clone(res.Checks), missedFurther)
	res.Findings = slices.Clone(res.Findings)
	if res.Unreached {
		excuseTurns(&res)
	}
	verdict := cmp.Or(res.FailureClass, results.Pass)
	for _, c := range res.Checks {
		if !c.NotReached {
			verdict = results.Worst(verdict, c.Verdict)
		}
	}
	for _, f := range res.Findings {
		verdict = results.Worst(verdict, f.Class)
	}
	switch {
	case !res.Golden.Failed():
	case res.Unreached:
		res.Golden = &results.Golden{State: "off", Path: res.Golden.Path}
	default:
		verdict = results.Worst(verdict, results.Fail)
	}
	if res.Known = res.Known && verdict == results.Fail; verdict == results.Inconclusive {
		res.Reason = noModel
	}
	res.Verdict = verdict
	return res
}

// excuseTurns makes inconclusive what failed in the turns of a result.
func excuseTurns(res *results.Result) {
	for i := range res.Checks {
		if c := &res.Checks[i]; c.InTurn && c.Verdict != results.Pass && !c.Known {
			c.Verdict, c.Reason = results.Inconclusive, noModel
		}
	}
	for i := range res.Findings {
		if f := &res.Findings[i]; f.InTurn && (f.Class == results.Fail || f.Class == results.Warn) {
			f.Class = results.Inconclusive
		}
	}
	if res.FailedInTurn {
		res.FailureClass = results.Inconclusive
	}
}

// noModel is why a turn that no model had a part in proves nothing.
const noModel = "no scenario of this run reached the model server, so nothing is known of the agent's turns"

// WithoutModel takes the blame out of a run in which no scenario had a model.
func WithoutModel(run *results.Run) {
	prompted := false
	for _, r := range run.Results {
		if r.Reached {
			return
		}
		prompted = prompted || r.Unreached || slices.ContainsFunc(r.Checks, missedFurther)
	}
	if !prompted {
		return
	}
	var hosts []string
	for i, r := range run.Results {
		run.Results[i] = SinglyWithoutModel(r)
		for _, f := range r.Findings {
			if f.Rule == results.EgressRule {
				hosts = append(hosts, f.About)
			}
		}
	}
	run.NoModel = "no scenario of this run reached the model server, so what needs a model is inconclusive: tell the " +
		"agent the base URL of its model with --env NAME='$LLM' or in a profile (see docs/profiles.md)"
	if len(hosts) > 0 {
		slices.Sort(hosts)
		hosts = slices.Compact(hosts)
		run.NoModel += fmt.Sprintf("; it asked for %s instead and was refused", strings.Join(hosts, ", "))
	}
}
