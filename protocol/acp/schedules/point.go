package schedules

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/acp-test/acp-test/fakellm"
)

// Point is a place in a turn at which an editor can act.
type Point struct {
	// Name tells it from the others of its turn: "frame 3 agent_message".
	Name string
	// State is the kind of situation: findings at points of one state with
	// one action are the same finding.
	State string

	kind  pointKind
	rank  int            // the likeliest first
	hold  *fakellm.Place // the model is held here
	until []string       // kinds of frames to wait for, in their order
	gated bool           // and for the gate
	alone bool           // no tool of the turn runs before this one
	what  string         // the method of a held request
	nth   int            // of a permission
	files []effect       // what stands behind the permission and behind nothing else
	tool  fakellm.Place  // the call that runs
	many  bool           // other requests of the method are held, too
	merge []bool         // the steps of two sessions: true is the target's
	with  *partner       // the other session's turn, if another scenario has it
}

type pointKind uint8

const (
	atWrite pointKind = iota // in one write with the prompt
	atOnce                   // right behind the prompt
	atFrame
	atGate
	atPermission
	atRequest
	atTerminal // a command in it does not end by itself
	atTool
	atEnd // racing the end
	atIdle
	atLoaded
	atSecond // another session streams
)

// open reports whether the turn runs at the point and cannot end by itself.
func (p Point) open() bool { return p.kind < atEnd && p.hold != nil || p.kind == atSecond }

// points lists the points of a turn, the likeliest first, and how many more
// there were that are the same for the agent.
func points(s seen, m fakellm.TurnNode, r *rand.Rand) (list []Point, same int) {
	all := m.Places()
	l := lister{seen: s, turn: m, all: all, covered: map[fakellm.Place]bool{}}
	start, end := &all[0], &all[len(all)-1]
	l.add(Point{Name: "with the prompt", State: "same write", kind: atWrite, hold: start})
	l.add(Point{Name: "0 ms", State: "at once", kind: atOnce, hold: start})
	l.frames()
	l.gates()
	l.tools()
	l.add(Point{Name: "racing the end", State: "racing the end", kind: atEnd, hold: end})
	l.add(Point{Name: "idle", State: "idle", kind: atIdle})
	if s.able["load"] {
		l.add(Point{Name: "after load", State: "loaded", kind: atLoaded})
	}
	l.add(Point{Name: "second session streaming", State: "second session", kind: atSecond, hold: start})
	for i, m := range merges(all, mostMerges, mostSteps, r) {
		l.add(Point{Name: fmt.Sprintf("merge %d", i+1), State: "two sessions merged", kind: atSecond,
			hold: m.hold, merge: m.order, rank: min(2*i, 9)})
	}
	slices.SortStableFunc(l.list, func(a, b Point) int { return a.rank - b.rank })
	return l.list, l.same
}

// lister lists the points of a turn.
type lister struct {
	seen    seen
	turn    fakellm.TurnNode
	all     []fakellm.Place
	covered map[fakellm.Place]bool // by the points of frames
	list    []Point
	same    int
}

func (l *lister) add(p Point) { l.list = append(l.list, p) }

// frames lists the points behind what the agent showed.
func (l *lister) frames() {
	counts, total := map[string]int{}, map[string]int{}
	for _, f := range l.seen.frames {
		total[f.kind]++
	}
	var last *frame
	for i := range l.seen.frames {
		f := &l.seen.frames[i]
		counts[f.kind]++
		n := counts[f.kind]
		switch {
		case f.kind == "permission":
			p := Point{Name: fmt.Sprintf("permission %d", n), State: "permission open", kind: atPermission,
				hold: f.hold, nth: n, until: repeat("permission", n), files: l.seen.owed[n]}
			if len(p.files) > 0 {
				p.until = []string{"permission about~" + p.files[0].pattern().String()}
			}
			l.add(p)
			continue
		case strings.Contains(f.kind, "/") && n > 1:
			l.same++
			continue
		case strings.Contains(f.kind, "/"):
			l.add(Point{Name: f.kind, State: f.kind + " open", kind: atRequest, hold: f.hold, what: f.kind,
				until: []string{f.kind}, many: total[f.kind] > 1})
			if f.kind == "terminal/create" {
				l.add(Point{Name: "terminal running", State: "terminal running", kind: atTerminal, hold: f.hold,
					until: []string{f.kind}})
			}
			continue
		}
		p := Point{Name: fmt.Sprintf("frame %d %s", i+1, f.kind), State: "after " + f.kind, kind: atFrame, hold: f.hold,
			until: repeat(f.kind, n), gated: f.held && (f.kind == "agent_message" || f.kind == "agent_thought")}
		if f.kind != "tool_call_update" {
			p.rank = min(n-1, 9)
		}
		if f.hold == nil {
			p.State += " near the end"
		}
		// Two pieces of text after which the model is held at one place are
		// one situation: the agent cannot have gone on between them.
		if last != nil && last.hold != nil && f.hold != nil && *last.hold == *f.hold && p.gated && last.kind == f.kind {
			l.list = l.list[:len(l.list)-1]
			l.same++
		}
		if f.hold != nil && p.gated {
			l.covered[*f.hold] = true
		}
		l.add(p)
		last = f
	}
}

// gates lists the points at which the model is held and nothing was shown.
func (l *lister) gates() {
	for i, at := range l.all {
		state := "model silent"
		switch {
		case l.covered[at]:
			l.same++
			continue
		case at.Piece == 0 && at.Step == 0 && at.Reply > 0:
			state = "model between tool and reply"
		case i > 0:
			state = "model in the middle"
		}
		l.add(Point{Name: "gate " + at.String(), State: state, kind: atGate, hold: &l.all[i], gated: true, rank: min(i, 9)})
	}
}

// tools lists the points at which a command runs, where no terminal shows it.
func (l *lister) tools() {
	if slices.ContainsFunc(l.seen.frames, func(f frame) bool { return f.kind == "terminal/create" }) {
		return
	}
	tools := 0
	for r, reply := range l.turn.Replies {
		for i, st := range reply.Steps {
			if st.Kind == "tool" {
				tools++
			}
			if st.Kind != "tool" || !strings.Contains(st.Text, "run_shell") {
				continue
			}
			p := Point{Name: fmt.Sprintf("tool %d.%d running", r+1, i+1), State: "tool running", kind: atTool, alone: tools == 1,
				until: []string{"tool_call_update status=in_progress"}, tool: fakellm.Place{Reply: r, Step: i}}
			if r+1 < len(l.turn.Replies) {
				p.hold = &fakellm.Place{Reply: r + 1}
			}
			l.add(p)
		}
	}
}

func repeat(kind string, n int) []string { return slices.Repeat([]string{kind}, n) }
