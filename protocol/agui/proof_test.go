package agui_test

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"maps"
	"net"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/acp-test/acp-test/agents"
	"github.com/acp-test/acp-test/golden"
	"github.com/acp-test/acp-test/protocol/agui"
	"github.com/acp-test/acp-test/protocol/agui/endpoint"
	"github.com/acp-test/acp-test/refagent/webagent"
	"github.com/acp-test/acp-test/scenarios"
	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/transport"
)

var updateFaults = flag.String("update-faults", "",
	"measure what the faults that match a regular expression redden, and write refagent/webagent/reddens.txt")

// engine runs the reference agent of AG-UI within this process.
func engine(t *testing.T, fault string, liberties ...string) *scenarios.Engine {
	t.Helper()
	p, err := agents.Shipped("reference-ag-ui")
	if err != nil {
		t.Fatal(err)
	}
	p.Command = []string{os.Args[0]} // which is not started
	e := &scenarios.Engine{Protocol: agui.V1(), Profile: p, Temp: t.TempDir(), Cwd: t.TempDir(), NoTrap: true,
		StepTimeout: 3 * time.Second}
	e.Connect = func(_ context.Context, log *transcript.Transcript, conn int, l agents.Launch) (*transport.Agent, error) {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		env := map[string]string{}
		for _, kv := range l.Env {
			name, value, _ := strings.Cut(kv, "=")
			env[name] = value
		}
		o := webagent.Options{Listener: listener, Dir: l.Dir, Getenv: func(name string) string { return env[name] }}
		if err := o.Take(fault, liberties); err != nil {
			return nil, err
		}
		return transport.InProcessServer(log, conn, endpoint.At("http://"+listener.Addr().String()+"/"),
			func(ctx context.Context) error { return webagent.Serve(ctx, o) }), nil
	}
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

// red is what is red in a run: rules, checks and scenarios, with where.
func red(run scenarios.Run) map[string][]string {
	found := map[string][]string{}
	for _, r := range run.Results {
		for _, f := range r.Findings {
			if f.Class != scenarios.Inconclusive {
				found[f.Rule] = append(found[f.Rule], r.ID)
			}
		}
		for _, c := range r.Checks {
			if c.Verdict == scenarios.Fail || c.Verdict == scenarios.Warn || c.Verdict == scenarios.Lint {
				found[c.ID] = append(found[c.ID], r.ID)
			}
		}
		if r.Failure != nil && r.Verdict == scenarios.Fail {
			found[r.ID] = append(found[r.ID], r.ID)
		}
		if r.Golden != nil && r.Golden.Skipped != "" { // it no longer does what it once did
			found[r.ID+"#golden"] = append(found[r.ID+"#golden"], r.ID)
		}
		if r.Verdict == scenarios.Error {
			found["error"] = append(found["error"], r.ID+": "+r.Reason)
		}
	}
	return found
}

// The correct agent is red nowhere, and says what its goldens have.
func TestTheCorrectAgent(t *testing.T) {
	e := engine(t, "")
	e.Golden, e.GoldenRequired, e.Complete = &golden.Store{Embedded: golden.Shipped()}, true, true
	run := e.RunAll(context.Background(), shipped(t), scenarios.Plan{Jobs: 8})
	if found := red(run); len(found) > 0 || run.Counts.Pass != len(shipped(t)) || len(run.Stale) > 0 {
		for _, r := range run.Results {
			if r.Verdict != scenarios.Pass {
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
	if *updateFaults != "" {
		measure(t)
		return
	}
	all := webagent.Faults()
	if len(all) < 60 {
		t.Errorf("there are %d faults", len(all))
	}
	each(t, all, func(f webagent.Fault) {
		found := trial(t, f.Name, f.Scenarios)
		for _, name := range f.Reddens {
			if found[name] == nil && !strings.HasSuffix(name, "?") {
				t.Errorf("%s: %s is not red; red are %v", f.Name, name, found)
			}
		}
		for name := range found {
			if !slices.Contains(f.Reddens, name) && !slices.Contains(f.Reddens, name+"?") {
				t.Errorf("%s: %s is red and not declared: %v", f.Name, name, found[name])
			}
		}
		if !slices.ContainsFunc(f.Reddens, func(name string) bool { return !strings.HasSuffix(name, "?") }) {
			t.Errorf("%s: nothing surely finds it", f.Name)
		}
	})
}

// fixed run with every fault, so that a rule that blames too much shows.
var fixed = []string{"runs/hello", "tools/read", "runs/two-turns"}

// each does something for each fault, some at a time: most of it is waiting.
func each(t *testing.T, list []webagent.Fault, do func(webagent.Fault)) {
	t.Helper()
	slots := make(chan struct{}, 6)
	var wait sync.WaitGroup
	for _, f := range list {
		slots <- struct{}{}
		wait.Go(func() {
			defer func() { <-slots }()
			do(f)
		})
	}
	wait.Wait()
}

// trial runs a fault over scenarios and the fixed ones.
func trial(t *testing.T, fault string, ids []string) map[string][]string {
	var list []*scenarios.Scenario
	for _, s := range shipped(t) {
		if slices.Contains(ids, s.ID) || slices.Contains(fixed, s.ID) {
			list = append(list, s)
		}
	}
	found := map[string][]string{}
	for len(list) > 0 { // an agent that does not start is given up after a few
		e := engine(t, fault)
		e.Golden = &golden.Store{Embedded: golden.Shipped()}
		run := e.RunAll(context.Background(), list, scenarios.Plan{Jobs: 3})
		for name, where := range red(run) {
			found[name] = append(found[name], where...)
		}
		list = slices.DeleteFunc(list, func(s *scenarios.Scenario) bool {
			return !slices.ContainsFunc(run.Results, func(r scenarios.Result) bool {
				return r.ID == s.ID && strings.HasPrefix(r.Reason, "not tried")
			})
		})
	}
	return found
}

const reddens = "../../refagent/webagent/reddens.txt"

// measure writes what faults redden: where they show among all scenarios, at most four of
// them, and there what is red each of two times.
func measure(t *testing.T) {
	which := regexp.MustCompile(*updateFaults)
	var everywhere []string
	for _, s := range shipped(t) {
		everywhere = append(everywhere, s.ID)
	}
	var mu sync.Mutex
	in, names := map[string][]string{}, map[string][]string{}
	each(t, webagent.Faults(), func(f webagent.Fault) {
		ids, found := f.Scenarios, f.Reddens
		if which.MatchString(f.Name) {
			ids = home(trial(t, f.Name, everywhere))
			found = twice(trial(t, f.Name, ids), trial(t, f.Name, ids))
		}
		mu.Lock()
		defer mu.Unlock()
		in[f.Name], names[f.Name] = ids, found
	})
	var out bytes.Buffer
	out.WriteString("# What each fault turns red, as measured: go test ./protocol/agui -update-faults .\n\n")
	for _, f := range webagent.Faults() {
		fmt.Fprintf(&out, "%s\n  in %s\n  reddens %s\n", f.Name, strings.Join(in[f.Name], " "), strings.Join(names[f.Name], " "))
	}
	if err := os.WriteFile(reddens, out.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}

// home chooses scenarios in which a fault shows: for each thing that finds it the first,
// those with checks of their own before others.
func home(found map[string][]string) (ids []string) {
	names := slices.SortedFunc(maps.Keys(found), func(a, b string) int {
		if x, y := strings.Contains(a, "#"), strings.Contains(b, "#"); x != y {
			return map[bool]int{true: -1, false: 1}[x]
		}
		return strings.Compare(a, b)
	})
	for _, name := range names {
		where := slices.Sorted(slices.Values(found[name]))
		if len(ids) < 4 && !slices.Contains(ids, where[0]) && name != "error" {
			ids = append(ids, where[0])
		}
	}
	slices.Sort(ids)
	return ids
}

// twice marks what was red once of two times.
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

// Whatever liberties the agent takes, alone or all that go together, nobody accuses it.
func TestTheLaw(t *testing.T) {
	all := webagent.Liberties()
	if len(all) < 25 {
		t.Errorf("there are %d liberties", len(all))
	}
	var sets [][]string
	var compatible []string
	for i, l := range all {
		sets = append(sets, []string{l.Name})
		if i%3 == 0 {
			compatible = append(compatible, l.Name)
		}
	}
	sets = append(sets, compatible)
	list := shipped(t)
	slots := make(chan struct{}, 4)
	var wait sync.WaitGroup
	for i, set := range sets {
		// Each liberty meets a sixth of the scenarios, and one set of many meets all.
		var some []*scenarios.Scenario
		for j, s := range list {
			if len(set) > 1 || (i+j)%6 == 0 {
				some = append(some, s)
			}
		}
		slots <- struct{}{}
		wait.Go(func() {
			defer func() { <-slots }()
			run := engine(t, "", set...).RunAll(context.Background(), some, scenarios.Plan{Jobs: 3})
			for _, r := range run.Results {
				for _, f := range r.Findings {
					if f.Class == scenarios.Fail || f.Class == scenarios.Warn {
						t.Errorf("%v in %s: %s %s", set, r.ID, f.Rule, f.Message)
					}
				}
				for _, c := range r.Checks {
					if c.Verdict == scenarios.Fail || c.Verdict == scenarios.Warn {
						t.Errorf("%v in %s: %s %v", set, r.ID, c.ID, c.Failure)
					}
				}
				if r.Verdict == scenarios.Error {
					t.Errorf("%v in %s: %s", set, r.ID, r.Reason)
				}
			}
		})
	}
	wait.Wait()
}
