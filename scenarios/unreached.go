package scenarios

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// prompts are the Seqs of all prompts of the run.
func (r *run) prompts() (seqs []int) {
	for e := range r.t.All() {
		if r.protocol().Prompts(e) {
			seqs = append(seqs, e.Seq)
		}
	}
	return seqs
}

// markTurns notes whether the model server was reached where the script prompted
// the agent and had replies for it, and which findings are about a turn.
func (r *run) markTurns(res *Result) {
	prompts := r.prompts()
	wire, _ := r.model.Learned()
	res.reached = wire != ""
	res.unreached = wire == "" && r.scenario.model != nil && len(prompts) > 0
	for i, f := range res.Findings {
		res.Findings[i].inTurn = slices.ContainsFunc(f.Entries, func(seq int) bool { return slices.Contains(prompts, seq) })
	}
}

// missedInTurn reports whether a line of the check missed after the first prompt.
func (r *run) missedInTurn(c *checkState) bool {
	prompts := r.prompts()
	return len(prompts) > 0 && slices.ContainsFunc(c.misses, func(m *Miss) bool { return m.at >= prompts[0] })
}

// missedFurther reports whether a check is that of the further turn, which did not end well.
func (c Check) missedFurther() bool {
	return c.Slug == furtherCheck && c.inTurn && c.Verdict != Pass && !c.Known
}

// withoutModel returns the result as it stands where no scenario of the run had a
// model: what rests on a turn is inconclusive, and the further turn is no check.
func (res Result) withoutModel() Result {
	further := slices.ContainsFunc(res.Checks, Check.missedFurther)
	if !res.unreached && !further || res.Verdict == Error || res.Verdict == Skip {
		return res
	}
	res.Checks, res.Findings = slices.DeleteFunc(slices.Clone(res.Checks), Check.missedFurther), slices.Clone(res.Findings)
	verdict := Pass
	for i := range res.Checks {
		c := &res.Checks[i]
		if res.unreached && c.inTurn && c.Verdict != Pass && !c.Known {
			c.Verdict, c.Reason = Inconclusive, noModel
		}
		if !c.NotReached {
			verdict = Worst(verdict, c.Verdict)
		}
	}
	for i := range res.Findings {
		if f := &res.Findings[i]; res.unreached && f.inTurn && (f.Class == Fail || f.Class == Warn) {
			f.Class = Inconclusive
		}
		verdict = Worst(verdict, res.Findings[i].Class)
	}
	if res.unreached && res.failedInTurn {
		res.FailureClass = Inconclusive
	}
	verdict = Worst(verdict, cmp.Or(res.FailureClass, Pass))
	switch {
	case !res.Golden.failed():
	case res.unreached:
		res.Golden = &Golden{State: "off", Path: res.Golden.Path}
	default:
		verdict = Worst(verdict, Fail)
	}
	if res.Known = res.Known && verdict == Fail; verdict == Inconclusive {
		res.Reason = noModel
	}
	res.Verdict = verdict
	return res
}

// noModel is why a turn that no model had a part in proves nothing.
const noModel = "no scenario of this run reached the model server, so nothing is known of the agent's turns"

// WithoutModel takes the blame out of a run in which no scenario had a model.
func (run *Run) WithoutModel() {
	prompted := false
	for _, r := range run.Results {
		if r.reached {
			return
		}
		prompted = prompted || r.unreached || slices.ContainsFunc(r.Checks, Check.missedFurther)
	}
	if !prompted {
		return
	}
	var hosts []string
	for i, r := range run.Results {
		run.Results[i] = r.withoutModel()
		for _, f := range r.Findings {
			if f.Rule == EgressRule {
				host, _, _ := strings.Cut(strings.TrimPrefix(f.Message, egressBegins), " ")
				hosts = append(hosts, host)
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
