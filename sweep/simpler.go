package sweep

import (
	"math/rand/v2"
	"slices"
)

// simpler returns the orders that have one deviation, turn or gate fewer. The
// largest reduction comes first.
func (o *Sequence) simpler() []Schedule {
	var out []Schedule
	try := func(change func(c *Sequence) bool) {
		c := o.clone()
		if !change(c) {
			return
		}
		if s, ok := c.settled(); ok {
			out = append(out, s)
		}
	}
	for i := len(o.Turns) - 1; i > 0; i-- {
		try(func(c *Sequence) bool { return c.dropTurn(i) })
	}
	for i, it := range o.Items {
		if it.Kind == Besides {
			try(func(c *Sequence) bool { c.Items = slices.Delete(c.Items, i, i+1); return true })
		}
	}
	for i, t := range o.Turns {
		for k, s := range t.Stops {
			if s.Gate != nil {
				try(func(c *Sequence) bool { return c.dropGate(i, k) })
			}
		}
	}
	for i, it := range o.Items {
		if it.Gap != 0 {
			try(func(c *Sequence) bool { c.Items[i].Gap = 0; return true })
		}
		if it.Loose {
			try(func(c *Sequence) bool { c.Items[i].Loose = false; return true })
		}
	}
	return out
}

func (o *Sequence) clone() *Sequence {
	c := *o
	c.Items, c.Turns = slices.Clone(o.Items), slices.Clone(o.Turns)
	return &c
}

// dropTurn removes a turn with its steps. It returns false if an additional act
// needs the turn.
func (o *Sequence) dropTurn(turn int) bool {
	o.Turns = slices.Delete(o.Turns, turn, turn+1)
	o.Items = slices.DeleteFunc(o.Items, func(it Item) bool { return it.Kind != Besides && it.Turn == turn })
	for i := range o.Items {
		if it := &o.Items[i]; it.Kind != Besides && it.Turn > turn {
			it.Turn--
		}
	}
	return !slices.ContainsFunc(o.Items, func(it Item) bool {
		return it.Kind == Besides && !o.Script.asides.fits(o, it.Act)
	})
}

// dropGate removes a gate from a turn.
func (o *Sequence) dropGate(turn, stop int) bool {
	t := &o.Turns[turn]
	t.Stops = slices.Delete(slices.Clone(t.Stops), stop, stop+1)
	of := func(it Item) bool { return it.Kind == GoesOn && it.Turn == turn }
	o.Items = slices.DeleteFunc(o.Items, func(it Item) bool { return of(it) && it.Stop == stop })
	for i := range o.Items {
		if it := &o.Items[i]; of(*it) && it.Stop > stop {
			it.Stop--
		}
	}
	return true
}

// vary draws an order that differs in one respect: the time, the place or the
// kind of an act, or an additional act.
func (o *Sequence) vary(r *rand.Rand) (Schedule, bool) {
	const tries = 10
	for range tries {
		c := o.clone()
		var acts []int
		for i, it := range c.Items {
			if it.Kind == Besides {
				acts = append(acts, i)
			}
		}
		can := c.possible()
		if len(acts) == 0 || r.IntN(4) == 0 && c.Depth < deepest {
			c.Depth++
			at := 1 + r.IntN(len(c.Items))
			if len(acts) > 0 && r.IntN(2) == 0 {
				at = acts[r.IntN(len(acts))] + 1
			}
			c.Items = slices.Insert(c.Items, at, Item{Kind: Besides, Act: can[r.IntN(len(can))]})
		} else {
			at := acts[r.IntN(len(acts))]
			switch r.IntN(3) {
			case 0:
				c.Items[at].Act = can[r.IntN(len(can))]
			case 1:
				to := max(1, min(at+r.IntN(5)-2, len(c.Items)-1))
				it := c.Items[at]
				c.Items = slices.Insert(slices.Delete(c.Items, at, at+1), to, it)
			}
		}
		c.timeActs(r)
		if s, ok := c.settled(); ok {
			return s, true
		}
	}
	return Schedule{}, false
}

// deepest is the maximum number of deviations in an order that vary returns.
const deepest = 4
