package sweep

import (
	"cmp"
	"fmt"
	"hash/maphash"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"

	"github.com/acp-test/acp-test/scenarios/results"
	"github.com/acp-test/acp-test/transcript"
)

// coverage records which combinations the drawn orders have tried, and what is
// new in their runs. It is safe for concurrent use.
type coverage struct {
	mu     sync.Mutex
	pairs  map[string]int    // abstract state and act -> how many times they were tried
	orders map[[2]string]int // two acts, the earlier first -> how many times they were tried
	shown  map[uint64]bool   // hashes of two consecutive frames
	seed   maphash.Seed
	kept   []Schedule  // orders whose runs showed something new
	ran    map[int]int // depth -> number of orders
	blind  map[int]int // depth -> number of orders drawn by priorities alone
	// tracks and steps are the largest numbers of tracks and steps in any order so
	// far.
	tracks, steps int
}

func newCoverage() *coverage {
	return &coverage{pairs: map[string]int{}, orders: map[[2]string]int{}, shown: map[uint64]bool{},
		seed: maphash.MakeSeed(), ran: map[int]int{}, blind: map[int]int{}}
}

// worth returns how new an order is, from 0 to 1: the mean of 1/(1+n) over its
// pairs, where n is how many times a pair was tried.
func (c *coverage) worth(s Schedule) (sum float64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range s.Tried {
		sum += 1 / float64(1+c.pairs[p])
	}
	for _, o := range s.Orders {
		sum += 1 / float64(1+c.orders[o])
	}
	return sum / float64(max(1, len(s.Tried)+len(s.Orders)))
}

// pick returns a random order whose run showed something new. It returns false
// if there is none.
func (c *coverage) pick(r *rand.Rand) (Schedule, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.kept) == 0 {
		return Schedule{}, false
	}
	return c.kept[r.IntN(len(c.kept))], true
}

// plays records the pairs of an order before it runs, so that the next order is
// different.
func (c *coverage) plays(s Schedule) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ran[s.Rank]++
	if !s.Guided {
		c.blind[s.Rank]++
	}
	c.tracks, c.steps = max(c.tracks, s.Tracks), max(c.steps, s.Steps)
	for _, p := range s.Tried {
		c.pairs[p]++
	}
	for _, o := range s.Orders {
		c.orders[o]++
	}
}

// showed saves an order if its run contains a sequence of frames that no
// earlier run contained.
func (c *coverage) showed(s Schedule, t *transcript.Transcript) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var h maphash.Hash
	fresh, before := false, ""
	sessions := map[string]byte{}
	for e := range t.All() {
		if e.Source == transcript.Note || e.Kind == transcript.ModelChunk {
			continue
		}
		if sessions[e.Session] == 0 {
			sessions[e.Session] = byte('a' + len(sessions)%26)
		}
		now := string(e.Source) + string(e.Kind) + e.Method + string(sessions[e.Session])
		h.SetSeed(c.seed)
		h.WriteString(before)
		h.WriteByte('\n')
		h.WriteString(now)
		if key := h.Sum64(); !c.shown[key] {
			c.shown[key], fresh = true, true
		}
		before = now
	}
	switch {
	case !fresh:
	case len(c.kept) < mostKept:
		c.kept = append(c.kept, s)
	default:
		c.kept[len(c.shown)%mostKept] = s
	}
}

// sum returns the coverage for the results, or nil if no order was drawn.
func (c *coverage) sum() *results.SweepOrders {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := &results.SweepOrders{Pairs: len(c.pairs), Depths: map[int]int{}, Missed: map[int]float64{}}
	out.Count(slices.Collect(maps.Keys(c.orders)))
	for depth, n := range c.ran {
		out.Drawn += n
		out.Depths[depth] = n
	}
	if out.Drawn == 0 {
		return nil
	}
	for depth := range c.blind {
		n := 0
		for d, ran := range c.blind {
			if d >= depth {
				n += ran
			}
		}
		out.Missed[depth] = missed(c.tracks, c.steps, depth, n)
	}
	return out
}

// tried returns the combinations that this part of a sweep has tried.
func (c *coverage) tried() *results.SweepTried {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := &results.SweepTried{States: slices.Sorted(maps.Keys(c.pairs)), Orders: slices.Collect(maps.Keys(c.orders))}
	slices.SortFunc(t.Orders, func(a, b [2]string) int {
		return cmp.Or(strings.Compare(a[0], b[0]), strings.Compare(a[1], b[1]))
	})
	return t
}

// missed returns an upper bound for the probability that all orders missed a
// bug of this depth. The depth of a bug is the number of acts that must come in
// a certain order. The bound is valid only for orders that are drawn by
// priorities. One order with k steps in n tracks finds the bug with probability
// at least 1/(n·k^(d-1)). See Burckhardt and others, A Randomized Scheduler
// with Probabilistic Guarantees of Finding Bugs, 2010.
func missed(tracks, steps, depth, orders int) float64 {
	if tracks == 0 || steps == 0 {
		return 1
	}
	one := 1 / (float64(tracks) * math.Pow(float64(steps), float64(depth-1)))
	return math.Pow(1-one, float64(orders))
}

// tried returns the combinations that an order tries. An element of pairs is an
// abstract state and an act, with or without the time before the act, or two
// consecutive acts and the time between them. An element of orders is two acts
// of different tracks, the earlier first.
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

// abstract is the state of a session, with as much detail as is needed to
// distinguish situations.
type abstract struct {
	at          string // where its turn waits; "" if no turn is running
	now, before int    // numbers of cancels in this turn and in the previous one
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

// goOn updates the state after an act that starts or continues a turn.
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

// behind returns the stops of the turn that come after an item. The item is the
// turn's prompt, or an act that continues the turn.
func (t *PlayedTurn) behind(it Item) []Stop {
	if it.Kind == Begins {
		return t.Stops
	}
	return t.Stops[min(it.Stop+1, len(t.Stops)):]
}

// track returns the name of the track of an act. The acts of one track have
// only one possible order.
func (o *Sequence) track(it Item) string {
	if it.Kind == Besides {
		return it.Act.Name
	}
	return "of " + o.Turns[it.Turn].Session
}
