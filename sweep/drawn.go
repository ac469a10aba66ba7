package sweep

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"strings"
)

// draw draws a sequence in a turn of a script with so many deviations from the natural one; ok
// is false if it finds none.
func (p *Planner) draw(s *Script, r *rand.Rand, depth int, how Choice) (Schedule, bool) {
	const tries = 10
	for range tries {
		o := &Sequence{Depth: depth}
		if !p.Choose(o, s, r) || !o.chooseActs(r, depth, how) {
			continue
		}
		if how == Uniformly {
			o.timeAll(r)
		} else {
			o.timeActs(r)
		}
		if s, ok := o.settled(); ok {
			return s, true
		}
	}
	return Schedule{}, false
}

// tracks are the acts of each session's turns, in their order.
func (o *Sequence) tracks() [][]Item {
	var names []string
	var out [][]Item
	for i, t := range o.Turns {
		at := slices.Index(names, t.Session)
		if at < 0 {
			at = len(names)
			names, out = append(names, t.Session), append(out, nil)
		}
		out[at] = append(out[at], Item{Kind: Begins, Turn: i})
		for k := range t.Stops {
			out[at] = append(out[at], Item{Kind: GoesOn, Turn: i, Stop: k})
		}
		out[at] = append(out[at], Item{Kind: Ends, Turn: i})
	}
	return out
}

// chooseActs draws the order: that of the sessions by priorities that change at drawn
// places, as probabilistic concurrency testing does, and where so many acts come besides.
func (o *Sequence) chooseActs(r *rand.Rand, depth int, how Choice) bool {
	tracks := o.tracks()
	o.Items = merge(tracks, r, depth, how)
	if len(tracks) > 1 && depth > 0 && how != Uniformly && r.IntN(6) == 0 {
		depth-- // the order of both sessions is the deviation
	}
	can := o.possible()
	at := 0
	for n := range depth {
		// What breaks takes acts that come close to each other, more often than not.
		if n == 0 || how == Uniformly || r.IntN(2) == 0 {
			at = 1 + r.IntN(len(o.Items))
		} else {
			at = min(at+1+r.IntN(2), len(o.Items))
		}
		o.Items = slices.Insert(o.Items, at, Item{Kind: Besides, Act: can[r.IntN(len(can))]})
	}
	return true
}

// merge brings tracks into one order: always the track of the highest priority takes its
// next step; at each of so many drawn places the one that runs falls to the end. Uniformly,
// each step is drawn.
func merge(tracks [][]Item, r *rand.Rand, changes int, how Choice) (out []Item) {
	total := 0
	for _, t := range tracks {
		total += len(t)
	}
	rank := r.Perm(len(tracks)) // the last is taken first
	change := map[int]bool{}
	for range changes {
		change[r.IntN(total)] = true
	}
	left := make([][]Item, len(tracks))
	copy(left, tracks)
	for len(out) < total {
		if how == Uniformly {
			rank = r.Perm(len(tracks))
		}
		for i := len(rank) - 1; i >= 0; i-- {
			if t := rank[i]; len(left[t]) > 0 {
				if change[len(out)] && how != Uniformly {
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
func (o *Sequence) timeActs(r *rand.Rand) {
	for i := range o.Items {
		near := o.Items[i].Kind == Besides || i > 0 && o.Items[i-1].Kind == Besides
		if near && r.IntN(2) == 0 || !near && r.IntN(12) == 0 {
			o.Items[i].Gap = gaps[r.IntN(len(gaps))]
		}
		if i > 0 && near && r.IntN(3) == 0 {
			o.Items[i-1].Loose = true
		}
	}
}

// timeAll draws for each act when it comes.
func (o *Sequence) timeAll(r *rand.Rand) {
	for i := range o.Items {
		o.Items[i].Gap = gaps[r.IntN(len(gaps))]
		o.Items[i].Loose = r.IntN(2) == 0
	}
}

// settled is the sequence as a schedule, once it is one that can be played; ok is false if one of
// its acts cannot be done where it stands.
func (o *Sequence) settled() (sch Schedule, ok bool) {
	o.settle()
	if _, _, ok = o.Script.Planner.Write(o); ok {
		sch = o.planned()
	}
	return sch, ok
}

// settle makes an order one that can be played: what is waited for is no act that comes
// together with others, and a permission is awaited at once.
func (o *Sequence) settle() {
	for i := range o.Items {
		it := &o.Items[i]
		if o.leads(*it) {
			it.Loose = false
		}
		if it.Gap != Together {
			continue
		}
		alone := func(it Item) bool { return it.Kind == Ends || it.Kind == Besides && it.Act.Is("slow") }
		if i == 0 || alone(*it) || alone(o.Items[i-1]) || o.leads(o.Items[i-1]) {
			it.Gap = 0
			continue
		}
		o.Items[i-1].Loose = true
	}
}

// planned is the order as a sweep sees it.
func (o *Sequence) planned() Schedule {
	acts := o.Acts()
	slices.Sort(acts)
	name := cmp.Or(strings.Join(slices.Compact(acts), " + "), "nothing")
	s := Schedule{
		Scenario: o.Script.ID, Turn: o.Seen.Nth, Turns: len(o.Script.Turns), Drawn: o.key(),
		Point: DrawnPoint, State: DrawnState, Action: name, Rank: o.Depth, Races: true,
		Tracks: len(o.tracks()) + len(acts), Steps: len(o.Items),
		Write: func(map[string]bool) (Archive, map[string]bool) {
			a, keep, _ := o.Script.Planner.Write(o)
			return a, keep
		},
		Simpler: o.simpler, Vary: o.vary,
	}
	s.Tried, s.Orders = o.tried()
	return s
}

// leads reports whether the act of an item leads to a request of the agent, which is awaited at
// once: its answer is an act of the sequence.
func (o *Sequence) leads(it Item) bool {
	if it.Kind != Begins && it.Kind != GoesOn {
		return false
	}
	next := o.Turns[it.Turn].behind(it)
	return len(next) > 0 && next[0].Asks()
}
