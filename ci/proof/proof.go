// Package proof tests the faults of a reference agent. Exactly the rules and checks that the file of effects declares
// for a fault must find it.
package proof

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/acp-test/acp-test/internal/lists"
	"github.com/acp-test/acp-test/refagent/faults"
	"github.com/acp-test/acp-test/scenarios"
	"github.com/acp-test/acp-test/scenarios/results"
)

// Proof is the set of faults of one reference agent, and how to run them.
type Proof struct {
	Faults map[string]faults.Effect
	Names  []string // the faults' names, in the order of their table
	// Engine returns an engine that runs the agent with a fault; "" means no fault.
	Engine func(fault string) *scenarios.Engine
	// Scenarios are all scenarios that may show a fault. Fixed contains the ids of the scenarios that run with every
	// fault, so that a rule with false findings is noticed.
	Scenarios []*scenarios.Scenario
	Fixed     []string
	// File is the path of the file with the faults' effects. AtOnce is the number of faults to run at the same time.
	File   string
	AtOnce int
}

// Least is the minimum number of faults in each table.
const Least = 30

// Prove runs each fault in the scenarios where it must be found. The error lists the differences from the declared
// effects. If measure is a regular expression instead of "", Prove measures the faults whose names match and writes
// the file of effects.
func (p *Proof) Prove(measure string) error {
	if measure != "" {
		which, err := regexp.Compile(measure)
		if err != nil {
			return err
		}
		return p.measure(which)
	}
	if len(p.Names) < Least {
		return fmt.Errorf("got %d faults, want at least %d: the table of faults is incomplete", len(p.Names), Least)
	}
	var mu sync.Mutex
	var wrong []error
	Each(p.Names, p.AtOnce, func(fault string) {
		for _, w := range p.wrong(fault) {
			mu.Lock()
			wrong = append(wrong, fmt.Errorf("%s: %s: fix the rule or the fault, or measure the entry in %s "+
				"with -update-faults '^%s$'", fault, w, p.File, fault))
			mu.Unlock()
		}
	})
	return errors.Join(wrong...)
}

// Red returns the rules, checks and goldens that failed in a run, each with the ids of the scenarios in which it
// failed. Scenarios that ended with an error of this program are listed under the name Failed.
func Red(outcomes []results.Result) map[string][]string {
	found := map[string][]string{}
	add := func(name, where string) { found[name] = append(found[name], where) }
	for _, r := range outcomes {
		for _, f := range r.Findings {
			if f.Class != results.Inconclusive { // inconclusive is no evidence
				add(f.Rule, r.ID)
			}
		}
		for _, c := range r.Checks {
			if c.Verdict == results.Fail || c.Verdict == results.Warn || c.Verdict == results.Lint {
				add(c.ID, r.ID)
			}
		}
		if r.FailureClass == results.Fail {
			add(r.ID, r.ID)
		}
		if r.Golden != nil && r.Golden.Skipped != "" {
			// A golden counts only for a fault in which the agent omits something optional. Rules and checks find the
			// other differences of goldens too.
			add(r.ID+"#golden", r.ID)
		}
		if r.Verdict == results.Error {
			add(Failed, r.ID+": "+r.Reason)
		}
	}
	return found
}

// Failed is the key in Red's result for scenarios without a verdict.
const Failed = "error"

// Each calls do for each item of a list. At most atOnce calls run at the same time, because most of the work is
// waiting.
func Each[T any](list []T, atOnce int, do func(T)) {
	slots := make(chan struct{}, atOnce)
	var wait sync.WaitGroup
	for _, item := range list {
		slots <- struct{}{}
		wait.Go(func() {
			defer func() { <-slots }()
			do(item)
		})
	}
	wait.Wait()
}

// Untried returns the scenarios of a list that a run did not try. A run gives up after a few scenarios in which the
// agent did not start.
func Untried(list []*scenarios.Scenario, outcomes []results.Result) []*scenarios.Scenario {
	return slices.DeleteFunc(slices.Clone(list), func(s *scenarios.Scenario) bool {
		return !slices.ContainsFunc(outcomes, func(r results.Result) bool {
			return r.ID == s.ID && r.Verdict == results.Skip && strings.HasPrefix(r.Reason, "not tried")
		})
	})
}

// Trial runs a fault in the scenarios ids and in the fixed ones. It returns the failures, as Red does.
func (p *Proof) Trial(fault string, ids []string) map[string][]string {
	list := p.chosen(ids)
	found := map[string][]string{}
	for len(list) > 0 {
		run := p.Engine(fault).RunAll(context.Background(), list, scenarios.Plan{Jobs: 3, Patient: true})
		for name, where := range Red(run.Results) {
			found[name] = append(found[name], where...)
		}
		list = Untried(list, run.Results)
	}
	return found
}

func (p *Proof) chosen(ids []string) []*scenarios.Scenario {
	return slices.DeleteFunc(slices.Clone(p.Scenarios), func(s *scenarios.Scenario) bool {
		return !slices.Contains(ids, s.ID) && !slices.Contains(p.Fixed, s.ID)
	})
}

// wrong runs a fault in its declared scenarios, and describes each difference between the findings and the declared
// ones.
func (p *Proof) wrong(fault string) (list []string) {
	f := p.Faults[fault]
	found, ran := p.Trial(fault, f.Scenarios), p.chosen(f.Scenarios)
	sure := false
	for _, name := range f.Reddens {
		id, _, _ := strings.Cut(name, "#")
		elsewhere := strings.Contains(id, "/") &&
			!slices.ContainsFunc(ran, func(s *scenarios.Scenario) bool { return s.ID == id })
		if strings.HasSuffix(name, "?") || elsewhere {
			continue
		}
		sure = true
		if found[name] == nil {
			list = append(list, fmt.Sprintf("%s is declared but found nothing; these found the fault: %v", name, found))
		}
	}
	if !sure {
		list = append(list, "no rule or check finds the fault every time")
	}
	for _, name := range slices.Sorted(maps.Keys(found)) {
		if !slices.Contains(f.Reddens, name) && !slices.Contains(f.Reddens, name+"?") {
			list = append(list, fmt.Sprintf("%s found the fault in %v but is not declared", name, found[name]))
		}
	}
	return list
}

// measure runs the faults whose names match and writes their effects to the file. For each fault, it records at most
// four scenarios that show the fault, and the failures of two runs of these scenarios. The entries of other faults
// stay as they are.
func (p *Proof) measure(which *regexp.Regexp) error {
	everywhere := lists.Map(p.Scenarios, func(s *scenarios.Scenario) string { return s.ID })
	var mu sync.Mutex
	measured := maps.Clone(p.Faults)
	Each(p.Names, p.AtOnce, func(name string) {
		if !which.MatchString(name) {
			return
		}
		ids := home(p.Trial(name, everywhere))
		e := faults.Effect{Scenarios: ids, Reddens: twice(p.Trial(name, ids), p.Trial(name, ids))}
		mu.Lock()
		defer mu.Unlock()
		measured[name] = e
	})
	older, err := os.ReadFile(p.File)
	if err != nil {
		return err
	}
	return os.WriteFile(p.File, faults.WriteEffects(string(older), p.Names, measured), 0o644)
}

// home returns up to four scenarios in which a fault shows. It goes through the checks, then the rules, that find the
// fault. For each, it adds the first scenario with that failure, unless a scenario chosen before has the same
// failure.
func home(found map[string][]string) (ids []string) {
	delete(found, Failed)
	names := slices.SortedFunc(maps.Keys(found), func(a, b string) int {
		if x := strings.Contains(a, "#"); x != strings.Contains(b, "#") {
			return map[bool]int{true: -1, false: 1}[x]
		}
		return strings.Compare(a, b)
	})
	for _, name := range names {
		where := slices.Sorted(slices.Values(found[name]))
		if len(ids) < 4 && !slices.ContainsFunc(where, func(id string) bool { return slices.Contains(ids, id) }) {
			ids = append(ids, where[0])
		}
	}
	slices.Sort(ids)
	return ids
}

// twice returns the names that are in both a and b, and, with a ? appended, the names that are in only one.
func twice(a, b map[string][]string) (names []string) {
	for name := range a {
		if b[name] == nil {
			name += "?"
		}
		names = append(names, name)
	}
	for name := range b {
		if a[name] == nil {
			names = append(names, name+"?")
		}
	}
	slices.Sort(names)
	return names
}

// Part reports whether this run includes the i-th of many samples. With ACP_TEST_PART=2/3, a run includes every third
// sample, beginning with the second. If the variable is unset, a run includes all samples.
func Part(i int) bool {
	var part, of int
	_, err := fmt.Sscanf(os.Getenv("ACP_TEST_PART"), "%d/%d", &part, &of)
	return err != nil || i%of == part-1
}

// Share returns the samples of a list that this run includes, as Part says.
func Share[T any](list []T) (share []T) {
	for i, sample := range list {
		if Part(i) {
			share = append(share, sample)
		}
	}
	return share
}
