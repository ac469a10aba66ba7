package sweep

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"

	"github.com/acp-test/acp-test/scenarios"
	"github.com/acp-test/acp-test/transcript"
)

// patience is how many schedules of one state and action may run into a
// deadline before the others of their kind are taken to do so too: an agent
// that hangs must not cost its timeout everywhere.
const patience = 3

// explore runs schedules, each in a fresh process.
func (s *sweep) explore(ctx context.Context, list []schedule) {
	var done atomic.Int64
	s.each(ctx, len(list), func(i int) {
		sch := list[i]
		kind := sch.point.State + "\n" + sch.action.Name
		s.mu.Lock()
		known := s.silent[kind] >= patience
		s.mu.Unlock()
		if known {
			s.mu.Lock()
			s.pruned++
			s.given++
			s.mu.Unlock()
			return
		}
		res, began := s.play(ctx, sch, sch.id())
		if !began || s.whole.Err() != nil {
			return // an end that was cut short says nothing about the agent
		}
		s.record(sch, res, kind)
		s.progress("explore", int(done.Add(1)), len(list), sch.id(), res.Verdict)
	})
}

// play runs the scenario of a schedule, and once more if the run made
// something questionable that its script did not ask.
func (s *sweep) play(start context.Context, sch schedule, id string) (scenarios.Result, bool) {
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
func (s *sweep) runText(start context.Context, a archive, id string) (scenarios.Result, bool) {
	text := a.text()
	sc, err := scenarios.Parse(id, id+".txtar", text)
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
func (s *sweep) record(sch schedule, res scenarios.Result, kind string) {
	cell := scenarios.SweepCell{Scenario: sch.base.id, Point: sch.where(), Action: sch.action.Name, Verdict: res.Verdict, Out: res.Artifacts["transcript"]}
	var names []string
	s.mu.Lock()
	known := s.baseline[sch.base.id]
	s.mu.Unlock()
	worst := scenarios.Pass
	for _, f := range found(res) {
		if known[f.rule] {
			continue
		}
		if f.late {
			s.mu.Lock()
			s.silent[kind]++
			s.mu.Unlock()
		}
		names = append(names, f.rule)
		if rank(f.class) > rank(worst) {
			worst = f.class
		}
		s.report(Signature{f.rule, sch.point.State, sch.action.Name}, f, sch, res)
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
func (s schedule) where() string {
	if len(s.base.targets) > 1 {
		return fmt.Sprintf("turn %d, %s", s.target.turn+1, s.point.Name)
	}
	return s.point.Name
}

// sign is one thing a result says against the agent.
type sign struct {
	rule    string
	class   scenarios.Verdict
	message string
	late    bool // a deadline passed
}

// numbered is what makes the slugs of a schedule distinct.
var numbered = regexp.MustCompile(`-[0-9]$`)

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
		if !f.Known && rank(f.Class) > 0 && !strings.HasPrefix(f.Rule, "C-") { // those judge our editor
			add(sign{rule: f.Rule, class: f.Class, message: f.Message})
		}
	}
	for _, c := range res.Checks {
		if c.NotReached || c.Known || rank(c.Verdict) == 0 {
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
func (s *sweep) report(sig Signature, g sign, sch schedule, res scenarios.Result) {
	s.mu.Lock()
	f := s.findings[sig]
	fresh := f == nil
	if fresh {
		f = &Finding{Signature: sig, Class: g.class, Message: g.message, Scenario: sch.base.id, Point: sch.point.Name, schedule: sch, result: res}
		s.findings[sig] = f
		s.order = append(s.order, sig)
	}
	f.Seen++
	c := *f
	s.mu.Unlock()
	if fresh && s.Found != nil {
		s.Found(c)
	}
}

// doubts are the questions a run raises that its script does not ask: whether
// a second prompt was answered without having been worked on, whether what
// needed a permission before now happened without one, whether the model is
// still being listened to.
func (s *sweep) doubts(sch schedule, res scenarios.Result) map[string]bool {
	two := sch.action.Name == "second prompt"
	effect := sch.seen.asked > 0 && len(sch.seen.effects) > 0 && !strings.Contains(sch.action.Name, "always")
	cut := sch.point.gated && sch.point.open() && strings.HasPrefix(sch.action.Name, "cancel")
	if res.Verdict == scenarios.Error || res.Verdict == scenarios.Skip || !two && !effect && !cut {
		return nil
	}
	dir := filepath.Join(s.engine.Out, filepath.FromSlash(res.ID))
	t, err := readTranscript(filepath.Join(dir, "transcript.jsonl"))
	if err != nil {
		return nil
	}
	out := map[string]bool{}
	if two && swallowed(t) {
		out["swallowed"] = true
	}
	if cut && clings(t) {
		out["clings"] = true
	}
	if effect {
		diff, _ := os.ReadFile(filepath.Join(dir, "workspace.diff"))
		asked := 0
		for e := range t.All() {
			if e.Source == transcript.Agent && e.Method == "session/request_permission" && e.Kind == transcript.Request {
				asked++
			}
		}
		if asked == 0 && len(effects(string(diff))) > 0 {
			out["unasked"] = true
		}
	}
	return out
}

// swallowed reports whether the second prompt of a schedule was answered with
// the end of a turn although the model never heard of it.
func swallowed(t *transcript.Transcript) bool {
	seq, ended := 0, false
	for e := range t.All() {
		switch {
		case e.Source == transcript.Editor && e.Method == "session/prompt" && e.Kind == transcript.Request && strings.Contains(string(e.Raw), "And another thing."):
			seq = e.Seq
		case seq > 0 && e.Source == transcript.Agent && e.Kind == transcript.Response && e.Ref == seq:
			ended = e.JSON().Path("result.stopReason").Is("end_turn")
		case seq > 0 && e.Source == transcript.Model && e.Kind == transcript.ModelRequest && strings.Contains(string(e.Raw), "And another thing."):
			return false
		}
	}
	return ended
}

// clings reports whether the agent kept the model's reply open that a gate
// held, from the cancel to the end of the run.
func clings(t *transcript.Transcript) bool {
	held := int64(0)
	for e := range t.All() {
		n, _ := e.JSON().Get("n").Int()
		switch {
		case e.Kind == transcript.Gate && e.JSON().Get("gate").Is(hold):
			held = n
		case held > 0 && n == held && (e.Kind == transcript.ModelAborted || e.Kind == transcript.ModelDone || e.Kind == transcript.GateReleased):
			return false
		case e.Kind == transcript.StdinClosed || e.Kind == transcript.Exited:
			return held > 0
		}
	}
	return held > 0
}
