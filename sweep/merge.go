package sweep

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/acp-test/acp-test/fakellm"
	"github.com/acp-test/acp-test/internal/lists"
	"github.com/acp-test/acp-test/scenarios/script"
)

// mostMerges is how many merges of two sessions are drawn for a turn, and mostSteps how many
// steps each session takes in one: a repro must stay short. mostPartners is how many other
// scenarios a turn is merged with, and mostBeyond how many times with each.
const mostMerges, mostSteps, mostPartners, mostBeyond = 6, 3, 2, 3

// merged draws points at which two sessions stream side by side, up to a place at which the
// model holds the target: at most so many, each one once. The name of p ends theirs. The other session has at least one
// step, and at most as many as given.
func merged(p Point, all []fakellm.Place, most, others int, r *rand.Rand) (out []Point) {
	tried := map[string]bool{}
	for range 4 * most {
		at := r.IntN(len(all))
		merge := make([]bool, 1+r.IntN(others))
		for range min(at, r.IntN(mostSteps+1)) {
			merge = append(merge, true)
		}
		r.Shuffle(len(merge), func(i, j int) { merge[i], merge[j] = merge[j], merge[i] })
		if key := fmt.Sprint(at, merge); !tried[key] && len(out) < most {
			tried[key] = true
			next := p
			next.Name, next.Rank = fmt.Sprintf("merge %d%s", len(out)+1, p.Name), min(2*len(out), 9)
			next.Hold, next.Merge = &all[at], merge
			out = append(out, next)
		}
	}
	return out
}

// Merged adds points at which a session that the sweep has made up streams beside the
// target's.
func (l *Lister) Merged(kind PointKind, r *rand.Rand) {
	l.List = append(l.List, merged(Point{State: "two sessions merged", Kind: kind},
		l.Seen.Model.Places(), mostMerges, mostSteps, r)...)
}

// Beyond lists the points at which a turn of another scenario has come so far beside the
// target. beside reports whether the two can run in one process. The seed decides which
// scenario, and in which order both take their steps.
func (o Observed) Beyond(kind PointKind, all []*Script, beside func(target *Script, other Observed) bool,
	r *rand.Rand) (out []Point) {
	var can []Observed
	for _, s := range all {
		if s.ID == o.Script.ID || len(s.Reached) == 0 || s.Reached[0].Seen.Nth != 0 {
			continue
		}
		if len(s.Reached[0].Seen.Model.Places()) >= 2 && beside(o.Script, s.Reached[0]) {
			can = append(can, s.Reached[0])
		}
	}
	r.Shuffle(len(can), func(i, j int) { can[i], can[j] = can[j], can[i] })
	for i, other := range can[:min(len(can), mostPartners)] {
		p := Point{Name: " with " + other.Script.ID, State: "two scenarios merged", Kind: kind, With: &can[i]}
		others := min(mostSteps, len(other.Seen.Model.Places())-1)
		out = append(out, merged(p, o.Seen.Model.Places(), mostBeyond, others, r)...)
	}
	return out
}

// Effective are the lines that ask whether a turn had its effects.
func (o Observed) Effective() (out []*script.Line) {
	for _, e := range o.Seen.Made {
		switch {
		case e.What == "new":
			out = append(out, script.New("exists %s", e.File))
		case e.What == "changed" && o.Script.Holds("want/"+e.File):
			out = append(out, script.New("cmp %s %s", e.File, "want/"+e.File))
		}
	}
	return out
}

// elsewhere is the last gate of the other session.
const elsewhere = "elsewhere"

// Elsewhere is what the model says in the other session, with a gate before each of its steps
// and one before its end.
func (p Point) Elsewhere() fakellm.TurnNode {
	if p.With != nil {
		turn := p.With.Seen.Model
		all := turn.Places()
		return stopped(turn, all[len(all)-1], elsewhere, "b", p.steps(false))
	}
	var steps []fakellm.StepNode
	for n := range p.steps(false) {
		steps = append(steps, Gate(fmt.Sprintf("b%d", n+1)), fakellm.Text(fmt.Sprintf("Part %d. ", n+1)))
	}
	return fakellm.NewTurn(fakellm.NewReply(append(steps, Gate(elsewhere), fakellm.Text("Elsewhere."))...))
}

// FirstElsewhere is the gate at which the other session stops first.
func (p Point) FirstElsewhere() string {
	if p.steps(false) > 0 {
		return "b1"
	}
	return elsewhere
}

// steps is how many steps the target takes in a merge, or the other session.
func (p Point) steps(target bool) int {
	return lists.Count(p.Merge, func(mine bool) bool { return mine == target })
}

// Stepped is what the model says to the target: it stops at gates before the one that holds
// it.
func (p Point) Stepped(t fakellm.TurnNode) fakellm.TurnNode {
	return stopped(t, *p.Hold, Hold, "a", p.steps(true))
}

// stopped is the turn with a gate at a place, and so many others before it.
func stopped(t fakellm.TurnNode, at fakellm.Place, name, before string, n int) fakellm.TurnNode {
	all := t.Places()
	end := slices.Index(all, at)
	// From the last on, so that the places before stay where they are.
	t = t.With(at, Gate(name))
	for i := n; i > 0; i-- {
		t = t.With(all[(i-1)*end/n], Gate(fmt.Sprintf("%s%d", before, i)))
	}
	return t
}

// Walk takes the steps of both sessions in the order of the merge, if the point has one. Each
// release is followed by the gate at which its session stops next: what has come before an act
// is not awaited after it.
func (b *Builder) Walk() {
	if b.Point.Merge == nil {
		return
	}
	gates := map[bool][]string{}
	for _, mine := range b.Point.Merge {
		gates[mine] = append(gates[mine], fmt.Sprintf("%s%d", map[bool]string{true: "a", false: "b"}[mine],
			len(gates[mine])+1))
	}
	gates[true], gates[false] = append(gates[true], Hold), append(gates[false], elsewhere)
	b.Key("await gate %s", gates[true][0])
	for _, mine := range b.Point.Merge {
		b.Key("release %s", gates[mine][0])
		gates[mine] = gates[mine][1:]
		b.Key("await gate %s", gates[mine][0])
	}
}
