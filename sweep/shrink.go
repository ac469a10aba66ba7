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

// reducer shortens one script for as long as the script still shows one rule.
type reducer struct {
	*sweep
	ctx  context.Context
	rule string
	// late means that the finding is an expired timeout. A script that shows the
	// rule without one counts as another finding, and vice versa.
	late bool
	// heard means that the script waits for the entries that show the rule. A
	// shorter script must also wait for them. Otherwise they might come too late
	// for the run.
	heard bool
	keep  map[string]bool
	id    string
	tries int
	sure  bool // the finding occurs in every run
	// only lists the other rules that a run may show; nil allows all. If learns is
	// set, hit adds the rules of its run to the list. In this way, runs of the
	// complete script determine the allowed rules.
	only   []string
	learns bool
	mu     sync.Mutex
	// told, if set, is called with the current shortest script and the number
	// of scripts tried since the last call.
	told func(left Archive, tried int)
	// script is the shortest script so far.
	script Archive
	// step is the step timeout while changes are tried, because most changes make
	// the script wait in vain. A change that is kept is confirmed with the full
	// timeout. If brief is set, its timeouts apply instead of step.
	step  time.Duration
	brief *scenarios.Engine
}

// longest returns the maximum time for shortening one finding: Shrink, else a
// quarter of the budget but at least 20 s.
func (x *reducer) longest() time.Duration {
	return cmp.Or(max(x.Shrink, 0), max(20*time.Second, x.Budget/4))
}

// change returns a shorter script. It returns false if the change does not
// apply.
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
			// A finding that occurs in every run must not become a race.
			hits, _ := x.repeat(ctx, x.slots, a, 2, x.step)
			return hits == 2
		}
	}
	return false
}

// once runs a script. hit reports whether the script showed the rule, and ran
// whether there was time to run it. A step of 0 selects the engine's step
// timeout.
func (x *reducer) once(ctx context.Context, in slots.Slots, a Archive, step time.Duration) (hit, ran bool) {
	e := x.engine
	switch {
	case step > 0 && x.brief != nil:
		e = x.brief.Brief()
	case step > 0:
		e.StepTimeout = step
	}
	e.Out = "" // only the verdict matters
	if x.heard {
		e.Linger = new(time.Duration) // no entry that counts comes later
	}
	sc, err := x.engine.Protocol.Parse(x.id, x.id+".txtar", a.Text())
	if err != nil {
		return false, false
	}
	res, ran := run(x.ctx, ctx, in, e, sc)
	ran = ran && ctx.Err() == nil
	return ran && x.hit(res), ran
}

// hit reports whether a run shows the rule and no other rule that is not
// allowed. It is false for a script that cannot be played.
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

// confirm runs a script n times with the full timeouts. Half of the runs are in
// a crowd of other runs, in which unordered events come in another order. If
// the finding is an expired timeout, which does not depend on the order, there
// is no crowd. The end of the budget does not cut these runs off, because that
// would count as a run without the finding.
func (x *reducer) confirm(a Archive, n int) (hits, runs int) {
	if x.late {
		return x.repeat(x.whole, x.slots, a, n, 0)
	}
	hits, runs = x.repeat(x.whole, x.slots, a, n-n/2, 0)
	h, r := x.repeat(x.whole, x.crowd, a, n/2, crowded*x.engine.StepTimeout)
	return hits + h, runs + r
}

// crowded is the factor by which more scenarios than usual run at once in a
// crowd. The step timeout is multiplied by it too.
const crowded = 4

// step is a script with the change that produced it.
type step struct {
	script Archive
	by     change
}

// shrunk returns the shortest script that shows the rule at least as often as a
// does, in h of n runs. For a, this was hits of runs. If the shortened script
// turns out to be a race, shrunk undoes one change, then two more, then four
// more. It then redoes those that do not make the finding less frequent.
func (x *reducer) shrunk(a Archive, hits, runs, times int) (short Archive, h, n int) {
	most := x.longest()
	ctx, stop := context.WithTimeout(x.ctx, most)
	defer stop()
	early, done := context.WithTimeout(ctx, most-most/4) // an unconfirmed script is lost
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

// shrink removes as much as it can: lines, replies of the model and their
// pieces, and files. It returns a, followed by the script after each change.
func (x *reducer) shrink(ctx context.Context, a Archive) []step {
	steps := []step{{script: a}}
	for {
		before := len(steps)
		// Series of equal lines come first, because one attempt removes the most.
		for _, pass := range []func(Archive) []change{x.series, x.tail, x.blocks, x.lines, x.turns, x.files} {
			steps = x.apply(ctx, steps, pass(steps[len(steps)-1].script))
		}
		if len(steps) == before || ctx.Err() != nil {
			return steps
		}
	}
}

// apply makes changes to the last of the steps, for as long as the rule shows,
// and appends the new steps. It tries several changes at once and keeps the
// first that shows the rule. Later changes are then tried again on the new
// script.
func (x *reducer) apply(ctx context.Context, steps []step, changes []change) []step {
	for len(changes) > 0 && ctx.Err() == nil {
		a := steps[len(steps)-1].script
		batch := changes[:min(len(changes), cap(x.slots))]
		tried := make([]Archive, len(batch))
		holds := make([]bool, len(batch))
		// Once a change succeeds, the results of later ones are not needed.
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

// plainer removes deviations from a drawn order, one at a time, for as long as
// the order shows the rule. Each time it writes the scenario anew, which drops
// lines that no longer apply.
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
