package sweep

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"strings"

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
func (s Schedule) key() string {
	if s.Drawn != "" {
		return s.Drawn
	}
	return s.id()
}
