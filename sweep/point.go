package sweep

import (
	"fmt"
	"slices"

	"github.com/acp-test/acp-test/fakellm"
)

// Point is a place in a turn at which an editor can act.
type Point struct {
	// Name distinguishes the point from others of its turn: "frame 3
	// agent_message".
	Name string
	// State is the kind of situation. Findings with the same state and action
	// count as one finding.
	State string
	// Kind is the protocol's kind of point; kinds are in the order of a turn.
	Kind PointKind
	// Rank orders points; those likeliest to find a bug come first.
	Rank int
	// Hold is the place where the model is held; nil if it is not held.
	Hold *fakellm.Place
	// Until lists the kinds of frames to wait for, in order. Gated says that
	// the script also waits for the gate, so that the model is surely held.
	Until []string
	Gated bool
	// Races says that the act may come too late. Apart says that the same point
	// in another scenario counts as different.
	Races, Apart bool
	// Nth is the number of the open request among those of its kind. Files are
	// the effects that wait only for the answer to this request. Several says
	// that other requests of its kind are open too.
	Nth     int
	Files   []Effect
	Several bool
	// Tool is the call that runs; Alone says that it is the turn's only call.
	Tool  *fakellm.Place
	Alone bool
	// Merge is the order of two sessions' steps; true is a step of the target.
	// With is the other session's turn, from another scenario; nil if made up.
	Merge []bool
	With  *Observed
}

// PointKind is a kind of point in one protocol.
type PointKind uint8

// Lister lists the points of a turn.
type Lister struct {
	Seen *Seen
	// List holds the points. Same counts further points that make no difference
	// to the agent.
	List    []Point
	Same    int
	covered map[fakellm.Place]bool // by the points of frames
	last    *Frame
}

// Add adds a point.
func (l *Lister) Add(p Point) { l.List = append(l.List, p) }

// Frame adds the point after the frame at index, which is the n-th of its kind.
func (l *Lister) Frame(kind PointKind, word string, index, n int) *Point {
	f := &l.Seen.Frames[index]
	p := Point{Name: fmt.Sprintf("%s %d %s", word, index+1, f.Kind), State: "after " + f.Kind, Kind: kind, Hold: f.Hold,
		Until: slices.Repeat([]string{f.Kind}, n), Gated: f.Held, Rank: min(n-1, 9), Races: f.Hold == nil}
	if f.Hold == nil {
		p.State += " near the end"
	}
	// If the model is held at one place after two pieces of text, both are one
	// situation: the agent cannot have gone on between them.
	if last := l.last; last != nil && last.Held && f.Held && *last.Hold == *f.Hold && last.Kind == f.Kind {
		l.List = l.List[:len(l.List)-1]
		l.Same++
	}
	if f.Held {
		if l.covered == nil {
			l.covered = map[fakellm.Place]bool{}
		}
		l.covered[*f.Hold] = true
	}
	l.last = f
	l.Add(p)
	return &l.List[len(l.List)-1]
}

// Gates adds points where the model is held, at places without a frame point.
func (l *Lister) Gates(kind PointKind) {
	all := l.Seen.Model.Places()
	for i, at := range all {
		state := "model silent"
		switch {
		case l.covered[at]:
			l.Same++
			continue
		case at.Piece == 0 && at.Step == 0 && at.Reply > 0:
			state = "model between tool and reply"
		case i > 0:
			state = "model in the middle"
		}
		l.Add(Point{Name: "gate " + at.String(), State: state, Kind: kind, Hold: &all[i], Gated: true, Rank: min(i, 9)})
	}
}

// Sorted returns the points, the likeliest to find a bug first, and the number
// of points that were left out as equal.
func (l *Lister) Sorted() ([]Point, int) {
	slices.SortStableFunc(l.List, func(a, b Point) int { return a.Rank - b.Rank })
	return l.List, l.Same
}
