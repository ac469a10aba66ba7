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

// Schedule is one act of an editor at one point of a turn. A drawn order of
// acts, a drawn session and a chain are schedules too.
type Schedule struct {
	// Scenario is the id of the swept scenario. Turn is the index of the turn in
	// its script, from 0. Turns is the number of turns that can be swept.
	Scenario    string
	Turn, Turns int
	// Point is the name of the point, and State the kind of situation there.
	// Findings with the same State and Action count as one.
	Point, State, Action string
	// Rank orders schedules: those with a lower rank are more likely to find a
	// bug. Place is the position of the point in its turn.
	Rank, Place int
	// Kinds is the number of kinds of frames in the turn's baseline.
	Kinds int
	// Apart means that the same State and Action in another scenario count as
	// different.
	Apart bool
	// Races means that the finding may depend on the order of simultaneous events.
	Races bool
	// Act is the kind of act. Failures of one check after acts of the same kind
	// count as one finding. "" means that Action is also the kind.
	Act string
	// Shared returns a key. Schedules with equal keys can share a process. If
	// Shared is nil or the key is "", the schedule needs its own process.
	Shared func() string
	// Write returns the scenario, and the lines of it that must stay when it is
	// shortened. probes are questions that the first run raised. The script asks
	// them too, so that it fails for the same reason.
	Write func(probes map[string]bool) (a Archive, keep map[string]bool)
	// Doubts returns the questions that a run raises. It is nil if there can be
	// none.
	Doubts func(t *transcript.Transcript, effects []Effect) map[string]bool
	// At is the situation from which Write writes the scenario. It is zero for a
	// drawn order.
	At Situation

	// Drawn is the key of a drawn order of acts, or "" for a listed schedule.
	// Number is the number of the drawn order, from 1.
	Drawn  string
	Number int
	// Guided means that the order was chosen because of its untried pairs.
	Guided bool
	// Tracks is the number of tracks in an order of acts. Steps is the number of
	// its acts.
	Tracks, Steps int
	// Tried has the order's pairs of a state and an act. Orders has its pairs of
	// two acts.
	Tried  []string
	Orders [][2]string
	// Covers has the pairs that a drawn session covers.
	Covers [][2]string
	// Simpler returns the orders with one deviation fewer. Vary returns a
	// slightly different order.
	Simpler func() []Schedule
	Vary    func(r *rand.Rand) (s Schedule, ok bool)

	nth    int // number in the order in which schedules start, from 1
	probes map[string]bool
	parts  []Schedule // the schedules of a chain; a chain has no turn of its own
}

// id returns the name of the schedule's run. It is also the path of the run's
// folder below the out folder.
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

// text returns the scenario of a schedule.
func (s Schedule) text() Archive {
	a, _ := s.written()
	return a
}

// written returns the scenario of a schedule, and the lines that must stay when
// it is shortened.
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

// Part is one of several parts of a sweep, which run separately. The schedule
// alone determines its part, so that no two parts run the same schedule.
type Part struct {
	Index, Of int // from 1
}

// has reports whether a schedule belongs to the part.
func (p *Part) has(s Schedule) bool {
	if p == nil || p.Of < 2 {
		return true
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(s.key()))
	return int(h.Sum32()%uint32(p.Of)) == p.Index-1
}

// most returns the part's share of a maximum number of schedules. 0 means no
// maximum.
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

// key returns a string that identifies the schedule within a sweep.
func (s Schedule) key() string { return cmp.Or(s.Drawn, s.id()) }

// act holds the schedules that have the same action and kind of situation.
// Schedules with Apart are also separated by scenario.
type act struct {
	left []Schedule
	used int
	// done points to the counters of the act's state, action and checks. Other
	// acts share these counters.
	done []*int
}

// least returns the smallest counter in done.
func (a *act) least() int {
	n := *a.done[0]
	for _, d := range a.done[1:] {
		n = min(n, *d)
	}
	return n
}

// arranged returns schedules in the order in which they run. Each kind of
// situation, each action and each check comes once before any of them comes
// again; for Apart schedules, this is counted per scenario. Among equals, the
// schedules most likely to fail come first, and then those whose turn has the
// most kinds of frames. The seed determines the rest.
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

// checks returns the check lines of a schedule's scenario.
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

// distinct yields the schedules of this part, except those whose scenario
// equals an earlier one. It writes each scenario only when it is needed.
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
