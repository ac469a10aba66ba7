package schedules

import (
	"fmt"
	"slices"

	"github.com/acp-test/acp-test/fakellm"
)

// point is a place in a run at which a front end can act.
type point struct {
	// name tells it from the others of its run, state is the kind of situation.
	name, state string

	kind  pointKind
	rank  int            // the likeliest first
	hold  *fakellm.Place // the model is held here
	event string         // the type to wait for, so often
	times int
	gated bool // and for the gate: then the model is surely held
}

type pointKind uint8

const (
	atOnce pointKind = iota // right behind the post
	atEvent
	atGate
	atOther     // another thread streams
	atEnd       // racing the end
	atIdle      // after it
	atInterrupt // the run waits for an answer of the user
	atPending   // it called tools of the front end
)

// open reports whether the run goes on at the point and cannot end by itself.
func (p point) open() bool { return p.kind < atEnd && p.hold != nil }

// points lists the points of a run, the likeliest first, and how many more there were that
// are the same for the agent.
func points(s seen) (list []point, same int) {
	all := s.turn.Places()
	if len(all) == 0 {
		return nil, 0
	}
	add := func(p point) { list = append(list, p) }
	add(point{name: "0 ms", state: "at once", kind: atOnce, hold: &all[0]})
	covered, counts := map[fakellm.Place]bool{}, map[string]int{}
	var last *point
	for i, e := range s.events {
		counts[e.kind]++
		if e.kind == "RUN_FINISHED" || e.kind == "RUN_ERROR" {
			continue // that is the end
		}
		p := point{name: fmt.Sprintf("event %d %s", i+1, e.kind), state: "after " + e.kind, kind: atEvent, hold: e.hold,
			event: e.kind, times: counts[e.kind], gated: e.said, rank: min(counts[e.kind]-1, 9)}
		if e.hold == nil {
			p.state += " near the end"
		}
		// Between two pieces after which the model is held at one place the agent cannot have
		// gone on.
		if last != nil && last.gated && p.gated && last.event == p.event && *last.hold == *p.hold {
			list = list[:len(list)-1]
			same++
		}
		if p.gated {
			covered[*p.hold] = true
		}
		add(p)
		last = &list[len(list)-1]
	}
	for i, at := range all {
		state := "model silent"
		switch {
		case covered[at]:
			same++
			continue
		case at.Piece == 0 && at.Step == 0 && at.Reply > 0:
			state = "model between tool and reply"
		case i > 0:
			state = "model in the middle"
		}
		add(point{name: "gate " + at.String(), state: state, kind: atGate, hold: &all[i], gated: true, rank: min(i, 9)})
	}
	add(point{name: "another thread streaming", state: "another thread", kind: atOther, hold: &all[0], gated: true})
	add(point{name: "racing the end", state: "racing the end", kind: atEnd, hold: &all[len(all)-1]})
	switch {
	case s.end == "interrupt":
		add(point{name: "interrupt", state: "interrupt open", kind: atInterrupt})
	case s.calls > 0:
		add(point{name: "pending calls", state: "pending calls", kind: atPending})
	default:
		add(point{name: "idle", state: "idle", kind: atIdle})
	}
	slices.SortStableFunc(list, func(a, b point) int { return a.rank - b.rank })
	return list, same
}
