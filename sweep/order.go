package sweep

import (
	"hash/maphash"
	"iter"
	"math/rand/v2"
	"slices"
)

// act is what can be done in one kind of situation: the schedules of one action, and
// of one scenario where it is another thing in another.
type act struct {
	action string
	left   []Schedule
	used   int
}

// arranged puts schedules into the order in which they run: each kind of situation is
// reached before any is reached again, with the action that was tried least, there
// and everywhere. Among equals the likeliest to fail come first, then the seed
// decides.
func arranged(all []Schedule, seed int64) []Schedule {
	all = slices.Clone(all)
	r := rand.New(rand.NewPCG(uint64(seed), 0x5eed))
	r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	slices.SortStableFunc(all, func(a, b Schedule) int { return a.Rank - b.Rank })
	var states []string
	acts := map[string][]*act{} // by state
	index := map[[3]string]*act{}
	for _, sch := range all {
		k := [3]string{sch.State, sch.Action}
		if sch.Apart {
			k[2] = sch.Scenario
		}
		a := index[k]
		if a == nil {
			a = &act{action: sch.Action}
			index[k] = a
			if acts[sch.State] == nil {
				states = append(states, sch.State)
			}
			acts[sch.State] = append(acts[sch.State], a)
		}
		a.left = append(a.left, sch)
	}
	tried := map[string]int{}
	out := all[:0:0]
	for len(out) < len(all) {
		for _, state := range states {
			list := acts[state]
			if len(list) == 0 {
				continue
			}
			best := 0
			for i, a := range list {
				b := list[best]
				if a.used < b.used || a.used == b.used && tried[a.action] < tried[b.action] {
					best = i
				}
			}
			a := list[best]
			out = append(out, a.left[0])
			a.left, a.used = a.left[1:], a.used+1
			tried[a.action]++
			if len(a.left) == 0 {
				acts[state] = slices.Delete(list, best, best+1)
			}
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
