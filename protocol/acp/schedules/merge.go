package schedules

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/acp-test/acp-test/fakellm"
	"github.com/acp-test/acp-test/scenarios/script"
)

// mostMerges is how many merges of two sessions are drawn for a turn, and
// mostSteps how many steps each session takes in one: a repro must stay short.
const mostMerges, mostSteps = 6, 3

// merged is one order in which two sessions stream side by side, up to a place
// at which the model holds the target.
type merged struct {
	hold  *fakellm.Place
	order []bool // true is a step of the target
}

// merges draws orders of the steps of two sessions, at most so many, each one
// once. The other session has at least one step, and at most as many as given.
func merges(all []fakellm.Place, most, others int, r *rand.Rand) []merged {
	var out []merged
	tried := map[string]bool{}
	for range 4 * most {
		at := r.IntN(len(all))
		m := merged{hold: &all[at], order: make([]bool, 1+r.IntN(others))}
		for range min(at, r.IntN(mostSteps+1)) {
			m.order = append(m.order, true)
		}
		r.Shuffle(len(m.order), func(i, j int) { m.order[i], m.order[j] = m.order[j], m.order[i] })
		if key := fmt.Sprint(at, m.order); !tried[key] && len(out) < most {
			tried[key] = true
			out = append(out, m)
		}
	}
	return out
}

// elsewhere is what the model says in the other session, with a gate before
// each of its steps and one before its end.
func (p Point) elsewhere() fakellm.TurnNode {
	if p.with != nil {
		return stopped(p.with.says(), p.with.end(), "elsewhere", "b", p.steps(false))
	}
	var steps []fakellm.StepNode
	n := 0
	for _, mine := range p.merge {
		if !mine {
			n++
			steps = append(steps, gate(fmt.Sprintf("b%d", n)), fakellm.NewText("text", fmt.Sprintf("Part %d. ", n)))
		}
	}
	return fakellm.TurnNode{Replies: []fakellm.ReplyNode{{Steps: append(steps, gate("elsewhere"),
		fakellm.NewText("text", "Elsewhere."))}}}
}

// steps is how many steps the target takes in a merge, or the other session.
func (p Point) steps(target bool) int {
	n := 0
	for _, mine := range p.merge {
		if mine == target {
			n++
		}
	}
	return n
}

// stepped is what the model says to the target: it stops at gates before the
// one that holds it.
func (p Point) stepped(t fakellm.TurnNode) fakellm.TurnNode {
	return stopped(t, *p.hold, hold, "a", p.steps(true))
}

// stopped is the turn with a gate at a place, and so many others before it.
func stopped(t fakellm.TurnNode, at fakellm.Place, name, before string, n int) fakellm.TurnNode {
	all := t.Places()
	end := slices.Index(all, at)
	// From the last on, so that the places before stay where they are.
	t = t.With(at, gate(name))
	for i := n; i > 0; i-- {
		t = t.With(all[(i-1)*end/n], gate(fmt.Sprintf("%s%d", before, i)))
	}
	return t
}

// first is the gate at which the other session stops first.
func (p Point) first() string {
	if slices.Contains(p.merge, false) {
		return "b1"
	}
	return "elsewhere"
}

// walk takes the steps of both sessions in the order of the merge. Each release
// is followed by the gate at which its session stops next: what has come before
// an act is not awaited after it.
func (b *builder) walk() {
	mine, other := []string{}, []string{}
	for _, m := range b.point.merge {
		if m {
			mine = append(mine, fmt.Sprintf("a%d", len(mine)+1))
		} else {
			other = append(other, fmt.Sprintf("b%d", len(other)+1))
		}
	}
	mine, other = append(mine, hold), append(other, "elsewhere")
	b.key("await gate %s", mine[0])
	for _, m := range b.point.merge {
		list := &other
		if m {
			list = &mine
		}
		b.key("release %s", (*list)[0])
		*list = (*list)[1:]
		b.key("await gate %s", (*list)[0])
	}
}

// beside is an action: a whole turn in another session.
func beside(b *builder) {
	aside := says("Aside.")
	stop := "end_turn"
	if own := plain(b.base.spoken.Turns[b.target.turn]); len(b.seen.effects) == 0 && b.point.kind != atRequest &&
		b.seen.asked == 0 {
		aside, stop = own, b.seen.end()
	}
	b.key("session new yet_another")
	b.prompt("yet_another", script.Quote("Something else meanwhile."), nil, "", aside)
	b.keepLast()
	b.written()
	b.check("PROMPT-019", "other-turn-ends")
	b.add("await turn %s session=yet_another", stop)
	b.finish()
	if b.point.kind != atIdle && b.point.kind != atLoaded {
		b.check("PROMPT-003", "ends-as-before")
		b.ends(b.seen.end())
	}
	b.again(b.target.main, "PROMPT-014")
}
