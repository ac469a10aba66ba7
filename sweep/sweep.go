package sweep

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/acp-test/acp-test/internal/confined"
	"github.com/acp-test/acp-test/internal/glob"
	"github.com/acp-test/acp-test/scenarios"
	"github.com/acp-test/acp-test/transcript"
)

// Sweeper explores what an editor could do in the turns of scenarios. Engine
// is needed, the rest has useful zero values.
type Sweeper struct {
	// Engine runs the schedules. Its goldens are not used; Out must be set.
	Engine *scenarios.Engine
	// Planner says what can be done in the turns of scenarios.
	Planner Planner
	// Jobs is how many schedules run at once; 0 is the number of CPUs.
	Jobs int
	// Budget bounds the exploration, and once more half of that what is done
	// about its findings; 0 is no bound.
	Budget time.Duration
	// Points and Actions are globs over the names or states of points and the
	// names of actions; none means all.
	Points, Actions []string
	// Max bounds the number of schedules; 0 is no bound.
	Max int
	// Reuse runs schedules one after another in one process of the agent, each in
	// sessions of its own, where they leave nothing else behind. What comes of it
	// is looked for in a process for each.
	Reuse bool
	// Confirm is how often a finding is run again; 0 means 5.
	Confirm int
	// Shrink bounds how long one finding is made shorter; 0 means 20 s.
	Shrink time.Duration
	// Repro is the folder for the files that reproduce findings; "" writes
	// none.
	Repro string
	// Found and Progress are told of each new finding and of each schedule.
	Found    func(Finding)
	Progress func(Progress)
}

// Progress says how far a sweep is.
type Progress struct {
	Phase       string // baseline, explore, confirm, shrink
	Done, Total int
	Now         string // the schedule that has just ended
	Verdict     scenarios.Verdict
}

// Finding is what several schedules showed: one rule, broken in one situation
// by one action.
type Finding struct {
	Signature
	Class    scenarios.Verdict
	Message  string
	Scenario string // that was swept
	Point    string
	// Seen is how many schedules showed it; Hits of Runs is how often its
	// representative did when run again.
	Seen, Hits, Runs int
	// Alone of AloneRuns is how often a race was seen again while nothing else
	// ran.
	Alone, AloneRuns int
	// Known is why it is expected, by the engine's known failures of the
	// scenario that was swept; "" if it is not. A known finding is neither run
	// again nor made shorter.
	Known string
	// File is the repro, Lines the length of its script.
	File  string
	Lines int

	schedule Schedule
	result   scenarios.Result
}

// Signature tells findings apart.
type Signature struct {
	// Rule is the id of a rule, or the slug of a check of the schedule.
	Rule, State, Action string
}

func (s Signature) String() string {
	if s.Action == "" {
		return s.Rule + " in the baseline"
	}
	return fmt.Sprintf("%s: %s, %s", s.Rule, s.State, s.Action)
}

// Outcome is a sweep's result: the run for reports, and the findings.
type Outcome struct {
	Run      scenarios.Run
	Findings []Finding
	// Notes say what was not swept, and why.
	Notes []string
}

// sweep is the state of one sweep.
type sweep struct {
	*Sweeper
	engine scenarios.Engine
	slots  chan struct{}
	// whole is the caller's context: the end of the budget starts nothing new,
	// but cuts nothing off that runs.
	whole context.Context

	mu        sync.Mutex
	cells     []scenarios.SweepCell
	findings  map[Signature]*Finding
	order     []Signature
	baseline  map[string]map[string]bool // scenario: rules its baseline breaks
	silent    map[string]int             // state and action: schedules that ran into a deadline
	explored  int
	unsure    int
	skipped   int
	pruned    int
	given     int // planned, but pruned while exploring
	errors    []scenarios.Result
	baselines []scenarios.Result
	notes     []string
}

func newSweep(w *Sweeper) *sweep {
	s := &sweep{Sweeper: w, whole: context.Background(), engine: *w.Engine, findings: map[Signature]*Finding{},
		baseline: map[string]map[string]bool{}, silent: map[string]int{}}
	s.engine.Golden, s.engine.Update, s.engine.Step = nil, false, nil
	jobs := w.Jobs
	if jobs <= 0 {
		jobs = runtime.NumCPU()
	}
	s.slots = make(chan struct{}, jobs)
	return s
}

// Run sweeps scenarios. When ctx ends or the budget is used up, it stops
// cleanly and says what was not explored.
func (w *Sweeper) Run(ctx context.Context, list []*scenarios.Scenario) (Outcome, error) {
	if w.Engine.Out == "" {
		return Outcome{}, errors.New("a sweep needs a folder for transcripts")
	}
	s := newSweep(w)
	s.whole = ctx
	began := time.Now()
	explore, stop := ctx, context.CancelFunc(func() {})
	if w.Budget > 0 {
		explore, stop = context.WithTimeoutCause(ctx, w.Budget, errBudget)
	}
	defer stop()

	schedules, err := s.plan(explore, list)
	if err != nil {
		return Outcome{}, err
	}
	s.explore(explore, schedules)
	settle, end := ctx, context.CancelFunc(func() {})
	if w.Budget > 0 {
		settle, end = context.WithDeadlineCause(ctx, began.Add(w.Budget+w.Budget/2), errBudget)
	}
	defer end()
	findings := s.reduce(settle)
	return s.outcome(ctx, findings, schedules, began), nil
}

var errBudget = errors.New("the budget is used up")

// plan runs the baselines and lists all schedules in the order in which they
// will run.
func (s *sweep) plan(ctx context.Context, list []*scenarios.Scenario) ([]Schedule, error) {
	var bases []Base
	commands := s.engine.Protocol.CommandTable()
	for _, sc := range list {
		text, err := sc.Source()
		if err != nil {
			return nil, fmt.Errorf("reading scenario %s: %w", sc.ID, err)
		}
		b, notes := s.Planner.Base(commands, sc.ID, text)
		bases, s.notes = append(bases, b), append(s.notes, notes...)
	}
	s.each(ctx, len(bases), func(i int) { s.observe(ctx, bases[i], list[i]) })
	var all []Schedule
	for i, b := range bases {
		more, same := b.Schedules(bases, Wanted{
			Action: func(name string) bool { return s.wanted(s.Actions, name) },
			Point:  func(name, state string) bool { return s.wanted(s.Points, name, state) },
			Drawn:  func(turn int) *rand.Rand { return s.drawn(list[i].ID, turn) },
		})
		all = append(all, more...)
		s.prune(same)
	}
	s.sort(all)
	if s.Max > 0 && len(all) > s.Max {
		s.skipped += len(all) - s.Max
		all = all[:s.Max]
	}
	return all, nil
}

// sort puts schedules into the order in which they run. Each action is tried
// once in each situation before any is tried twice; within that the likeliest
// come first, and among equals the seed decides.
func (s *sweep) sort(all []Schedule) {
	r := rand.New(rand.NewPCG(uint64(s.engine.Seed), 0x5eed))
	r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	likely := func(a, b Schedule) int { return a.Rank - b.Rank }
	slices.SortStableFunc(all, likely)
	tried := map[[3]string]int{}
	for i := range all {
		k := [3]string{all[i].State, all[i].Action}
		if all[i].Apart {
			k[2] = all[i].Scenario
		}
		all[i].round = tried[k]
		tried[k]++
	}
	slices.SortStableFunc(all, func(a, b Schedule) int {
		if d := a.round - b.round; d != 0 {
			return d
		}
		return likely(a, b)
	})
}

// observe runs the baseline of one scenario and reads what happens in the turns
// that can be swept.
func (s *sweep) observe(ctx context.Context, b Base, sc *scenarios.Scenario) {
	e := s.engine
	e.Out = filepath.Join(s.engine.Out, "sweep", "baseline")
	res, began := s.run(ctx, s.whole, e, sc)
	if !began || s.whole.Err() != nil {
		return
	}
	for k, v := range res.Artifacts {
		res.Artifacts[k] = "sweep/baseline/" + v
	}
	s.progress("baseline", 0, 0, sc.ID, res.Verdict)
	broken := map[string]bool{}
	for _, f := range found(res) {
		broken[f.rule] = true
		s.report(Signature{Rule: f.rule}, f, Schedule{Scenario: sc.ID}, res)
	}
	s.mu.Lock()
	s.baseline[sc.ID] = broken
	s.baselines = append(s.baselines, res)
	s.mu.Unlock()
	if res.Verdict == scenarios.Skip || res.Verdict == scenarios.Error {
		return
	}
	dir := filepath.Join(e.Out, filepath.FromSlash(sc.ID))
	t, err := readTranscript(dir)
	if err != nil {
		s.note("%s: its baseline cannot be read: %v", sc.ID, err)
		return
	}
	diff, _ := confined.ReadBelow(dir, "workspace.diff")
	for _, note := range b.Observe(t, effects(string(diff))) {
		s.note("%s", note)
	}
}

// drawn is what a turn of a scenario draws from: the seed decides, and not what
// other turns have drawn.
func (s *sweep) drawn(id string, turn int) *rand.Rand {
	h := fnv.New64a()
	fmt.Fprintf(h, "%s %d", id, turn)
	return rand.New(rand.NewPCG(uint64(s.engine.Seed), h.Sum64()))
}

// effects reads which files a run changed out of the difference of its
// workspace.
func effects(diff string) []string {
	var out []string
	for line := range strings.Lines(diff) {
		for _, p := range []string{"new file ", "changed ", "deleted "} {
			if name, ok := strings.CutPrefix(strings.TrimRight(line, "\n"), p); ok {
				out = append(out, strings.Fields(p)[0]+" "+name)
			}
		}
	}
	return out
}

// readTranscript loads the transcript in the folder of a scenario.
func readTranscript(dir string) (*transcript.Transcript, error) {
	f, err := confined.OpenBelow(dir, "transcript.jsonl")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return transcript.Load(f, nil)
}

// wanted reports whether any of the names matches one of the globs.
func (s *sweep) wanted(globs []string, names ...string) bool {
	return len(globs) == 0 || slices.ContainsFunc(globs, func(g string) bool {
		return slices.ContainsFunc(names, func(n string) bool { return Matches(g, n) })
	})
}

// Matches reports whether a glob (* and ?) matches the name of a point or an
// action. A slash is a character like any other.
func Matches(pattern, name string) bool { return glob.Text(pattern, name) }

// each calls f for 0 to n-1, as many at once as there are slots, in order.
func (s *sweep) each(ctx context.Context, n int, f func(i int)) {
	var wait sync.WaitGroup
	next := make(chan int)
	for range cap(s.slots) * 4 { // a schedule that only lingers holds no slot
		wait.Add(1)
		go func() {
			defer wait.Done()
			for i := range next {
				f(i)
			}
		}()
	}
	for i := range n {
		if ctx.Err() != nil {
			break
		}
		next <- i
	}
	close(next)
	wait.Wait()
}

// run runs one scenario when there is a slot for it, unless start has ended by
// then.
func (s *sweep) run(
	start, ctx context.Context, e scenarios.Engine, sc *scenarios.Scenario,
) (res scenarios.Result, began bool) {
	s.slots <- struct{}{}
	var once sync.Once
	give := func() { once.Do(func() { <-s.slots }) }
	defer give()
	if start.Err() != nil {
		return res, false
	}
	// What is left after listening is short: waiting for a slot again would
	// take longer, and the agent would still be there.
	e.Slot = func(string) func() { give(); return func() {} }
	return e.Run(ctx, sc), true
}

func (s *sweep) note(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.notes = append(s.notes, fmt.Sprintf(format, args...))
}

func (s *sweep) prune(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pruned += n
}

func (s *sweep) progress(phase string, done, total int, now string, v scenarios.Verdict) {
	if s.Progress != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.Progress(Progress{phase, done, total, now, v})
	}
}
