// Package schedules says what a sweep can do in the turns of ACP, in version 1 and 2: the
// points at which an editor can act, what it can do there, and what must follow.
package schedules

import (
	"fmt"
	"slices"
	"strings"

	"github.com/acp-test/acp-test/scenarios"
	"github.com/acp-test/acp-test/sweep"
	"github.com/acp-test/acp-test/transcript"
)

// V1 returns what a sweep can do in ACP version 1.
func V1() sweep.Planner { return planner{} }

// V2 returns what a sweep can do in ACP version 2.
func V2() sweep.Planner { return planner{second: true} }

type planner struct{ second bool }

// Base implements sweep.Planner.
func (p planner) Base(commands map[string]*scenarios.Command, id string, text []byte) (sweep.Base, []string) {
	return readBase(p.second, commands, id, text)
}

// Actions implements sweep.Planner.
func (p planner) Actions() []string {
	var out []string
	for _, a := range actions(p.second) {
		out = append(out, a.Name)
	}
	return out
}

// Doubtful implements sweep.Planner.
func (planner) Doubtful(parts []sweep.Schedule, t *transcript.Transcript) bool {
	return swallowed(t) || clings(t) && slices.ContainsFunc(parts,
		func(s sweep.Schedule) bool { return s.Of.(schedule).cuts() })
}

// State implements sweep.Planner. The content of a turn is none: its order is
// what a user sees.
func (planner) State(word string) bool {
	return strings.HasPrefix(word, "_") || strings.HasSuffix(word, "_update") && word != "tool_call_update"
}

// Instead implements sweep.Base.
func (b *base) Instead() []byte { return b.instead }

// Observe implements sweep.Base.
func (b *base) Observe(t *transcript.Transcript, effects []string) (notes []string) {
	for _, tg := range b.targets {
		saw := look(t, tg.turn, plain(b.spoken.Turns[tg.turn]), b.ofAgent(readEffects(effects)))
		if saw.session == "" {
			notes = append(notes, fmt.Sprintf("%s: the turn on line %d is not swept: the baseline did not get there", b.id,
				b.Lines[tg.line].Number))
			continue
		}
		b.reached = append(b.reached, observed{tg, saw})
	}
	return notes
}

// Schedules implements sweep.Base.
func (b *base) Schedules(others []sweep.Base, w sweep.Wanted) (list []sweep.Schedule, same int) {
	for _, o := range b.reached {
		m := o.seen.heard(plain(b.spoken.Turns[o.target.turn]))
		drawn := w.Drawn(o.target.turn)
		pts, alike := points(o.seen, m, drawn)
		pts = append(pts, beyond(b, others, m, drawn)...)
		for _, a := range actions(b.second) {
			if !w.Action(a.Name) || a.needs != "" && !o.seen.able[a.needs] {
				continue
			}
			for _, p := range pts {
				if a.at(p) && w.Point(p.Name, p.State) {
					list = append(list, schedule{base: b, target: o.target, seen: o.seen, point: p, action: a}.planned())
				}
			}
			same += alike
		}
	}
	return list, same
}

// planned is the schedule as a sweep sees it.
func (s schedule) planned() sweep.Schedule {
	p := s.point
	out := sweep.Schedule{
		Scenario: s.base.id, Turn: s.target.turn, Turns: len(s.base.targets),
		Point: p.Name, State: p.State, Action: s.action.Name, Act: s.action.kind(),
		Rank: p.rank + s.action.rank, Place: int(p.kind), Kinds: s.seen.kinds(),
		// What a tool does and a replay shows differs by scenario.
		Apart:  slices.Contains([]pointKind{atPermission, atIdle, atLoaded}, p.kind),
		Races:  p.kind == atEnd || p.kind == atFrame && p.hold == nil,
		Doubts: s.doubts(), Of: s,
	}
	if p.kind == atGate {
		out.Depth = len(p.until)
	}
	out.Write = func(probes map[string]bool) (sweep.Archive, map[string]bool) {
		asked := s // schedules are written by several goroutines
		asked.probes = probes
		return asked.write()
	}
	out.Shared = func() string {
		text, _ := s.write()
		return s.shared(text)
	}
	return out
}
