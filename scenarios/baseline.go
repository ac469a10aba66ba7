package scenarios

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/acp-test/acp-test/agents"
)

// unclaimed says which goldens no scenario has. Update removes them, and removed says
// so.
func (e *Engine) unclaimed(all []*Scenario) (out, removed []string) {
	if e.Golden != nil && e.Complete && len(all) > 0 {
		goldens := e.goldens()
		for _, id := range e.Golden.List(goldens) {
			if !slices.ContainsFunc(all, func(s *Scenario) bool { return s.ID == id }) {
				name := goldens + "/" + id
				if e.Update && e.Golden.Remove(goldens, id) == nil {
					removed = append(removed, fmt.Sprintf("golden %s removed: no scenario has it any more", name))
					continue
				}
				out = append(out, fmt.Sprintf("golden %s belongs to no scenario: delete it (--update does)", name))
			}
		}
	}
	return out, removed
}

// expected lists the known failures of the baseline and of the profile.
func (e *Engine) expected() []Expected {
	return e.expectations(e.knownFailures())
}

func (e *Engine) expectations(list []agents.KnownFailure) []Expected {
	var out []Expected
	for _, k := range list {
		out = append(out, Expected{Scenario: k.Scenario, ID: k.ID, Flaky: k.Flaky, Expires: k.Expires, Part: !e.Unfiltered &&
			strings.ContainsAny(k.Scenario, "*?")})
	}
	return out
}

// staleEntries says which known failures no longer fail, or have expired. An
// entry is stale only by demonstration: every scenario it selects ran to its
// end, what it names had evidence, and nothing was found.
func staleEntries(run *Run, list []Expected, now time.Time) []string {
	var out []string
	for _, x := range list {
		k := x.entry()
		if k.Expired(now) {
			out = append(out, fmt.Sprintf("known failure %s of %s has expired: mend it or extend it", k.ID, k.Scenario))
			continue
		}
		if !k.Flaky && !x.Part && run.disproves(k) {
			out = append(out, fmt.Sprintf("known failure %s of %s no longer fails: delete it", k.ID, k.Scenario))
		}
	}
	return out
}

// Rebase makes a baseline of a run: the entries of e.Known that are not stale,
// and one more for each failure that nothing lists. The run is then judged as
// if it had had this baseline. What no baseline can list stays a failure: an
// agent that does not start, a scenario that hits its deadline.
func (e *Engine) Rebase(run *Run) []agents.KnownFailure {
	now := time.Now()
	var list []agents.KnownFailure
	for _, k := range e.Known {
		here := e.Protocol.KnownOf(e.Profile, []agents.KnownFailure{k})
		stale := staleEntries(run, e.expectations(here), now)
		run.Stale = slices.DeleteFunc(run.Stale, func(s string) bool { return slices.Contains(stale, s) })
		if len(stale) == 0 {
			list = append(list, k)
		}
	}
	with := *e
	with.Known = list
	for _, k := range run.unlisted(with.knownFailures()) {
		k.Protocols = e.ListedIn()
		list = append(list, k)
	}
	with.Known = list
	known := with.knownFailures()
	for i := range run.Results {
		r := &run.Results[i]
		r.mark(func(ids ...string) bool { return covered(known, r.ID, ids...) })
	}
	run.Counts, run.Verdict, run.Flaky = Counts{}, "", nil
	run.sum()
	run.Exit = run.exit()
	return list
}

// unlisted are entries for what failed and is not in a list. What a rule found in
// several scenarios is one entry, by its cause. An entry is flaky if what it names did
// not fail in each run of its scenario.
func (run *Run) unlisted(list []agents.KnownFailure) []agents.KnownFailure {
	type name struct{ scenario, id string }
	var order []name
	title, times, runs := map[name]string{}, map[name]int{}, map[string]int{}
	causes := run.spread(list)
	list = append(slices.Clone(list), causes...)
	for _, r := range run.Results {
		if r.Verdict == Skip || r.Verdict == Error || r.NotStarted {
			continue
		}
		runs[r.ID]++
		said := map[name]bool{}
		note := func(why, id string, names ...string) {
			n := name{r.ID, id}
			if said[n] || covered(list, r.ID, append(names, id)...) {
				return
			}
			said[n] = true
			if times[n]++; times[n] == 1 {
				order, title[n] = append(order, n), why
			}
		}
		if r.missedBefore() && r.FailureClass == Fail {
			note(r.Failure.Error(), beforeChecks)
		}
		for _, c := range r.Checks {
			if c.Verdict == Fail || c.Verdict == Inconclusive && r.Verdict == Fail && !c.NotReached {
				note(cmp.Or(c.Title, c.Reason), c.Slug, r.Names(c)...)
			}
		}
		for _, f := range r.Findings {
			if f.Class == Fail || f.Class == Inconclusive && r.Verdict == Fail {
				note(f.Message, f.Rule, f.Names()...)
			}
		}
		if r.Golden.failed() {
			note("the messages differ from the golden", "golden")
		}
	}
	slices.SortFunc(order, func(a, b name) int {
		return cmp.Or(cmp.Compare(a.scenario, b.scenario), cmp.Compare(a.id, b.id))
	})
	for _, n := range order {
		causes = append(causes, agents.KnownFailure{Scenario: n.scenario, ID: n.id, Reason: unexamined(title[n]),
			Flaky: times[n] < runs[n.scenario]})
	}
	return causes
}

// spread are entries for what rules found in several scenarios and no list has, each
// cause once. An entry is flaky if one of its scenarios showed it in some runs only.
func (run *Run) spread(list []agents.KnownFailure) (out []agents.KnownFailure) {
	title, times, runs := map[string]string{}, map[string]map[string]int{}, map[string]int{}
	for _, r := range run.Results {
		runs[r.ID]++
		for _, f := range r.Findings {
			c := f.cause()
			if f.Class != Fail || r.Verdict != Fail || r.NotStarted || covered(list, r.ID, f.Names()...) {
				continue
			}
			if times[c] == nil {
				times[c], title[c] = map[string]int{}, f.Message
			}
			times[c][r.ID]++
		}
	}
	for _, c := range slices.Sorted(maps.Keys(times)) {
		flaky := false
		for id, n := range times[c] {
			flaky = flaky || n < runs[id]
		}
		if len(times[c]) > 1 {
			out = append(out, agents.KnownFailure{Cause: true, Scenario: "**", ID: c, Reason: unexamined(title[c]),
				Flaky: flaky})
		}
	}
	return out
}

// unexamined is the reason of an entry that nobody has looked into.
func unexamined(title string) string {
	return strings.TrimSuffix("not looked into yet: "+strings.Join(strings.Fields(title), " "), ": ")
}

func (run *Run) disproves(k agents.KnownFailure) bool {
	evidence := 0
	for _, r := range run.Results {
		if !k.Selects(r.ID) {
			continue
		}
		if r.Verdict == Skip || r.Verdict == Inconclusive || r.Verdict == Error {
			return false
		}
		if k.Covers(r.ID, beforeChecks) {
			if r.Failure != nil {
				return false
			}
			evidence++
		}
		for _, c := range r.Checks {
			if k.Covers(r.ID, r.Names(c)...) {
				if c.Verdict != Pass {
					return false
				}
				evidence++
			}
		}
		for _, f := range r.Findings {
			if k.Covers(r.ID, f.Names()...) {
				return false
			}
		}
		for rule, n := range r.Evidence {
			if n > 0 && (k.ID == rule || strings.HasPrefix(k.ID, rule+" ")) {
				evidence++
			}
		}
		if g := r.Golden; g != nil && k.Covers(r.ID, "golden") {
			if g.State == "differs" {
				return false
			}
			evidence++
		}
	}
	return evidence > 0
}

// advice is what to do next.
func (run *Run) advice() []string {
	var out []string
	if i := slices.IndexFunc(run.Results, func(r Result) bool { return r.Offers != "" }); i >= 0 {
		r := run.Results[i]
		out = append(out, fmt.Sprintf("the agent answers %s too, as %s shows; judge it there with --protocol %s", r.Offers,
			r.ID, r.Offers))
	}
	if run.NoModel != "" {
		out = append(out, run.NoModel)
	}
	if run.Agent.AdHoc {
		var tools []string
		wire := ""
		for _, r := range run.Results {
			if r.Wire != "" {
				wire = r.Wire
			}
			for neutral, own := range r.Tools {
				if t := neutral + "=" + own; !slices.Contains(tools, t) {
					tools = append(tools, t)
				}
			}
		}
		slices.Sort(tools)
		if wire != "" {
			out = append(out, fmt.Sprintf("the agent talks %s to its model; tools learned: %s", wire,
				cmp.Or(strings.Join(tools, ", "), "none")))
		}
		out = append(out, "no goldens for a command without a profile; a profile keeps them: see docs/profiles.md, then "+
			"acp-test run --agent FILE --update")
	} else if run.Counts.NewGoldens > 0 {
		out = append(out, fmt.Sprintf("without a golden yet: %d; write them with: %s", run.Counts.NewGoldens,
			updating(run.Command)))
	}
	return out
}

// updating is a command line with --update among its flags, before the agent's.
func updating(command string) string {
	before, agent, ok := strings.Cut(command, " -- ")
	if ok {
		return before + " --update -- " + agent
	}
	return cmp.Or(command, "acp-test run") + " --update"
}
