package sweep

import (
	"fmt"
	"slices"

	"github.com/acp-test/acp-test/fakellm"
)

// Point is a place in a turn at which an editor can act.
type Point struct {
	// Name distinguishes the point from others of its turn, such as "frame 3
	// agent_message".
	Name string
	// State is the kind of situation at the point. Findings with the same state
	// and action count as one.
	State string
	// Kind is the protocol's kind of point. The values are in the order of a turn.
	Kind PointKind
	// Rank orders points: those with a lower rank are more likely to find a bug.
	Rank int
	// Hold is the place where the model waits at the point; nil if it does not
	// wait.
	Hold *fakellm.Place
	// Until lists the kinds of frames to wait for, in order. Gated means that the
	// script also waits until the model is at its gate.
	Until []string
	Gated bool
	// Races means that the act may come too late. Apart means that the same point
	// in another scenario counts as a different point.
	Races, Apart bool
	// Nth is the number of the open request among the requests of its kind. Files
	// lists the effects that only wait for the answer to this request. Several
	// means that more requests of its kind are open.
	Nth     int
	Files   []Effect
	Several bool
	// Tool is the tool call that is running. Alone means that the turn has no
	// other call.
	Tool  *fakellm.Place
	Alone bool
	// Merge is the order of the steps of two sessions; true means a step of the
	// target. With is the other session's turn, from another scenario; nil if the
	// other session is artificial.
	Merge []bool
	With  *Observed
}

// PointKind is a kind of point in one protocol.
type PointKind uint8

// Lister lists the points of a turn.
type Lister struct {
	Seen *Seen
	// List holds the points. Same is the number of points that were omitted
	// because they make no difference to the agent.
	List    []Point
	Same    int
	covered map[fakellm.Place]bool // places that the points of frames already cover
	last    *Frame
}

// Add adds a point.
func (l *Lister) Add(p Point) { l.List = append(l.List, p) }

// Frame adds the point after the frame at index. n is the number of this frame
// among those of its kind, from 1.
func (l *Lister) Frame(kind PointKind, word string, index, n int) *Point {
	f := &l.Seen.Frames[index]
	p := Point{Name: fmt.Sprintf("%s %d %s", word, index+1, f.Kind), State: "after " + f.Kind, Kind: kind, Hold: f.Hold,
		Until: slices.Repeat([]string{f.Kind}, n), Gated: f.Held, Rank: min(n-1, 9), Races: f.Hold == nil}
	if f.Hold == nil {
		p.State += " near the end"
	}
	// If the model waits at the same place after two pieces of text, both are one
	// situation: the agent cannot have continued between them.
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

// Gates adds the points where the model waits, except at places that have the
// point of a frame.
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

// Sorted returns the points, the most likely to find a bug first, and the
// number of points that were omitted because they make no difference.
func (l *Lister) Sorted() ([]Point, int) {
	slices.SortStableFunc(l.List, func(a, b Point) int { return a.Rank - b.Rank })
	return l.List, l.Same
}
