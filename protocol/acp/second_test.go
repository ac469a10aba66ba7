package acp_test

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/acp-test/acp-test/agents"
	"github.com/acp-test/acp-test/golden"
	"github.com/acp-test/acp-test/protocol/acp"
	"github.com/acp-test/acp-test/refagent"
	"github.com/acp-test/acp-test/refagent/second"
	"github.com/acp-test/acp-test/scenarios"
	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/transport"
)

var updateFaults = flag.String("update-faults", "",
	"measure what the faults of version 2 that match a regular expression redden, and write refagent/second/reddens.txt")

// engine runs the reference agent in version 2 within this process.
func engine(t *testing.T, fault string, liberties ...string) *scenarios.Engine {
	t.Helper()
	p, err := agents.Shipped("reference-acp-v2")
	if err != nil {
		t.Fatal(err)
	}
	p.Command = []string{os.Args[0], "refagent"} // which is not started
	linger := 100 * time.Millisecond
	e := &scenarios.Engine{Protocol: acp.V2(), Profile: p, Temp: t.TempDir(), Cwd: t.TempDir(), NoTrap: true, NoFurther: true,
		StepTimeout: 10 * time.Second, Linger: &linger, Golden: &golden.Store{Embedded: golden.Shipped()}}
	if fault != "" {
		e.StepTimeout = 2 * time.Second // some never do what is awaited
	}
	e.Connect = func(_ context.Context, log *transcript.Transcript, conn int, l agents.Launch) (*transport.Agent, error) {
		env := map[string]string{}
		for _, kv := range l.Env {
			name, value, _ := strings.Cut(kv, "=")
			env[name] = value
		}
		o := refagent.Options{Getenv: func(name string) string { return env[name] }}
		if err := second.Take(&o, fault, liberties); err != nil {
			return nil, err
		}
		return transport.InProcess(log, conn, func(ctx context.Context, in io.Reader, out io.Writer) error {
			o.In, o.Out = in, out
			return refagent.Run(ctx, o)
		}), nil
	}
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
var own = []string{"background", "items", "negotiation", "opened", "queue", "replay", "turns"}

// red is what is red in a run: rules and checks, with where.
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
		if r.Verdict == scenarios.Error {
			found["error"] = append(found["error"], r.ID+": "+r.Reason)
		}
	}
	return found
}

// fixed run with every fault, so that a rule that blames too much shows.
var fixed = []string{"turns/states", "tool-calls/read", "load/fresh-process"}

// shared are some of the scenarios of both versions, for what else shows.
var shared = []string{"tool-calls/read", "tool-calls/edit", "load/fresh-process", "permission/reject-once", "cancel/tool-running",
	"cancel/mid-stream-at-gate", "resume/silent"}

// The correct agent is red nowhere.
func TestTheCorrectAgentInVersion2(t *testing.T) {
	list := shipped(t, shared...)
	run := engine(t, "").RunAll(context.Background(), list, scenarios.Plan{Jobs: 8})
	for _, r := range run.Results {
		if r.Verdict != scenarios.Pass {
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
	all := second.Liberties()
	if len(all) < 25 {
		t.Errorf("there are %d liberties", len(all))
	}
	each(all, func(l second.Liberty) {
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
		if found := red(run); len(found) > 0 {
			t.Errorf("%s (%s): red are %v", l.Name, l.Summary, found)
		}
	})
}

// telling are the scenarios that each liberty is tried in; ACP_TEST_ALL_FAULTS=1 tries all.
var telling = []string{"turns/two", "turns/requires-action", "replay/start", "background/listed"}

// Each fault is found by what reddens.txt declares, and by nothing else, in the scenarios
// that it names; with ACP_TEST_ALL_FAULTS=1 in the fixed ones too.
func TestEachFaultOfVersion2IsFound(t *testing.T) {
	if *updateFaults != "" {
		measure(t)
		return
	}
	all := second.Faults()
	if len(all) < 60 {
		t.Errorf("there are %d faults", len(all))
	}
	each(all, func(f second.Fault) {
		if _, ok := acp.V2().Rules.Requirement(f.Breaks); !ok {
			t.Errorf("the fault %s breaks %s, which does not exist", f.Name, f.Breaks)
		}
		found := trial(t, f.Name, f.Scenarios)
		for _, name := range f.Reddens {
			id, _, _ := strings.Cut(name, "#")
			if strings.Contains(id, "/") && !everywhere && !slices.Contains(f.Scenarios, id) {
				continue // it is not run
			}
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

// each does something for each of a list, some at a time: most of it is waiting.
func each[T any](list []T, do func(T)) {
	slots := make(chan struct{}, 12)
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

// everywhere: each fault is tried in the fixed scenarios, too, and each liberty in all.
var everywhere = os.Getenv("ACP_TEST_ALL_FAULTS") != ""

// trial runs a fault over scenarios.
func trial(t *testing.T, fault string, ids []string) map[string][]string {
	if everywhere { // else the scenarios that it names have to do
		ids = slices.Concat(ids, fixed)
	}
	list := slices.DeleteFunc(shipped(t, ids...), func(s *scenarios.Scenario) bool { return !slices.Contains(ids, s.ID) })
	found := map[string][]string{}
	for len(list) > 0 { // an agent that does not start is given up after a few
		run := engine(t, fault).RunAll(context.Background(), list, scenarios.Plan{Jobs: 3})
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

const reddens = "../../refagent/second/reddens.txt"

// measure writes what faults redden: where they show, at most three scenarios, and there
// what is red each of two times.
func measure(t *testing.T) {
	which := regexp.MustCompile(*updateFaults)
	var everywhere []string
	for _, s := range shipped(t, shared...) {
		everywhere = append(everywhere, s.ID)
	}
	var mu sync.Mutex
	in, names := map[string][]string{}, map[string][]string{}
	each(second.Faults(), func(f second.Fault) {
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
	out.WriteString("# What each fault turns red, as measured: go test ./protocol/acp -update-faults .\n\n")
	for _, f := range second.Faults() {
		fmt.Fprintf(&out, "%s\n  in %s\n  reddens %s\n", f.Name, strings.Join(in[f.Name], " "), strings.Join(names[f.Name], " "))
	}
	if err := os.WriteFile(reddens, out.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}

// home chooses scenarios in which a fault shows: for each thing that finds it the first,
// rules before checks.
func home(found map[string][]string) (ids []string) {
	names := slices.SortedFunc(maps.Keys(found), func(a, b string) int {
		if x, y := strings.Contains(a, "#"), strings.Contains(b, "#"); x != y {
			if y {
				return -1
			}
			return 1
		}
		return strings.Compare(a, b)
	})
	for _, name := range names {
		where := slices.Sorted(slices.Values(found[name]))
		if len(ids) < 3 && name != "error" && !slices.ContainsFunc(where, func(id string) bool { return slices.Contains(ids, id) }) {
			ids = append(ids, where[0])
		}
	}
	slices.Sort(ids)
	return ids
}

// twice is what is red in both, and with ? what is red in one.
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
