package sweep

import (
	"context"
	"iter"
	"slices"

	"github.com/acp-test/acp-test/scenarios/results"
)

// A chain is a scenario that consists of several schedules. They run in one
// process of the agent, one after the other, each in its own sessions. If a
// chain fails, each of its schedules is also run alone. The finding belongs to
// the whole chain only if no schedule shows it alone.

// longestChain is the maximum number of schedules in a chain.
const longestChain = 8

// mostOpen is the maximum number of schedules that wait for others to share a
// process with.
const mostOpen = 256

// unit is the work for one agent process: one or several schedules.
type unit struct {
	number    int
	schedules []Schedule
}

// units combines schedules that can share a process into chains. Each other
// schedule becomes a unit by itself.
func (s *sweep) units(list iter.Seq[Schedule]) iter.Seq[unit] {
	return func(yield func(unit) bool) {
		n, waiting := 0, 0
		open := map[string][]Schedule{} // key of Shared -> schedules that wait
		var keys []string
		give := func(schedules []Schedule) bool {
			n++
			return yield(unit{n, schedules})
		}
		flush := func() bool {
			for _, key := range keys {
				if chain := open[key]; len(chain) > 0 && !give(chain) {
					return false
				}
			}
			clear(open)
			keys, waiting = nil, 0
			return true
		}
		for sch := range list {
			key := ""
			if s.Reuse && sch.Shared != nil {
				key = sch.Shared()
			}
			if key == "" {
				if !give([]Schedule{sch}) {
					return
				}
				continue
			}
			if open[key] == nil {
				keys = append(keys, key)
			}
			open[key] = append(open[key], sch)
			waiting++
			if len(open[key]) == longestChain {
				waiting -= longestChain
				if !give(open[key]) {
					return
				}
				open[key] = open[key][:0:0]
			}
			if waiting == mostOpen && !flush() {
				return
			}
		}
		flush()
	}
}

// chained returns a schedule that runs several others, one after the other.
func (s *sweep) chained(parts []Schedule) Schedule {
	return Schedule{Scenario: parts[0].Scenario, parts: parts,
		Point: "in one process", State: "in one process", Action: "one after another",
		Write: func(map[string]bool) (Archive, map[string]bool) { return s.Planner.Chain(parts) },
		Simpler: func() (fewer []Schedule) {
			for i := len(parts) - 1; i >= 0 && len(parts) > 1; i-- {
				fewer = append(fewer, s.chained(slices.Delete(slices.Clone(parts), i, i+1)))
			}
			return fewer
		}}
}

// together runs a chain. If clean is true, the chain showed no finding, and its
// schedules need not run alone.
func (s *sweep) together(ctx context.Context, sch Schedule, id string) (res results.Result, clean bool) {
	res, began := s.runText(ctx, s.engine, sch.text(), id)
	if !began || s.whole.Err() != nil {
		return res, false
	}
	switch res.Verdict {
	case results.Error, results.Skip, results.Inconclusive:
		return res, false
	}
	unreached := slices.ContainsFunc(res.Checks, func(c results.Check) bool { return c.NotReached })
	return res, !unreached && len(s.unknown(sch, res)) == 0 && !s.doubtful(sch, res)
}

// unknown returns the signs of a result that its baseline does not also show.
func (s *sweep) unknown(sch Schedule, res results.Result) []sign {
	s.mu.Lock()
	known := s.baseline[sch.Scenario]
	s.mu.Unlock()
	return slices.DeleteFunc(found(res), func(g sign) bool { return known[g.rule] })
}

// doubtful reports whether a chain raised a question that its script does not
// ask.
func (s *sweep) doubtful(sch Schedule, res results.Result) bool {
	t, _, err := logged(s.engine.Out, res.ID)
	return err != nil || s.Planner.Doubtful(sch.parts, t)
}

// reportShared reports those findings of a chain that none of its schedules
// shows alone.
func (s *sweep) reportShared(sch Schedule, res results.Result, alone []results.Result) {
	for _, g := range s.unknown(sch, res) {
		if !slices.ContainsFunc(alone, func(r results.Result) bool {
			return slices.ContainsFunc(found(r), func(o sign) bool { return o.rule == g.rule })
		}) {
			s.report(g, sch, res)
		}
	}
}

// shared reports whether a finding occurs only if schedules share a process.
func (f Finding) shared() bool { return len(f.schedule.parts) > 0 }
