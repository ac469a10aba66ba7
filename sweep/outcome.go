package sweep

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/acp-test/acp-test/agents"
	"github.com/acp-test/acp-test/internal/lists"
	"github.com/acp-test/acp-test/scenarios"
	"github.com/acp-test/acp-test/scenarios/results"
	"github.com/acp-test/acp-test/scenarios/verdict"
)

// outcome returns the outcome of the sweep.
func (s *sweep) outcome(ctx context.Context, findings []Finding, all []Schedule, began time.Time) Outcome {
	e := s.engine
	run := e.NewRun()
	run.Started, run.Interrupted = began, ctx.Err() != nil
	run.Sweep = s.chart(all)
	slices.SortStableFunc(s.baselines, func(a, b results.Result) int { return strings.Compare(a.ID, b.ID) })
	run.Results = append(run.Results, s.baselines...)
	addFound(&run, findings)
	run.Notes = append(run.Notes, s.notes...)
	if run.NoModel = s.noModel; run.NoModel != "" {
		run.Notes = append(run.Notes, run.NoModel)
	} else if len(all) == 0 && s.orders == 0 {
		run.Notes = append(run.Notes, s.nothing())
	}
	run.Duration = time.Since(began)
	out := Outcome{Run: run, Findings: findings, Notes: s.notes}
	out.judge(&e)
	return out
}

// addFound adds the runs that show findings to the results, and their repro
// files to the sweep.
func addFound(run *results.Run, findings []Finding) {
	listed := map[string]bool{}
	for _, f := range findings {
		if f.File != "" {
			run.Sweep.Repros = append(run.Sweep.Repros, f.File)
		}
		if f.Action != "" && !listed[f.result.ID] {
			listed[f.result.ID] = true
			r := f.result
			r.Rerun = f.Command
			run.Results = append(run.Results, r)
		}
	}
}

// chart returns the results of the sweep, including which schedules ran. Points
// and actions are in the order of a turn instead of the order of likelihood.
func (s *sweep) chart(all []Schedule) *results.Sweep {
	m := &results.Sweep{Explored: s.explored, Pruned: s.pruned, Inconclusive: s.unsure, Cells: s.cells,
		Unexplored: len(all) - (s.explored - s.orders) - s.given, PairsOf: pairsOf(all), Drawn: s.cover.sum()}
	total, tried := s.pairs(all)
	m.Pairs, m.PairsTried = total, len(tried)
	if s.Shard != nil {
		m.Tried = s.cover.tried()
		m.Tried.Pairs = tried
	}
	actions, drawn := lists.Set(lists.Map(all, func(sch Schedule) string { return sch.Action })), map[string]bool{}
	if m.Drawn != nil {
		m.Points = append(m.Points, DrawnPoint)
	}
	for _, c := range s.cells {
		if c.State == "" && !actions[c.Action] { // a drawn order
			drawn[c.Action] = true
		}
	}
	for _, sch := range ordered(all) {
		m.Points = lists.With(m.Points, sch.where())
	}
	m.Actions = slices.DeleteFunc(s.Planner.Actions(), func(a string) bool { return !actions[a] })
	m.Actions = append(m.Actions, slices.Sorted(maps.Keys(drawn))...)
	slices.SortStableFunc(m.Cells, func(a, b results.SweepCell) int {
		return cmp.Or(strings.Compare(a.Scenario, b.Scenario),
			slices.Index(m.Points, a.Point)-slices.Index(m.Points, b.Point),
			slices.Index(m.Actions, a.Action)-slices.Index(m.Actions, b.Action))
	})
	return m
}

// Rebase returns a list of known failures that covers all findings of a sweep:
// the engine's list, and an entry for each failure that it lacks. It also
// judges the sweep again by the new list.
func (o *Outcome) Rebase(e *scenarios.Engine) []agents.KnownFailure {
	list := slices.Clone(e.Known)
	for _, f := range o.Findings {
		for _, g := range append(slices.Clone(f.seen), f.also...) {
			id := g.schedule.Scenario
			if g.class != results.Fail || g.expected(e, id, g.result.ID) != "" {
				continue
			}
			here := e.Protocol.KnownOf(e.Profile, list)
			if !slices.ContainsFunc(here, func(k agents.KnownFailure) bool { return k.Covers(id, g.rule) }) {
				// Flaky, because not every sweep tries the schedules that show the failure.
				list = append(list, agents.KnownFailure{Scenario: id, ID: g.rule, Flaky: true, Protocols: e.ListedIn(),
					Reason: "not looked into yet: " + strings.Join(strings.Fields(g.message), " ")})
			}
		}
	}
	with := *e
	with.Known = list
	o.judge(&with)
	return list
}

// judge marks findings that are known failures. It then counts the results
// without them and sets the exit status.
func (o *Outcome) judge(e *scenarios.Engine) {
	run := &o.Run
	swept := map[string]string{} // id of a result that shows a finding -> swept scenario
	for i := range o.Findings {
		f := &o.Findings[i]
		f.Known = f.seen[0].expected(e, f.Scenario, f.seen[0].result.ID)
		swept[f.result.ID] = f.Scenario
	}
	for i := range run.Results {
		r := &run.Results[i]
		expected := func(names ...string) bool {
			return sign{names: names}.expected(e, cmp.Or(swept[r.ID], r.ID), r.ID) != ""
		}
		for k, x := range r.Findings {
			r.Findings[k].Known = expected(x.Names()...)
		}
		for k, x := range r.Checks {
			r.Checks[k].Known = x.Verdict != results.Pass && expected(r.Names(x)...)
		}
		r.Known = r.Verdict == results.Fail && !slices.ContainsFunc(found(*r),
			func(g sign) bool { return g.class == results.Fail && !expected(g.names...) })
	}
	tally := results.Run{Results: run.Results, Agent: run.Agent}
	verdict.Add(&tally)
	run.Counts, run.Verdict = tally.Counts, results.Worst(results.Pass, tally.Verdict)
	run.Agent.Name, run.Agent.Version = tally.Agent.Name, tally.Agent.Version
	run.Exit = exit(*run, o.Findings)
}

// exit returns the exit status: 2 if the harness could not judge, 1 for an
// unexpected finding of class fail or an interruption, else 0.
func exit(run results.Run, findings []Finding) int {
	switch {
	case run.Counts.Error > 0, run.NoModel != "", run.Sweep.Explored == 0 && len(findings) == 0 && run.Sweep.Tried == nil:
		return 2
	case slices.ContainsFunc(findings, func(f Finding) bool { return f.Class == results.Fail && f.Known == "" }),
		run.Interrupted:
		return 1
	}
	return 0
}

// ordered returns schedules sorted by turn and then by point.
func ordered(all []Schedule) []Schedule {
	out := slices.Clone(all)
	slices.SortStableFunc(out, func(a, b Schedule) int {
		return cmp.Or(a.Turn-b.Turn, a.Place-b.Place, compareNatural(a.Point, b.Point))
	})
	return out
}

// compareNatural compares names so that "frame 9" comes before "frame 10".
func compareNatural(a, b string) int {
	fa, fb := strings.FieldsFunc(a, separator), strings.FieldsFunc(b, separator)
	for i := range min(len(fa), len(fb)) {
		if d := len(fa[i]) - len(fb[i]); d != 0 && digits(fa[i]) && digits(fb[i]) {
			return d
		}
		if c := strings.Compare(fa[i], fb[i]); c != 0 {
			return c
		}
	}
	return len(fa) - len(fb)
}

func separator(r rune) bool { return r == ' ' || r == '.' }

func digits(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}

// pairs returns the number of combinations of a situation and an action in all,
// and the names of those that ran.
func (s *sweep) pairs(all []Schedule) (total int, tried []string) {
	ran := lists.Set(lists.Map(s.cells, func(c results.SweepCell) [3]string {
		return [3]string{c.Scenario, c.Point, c.Action}
	}))
	pairs := map[string]bool{}
	for _, sch := range all {
		k := sch.State + ": " + sch.Action
		pairs[k] = pairs[k] || ran[[3]string{sch.Scenario, sch.where(), sch.Action}]
	}
	total = len(pairs)
	maps.DeleteFunc(pairs, func(_ string, did bool) bool { return !did })
	return total, slices.Sorted(maps.Keys(pairs))
}

// pairsOf returns the number of combinations of a situation and an action in
// each scenario.
func pairsOf(all []Schedule) map[string]int {
	of := map[string]int{}
	seen := map[[3]string]bool{}
	for _, sch := range all {
		if k := [3]string{sch.Scenario, sch.State, sch.Action}; !seen[k] {
			seen[k] = true
			of[sch.Scenario]++
		}
	}
	return of
}

// nothing explains why there was nothing to sweep.
func (s *sweep) nothing() string {
	switch {
	case len(s.Points) > 0 || len(s.Actions) > 0:
		return "nothing to sweep: no point with a possible action matches --points and --actions; " +
			"run without these flags to see a map of all points and actions"
	case len(s.baselines) == 0:
		return "nothing to sweep: no scenario ran"
	}
	return "nothing to sweep: none of the scenarios has a turn in which an editor can act; " +
		"the notes above give the reasons"
}
