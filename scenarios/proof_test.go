package scenarios_test

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"maps"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/acp-test/acp-test/refagent/faults"
	"github.com/acp-test/acp-test/scenarios"
)

var updateFaults = flag.String("update-faults", "", "measure what the faults that match a regular expression redden, and write refagent/faults/reddens.txt")

// exact also asserts that nothing but what a fault declares is red. That takes
// a machine with nothing else to do: with a step timeout of a second, one that
// is busy reddens more. ci/soak asks for it.
var exact = os.Getenv("ACP_TEST_ALL_FAULTS") != ""

// nothing is declared of a fault that no rule and no check sees yet.
var nothing = []string{"-"}

const reddensFile = "../refagent/faults/reddens.txt"

// fixedScenarios run with every fault, whatever it is about, so that a rule
// that blames too much shows.
var fixedScenarios = []string{
	"initialize/version-offered", "session/two-are-apart", "prompt-turn/many-chunks", "prompt-turn/two-turns",
	"tool-calls/read", "permission/allow-once-edit", "permission/reject-once", "cancel/mid-stream-at-gate",
	"load/fresh-process", "terminal/output",
}

// suite is all shipped scenarios by id.
func suite() map[string]*scenarios.Scenario {
	all, err := scenarios.Shipped()
	Expect(err).NotTo(HaveOccurred())
	byID := map[string]*scenarios.Scenario{}
	for _, s := range all {
		byID[s.ID] = s
	}
	return byID
}

// chosen is the fixed scenarios and those a fault names.
func chosen(all map[string]*scenarios.Scenario, names []string) []*scenarios.Scenario {
	ids := map[string]bool{}
	for _, name := range append(slices.Clone(fixedScenarios), names...) {
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

// red runs scenarios with a fault, "" for none, and returns the rules and
// checks that found something, with the scenarios in which they did.
func red(fault string, list []*scenarios.Scenario) map[string][]string {
	e := engine()
	e.Out = ""
	e.StepTimeout = time.Second
	e.Grace = 500 * time.Millisecond
	linger := 250 * time.Millisecond
	e.Linger = &linger
	if fault != "" {
		e.ExtraArgs = []string{"--fault", fault}
	}
	run := e.RunAll(context.Background(), list, scenarios.Plan{Jobs: 6})
	found := map[string][]string{}
	for _, r := range run.Results {
		for _, f := range r.Findings {
			if strings.HasPrefix(f.Rule, "C-") && f.Class != scenarios.Error || f.Class == scenarios.Inconclusive {
				continue // the scenario breaks the protocol on purpose, or nobody can tell
			}
			found[f.Rule] = append(found[f.Rule], r.ID)
		}
		for _, c := range r.Checks {
			if c.Verdict == scenarios.Fail || c.Verdict == scenarios.Warn || c.Verdict == scenarios.Lint {
				found[c.ID] = append(found[c.ID], r.ID)
			}
		}
		if r.Failure != nil && r.Verdict == scenarios.Fail {
			found[r.ID] = append(found[r.ID], r.ID)
		}
	}
	return found
}

var _ = Describe("the proof", func() {
	It("finds nothing in the correct agent", func() {
		all := suite()
		found := red("", chosen(all, slices.Collect(maps.Keys(all))))
		Expect(found).To(BeEmpty())
	})

	if *updateFaults != "" {
		It("is measured anew", func() { measure() })
		return
	}

	for _, f := range faults.All() {
		It("finds "+f.Name, func() {
			found := red(f.Name, chosen(suite(), f.Scenarios))
			if slices.Equal(f.Reddens, nothing) {
				if exact {
					Expect(found).To(BeEmpty(), "the fault is found now: measure it")
				}
				return
			}
			may, must := map[string]bool{}, map[string]bool{}
			for _, name := range f.Reddens {
				sure := strings.TrimSuffix(name, "?")
				may[sure] = true
				if sure == name {
					must[name] = true
				}
			}
			killed := false
			var wrong []string
			for name, where := range found {
				killed = killed || may[name]
				if !may[name] {
					wrong = append(wrong, fmt.Sprintf("%s is red in %v", name, where))
				}
			}
			for name := range must {
				if found[name] == nil {
					wrong = append(wrong, name+" is not red")
				}
			}
			slices.Sort(wrong)
			Expect(killed || len(must) == 0).To(BeTrue(), "the fault: %s\ndeclared: %v\nfound: %v", f.Summary, f.Reddens, found)
			if exact {
				Expect(wrong).To(BeEmpty(), "the fault: %s", f.Summary)
			}
		})
	}
})

// measure writes what each fault reddens: what is red each time surely, the rest perhaps. A fault that nothing shows in its scenarios is
// tried in all of them.
func measure() {
	all := suite()
	var out bytes.Buffer
	head, _, _ := strings.Cut(read(reddensFile), "\n\n")
	out.WriteString(head + "\n\n")
	which := regexp.MustCompile(*updateFaults)
	for _, f := range faults.All() {
		names := f.Scenarios
		if !which.MatchString(f.Name) {
			fmt.Fprintf(&out, "%s\n  in %s\n  reddens %s\n", f.Name, strings.Join(names, " "), strings.Join(f.Reddens, " "))
			continue
		}
		if len(red(f.Name, chosen(all, names))) == 0 {
			found := red(f.Name, chosen(all, slices.Collect(maps.Keys(all))))
			names = nil
			for _, where := range found {
				names = append(names, where[0])
			}
			slices.Sort(names)
			names = slices.Compact(names)
			names = names[:min(len(names), 3)]
		}
		count := map[string]int{}
		const times = 2
		for range times {
			for name := range red(f.Name, chosen(all, names)) {
				count[name]++
			}
		}
		var reddens []string
		for name, n := range count {
			if n < times {
				name += "?"
			}
			reddens = append(reddens, name)
		}
		slices.Sort(reddens)
		if reddens == nil {
			reddens = nothing
		}
		fmt.Fprintf(&out, "%s\n  in %s\n  reddens %s\n", f.Name, strings.Join(names, " "), strings.Join(reddens, " "))
		fmt.Fprintf(GinkgoWriter, "%s: %v\n", f.Name, reddens)
	}
	Expect(os.WriteFile(reddensFile, out.Bytes(), 0o644)).To(Succeed())
}

func read(file string) string {
	data, err := os.ReadFile(file)
	Expect(err).NotTo(HaveOccurred())
	return string(data)
}
