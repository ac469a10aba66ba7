package sweep

import (
	"cmp"
	"hash/maphash"
	"iter"
	"math/rand/v2"
	"slices"

	"github.com/acp-test/acp-test/scenarios/script"
)

// act is what can be done in one kind of situation: the schedules of one action, and
// of one scenario where it is another thing in another.
type act struct {
	left []Schedule
	used int
	// done counts how often its kind of situation was reached, its action was tried and
	// each of its checks was made, by it and by others.
	done []*int
}

// least is how often that was done which was done least.
func (a *act) least() int {
	n := *a.done[0]
	for _, d := range a.done[1:] {
		n = min(n, *d)
	}
	return n
}

// arranged puts schedules into the order in which they run: each kind of situation is
// reached, each action is tried and each check is made before any is again, in one scenario
// as in another where that makes a difference. Among equals the likeliest to fail come
// first, then those whose turn has the most kinds of entries, then the seed decides.
func arranged(all []Schedule, seed int64) []Schedule {
	all = slices.Clone(all)
	r := rand.New(rand.NewPCG(uint64(seed), 0x5eed))
	r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	slices.SortStableFunc(all, func(a, b Schedule) int { return cmp.Or(a.Rank-b.Rank, b.Kinds-a.Kinds) })
	var acts []*act
	index := map[[3]string]*act{}
	counts := map[[2]string]*int{}
	count := func(kind, name string) *int {
		k := [2]string{kind, name}
		if counts[k] == nil {
			counts[k] = new(int)
		}
		return counts[k]
	}
	for _, sch := range all {
		k := [3]string{sch.State, sch.Action}
		if sch.Apart {
			k[2] = sch.Scenario
		}
		a := index[k]
		if a == nil {
			a = &act{done: []*int{count("state", sch.State), count("action", sch.Action)}}
			for _, check := range sch.checks() {
				a.done = append(a.done, count("check", check))
			}
			index[k] = a
			acts = append(acts, a)
		}
		a.left = append(a.left, sch)
	}
	out := all[:0:0]
	for len(out) < len(all) {
		best := slices.MinFunc(acts, func(a, b *act) int {
			return cmp.Or(a.least()-b.least(), a.used-b.used, *a.done[0]+*a.done[1]-*b.done[0]-*b.done[1])
		})
		out = append(out, best.left[0])
		best.left, best.used = best.left[1:], best.used+1
		for _, d := range best.done {
			*d++
		}
		if len(best.left) == 0 {
			acts = slices.DeleteFunc(acts, func(a *act) bool { return a == best })
		}
	}
	return out
}

// checks are the lines that begin the checks of a schedule.
func (s Schedule) checks() (lines []string) {
	if s.Write == nil {
		return nil
	}
	for _, l := range s.text().Lines {
		if l.Is("check") {
			lines = append(lines, l.String())
		}
	}
	return lines
}

// distinct are the schedules of this part that are not the same as one before. They are
// written only when they are asked for.
func (s *sweep) distinct(list []Schedule) iter.Seq[Schedule] {
	return func(yield func(Schedule) bool) {
		seed := maphash.MakeSeed()
		texts := map[uint64]bool{}
		for _, sch := range list {
			a := sch.text()
			a.Lines = slices.DeleteFunc(a.Lines, func(l *script.Line) bool { return l.Kind == script.Comment }) // they name it
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
