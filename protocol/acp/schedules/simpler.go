package schedules

import (
	"math/rand/v2"
	"slices"

	"github.com/acp-test/acp-test/sweep"
)

// simpler are the orders with one deviation less, or one turn or gate less, the largest
// step first.
func (o *order) simpler() []sweep.Schedule {
	var out []sweep.Schedule
	try := func(change func(c *order) bool) {
		c := *o
		c.items, c.turns = slices.Clone(o.items), slices.Clone(o.turns)
		if !change(&c) {
			return
		}
		c.settle()
		if _, _, ok := c.write(); ok {
			out = append(out, c.planned())
		}
	}
	for i := len(o.turns) - 1; i > 0; i-- {
		try(func(c *order) bool { return c.dropTurn(i) })
	}
	for i, it := range o.items {
		if it.kind == besides {
			try(func(c *order) bool { c.items = slices.Delete(c.items, i, i+1); return true })
		}
	}
	for i, t := range o.turns {
		for k, s := range t.stops {
			if s.gate != nil {
				try(func(c *order) bool { return c.dropGate(i, k) })
			}
		}
	}
	for i, it := range o.items {
		if it.gap != 0 {
			try(func(c *order) bool { c.items[i].gap = 0; return true })
		}
		if it.loose {
			try(func(c *order) bool { c.items[i].loose = false; return true })
		}
	}
	return out
}

// dropTurn takes a turn away with its steps, unless an act is about it.
func (o *order) dropTurn(turn int) bool {
	other := o.turns[turn].session == "the_other"
	o.turns = slices.Delete(o.turns, turn, turn+1)
	o.items = slices.DeleteFunc(o.items, func(it item) bool { return it.kind != besides && it.turn == turn })
	for i := range o.items {
		if it := &o.items[i]; it.kind != besides && it.turn > turn {
			it.turn--
		}
	}
	o.uses = o.uses && !other
	return !slices.ContainsFunc(o.items, func(it item) bool {
		return it.kind == besides && it.act.needs != nil && !it.act.needs(o)
	})
}

// dropGate takes a gate of a turn away.
func (o *order) dropGate(turn, stop int) bool {
	t := &o.turns[turn]
	t.stops = slices.Delete(slices.Clone(t.stops), stop, stop+1)
	of := func(it item) bool { return it.kind == goesOn && it.turn == turn }
	o.items = slices.DeleteFunc(o.items, func(it item) bool { return of(it) && it.stop == stop })
	for i := range o.items {
		if it := &o.items[i]; of(*it) && it.stop > stop {
			it.stop--
		}
	}
	return true
}

// vary draws an order that differs in one thing: when an act comes, where, which it is, or
// whether there is one more.
func (o *order) vary(r *rand.Rand) (sweep.Schedule, bool) {
	const tries = 10
	for range tries {
		c := *o
		c.items, c.turns = slices.Clone(o.items), slices.Clone(o.turns)
		var acts []int
		for i, it := range c.items {
			if it.kind == besides {
				acts = append(acts, i)
			}
		}
		can := c.possible()
		if len(acts) == 0 || r.IntN(4) == 0 && c.depth < mostDeep {
			c.depth++
			at := 1 + r.IntN(len(c.items))
			if len(acts) > 0 && r.IntN(2) == 0 {
				at = acts[r.IntN(len(acts))] + 1
			}
			c.items = slices.Insert(c.items, at, item{kind: besides, act: can[r.IntN(len(can))]})
		} else {
			at := acts[r.IntN(len(acts))]
			switch r.IntN(3) {
			case 0:
				c.items[at].act = can[r.IntN(len(can))]
			case 1:
				to := max(1, min(at+r.IntN(5)-2, len(c.items)-1))
				it := c.items[at]
				c.items = slices.Insert(slices.Delete(c.items, at, at+1), to, it)
			}
		}
		c.timeActs(r)
		c.settle()
		if _, _, ok := c.write(); ok {
			return c.planned(), true
		}
	}
	return sweep.Schedule{}, false
}

// mostDeep is how many deviations an order has at most that was made of another.
const mostDeep = 4
