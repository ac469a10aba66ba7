package scenarios

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// SweepTried is what a part of a sweep has tried, so that the parts become one.
type SweepTried struct {
	// Pairs are pairs of a kind of situation and an action, States those of an abstract
	// state and an act.
	Pairs  []string `json:"pairs"`
	States []string `json:"states"`
	// Orders are pairs of acts, the first before the second.
	Orders [][2]string `json:"orders"`
}

// mergeSweeps joins the maps, the coverage and the findings of the parts of a sweep into
// the run that has their sums.
func mergeSweeps(whole *Run, parts []Run) {
	out := &Sweep{}
	pairs, states, orders := map[string]bool{}, map[string]bool{}, map[[2]string]bool{}
	for _, p := range parts {
		s := p.Sweep
		out.Points, out.Actions = joined(out.Points, s.Points), joined(out.Actions, s.Actions)
		out.Cells, out.Repros = append(out.Cells, s.Cells...), append(out.Repros, s.Repros...)
		out.Explored, out.Inconclusive = out.Explored+s.Explored, out.Inconclusive+s.Inconclusive
		out.Pruned, out.Pairs = max(out.Pruned, s.Pruned), max(out.Pairs, s.Pairs)
		out.Unexplored += s.Unexplored
		if out.PairsOf == nil {
			out.PairsOf = map[string]int{}
		}
		maps.Copy(out.PairsOf, s.PairsOf) // each part has listed them all
		out.Baselines, out.Exploring = max(out.Baselines, s.Baselines), max(out.Exploring, s.Exploring)
		out.Settling = max(out.Settling, s.Settling)
		if t := s.Tried; t != nil {
			note(pairs, t.Pairs)
			note(states, t.States)
			note(orders, t.Orders)
		}
		if d := s.Drawn; d != nil {
			out.Drawn = out.Drawn.with(d)
		}
		whole.Exit = max(whole.Exit, p.Exit)
		whole.Verdict = Worst(cmp.Or(whole.Verdict, Pass), p.Verdict)
	}
	out.PairsTried = len(pairs)
	if out.Drawn != nil {
		out.Drawn.Pairs = len(states)
		out.Drawn.Count(slices.Collect(maps.Keys(orders)))
	}
	slices.Sort(out.Repros)
	out.Repros = slices.Compact(out.Repros)
	whole.Sweep = out
	whole.clusters(parts)
}

func note[T comparable](set map[T]bool, list []T) {
	for _, x := range list {
		set[x] = true
	}
}

// joined are the names of both lists, each once.
func joined(a, b []string) []string {
	for _, name := range b {
		if !slices.Contains(a, name) {
			a = append(a, name)
		}
	}
	return a
}

// clusters keeps one result of each cause that the parts have found, and says where else
// it was.
func (run *Run) clusters(parts []Run) {
	type seen struct {
		in    []string
		first int
	}
	by := map[string]*seen{}
	run.Results = nil
	for _, p := range parts {
		for _, r := range p.Results {
			key := r.causeKey()
			if s := by[key]; s != nil {
				s.in = append(s.in, fmt.Sprint(p.part()))
				continue
			}
			by[key] = &seen{first: len(run.Results)}
			run.Results = append(run.Results, r)
		}
	}
	for _, s := range by {
		if r := run.Results[s.first]; len(s.in) > 0 && strings.HasPrefix(r.ID, "sweep/") {
			run.Notes = append(run.Notes, fmt.Sprintf("%s: part %s found it too", r.ID, strings.Join(s.in, ", ")))
		}
	}
	slices.Sort(run.Notes)
}

// numberedSlug is what makes the slugs of a schedule distinct.
var numberedSlug = regexp.MustCompile(`(-[0-9])?(\.[0-9])?$`)

// causeKey is what a result fails for; that of one that was not swept is its id.
func (r *Result) causeKey() string {
	if !strings.HasPrefix(r.ID, "sweep/") {
		return r.ID
	}
	var causes []string
	for _, f := range r.Findings {
		if f.Class == Fail || f.Class == Warn {
			causes = append(causes, f.Rule+"/"+f.Point)
		}
	}
	for _, c := range r.Checks {
		if c.Verdict == Fail || c.Verdict == Warn {
			causes = append(causes, numberedSlug.ReplaceAllString(c.Slug, ""))
		}
	}
	slices.Sort(causes)
	return "sweep/ " + cmp.Or(strings.Join(slices.Compact(causes), " "), r.ID)
}
