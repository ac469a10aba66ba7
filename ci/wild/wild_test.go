package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/acp-test/acp-test/agents"
	"github.com/acp-test/acp-test/ci/must"
	"github.com/acp-test/acp-test/protocol/acp"
	"github.com/acp-test/acp-test/rules"
	"github.com/acp-test/acp-test/scenarios/results"
)

func read(t *testing.T) *Data {
	t.Helper()
	var d *Data
	if err := must.Try(func() { d = load(".") }); err != nil {
		t.Fatal(err)
	}
	return d
}

// Each pair names versions that can be run, in their order, and a check of a shipped
// scenario or a rule.
func TestPairs(t *testing.T) {
	d := read(t)
	names := map[string]bool{}
	version := regexp.MustCompile(`^\d+\.\d+\.\d+$`)
	report := regexp.MustCompile(`^([\w.-]+/[\w.-]+#\d+|https://github.com/\S+)$`)
	for _, p := range d.Pairs {
		if names[p.Name()] {
			t.Errorf("%s is there twice", p.Name())
		}
		names[p.Name()] = true
		if !strings.HasSuffix(p.What, ".") || p.Bug != "" && !report.MatchString(p.Bug) {
			t.Errorf("%s: what is a sentence, bug an owner/repository#number", p.Name())
		}
		for _, v := range []string{p.Bad, p.Good} {
			if !version.MatchString(v) {
				t.Errorf("%s: %q is no version", p.Name(), v)
			}
			if err := must.Try(func() { d.variant(p.Package, v) }); err != nil {
				t.Errorf("%s: %v", p.Name(), err)
			}
		}
		src, err := os.ReadFile(filepath.Join("../../scenarios/suites", filepath.FromSlash(p.Scenario)+".txtar"))
		if err != nil {
			t.Errorf("%s: %v", p.Name(), err)
			continue
		}
		s, err := acp.V1().Parse(p.Scenario, p.Scenario+".txtar", src)
		if err != nil {
			t.Fatal(err)
		}
		if name, point, _ := strings.Cut(p.Finder, " "); name == strings.ToUpper(name) { // as rules are called
			rule, ok := acp.V1().Rules.Rule(name)
			if !ok || point != "" && !slices.ContainsFunc(rule.Points,
				func(x rules.Point) bool { return x.ID == point }) {
				t.Errorf("%s: there is no such rule, or it has no such point", p.Name())
			}
		} else if p.Finder != "further" && !slices.Contains(s.CheckIDs(), p.Scenario+"#"+p.Finder) {
			t.Errorf("%s: the scenario has only %v", p.Name(), s.CheckIDs())
		}
	}
	for _, m := range d.Missing {
		if !report.MatchString(m.Bug) || !strings.HasSuffix(m.Why, ".") {
			t.Errorf("missing.yaml: %q, %q", m.Bug, m.Why)
		}
		if slices.ContainsFunc(d.Pairs, func(p Pair) bool { return p.Bug == m.Bug }) {
			t.Errorf("missing.yaml: %s is a pair", m.Bug)
		}
	}
}

// What agents.yaml lays over a shipped profile gives one that can be read.
func TestVariants(t *testing.T) {
	r := &runner{Data: read(t), temp: t.TempDir()}
	t.Chdir("../..")
	for _, v := range r.Variants {
		var file string
		err := must.Try(func() { file = r.profile(v, "1.2.3") })
		if err != nil {
			t.Fatal(err)
		}
		p, err := agents.Load(file)
		if err != nil {
			t.Errorf("%s: %v", v.Package, err)
			continue
		}
		if len(p.KnownFailures) > 0 || p.Timeouts.Step == 0 {
			t.Errorf("%s: known failures of another version, or no time limit", v.Package)
		}
		for part, why := range v.Lacks {
			if !strings.HasSuffix(why, ".") {
				t.Errorf("%s lacks %s: why?", v.Package, part)
			}
		}
	}
}

// A pair tells where its finder speaks each time before and never after, and could have.
func TestTells(t *testing.T) {
	d := &Data{Pairs: []Pair{{Package: "p", Bad: "1.9.0", Good: "1.10.0", Scenario: "s", Finder: "f"}}}
	p := d.Pairs[0]
	seen := func(id string, outcomes ...results.Result) *Seen { return (&runner{Data: d}).seen("p", id, outcomes) }
	check := func(v results.Verdict) results.Result {
		return results.Result{ID: "s", Verdict: v, Checks: []results.Check{{Slug: "f", Verdict: v}}}
	}
	rule := results.Result{ID: "s", Verdict: results.Fail,
		Findings: []results.Finding{{Rule: "f", Class: results.Lint}}}
	skipped := results.Result{ID: "s", Verdict: results.Skip}
	for _, x := range []struct {
		name      string
		bad, good *Seen
		race, is  bool
	}{
		{"always, never", seen("s", check(results.Fail), check(results.Warn)),
			seen("s", check(results.Pass), check(results.Pass)), false, true},
		{"a rule", seen("s", rule), seen("s", check(results.Pass)), false, true},
		{"not always", seen("s", check(results.Fail), check(results.Pass)), seen("s", check(results.Pass)), false,
			false},
		{"a race", seen("s", check(results.Fail), check(results.Pass)), seen("s", check(results.Pass)), true, true},
		{"after too", seen("s", check(results.Fail)), seen("s", check(results.Pass), check(results.Lint)), false,
			false},
		{"after not judged", seen("s", check(results.Fail)),
			seen("s", check(results.Pass), check(results.Inconclusive)), false, false},
		{"after skipped", seen("s", check(results.Fail)), seen("s", skipped), false, false},
		{"another scenario", seen("other", check(results.Fail)), seen("s", check(results.Pass)), false, false},
		{"not run", nil, seen("s", check(results.Pass)), false, false},
	} {
		p.Race = x.race
		if v := (verdict{p, x.bad, x.good}); v.tells() != x.is {
			t.Errorf("%s: %s", x.name, v)
		}
	}
	if compare("1.9.0", "1.10.0") >= 0 || compare("1.10", "1.10.0") >= 0 {
		t.Error("versions are not compared by their numbers")
	}
}

// docs/wild.md is what the files here say.
func TestPage(t *testing.T) {
	b, err := os.ReadFile("../../docs/wild.md")
	if err != nil {
		t.Fatal(err)
	}
	if string(b) != page(read(t)) {
		t.Error("docs/wild.md is not up to date; run go run ./ci/wild -page")
	}
}
