package acp_test

import (
	"context"
	"flag"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/acp-test/acp-test/agents"
	"github.com/acp-test/acp-test/ci/inside"
	"github.com/acp-test/acp-test/ci/proof"
	"github.com/acp-test/acp-test/golden"
	"github.com/acp-test/acp-test/internal/bugs"
	"github.com/acp-test/acp-test/protocol/acp"
	"github.com/acp-test/acp-test/refagent/faults"
	"github.com/acp-test/acp-test/refagent/liberties"
	"github.com/acp-test/acp-test/scenarios"
	"github.com/acp-test/acp-test/scenarios/results"
)

var updateFaults = flag.String("update-faults", "",
	"measure what the faults of version 2 that match a regular expression redden, and write "+
		"refagent/faults/reddens-acp-v2.txt")

// engine runs the reference agent in version 2 within this process.
func engine(t *testing.T, fault string, taken ...string) *scenarios.Engine {
	t.Helper()
	p, err := agents.Shipped("reference-acp-v2")
	if err != nil {
		t.Fatal(err)
	}
	p.Command = []string{os.Args[0], "refagent"} // which is not started
	linger := 100 * time.Millisecond
	e := &scenarios.Engine{Protocol: acp.V2(), Profile: p, Temp: t.TempDir(), Cwd: t.TempDir(), NoTrap: true,
		NoFurther:   true,
		StepTimeout: 10 * time.Second, Linger: &linger, Golden: &golden.Store{Embedded: golden.Shipped()}}
	if fault != "" {
		e.StepTimeout = 2 * time.Second // some never do what is awaited
	}
	args := []string{"--protocol", faults.ACPv2}
	if fault != "" {
		args = append(args, "--fault", fault)
	}
	if len(taken) > 0 {
		args = append(args, "--liberty", strings.Join(taken, ","))
	}
	e.Connect = inside.Connect(args...)
	return e
}

// shipped are the scenarios that version 2 alone has, and others by their ids.
func shipped(t *testing.T, others ...string) (list []*scenarios.Scenario) {
	t.Helper()
	all, err := acp.V2().Shipped()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range all {
		if slices.Contains(own, s.Suite) || slices.Contains(others, s.ID) {
			list = append(list, s)
		}
	}
	return list
}

// own are the suites of version 2 alone.
var own = []string{"background", "items", "negotiation", "opened", "queue", "replay", "retry", "turns"}

// fixed run with every fault, so that a rule that blames too much shows.
var fixed = []string{"turns/states", "tool-calls/read", "load/fresh-process"}

// shared are some of the scenarios of both versions, for what else shows.
var shared = []string{"tool-calls/read", "tool-calls/edit", "load/fresh-process", "permission/reject-once",
	"cancel/tool-running",
	"cancel/mid-stream-at-gate", "resume/silent", "compaction/asked", "compaction/loaded", "notices/loaded",
	"subagents/announced",
	"subagents/cancelled", "subagents/two", "delete/gone-from-list", "content/several", "content/links-of-one-name",
	"prompt-turn/long-unicode", "elicitation/accept"}

// The correct agent is red nowhere.
func TestTheCorrectAgentInVersion2(t *testing.T) {
	list := shipped(t, shared...)
	run := engine(t, "").RunAll(context.Background(), list, scenarios.Plan{Jobs: 8})
	for _, r := range run.Results {
		if r.Verdict != results.Pass {
			t.Errorf("%s: %s %s %+v", r.ID, r.Verdict, r.Reason, r.Golden)
		}
	}
	if len(shipped(t)) < 50 {
		t.Errorf("version 2 has %d scenarios of its own", len(shipped(t)))
	}
	all, err := acp.V2().Shipped()
	if err != nil || len(all)-len(shipped(t)) < 80 {
		t.Errorf("%d scenarios run in both versions, %v", len(all)-len(shipped(t)), err)
	}
}

// No liberty is red anywhere: each alone, in the scenarios that show the most.
func TestLibertiesOfVersion2(t *testing.T) {
	all := liberties.All(faults.ACPv2)
	if len(all) < 25 {
		t.Errorf("there are %d liberties", len(all))
	}
	proof.Each(proof.Share(all), 12, func(l liberties.Liberty) {
		if _, ok := acp.V2().Rules.Requirement(l.Allows); !ok {
			t.Errorf("the liberty %s rests on %s, which does not exist", l.Name, l.Allows)
		}
		e := engine(t, "", l.Name)
		e.Golden = nil
		list := shipped(t, shared...)
		if !everywhere {
			list = slices.DeleteFunc(list, func(s *scenarios.Scenario) bool { return !slices.Contains(telling, s.ID) })
		}
		run := e.RunAll(context.Background(), list, scenarios.Plan{Jobs: 4})
		if found := proof.Red(run.Results); len(found) > 0 {
			t.Errorf("%s (%s): red are %v", l.Name, l.Summary, found)
		}
	})
}

// telling are the scenarios that each liberty is tried in; ACP_TEST_ALL_FAULTS=1 tries all.
var telling = []string{"turns/two", "turns/requires-action", "replay/start", "background/listed"}

// Each fault is found by what reddens.txt declares, and by nothing else, in the scenarios
// that it names; with ACP_TEST_ALL_FAULTS=1 in the fixed ones too.
func TestEachFaultOfVersion2IsFound(t *testing.T) {
	t.Parallel()
	p := proof.Proof{File: "../../refagent/faults/reddens-acp-v2.txt", AtOnce: 12,
		Faults: map[string]faults.Effect{}, Scenarios: shipped(t, shared...),
		Engine: func(fault string) *scenarios.Engine { return engine(t, fault) }}
	if everywhere { // else the scenarios that a fault names have to do
		p.Fixed = fixed
	}
	for _, f := range faults.All(faults.ACPv2) {
		p.Names, p.Faults[f.Name] = append(p.Names, f.Name), f.Effect
		if _, ok := acp.V2().Rules.Requirement(f.Breaks); !ok {
			t.Errorf("the fault %s breaks %s, which does not exist", f.Name, f.Breaks)
		}
	}
	if err := p.Prove(*updateFaults); err != nil {
		t.Fatal(err)
	}
}

// everywhere: each fault is tried in the fixed scenarios, too, and each liberty in all.
var everywhere = os.Getenv("ACP_TEST_ALL_FAULTS") != ""

// The record of public bugs says of faults of version 2 which class their finders give.
func TestPublicBugsFoundInVersion2(t *testing.T) {
	for _, b := range bugs.All() {
		if b.By != bugs.AgentOfV2 {
			continue
		}
		for _, name := range b.Faults {
			i := slices.IndexFunc(faults.All(faults.ACPv2), func(f faults.Fault) bool { return f.Name == name })
			if i < 0 {
				t.Errorf("bug %d: version 2 has no fault %s", b.Number, name)
				continue
			}
			list := slices.DeleteFunc(shipped(t), func(s *scenarios.Scenario) bool {
				return !slices.Contains(faults.All(faults.ACPv2)[i].Scenarios, s.ID)
			})
			for _, r := range engine(t, name).RunAll(context.Background(), list, scenarios.Plan{Jobs: 3}).Results {
				for _, c := range r.Checks {
					for _, f := range b.Found {
						if f.Name == c.ID && f.Class != c.Verdict.String() {
							t.Errorf("bug %d: %s is %s, and not %s", b.Number, f.Name, c.Verdict, f.Class)
						}
					}
				}
			}
		}
	}
}

// Words that were said before are a prompt of their own, also in another process: nobody is blamed for the first.
func TestTheSameWordsInAnotherProcess(t *testing.T) {
	t.Parallel()
	s, err := acp.V2().Parse("same", "same.txtar", []byte(`protocol acp-v2
check whole
golden off
session new s
prompt s 'Go on.'
await turn end_turn session=s
beside
session load s
prompt s 'Go on.'
await turn end_turn session=s
-- llm.yaml --
turns:
  - - - text: Once.
  - - - tool: read_file
        args: {path: $WORK/a.txt}
    - - text: Twice.
-- a.txt --
a
`))
	if err != nil {
		t.Fatal(err)
	}
	r := engine(t, "").Run(context.Background(), s)
	if found := proof.Red([]results.Result{r}); r.Verdict != results.Pass || len(found) > 0 {
		t.Errorf("got %s %s, red are %v", r.Verdict, r.Summary(), found)
	}
}
