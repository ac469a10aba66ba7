package scenarios_test

import (
	"cmp"
	"context"
	"flag"
	"maps"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/acp-test/acp-test/ci/inside"
	harness "github.com/acp-test/acp-test/ci/proof"
	"github.com/acp-test/acp-test/golden"
	"github.com/acp-test/acp-test/internal/bugs"
	"github.com/acp-test/acp-test/protocol/acp"
	"github.com/acp-test/acp-test/refagent/faults"
	"github.com/acp-test/acp-test/scenarios"
	"github.com/acp-test/acp-test/scenarios/results"
)

var updateFaults = flag.String("update-faults", "",
	"measure what the faults that match a regular expression redden, and write refagent/faults/reddens-acp-v1.txt")

// everywhere runs each fault over all suites, as ci/soak does, not only over
// the scenarios it names and the fixed ones. What it reddens there and only
// there is not declared; but nothing may be an error of this program.
var everywhere = os.Getenv("ACP_TEST_ALL_FAULTS") != ""

// nothing is declared of a fault that no scenario shows.
var nothing = []string{"-"}

// proved are the faults that scenarios show. The others are for sweeps.
func proved() []faults.Fault { return slices.DeleteFunc(faults.All(faults.ACPv1), faults.Fault.Swept) }

const reddensFile = "../refagent/faults/reddens-acp-v1.txt"

// fixedScenarios run with every fault, whatever it is about, so that a rule
// that blames too much shows.
var fixedScenarios = []string{
	"initialize/version-offered", "session/two-are-apart", "prompt-turn/many-chunks", "prompt-turn/two-turns",
	"tool-calls/read", "permission/allow-once-edit", "permission/reject-once", "cancel/mid-stream-at-gate",
	"load/fresh-process", "terminal/output",
}

// suite is all shipped scenarios by id.
func suite() map[string]*scenarios.Scenario {
	all, err := acp.V1().Shipped()
	Expect(err).NotTo(HaveOccurred())
	byID := map[string]*scenarios.Scenario{}
	for _, s := range all {
		byID[s.ID] = s
	}
	return byID
}

// chosen is the fixed scenarios and those a fault names.
func chosen(all map[string]*scenarios.Scenario, names []string) []*scenarios.Scenario {
	return named(all, append(slices.Clone(fixedScenarios), names...))
}

// named is the scenarios that fit one of some patterns, by id.
func named(all map[string]*scenarios.Scenario, patterns []string) []*scenarios.Scenario {
	ids := map[string]bool{}
	for _, name := range patterns {
		found := false
		for id := range all {
			if ok, _ := path.Match(name, id); ok {
				ids[id], found = true, true
			}
		}
		Expect(found || *updateFaults != "").To(BeTrue(), "no scenario is %s", name)
	}
	var list []*scenarios.Scenario
	for _, id := range slices.Sorted(maps.Keys(ids)) {
		list = append(list, all[id])
	}
	return list
}

// trial is one fault, or none, over some scenarios.
type trial struct {
	fault  faults.Fault
	list   []*scenarios.Scenario
	engine *scenarios.Engine
	found  map[string][]string // what is red, and in which scenarios
	class  classes
	done   chan struct{}
}

// bench carries out trials side by side: most of a trial is waiting, for
// processes to start and for agents that hang.
type bench struct {
	stop  context.CancelFunc
	named map[string]*trial
	ended sync.WaitGroup
}

// newBench starts the trials of a list, those first that wait for an agent that hangs.
func newBench(list []*trial) *bench {
	hangs := func(t *trial) bool { return t.fault.Hangs }
	works := func(t *trial) bool { return !t.fault.Hangs }
	list = slices.Concat(slices.DeleteFunc(slices.Clone(list), works), slices.DeleteFunc(slices.Clone(list), hangs))
	const trials = 8 // at a time
	ctx, stop := context.WithCancel(context.Background())
	b := &bench{stop: stop, named: map[string]*trial{}}
	slots := make(chan struct{}, trials)
	for _, t := range list {
		t.engine, t.done = engineOf(t.fault), make(chan struct{})
		b.named[t.fault.Name] = t
	}
	b.ended.Go(func() {
		for _, t := range list {
			select {
			case slots <- struct{}{}:
			case <-ctx.Done():
				return
			}
			b.ended.Go(func() {
				defer func() { <-slots }()
				defer close(t.done)
				jobs := 3
				if t.fault.Hangs {
					jobs = 6 // which mostly wait
				}
				t.found, t.class = red(ctx, t.engine, t.list, jobs)
			})
		}
	})
	return b
}

// of waits for what a fault has reddened.
func (b *bench) of(fault string) map[string][]string {
	t := b.named[fault]
	<-t.done
	return t.found
}

func (b *bench) close() {
	b.stop()
	b.ended.Wait()
}

func engineOf(f faults.Fault) *scenarios.Engine {
	e := engine()
	e.NoFurther = false
	e.Out = ""
	e.Golden = &golden.Store{Embedded: golden.Shipped()}
	// Some rules want half a second of silence before they judge.
	linger := 600 * time.Millisecond
	e.Linger = &linger
	if f.Hangs {
		e.StepTimeout = time.Second
	}
	if f.Name != "" {
		p := *e.Profile
		p.Timeouts.Start = 10 * time.Second // it does not start slowly
		e.Profile, e.ExtraArgs = &p, []string{"--fault", f.Name}
	}
	if !f.Process && !everywhere { // ci/soak starts processes
		e.Connect = inside.Connect(e.ExtraArgs...)
	}
	return e
}

// red runs scenarios and returns the rules and checks that found something,
// with the scenarios in which they did and the classes they gave.
func red(ctx context.Context, e *scenarios.Engine, list []*scenarios.Scenario, jobs int) (found map[string][]string,
	class classes) {
	found, class = map[string][]string{}, classes{}
	for len(list) > 0 {
		run := e.RunAll(ctx, list, scenarios.Plan{Jobs: jobs, Patient: true})
		for name, where := range harness.Red(run.Results) {
			found[name] = append(found[name], where...)
		}
		class.sum(run.Results)
		list = harness.Untried(list, run.Results)
	}
	return found, class
}

// classes are the worst class of each rule and check in each scenario, by both names.
type classes map[[2]string]results.Verdict

var classOrder = []results.Verdict{results.Lint, results.Warn, results.Fail, results.Error}

func (c classes) add(name, scenario string, v results.Verdict) {
	if key := [2]string{name, scenario}; slices.Index(classOrder, v) > slices.Index(classOrder, c[key]) {
		c[key] = v
	}
}

// of is the worst class that a name has in some scenarios.
func (c classes) of(name string, in []*scenarios.Scenario) (worst results.Verdict) {
	for _, s := range in {
		if v := c[[2]string{name, s.ID}]; slices.Index(classOrder, v) > slices.Index(classOrder, worst) {
			worst = v
		}
	}
	return worst
}

func (c classes) sum(outcomes []results.Result) {
	for _, r := range outcomes {
		for _, f := range r.Findings {
			c.add(f.Rule, r.ID, f.Class)
		}
		for _, k := range r.Checks {
			c.add(k.ID, r.ID, k.Verdict)
		}
		if r.Golden != nil && r.Golden.Skipped != "" {
			c.add(r.ID+"#golden", r.ID, results.Lint)
		}
	}
}

// wanted reports whether a spec of the proof would run.
func wanted(name string) bool {
	config, _ := GinkgoConfiguration()
	name = "scenarios " + proof + " " + name
	fits := func(patterns []string) bool {
		return slices.ContainsFunc(patterns, func(p string) bool { return regexp.MustCompile(p).MatchString(name) })
	}
	return (len(config.FocusStrings) == 0 || fits(config.FocusStrings)) && !fits(config.SkipStrings)
}

const proof = "the proof"

var _ = Describe(proof, Ordered, ContinueOnFailure, func() {
	if *updateFaults != "" {
		It("is measured anew", func() { measure() })
		return
	}

	var all map[string]*scenarios.Scenario
	var b *bench
	BeforeAll(func() {
		all = suite()
		var list []*trial
		if wanted("finds nothing in the correct agent") {
			list = append(list, &trial{list: chosen(all, slices.Collect(maps.Keys(all)))})
		}
		for _, f := range proved() {
			if wanted("finds " + f.Name) {
				ids := f.Scenarios
				if everywhere {
					ids = slices.Collect(maps.Keys(all))
				}
				list = append(list, &trial{fault: f, list: chosen(all, ids)})
			}
		}
		b = newBench(list)
		DeferCleanup(b.close)
	})

	It("finds nothing in the correct agent", func() {
		Expect(b.of("")).To(BeEmpty(), "a rule or check blames the agent without a fault: mend the rule in "+
			"protocol/acp/invariants or the scenario named here")
	})

	for _, f := range proved() {
		It("finds "+f.Name, func() {
			found, declares := b.of(f.Name), chosen(all, f.Scenarios)
			wrong := undeclared(f, declares, found)
			Expect(wrong).To(BeEmpty(), "the fault: %s\nred: %v\nmend the rule or the fault, or measure its entry in "+
				"refagent/faults/reddens-acp-v1.txt: go test ./scenarios -run TestScenarios -ginkgo.focus %q "+
				"-update-faults '^%s$'", f.Summary, found, proof, f.Name)
			killed := slices.ContainsFunc(f.Reddens,
				func(name string) bool { return found[strings.TrimSuffix(name, "?")] != nil }) ||
				!slices.ContainsFunc(f.Reddens, func(name string) bool { return !strings.HasSuffix(name, "?") })
			Expect(killed).To(BeTrue(), "nothing that is declared has found the fault: %s", f.Summary)
			for _, bug := range bugs.All() {
				for _, finder := range bug.Found {
					// What it gives where the fault is at home; else anywhere.
					class := b.named[f.Name].class
					got := cmp.Or(class.of(finder.Name, named(all, f.Scenarios)), class.of(finder.Name, declares))
					if slices.Contains(bug.Faults, f.Name) && got != 0 {
						Expect(finder.Class).To(Equal(got.String()), "bug %d: %s", bug.Number, finder.Name)
					}
				}
			}
		})
	}
})

// undeclared lists how what is red differs from what a fault declares: names that
// are surely red and were not, and others in the scenarios that it names.
func undeclared(f faults.Fault, declares []*scenarios.Scenario, found map[string][]string) (list []string) {
	for _, name := range f.Reddens {
		if !strings.HasSuffix(name, "?") && found[name] == nil {
			list = append(list, name+" is not red")
		}
	}
	for name, where := range found {
		here := slices.ContainsFunc(declares, func(s *scenarios.Scenario) bool { return slices.Contains(where, s.ID) })
		if (here || name == harness.Failed) && !slices.Contains(f.Reddens, name) &&
			!slices.Contains(f.Reddens, name+"?") {
			list = append(list, name+" is red and not declared")
		}
	}
	slices.Sort(list)
	return list
}

// measure writes what each fault reddens: what is red each time surely, the
// rest perhaps. A fault that its own scenarios do not show is tried in all of
// them.
func measure() {
	const times = 2
	all := suite()
	which := regexp.MustCompile(*updateFaults)
	in := map[string][]string{}
	count := map[string]map[string]int{}
	// round tries faults and returns those that nothing has found.
	round := func(list []faults.Fault, everywhere bool) (unseen []faults.Fault) {
		var trials []*trial
		for _, f := range list {
			ids := in[f.Name]
			if everywhere {
				ids = slices.Collect(maps.Keys(all))
			}
			trials = append(trials, &trial{fault: f, list: chosen(all, ids)})
		}
		b := newBench(trials)
		defer b.close()
		for _, f := range list {
			found := b.of(f.Name)
			if len(found) == 0 {
				unseen = append(unseen, f)
			}
			if everywhere {
				in[f.Name] = nil
				for _, where := range found {
					in[f.Name] = append(in[f.Name], where[0])
				}
				slices.Sort(in[f.Name])
				in[f.Name] = slices.Compact(in[f.Name])
				in[f.Name] = in[f.Name][:min(len(in[f.Name]), 3)]
				continue
			}
			for name := range found {
				count[f.Name][name]++
			}
		}
		return unseen
	}
	var list []faults.Fault
	for _, f := range faults.All(faults.ACPv1) {
		if which.MatchString(f.Name) && !f.Swept() {
			list = append(list, f)
			in[f.Name], count[f.Name] = f.Scenarios, map[string]int{}
		}
	}
	if unseen := round(list, false); len(unseen) > 0 {
		round(unseen, true)
		round(unseen, false)
	}
	for range times - 1 {
		round(list, false)
	}
	var names []string
	measured := map[string]faults.Effect{}
	for _, f := range faults.All(faults.ACPv1) {
		e := f.Effect
		if count[f.Name] != nil {
			e = faults.Effect{Scenarios: in[f.Name]}
			for name, n := range count[f.Name] {
				if n < times {
					name += "?"
				}
				e.Reddens = append(e.Reddens, name)
			}
			slices.Sort(e.Reddens)
			if e.Reddens == nil {
				e.Reddens = nothing
			}
		}
		names, measured[f.Name] = append(names, f.Name), e
	}
	Expect(os.WriteFile(reddensFile, faults.WriteEffects(read(reddensFile), names, measured), 0o644)).To(Succeed())
}

func read(file string) string {
	data, err := os.ReadFile(file)
	Expect(err).NotTo(HaveOccurred())
	return string(data)
}
