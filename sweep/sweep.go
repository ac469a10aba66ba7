package sweep

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"iter"
	"math/rand/v2"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/acp-test/acp-test/internal/confined"
	"github.com/acp-test/acp-test/internal/glob"
	"github.com/acp-test/acp-test/internal/slots"
	"github.com/acp-test/acp-test/scenarios"
	"github.com/acp-test/acp-test/scenarios/results"
	"github.com/acp-test/acp-test/scenarios/verdict"
	"github.com/acp-test/acp-test/transcript"
)

// Sweeper tries what an editor could do during the turns of scenarios. Engine
// is required. The zero values of the other fields are useful defaults.
type Sweeper struct {
	// Engine runs the schedules. Its goldens are ignored. Its Out must be set.
	Engine *scenarios.Engine
	// Planner describes what an editor can do in the turns of scenarios.
	Planner *Planner
	// Jobs is how many schedules run at once; 0 means the number of CPUs.
	Jobs int
	// Budget is the maximum time of the whole command, from Engine.Began on:
	// learning, baselines, exploring and work on findings. At least half of it is
	// for exploring and work on findings. 0 means no limit.
	Budget time.Duration
	// Points has globs for the names or states of points. Actions has globs for
	// the names of actions. An empty list selects all.
	Points, Actions []string
	// Max is the maximum number of schedules; 0 means no limit.
	Max int
	// Reuse runs several schedules in one agent process, one after the other and
	// each in its own sessions, if they leave no other traces. If a process shows
	// a finding, its schedules run again in separate processes.
	Reuse bool
	// Choice selects how orders of acts are drawn.
	Choice Choice
	// Shard selects one part of the schedules; nil selects all.
	Shard *Part
	// Confirm is how many times the reported script of a finding runs; 0 means
	// 20.
	Confirm int
	// Shrink limits the time to shorten one finding; 0 means a quarter of Budget,
	// at least 20 s.
	Shrink time.Duration
	// Repro is the folder for the scenario files that reproduce findings. If it is
	// "", no files are written.
	Repro string
	// Command returns the command line that runs a file with the settings of the
	// sweep. nil means "acp-test run FILE".
	Command func(file string) string
	// Twice runs each drawn session twice. Write is the folder for the shortest
	// sessions that cover pairs; "" means that none are written.
	Twice bool
	Write string
	// Found is called with each new signature. Progress is called after each
	// schedule.
	Found    func(Signature, results.Verdict)
	Progress func(Progress)
}

// sweep is the state of one sweep.
type sweep struct {
	*Sweeper
	engine scenarios.Engine
	// hasty is the engine for drawn sessions; it shortens waits. patient is the
	// set of rules that runs with full waits have shown.
	hasty   scenarios.Engine
	patient map[string]bool
	all     slots.Slots // for exploring
	slots   slots.Slots // for confirming and shrinking
	crowd   slots.Slots // more than the processors have time for
	// whole ends with the budget, a little later than the context for settling.
	// In between, nothing new starts, but running scenarios may end.
	whole context.Context

	mu        sync.Mutex
	cells     []results.SweepCell
	seen      []*sighting
	told      map[Signature]bool
	baseline  map[string]map[string]bool // scenario -> rules that its baseline violates
	silent    map[string]int             // state and action -> number of schedules that timed out
	explored  int
	unsure    int
	pruned    int
	given     int // listed schedules that were skipped while exploring
	baselines []results.Result
	notes     []string
	noModel   string // advice if no baseline reached the model; else ""
	bases     []*Script
	cover     *coverage
	orders    int // number of drawn orders that have ended
	ran       []ranSession
	twice     int      // number of sessions that ran twice
	chance    []string // differences between their two runs
}

func newSweep(ctx context.Context, w *Sweeper) *sweep {
	s := &sweep{Sweeper: w, whole: ctx, engine: *w.Engine, told: map[Signature]bool{},
		baseline: map[string]map[string]bool{}, silent: map[string]int{}, cover: newCoverage()}
	s.engine.Golden, s.engine.Update, s.engine.Step, s.engine.Folder = nil, false, nil, nil
	s.engine.AskMode = ""     // a schedule never runs in another mode
	s.engine.NoFurther = true // schedules end with a turn already
	s.hasty, s.patient = s.engine.Doubting(), map[string]bool{}
	jobs := cmp.Or(max(w.Jobs, 0), runtime.NumCPU())
	s.all, s.slots, s.crowd = slots.New(ctx, max(w.Jobs, 0)), slots.New(ctx, jobs), slots.New(ctx, crowded*jobs)
	return s
}

// Run sweeps scenarios. When ctx ends or the budget is used up, Run stops
// cleanly and notes what it did not explore.
func (w *Sweeper) Run(ctx context.Context, list []*scenarios.Scenario) (Outcome, error) {
	if w.Engine.Out == "" {
		return Outcome{}, errors.New("a sweep needs a folder for transcripts")
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	s := newSweep(ctx, w)
	temp, err := s.engine.MakeTemp()
	if err != nil {
		return Outcome{}, err
	}
	defer temp.Close()
	began := time.Now()
	half := func() {}
	if s.Budget > 0 {
		half = s.limit(s.Learning(began))
	}
	schedules, err := s.plan(s.whole, list)
	cut := s.whole.Err() != nil
	if half(); err != nil {
		return Outcome{}, err
	}
	if n := len(list) - len(s.baselines); n > 0 && cut && ctx.Err() == nil {
		s.note("%d of %d scenarios are not swept: their plain runs did not end in time; raise the budget", n, len(list))
	}
	planned := time.Now()
	if s.modelless() {
		schedules = nil
	}
	explore, settle, done := s.budgeted(ctx)
	defer done()
	s.explore(explore, schedules)
	explored := time.Now()
	findings := s.reduce(settle)
	out := s.outcome(ctx, findings, schedules, began)
	m := out.Run.Sweep
	m.Baselines, m.Exploring, m.Settling = planned.Sub(began), explored.Sub(planned), time.Since(explored)
	return out, nil
}

// plan runs the baselines and lists all schedules in the order in which they will
// run.
func (s *sweep) plan(ctx context.Context, list []*scenarios.Scenario) ([]Schedule, error) {
	var bases []*Script
	commands := s.engine.Protocol.CommandTable()
	for _, sc := range list {
		text, err := sc.Source()
		if err != nil {
			return nil, fmt.Errorf("reading scenario %s: %w", sc.ID, err)
		}
		b, notes := s.Planner.Base(commands, sc.ID, text)
		bases, s.notes = append(bases, b), append(s.notes, notes...)
	}
	each(ctx, s, numbers(bases), func(i int) { s.observe(ctx, bases[i], list[i]) })
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
	s.bases = bases
	return arranged(all, s.engine.Seed), nil
}

// modelless reports whether no unchanged scenario reached the model server. In
// that case the sweep tries nothing and has no findings, because nothing is
// known about the agent's turns.
func (s *sweep) modelless() bool {
	run := s.engine.NewRun()
	run.Results = s.baselines
	verdict.WithoutModel(&run)
	if s.noModel = run.NoModel; s.noModel != "" {
		s.seen, s.bases = nil, nil
	}
	return s.noModel != ""
}

// observe runs the baseline of one scenario and reads its turns that can be
// swept.
func (s *sweep) observe(ctx context.Context, b *Script, sc *scenarios.Scenario) {
	e := s.engine
	e.Out = filepath.Join(s.engine.Out, "sweep", "baseline")
	if text := b.Instead(); text != nil {
		alone, err := e.Protocol.Parse(sc.ID, sc.File, text)
		if err != nil {
			s.note("%s is not swept: %v", sc.ID, err)
			return
		}
		sc = alone
		e.StepTimeout = min(cmp.Or(e.StepTimeout, instead), instead)
	}
	res, began := run(ctx, s.whole, s.all, e, sc)
	if !began || s.whole.Err() != nil {
		return
	}
	for k, v := range res.Artifacts {
		res.Artifacts[k] = "sweep/baseline/" + v
	}
	s.progress("baseline", 0, 0, sc.ID, res.Verdict)
	if b.Instead() != nil && res.Failure != nil {
		s.note("%s is not swept: its script acts during turns, and without those acts %s", sc.ID, oneLine(res.Failure))
		return
	}
	broken := map[string]bool{}
	for _, f := range found(res) {
		broken[f.rule] = true
		s.report(f, Schedule{Scenario: sc.ID}, res)
	}
	s.mu.Lock()
	s.baseline[sc.ID] = broken
	s.baselines = append(s.baselines, res)
	s.mu.Unlock()
	if res.Verdict == results.Skip || res.Verdict == results.Error {
		s.note("%s is not swept: %s", sc.ID, res.Reason)
		return
	}
	t, effects, err := logged(e.Out, sc.ID)
	if err != nil {
		s.note("%s: its baseline cannot be read: %v", sc.ID, err)
		return
	}
	for _, note := range b.Observe(t, effects) {
		s.note("%s", note)
	}
}

// drawn returns the random number generator for a turn. It depends only on the
// seed, the scenario and the turn.
func (s *sweep) drawn(id string, turn int) *rand.Rand {
	h := fnv.New64a()
	fmt.Fprintf(h, "%s %d", id, turn)
	return rand.New(rand.NewPCG(uint64(s.engine.Seed), h.Sum64()))
}

// logged reads the transcript of a run and the list of files that the run
// changed. id is the path of the run's folder below out.
func logged(out, id string) (*transcript.Transcript, []Effect, error) {
	dir := filepath.Join(out, filepath.FromSlash(id))
	f, err := confined.OpenBelow(dir, "transcript.jsonl")
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	diff, _ := confined.ReadBelow(dir, "workspace.diff")
	t, err := transcript.Load(f, nil)
	return t, effects(string(diff)), err
}

// wanted reports whether one of the globs matches one of the names, or globs is
// empty.
func (s *sweep) wanted(globs []string, names ...string) bool {
	return len(globs) == 0 || slices.ContainsFunc(globs, func(g string) bool {
		return slices.ContainsFunc(names, func(n string) bool { return Matches(g, n) })
	})
}

// Matches reports whether a glob (* and ?) matches the name of a point or an
// action. A slash is an ordinary character.
func Matches(pattern, name string) bool { return glob.Text(pattern, name) }

// numbers yields the indexes of a list.
func numbers[T any](list []T) iter.Seq[int] {
	return func(yield func(int) bool) {
		for i := range list {
			if !yield(i) {
				return
			}
		}
	}
}

// each calls f for each item of list, several at once, starting in order. It
// makes more calls at once than there are slots, because a schedule in its
// final wait holds no slot.
func each[T any](ctx context.Context, s *sweep, list iter.Seq[T], f func(T)) {
	var wait sync.WaitGroup
	next := make(chan T)
	for range cap(s.all) * 4 {
		wait.Go(func() {
			for one := range next {
				f(one)
			}
		})
	}
	for one := range list {
		if ctx.Err() != nil {
			break
		}
		next <- one
	}
	close(next)
	wait.Wait()
}

// run runs one scenario as soon as a slot is free, unless start has ended by
// then.
func run(
	start, ctx context.Context, s slots.Slots, e scenarios.Engine, sc *scenarios.Scenario,
) (res results.Result, began bool) {
	if !s.Take(start) {
		return res, false
	}
	give := sync.OnceFunc(s.Give)
	defer give()
	if start.Err() != nil {
		return res, false
	}
	// Little work follows the final wait, but the agent still exists. So the run
	// does not wait for a slot again.
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

func (s *sweep) progress(phase string, done, total int, now string, v results.Verdict) {
	if s.Progress != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.Progress(Progress{phase, done, total, now, v})
	}
}
