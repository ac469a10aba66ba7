package scenarios_test

import (
	"cmp"
	"context"
	"fmt"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	harness "github.com/acp-test/acp-test/ci/proof"
	"github.com/acp-test/acp-test/refagent/faults"
	"github.com/acp-test/acp-test/refagent/liberties"
	"github.com/acp-test/acp-test/rules"
	"github.com/acp-test/acp-test/scenarios"
	"github.com/acp-test/acp-test/scenarios/results"
	"github.com/acp-test/acp-test/scenarios/verdict"
)

// The law: whatever liberties the reference agent takes, nothing blames it, and
// what cannot be judged says what was missing. Its faults are found all the same.
//
// It takes minutes, so ACP_TEST_LAW says whether and how: "cover" lets each liberty
// meet each scenario once, a duration draws sets for as long, slow liberties among
// them. What is drawn follows from ACP_TEST_LAW_SEED, a number.
const law = "the law"

const lawJobs = 24 // most of a run is waiting

// pair is a set of liberties and a scenario, and perhaps a fault.
type pair struct {
	set      []liberties.Liberty
	scenario *scenarios.Scenario
	fault    faults.Fault
}

func (p pair) String() string {
	line := "acp-test run --run '^" + p.scenario.ID + "$'"
	if p.fault.Name != "" {
		line += " --fault " + p.fault.Name
	}
	if len(p.set) > 0 {
		line += " --liberty " + strings.Join(names(p.set), ",")
	}
	return line
}

func names(set []liberties.Liberty) (list []string) {
	for _, l := range set {
		list = append(list, l.Name)
	}
	return list
}

// lawEngine runs an agent that takes liberties. A golden shows the agent without.
func lawEngine(set []liberties.Liberty, fault faults.Fault) *scenarios.Engine {
	e := engineOf(fault)
	e.Golden = nil
	if fault.Name == "" {
		e.Linger = nil // as a user has it
	}
	if len(set) > 0 {
		e.ExtraArgs = append(e.ExtraArgs, "--liberty", strings.Join(names(set), ","))
	}
	for _, l := range set {
		if l.Learns {
			p := *e.Profile
			p.Tools = nil
			e.Profile = &p
		}
	}
	return e
}

// accusations are what a run of a correct agent must not have, and what it leaves
// unjudged without a word that names it.
func accusations(set []liberties.Liberty, res results.Result) (list []string) {
	for _, f := range res.Findings {
		if f.Class == results.Fail || f.Class == results.Warn || f.Class == results.Error {
			list = append(list, fmt.Sprintf("%s %s %s: %s", f.Class, f.Rule, f.Point, f.Message))
		}
	}
	for _, c := range res.Checks {
		if c.Verdict == results.Fail || c.Verdict == results.Warn || c.Verdict == results.Error {
			list = append(list, fmt.Sprintf("%s %s: %v", c.Verdict, c.ID, c.Failure))
		}
	}
	if len(list) > 0 {
		return list
	}
	switch res.Verdict {
	case results.Fail, results.Error:
		list = append(list, fmt.Sprintf("%s %s %v", res.Verdict, res.Reason, res.Failure))
	case results.Inconclusive, results.Skip:
		if !slices.ContainsFunc(set, func(l liberties.Liberty) bool { return l.Takes != "" }) {
			list = append(list, fmt.Sprintf("%s although nothing was taken away: %s", res.Verdict, res.Reason))
		} else if res.Reason == "" {
			list = append(list, res.Verdict.String()+" without a reason")
		}
	}
	return list
}

// conformed says what the command conformance holds against a correct agent: it may leave
// something unjudged, and never calls the agent not conformant. A run of several scenarios
// is not conformant if one of them makes it so.
func conformed(e *scenarios.Engine, res results.Result) []string {
	run := e.NewRun()
	verdict.Add(&run, res)
	verdict.Conform(e.Protocol.Rules, &run)
	if c := run.Conformance; c.Verdict == rules.NotConformant.String() {
		return []string{c.Verdict + ": " + strings.Join(c.Because, "; ")}
	}
	return nil
}

// undone are faults of which a liberty leaves nothing, with the liberties.
var undone = map[string][]string{
	"permission-early-start":      {"tool-ids-own", "tool-ids-long"}, // what starts has the model's id
	"location-relative":           {"tool-without-locations"},
	"location-line-zero":          {"tool-without-locations"},
	"location-as-given":           {"tool-without-locations", "tool-without-input", "tools-renamed"},
	"message-id-shared":           {"message-ids-absent", "message-ids-null"}, // there are no ids to share
	"message-ids-interleaved":     {"message-ids-absent", "message-ids-null"},
	"mode-unlisted":               {"modes-none"},
	"command-without-description": {"commands-none"},
	"cwd-ignored": {"asks-for-everything",
		"extra-question"}, // what is read elsewhere is rejected all the same
	"auth-code-for-anything": {"unknown-session-params", "unknown-session-internal", "busy-is-params",
		"busy-is-internal"},
}

// showing is a scenario in which a fault is surely found: one whose own check finds
// it, or the only one that a rule finds it in.
func showing(f faults.Fault, ids []string) string {
	for _, name := range f.Reddens {
		if id, _, ok := strings.Cut(name, "#"); ok && slices.Contains(ids, id) && !strings.HasSuffix(name, "golden") {
			return id
		}
	}
	if len(f.Scenarios) == 1 && slices.Contains(ids, f.Scenarios[0]) {
		return f.Scenarios[0]
	}
	return ""
}

// broken is how a pair breaks the law; nothing if it does not.
func (p pair) broken(ctx context.Context) []string {
	e := lawEngine(p.set, p.fault)
	res := e.Run(ctx, p.scenario)
	if ctx.Err() != nil {
		return nil
	}
	if p.fault.Name == "" {
		return append(accusations(p.set, res), conformed(e, res)...)
	}
	found := harness.Red([]results.Result{res})
	named := slices.ContainsFunc(p.fault.Reddens,
		func(n string) bool { return found[strings.TrimSuffix(n, "?")] != nil })
	if named || res.Verdict == results.Inconclusive || res.Verdict == results.Skip {
		return nil // or its situation was not there
	}
	return []string{"nothing finds that the agent " + p.fault.Summary}
}

// shrunk takes liberties away as long as the pair still breaks the law.
func (p pair) shrunk(ctx context.Context, how []string) (pair, []string) {
	for i := 0; i < len(p.set); {
		less := p
		less.set = slices.Delete(slices.Clone(p.set), i, i+1)
		if still := less.broken(ctx); len(still) > 0 {
			p, how = less, still
			continue
		}
		i++
	}
	return p, how
}

// judged carries out pairs side by side and describes those that break the law,
// each with the fewest liberties.
func judged(ctx context.Context, next func() (pair, bool)) (counterexamples []string, count int) {
	var mu sync.Mutex
	var all sync.WaitGroup
	seen := map[string]bool{}
	for range lawJobs {
		all.Go(func() {
			for {
				mu.Lock()
				p, more := next()
				if more {
					count++
				}
				mu.Unlock()
				if !more || ctx.Err() != nil {
					return
				}
				how := p.broken(ctx)
				if len(how) == 0 {
					continue
				}
				least, how := p.shrunk(ctx, how)
				mu.Lock()
				if !seen[least.String()] {
					seen[least.String()] = true
					text := least.String() + "\n  " + strings.Join(how, "\n  ")
					counterexamples = append(counterexamples, text)
					fmt.Fprintln(GinkgoWriter, text)
				}
				mu.Unlock()
			}
		})
	}
	all.Wait()
	slices.Sort(counterexamples)
	return counterexamples, count
}

func lawSeed() uint64 {
	n, err := strconv.ParseUint(cmp.Or(os.Getenv("ACP_TEST_LAW_SEED"), "1"), 10, 64)
	Expect(err).NotTo(HaveOccurred(), "ACP_TEST_LAW_SEED is a number")
	return n
}

func source(seed uint64, of string) *rand.Rand {
	h := fnv.New64a()
	h.Write([]byte(of))
	return rand.New(rand.NewPCG(seed, h.Sum64()))
}

// list hands out this run's part of the pairs one after the other.
func list(pairs []pair) func() (pair, bool) {
	i := -1
	return func() (p pair, more bool) {
		for i++; i < len(pairs); i++ {
			if harness.Part(i) {
				return pairs[i], true
			}
		}
		return p, false
	}
}

var _ = Describe(law, Ordered, ContinueOnFailure, func() {
	var all map[string]*scenarios.Scenario
	var ids []string
	BeforeAll(func() {
		all = suite()
		ids = slices.Sorted(maps.Keys(all))
	})

	It("holds for each liberty in each scenario", func(ctx SpecContext) {
		if os.Getenv("ACP_TEST_LAW") != "cover" {
			Skip("ACP_TEST_LAW=cover tries each pair")
		}
		seed := lawSeed()
		var pairs []pair
		for _, id := range ids {
			for _, set := range liberties.Draw(source(seed, id), false) {
				pairs = append(pairs, pair{set: set, scenario: all[id]})
			}
		}
		source(seed, "order").Shuffle(len(pairs), func(i, j int) { pairs[i], pairs[j] = pairs[j], pairs[i] })
		counterexamples, _ := judged(ctx, list(pairs))
		Expect(counterexamples).To(BeEmpty(), "seed %d:\n%s", seed, strings.Join(counterexamples, "\n"))
	})

	It("holds for each fault with liberties", func(ctx SpecContext) {
		if os.Getenv("ACP_TEST_LAW") != "cover" {
			Skip("ACP_TEST_LAW=cover tries each pair")
		}
		seed := lawSeed()
		var pairs []pair
		for _, f := range faults.All(faults.ACPv1) {
			shows := showing(f, ids)
			if shows == "" || f.Hangs {
				continue
			}
			sets := liberties.Draw(source(seed, f.Name), false)
			set := slices.DeleteFunc(sets[0],
				func(l liberties.Liberty) bool { return slices.Contains(undone[f.Name], l.Name) })
			pairs = append(pairs, pair{set: set, scenario: all[shows], fault: f})
		}
		counterexamples, _ := judged(ctx, list(pairs))
		Expect(counterexamples).To(BeEmpty(), "seed %d:\n%s", seed, strings.Join(counterexamples, "\n"))
	})

	It("holds for sets that are drawn", func(ctx SpecContext) {
		length := os.Getenv("ACP_TEST_LAW")
		if length == "" || length == "cover" {
			Skip("ACP_TEST_LAW says for how long")
		}
		d, err := time.ParseDuration(length)
		Expect(err).NotTo(HaveOccurred())
		seed := lawSeed()
		r, until := source(seed, "draw"), time.Now().Add(d)
		counterexamples, count := judged(ctx, func() (pair, bool) {
			sets := liberties.Draw(r, r.IntN(20) == 0)
			return pair{set: sets[r.IntN(len(sets))], scenario: all[ids[r.IntN(len(ids))]]}, time.Now().Before(until)
		})
		AddReportEntry("pairs", count)
		Expect(counterexamples).To(BeEmpty(), "seed %d:\n%s", seed, strings.Join(counterexamples, "\n"))
	})
})
