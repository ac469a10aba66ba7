package scenarios

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/acp-test/acp-test/golden"
)

// Against is what changed since an earlier run.
type Against struct {
	// Run says which run it was: agent, version and time.
	Run     string   `json:"run"`
	Changes []Change `json:"changes,omitempty"`
}

// Change is one difference between two runs of a scenario.
type Change struct {
	ID string `json:"id"` // of the scenario
	// What changed: "verdict", "check", "rule", "text", or "scenario" where one
	// of the runs did not have it.
	What string `json:"what"`
	// Name is the slug of the check or the id of the rule.
	Name string `json:"name,omitempty"`
	// Was and Is are verdicts; "" where there was, or is, none.
	Was Verdict `json:"was,omitempty"`
	Is  Verdict `json:"is,omitempty"`
	// Diff is the difference of the canonical texts.
	Diff string `json:"diff,omitempty"`
}

// Compare says what changed from one run to another. Of repeats the worst
// verdicts count. The texts are the canonical ones, by the id of the scenario;
// where one of the two has none, where a scenario says that its order is left to
// chance (golden off), or a check failed, which may end a conversation early, they
// are not compared.
func Compare(old, now Run, oldText, nowText map[string]string) *Against {
	who := strings.TrimSpace(old.Agent.Profile + " " + old.Agent.Version)
	a := &Against{Run: fmt.Sprintf("%s, %s", who, old.Started.UTC().Format("2006-01-02 15:04 UTC"))}
	before, after := byScenario(old), byScenario(now)
	for _, id := range slices.Sorted(maps.Keys(both(before, after))) {
		b, inOld := before[id]
		n, inNow := after[id]
		if !inOld || !inNow {
			a.Changes = append(a.Changes, Change{ID: id, What: "scenario", Was: b.verdict, Is: n.verdict})
			continue
		}
		if b.verdict != n.verdict {
			a.Changes = append(a.Changes, Change{ID: id, What: "verdict", Was: b.verdict, Is: n.verdict})
		}
		a.Changes = append(a.Changes, differences(id, "check", b.checks, n.checks)...)
		a.Changes = append(a.Changes, differences(id, "rule", b.rules, n.rules)...)
		was, ok1 := oldText[id]
		is, ok2 := nowText[id]
		if ok1 && ok2 && b.whole && n.whole && was != is {
			a.Changes = append(a.Changes, Change{ID: id, What: "text", Diff: golden.Diff(was, is)})
		}
	}
	return a
}

// judged is what a run says of one scenario.
type judged struct {
	verdict       Verdict
	whole         bool // the conversation went as the scenario wants it, which is in one order
	checks, rules map[string]Verdict
}

func byScenario(run Run) map[string]judged {
	all := map[string]judged{}
	for _, r := range run.Results {
		j, ok := all[r.ID]
		if !ok {
			j = judged{whole: true, checks: map[string]Verdict{}, rules: map[string]Verdict{}}
		}
		worst := func(m map[string]Verdict, id string, v Verdict) {
			if severer(v, m[id]) {
				m[id] = v
			}
		}
		if severer(r.Verdict, j.verdict) {
			j.verdict = r.Verdict
		}
		ordered := r.Golden == nil || r.Golden.State != "off"
		j.whole = j.whole && ordered && r.Failure == nil && r.Verdict != Skip && r.Verdict != Error
		for _, c := range r.Checks {
			j.whole = j.whole && c.Verdict == Pass
			if c.Slug == furtherCheck && c.Verdict == Pass {
				continue // it comes only after what went well: whether it came says nothing
			}
			worst(j.checks, c.Slug, c.Verdict)
		}
		for _, f := range r.Findings {
			worst(j.rules, f.Rule, f.Class)
		}
		all[r.ID] = j
	}
	return all
}

func differences(id, what string, before, after map[string]Verdict) []Change {
	var out []Change
	for _, name := range slices.Sorted(maps.Keys(both(before, after))) {
		if was, is := before[name], after[name]; was != is {
			out = append(out, Change{ID: id, What: what, Name: name, Was: was, Is: is})
		}
	}
	return out
}

func both[V any](a, b map[string]V) map[string]bool {
	all := map[string]bool{}
	for k := range a {
		all[k] = true
	}
	for k := range b {
		all[k] = true
	}
	return all
}
