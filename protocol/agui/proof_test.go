package agui_test

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
	"github.com/acp-test/acp-test/protocol/agui"
	"github.com/acp-test/acp-test/refagent/faults"
	"github.com/acp-test/acp-test/refagent/liberties"
	"github.com/acp-test/acp-test/scenarios"
	"github.com/acp-test/acp-test/scenarios/results"
)

var updateFaults = flag.String("update-faults", "",
	"measure what the faults that match a regular expression redden, and write refagent/faults/reddens-ag-ui.txt")

// engine runs the reference agent of AG-UI within this process.
func engine(t *testing.T, fault string, taken ...string) *scenarios.Engine {
	t.Helper()
	return elsewhere(t, "", "", fault, taken...)
}

// elsewhere is engine with an Accept header for posts that have none of their own, and a directory of the agent, "" is
// the one that it is started in.
func elsewhere(t *testing.T, accept, dir, fault string, taken ...string) *scenarios.Engine {
	t.Helper()
	p, err := agents.Shipped("reference-ag-ui")
	if err != nil {
		t.Fatal(err)
	}
	p.Command = []string{os.Args[0]} // which is not started
	var args []string
	if fault != "" {
		args = []string{"--fault", fault}
	}
	if len(taken) > 0 {
		args = append(args, "--liberty", strings.Join(taken, ","))
	}
	e := &scenarios.Engine{Protocol: agui.V1(), Profile: p, Temp: t.TempDir(), Cwd: t.TempDir(), NoTrap: true,
		StepTimeout: 3 * time.Second}
	e.Connect = inside.ConnectWeb(accept, dir, args...)
	return e
}

func shipped(t *testing.T) []*scenarios.Scenario {
	t.Helper()
	list, err := agui.V1().Shipped()
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// skipped are the scenarios that the reference agent does not play here: it asks before it runs a command, and in this
// process nobody can tell what it holds.
var skipped = []string{"tools/fast-beside-slow", "threads/by-the-hundred"}

// The correct agent is red nowhere, and says what its goldens have.
func TestTheCorrectAgent(t *testing.T) {
	e := engine(t, "")
	e.Golden, e.GoldenRequired, e.Complete = &golden.Store{Embedded: golden.Shipped()}, true, true
	run := e.RunAll(context.Background(), shipped(t), scenarios.Plan{Jobs: 8})
	found, passed := proof.Red(run.Results), len(shipped(t))-len(skipped)
	if len(found) > 0 || run.Counts.Pass != passed || len(run.Stale) > 0 {
		for _, r := range run.Results {
			if r.Verdict != results.Pass && !slices.Contains(skipped, r.ID) {
				t.Errorf("%s: %s %s %+v", r.ID, r.Verdict, r.Reason, r.Golden)
			}
		}
		t.Fatalf("red: %v, stale: %v", found, run.Stale)
	}
	if len(shipped(t)) < 80 {
		t.Errorf("there are %d scenarios", len(shipped(t)))
	}
}

// Each fault is found by what reddens.txt declares, and by nothing else in the scenarios
// that it names and in the fixed ones.
func TestEachFaultIsFound(t *testing.T) {
	t.Parallel()
	p := proof.Proof{File: "../../refagent/faults/reddens-ag-ui.txt", AtOnce: 6,
		Faults: map[string]faults.Effect{}, Scenarios: shipped(t),
		Fixed: []string{"runs/hello", "tools/read", "runs/two-turns"},
		Engine: func(fault string) *scenarios.Engine {
			e := engine(t, fault)
			e.Golden = &golden.Store{Embedded: golden.Shipped()}
			return e
		}}
	for _, f := range faults.All(faults.AGUI) {
		p.Names, p.Faults[f.Name] = append(p.Names, f.Name), f.Effect
	}
	if err := p.Prove(*updateFaults); err != nil {
		t.Fatal(err)
	}
}

// hints are the lints that a liberty may give: what it leaves out would help.
var hints = []string{"PENDING no-list", "PENDING unanswered"}

// Whatever liberties the agent takes, alone or all that go together, nobody accuses it, and nobody has a hint but of
// what is left out.
func TestTheLaw(t *testing.T) {
	t.Parallel()
	all := liberties.All(faults.AGUI)
	if len(all) < 25 {
		t.Errorf("there are %d liberties", len(all))
	}
	// Each liberty meets a sixth of the scenarios, and one set of many meets all.
	type draw struct {
		set  []string
		list []*scenarios.Scenario
	}
	many := draw{list: shipped(t)}
	draws := []draw{{[]string{"bare-chunks", "empty-messages"}, many.list}}
	for i, l := range all {
		d := draw{set: []string{l.Name}}
		for j, s := range many.list {
			if (i+j)%6 == 0 {
				d.list = append(d.list, s)
			}
		}
		if proof.Part(i) {
			draws = append(draws, d)
		}
		if i%3 == 0 {
			many.set = append(many.set, l.Name)
		}
	}
	proof.Each(append(draws, many), 4, func(d draw) {
		run := engine(t, "", d.set...).RunAll(context.Background(), d.list, scenarios.Plan{Jobs: 3})
		for _, r := range run.Results {
			for _, f := range r.Findings {
				if f.Class != results.Lint || !slices.Contains(hints, f.Rule+" "+f.Point) {
					t.Errorf("%v in %s: %s %s %s", d.set, r.ID, f.Class, f.Rule, f.Message)
				}
			}
			for _, c := range r.Checks {
				if c.Verdict == results.Fail || c.Verdict == results.Warn {
					t.Errorf("%v in %s: %s %v", d.set, r.ID, c.ID, c.Failure)
				}
			}
			if r.Verdict == results.Error {
				t.Errorf("%v in %s: %s", d.set, r.ID, r.Reason)
			}
		}
	})
}

// To go on after the client has hung up is a server's choice: no scenario blames it.
func TestGoingOnAfterAHangUpIsNoFailure(t *testing.T) {
	e := engine(t, "goes-on-after-hang-up")
	e.StepTimeout = time.Second
	var list []*scenarios.Scenario
	for _, s := range shipped(t) {
		if strings.HasPrefix(s.ID, "hang-up/") {
			list = append(list, s)
		}
	}
	for _, r := range e.RunAll(context.Background(), list, scenarios.Plan{Jobs: 8}).Results {
		if r.Verdict != results.Pass && r.Verdict != results.Lint {
			t.Errorf("%s: %s %s", r.ID, r.Verdict, r.Reason)
		}
	}
}
