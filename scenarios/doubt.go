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

// doubts are the kinds of waits that were in vain. A broken agent that lets every turn hang
// makes each scenario wait; the first pays for all of a kind: those after it wait a short time,
// and before that counts one of them is played again at full length, see confirm.
type doubts struct {
	mu      sync.Mutex
	slowest map[string]time.Duration // of the waits of a kind that were not in vain
	vain    map[string]bool
	every   bool // each wait is doubted, whether such a one was in vain or not
}

func newDoubts() *doubts {
	return &doubts{slowest: map[string]time.Duration{}, vain: map[string]bool{}}
}

// Doubting is the engine with shorter waits of each kind that was in vain before. What comes of a wait that was
// cut short, see results.Vain, counts only if the engine itself plays it too.
func (e Engine) Doubting() Engine {
	e.doubts = newDoubts()
	return e
}

// Brief is the engine with shorter waits of each kind, by what Doubting has learned so far. It tells fast whether
// something is worth a run with all the time that it may take.
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

// A doubted wait may take so many times as long as the slowest of its kind did, and at least
// shortestDoubt: a good agent is not as fast in each scenario.
const timesSlowest = 10

var shortestDoubt = 2 * time.Second

// limit is how long a wait may take for which a scenario has full.
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

// waitFor bounds a wait for something of a kind that the agent does.
func (r *run) waitFor(
	ctx context.Context, kind, name string, full time.Duration,
) (context.Context, context.CancelFunc) {
	if r.engine.Debug {
		return context.WithCancel(ctx)
	}
	d := r.engine.doubts.limit(kind, full)
	timer := &timerError{name: name, d: d}
	if d < full {
		timer.instead = fmt.Sprintf("%v, since such a wait was in vain before", full)
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

// cutShort says why a wait that ran out proves nothing, "" if each had its full time: what takes
// longer than a doubted wait may is slow, and not broken.
func cutShort(res *results.Result) string {
	if slices.ContainsFunc(res.Vain, func(v results.Vain) bool { return v.Cut }) {
		return "such a wait was in vain in other scenarios, and had a short time here: they show what is wrong"
	}
	return ""
}

// doubtful is a result that rests on a wait that was cut short.
type doubtful struct {
	scenario *Scenario
	number   int
	result   results.Result
	kind     string
}

// confirm decides what becomes of the results that rest on waits which were cut short. Of each
// kind one scenario is played again with all the time it may take. If that is in vain too, the
// others stand; else all of them are played again.
func (x *execution) confirm(ctx context.Context) {
	doubted := x.doubtful
	x.engine.doubts, x.engine.pool, x.plan.Budget = nil, nil, 0 // each alone, once
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
