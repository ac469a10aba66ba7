package sweep

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"hash/maphash"
	"iter"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/acp-test/acp-test/internal/lists"
	"github.com/acp-test/acp-test/scenarios/script"
	"github.com/acp-test/acp-test/transcript"
)

// Schedule is one thing an editor does at one point of a turn.
type Schedule struct {
	// Scenario is the id of what is swept. Turn is which prompt of its script,
	// from 0; Turns how many can be swept.
	Scenario    string
	Turn, Turns int
	// Point names the point, and State the kind of situation: findings at points
	// of one state with one action are the same finding.
	Point, State, Action string
	// Rank puts the likeliest to hurt first; Place is where in a turn the point is.
	Rank, Place int
	// Kinds is how many kinds of entries the turn has when nothing is done in it.
	Kinds int
	// Apart says that its state and action are another thing in another scenario.
	Apart bool
	// Races says that another order of what happens at once may hide what it
	// shows.
	Races bool
	// Act is the kind of act: what breaks one check after acts of one kind is one
	// finding. "" is the action.
	Act string
	// Shared returns what it must have in common with those it can share a process
	// with; "" if it can with none, as if Shared is nil.
	Shared func() string
	// Write returns its scenario, and the lines without which it would be
	// another. Probes are questions that came up when it first ran: the script
	// asks them too, so that it fails for the same reason.
	Write func(probes map[string]bool) (a Archive, keep map[string]bool)
	// Doubts returns the questions that a run raises, nil if none can be raised.
	Doubts func(t *transcript.Transcript, effects []Effect) map[string]bool
	// At is the act that is written; the zero value for a drawn order.
	At Situation

	// Drawn tells an order of acts that was drawn from others; "" is one that was listed.
	// Number is how many were drawn with it.
	Drawn  string
	Number int
	// Guided says that it was chosen for what it tries that was not tried.
	Guided bool
	// Tracks is how many sequences of acts an order is made of, Steps how many acts.
	Tracks, Steps int
	// Tried are the pairs of a state and an act that it tries, Orders those of two acts.
	Tried  []string
	Orders [][2]string
	// Covers are the pairs that a drawn session covers.
	Covers [][2]string
	// Simpler returns the orders with one deviation less, Vary one that is near.
	Simpler func() []Schedule
	Vary    func(r *rand.Rand) (s Schedule, ok bool)

	nth    int // in the order in which schedules begin, from 1
	probes map[string]bool
	parts  []Schedule // of a chain, which has no turn of its own
}

// id names the run of a schedule: a path below the out folder.
func (s Schedule) id() string {
	switch {
	case s.State == SessionState && s.Number > 0:
		return fmt.Sprintf("explore/%s/%d", s.Drawn, s.Number)
	case s.State == SessionState:
		return "explore/" + s.Drawn
	case s.Drawn != "":
		return s.drawnID()
	}
	return fmt.Sprintf("sweep/%s/%d/%s/%s", s.Scenario, s.Turn+1, slug(s.Point), slug(s.Action))
}

// text is the scenario of a schedule.
func (s Schedule) text() Archive {
	a, _ := s.written()
	return a
}

// written is the scenario of a schedule, and the lines that are particular to it.
func (s Schedule) written() (Archive, map[string]bool) {
	return s.Write(s.probes)
}

func slug(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '.', r == '-', r == '_':
			return r
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		}
		return '-'
	}, s)
}

// Part is one of several jobs that share a sweep. Which schedules it has depends on nothing
// but the schedule, so that no two have the same.
type Part struct {
	Index, Of int // from 1
}

// has reports whether a schedule is of the part.
func (p *Part) has(s Schedule) bool {
	if p == nil || p.Of < 2 {
		return true
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(s.key()))
	return int(h.Sum32()%uint32(p.Of)) == p.Index-1
}

// most is how many of a number of schedules the part has at most.
func (p *Part) most(all int) int {
	if p == nil || p.Of < 2 || all == 0 {
		return all
	}
	share := all / p.Of
	if p.Index <= all%p.Of {
		share++
	}
	return max(share, 1)
}

// key tells a schedule from others of a sweep.
func (s Schedule) key() string { return cmp.Or(s.Drawn, s.id()) }

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
			a.done = append(a.done, lists.Map(sch.checks(), func(check string) *int { return count("check", check) })...)
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
