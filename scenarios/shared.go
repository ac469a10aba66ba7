package scenarios

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/acp-test/acp-test/agents"
	"github.com/acp-test/acp-test/internal/confined"
	"github.com/acp-test/acp-test/internal/lists"
	"github.com/acp-test/acp-test/internal/printable"
	"github.com/acp-test/acp-test/internal/workspace"
	"github.com/acp-test/acp-test/scenarios/results"
	"github.com/acp-test/acp-test/transport"
)

// shares reports whether scenarios may share agent processes. They may not if they need different networks or command
// lines, or if the user wants to examine a single process.
func (e *Engine) shares() bool {
	return e.Share && e.Connect == nil && e.Profile.URL == "" && !e.Isolate && !e.Debug && !e.Keep && !e.Update
}

// Run runs one scenario once and always returns a result. If ctx ends, the result is incomplete, and its Reason says
// so.
func (e *Engine) Run(ctx context.Context, s *Scenario) results.Result {
	res := e.play(ctx, s)
	if e.AskMode == "" || res.Verdict != results.Skip || !strings.HasPrefix(res.Reason, tookTurn) || ctx.Err() != nil {
		return res
	}
	own := *e
	own.AskMode, own.startMode, own.pool, own.Golden = "", e.AskMode, nil, nil
	again := own.play(ctx, s)
	if again.Verdict == results.Skip {
		return res
	}
	again.Duration += res.Duration
	again.Notes = append(again.Notes, "played in the mode "+e.AskMode+", in which the agent asks, since in the mode "+
		"in which sessions begin "+res.Reason)
	return again
}

// tookTurn is the beginning of a skip reason: the agent ended its turn without an optional action.
const tookTurn = "the turn ended without "

// play runs a scenario in the mode startMode. It does not try AskMode.
func (e *Engine) play(ctx context.Context, s *Scenario) results.Result {
	e = e.withDefaults()
	if e.pool == nil || s.Alone != "" || len(e.Perturb.How) > 0 {
		own := *e
		own.pool = nil
		return own.attempt(ctx, s)
	}
	use := &sharer{pool: e.pool}
	own := *e
	own.share = use
	res := own.attempt(ctx, s)
	if use.worker != nil {
		res.Shared = &results.Sharing{Process: use.worker.number, Nth: len(use.after) + 1}
	}
	if ctx.Err() != nil || settled(&res) || res.Verdict == results.Skip && e.pool.skipsAlone(res.Reason, false) {
		return res
	}
	own.share = nil
	kept := own.keepShared(s)
	again := own.attempt(ctx, s)
	again.Duration += res.Duration
	if again.Verdict == results.Skip {
		e.pool.skipsAlone(again.Reason, true)
	}
	if kept != nil {
		again.Notes = append(again.Notes, kept.Error())
	}
	if res.Shared != nil {
		compareShared(&again, &res, use.after)
	}
	return again
}

// settled reports whether the verdict from a shared process is final. It is if the agent passed, if its failure is
// known, or if no other scenario can have caused the result.
func settled(r *results.Result) bool {
	switch {
	case r.Shared == nil: // the scenario used no process
		return r.Verdict == results.Skip
	case r.Known, r.NotStarted:
		return true
	case r.Verdict == results.Skip && (r.Shared.Nth == 1 || !r.Reached && !r.Unreached):
	case r.Verdict != results.Pass:
		return false
	}
	warns := func(v results.Verdict) bool { return v > results.Lint && v != results.Skip }
	return !slices.ContainsFunc(r.Findings, func(f results.Finding) bool { return warns(f.Class) && !f.Known }) &&
		!slices.ContainsFunc(r.Checks, func(c results.Check) bool { return warns(c.Verdict) && !c.Known && !c.NotReached })
}

// compareShared adds the result in a shared process to r, the result of the same scenario in its own process. If the
// scenario failed only in the shared process, compareShared adds a finding. after lists the scenarios that ran there
// before.
func compareShared(r, shared *results.Result, after []string) {
	at := *shared.Shared
	at.Verdict, at.Reason, at.After = shared.Verdict, shared.Summary(), after
	r.Shared = &at
	if shared.Broken() && r.Verdict == results.Pass && !r.Broken() && len(after) > 0 {
		r.Findings = append(r.Findings, results.Finding{Rule: results.AfterOthersRule, Class: results.Lint,
			Requirements: broken(shared), Message: fmt.Sprintf("It fails in a process that ran %s before, and passes alone: %s",
				printable.Plural(len(after), "scenario", "scenarios"), at.Reason)})
	}
}

// broken returns the requirements that a result violates: those of its findings and checks of class fail.
func broken(r *results.Result) (ids []string) {
	for _, f := range r.Findings {
		if f.Class == results.Fail {
			ids = lists.With(ids, f.Requirements...)
		}
	}
	for _, c := range r.Checks {
		if c.Verdict == results.Fail && !c.NotReached {
			ids = lists.With(ids, c.Requirements...)
		}
	}
	return ids
}

// A scenario that fails only after others is rerun to find the others that cause the failure. leakTries limits the
// reruns per scenario; leaksTraced limits the number of such scenarios.
const (
	leakTries   = 40
	leaksTraced = 5
)

// leakTime limits the total time of these reruns, because a scenario may fail only after a long wait.
var leakTime = time.Minute

// keepShared renames the files of a run in a shared process, so that the rerun in a separate process does not
// overwrite them.
func (e *Engine) keepShared(s *Scenario) error {
	if e.Folder == nil {
		return nil
	}
	var errs []error
	for _, name := range []string{"transcript.jsonl", "stderr.txt"} {
		at := filepath.Join(e.below, filepath.FromSlash(s.ID))
		err := e.Folder.Rename(filepath.Join(at, name), filepath.Join(at, "shared-"+name))
		if !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// sharer is one scenario's use of the pool.
type sharer struct {
	pool   *pool
	worker *worker
	after  []string
}

// worker is an agent process that runs scenarios one after the other.
type worker struct {
	number int
	first  string // the frame with which every connection begins
	shared *transport.Shared
	box    *workspace.Dirs
	model  *outlet
	trap   *outlet // nil if connections to other machines are not blocked
	ran    []string
}

// pool holds the shared agent processes of a run.
type pool struct {
	engine *Engine
	most   int // maximum number of idle processes

	mu       sync.Mutex
	idle     []*worker
	started  int
	closed   bool
	left     []string        // messages about processes that the agent left running
	skips    map[string]bool // reasons for which scenarios in their own process were skipped
	stopping sync.WaitGroup
}

func newPool(e *Engine, most int) *pool {
	return &pool{engine: e, most: most, skips: map[string]bool{}}
}

// connectShared connects a run to a shared process. The run's first frame determines which process is used.
func (r *run) connectShared(ctx context.Context, conn int) *transport.Agent {
	use := r.engine.share
	find := func(first []byte) (*transport.Shared, int, error) {
		w, err := use.pool.find(ctx, string(first), r.proxy() != "")
		if err != nil {
			return nil, 0, err
		}
		use.worker, use.after = w, slices.Clone(w.ran)
		w.ran = append(w.ran, r.scenario.ID)
		r.model.Serve(w.model.lend())
		if r.trap != nil {
			r.trap.Serve(w.trap.lend())
		}
		return w.shared, len(use.after), nil
	}
	return transport.Lend(r.t, conn, find, func(_ *transport.Shared, fit bool) { use.pool.back(use.worker, fit) },
		r.engine.Through)
}

// find returns an idle process whose connections begin with the frame first. If there is none, it starts a new
// process.
func (p *pool) find(ctx context.Context, first string, trapped bool) (*worker, error) {
	p.mu.Lock()
	for i, w := range slices.Backward(p.idle) {
		if w.first == first {
			p.idle = slices.Delete(p.idle, i, i+1)
			if w.shared.Fit() {
				p.mu.Unlock()
				return w, nil
			}
			p.retire(w)
		}
	}
	p.started++
	number := p.started
	p.mu.Unlock()
	w, err := p.start(ctx, trapped)
	if err != nil {
		return nil, err
	}
	w.number, w.first = number, first
	return w, nil
}

// skipsAlone reports whether a scenario in its own process was skipped for this reason. If so, other scenarios did
// not cause the skip. If one is true, skipsAlone first records that this happened.
func (p *pool) skipsAlone(reason string, one bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if one {
		p.skips[reason] = true
	}
	return p.skips[reason]
}

func (p *pool) start(ctx context.Context, trapped bool) (_ *worker, err error) {
	e := p.engine
	w := &worker{}
	defer func() {
		if err != nil {
			w.close()
		}
	}()
	if w.box, err = newSandbox(e.Temp); err != nil {
		return nil, err
	}
	if w.model, err = newOutlet(); err != nil {
		return nil, err
	}
	place := agents.Sandbox{Work: w.box.Work, Home: w.box.Home, Temp: w.box.Temp, LLM: w.model.url(), Self: e.Self,
		Cwd: e.Cwd, HostEnv: e.Host, Env: e.Env, Pass: e.PassEnv}
	if trapped {
		if w.trap, err = newOutlet(); err != nil {
			return nil, err
		}
		place.Proxy = w.trap.url()
	}
	launch, err := e.Profile.Launch(place)
	if err != nil {
		return nil, err
	}
	if err := workspace.Write(w.box.Home, launch.Files); err != nil {
		return nil, fmt.Errorf("preparing the agent's HOME: %w", err)
	}
	w.shared, err = transport.StartShared(ctx, e.command(launch, w.box.Root), e.Protocol.Classifier)
	return w, err
}

// back returns a process to the pool after its connection has ended. If fit is false, it stops the process instead.
func (p *pool) back(w *worker, fit bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || !fit {
		p.retire(w)
		return
	}
	if p.idle = append(p.idle, w); len(p.idle) > p.most {
		p.retire(p.idle[0])
		p.idle = slices.Delete(p.idle, 0, 1)
	}
}

// retire stops a process in the background. The caller must hold mu.
func (p *pool) retire(w *worker) {
	p.stopping.Go(func() {
		var left []string
		for _, s := range w.shared.Stop(context.Background()) {
			left = append(left, fmt.Sprintf("acp-test killed process %d, which outlived an agent that had run %s: %s",
				s.PID, printable.Plural(len(w.ran), "scenario", "scenarios"), s.Command))
		}
		w.close()
		p.mu.Lock()
		p.left = append(p.left, left...)
		p.mu.Unlock()
	})
}

// close stops all processes and returns messages about processes that outlived them.
func (p *pool) close() []string {
	p.mu.Lock()
	p.closed = true
	for _, w := range p.idle {
		p.retire(w)
	}
	p.idle = nil
	p.mu.Unlock()
	p.stopping.Wait()
	return p.left
}

func (w *worker) close() {
	for _, o := range []*outlet{w.model, w.trap} {
		if o != nil {
			o.close()
		}
	}
	if w.box != nil {
		_ = confined.RemoveAll(w.box.Root) // ignore the error: the folder is removed with the run's directory
	}
}

// traceLeaks reruns scenarios that failed only in a shared process. It adds to each finding which earlier scenarios
// cause the failure.
func (e *Engine) traceLeaks(ctx context.Context, list []*Scenario, outcomes []results.Result) {
	byID := map[string]*Scenario{}
	order := map[string]int{}
	for i, s := range list {
		byID[s.ID], order[s.ID] = s, i
	}
	traced := 0
	within, stop := context.WithTimeout(ctx, leakTime)
	defer stop()
	for i := range outcomes {
		r := &outcomes[i]
		at := slices.IndexFunc(r.Findings, func(f results.Finding) bool { return f.Rule == results.AfterOthersRule })
		if at < 0 || traced == leaksTraced || ctx.Err() != nil {
			continue
		}
		traced++
		before := lists.Map(r.Shared.After, func(id string) *Scenario { return byID[id] })
		f := &r.Findings[at]
		fewest, ok := e.fewestBefore(within, byID[r.ID], before)
		switch {
		case ok:
		case within.Err() != nil:
			f.Detail = fmt.Sprintf("acp-test did not find within %v which of them cause the failure", leakTime)
			continue
		default:
			f.Detail = "when acp-test ran the same scenarios in one process again, it passed"
			continue
		}
		ids := idsOf(fewest)
		f.Message = fmt.Sprintf("It fails in a process that ran %s before, and passes alone: %s", strings.Join(ids, ", "),
			r.Shared.Reason)
		if len(f.Requirements) > 0 { // the failure occurred twice, and only after these scenarios
			f.Class, r.Verdict = results.Fail, results.Worst(r.Verdict, results.Fail)
		}
		if ids = append(ids, r.ID); slices.IsSortedFunc(ids, func(a, b string) int { return order[a] - order[b] }) {
			f.Detail = fmt.Sprintf("to reproduce: acp-test run --agent %s --fresh=false -j 1 --run '^(%s)$'", e.Profile.Name,
				strings.Join(ids, "|"))
		}
	}
}

// fewestBefore returns the smallest set it finds of scenarios that must run before s in one process for s to fail. ok
// is false if s does not fail after all of before.
func (e *Engine) fewestBefore(ctx context.Context, s *Scenario, before []*Scenario) (fewest []*Scenario, ok bool) {
	tries := 0
	fails := func(before []*Scenario) bool {
		tries++
		own := *e
		own.Out, own.Folder, own.Golden, own.Step = "", nil, nil, nil
		p := newPool(&own, 1)
		defer p.close()
		var last results.Result
		for _, b := range append(slices.Clone(before), s) {
			with := own
			with.share = &sharer{pool: p}
			last = with.attempt(ctx, b)
		}
		return ctx.Err() == nil && last.Broken() && len(before) > 0
	}
	for n := 1; ; n *= 2 { // start with the latest: there may be no time to try all
		if tail := before[max(0, len(before)-n):]; fails(tail) {
			before = tail
			break
		}
		if n >= len(before) || tries >= leakTries {
			return nil, false
		}
	}
	for i := 0; i < len(before) && len(before) > 1 && tries < leakTries; {
		if without := slices.Delete(slices.Clone(before), i, i+1); fails(without) {
			before = without
		} else {
			i++
		}
	}
	return before, true
}
