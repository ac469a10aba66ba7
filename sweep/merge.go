package sweep

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/acp-test/acp-test/fakellm"
	"github.com/acp-test/acp-test/internal/lists"
	"github.com/acp-test/acp-test/scenarios/script"
)

// mostMerges is the maximum number of merges of two sessions per turn.
// mostSteps is the maximum number of steps of each session in a merge, because
// a repro must be short. A turn is merged with at most mostPartners other
// scenarios, and at most mostBeyond times with each.
const mostMerges, mostSteps, mostPartners, mostBeyond = 6, 3, 2, 3

// merged draws up to most different points at which two sessions stream at the
// same time. At each point, the model holds the target at one of the places in
// all. The point's name ends with the name of p. The other session has one to
// others steps.
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

// Merged adds points at which an artificial session streams at the same time as
// the target's.
func (l *Lister) Merged(kind PointKind, r *rand.Rand) {
	l.List = append(l.List, merged(Point{State: "two sessions merged", Kind: kind},
		l.Seen.Model.Places(), mostMerges, mostSteps, r)...)
}

// Beyond returns points at which the turn of another scenario runs at the same
// time as the target's and has reached a place. beside reports whether both can
// run in one process. r determines the other scenario and the order of the
// steps.
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

// Effective returns lines that check whether the turn changed its files as in
// the baseline.
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

// elsewhere is the name of the other session's last gate.
const elsewhere = "elsewhere"

// Elsewhere returns the model's turn in the other session. It has a gate before
// each step and one before its end.
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

// FirstElsewhere returns the name of the first gate in the other session.
func (p Point) FirstElsewhere() string {
	if p.steps(false) > 0 {
		return "b1"
	}
	return elsewhere
}

// steps returns how many steps of the merge belong to the target or, if target
// is false, to the other session.
func (p Point) steps(target bool) int {
	return lists.Count(p.Merge, func(mine bool) bool { return mine == target })
}

// Stepped returns the model's turn for the target. It stops at a gate per step,
// and then at the gate that holds it.
func (p Point) Stepped(t fakellm.TurnNode) fakellm.TurnNode {
	return stopped(t, *p.Hold, Hold, "a", p.steps(true))
}

// stopped returns the turn with the gate name at the place at, and with n gates
// before it.
func stopped(t fakellm.TurnNode, at fakellm.Place, name, before string, n int) fakellm.TurnNode {
	all := t.Places()
	end := slices.Index(all, at)
	// Insert the last gate first, so that earlier places keep their positions.
	t = t.With(at, Gate(name))
	for i := n; i > 0; i-- {
		t = t.With(all[(i-1)*end/n], Gate(fmt.Sprintf("%s%d", before, i)))
	}
	return t
}

// Walk writes the steps of both sessions in the order of the merge, if the
// point is a merge. After each release, it awaits the gate at which that
// session stops next. Everything before an act has then arrived.
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
