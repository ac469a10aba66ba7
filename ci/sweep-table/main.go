// Sweep-table prints the tables of docs/sweeping.md: for each fault, the number of schedules that a sweep tries until
// it finds the fault.
//
//	go run ./ci/sweep-table [FLAGS] [FAULT…]
//
// Without fault names, it sweeps for the faults that are races. The agent runs within this process, unless the fault
// concerns the agent's own process.
package main

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/acp-test/acp-test/agents"
	"github.com/acp-test/acp-test/ci/inside"
	"github.com/acp-test/acp-test/ci/must"
	"github.com/acp-test/acp-test/internal/canary"
	"github.com/acp-test/acp-test/internal/lists"
	"github.com/acp-test/acp-test/internal/process"
	"github.com/acp-test/acp-test/protocol/acp"
	"github.com/acp-test/acp-test/protocol/acp/grammar"
	"github.com/acp-test/acp-test/protocol/acp/schedules"
	"github.com/acp-test/acp-test/protocol/agui"
	aguigrammar "github.com/acp-test/acp-test/protocol/agui/grammar"
	aguischedules "github.com/acp-test/acp-test/protocol/agui/schedules"
	"github.com/acp-test/acp-test/refagent"
	"github.com/acp-test/acp-test/refagent/faults"
	"github.com/acp-test/acp-test/scenarios"
	"github.com/acp-test/acp-test/scenarios/results"
	"github.com/acp-test/acp-test/sweep"
)

// search is the configuration of a search for faults.
type search struct {
	protocol
	suites []string
	max    int
	jobs   int
	step   time.Duration
	linger time.Duration
	points []string
	choice sweep.Choice
	lints  bool
	// sessions is the number of random sessions to draw instead of sweeping schedules; 0 means to sweep.
	sessions int
}

// protocol is a protocol with the functions that a search for its faults needs.
type protocol struct {
	name, profile string
	scenarios     func() *scenarios.Protocol
	planner       func() *sweep.Planner
	generator     func() *sweep.Generator
	connect       func(extra ...string) inside.Connecting
}

var protocols = []protocol{
	{faults.ACPv1, "reference", acp.V1, schedules.V1, grammar.V1, inside.Connect},
	{faults.ACPv2, "reference-acp-v2", acp.V2, schedules.V2, grammar.V2, inside.Connect},
	{faults.AGUI, "reference-ag-ui", agui.V1, aguischedules.V1, aguigrammar.V1, func(extra ...string) inside.Connecting {
		return inside.ConnectWeb("", "", extra...)
	}},
}

// choices maps the values of -choice to the ways of drawing an order of acts.
var choices = map[string]sweep.Choice{"guided": sweep.Guided, "priority": sweep.ByPriority, "uniform": sweep.Uniformly}

// first is the first finding of a sweep for one fault.
type first struct {
	number    int // number of the schedule, from 1; 0: nothing found
	signature sweep.Signature
	took      time.Duration
	key       string // the session's key
}

func main() {
	switch word := append(os.Args, "")[1]; word {
	case "keeper": // the keeper of the folder for temporary files
		os.Exit(process.KeeperMain(os.Args[2:]))
	case "canary": // the MCP server of the sessions
		os.Exit(canary.Main(context.Background(), os.Args[2:], os.LookupEnv, os.Stdin, os.Stdout, os.Stderr))
	case "refagent":
		must.Main(word, 1, func() { agent(os.Args[2:]) })
	default:
		must.Main("sweep-table", 2, table)
	}
}

// table prints the table that the flags ask for.
func table() {
	var s search
	suites := flag.String("suites", "prompt-turn,tool-calls", "the suites that are swept")
	flag.IntVar(&s.max, "max", 2000, "the largest number of schedules to try")
	flag.IntVar(&s.jobs, "jobs", 8, "the number of schedules to run at once")
	flag.DurationVar(&s.step, "step-timeout", 2*time.Second, "the timeout of each line")
	flag.DurationVar(&s.linger, "linger", 100*time.Millisecond, "how long the agent must be silent at the end")
	seeds := flag.Int("seeds", 1, "the number of seeds; the table shows their median")
	points := flag.String("points", "", "only points or situations that match the glob")
	flag.BoolVar(&s.lints, "lints", false, "count a lint as a finding")
	choice := flag.String("choice", "guided", "how orders of acts are drawn: guided, priority or uniform")
	flag.IntVar(&s.sessions, "sessions", 0, "draw `N` sessions that fit the agent instead, as acp-test explore does")
	draw := flag.Int("draw", 0, "draw `N` of all faults instead of naming them")
	drawSeed := flag.Uint64("draw-seed", 1, "the seed for drawing faults")
	name := flag.String("protocol", faults.ACPv1, "the protocol")
	flag.Parse()
	i := slices.IndexFunc(protocols, func(p protocol) bool { return p.name == *name })
	if i < 0 {
		must.Fail("there is no protocol %q", *name)
	}
	s.protocol = protocols[i]
	if *points != "" {
		s.points = []string{*points}
	}
	s.choice = choices[*choice]
	s.suites = strings.Split(*suites, ",")
	names := flag.Args()
	if *draw > 0 {
		names = s.drawn(*draw, *drawSeed)
	}
	if len(names) == 0 {
		for _, f := range faults.All(s.name) {
			if f.Swept() {
				names = append(names, f.Name)
			}
		}
	}
	fmt.Print("| fault | first found in schedule | by | after |\n|---|---|---|---|\n")
	for _, name := range names {
		var found []first
		for seed := range *seeds {
			found = append(found, s.run(name, int64(seed+1)))
		}
		fmt.Println(s.row(name, found))
		for _, f := range found {
			fmt.Fprint(os.Stderr, " ", f.number)
		}
		fmt.Fprintln(os.Stderr)
	}
}

// drawn returns n faults, drawn at random.
func (s search) drawn(n int, seed uint64) (names []string) {
	all := faults.All(s.name)
	chosen := rand.New(rand.NewPCG(seed, 0)).Perm(len(all))[:min(n, len(all))]
	return lists.Map(chosen, func(i int) string { return all[i].Name })
}

// agent runs the reference agent as the main function of a separate process.
func agent(args []string) {
	o := refagent.Options{In: os.Stdin, Out: os.Stdout, Getenv: os.Getenv}
	must.Do(inside.Configure(&o, args...))
	must.Do(refagent.Run(context.Background(), o))
}

// row returns one line of the table: of the sweeps with different seeds, the one with the median number of schedules.
func (s search) row(name string, found []first) string {
	last := max(s.max, s.sessions) + 1
	slices.SortFunc(found, func(a, b first) int {
		rank := func(f first) int {
			if f.number == 0 {
				return last
			}
			return f.number
		}
		return rank(a) - rank(b)
	})
	f := found[len(found)/2]
	switch {
	case s.sessions > 0 && f.number == 0:
		return fmt.Sprintf("| `%s` | not in %d | | | %s", name, s.sessions, f.took.Round(time.Second))
	case s.sessions > 0:
		return fmt.Sprintf("| `%s` | %d | %s | %s | %s", name, f.number, f.signature.Rule, f.key, f.took.Round(time.Second))
	case f.signature.Action == "" && f.signature.Rule != "":
		return fmt.Sprintf("| `%s` | as it is | %s | | %s", name, f.signature.Rule, f.took.Round(time.Second))
	case f.number == 0:
		return fmt.Sprintf("| `%s` | not in %d | | | %s", name, s.max, f.took.Round(time.Second))
	}
	return fmt.Sprintf("| `%s` | %d | %s | %s, %s | %s", name, f.number, f.signature.Rule, f.signature.Action,
		f.signature.State, f.took.Round(time.Second))
}

// run sweeps an agent that has one fault, until a finding counts, and returns this finding. The name "none" means no
// fault.
func (s search) run(fault string, seed int64) first {
	f, ok := faults.Find(s.name, fault)
	if !ok && fault != "none" {
		must.Fail("there is no fault %q", fault)
	}
	dir := must.Get(os.MkdirTemp("", "sweep-table"))
	defer os.RemoveAll(dir)
	e := s.engine(dir, f, seed)
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	w := &sweep.Sweeper{Engine: e, Planner: s.planner(), Jobs: s.jobs, Max: s.max, Points: s.points, Choice: s.choice}
	counts := func(class results.Verdict) bool { return class != results.Lint || s.lints }
	w.Found = func(_ sweep.Signature, class results.Verdict) {
		if counts(class) {
			stop()
		}
	}
	began := time.Now()
	swept, err := s.search(ctx, w)
	if ctx.Err() == nil {
		must.Do(err)
		if swept.Run.Sweep.Explored == 0 {
			must.Fail("nothing was swept: %s", strings.Join(swept.Notes, "; "))
		}
	}
	s.tell(fault, swept)
	for _, f := range swept.Findings {
		fmt.Fprintln(os.Stderr, sweep.Describe(f))
	}
	out := first{took: time.Since(began)}
	for _, f := range swept.Findings {
		if counts(f.Class) && (out.signature.Rule == "" || f.First < out.number) {
			out.number, out.signature, out.key = f.First, f.Signature, f.Key()
		}
	}
	return out
}

// search runs the sweep. If s.sessions is set, it instead calibrates the agent and draws sessions that fit the agent.
func (s search) search(ctx context.Context, w *sweep.Sweeper) (sweep.Outcome, error) {
	if s.sessions == 0 {
		return w.Run(ctx, must.Get(s.scenarios().Shipped(s.suites...)))
	}
	w.Max = s.sessions
	g, _, err := w.Calibrate(ctx, s.generator(), "", "")
	if err != nil {
		return sweep.Outcome{}, err
	}
	return w.Explore(ctx, g, nil)
}

// tell prints to stderr, for a search that drew sessions, how many sessions ran for a fault, and their coverage.
func (s search) tell(fault string, swept sweep.Outcome) {
	if m := swept.Run.Sweep; s.sessions > 0 && m != nil {
		fmt.Fprintf(os.Stderr, "%s: %d sessions, %d skipped, %d inconclusive, %d of %d pairs\n", fault, m.Explored, m.Skipped,
			m.Inconclusive, m.PairsTried, m.Pairs)
	}
	if fault == "none" {
		fmt.Fprintln(os.Stderr, strings.Join(swept.Notes, "\n"))
	}
}

// engine returns an engine that uses the folder dir to run the agent with a fault. The zero value of f means no
// fault.
func (s search) engine(dir string, f faults.Fault, seed int64) *scenarios.Engine {
	self := must.Get(os.Executable()) // the profile needs the path; nothing starts it
	profile := must.Get(agents.Shipped(s.profile))
	var extra []string
	if f.Name != "" {
		extra = []string{"--fault", f.Name}
	}
	e := &scenarios.Engine{Protocol: s.scenarios(), Profile: profile, Self: self, Cwd: dir, Host: os.Environ(), Temp: dir,
		Out: filepath.Join(dir, "out"), Seed: seed, StepTimeout: s.step, Linger: &s.linger}
	if f.Process {
		e.ExtraArgs = extra
	} else {
		e.Connect = s.connect(extra...)
	}
	return e
}
