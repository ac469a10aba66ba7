package schedules

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/acp-test/acp-test/fakellm"
	"github.com/acp-test/acp-test/scenarios/script"
	"github.com/acp-test/acp-test/sweep"
)

// order is one order of acts in the turns of two sessions: what leads each turn from its
// prompt to its end, and what is done besides. Left alone, each turn takes its steps and
// each step is awaited; what differs from that is a deviation.
type order struct {
	sweep.Observed
	version version
	turns   []playedTurn
	items   []item
	depth   int // deviations
	uses    bool
	// late says that the first turn is cancelled while its permission is open, which is
	// answered with cancelled once that of the next turn is open too.
	late bool
}

// playedTurn is a turn of an order.
type playedTurn struct {
	session string
	text    script.Word
	rest    []script.Word
	says    fakellm.TurnNode
	stops   []stop
	prefix  string // of the names of its gates
	whole   bool   // it is the target's turn, not only words
	choice  string // how its permissions are answered
	next    bool   // its session had a turn before
	// pace is how long the model takes for each piece.
	pace time.Duration
	// fails is where the model fails once, behind the last stop; nil is nowhere.
	fails *fakellm.Place
}

// stop is where a turn waits until it is let go: a gate of the model, or a permission.
type stop struct {
	gate *fakellm.Place
	nth  int // of the permission, from 1
}

// item is one act of an order.
type item struct {
	kind itemKind
	turn int // which turn it belongs to; of an act besides, the session's latest
	stop int // which stop it lets go
	act  *aside
	gap  gap
	// loose says that what it brings about is not awaited.
	loose bool
}

type itemKind uint8

const (
	begins  itemKind = iota // the prompt
	goesOn                  // a gate is released, a permission answered
	isOver                  // the end is awaited: no act
	besides                 // something that the turn does not need
)

// gap is how long it takes from the act before: nothing, a time, or no time at all,
// since the agent stands still meanwhile.
type gap time.Duration

const together gap = -1

// gaps are the rungs of the ladder.
var gaps = []gap{0, gap(time.Millisecond), gap(5 * time.Millisecond), gap(20 * time.Millisecond),
	gap(100 * time.Millisecond), together}

// paces are how long a slow model takes for each piece.
var paces = []time.Duration{time.Millisecond, 5 * time.Millisecond, 20 * time.Millisecond}

func (g gap) String() string {
	if g == together {
		return "together"
	}
	return time.Duration(g).String()
}

// name is what an item is called in maps of what was tried.
func (o *order) name(it item) string {
	who := "another session's"
	if it.kind != besides {
		t := o.turns[it.turn]
		if t.session == o.Seen.Session {
			who = "the"
		}
		if t.next {
			who = "the next"
		}
	}
	switch it.kind {
	case begins:
		return who + " prompt"
	case goesOn:
		if o.turns[it.turn].stops[it.stop].gate == nil {
			return who + " answer"
		}
		return who + " model goes on"
	case isOver:
		return who + " end"
	}
	return it.act.name
}

// key tells orders apart by their acts: where the end of a turn is awaited among the acts
// of others makes no difference to the agent.
func (o *order) key() string {
	var b strings.Builder
	fmt.Fprint(&b, o.Script.ID, o.Seen.Nth, o.late)
	for _, t := range o.turns {
		fmt.Fprint(&b, t.session, t.choice, len(t.stops), t.pace, t.fails != nil)
		for _, s := range t.stops {
			if s.gate != nil {
				fmt.Fprint(&b, *s.gate)
			}
		}
	}
	for _, it := range o.items {
		if it.kind != isOver {
			fmt.Fprint(&b, " ", o.name(it), it.turn, it.stop, it.gap, it.loose)
		}
	}
	return b.String()
}

// acts are the names of what is done besides, in their order.
func (o *order) acts() []string {
	var out []string
	if o.late {
		out = append(out, "cancel + answer in the next turn")
	}
	for _, it := range o.items {
		if it.kind == besides {
			out = append(out, it.act.name)
		}
	}
	for _, t := range o.turns {
		if t.whole && t.session == o.Seen.Session && !t.next && t.choice == "reject_once" && of(o.Seen).choice != t.choice {
			out = append(out, "reject")
		}
		if t.fails != nil {
			out = append(out, "the model fails")
		}
	}
	return out
}

// stopsOf are the stops in so many replies of the target's turn: the gates that are given,
// and each permission between the reply that it comes of and the next.
func stopsOf(s *sweep.Seen, gates []fakellm.Place, replies int) (out []stop) {
	nth, at := 0, 0
	for r := range replies {
		for ; at < len(gates) && gates[at].Reply == r; at++ {
			out = append(out, stop{gate: &gates[at]})
		}
		for _, f := range s.Frames {
			if f.Kind == permission && f.Reply == r {
				nth++
				out = append(out, stop{nth: nth})
			}
		}
	}
	return out
}

// held reports whether a turn cannot come to its end once so many of its stops have been
// let go: a gate is ahead that holds it, or a permission that has been asked for.
func (t *playedTurn) held(gone int, asked bool) bool {
	return asked || slices.ContainsFunc(t.stops[min(gone, len(t.stops)):], func(s stop) bool { return s.gate != nil })
}
