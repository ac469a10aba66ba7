package verdict

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/acp-test/acp-test/internal/lazy"
	"github.com/acp-test/acp-test/internal/lists"
	"github.com/acp-test/acp-test/scenarios/results"
)

// mergeSweeps merges the schedules, coverage and findings of a sweep's parts into whole.
func mergeSweeps(whole *results.Run, parts []results.Run) {
	out := &results.Sweep{}
	pairs, states, orders := map[string]bool{}, map[string]bool{}, map[[2]string]bool{}
	untried := map[string]bool{}
	for _, p := range parts {
		s := p.Sweep
		out.Points, out.Actions = lists.With(out.Points, s.Points...), lists.With(out.Actions, s.Actions...)
		out.Cells, out.Repros = append(out.Cells, s.Cells...), append(out.Repros, s.Repros...)
		out.Explored, out.Inconclusive = out.Explored+s.Explored, out.Inconclusive+s.Inconclusive
		out.Pruned, out.Pairs = max(out.Pruned, s.Pruned), max(out.Pairs, s.Pairs)
		out.Unexplored, out.Skipped = out.Unexplored+s.Unexplored, out.Skipped+s.Skipped
		maps.Copy(untried, lists.Set(s.Untried))
		if out.PairsOf == nil {
			out.PairsOf = map[string]int{}
		}
		maps.Copy(out.PairsOf, s.PairsOf) // every part lists all of them
		out.Baselines, out.Exploring = max(out.Baselines, s.Baselines), max(out.Exploring, s.Exploring)
		out.Settling = max(out.Settling, s.Settling)
		if t := s.Tried; t != nil {
			maps.Copy(pairs, lists.Set(t.Pairs))
			maps.Copy(states, lists.Set(t.States))
			maps.Copy(orders, lists.Set(t.Orders))
		}
		if d := s.Drawn; d != nil {
			out.Drawn = out.Drawn.With(d)
		}
		whole.Exit = max(whole.Exit, p.Exit)
		whole.Verdict = results.Worst(cmp.Or(whole.Verdict, results.Pass), p.Verdict)
	}
	out.PairsTried = len(pairs)
	maps.DeleteFunc(untried, func(pair string, _ bool) bool { return pairs[pair] })
	out.Untried = slices.Sorted(maps.Keys(untried))
	if out.Drawn != nil {
		out.Drawn.Pairs = len(states)
		out.Drawn.Count(slices.Collect(maps.Keys(orders)))
	}
	slices.Sort(out.Repros)
	out.Repros = slices.Compact(out.Repros)
	whole.Sweep = out
	clusters(whole, parts)
}

// clusters keeps one result per cause from all parts, and notes which other parts found the same cause.
func clusters(run *results.Run, parts []results.Run) {
	type seen struct {
		in    []string
		first int
	}
	by := map[string]*seen{}
	run.Results = nil
	for _, p := range parts {
		for _, r := range p.Results {
			key := causeKey(&r)
			if s := by[key]; s != nil {
				s.in = append(s.in, fmt.Sprint(part(&p)))
				continue
			}
			by[key] = &seen{first: len(run.Results)}
			run.Results = append(run.Results, r)
		}
	}
	for _, s := range by {
		if r := run.Results[s.first]; len(s.in) > 0 && swept(r.ID) {
			run.Notes = append(run.Notes, fmt.Sprintf("%s: part %s found it too", r.ID, strings.Join(s.in, ", ")))
		}
	}
	slices.Sort(run.Notes)
}

// numberedSlug matches the numbers that make the slugs in a schedule unique.
var numberedSlug = lazy.Regexp(`(-[0-9])?(\.[0-9])?$`)

// swept reports whether the result with this id is from a schedule or a drawn session.
func swept(id string) bool {
	return strings.HasPrefix(id, "sweep/") || strings.HasPrefix(id, "explore/")
}

// causeKey returns a key for the causes of a failure in a schedule or drawn session. For any other result it returns
// the id.
func causeKey(r *results.Result) string {
	if !swept(r.ID) {
		return r.ID
	}
	var causes []string
	for _, f := range r.Findings {
		if f.Class == results.Fail || f.Class == results.Warn {
			causes = append(causes, f.Rule+"/"+f.Point)
		}
	}
	for _, c := range r.Checks {
		if c.Verdict == results.Fail || c.Verdict == results.Warn {
			causes = append(causes, numberedSlug().ReplaceAllString(c.Slug, ""))
		}
	}
	slices.Sort(causes)
	return "sweep/ " + cmp.Or(strings.Join(slices.Compact(causes), " "), r.ID)
}
