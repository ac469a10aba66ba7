// Package schedules says what a sweep can do in the runs of AG-UI: the points at which a
// front end can act, what it can do there, and what must follow.
package schedules

import (
	"fmt"

	"github.com/acp-test/acp-test/scenarios"
	"github.com/acp-test/acp-test/sweep"
	"github.com/acp-test/acp-test/transcript"
)

// V1 returns what a sweep can do in AG-UI.
func V1() sweep.Planner { return planner{} }

type planner struct{}

// Base implements sweep.Planner.
func (planner) Base(commands map[string]*scenarios.Command, id string, text []byte) (sweep.Base, []string) {
	return readBase(commands, id, text)
}

// Actions implements sweep.Planner.
func (planner) Actions() (names []string) {
	for _, a := range actions() {
		names = append(names, a.name)
	}
	return names
}

// Chain implements sweep.Planner: no schedules share a process.
func (planner) Chain([]sweep.Schedule) (a sweep.Archive, keep map[string]bool) { return a, nil }

// Doubtful implements sweep.Planner.
func (planner) Doubtful([]sweep.Schedule, *transcript.Transcript) bool { return false }

// State implements sweep.Planner: the order of events is what a front end sees.
func (planner) State(string) bool { return false }

// Instead implements sweep.Base.
func (*base) Instead() []byte { return nil }

// Observe implements sweep.Base.
func (b *base) Observe(t *transcript.Transcript, effects []string) (notes []string) {
	for _, tg := range b.targets {
		saw, ok := b.look(t, tg, effects)
		if !ok {
			notes = append(notes, fmt.Sprintf("%s: the run on line %d is not swept: the baseline did not get there", b.id,
				b.Lines[tg.line].Number))
			continue
		}
		b.reached = append(b.reached, observed{tg, saw})
	}
	return notes
}

// Schedules implements sweep.Base.
func (b *base) Schedules(_ []sweep.Base, w sweep.Wanted) (list []sweep.Schedule, same int) {
	for _, o := range b.reached {
		pts, alike := points(o.seen)
		for _, a := range actions() {
			if !w.Action(a.name) {
				continue
			}
			for _, p := range pts {
				if a.at(p) && w.Point(p.name, p.state) {
					list = append(list, schedule{b, o.target, o.seen, p, a}.planned())
				}
			}
			same += alike
		}
	}
	return list, same
}

// schedule is one thing that a front end does at one point of a run.
type schedule struct {
	base   *base
	target target
	seen   seen
	point  point
	action action
}

// planned is the schedule as a sweep sees it.
func (s schedule) planned() sweep.Schedule {
	p := s.point
	return sweep.Schedule{
		Scenario: s.base.id, Turn: s.target.turn, Turns: len(s.base.targets),
		Point: p.name, State: p.state, Action: s.action.name, Act: s.action.act,
		Rank: p.rank + s.action.rank, Place: int(p.kind), Kinds: s.seen.kinds(),
		// What an answer does differs by scenario.
		Apart: p.kind == atInterrupt || p.kind == atPending,
		Races: p.kind == atEnd || p.kind == atEvent && p.hold == nil,
		Write: func(map[string]bool) (sweep.Archive, map[string]bool) {
			return s.write()
		},
		Shared: func() string { return "" },
		Of:     s,
	}
}
