package schedules

import (
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/acp-test/acp-test/fakellm"
	"github.com/acp-test/acp-test/sweep"
)

// mostGates is at how many gates a turn of an order is held at most.
const mostGates = 3

// draw draws an order of acts in the turns of a scenario.
func (v version) draw(s *sweep.Script, r *rand.Rand, depth int, how sweep.Choice) (sweep.Schedule, bool) {
	can := slices.DeleteFunc(slices.Clone(s.Reached), func(o sweep.Observed) bool {
		return o.Seen.End == "" || of(o.Seen).refused || o.Seen.Requests == 0
	})
	if len(can) == 0 {
		return sweep.Schedule{}, false
	}
	const tries = 10
	for range tries {
		o := &order{Observed: can[r.IntN(len(can))], version: v, depth: depth}
		if !o.chooseTurns(r) || !o.chooseActs(r, depth, how) {
			continue
		}
		if how == sweep.Uniformly {
			o.timeAll(r)
		} else {
			o.timeActs(r)
		}
		o.settle()
		if _, _, ok := o.write(); ok {
			return o.planned(), true
		}
	}
	return sweep.Schedule{}, false
}

// chooseTurns draws which turns take part, and where they are held.
func (o *order) chooseTurns(r *rand.Rand) bool {
	model := sweep.Plain(o.Script.Spoken.Turns[o.Seen.Nth])
	places := slices.DeleteFunc(model.Places(), func(p fakellm.Place) bool { return p.Reply >= o.Seen.Requests })
	if len(places) == 0 {
		return false
	}
	gates := func() []fakellm.Place {
		var out []fakellm.Place
		n := 1 + r.IntN(mostGates)
		for _, i := range r.Perm(len(places))[:min(n, len(places))] {
			out = append(out, places[i])
		}
		slices.SortFunc(out, func(a, b fakellm.Place) int {
			return slices.Index(places, a) - slices.Index(places, b)
		})
		return out
	}
	choice := of(o.Seen).choice
	asks := of(o.Seen).asked > 0 && slices.Contains([]string{"allow_once", "reject_once"}, choice) &&
		len(permits(o.Script)) <= 1
	stops := func() []stop {
		out := stopsOf(o.Seen, gates(), o.Seen.Requests)
		if !asks {
			out = slices.DeleteFunc(out, func(s stop) bool { return s.gate == nil })
		}
		return out
	}
	first := playedTurn{session: o.Seen.Session, text: o.Seen.Turn.Text, rest: o.Seen.Rest, says: model, stops: stops(),
		prefix: "a", whole: true, choice: choice}
	if asks && choice == "allow_once" && r.IntN(4) == 0 {
		first.choice = "reject_once"
		o.afterRefusal(&first)
	} else if r.IntN(8) == 0 {
		o.fail(&first, fakellm.Place{Reply: r.IntN(o.Seen.Requests)}, asks)
	}
	if r.IntN(8) == 0 {
		first.pace = paces[r.IntN(len(paces))]
	}
	o.turns = []playedTurn{first}
	own := (&sweep.Builder{Situation: sweep.Situation{Script: o.Script}}).Own
	if r.IntN(2) == 0 {
		other := playedTurn{session: "the_other", text: own("Keep talking elsewhere."),
			says: fakellm.NewTurn(fakellm.NewReply(fakellm.Text("Part one. ", "Part two. "))), prefix: "b"}
		all := other.says.Places()
		other.stops = []stop{{gate: &all[0]}, {gate: &all[1]}, {gate: &all[2]}}[r.IntN(2):]
		o.turns = append(o.turns, other)
		o.uses = true
	}
	// A file that is new the first time is not new the next.
	again := !inBlocks(o.Seen.Turn) && !slices.ContainsFunc(of(o.Seen).effects, func(e sweep.Effect) bool {
		return e.What != "changed" || !o.Script.Holds(e.File)
	})
	if again && r.IntN(2) == 0 {
		next := playedTurn{session: o.Seen.Session, text: own("Once more, please."), rest: o.Seen.Rest, says: model,
			stops: stops(), prefix: "c", whole: true, choice: choice, next: true}
		o.turns = append(o.turns, next)
		if asks && first.choice == choice && r.IntN(6) == 0 && !o.version.stateEnds { // whose ends the answers do not tell
			o.answerLate()
		}
	}
	return true
}

// afterRefusal leaves out the stops behind the permission that is refused: an agent may
// end its turn there. Of several permissions none is refused.
func (o *order) afterRefusal(t *playedTurn) {
	at := slices.IndexFunc(t.stops, func(s stop) bool { return s.gate == nil })
	if at < 0 || of(o.Seen).asked > 1 {
		t.choice = of(o.Seen).choice
		return
	}
	t.stops = t.stops[:at+1]
}

// fail has the model fail once at the beginning of a reply, when that is let go. What
// comes behind it is no stop: an agent may ask again, or end its turn.
func (o *order) fail(t *playedTurn, at fakellm.Place, asks bool) {
	var gates []fakellm.Place
	for _, s := range t.stops {
		if s.gate != nil && s.gate.Reply < at.Reply {
			gates = append(gates, *s.gate)
		}
	}
	t.stops = slices.DeleteFunc(stopsOf(o.Seen, gates, at.Reply), func(s stop) bool { return s.gate == nil && !asks })
	t.stops, t.fails = append(t.stops, stop{gate: &at}), &at
}

// answerLate has the first permission of the first turn answered in the next turn.
func (o *order) answerLate() {
	first := &o.turns[0]
	asks := func(s stop) bool { return s.gate == nil }
	at := slices.IndexFunc(first.stops, asks)
	if next := &o.turns[len(o.turns)-1]; at >= 0 && first.fails == nil && slices.ContainsFunc(next.stops, asks) {
		first.stops, o.late = first.stops[:at+1], true
	}
}

// tracks are the acts of each session's turns, in their order.
func (o *order) tracks() [][]item {
	var names []string
	var out [][]item
	for i, t := range o.turns {
		at := slices.Index(names, t.session)
		if at < 0 {
			at = len(names)
			names, out = append(names, t.session), append(out, nil)
		}
		out[at] = append(out[at], item{kind: begins, turn: i})
		for k := range t.stops {
			out[at] = append(out[at], item{kind: goesOn, turn: i, stop: k})
		}
		out[at] = append(out[at], item{kind: isOver, turn: i})
	}
	return out
}

// chooseActs draws the order: that of the sessions by priorities that change at drawn
// places, as probabilistic concurrency testing does, and where so many acts come besides.
func (o *order) chooseActs(r *rand.Rand, depth int, how sweep.Choice) bool {
	tracks := o.tracks()
	o.items = merge(tracks, r, depth, how)
	if len(tracks) > 1 && depth > 0 && how != sweep.Uniformly && r.IntN(6) == 0 {
		depth-- // the order of both sessions is the deviation
	}
	can := o.possible()
	at := 0
	for n := range depth {
		// What breaks takes acts that come close to each other, more often than not.
		if n == 0 || how == sweep.Uniformly || r.IntN(2) == 0 {
			at = 1 + r.IntN(len(o.items))
		} else {
			at = min(at+1+r.IntN(2), len(o.items))
		}
		o.items = slices.Insert(o.items, at, item{kind: besides, act: can[r.IntN(len(can))]})
	}
	return true
}

// merge brings tracks into one order: always the track of the highest priority takes its
// next step; at each of so many drawn places the one that runs falls to the end. Uniformly,
// each step is drawn.
func merge(tracks [][]item, r *rand.Rand, changes int, how sweep.Choice) (out []item) {
	total := 0
	for _, t := range tracks {
		total += len(t)
	}
	rank := r.Perm(len(tracks)) // the last is taken first
	change := map[int]bool{}
	for range changes {
		change[r.IntN(total)] = true
	}
	left := make([][]item, len(tracks))
	copy(left, tracks)
	for len(out) < total {
		if how == sweep.Uniformly {
			rank = r.Perm(len(tracks))
		}
		for i := len(rank) - 1; i >= 0; i-- {
			if t := rank[i]; len(left[t]) > 0 {
				if change[len(out)] && how != sweep.Uniformly {
					rank = slices.Insert(slices.Delete(rank, i, i+1), 0, t)
					delete(change, len(out))
					break
				}
				out, left[t] = append(out, left[t][0]), left[t][1:]
				break
			}
		}
	}
	return out
}

// timeActs draws how long after the act before each of those besides comes, and what
// follows it.
func (o *order) timeActs(r *rand.Rand) {
	for i := range o.items {
		near := o.items[i].kind == besides || i > 0 && o.items[i-1].kind == besides
		if near && r.IntN(2) == 0 || !near && r.IntN(12) == 0 {
			o.items[i].gap = gaps[r.IntN(len(gaps))]
		}
		if i > 0 && near && r.IntN(3) == 0 {
			o.items[i-1].loose = true
		}
	}
}

// timeAll draws for each act when it comes.
func (o *order) timeAll(r *rand.Rand) {
	for i := range o.items {
		o.items[i].gap = gaps[r.IntN(len(gaps))]
		o.items[i].loose = r.IntN(2) == 0
	}
}

// settle makes an order one that can be played: what is waited for is no act that comes
// together with others, and a permission is awaited at once.
func (o *order) settle() {
	for i := range o.items {
		it := &o.items[i]
		if o.leads(*it) {
			it.loose = false
		}
		if it.gap != together {
			continue
		}
		alone := func(it item) bool { return it.kind == isOver || it.kind == besides && it.act.slow }
		if i == 0 || alone(*it) || alone(o.items[i-1]) || o.leads(o.items[i-1]) {
			it.gap = 0
			continue
		}
		o.items[i-1].loose = true
	}
}

// planned is the order as a sweep sees it.
func (o *order) planned() sweep.Schedule {
	acts := o.acts()
	slices.Sort(acts)
	name := strings.Join(slices.Compact(acts), " + ")
	if name == "" {
		name = "nothing"
	}
	s := sweep.Schedule{
		Scenario: o.Script.ID, Turn: o.Seen.Nth, Turns: len(o.Script.Turns), Drawn: o.key(),
		Point: sweep.DrawnPoint, State: sweep.DrawnState, Action: name, Rank: o.depth, Place: int(atSecond), Races: true,
		Tracks: len(o.tracks()) + len(acts), Steps: len(o.items),
		Write: func(map[string]bool) (sweep.Archive, map[string]bool) {
			a, keep, _ := o.write()
			return a, keep
		},
		Simpler: o.simpler, Vary: o.vary,
	}
	s.Tried, s.Orders = o.tried()
	return s
}
