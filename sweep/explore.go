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

// explore runs schedules, each in a fresh process or, where that is wanted, in
// chains first.
func (s *sweep) explore(ctx context.Context, list []schedule) {
	var done atomic.Int64
	ended := func(sch schedule, res scenarios.Result) {
		s.record(sch, res)
		s.progress("explore", int(done.Add(1)), len(list), sch.id(), res.Verdict)
	}
	units := s.units(list)
	s.each(ctx, len(units), func(i int) {
		var shared schedule
		var res scenarios.Result
		if len(units[i]) > 1 {
			shared = chain(units[i])
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
func (s *sweep) hopeless(sch schedule) bool {
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
func (s schedule) kind() string { return s.point.State + "\n" + s.action.Name }

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
func (s *sweep) record(sch schedule, res scenarios.Result) {
	cell := scenarios.SweepCell{Scenario: sch.base.id, Point: sch.where(), Action: sch.action.Name, Verdict: res.Verdict, Out: res.Artifacts["transcript"]}
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
func (s *sweep) report(sig Signature, g sign, sch schedule, res scenarios.Result) {
	s.mu.Lock()
	f := s.findings[sig]
	known, _ := s.engine.Expects(sch.base.id, g.rule)
	// What one scenario is expected to show does not stand for another.
	fresh := f == nil || f.Known != "" && known == ""
	if f == nil {
		f = &Finding{}
		s.findings[sig] = f
		s.order = append(s.order, sig)
	}
	if fresh {
		*f = Finding{Known: known, Seen: f.Seen, Signature: sig, Class: g.class, Message: g.message, Scenario: sch.base.id, Point: sch.point.Name, schedule: sch, result: res}
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
	cut := sch.cuts()
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

// cuts reports whether a schedule cancels a turn while a gate holds the model's
// reply.
func (s schedule) cuts() bool {
	return s.point.gated && s.point.open() && strings.HasPrefix(s.action.Name, "cancel")
}

// swallowed reports whether a second prompt was answered with the end of a turn
// although the model never heard of it.
func swallowed(t *transcript.Transcript) bool {
	asked := map[int]string{}
	ended, heard := map[string]bool{}, map[string]bool{}
	for e := range t.All() {
		switch {
		case e.Source == transcript.Editor && e.Method == "session/prompt" && e.Kind == transcript.Request:
			if text := second.FindString(string(e.Raw)); text != "" {
				asked[e.Seq] = text
			}
		case e.Source == transcript.Agent && e.Kind == transcript.Response && asked[e.Ref] != "":
			ended[asked[e.Ref]] = e.JSON().Path("result.stopReason").Is("end_turn")
		case e.Source == transcript.Model && e.Kind == transcript.ModelRequest:
			for _, text := range second.FindAllString(string(e.Raw), -1) {
				heard[text] = true
			}
		}
	}
	for text, end := range ended {
		if end && !heard[text] {
			return true
		}
	}
	return false
}

// clings reports whether the agent kept a reply of the model open that a gate
// held, from the cancel to the end of the run.
func clings(t *transcript.Transcript) bool {
	held := map[int64]bool{}
	for e := range t.All() {
		n, _ := e.JSON().Get("n").Int()
		switch {
		case e.Kind == transcript.Gate && gateOf(e) == hold:
			held[n] = true
		case e.Kind == transcript.ModelAborted || e.Kind == transcript.ModelDone || e.Kind == transcript.GateReleased:
			delete(held, n)
		case e.Kind == transcript.StdinClosed || e.Kind == transcript.Exited:
			return len(held) > 0
		}
	}
	return len(held) > 0
}

// gateOf is the name of a gate without the number it has in a chain.
func gateOf(e transcript.Entry) string {
	name, _, _ := strings.Cut(e.JSON().Get("gate").Str(), ".")
	return name
}
