package verdict

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/acp-test/acp-test/agents"
	"github.com/acp-test/acp-test/internal/lists"
	"github.com/acp-test/acp-test/scenarios/results"
)

// Stale returns a message for each known failure that no longer fails or has expired. A known failure no longer fails
// only if every scenario that it selects ran to its end, its check or rule judged something, and there was no
// failure.
func Stale(run *results.Run, list []results.Expected, now time.Time) []string {
	var out []string
	for _, x := range list {
		k := agents.KnownFailure{Scenario: x.Scenario, ID: x.ID, Flaky: x.Flaky, Expires: x.Expires}
		if k.Expired(now) {
			out = append(out, fmt.Sprintf("known failure %s of %s has expired: fix it or extend it", k.ID, k.Scenario))
			continue
		}
		if !k.Flaky && !x.Part && disproves(run, k) {
			out = append(out, fmt.Sprintf("known failure %s of %s no longer fails: delete it", k.ID, k.Scenario))
		}
	}
	return out
}

// Unlisted returns a known-failure entry for each failure that is not in list. Findings with the same cause in
// several scenarios become one entry. An entry is flaky if the failure did not occur in every run of the scenario.
func Unlisted(run *results.Run, list []agents.KnownFailure) []agents.KnownFailure {
	type name struct{ scenario, id string }
	var order []name
	title, times, runs := map[name]string{}, map[name]int{}, map[string]int{}
	causes := spread(run, list)
	list = append(slices.Clone(list), causes...)
	for _, r := range run.Results {
		if r.Verdict == results.Skip || r.Verdict == results.Error || r.NotStarted {
			continue
		}
		runs[r.ID]++
		said := map[name]bool{}
		note := func(why, id string, names ...string) {
			n := name{r.ID, id}
			if said[n] || Listed(list, r.ID, append(names, id)...) {
				return
			}
			said[n] = true
			if times[n]++; times[n] == 1 {
				order, title[n] = append(order, n), why
			}
		}
		eachFailure(&r, note)
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

// eachFailure calls note for each failed part of a result: with the reason, the part's id in lists of known failures,
// and its other names.
func eachFailure(r *results.Result, note func(why, id string, names ...string)) {
	if missedBefore(r) && r.FailureClass == results.Fail {
		note(r.Failure.Error(), beforeChecks)
	}
	for _, c := range r.Checks {
		if c.Verdict == results.Fail || c.Verdict == results.Inconclusive && r.Verdict == results.Fail && !c.NotReached {
			note(cmp.Or(c.Title, c.Reason), c.Slug, r.Names(c)...)
		}
	}
	for _, f := range r.Findings {
		if f.Class == results.Fail || f.Class == results.Inconclusive && r.Verdict == results.Fail {
			note(f.Message, f.Rule, f.Names()...)
		}
	}
	if r.Golden.Failed() {
		note("the messages differ from the golden", "golden")
	}
}

// spread returns one new entry for each cause that rules found in several scenarios and that list lacks. An entry is
// flaky if one of its scenarios showed the cause only in some runs.
func spread(run *results.Run, list []agents.KnownFailure) (out []agents.KnownFailure) {
	title, times, runs := map[string]string{}, map[string]map[string]int{}, map[string]int{}
	for _, r := range run.Results {
		runs[r.ID]++
		for _, f := range r.Findings {
			c := f.Cause()
			if f.Class != results.Fail || r.Verdict != results.Fail || r.NotStarted || Listed(list, r.ID, f.Names()...) {
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

// unexamined returns the reason for a new entry. It says that nobody has investigated the failure yet.
func unexamined(title string) string {
	return strings.TrimSuffix("not looked into yet: "+strings.Join(strings.Fields(title), " "), ": ")
}

func disproves(run *results.Run, k agents.KnownFailure) bool {
	evidence := 0
	for _, r := range run.Results {
		if !k.Selects(r.ID) {
			continue
		}
		if r.Verdict == results.Skip || r.Verdict == results.Inconclusive || r.Verdict == results.Error {
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
				if c.Verdict != results.Pass {
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

// advice returns notes that tell the user what to do next.
func advice(run *results.Run) []string {
	var out []string
	if i := slices.IndexFunc(run.Results, func(r results.Result) bool { return r.Offers != "" }); i >= 0 {
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
				tools = lists.With(tools, neutral+"="+own)
			}
		}
		slices.Sort(tools)
		if wire != "" {
			out = append(out, fmt.Sprintf("the agent talks %s to its model; tools learned: %s", wire,
				cmp.Or(strings.Join(tools, ", "), "none")))
		}
		out = append(out, "an agent without a profile has no goldens: write a profile, see docs/profiles.md, then run "+
			"acp-test run --agent FILE --update")
	} else if run.Counts.NewGoldens > 0 {
		out = append(out, fmt.Sprintf("scenarios without a golden: %d; write them with: %s", run.Counts.NewGoldens,
			withFlags(cmp.Or(run.Command, "acp-test run"), func(ours string) string { return ours + " --update" })))
	}
	return out
}

// beforeChecks is the id in lists of known failures for a line that missed before the first check. Two failures
// cannot be listed: an agent that does not start, and a scenario that exceeds its deadline.
const beforeChecks = "before-checks"

// missedBefore reports whether the result's Failure is that of a line before the first check.
func missedBefore(r *results.Result) bool {
	return r.Failure != nil && r.Failure.Where != "" && !r.NotStarted
}

// Listed reports whether a list of known failures contains one of the ids for this scenario.
func Listed(list []agents.KnownFailure, scenario string, ids ...string) bool {
	return slices.ContainsFunc(list, func(k agents.KnownFailure) bool { return k.Covers(scenario, ids...) })
}

// Expect marks those parts of a result that list contains as known failures. If all failures are known, it marks the
// result as known too.
func Expect(r *results.Result, list []agents.KnownFailure) {
	now := time.Now()
	list = slices.DeleteFunc(slices.Clone(list), func(k agents.KnownFailure) bool { return k.Expired(now) })
	Mark(r, func(ids ...string) bool { return Listed(list, r.ID, ids...) })
}

// Mark marks those parts of a result for which isKnown is true. If all failures are known, it marks the result as
// known too; inconclusive parts do not prevent that.
func Mark(r *results.Result, isKnown func(ids ...string) bool) {
	all, some := r.Verdict != results.Error, false // about the parts that count as failures
	count := func(known bool) {
		all, some = all && known, some || known
	}
	counts := func(v results.Verdict) bool {
		return v == results.Fail || v == results.Inconclusive && r.Verdict == results.Inconclusive
	}
	for i, c := range r.Checks {
		if c.Verdict == results.Pass || c.Verdict == results.Skip {
			continue
		}
		r.Checks[i].Known = isKnown(r.Names(c)...)
		if counts(c.Verdict) && (r.Checks[i].Known || !c.NotReached) {
			count(r.Checks[i].Known)
		}
	}
	for i, f := range r.Findings {
		r.Findings[i].Known = isKnown(f.Names()...)
		if counts(f.Class) {
			count(r.Findings[i].Known)
		}
	}
	if r.Golden.Failed() {
		r.Golden.Known = isKnown("golden")
		count(r.Golden.Known)
	}
	if counts(r.FailureClass) {
		count(missedBefore(r) && isKnown(beforeChecks))
	}
	r.Known = all && some
}
