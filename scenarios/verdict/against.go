package verdict

import (
	"fmt"
	"maps"
	"slices"

	"github.com/acp-test/acp-test/golden"
	"github.com/acp-test/acp-test/scenarios/results"
)

// Compare returns the changes from one run to another. If a scenario has repeats, its worst verdicts count. oldText
// and nowText map the id of a scenario to its canonical text. A text is not compared if it is missing, if the
// scenario's order may vary (golden off), or if a check failed, because the conversation may then be incomplete.
func Compare(old, now results.Run, oldText, nowText map[string]string) *results.Against {
	a := &results.Against{Run: fmt.Sprintf("%s, %s", old.Agent, old.Started.UTC().Format("2006-01-02 15:04 UTC"))}
	before, after := byScenario(old), byScenario(now)
	for _, id := range both(before, after) {
		b, inOld := before[id]
		n, inNow := after[id]
		if !inOld || !inNow {
			a.Changes = append(a.Changes, results.Change{ID: id, What: "scenario", Was: b.verdict, Is: n.verdict})
			continue
		}
		if b.verdict != n.verdict {
			a.Changes = append(a.Changes, results.Change{ID: id, What: "verdict", Was: b.verdict, Is: n.verdict})
		}
		a.Changes = append(a.Changes, differences(id, "check", b.checks, n.checks)...)
		a.Changes = append(a.Changes, differences(id, "rule", b.rules, n.rules)...)
		was, ok1 := oldText[id]
		is, ok2 := nowText[id]
		if ok1 && ok2 && b.whole && n.whole && was != is {
			a.Changes = append(a.Changes, results.Change{ID: id, What: "text", Diff: golden.Diff(was, is)})
		}
	}
	return a
}

// judged is the combined outcome of a scenario's repeats in one run.
type judged struct {
	verdict       results.Verdict
	whole         bool // the conversation is complete and has a fixed order
	checks, rules map[string]results.Verdict
}

func byScenario(run results.Run) map[string]judged {
	all := map[string]judged{}
	for _, r := range run.Results {
		j, ok := all[r.ID]
		if !ok {
			j = judged{whole: true, checks: map[string]results.Verdict{}, rules: map[string]results.Verdict{}}
		}
		j.verdict = max(j.verdict, r.Verdict)
		ordered := r.Golden == nil || r.Golden.State != "off"
		j.whole = j.whole && ordered && r.Failure == nil && r.Verdict != results.Skip && r.Verdict != results.Error
		for _, c := range r.Checks {
			j.whole = j.whole && c.Verdict == results.Pass
			if c.Slug == results.FurtherCheck && c.Verdict == results.Pass {
				continue // it follows only a success, so its absence means nothing
			}
			j.checks[c.Slug] = max(j.checks[c.Slug], c.Verdict)
		}
		for _, f := range r.Findings {
			j.rules[f.Rule] = max(j.rules[f.Rule], f.Class)
		}
		all[r.ID] = j
	}
	return all
}

func differences(id, what string, before, after map[string]results.Verdict) []results.Change {
	var out []results.Change
	for _, name := range both(before, after) {
		if was, is := before[name], after[name]; was != is {
			out = append(out, results.Change{ID: id, What: what, Name: name, Was: was, Is: is})
		}
	}
	return out
}

// both returns the sorted union of the keys of two maps.
func both[V any](a, b map[string]V) []string {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return slices.Sorted(maps.Keys(all))
}
