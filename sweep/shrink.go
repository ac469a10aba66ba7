package sweep

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/acp-test/acp-test/scenarios"
	"github.com/acp-test/acp-test/scenarios/results"
)

// reducer makes one script shorter while it keeps showing one rule.
type reducer struct {
	*sweep
	ctx  context.Context
	rule string
	// late says that the finding is a deadline that passed. A script that
	// shows the rule the other way shows something else.
	late bool
	// heard says that the script waits for what shows the rule. A shorter one waits for
	// that too: what is only seen by the way depends on how long a run listens.
	heard bool
	keep  map[string]bool
	id    string
	tries int
	sure  bool // it shows in every run
	// only are the rules that may show beside it; nil means any. With learns, hit adds those of
	// its run: so the runs of the whole script teach what may show.
	only   []string
	learns bool
	mu     sync.Mutex
	// told, if set, is told of what is left, and how many scripts were tried for it.
	told func(left Archive, tried int)
	// script is the current smallest script.
	script Archive
	// step bounds a line while changes are tried: most of them make a script
	// that waits for what cannot come. What is kept is confirmed without it.
	// Where brief is set, that bounds all waits instead.
	step  time.Duration
	brief *scenarios.Engine
}

// longest is how long one finding is made shorter.
func (x *reducer) longest() time.Duration {
	return cmp.Or(max(x.Shrink, 0), max(20*time.Second, x.Budget/4))
}

// change is one way to make a script shorter, and whether it applies.
type change func(Archive) (Archive, bool)

// shows runs a script until it shows the rule, at most as often as is tried.
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
			// What always shows must not become a race.
			hits, _ := x.repeat(ctx, x.slots, a, 2, x.step)
			return hits == 2
		}
	}
	return false
}

// once runs a script and reports whether it shows the rule, and whether there
// was still time to run it. A step of 0 is the engine's.
func (x *reducer) once(ctx context.Context, slots slots, a Archive, step time.Duration) (hit, ran bool) {
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
	res, ran := slots.run(x.ctx, ctx, e, sc)
	ran = ran && ctx.Err() == nil
	return ran && x.hit(res), ran
}

// hit reports whether a run shows the rule, and nothing that may not show beside it. A
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

func (x *reducer) repeat(ctx context.Context, slots slots, a Archive, n int, step time.Duration) (hits, runs int) {
	var wait sync.WaitGroup
	var mu sync.Mutex
	for range n {
		wait.Go(func() {
			hit, ran := x.once(ctx, slots, a, step)
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

// confirm runs a script n times, as patiently as it was explored, half of them in a crowd: what
// no line orders goes another way there. A deadline that passes is no matter of order. The end of
// the budget cuts nothing off: that would count as not shown.
func (x *reducer) confirm(a Archive, n int) (hits, runs int) {
	if x.late {
		return x.repeat(x.whole, x.slots, a, n, 0)
	}
	hits, runs = x.repeat(x.whole, x.slots, a, n-n/2, 0)
	h, r := x.repeat(x.whole, x.crowd, a, n/2, crowded*x.engine.StepTimeout)
	return hits + h, runs + r
}

// crowded is how many times more scenarios than usual run in a crowd, and how many times longer
// each line may take.
const crowded = 4

// step is a script, and the change that made it.
type step struct {
	script Archive
	by     change
}

// shrunk is the shortest script that shows the rule as often as a does, which was in hits
// of runs, and how often that is in a number of times. Where what is left turns out to be
// a race, it goes back, a change, then two, then four, and makes those again that leave it
// as sure.
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

// retrace goes back from the last step until one is sure, and makes the changes behind it
// again, each of which counts if what it makes is sure.
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

// shrink takes away what can go: lines, replies and pieces of the model, files. It
// returns a and the script after each change.
func (x *reducer) shrink(ctx context.Context, a Archive) []step {
	steps := []step{{script: a}}
	for {
		before := len(steps)
		// What stands many times goes first: it takes away the most for one try.
		for _, pass := range []func(Archive) []change{x.series, x.tail, x.blocks, x.lines, x.turns, x.files} {
			steps = x.apply(ctx, steps, pass(steps[len(steps)-1].script))
		}
		if len(steps) == before || ctx.Err() != nil {
			return steps
		}
	}
}

// apply makes the changes to the last of the steps, one after the other, that keep the
// rule showing, and returns the steps with those that this makes. Several are tried at
// once: those before the first that holds have been seen not to, those behind it are
// tried again on what it made.
func (x *reducer) apply(ctx context.Context, steps []step, changes []change) []step {
	for len(changes) > 0 && ctx.Err() == nil {
		a := steps[len(steps)-1].script
		batch := changes[:min(len(changes), cap(x.slots))]
		tried := make([]Archive, len(batch))
		holds := make([]bool, len(batch))
		// What comes behind a change that holds need not be waited for.
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

// plainer takes deviations out of an order that was drawn, one at a time, while it shows
// the rule: what is left is written anew each time, so that it asks for nothing that does
// not follow.
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
