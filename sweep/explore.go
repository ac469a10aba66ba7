package sweep

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/acp-test/acp-test/internal/lazy"
	"github.com/acp-test/acp-test/internal/lists"
	"github.com/acp-test/acp-test/scenarios"
	"github.com/acp-test/acp-test/scenarios/results"
	"github.com/acp-test/acp-test/transcript"
)

// patience is how many schedules with the same state and action may time out. The sweep then skips the others with
// this state and action, because an agent that hangs would cost a timeout each time.
const patience = 3

// explore runs schedules, each in its own process. With Reuse, it first runs them in chains that share a process.
func (s *sweep) explore(ctx context.Context, list []Schedule) {
	var done atomic.Int64
	total := len(list)
	if most := s.Shard.most(s.Max); most > 0 {
		total = most
	}
	ended := func(sch Schedule, res results.Result) {
		s.record(sch, res)
		s.progress("explore", int(done.Add(1)), total, sch.id(), res.Verdict)
	}
	each(ctx, s, s.units(s.mixed(list)), func(u unit) {
		var shared Schedule
		var res results.Result
		if len(u.schedules) > 1 {
			shared = s.chained(u.schedules)
			clean := false
			if res, clean = s.together(ctx, shared, fmt.Sprintf("sweep/one-process/%d", u.number)); clean {
				for _, sch := range u.schedules {
					ended(sch, res)
				}
				return
			}
		}
		var alone []results.Result
		for _, sch := range u.schedules {
			if s.hopeless(sch) {
				continue
			}
			r, began := s.play(ctx, sch, sch.id())
			if !began || s.whole.Err() != nil {
				return // a run that was cut short proves nothing about the agent
			}
			ended(sch, r)
			alone = append(alone, r)
		}
		if len(alone) == len(shared.parts) && len(alone) > 0 {
			s.reportShared(shared, res, alone)
		}
	})
}

// hopeless reports whether a schedule is skipped because too many schedules with the same state and action timed out.
// It counts the skipped schedule.
func (s *sweep) hopeless(sch Schedule) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.silent[sch.kind()] < patience {
		return false
	}
	s.pruned++
	s.given++
	return true
}

// kind returns a key for the state and the action of a schedule.
func (s Schedule) kind() string { return s.State + "\n" + s.Action }

// play runs the scenario of a schedule. If the run raises a question that its script does not ask, play runs the
// scenario again with that question. It returns false if the scenario was not started.
func (s *sweep) play(start context.Context, sch Schedule, id string) (results.Result, bool) {
	if sch.Drawn != "" {
		s.cover.plays(sch)
	}
	res, began := s.runText(start, s.engine, sch.text(), id)
	if !began {
		return res, false
	}
	if sch.Drawn != "" && s.Choice == Guided {
		if t, _, err := logged(s.engine.Out, res.ID); err == nil {
			s.cover.showed(sch, t)
		}
	}
	if probes := s.doubts(sch, res); len(probes) > 0 && s.whole.Err() == nil {
		sch.probes = probes
		return s.runText(s.whole, s.engine, sch.text(), id)
	}
	return res, true
}

// runText runs a generated scenario, and saves its text next to its transcript. It returns false if the scenario was
// not started.
func (s *sweep) runText(
	start context.Context, engine scenarios.Engine, a Archive, id string,
) (results.Result, bool) {
	text := a.Text()
	sc, err := s.engine.Protocol.Parse(id, id+".txtar", text)
	if err != nil {
		return results.Result{ID: id, Verdict: results.Error, Reason: "the schedule is not a scenario: " + err.Error()}, true
	}
	res, began := run(start, s.whole, s.all, engine, sc)
	if began {
		file := filepath.Join(s.engine.Out, filepath.FromSlash(id), "schedule.txtar")
		if err := os.WriteFile(file, text, 0o644); err == nil {
			if res.Artifacts == nil {
				res.Artifacts = map[string]string{}
			}
			res.Artifacts["scenario"] = id + "/schedule.txtar"
		}
	}
	return res, began
}

// record adds the sightings and the cell of a schedule to the sweep.
func (s *sweep) record(sch Schedule, res results.Result) {
	cell := s.cell(sch, res)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cells = append(s.cells, cell)
	if sch.Drawn != "" {
		s.orders++
	}
}

// cell adds the sightings of a schedule and returns its cell for the chart.
func (s *sweep) cell(sch Schedule, res results.Result) results.SweepCell {
	cell := results.SweepCell{Scenario: sch.Scenario, Point: sch.where(), Action: sch.Action, Verdict: res.Verdict,
		Out: res.Artifacts["transcript"]}
	var names []string
	if sch.Drawn == "" {
		cell.State = sch.State
	}
	worst := results.Pass
	for _, f := range s.unknown(sch, res) {
		if f.late {
			s.mu.Lock()
			s.silent[sch.kind()]++
			s.mu.Unlock()
		}
		names = append(names, f.rule)
		if blame(f.class) > blame(worst) {
			worst = f.class
		}
		s.report(f, sch, res)
	}
	switch {
	case res.Verdict == results.Error:
		cell.Verdict = results.Skip
		s.note("%s cannot be played: %s", sch.id(), res.Reason)
	case res.Verdict == results.Skip:
	case len(names) > 0:
		cell.Verdict = worst
	case res.Verdict == results.Inconclusive:
	default:
		cell.Verdict = results.Pass
	}
	cell.Finding = strings.Join(names, ", ")
	s.mu.Lock()
	defer s.mu.Unlock()
	s.explored++
	if cell.Verdict == results.Inconclusive {
		s.unsure++
	}
	return cell
}

// where returns the name of the schedule's point in the chart.
func (s Schedule) where() string {
	if s.Turns > 1 {
		return fmt.Sprintf("turn %d, %s", s.Turn+1, s.Point)
	}
	return s.Point
}

// sign is a rule or check that a result shows to be violated by the agent.
type sign struct {
	rule    string
	point   string // violated point, if it is a rule
	class   results.Verdict
	message string
	// at is the Seq of an entry. For a rule it is the first entry of the finding, or the maximum int if there is none.
	// For a check it is the last entry of the failure, or 0 if there is none.
	at    int
	late  bool     // a timeout expired
	heard bool     // the script waited for the entries that show it
	names []string // names that can refer to it in lists of known failures
}

// expected returns the reason of the known failure that covers the sign, or "" if none does. It looks for known
// failures of the swept scenario and of the schedule's scenario.
func (g sign) expected(e *scenarios.Engine, swept, schedule string) string {
	why, ok := e.Expects(swept, g.names...)
	if !ok {
		why, _ = e.Expects(schedule, g.names...)
	}
	return why
}

// numbered matches the numbers that make the slugs in a schedule or a chain unique.
var numbered = lazy.Regexp(`(-[0-9])?(\.[0-9])?$`)

func rulesOf(signs []sign) []string { return lists.Map(signs, func(g sign) string { return g.rule }) }

// found returns a sign for each rule or check that a result shows to be violated.
func found(res results.Result) []sign {
	var out []sign
	add := func(g sign) {
		for i, o := range out {
			if o.rule == g.rule {
				if blame(g.class) > blame(o.class) {
					out[i] = g
				}
				return
			}
		}
		out = append(out, g)
	}
	for _, f := range res.Findings {
		if blame(f.Class) > 0 && !strings.HasPrefix(f.Rule, "C-") { // rules C-… judge our editor
			add(sign{rule: f.Rule, point: cmp.Or(f.Point, "rule"), class: f.Class, message: f.Message,
				names: f.Names(), at: slices.Min(append([]int{math.MaxInt}, f.Entries...)), heard: heard(f, res.Heard)})
		}
	}
	for _, c := range res.Checks {
		if c.NotReached || blame(c.Verdict) == 0 {
			continue
		}
		g := sign{rule: numbered().ReplaceAllString(c.Slug, ""), class: c.Verdict, heard: true}
		g.names = append(res.Names(c), g.rule)
		if c.Failure != nil {
			g.message = oneLine(c.Failure)
			g.late = c.Failure.Timer != ""
			g.at = slices.Max(append([]int{0}, c.Failure.Entries...))
		}
		add(g)
	}
	if res.FailureClass == results.Fail {
		add(sign{rule: "script", names: []string{"script"}, class: results.Fail,
			message: oneLine(res.Failure), late: res.Failure.Timer != "", heard: true})
	}
	return out
}

// heard reports whether the script waited for the entries that first show a finding. waited maps a session to the Seq
// of its last awaited entry.
func heard(f results.Finding, waited map[string]int) bool {
	first := f.Entries
	if f.Count > 1 && len(first) > 1 {
		first = first[:len(first)-1] // the other entries are those of the first occurrence
	}
	last := waited[f.Session]
	if f.Session == "" {
		last = slices.Max(append(slices.Collect(maps.Values(waited)), 0))
	}
	return len(first) > 0 && slices.Max(first) <= last
}

func oneLine(f *transcript.Failure) string {
	s := "expected " + strings.Join(f.Expected, " or ")
	if f.Observed != "" {
		s += "; observed " + strings.SplitN(f.Observed, "\n", 2)[0]
	}
	if f.Reason != "" {
		s += " (" + f.Reason + ")"
	}
	if f.Timer != "" {
		s += " after " + f.Timer
	}
	return s
}

// blame returns v if this verdict counts against the agent, else 0.
func blame(v results.Verdict) results.Verdict {
	switch v {
	case results.Lint, results.Warn, results.Fail:
		return v
	}
	return 0
}

// report adds a sighting for a sign in the result of a schedule. It calls Found for a new signature.
func (s *sweep) report(g sign, sch Schedule, res results.Result) {
	one := &sighting{sign: g, schedule: sch, result: res, known: g.expected(&s.engine, sch.Scenario, res.ID),
		number: sch.nth}
	sig := one.signature()
	s.mu.Lock()
	fresh := !s.told[sig]
	s.told[sig] = true
	s.seen = append(s.seen, one)
	s.mu.Unlock()
	if fresh && s.Found != nil {
		s.Found(sig, g.class)
	}
}

// doubts returns the questions that a run raised and its script does not ask.
func (s *sweep) doubts(sch Schedule, res results.Result) map[string]bool {
	if res.Verdict == results.Error || res.Verdict == results.Skip || sch.Doubts == nil {
		return nil
	}
	t, effects, err := logged(s.engine.Out, res.ID)
	if err != nil {
		return nil
	}
	return sch.Doubts(t, effects)
}
