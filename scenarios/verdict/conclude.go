// Package verdict judges runs as a whole. It groups failures by cause, and compares them with known failures,
// baselines and earlier runs. It builds the requirement table, merges shards, and decides counts, verdict and exit
// status. It only reads and changes results.
package verdict

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/acp-test/acp-test/scenarios/results"
)

// NewRun returns an empty run that needs no engine, for example for recordings. protocol is the protocol's version as
// in the headers of transcripts. Conclude completes the run.
func NewRun(protocol, tool, command string, agent results.Agent) results.Run {
	return results.Run{Version: 1, Tool: tool, Command: command, Agent: agent, Protocol: protocol, Started: time.Now()}
}

// Conclude sets the fields of a run that follow from its results: counts, causes, verdict, advice and exit status.
func Conclude(run *results.Run) {
	Sum(run)
	Finish(run)
}

// Sum counts the results of a run and sets the run's verdict to the worst of their verdicts.
func Sum(run *results.Run) {
	c := &run.Counts
	run.Causes = Causes(run.Results)
	setApart(run)
	for i := range run.Results {
		r := &run.Results[i]
		c.Add(r, 1)
		verdict := r.Verdict
		if r.Known {
			verdict = results.Pass // a known failure does not make the run fail
		}
		run.Verdict = results.Worst(run.Verdict, verdict)
		for _, f := range r.Findings {
			count(c, f.Class)
		}
		for _, k := range r.Checks {
			count(c, k.Verdict)
		}
		if r.Golden != nil && r.Golden.State == "new" {
			c.NewGoldens++
		}
		if r.AgentName != "" && run.Agent.Name == "" {
			run.Agent.Name, run.Agent.Version = r.AgentName, r.AgentVersion
		}
		if r.Wire != "" && run.Agent.Wire == "" {
			run.Agent.Wire = r.Wire
		}
	}
	run.Flaky = flaky(run.Results)
	c.Flaky = len(run.Flaky)
}

// flaky returns the scenarios that passed in some repeats and not in others.
func flaky(list []results.Result) []results.Flaky {
	at := map[string]int{}
	var all []results.Flaky
	for _, r := range list {
		if r.Repeat == 0 || r.Verdict == results.Skip {
			continue
		}
		i, ok := at[r.ID]
		if !ok {
			i = len(all)
			at[r.ID], all = i, append(all, results.Flaky{ID: r.ID})
		}
		all[i].Of++
		if r.Verdict == results.Pass {
			all[i].Passed++
		}
	}
	return slices.DeleteFunc(all, func(f results.Flaky) bool { return f.Passed == 0 || f.Passed == f.Of })
}

// Add adds results to a run and updates its counts, verdict and exit status. Sum must have been called before.
func Add(run *results.Run, more ...results.Result) {
	run.Results = append(run.Results, more...)
	run.Counts, run.Verdict, run.Flaky = results.Counts{}, 0, nil
	Sum(run)
	run.Exit = Exit(run)
}

// Finish sets the advice and the exit status of a run. It must be called after Sum.
func Finish(run *results.Run) {
	run.Notes = append(run.Notes, advice(run)...)
	run.Exit = Exit(run)
}

func count(c *results.Counts, v results.Verdict) {
	switch v {
	case results.Warn:
		c.Warnings++
	case results.Lint:
		c.Lints++
	}
}

// Exit returns the exit status: 2 if the harness could not judge, 1 for an unexpected failure, else 0.
func Exit(run *results.Run) int {
	c := run.Counts
	switch {
	case c.Error > 0, run.NoModel != "", !run.Recorded && c.Pass+c.Apart+c.Fail+c.Known == 0:
		return 2
	case c.Fail > 0, len(run.Left) > 0, len(run.Stale) > 0, run.Strict && c.Inconclusive > 0, run.Interrupted,
		slices.ContainsFunc(run.Causes, func(x results.Cause) bool { return x.Everywhere && !x.Known }):
		return 1
	}
	return 0
}

// missedFurther reports whether a check is that of the further turn and did not pass.
func missedFurther(c results.Check) bool {
	return c.Slug == results.FurtherCheck && c.InTurn && c.Verdict != results.Pass && !c.Known
}

// SinglyWithoutModel returns a copy of a result for a run in which no scenario reached the model. Failures in turns
// become inconclusive, and the check of the further turn is removed.
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

// excuseTurns makes a result's failures in turns inconclusive.
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

// noModel is the reason for making a failure in a turn inconclusive.
const noModel = "no scenario of this run reached the model server, so nothing is known of the agent's turns"

// WithoutModel makes failures in turns inconclusive if no scenario of the run reached the model server.
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
	advice := ""
	for i, r := range run.Results {
		run.Results[i] = SinglyWithoutModel(r)
		for _, c := range r.Checks {
			if c.Failure != nil {
				advice = cmp.Or(advice, c.Failure.Advice)
			}
		}
		for _, f := range r.Findings {
			if f.Rule == results.EgressRule {
				hosts = append(hosts, f.About)
			}
		}
	}
	const noModel = "no scenario of this run reached the model server, so turns that need a model are inconclusive: "
	run.NoModel = noModel + "tell the agent the base URL of its model with --env NAME='$LLM' or in a profile " +
		"(see docs/profiles.md)"
	if len(hosts) > 0 {
		slices.Sort(hosts)
		hosts = slices.Compact(hosts)
		run.NoModel += fmt.Sprintf("; it tried to reach %s instead, and acp-test refused", strings.Join(hosts, ", "))
	}
	if advice != "" {
		run.NoModel = noModel + advice
	}
}
