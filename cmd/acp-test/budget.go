package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/acp-test/acp-test/agents"
	"github.com/acp-test/acp-test/internal/lists"
	"github.com/acp-test/acp-test/refagent/faults"
	"github.com/acp-test/acp-test/scenarios"
	"github.com/acp-test/acp-test/scenarios/results"
)

// history records, for one agent of any version, when each scenario ran last and how long it took. Each run saves its
// history for the next one.
type history struct {
	file string // "" if there is no cache folder
	ran  map[string]lastRun
}

type lastRun struct {
	At   time.Time     `json:"at"`
	Took time.Duration `json:"took_ns"`
}

func (h *host) history(e *scenarios.Engine, protocol string) history {
	past := history{ran: map[string]lastRun{}}
	if caches := agents.CacheDir(h.env); caches != "" && e.Through == nil { // a sabotaged agent has no history
		agent := fnv.New64a()
		fmt.Fprintf(agent, "%q %q %q", protocol, e.Profile.Command, e.Profile.URL)
		past.file = filepath.Join(caches, "acp-test", "ran", fmt.Sprintf("%x.json", agent.Sum(nil)))
		data, _ := os.ReadFile(past.file)
		if json.Unmarshal(data, &past.ran) != nil || past.ran == nil {
			past.ran = map[string]lastRun{} // the file is missing or not a history
		}
	}
	return past
}

// conclude saves when the run's scenarios ran. If the run had a budget, it also adds a note on the scenarios left out.
func (p history) conclude(run *results.Run, budget time.Duration, protocol string) {
	if budget > 0 {
		run.Notes = append(run.Notes, p.spent(run, budget, protocol))
	}
	if err := p.add(run); err != nil && budget > 0 {
		run.Notes = append(run.Notes, fmt.Sprintf("could not save run times for the next --budget: %v", err))
	}
}

func (p history) add(run *results.Run) error {
	if p.file == "" {
		return nil
	}
	for _, r := range run.Results {
		p.ran[r.ID] = lastRun{r.Started, r.Duration}
	}
	data, err := json.Marshal(p.ran)
	if err = cmp.Or(err, os.MkdirAll(filepath.Dir(p.file), 0o700)); err != nil {
		return err
	}
	return os.WriteFile(p.file, data, 0o600)
}

// plan sets the order of the scenarios in a run with a budget. It also sets their expected durations, unless the plan
// already has durations or runs only one shard.
func (p history) plan(plan *scenarios.Plan, chosen chosenRun, commit string) {
	plan.Order = p.order(chosen.mine, chosen.narrowed.failed, chosen.of.Name, commit)
	if plan.Durations == nil && plan.Shard == nil {
		plan.Durations = map[string]time.Duration{}
		for id, last := range p.ran {
			plan.Durations[id] = last.Took
		}
	}
}

// order returns the order in which the scenarios use the budget. Scenarios that failed last time come first. Next
// come those that find the most new kinds of fault per second, until every kind is covered. Then come scenarios that
// never ran, shuffled with the commit as the seed. The rest follow, the least recently run first.
func (p history) order(list []*scenarios.Scenario, failed map[string]bool, of, commit string) []string {
	ids := lists.Map(list, func(s *scenarios.Scenario) string { return s.ID })
	out := lists.Where(ids, func(id string) bool { return failed[id] })
	finds, found := finders(of), map[string]bool{}
	usual := p.usual()
	worth := func(id string) float64 {
		kinds := lists.Count(finds[id], func(fault string) bool { return !found[fault] })
		return float64(kinds) / cmp.Or(p.ran[id].Took, usual).Seconds()
	}
	take := func(id string) {
		for _, fault := range finds[id] {
			found[fault] = true
		}
		ids = slices.DeleteFunc(ids, func(other string) bool { return other == id })
	}
	for _, id := range slices.Clone(out) {
		take(id)
	}
	for len(ids) > 0 {
		best := slices.MaxFunc(ids, func(a, b string) int { return cmp.Compare(worth(a), worth(b)) })
		if worth(best) == 0 {
			break
		}
		out = append(out, best)
		take(best)
	}
	slices.SortStableFunc(ids, func(a, b string) int {
		return cmp.Or(p.ran[a].At.Compare(p.ran[b].At), cmp.Compare(draw(commit, a), draw(commit, b)))
	})
	return append(out, ids...)
}

// usual returns the assumed duration of a scenario that never ran: the median of the other durations.
func (p history) usual() time.Duration {
	took := lists.Collect(maps.Values(p.ran), func(r lastRun) time.Duration { return r.Took })
	if slices.Sort(took); len(took) == 0 {
		return time.Second
	}
	return max(took[len(took)/2], time.Millisecond)
}

// finders maps the id of each scenario to the names of the reference agent's faults that the scenario finds.
func finders(protocol string) map[string][]string {
	finds := map[string][]string{}
	for _, f := range faults.All(protocol) {
		for _, id := range f.Effect.Scenarios {
			finds[id] = append(finds[id], f.Name)
		}
	}
	return finds
}

func draw(commit, id string) uint64 {
	h := fnv.New64a()
	fmt.Fprint(h, commit, " ", id)
	return h.Sum64()
}

// spent returns a note on the scenarios that the budget left out: how many there are, which faults only they find, and
// when they ran last.
func (p history) spent(run *results.Run, budget time.Duration, of string) string {
	all := len(run.Results) + len(run.LeftOut)
	said := fmt.Sprintf("budget %v: %d of %d scenarios ran", budget, len(run.Results), all)
	if len(run.LeftOut) == 0 {
		return said
	}
	finds, seen, unseen := finders(of), map[string]bool{}, map[string]bool{}
	for _, r := range run.Results {
		maps.Copy(seen, lists.Set(finds[r.ID]))
	}
	var never int
	var oldest time.Time
	for _, id := range run.LeftOut {
		for _, fault := range finds[id] {
			if !seen[fault] {
				unseen[fault] = true
			}
		}
		switch at := p.ran[id].At; {
		case at.IsZero():
			never++
		case oldest.IsZero() || at.Before(oldest):
			oldest = at
		}
	}
	if len(unseen) > 0 {
		said += fmt.Sprintf("; kinds of fault that only the scenarios left out can find: %d (%s)", len(unseen),
			few(unseen))
	}
	if never > 0 {
		said += fmt.Sprintf("; %d of the scenarios left out have never run here", never)
	} else {
		said += fmt.Sprintf("; each scenario left out last ran on %s or later", oldest.UTC().Format(time.DateOnly))
	}
	return said + "; a run without --budget includes all"
}
