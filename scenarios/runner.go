package scenarios

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/acp-test/acp-test/agents"
	"github.com/acp-test/acp-test/internal/evidence"
	"github.com/acp-test/acp-test/internal/lists"
	"github.com/acp-test/acp-test/internal/process"
	"github.com/acp-test/acp-test/internal/slots"
	"github.com/acp-test/acp-test/scenarios/results"
	"github.com/acp-test/acp-test/scenarios/verdict"
	"github.com/acp-test/acp-test/transport"
)

// Plan determines which scenarios of a list run, in which order, how many times, and how many at once.
type Plan struct {
	// Jobs is how many scenarios run at once. 0 starts with the number of processors and raises it, up to 16, while
	// processors are idle.
	Jobs int
	// Repeat is how many times each scenario runs; 0 means once.
	Repeat int
	// UntilFail repeats the scenarios until one fails, at most Repeat times. If Repeat is 0, there is no limit.
	UntilFail bool
	// FailFast stops the run after the first fail or error.
	FailFast bool
	// Shard selects part Index of Of of the list; nil selects all. Durations are the scenarios' expected run times; they
	// divide the list into parts of equal time. Durations may be nil, and must be the same for all parts.
	Shard     *results.Shard
	Durations map[string]time.Duration
	// Order lists the ids of scenarios to run first, in this order. Results keep the order of the list.
	Order []string
	// Budget is the time after which no scenario is started; 0 means no limit. A scenario that would end later according
	// to Durations is not started either, unless it is the first.
	Budget time.Duration
	// Strict makes an inconclusive scenario fail the run.
	Strict bool
	// Patient gives each wait its full timeout. By default, a wait is shortened if another wait of its kind timed out
	// before; its miss is then inconclusive.
	Patient bool
	// GiveUp, if set, reports whether a scenario may be skipped. Such scenarios are skipped if startTries other
	// scenarios demanded a login or reached no model, and no scenario has reached a model.
	GiveUp func(*Scenario) bool
	// Perturb, if set, returns the perturbation of a scenario in a round, counted from 1.
	Perturb func(id string, round int) Perturbation
	// Started and Finished are called before and after each scenario.
	Started  func(id string)
	Finished func(results.Result)
}

// startTries is how many scenarios may fail to start the agent before RunAll skips the others, because each would
// cost a timeout. With Plan.GiveUp, it is also how many may fail to log in or to reach the model.
const startTries = 3

// transcriptMemory is how many bytes the transcripts of all running scenarios keep in memory together; the rest is on
// disk.
const transcriptMemory = 48 << 20

// RunAll runs scenarios and returns the results and their summary. The results are in the order of the repeats, and
// within a repeat in the order of the list. When ctx ends, RunAll stops and summarizes the finished scenarios.
func (e *Engine) RunAll(ctx context.Context, list []*Scenario, plan Plan) results.Run {
	run := e.NewRun()
	run.Strict = plan.Strict
	run.Notes = append(run.Notes, e.renamed()...)
	if plan.Shard != nil {
		unclaimed, removed := e.unclaimed(list)
		run.Notes = append(run.Notes, removed...)
		run.Shard = &results.Shard{Index: plan.Shard.Index, Of: plan.Shard.Of, Hash: Hash(list), List: idsOf(list),
			Expected: e.expected(), Unclaimed: unclaimed}
	}
	mine := Select(list, plan.Shard, plan.Durations)
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	own := *e
	e = &own
	done, err := e.places()
	defer done()
	if err != nil {
		run.Verdict, run.Exit, run.Notes = results.Error, 2, []string{err.Error()}
		return run
	}
	x := &execution{engine: *e, plan: plan, slots: slots.New(ctx, plan.Jobs), stop: stop, began: time.Now()}
	jobs := cap(x.slots)
	x.engine.memory = transcriptMemory / jobs
	if !plan.Patient && !plan.UntilFail && len(mine)*max(plan.Repeat, 1) > 1 {
		x.engine.doubts = newDoubts()
	}
	// In a shared process, effects of other scenarios could be mistaken for effects of a perturbation.
	if e.shares() && plan.Perturb == nil && len(mine)*max(plan.Repeat, 1) > 1 {
		x.engine.pool = newPool(x.engine.withDefaults(), jobs+2)
	}
	shared := x.engine.pool // confirm sets the pool to nil
	x.rounds(ctx, mine)
	if plan.GiveUp != nil && !x.reached && x.locked >= startTries {
		run.NoModel = fmt.Sprintf("no scenario that needs a session was judged: %s", x.barred)
	}
	if shared != nil {
		run.Notes = append(run.Notes, shared.close()...)
		shared.engine.traceLeaks(ctx, list, x.results)
	}
	for _, p := range process.KillOrphans() {
		run.Left = append(run.Left, fmt.Sprintf("%d %s", p.PID, p.Command))
		run.Notes = append(run.Notes, "acp-test could not kill a process of an agent: "+run.Left[len(run.Left)-1])
	}
	run.Interrupted = ctx.Err() != nil && !x.failedFast
	order := map[string]int{}
	for i, s := range mine {
		order[s.ID] = i
	}
	slices.SortStableFunc(x.results, func(a, b results.Result) int {
		return cmp.Or(a.Repeat-b.Repeat, order[a.ID]-order[b.ID])
	})
	run.Results, run.LeftOut = x.results, x.leftOut
	e.inspect(&run)
	run.Duration = time.Since(run.Started)
	e.conclude(&run, list)
	return run
}

// places creates the directory for temporary files and opens the directory for artifacts. done closes both; it is
// never nil.
func (e *Engine) places() (done func(), err error) {
	temp, err := e.MakeTemp()
	if err != nil {
		return func() {}, err
	}
	done = func() { temp.Close() }
	if e.Out == "" || e.Folder != nil {
		return done, nil
	}
	if e.Folder, err = evidence.Open(e.Out, nil); err != nil {
		return done, err
	}
	return func() { e.Folder.Close(); temp.Close() }, nil
}

// rounds runs all scenarios as many times as the plan requires, and waits until all have finished.
func (x *execution) rounds(ctx context.Context, list []*Scenario) {
	plan := x.plan
	repeats := max(plan.Repeat, 1)
	for round := 1; ctx.Err() == nil && (round <= repeats || plan.UntilFail && plan.Repeat == 0); round++ {
		number := 0
		if plan.Repeat > 1 || plan.UntilFail {
			number = round
		}
		x.round(ctx, list, number)
		if plan.UntilFail && x.failed {
			break
		}
	}
	x.wait.Wait()
	x.confirm(ctx)
}

// MakeTemp creates a directory in Temp and sets Temp to it. The directory is removed by Close, and also if this
// process is killed.
func (e *Engine) MakeTemp() (*process.TempDir, error) {
	temp, err := process.NewTempDir(e.keeper(), e.Temp, "")
	if err == nil {
		e.Temp = temp.Dir()
	}
	return temp, err
}

// keeper returns the command line of the keeper, or nil if Self is "".
func (e *Engine) keeper() []string {
	if e.Self == "" {
		return nil
	}
	return []string{e.Self, "keeper"}
}

// command returns the command that starts the agent. If this process dies, the agent's keeper removes root, the run's
// directory.
func (e *Engine) command(l agents.Launch, root string) transport.Command {
	c := transport.Command{Path: l.Path, Args: append(slices.Clone(l.Args), e.ExtraArgs...), Env: l.Env, Dir: l.Dir,
		RunID: filepath.Base(root), Grace: e.Grace, MaxLine: longestLine, Keeper: e.keeper(), Through: e.Through}
	if c.Keeper != nil {
		c.RemoveOnExit = root
	}
	return c
}

// execution is the state of a call of RunAll.
type execution struct {
	engine Engine
	plan   Plan
	slots  slots.Slots
	stop   func()
	wait   sync.WaitGroup

	mu         sync.Mutex
	results    []results.Result
	failed     bool
	failedFast bool
	unstarted  int    // number of scenarios in which the agent did not start
	started    int    // number of scenarios in which it started
	reached    bool   // a scenario reached the model
	unserved   int    // number of scenarios whose agent reached no model after a prompt
	locked     int    // number of scenarios whose agent demanded a login that they lack
	barred     string // the latest such demand of the agent
	doubtful   []doubtful

	// Only the goroutine that starts scenarios uses these: the time of the start, whether a scenario was started, and
	// the scenarios for which the budget left no time.
	began   time.Time
	begun   bool
	leftOut []string
}

func (x *execution) round(ctx context.Context, list []*Scenario, number int) {
	rank := map[string]int{}
	for i, id := range x.plan.Order {
		rank[id] = i - len(x.plan.Order)
	}
	list = slices.Clone(list)
	slices.SortStableFunc(list, func(a, b *Scenario) int { return rank[a.ID] - rank[b.ID] })
	for _, s := range list {
		x.start(ctx, s, number)
	}
	if x.plan.UntilFail {
		x.wait.Wait()
	}
}

// start runs a scenario in a goroutine as soon as a slot is free. If ctx ends first, it does nothing.
func (x *execution) start(ctx context.Context, s *Scenario, number int) {
	if !x.slots.Take(ctx) {
		return
	}
	if b := x.plan.Budget; b > 0 && x.begun && time.Since(x.began)+x.plan.Durations[s.ID] > b {
		x.slots.Give()
		x.leftOut = append(x.leftOut, s.ID)
		return
	}
	x.begun = true
	x.wait.Add(1)
	go func() {
		defer x.wait.Done()
		var once sync.Once
		done := func() { once.Do(x.slots.Give) }
		defer done()
		if x.plan.Started != nil {
			x.plan.Started(s.ID)
		}
		res := x.play(ctx, s, number, done)
		cut := slices.IndexFunc(res.Vain, func(v results.Vain) bool { return v.Cut })
		switch {
		case ctx.Err() != nil && res.Reason == interrupted:
		case cut >= 0 && x.engine.doubts != nil:
			x.mu.Lock()
			x.doubtful = append(x.doubtful, doubtful{s, number, res, res.Vain[cut].For})
			x.mu.Unlock()
		default:
			x.finish(res, number)
		}
	}()
}

// play runs a scenario. It calls lingers when the scenario only has its final wait for late frames left.
func (x *execution) play(ctx context.Context, s *Scenario, number int, lingers func()) results.Result {
	e := x.engine
	// Little work follows that wait, so the scenario does not wait for a slot again.
	e.Slot = func(string) func() { lingers(); return func() {} }
	if x.plan.Perturb != nil {
		e.Perturb = x.plan.Perturb(s.ID, number)
	}
	if number > 0 && e.Out != "" {
		e.below = fmt.Sprintf("repeat-%d", number)
	}
	if hopeless, why := x.hopeless(s); hopeless {
		return results.Result{ID: s.ID, File: s.File, Title: s.Title, Tags: s.Tags, Verdict: results.Skip,
			Started: time.Now(), NotStarted: true,
			Reason: fmt.Sprintf("not tried: %s in %d earlier scenarios", why, startTries)}
	}
	return e.Run(ctx, s)
}

// finish stores the final result of a scenario and updates the counts of failed starts.
func (x *execution) finish(res results.Result, number int) {
	res.Repeat = number
	if number > 0 {
		for k, v := range res.Artifacts {
			res.Artifacts[k] = fmt.Sprintf("repeat-%d/%s", number, v)
		}
	}
	x.mu.Lock()
	x.results = append(x.results, res)
	if x.reached = x.reached || res.Reached; !x.reached {
		res = verdict.SinglyWithoutModel(res)
	}
	switch {
	case res.NotStarted:
		x.unstarted++
	case res.Barred != "":
		x.locked, x.barred = x.locked+1, res.Barred
	case res.Unreached:
		x.unserved++
	}
	if !res.NotStarted && res.Verdict != results.Skip {
		x.started++
	}
	bad := !res.Known && (res.Verdict == results.Fail || res.Verdict == results.Error)
	x.failed = x.failed || bad
	if bad && x.plan.FailFast {
		x.failedFast = true
		x.stop()
	}
	x.mu.Unlock()
	if x.plan.Finished != nil {
		x.plan.Finished(res)
	}
}

// hopeless reports whether a scenario is skipped and why: in startTries earlier scenarios the agent did not start,
// demanded a login or reached no model.
func (x *execution) hopeless(s *Scenario) (yes bool, why string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	switch giveUp := x.plan.GiveUp != nil && x.plan.GiveUp(s) && !x.reached; {
	case x.unstarted >= startTries && x.started == 0:
		return true, "the agent did not start"
	case giveUp && x.locked >= startTries:
		return true, "the agent wanted a login"
	case giveUp && x.unserved >= startTries:
		return true, "the agent reached no model"
	}
	return false, ""
}

// conclude completes the summary of a run: counts, stale entries, notes, verdict, exit status.
func (e *Engine) conclude(run *results.Run, all []*Scenario) {
	verdict.WithoutModel(run)
	verdict.Sum(run)
	if !e.NoTrap && !e.trapped() {
		run.Notes = append(run.Notes,
			fmt.Sprintf("the agent ran without the proxy that blocks connections to other machines, "+
				"as %s may have to download the agent; to use the proxy, name the agent's own program", e.Profile.Command[0]))
	}
	if e.Isolate && e.NetworkOnly != "" {
		run.Notes = append(run.Notes, "--isolate kept the agent from the network, but not from files and processes: "+
			e.NetworkOnly)
	}
	if run.Shard == nil && !run.Interrupted && len(run.LeftOut) == 0 {
		stale, removed := e.unclaimed(all)
		run.Stale = append(stale, verdict.Stale(run, e.expected(), time.Now())...)
		run.Notes = append(run.Notes, removed...)
	}
	verdict.Finish(run)
}

// Select returns the scenarios of a shard, in the order of the list. The division depends only on the list and the
// durations. Without durations, part Index consists of every Of-th scenario, starting with the Index-th. With
// durations, the longest scenarios are assigned first, each to the part with the smallest total so far. A scenario
// without a duration counts with the median.
func Select(list []*Scenario, shard *results.Shard, durations map[string]time.Duration) []*Scenario {
	if shard == nil || shard.Of <= 1 {
		return list
	}
	part := deal(list, shard.Of, durations)
	var out []*Scenario
	for i, s := range list {
		if part[i] == shard.Index-1 {
			out = append(out, s)
		}
	}
	return out
}

// deal assigns each scenario in the list to one of the parts. It returns the index of each scenario's part.
func deal(list []*Scenario, of int, durations map[string]time.Duration) []int {
	part := make([]int, len(list))
	var known []time.Duration
	for i, s := range list {
		part[i] = i % of
		if d, ok := durations[s.ID]; ok {
			known = append(known, d)
		}
	}
	if len(known) == 0 {
		return part
	}
	slices.Sort(known)
	takes := func(i int) time.Duration {
		if d, ok := durations[list[i].ID]; ok {
			return d
		}
		return known[len(known)/2]
	}
	order := make([]int, len(list))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(takes(b), takes(a)) })
	load := make([]time.Duration, of)
	for _, i := range order {
		least := slices.Index(load, slices.Min(load))
		part[i] = least
		// Each scenario counts at least a millisecond, so that scenarios without a duration are spread over all parts.
		load[least] += max(takes(i), time.Millisecond)
	}
	return part
}

// Hash returns a hash of a list of scenarios. Shards with the same hash belong to the same run.
func Hash(list []*Scenario) string { return results.HashOf(idsOf(list)) }

func idsOf(list []*Scenario) []string {
	return lists.Map(list, func(s *Scenario) string { return s.ID })
}
