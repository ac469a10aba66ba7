package scenarios

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/acp-test/acp-test/internal/lists"
	"github.com/acp-test/acp-test/internal/process"
	"github.com/acp-test/acp-test/scenarios/results"
)

// doubts records which kinds of waits have timed out. If every turn of a broken agent hangs, only the first wait of
// each kind takes the full timeout; later ones are shortened. The result of a shortened wait counts only after
// confirm has rerun one scenario of the same kind with the full timeout.
type doubts struct {
	mu      sync.Mutex
	slowest map[string]time.Duration // kind -> the slowest wait that succeeded
	vain    map[string]bool
	every   bool // shorten every wait, even of kinds that never timed out
}

func newDoubts() *doubts {
	return &doubts{slowest: map[string]time.Duration{}, vain: map[string]bool{}}
}

// Doubting returns an engine that shortens a wait if a wait of the same kind timed out before. A result that depends
// on a shortened wait (see results.Vain) counts only if a run with full timeouts confirms it.
func (e Engine) Doubting() Engine {
	e.doubts = newDoubts()
	return e
}

// Brief returns an engine that shortens all waits, based on the slowest waits that a Doubting engine has recorded. It
// shows quickly whether a run with full timeouts is worthwhile.
func (e Engine) Brief() Engine {
	brief := newDoubts()
	brief.every = true
	if d := e.doubts; d != nil {
		d.mu.Lock()
		brief.slowest = maps.Clone(d.slowest)
		d.mu.Unlock()
	}
	e.doubts = brief
	return e
}

// A shortened wait lasts timesSlowest times as long as the slowest successful wait of its kind. It lasts at least
// shortestDoubt, because a correct agent is slower in some scenarios than in others.
const timesSlowest = 10

var shortestDoubt = 2 * time.Second

// limit returns the timeout of a wait of this kind. full is the normal timeout.
func (d *doubts) limit(kind string, full time.Duration) time.Duration {
	if d == nil {
		return full
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.every && !d.vain[kind] {
		return full
	}
	return min(full, max(shortestDoubt, timesSlowest*d.slowest[kind]))
}

func (d *doubts) ended(kind string, took time.Duration, vain bool) {
	if d == nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if vain {
		d.vain[kind] = true
	} else {
		d.slowest[kind] = max(d.slowest[kind], took)
	}
}

// waitFor returns a context with the timeout of one wait for the agent. kind is the kind of the wait; name is the
// name of the timer in messages.
func (r *run) waitFor(
	ctx context.Context, kind, name string, full time.Duration,
) (context.Context, context.CancelFunc) {
	if r.engine.Debug {
		return context.WithCancel(ctx)
	}
	d := r.engine.doubts.limit(kind, full)
	timer := &timerError{name: name, d: d}
	if d < full {
		timer.instead = fmt.Sprintf("%v, because the same kind of wait timed out before", full)
	}
	began := time.Now()
	wait, cancel := patient(ctx, d, timer, process.Starved, r.still)
	return wait, func() {
		vain := context.Cause(wait) == error(timer)
		if vain {
			r.change(func(s *state) { s.vain = append(s.vain, results.Vain{For: kind, Cut: d < full}) })
		}
		if vain || wait.Err() == nil {
			r.engine.doubts.ended(kind, time.Since(began), vain)
		}
		cancel()
	}
}

// cutShort returns the reason why a result is inconclusive if a shortened wait timed out, or "". An agent that
// exceeds a shortened wait is slow, but not necessarily broken.
func cutShort(res *results.Result) string {
	if slices.ContainsFunc(res.Vain, func(v results.Vain) bool { return v.Cut }) {
		return "acp-test shortened a wait here, since the same kind of wait timed out in other scenarios: look at those"
	}
	return ""
}

// doubtful is a result that depends on a shortened wait.
type doubtful struct {
	scenario *Scenario
	number   int
	result   results.Result
	kind     string
}

// confirm decides whether the results that depend on shortened waits count. For each kind of wait, it reruns one
// scenario with full timeouts. If the wait times out again, the other results of that kind count. Otherwise all their
// scenarios are rerun.
func (x *execution) confirm(ctx context.Context) {
	doubted := x.doubtful
	x.engine.doubts, x.engine.pool, x.plan.Budget = nil, nil, 0 // run each in its own process, with full timeouts
	for len(doubted) > 0 && ctx.Err() == nil {
		first := doubted[0]
		again := x.play(ctx, first.scenario, first.number, func() {})
		if ctx.Err() != nil {
			break
		}
		x.finish(again, first.number)
		kin := func(d doubtful) bool { return d.kind == first.kind }
		same := lists.Where(doubted[1:], kin)
		if slices.Contains(again.Vain, results.Vain{For: first.kind}) {
			x.stand(same)
		} else {
			for _, d := range same {
				x.start(ctx, d.scenario, d.number)
			}
			x.wait.Wait()
		}
		doubted = slices.DeleteFunc(doubted, kin)
	}
	x.stand(doubted)
}

func (x *execution) stand(doubted []doubtful) {
	for _, d := range doubted {
		x.finish(d.result, d.number)
	}
}
