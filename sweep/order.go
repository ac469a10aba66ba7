package sweep

import (
	"cmp"
	"hash/maphash"
	"iter"
	"math/rand/v2"
	"slices"
)

// act is what can be done in one kind of situation: the schedules of one action, and
// of one scenario where it is another thing in another.
type act struct {
	state, action string
	left          []Schedule
	used          int
}

// arranged puts schedules into the order in which they run: each kind of situation is
// reached and each action is tried before any is again, in one scenario as in another
// where that makes a difference. Among equals the likeliest to fail come first, then
// those whose turn has the most kinds of entries, then the seed decides.
func arranged(all []Schedule, seed int64) []Schedule {
	all = slices.Clone(all)
	r := rand.New(rand.NewPCG(uint64(seed), 0x5eed))
	r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	slices.SortStableFunc(all, func(a, b Schedule) int { return cmp.Or(a.Rank-b.Rank, b.Kinds-a.Kinds) })
	var acts []*act
	index := map[[3]string]*act{}
	for _, sch := range all {
		k := [3]string{sch.State, sch.Action}
		if sch.Apart {
			k[2] = sch.Scenario
		}
		a := index[k]
		if a == nil {
			a = &act{state: sch.State, action: sch.Action}
			index[k] = a
			acts = append(acts, a)
		}
		a.left = append(a.left, sch)
	}
	reached, tried := map[string]int{}, map[string]int{}
	out := all[:0:0]
	for len(out) < len(all) {
		best := slices.MinFunc(acts, func(a, b *act) int {
			return cmp.Or(min(reached[a.state], tried[a.action])-min(reached[b.state], tried[b.action]),
				a.used-b.used, reached[a.state]+tried[a.action]-reached[b.state]-tried[b.action])
		})
		out = append(out, best.left[0])
		best.left, best.used = best.left[1:], best.used+1
		reached[best.state]++
		tried[best.action]++
		if len(best.left) == 0 {
			acts = slices.DeleteFunc(acts, func(a *act) bool { return a == best })
		}
	}
	return out
}

// distinct are the schedules of this part that are not the same as one before. They are
// written only when they are asked for.
func (s *sweep) distinct(list []Schedule) iter.Seq[Schedule] {
	return func(yield func(Schedule) bool) {
		seed := maphash.MakeSeed()
		texts := map[uint64]bool{}
		for _, sch := range list {
			a := sch.text()
			a.Lines = a.Lines[1:] // the first line only names it
			key := maphash.Bytes(seed, a.Text())
			if texts[key] {
				s.mu.Lock()
				s.pruned++
				s.given++
				s.mu.Unlock()
				continue
			}
			texts[key] = true
			if s.Shard.has(sch) && !yield(sch) {
				return
			}
		}
	}
}
