package sweep

import (
	"fmt"
	"iter"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
)

// Choice is how orders are chosen.
type Choice uint8

const (
	// Guided chooses what was not tried, by priorities, and varies what showed something
	// new.
	Guided Choice = iota
	// ByPriority chooses by priorities alone, as probabilistic concurrency testing does.
	ByPriority
	// Uniformly draws each step.
	Uniformly
)

// candidates is of how many orders the one that tries the least tried is taken, mostDeep
// how many deviations they have at most, and mostKept how many orders that showed something
// new are varied.
const candidates, mostDeep, mostKept = 16, 3, 64

// depths are how many deviations orders have, in turn.
var depths = []int{2, 1, 2, 3}

// drawer draws orders from the seed and the baselines.
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

// DrawnPoint and DrawnState are the point and the situation of orders that were drawn.
const DrawnPoint, DrawnState = "in a drawn order", "drawn order"

// next is the next order; ok is false if no more are found.
func (d *drawer) next() (best Schedule, ok bool) {
	// Every third order is drawn by priorities alone: only of those is a bound known.
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
	if d.Shard != nil { // no two parts have runs of one name
		best.Number = d.n*d.Shard.Of + d.Shard.Index
	}
	return best, true
}

// one draws an order, or varies one that showed something new.
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

// mixed are the schedules that run: those that were listed and those that are drawn in
// turn, and what is left of either. Without a bound, as many are drawn as are listed.
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

// drawnID names the run of an order that was drawn.
func (s Schedule) drawnID() string {
	return fmt.Sprintf("sweep/%s/%d/order-%d", s.Scenario, s.Turn+1, s.Number) + strings.TrimRight("-"+slug(s.Action), "-")
}
