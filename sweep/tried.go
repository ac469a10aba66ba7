package sweep

import (
	"cmp"
	"fmt"
)

// tried are what an order tries: pairs of an abstract state and an act, with and without
// the time before the act, pairs of two acts with the time between them, and the orders of
// two acts of different sessions, or of an act and one besides.
func (o *Sequence) tried() (pairs []string, orders [][2]string) {
	states := map[string]*abstract{o.Seen.Session: {}, Other: {}}
	last := "nothing"
	for i, it := range o.Items {
		if it.Kind == Ends {
			states[o.Turns[it.Turn].Session].end()
			continue
		}
		name := o.name(it)
		now := fmt.Sprintf("%s, %s", states[o.Seen.Session], states[Other])
		pairs = append(pairs,
			fmt.Sprintf("%s: %s", now, name),
			fmt.Sprintf("%s, after %s: %s", now, it.Gap, name),
			fmt.Sprintf("%s, after %s: %s", last, it.Gap, name))
		if it.Kind == Besides {
			states[o.Seen.Session].cancels(it.Act.Is("cancels"))
			states[Other].cancels(it.Act.Is("cancels-other"))
		} else {
			states[o.Turns[it.Turn].Session].goOn(&o.Turns[it.Turn], it)
		}
		for _, before := range o.Items[:i] {
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

// goOn is the effect of an act of a turn.
func (a *abstract) goOn(t *PlayedTurn, it Item) {
	if it.Kind == Begins {
		a.turns, a.before, a.now = a.turns+1, a.now, 0
	}
	switch next := t.behind(it); {
	case len(next) == 0:
		a.at = "running"
	case next[0].Asks():
		a.at = "asking"
	case next[0].Gate.Reply > 0:
		a.at = "held after a call"
	default:
		a.at = "held"
	}
}

// behind are the stops of the turn that come after an item: its prompt, or one that goes on.
func (t *PlayedTurn) behind(it Item) []Stop {
	if it.Kind == Begins {
		return t.Stops
	}
	return t.Stops[min(it.Stop+1, len(t.Stops)):]
}

// track is the sequence that an act belongs to: acts of one track have only one order.
func (o *Sequence) track(it Item) string {
	if it.Kind == Besides {
		return it.Act.Name
	}
	return "of " + o.Turns[it.Turn].Session
}
