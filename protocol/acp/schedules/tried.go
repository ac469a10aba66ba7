package schedules

import (
	"cmp"
	"fmt"
)

// tried are what an order tries: pairs of an abstract state and an act, with and without
// the time before the act, pairs of two acts with the time between them, and the orders of
// two acts of different sessions, or of an act and one besides.
func (o *order) tried() (pairs []string, orders [][2]string) {
	states := map[string]*abstract{o.Seen.Session: {}, "the_other": {}}
	last := "nothing"
	for i, it := range o.items {
		if it.kind == isOver {
			states[o.turns[it.turn].session].end()
			continue
		}
		name := o.name(it)
		now := fmt.Sprintf("%s, %s", states[o.Seen.Session], states["the_other"])
		pairs = append(pairs,
			fmt.Sprintf("%s: %s", now, name),
			fmt.Sprintf("%s, after %s: %s", now, it.gap, name),
			fmt.Sprintf("%s, after %s: %s", last, it.gap, name))
		if it.kind == besides {
			states[o.Seen.Session].cancels(it.act.name == "cancel")
			states["the_other"].cancels(it.act.name == "cancel of another session")
		} else {
			states[o.turns[it.turn].session].goOn(&o.turns[it.turn], it)
		}
		for _, before := range o.items[:i] {
			if o.track(before) != o.track(it) {
				orders = append(orders, [2]string{o.name(before), name})
			}
		}
		last = name
	}
	return pairs, orders
}

// abstract is what is going on in a session, as far as it tells situations apart.
type abstract struct {
	at          string // where its turn waits; "" if none runs
	now, before int    // cancels in this turn, and in the one before
	turns       int
}

func (a *abstract) String() string {
	return fmt.Sprintf("%s %d/%d/%d", cmp.Or(a.at, "idle"), a.turns, min(a.now, 2), min(a.before, 2))
}

func (a *abstract) cancels(yes bool) {
	if yes {
		a.now++
	}
}

func (a *abstract) end() { a.at = "" }

// goOn is what an act of a turn brings about.
func (a *abstract) goOn(t *playedTurn, it item) {
	next := 0
	if it.kind == begins {
		a.turns, a.before, a.now = a.turns+1, a.now, 0
	} else {
		next = it.stop + 1
	}
	switch {
	case next >= len(t.stops):
		a.at = "running"
	case t.stops[next].gate == nil:
		a.at = "asking"
	case t.stops[next].gate.Reply > 0:
		a.at = "held after a call"
	default:
		a.at = "held"
	}
}

// track is what an act belongs to: acts of one have but one order.
func (o *order) track(it item) string {
	if it.kind == besides {
		return it.act.name
	}
	return "of " + o.turns[it.turn].session
}
