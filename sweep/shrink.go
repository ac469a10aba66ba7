package sweep

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/acp-test/acp-test/internal/slots"
	"github.com/acp-test/acp-test/scenarios"
	"github.com/acp-test/acp-test/scenarios/results"
)

// reducer shortens one script as long as the script shows one rule.
type reducer struct {
	*sweep
	ctx  context.Context
	rule string
	// late says that the finding is a missed deadline. A script that shows the
	// rule without one then counts as another finding, and vice versa.
	late bool
	// heard says that the script waits for the entries that show the rule. A
	// shorter script must wait for them too; otherwise it is up to chance
	// whether they come before the run ends.
	heard bool
	keep  map[string]bool
	id    string
	tries int
	sure  bool // it shows in every run
	// only are the rules that a run may show too; nil allows any. With learns
	// set, hit adds the rules of its run, so that runs of the whole script
	// determine the allowed rules.
	only   []string
	learns bool
	mu     sync.Mutex
	// told, if set, is called with the current shortest script and the number
	// of scripts tried since the last call.
	told func(left Archive, tried int)
	// script is the shortest script so far.
	script Archive
	// step limits the time for a line while changes are tried, because most
	// make a script that waits in vain. A kept change is confirmed without the
	// limit. If brief is set, its limits apply to all waits instead.
	step  time.Duration
	brief *scenarios.Engine
}

// longest returns the maximum time for shortening one finding.
func (x *reducer) longest() time.Duration {
	return cmp.Or(max(x.Shrink, 0), max(20*time.Second, x.Budget/4))
}

// change returns a shorter script, and whether the change applies.
type change func(Archive) (Archive, bool)

// shows runs a script, at most tries times, until it shows the rule.
func (x *reducer) shows(ctx context.Context, a Archive) bool {
	if _, err := x.engine.Protocol.Parse(x.id, x.id, a.Text()); err != nil {
		return false
	}
	for range max(x.tries, 1) {
		if ctx.Err() != nil {
			return false
		}
		if hit, _ := x.once(ctx, x.slots, a, x.step); hit {
			if !x.sure {
				return true
			}
			// A finding that always shows must not become a race.
			hits, _ := x.repeat(ctx, x.slots, a, 2, x.step)
			return hits == 2
		}
	}
	return false
}

// once runs a script. It reports whether the script shows the rule, and whether
// there was time to run it. A step of 0 is the engine's.
func (x *reducer) once(ctx context.Context, in slots.Slots, a Archive, step time.Duration) (hit, ran bool) {
	e := x.engine
	switch {
	case step > 0 && x.brief != nil:
		e = x.brief.Brief()
	case step > 0:
		e.StepTimeout = step
	}
	e.Out = "" // only its verdict matters
	if x.heard {
		e.Linger = new(time.Duration) // nothing that counts comes later
	}
	sc, err := x.engine.Protocol.Parse(x.id, x.id+".txtar", a.Text())
	if err != nil {
		return false, false
	}
	res, ran := run(x.ctx, ctx, in, e, sc)
	ran = ran && ctx.Err() == nil
	return ran && x.hit(res), ran
}

// hit reports whether a run shows the rule and no rule that is not allowed. A
// script that cannot be played shows nothing.
func (x *reducer) hit(res results.Result) bool {
	if res.Verdict == results.Error {
		return false
	}
	shown := found(res)
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.learns {
		x.only = append(x.only, rulesOf(shown)...)
	}
	other := func(g sign) bool {
		return x.only != nil && blame(g.class) > blame(results.Lint) && !slices.Contains(x.only, g.rule)
	}
	return !slices.ContainsFunc(shown, other) &&
		slices.ContainsFunc(shown, func(g sign) bool {
			return g.rule == x.rule && g.late == x.late && (g.heard || !x.heard)
		})
}

func (x *reducer) repeat(ctx context.Context, in slots.Slots, a Archive, n int, step time.Duration) (hits, runs int) {
	var wait sync.WaitGroup
	var mu sync.Mutex
	for range n {
		wait.Go(func() {
			hit, ran := x.once(ctx, in, a, step)
			mu.Lock()
			defer mu.Unlock()
			if ran {
				runs++
			}
			if hit {
				hits++
			}
		})
	}
	wait.Wait()
	return hits, runs
}

// confirm runs a script n times with the full timeouts, half of them in a crowd, where
// events that no line orders come in another order. For a passed deadline, which does
// not depend on the order, it uses no crowd. The end of the budget does not cut these
// runs off, because that would count as not shown.
func (x *reducer) confirm(a Archive, n int) (hits, runs int) {
	if x.late {
		return x.repeat(x.whole, x.slots, a, n, 0)
	}
	hits, runs = x.repeat(x.whole, x.slots, a, n-n/2, 0)
	h, r := x.repeat(x.whole, x.crowd, a, n/2, crowded*x.engine.StepTimeout)
	return hits + h, runs + r
}

// crowded is how many times more scenarios than usual run in a crowd. Each line
// may also take that many times longer.
const crowded = 4

// step is a script, and the change that produced it.
type step struct {
	script Archive
	by     change
}

// shrunk returns the shortest script that shows the rule as often as a does, in
// hits of runs, and its own h hits in n runs. If the shortened script turns out
// to be a race, shrunk undoes one change, then two, then four. It redoes those
// that leave the finding as sure.
func (x *reducer) shrunk(a Archive, hits, runs, times int) (short Archive, h, n int) {
	most := x.longest()
	ctx, stop := context.WithTimeout(x.ctx, most)
	defer stop()
	early, done := context.WithTimeout(ctx, most-most/4) // what is left unconfirmed is lost
	defer done()
	steps := x.shrink(early, a)
	short, h, n = a, hits, runs
	sure := func(next Archive) bool {
		hit, ran := x.confirm(next, times)
		if hit == 0 || hit*runs < hits*ran {
			return false
		}
		short, h, n = next, hit, ran
		return true
	}
	retrace(steps, func(next Archive) bool { return ctx.Err() == nil && sure(next) })
	return short, h, n
}

// retrace goes back from the last step to a sure one. It then redoes the later
// changes, and keeps each that gives a sure script.
func retrace(steps []step, sure func(Archive) bool) {
	at := len(steps) - 1
	for back := 1; at > 0 && !sure(steps[at].script); back *= 2 {
		at = max(at-back, 0)
	}
	short := steps[at].script
	for _, s := range steps[at+1:] {
		if next, ok := s.by(short); ok && sure(next) {
			short = next
		}
	}
}

// shrink removes all it can: lines, replies and pieces of the model, files. It
// returns a, followed by the script after each change.
func (x *reducer) shrink(ctx context.Context, a Archive) []step {
	steps := []step{{script: a}}
	for {
		before := len(steps)
		// Series of equal lines go first: that removes the most for one try.
		for _, pass := range []func(Archive) []change{x.series, x.tail, x.blocks, x.lines, x.turns, x.files} {
			steps = x.apply(ctx, steps, pass(steps[len(steps)-1].script))
		}
		if len(steps) == before || ctx.Err() != nil {
			return steps
		}
	}
}

// apply makes changes to the last of the steps, as long as the rule shows, and
// returns the steps with the new ones. It tries several changes at once. The
// first one that shows the rule is kept; later ones are tried again on the new
// script.
func (x *reducer) apply(ctx context.Context, steps []step, changes []change) []step {
	for len(changes) > 0 && ctx.Err() == nil {
		a := steps[len(steps)-1].script
		batch := changes[:min(len(changes), cap(x.slots))]
		tried := make([]Archive, len(batch))
		holds := make([]bool, len(batch))
		// After one change succeeds, the results of later ones are not needed.
		inner, cut := make([]context.Context, len(batch)), make([]context.CancelFunc, len(batch))
		for i := range batch {
			inner[i], cut[i] = context.WithCancel(ctx)
		}
		var wait sync.WaitGroup
		for i, c := range batch {
			var ok bool
			if tried[i], ok = c(a); !ok || x.sure && hasty(tried[i]) > hasty(a) {
				continue
			}
			wait.Go(func() {
				if holds[i] = x.shows(inner[i], tried[i]); holds[i] {
					for _, c := range cut[i+1:] {
						c()
					}
				}
			})
		}
		wait.Wait()
		for _, c := range cut {
			c()
		}
		first := slices.Index(holds, true)
		if x.told != nil {
			left := a
			if first >= 0 {
				left = tried[first]
			}
			x.told(left, len(batch))
		}
		if first < 0 {
			changes = changes[len(batch):]
			continue
		}
		steps, changes = append(steps, step{tried[first], changes[first]}), changes[first+1:]
	}
	return steps
}

// plainer removes deviations from a drawn order, one at a time, as long as the
// order shows the rule. It writes the scenario anew each time, without lines
// that no longer apply.
func (x *reducer) plainer(sch Schedule) Schedule {
	ctx, stop := context.WithTimeout(x.ctx, x.longest())
	defer stop()
	for again := true; again && ctx.Err() == nil; {
		again = false
		for _, c := range sch.Simpler() {
			if ctx.Err() != nil {
				break
			}
			if x.shows(ctx, c.text()) {
				sch, again = c, true
				break
			}
		}
	}
	return sch
}
