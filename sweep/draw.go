package sweep

import (
	"cmp"
	"fmt"
	"iter"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
)

// Choice determines how orders of acts are chosen.
type Choice uint8

const (
	// Guided prefers orders with untried pairs, and varies orders whose runs
	// showed something new.
	Guided Choice = iota
	// ByPriority draws orders by priorities alone, as in probabilistic concurrency
	// testing.
	ByPriority
	// Uniformly draws each step of an order with equal probability.
	Uniformly
)

// candidates is how many orders are drawn at a time; the one whose pairs are
// newest runs. mostDeep is the maximum number of deviations in an order.
// mostKept is the maximum number of orders that are saved because they showed
// something new.
const candidates, mostDeep, mostKept = 16, 3, 64

// depths lists the numbers of deviations of successive drawn orders.
var depths = []int{2, 1, 2, 3}

// drawer draws orders of acts. The seed and the baselines determine them.
type drawer struct {
	*sweep
	r     *rand.Rand
	from  []*Script
	drawn map[string]bool
	n     int
}

func (s *sweep) drawer() *drawer {
	d := &drawer{sweep: s, r: rand.New(rand.NewPCG(uint64(s.engine.Seed), 0xd4a)), drawn: map[string]bool{}}
	if s.Planner.Choose != nil && len(s.Actions) == 0 && s.wanted(s.Points, DrawnPoint, DrawnState) {
		d.from = s.bases
	}
	return d
}

// DrawnPoint and DrawnState are the Point and State of a drawn order.
const DrawnPoint, DrawnState = "in a drawn order", "drawn order"

// next returns the next order. ok is false if it cannot find a new one.
func (d *drawer) next() (best Schedule, ok bool) {
	// Every third order is drawn by priorities alone, because only for such orders
	// the probability of a missed bug has a bound.
	guided := d.Choice == Guided && d.n%3 != 0
	depth, most := depths[d.n/3%len(depths)], 1
	if d.Choice != Guided {
		depth = depths[d.n%len(depths)]
	}
	if guided {
		most = candidates
	}
	d.n++
	worth := -1.0
	tries := 40
	if d.Shard != nil {
		tries *= d.Shard.Of
	}
	for range tries {
		how := d.Choice
		if guided {
			depth = d.r.IntN(mostDeep + 1)
			how = []Choice{ByPriority, Uniformly}[d.r.IntN(2)]
		}
		sch, found := d.one(depth, how, guided)
		if !found || d.drawn[sch.Drawn] || !d.Shard.has(sch) {
			continue
		}
		if w := d.cover.worth(sch); w > worth {
			best, worth = sch, w
		}
		if most--; most == 0 {
			break
		}
	}
	if worth < 0 {
		return best, false
	}
	d.drawn[best.Drawn] = true
	best.Number, best.Guided = d.n, guided
	if d.Shard != nil { // runs in different parts must have different names
		best.Number = d.n*d.Shard.Of + d.Shard.Index
	}
	return best, true
}

// one draws a new order or, if guided, sometimes varies an order that showed
// something new.
func (d *drawer) one(depth int, how Choice, guided bool) (Schedule, bool) {
	if len(d.from) == 0 {
		return Schedule{}, false
	}
	if guided && d.r.IntN(3) == 0 {
		if kept, ok := d.cover.pick(d.r); ok {
			return kept.Vary(d.r)
		}
	}
	return d.Planner.draw(d.from[d.r.IntN(len(d.from))], d.r, depth, how)
}

// mixed yields the schedules to run: listed and drawn ones alternate until one
// kind is used up, and the rest of the other kind follows. Without Max and
// Budget, it draws as many as are listed.
func (s *sweep) mixed(list []Schedule) iter.Seq[Schedule] {
	return func(yield func(Schedule) bool) {
		d := s.drawer()
		most := s.Shard.most(s.Max)
		draws := math.MaxInt
		if s.Max == 0 && s.Budget == 0 {
			draws = len(list)
		}
		next, stop := iter.Pull(s.distinct(list))
		defer stop()
		var sources = []func() (Schedule, bool){next, func() (Schedule, bool) {
			if d.n >= draws {
				return Schedule{}, false
			}
			return d.next()
		}}
		for n := 0; len(sources) > 0; {
			for i := 0; i < len(sources); i++ {
				if most > 0 && n == most {
					return
				}
				sch, ok := sources[i]()
				if !ok {
					sources = slices.Delete(sources, i, i+1)
					i--
					continue
				}
				n++
				sch.nth = n
				if !yield(sch) {
					return
				}
			}
		}
	}
}

// drawnID returns the name of a drawn order's run.
func (s Schedule) drawnID() string {
	return fmt.Sprintf("sweep/%s/%d/order-%d", s.Scenario, s.Turn+1, s.Number) + strings.TrimRight("-"+slug(s.Action), "-")
}

// draw draws an order of acts for a turn of a script, with depth deviations
// from the natural order. ok is false if it finds none.
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

// tracks returns one track per session: the acts of the session's turns, in
// order.
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

// chooseActs draws the order of the acts. It first merges the sessions by
// priorities that change at random places, as in probabilistic concurrency
// testing. It then inserts depth additional acts.
func (o *Sequence) chooseActs(r *rand.Rand, depth int, how Choice) bool {
	tracks := o.tracks()
	o.Items = merge(tracks, r, depth, how)
	if len(tracks) > 1 && depth > 0 && how != Uniformly && r.IntN(6) == 0 {
		depth-- // the order of the two sessions counts as a deviation
	}
	can := o.possible()
	at := 0
	for n := range depth {
		// Bugs often need acts close together, so about half of the additional acts
		// are.
		if n == 0 || how == Uniformly || r.IntN(2) == 0 {
			at = 1 + r.IntN(len(o.Items))
		} else {
			at = min(at+1+r.IntN(2), len(o.Items))
		}
		o.Items = slices.Insert(o.Items, at, Item{Kind: Besides, Act: can[r.IntN(len(can))]})
	}
	return true
}

// merge merges tracks into one order. The track with the highest priority takes
// the next step. At a number of random places (changes), the current track
// drops to the lowest priority. With Uniformly, the track of each step is drawn
// instead.
func merge(tracks [][]Item, r *rand.Rand, changes int, how Choice) (out []Item) {
	total := 0
	for _, t := range tracks {
		total += len(t)
	}
	rank := r.Perm(len(tracks)) // the last track in rank has the highest priority
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

// timeActs draws the times before and after additional acts and, rarely, before
// other acts.
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

// timeAll draws the time before each act.
func (o *Sequence) timeAll(r *rand.Rand) {
	for i := range o.Items {
		o.Items[i].Gap = gaps[r.IntN(len(gaps))]
		o.Items[i].Loose = r.IntN(2) == 0
	}
}

// settled makes the sequence playable and returns it as a schedule. ok is false
// if one of its acts is impossible at its place.
func (o *Sequence) settled() (sch Schedule, ok bool) {
	o.settle()
	if _, _, ok = o.Script.Planner.Write(o); ok {
		sch = o.planned()
	}
	return sch, ok
}

// settle makes an order playable. An act that waits must not come together with
// other acts, and each permission request must be awaited at once.
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

// planned returns the sequence as a schedule.
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

// leads reports whether the act of an item leads to a request of the agent. The
// script must await such a request at once, because the answer is an act of the
// sequence.
func (o *Sequence) leads(it Item) bool {
	if it.Kind != Begins && it.Kind != GoesOn {
		return false
	}
	next := o.Turns[it.Turn].behind(it)
	return len(next) > 0 && next[0].Asks()
}
