package schedules

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/acp-test/acp-test/fakellm"
	"github.com/acp-test/acp-test/scenarios/script"
	"github.com/acp-test/acp-test/sweep"
)

// mostPartners is how many other scenarios a turn is merged with, and
// mostBeyond how often with each.
const mostPartners, mostBeyond = 2, 3

// partner is a turn of another scenario that runs in a session of its own
// beside the target.
type partner struct {
	base *base
	observed
}

// says is what the model says in the partner's turn, as far as the agent asked for it.
func (p *partner) says() fakellm.TurnNode {
	return p.seen.heard(plain(p.base.spoken.Turns[p.target.turn]))
}

// end is the last place of the partner's turn at which it can be held.
func (p *partner) end() fakellm.Place {
	all := p.says().Places()
	return all[len(all)-1]
}

// effected are the lines that ask whether the partner's turn had its effects.
func (p *partner) effected() []*script.Line {
	var out []*script.Line
	for _, e := range p.seen.made {
		switch {
		case e.what == "new":
			out = append(out, script.New("exists %s", e.file))
		case e.what == "changed" && p.base.Holds("want/"+e.file):
			out = append(out, script.New("cmp %s %s", e.file, "want/"+e.file))
		}
	}
	return out
}

// beyond lists the points at which a turn of another scenario has come so far
// beside the target. The seed decides which scenario, and in which order both
// take their steps.
func beyond(b *base, all []sweep.Base, m fakellm.TurnNode, r *rand.Rand) []Point {
	var can []*partner
	for _, o := range all {
		if p := o.(*base).partnerOf(b); p != nil {
			can = append(can, p)
		}
	}
	r.Shuffle(len(can), func(i, j int) { can[i], can[j] = can[j], can[i] })
	var out []Point
	for _, p := range can[:min(len(can), mostPartners)] {
		others := min(mostSteps, len(p.says().Places())-1)
		for i, g := range merges(m.Places(), mostBeyond, others, r) {
			out = append(out, Point{Name: fmt.Sprintf("merge %d with %s", i+1, p.base.id), State: "two scenarios merged",
				kind: atSecond, hold: g.hold, merge: g.order, with: p, rank: min(2*i, 9)})
		}
	}
	return out
}

// partnerOf is the first turn of a scenario if it can run beside another
// scenario: nothing but set-up leads up to it, and what both set up and what
// both find in the workspace does not differ.
func (b *base) partnerOf(o *base) *partner {
	if b.id == o.id || len(b.reached) == 0 || b.reached[0].target.turn != 0 {
		return nil
	}
	p := &partner{b, b.reached[0]}
	text := plainPrompt(b.Lines[p.target.line])
	for _, l := range b.before(p.target) {
		if !b.setsUp(l) {
			return nil
		}
	}
	own, others := b.permits(), o.permits()
	switch {
	case text == "" || strings.HasPrefix(text, "'/") || len(p.target.rest) > 0 || p.seen.stop == "":
	case len(p.says().Places()) < 2, b.spoken.Rest != "" && b.spoken.Rest != o.spoken.Rest:
	case o.prompts(text):
	case !equal(b.settings(), o.settings()) || !agree(b.Archive, o.Archive):
	case !equal(own, others) && p.seen.asked > 0 && (len(others) > 0 || o.asks()):
	case slices.ContainsFunc(o.reached, func(t observed) bool { return both(t.seen.effects, p.seen.effects) }):
	default:
		return p
	}
	return nil
}

// both reports whether two turns change one file.
func both(a, b []effect) bool {
	return slices.ContainsFunc(a, func(e effect) bool {
		return slices.ContainsFunc(b, func(f effect) bool { return f.file == e.file })
	})
}

// permits are the lines of a scenario that answer permissions.
func (b *base) permits() []*script.Line {
	return slices.DeleteFunc(slices.Clone(b.Lines), func(l *script.Line) bool { return !l.Is("permit") })
}

// settings are the set-up lines of a scenario that two scenarios in one process
// must have in common.
func (b *base) settings() []*script.Line {
	return slices.DeleteFunc(slices.Clone(b.Lines), func(l *script.Line) bool {
		return l.Kind != script.Command || !b.setsUp(l) || l.Is("needs") || l.Is("permit")
	})
}

// equal reports whether lines are spelled alike.
func equal(a, b []*script.Line) bool {
	return slices.EqualFunc(a, b, func(l, m *script.Line) bool { return l.String() == m.String() })
}

// asks reports whether a turn of the scenario asks for a permission.
func (b *base) asks() bool {
	return slices.ContainsFunc(b.reached, func(o observed) bool { return o.seen.asked > 0 })
}

// agree reports whether files of one name are the same in both archives.
func agree(a, b sweep.Archive) bool {
	for _, f := range a.Files {
		for _, g := range b.Files {
			if f.Name == g.Name && !bytes.Equal(f.Data, g.Data) {
				return false
			}
		}
	}
	return true
}

// otherText is the prompt of the other session.
func (s schedule) otherText() script.Word {
	if s.point.with != nil {
		return s.point.with.target.text
	}
	return s.own("Keep talking elsewhere.")
}

// otherStop is how the other session's turn ends when it is left alone.
func (p Point) otherStop() string {
	if p.with != nil {
		return p.with.seen.stop
	}
	return "end_turn"
}
