package scenarios

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/acp-test/acp-test/agents"
	"github.com/acp-test/acp-test/internal/confined"
	"github.com/acp-test/acp-test/internal/workspace"
	"github.com/acp-test/acp-test/transport"
)

// Sharing says that a scenario ran in a process of the agent that ran others before
// or after it.
type Sharing struct {
	// Process counts the processes of the run from 1, Nth the scenarios of one.
	Process int `json:"process"`
	Nth     int `json:"nth"`
	// Verdict is what came of it there, if it did not pass. It then ran again alone,
	// and the rest of the result is from that run. Reason says why, in one line.
	Verdict Verdict `json:"verdict,omitempty"`
	Reason  string  `json:"reason,omitempty"`
	// After are the scenarios that ran before it in that process, in order.
	After []string `json:"after,omitempty"`
}

// AfterOthersRule is the rule of findings that show only in a process which has run
// other scenarios.
const AfterOthersRule = "AFTER-OTHERS"

// shares reports whether scenarios may share processes of the agent: they are to have
// the same network and command line, and nobody wants to look at one process alone.
func (e *Engine) shares() bool {
	return e.Share && e.Connect == nil && e.Profile.URL == "" && !e.Isolate && !e.Debug && !e.Keep && !e.Update
}

// Run runs one scenario once. It always returns a result; when ctx ends, what
// has not happened is missing from it, and Reason says so.
func (e *Engine) Run(ctx context.Context, s *Scenario) Result {
	e = e.withDefaults()
	if e.pool == nil || s.alone != "" || len(e.Perturb.How) > 0 {
		own := *e
		own.pool = nil
		return own.attempt(ctx, s)
	}
	use := &sharer{pool: e.pool}
	own := *e
	own.share = use
	res := own.attempt(ctx, s)
	if use.worker != nil {
		res.Shared = &Sharing{Process: use.worker.number, Nth: len(use.after) + 1}
	}
	if ctx.Err() != nil || settled(&res) {
		return res
	}
	own.share = nil
	kept := own.keepShared(s)
	again := own.attempt(ctx, s)
	again.Duration += res.Duration
	if kept != nil {
		again.Notes = append(again.Notes, kept.Error())
	}
	if res.Shared != nil {
		again.compareShared(&res, use.after)
	}
	return again
}

// settled reports whether a verdict stands that came of a shared process: the agent
// did as it should, or failed as is known, or there is nothing that another scenario
// could have brought about.
func settled(r *Result) bool {
	switch {
	case r.Shared == nil: // it came to no process
		return r.Verdict == Skip
	case r.Known, r.NotStarted:
		return true
	case r.Verdict == Skip && (r.Shared.Nth == 1 || !r.reached && !r.unreached):
	case r.Verdict != Pass:
		return false
	}
	warns := func(v Verdict) bool { return severer(v, Lint) && v != Skip }
	return !slices.ContainsFunc(r.Findings, func(f Finding) bool { return warns(f.Class) && !f.Known }) &&
		!slices.ContainsFunc(r.Checks, func(c Check) bool { return warns(c.Verdict) && !c.Known })
}

// compareShared notes in the result of a run alone what came of the same scenario in a
// shared process, and makes a finding of it where only that one failed.
func (r *Result) compareShared(shared *Result, after []string) {
	at := *shared.Shared
	at.Verdict, at.Reason, at.After = shared.Verdict, shared.summary(), after
	r.Shared = &at
	if shared.broken() && r.Verdict == Pass && !r.broken() && len(after) > 0 {
		r.Findings = append(r.Findings, Finding{Rule: AfterOthersRule, Class: Lint, Message: fmt.Sprintf(
			"It fails in a process that ran %s before, and passes alone: %s", scenariosRun(len(after)), at.Reason)})
	}
}

// leakTries bounds how often a scenario runs again to find which of those before it
// matter, and leaksTraced for how many scenarios that is asked.
const (
	leakTries   = 40
	leaksTraced = 5
)

// traceLeaks says in the findings of scenarios that failed only after others which of
// those it takes, if it can be brought about again.
func (e *Engine) traceLeaks(ctx context.Context, list []*Scenario, results []Result) {
	byID := map[string]*Scenario{}
	order := map[string]int{}
	for i, s := range list {
		byID[s.ID], order[s.ID] = s, i
	}
	traced := 0
	for i := range results {
		r := &results[i]
		at := slices.IndexFunc(r.Findings, func(f Finding) bool { return f.Rule == AfterOthersRule })
		if at < 0 || traced == leaksTraced || ctx.Err() != nil {
			continue
		}
		traced++
		var before []*Scenario
		for _, id := range r.Shared.After {
			before = append(before, byID[id])
		}
		f := &r.Findings[at]
		fewest, ok := e.fewestBefore(ctx, byID[r.ID], before)
		if !ok {
			f.Detail = "when the same scenarios ran in a process once more, it passed"
			continue
		}
		ids := idsOf(fewest)
		f.Message = fmt.Sprintf("It fails in a process that ran %s before, and passes alone: %s", strings.Join(ids, ", "),
			r.Shared.Reason)
		if ids = append(ids, r.ID); slices.IsSortedFunc(ids, func(a, b string) int { return order[a] - order[b] }) {
			f.Detail = fmt.Sprintf("to see it again: acp-test run --agent %s --fresh=false -j 1 --run '^(%s)$'", e.Profile.Name,
				strings.Join(ids, "|"))
		}
	}
}

// fewestBefore returns those of the scenarios before s in one process without which s
// does not fail. ok is false if it does not fail after all of them.
func (e *Engine) fewestBefore(ctx context.Context, s *Scenario, before []*Scenario) (fewest []*Scenario, ok bool) {
	tries := 0
	fails := func(before []*Scenario) bool {
		tries++
		own := *e
		own.Out, own.Folder, own.Golden, own.Step = "", nil, nil, nil
		p := &pool{engine: &own, most: 1}
		defer p.close()
		var last Result
		for _, b := range append(slices.Clone(before), s) {
			with := own
			with.share = &sharer{pool: p}
			last = with.attempt(ctx, b)
		}
		return ctx.Err() == nil && last.broken() && len(before) > 0
	}
	if !fails(before) {
		return nil, false
	}
	for n := 1; n < len(before) && tries < leakTries; n *= 2 {
		if tail := before[len(before)-n:]; fails(tail) {
			before = tail
			break
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

func scenariosRun(n int) string {
	if n == 1 {
		return "1 scenario"
	}
	return fmt.Sprintf("%d scenarios", n)
}

// broken reports whether something failed or is to be warned of, apart from a golden.
func (r *Result) broken() bool {
	bad := func(v Verdict) bool { return v == Fail || v == Warn }
	return r.Failure != nil && r.Verdict == Fail ||
		slices.ContainsFunc(r.Findings, func(f Finding) bool { return bad(f.Class) && !f.Known }) ||
		slices.ContainsFunc(r.Checks, func(c Check) bool { return bad(c.Verdict) && !c.Known })
}

// summary says in one line what is worst about a result.
func (r *Result) summary() string {
	for _, c := range r.Checks {
		if c.Verdict == Fail && c.Failure != nil {
			return c.ID + ": " + c.Failure.Error()
		}
	}
	for _, f := range r.Findings {
		if f.Class == Fail || f.Class == Warn {
			return f.Rule + ": " + f.Message
		}
	}
	switch {
	case r.Failure != nil:
		return r.Failure.Error()
	case r.Golden != nil && r.Golden.State == "differs":
		return "it differs from its golden"
	}
	return cmp.Or(r.Reason, string(r.Verdict))
}

// sharer is what one scenario has of the pool.
type sharer struct {
	pool   *pool
	worker *worker
	after  []string
}

// worker is a process of the agent that runs scenarios one after the other.
type worker struct {
	number int
	first  string // the frame that every connection begins with
	shared *transport.Shared
	box    *workspace.Dirs
	model  *outlet
	trap   *outlet // nil if outside connections are left alone
	ran    []string
}

// pool has the processes of a run that are shared.
type pool struct {
	engine *Engine
	most   int // that may wait for a scenario

	mu       sync.Mutex
	idle     []*worker
	started  int
	closed   bool
	left     []string // what outlived a process
	stopping sync.WaitGroup
}

// connectShared gives a run a connection to a shared process, chosen by the frame
// that is sent first.
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
	return transport.Lend(r.t, conn, find, func(_ *transport.Shared, fit bool) { use.pool.back(use.worker, fit) })
}

// find returns a process that was greeted with the same frame, or starts one.
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
	w.shared, err = transport.StartShared(ctx, transport.Command{
		Path: launch.Path, Args: append(slices.Clone(launch.Args), e.ExtraArgs...), Env: launch.Env, Dir: launch.Dir,
		RunID: filepath.Base(w.box.Root), Grace: e.Grace, MaxLine: longestLine, Keeper: e.keeper(), RemoveOnExit: w.box.Root,
	}, e.Protocol.Classifier)
	return w, err
}

// back takes a process whose connection has ended.
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

// retire ends a process beside everything else. The caller holds mu.
func (p *pool) retire(w *worker) {
	p.stopping.Go(func() {
		var left []string
		for _, s := range w.shared.Stop(context.Background()) {
			left = append(left, fmt.Sprintf("process %d outlived the agent that ran %s and was killed: %s", s.PID,
				scenariosRun(len(w.ran)), s.Command))
		}
		w.close()
		p.mu.Lock()
		p.left = append(p.left, left...)
		p.mu.Unlock()
	})
}

// close ends all processes and returns what there is to say of their ends.
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
		_ = confined.RemoveAll(w.box.Root) // the whole of it goes with the run's own directory
	}
}

// outlet is an address of this machine behind which one server after the other
// stands. Who comes while there is none is sent away.
type outlet struct {
	listener net.Listener

	mu  sync.Mutex
	now *lent
}

func newOutlet() (*outlet, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("opening an address for shared processes: %w", err)
	}
	o := &outlet{listener: l}
	go o.accept()
	return o, nil
}

func (o *outlet) url() string { return "http://" + o.listener.Addr().String() }

func (o *outlet) accept() {
	for {
		c, err := o.listener.Accept()
		if err != nil {
			return
		}
		o.mu.Lock()
		to := o.now
		o.mu.Unlock()
		if to == nil || !to.offer(c) {
			c.Close()
		}
	}
}

func (o *outlet) close() { o.listener.Close() }

// lend returns a listener for the connections that come from now on, until it is
// closed.
func (o *outlet) lend() net.Listener {
	l := &lent{Listener: o.listener, conns: make(chan net.Conn), over: make(chan struct{})}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.now = l
	return l
}

// lent is an outlet's listener for one server.
type lent struct {
	net.Listener
	conns chan net.Conn
	over  chan struct{}
	once  sync.Once
}

func (l *lent) offer(c net.Conn) bool {
	select {
	case l.conns <- c:
		return true
	case <-l.over:
		return false
	}
}

// Accept waits for the next connection.
func (l *lent) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.over:
		return nil, net.ErrClosed
	}
}

// Close ends Accept. The address stays.
func (l *lent) Close() error {
	l.once.Do(func() { close(l.over) })
	return nil
}

// keepShared keeps what a run in a shared process left on the disk, under other names.
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
