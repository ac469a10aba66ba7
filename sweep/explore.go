package sweep

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"

	"github.com/acp-test/acp-test/internal/confined"
	"github.com/acp-test/acp-test/scenarios"
	"github.com/acp-test/acp-test/transcript"
)

// patience is how many schedules of one state and action may run into a
// deadline before the others of their kind are taken to do so too: an agent
// that hangs must not cost its timeout everywhere.
const patience = 3

// explore runs schedules, each in a fresh process or, where that is wanted, in
// chains first.
func (s *sweep) explore(ctx context.Context, list []Schedule) {
	var done atomic.Int64
	ended := func(sch Schedule, res scenarios.Result) {
		s.record(sch, res)
		s.progress("explore", int(done.Add(1)), len(list), sch.id(), res.Verdict)
	}
	units := s.units(list)
	s.each(ctx, len(units), func(i int) {
		var shared Schedule
		var res scenarios.Result
		if len(units[i]) > 1 {
			shared = s.chained(units[i])
			clean := false
			if res, clean = s.together(ctx, shared, fmt.Sprintf("sweep/one-process/%d", i+1)); clean {
				for _, sch := range units[i] {
					ended(sch, res)
				}
				return
			}
		}
		var alone []scenarios.Result
		for _, sch := range units[i] {
			if s.hopeless(sch) {
				continue
			}
			r, began := s.play(ctx, sch, sch.id())
			if !began || s.whole.Err() != nil {
				return // an end that was cut short says nothing about the agent
			}
			ended(sch, r)
			alone = append(alone, r)
		}
		if len(alone) == len(shared.parts) && len(alone) > 0 {
			s.reportShared(shared, res, alone)
		}
	})
}

// hopeless reports whether a schedule is taken to run into a deadline, like
// others of its kind.
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

// kind is the state and the action of a schedule.
func (s Schedule) kind() string { return s.State + "\n" + s.Action }

// play runs the scenario of a schedule, and once more if the run made
// something questionable that its script did not ask.
func (s *sweep) play(start context.Context, sch Schedule, id string) (scenarios.Result, bool) {
	res, began := s.runText(start, sch.text(), id)
	if !began {
		return res, false
	}
	if probes := s.doubts(sch, res); len(probes) > 0 && s.whole.Err() == nil {
		sch.probes = probes
		return s.runText(s.whole, sch.text(), id)
	}
	return res, true
}

// runText runs one generated scenario, and keeps its text beside what it did.
func (s *sweep) runText(start context.Context, a Archive, id string) (scenarios.Result, bool) {
	text := a.Text()
	sc, err := s.engine.Protocol.Parse(id, id+".txtar", text)
	if err != nil {
		return scenarios.Result{ID: id, Verdict: scenarios.Error, Reason: "the schedule is no scenario: " + err.Error()}, true
	}
	res, began := s.run(start, s.whole, s.engine, sc)
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

// record files what a schedule showed.
func (s *sweep) record(sch Schedule, res scenarios.Result) {
	cell := scenarios.SweepCell{Scenario: sch.Scenario, Point: sch.where(), Action: sch.Action, Verdict: res.Verdict,
		Out: res.Artifacts["transcript"]}
	var names []string
	worst := scenarios.Pass
	for _, f := range s.unknown(sch, res) {
		if f.late {
			s.mu.Lock()
			s.silent[sch.kind()]++
			s.mu.Unlock()
		}
		names = append(names, f.rule)
		if rank(f.class) > rank(worst) {
			worst = f.class
		}
		s.report(Signature{f.rule, sch.State, sch.Action}, f, sch, res)
	}
	switch {
	case res.Verdict == scenarios.Error, res.Verdict == scenarios.Skip:
	case len(names) > 0:
		cell.Verdict = worst
	case res.Verdict == scenarios.Inconclusive:
	default:
		cell.Verdict = scenarios.Pass
	}
	cell.Finding = strings.Join(names, ", ")
	s.mu.Lock()
	defer s.mu.Unlock()
	s.explored++
	switch cell.Verdict {
	case scenarios.Inconclusive:
		s.unsure++
	case scenarios.Error:
		s.errors = append(s.errors, res)
	}
	s.cells = append(s.cells, cell)
}

// where is the point as a map shows it.
func (s Schedule) where() string {
	if s.Turns > 1 {
		return fmt.Sprintf("turn %d, %s", s.Turn+1, s.Point)
	}
	return s.Point
}

// sign is one thing a result says against the agent.
type sign struct {
	rule    string
	class   scenarios.Verdict
	message string
	late    bool // a deadline passed
}

// numbered is what makes the slugs of a schedule, and of a chain, distinct.
var numbered = regexp.MustCompile(`(-[0-9])?(\.[0-9])?$`)

// found lists what a result says against the agent, each rule once.
func found(res scenarios.Result) []sign {
	var out []sign
	add := func(g sign) {
		for i, o := range out {
			if o.rule == g.rule {
				if rank(g.class) > rank(o.class) {
					out[i] = g
				}
				return
			}
		}
		out = append(out, g)
	}
	for _, f := range res.Findings {
		if rank(f.Class) > 0 && !strings.HasPrefix(f.Rule, "C-") { // those judge our editor
			add(sign{rule: f.Rule, class: f.Class, message: f.Message})
		}
	}
	for _, c := range res.Checks {
		if c.NotReached || rank(c.Verdict) == 0 {
			continue
		}
		g := sign{rule: numbered.ReplaceAllString(c.Slug, ""), class: c.Verdict}
		if c.Failure != nil {
			g.message = oneLine(c.Failure)
			g.late = c.Failure.Timer != ""
		}
		add(g)
	}
	if res.Failure != nil && res.Verdict == scenarios.Fail {
		add(sign{rule: "script", class: scenarios.Fail, message: oneLine(res.Failure), late: res.Failure.Timer != ""})
	}
	return out
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

// rank orders the classes that count against an agent; 0 does not.
func rank(v scenarios.Verdict) int {
	switch v {
	case scenarios.Fail:
		return 3
	case scenarios.Warn:
		return 2
	case scenarios.Lint:
		return 1
	}
	return 0
}

// report files one sign under its signature. The simplest schedule that shows
// it represents it.
func (s *sweep) report(sig Signature, g sign, sch Schedule, res scenarios.Result) {
	s.mu.Lock()
	f := s.findings[sig]
	known, _ := s.engine.Expects(sch.Scenario, g.rule)
	// What one scenario is expected to show does not stand for another.
	fresh := f == nil || f.Known != "" && known == ""
	if f == nil {
		f = &Finding{}
		s.findings[sig] = f
		s.order = append(s.order, sig)
	}
	if fresh {
		*f = Finding{Known: known, Seen: f.Seen, Signature: sig, Class: g.class, Message: g.message, Scenario: sch.Scenario,
			Point: sch.Point, schedule: sch, result: res}
	}
	f.Seen++
	c := *f
	s.mu.Unlock()
	if fresh && s.Found != nil {
		s.Found(c)
	}
}

// doubts are the questions a run raises that its script does not ask.
func (s *sweep) doubts(sch Schedule, res scenarios.Result) map[string]bool {
	if res.Verdict == scenarios.Error || res.Verdict == scenarios.Skip || sch.Doubts == nil {
		return nil
	}
	dir := filepath.Join(s.engine.Out, filepath.FromSlash(res.ID))
	t, err := readTranscript(dir)
	if err != nil {
		return nil
	}
	diff, _ := confined.ReadBelow(dir, "workspace.diff")
	return sch.Doubts(t, effects(string(diff)))
}
