package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/acp-test/acp-test/ci/must"
	"github.com/acp-test/acp-test/internal/lists"
	"github.com/acp-test/acp-test/scenarios/results"
)

// measure checks that a version passes the gate, and runs scenarios against it.
func (r *runner) measure(pkg, version string, ids []string, repeats int) {
	v := r.variant(pkg, version)
	m := r.of(pkg, version)
	m.Gate = r.gate(v, version)
	for _, part := range m.Gate {
		if v.Lacks[part] == "" {
			must.Fail("the gate: %s does not work, so no result of this version counts", part)
		}
	}
	slices.Sort(ids)
	ids = slices.Compact(ids)
	// The gate's text scenario always runs too, so that the run reaches the model even if none of the other scenarios
	// does.
	outcomes := r.run(v, version, "pairs", "--fresh", "--repeat", fmt.Sprint(repeats),
		"--run", only(append(slices.Clip(ids), gate[0].scenario)))
	for _, id := range ids {
		m.Scenarios[id] = r.seen(pkg, id, outcomes)
	}
}

// only returns a regular expression that matches exactly these scenario ids.
func only(ids []string) string {
	return "^(" + strings.Join(lists.Map(ids, regexp.QuoteMeta), "|") + ")$"
}

// gate returns the names of the gate's parts that a version fails.
func (r *runner) gate(v Variant, version string) []string {
	var ids []string
	for _, g := range gate {
		ids = append(ids, g.scenario)
	}
	outcomes, err := resultsOf(r.folder(v.Package, version, "gate"))
	if err != nil || len(outcomes) < len(gate) { // otherwise an earlier run has complete results
		outcomes = r.run(v, version, "gate", "--fresh", "--run", only(ids))
	}
	return broken(outcomes)
}

// broken returns the names of the gate's parts whose check passed in no result.
func broken(outcomes []results.Result) (parts []string) {
	for _, g := range gate {
		works := slices.ContainsFunc(outcomes, func(res results.Result) bool {
			return res.ID == g.scenario && slices.ContainsFunc(res.Checks, func(c results.Check) bool {
				return c.Slug == g.check && c.Verdict == results.Pass
			})
		})
		if !works {
			parts = append(parts, g.name)
		}
	}
	return parts
}

// seen counts the verdicts and findings in the repeats of one scenario.
func (r *runner) seen(pkg, id string, outcomes []results.Result) *Seen {
	s := &Seen{Flagged: map[string]int{}, Class: map[string]string{}, Silent: map[string]int{}}
	worst := map[string]results.Verdict{}
	for _, res := range outcomes {
		if res.ID != id {
			continue
		}
		s.Of++
		if res.Verdict == results.Skip { // findings before the skip still count
			s.Skipped++
		}
		found := map[string]results.Verdict{}
		for _, c := range res.Checks {
			if !c.NotReached && flags(c.Verdict) {
				found[c.Slug] = max(found[c.Slug], c.Verdict)
			}
			if c.Verdict == results.Pass && r.isFinder(pkg, id, c.Slug) {
				s.Silent[c.Slug]++
			}
		}
		for _, f := range res.Findings {
			if flags(f.Class) {
				found[f.Rule] = max(found[f.Rule], f.Class)
				if point := f.Rule + " " + f.Point; r.isFinder(pkg, id, point) {
					found[point] = max(found[point], f.Class)
				}
			}
		}
		for _, finder := range r.finders(pkg, id) {
			rule, _, _ := strings.Cut(finder, " ")
			if res.Evidence[rule] > 0 && found[finder] == 0 {
				s.Silent[finder]++
			}
		}
		for name, class := range found {
			s.Flagged[name]++
			worst[name] = max(worst[name], class)
			s.Class[name] = worst[name].String()
		}
	}
	return s
}

// flags reports whether a verdict is a finding against the agent: lint, warn or fail.
func flags(v results.Verdict) bool {
	return v == results.Lint || v == results.Warn || v == results.Fail
}

// finders returns the finders of the package's pairs that use this scenario.
func (d *Data) finders(pkg, scenario string) []string {
	return d.named(func(p Pair) (string, bool) { return p.Finder, p.Package == pkg && p.Scenario == scenario })
}

// named calls of for each pair. It returns, without duplicates, the names for which counts is true.
func (d *Data) named(of func(Pair) (name string, counts bool)) (list []string) {
	for _, p := range d.Pairs {
		if name, counts := of(p); counts && !slices.Contains(list, name) {
			list = append(list, name)
		}
	}
	return list
}

func (d *Data) isFinder(pkg, scenario, finder string) bool {
	return slices.Contains(d.finders(pkg, scenario), finder)
}

// verdict is a pair with the measured counts of its two versions.
type verdict struct {
	pair      Pair
	bad, good *Seen
}

func (d *Data) verdict(p Pair) verdict {
	return verdict{p, d.of(p.Package, p.Bad).Scenarios[p.Scenario], d.of(p.Package, p.Good).Scenarios[p.Scenario]}
}

// tells reports whether the finder distinguishes the two versions. The finder must flag the bad version in every
// repeat; for a race, one repeat is enough. In every repeat of the good version, the finder must have something to
// judge and find nothing.
func (v verdict) tells() bool {
	if v.bad == nil || v.good == nil {
		return false
	}
	flagged := v.bad.Flagged[v.pair.Finder]
	return flagged > 0 && (flagged == v.bad.Of || v.pair.Race) && v.good.Of > 0 &&
		v.good.Flagged[v.pair.Finder] == 0 && v.good.Silent[v.pair.Finder] == v.good.Of
}

func (v verdict) String() string {
	if v.bad == nil || v.good == nil {
		return "not measured"
	}
	said := fmt.Sprintf("flagged %d/%d before, %d/%d after", v.bad.Flagged[v.pair.Finder], v.bad.Of,
		v.good.Flagged[v.pair.Finder], v.good.Of)
	if class := v.bad.Class[v.pair.Finder]; class != "" {
		said += " (" + class + ")"
	}
	if n := v.good.Silent[v.pair.Finder]; n+v.good.Flagged[v.pair.Finder] < v.good.Of {
		said += fmt.Sprintf("; after, only %d could be judged", n)
	}
	if !v.tells() {
		said += ": does not tell them apart"
	}
	return said
}
