package scenarios

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/acp-test/acp-test/agents"
	"github.com/acp-test/acp-test/rules"
	"github.com/acp-test/acp-test/scenarios/script"
	"github.com/acp-test/acp-test/transcript"
)

// interrupted is the reason of a result whose run was stopped from outside.
const interrupted = "interrupted"

// judge fills a result from what happened. err is how the script ended.
func (r *run) judge(ctx context.Context, res *Result, err error, clean bool) {
	if ctx.Err() != nil { // what ended with it is nobody's fault
		res.Verdict, res.Reason = Error, interrupted
		return
	}
	res.Frames = r.frames()
	res.NotStarted = r.state.unstarted != nil
	res.Offers = r.engine.Protocol.Offers(r.t)
	res.Notes = append(res.Notes, r.state.notes...)
	for _, id := range slices.Sorted(maps.Keys(r.scenario.decl.rulesOff)) {
		if now := r.engine.Protocol.Rules.Renamed(id); now != "" {
			res.Notes = append(res.Notes, "rules off: "+now)
		}
	}
	res.Notes = append(res.Notes, r.remarks()...)
	if r.engine.Profile.Tools == nil {
		res.Wire, res.Tools = r.model.Learned()
	}
	var m *Miss
	// Where a situation did not come about, what was left open for the script
	// to go on from is not the agent's debt.
	if errors.As(err, &m) && m.Verdict == "" && m.Failure.Timer != "" {
		if m.why = r.retrying(); m.why != "" {
			m.Verdict, m.Failure.Reason = Inconclusive, m.why
		}
	}
	brokeOff := m != nil && m.Verdict == Inconclusive
	end := rules.End{Clean: clean && !r.state.killed && !brokeOff, Linger: res.Linger}
	r.judged()
	for _, f := range r.checker.Finish(end) {
		if r.meant(f) {
			continue
		}
		// A lint about our own editor breaks nothing: it is no fault of the run.
		if f.Class == rules.Info || f.Class == rules.Lint && f.Side == rules.OfClient {
			res.Notes = append(res.Notes, f.Rule+": "+r.Plain(f.Message))
			continue
		}
		res.Findings = append(res.Findings, r.finding(f))
	}
	res.Findings = append(res.Findings, r.leftovers()...)
	res.Findings = append(res.Findings, r.egress()...)
	res.Findings = append(res.Findings, r.strangeTools()...)
	r.markTurns(res)
	res.Evidence, res.Support = r.checker.Evidence(), r.checker.Support()

	lacking := r.model.Lacking()
	lacks := len(lacking) > 0 && r.engine.Profile.Tools == nil
	var sk *Skipped
	var timer *timerError
	switch {
	case err == nil:
	case errors.As(err, &m):
		r.missed(m)
	case errors.As(err, &sk):
		if !lacks {
			r.judgeSkip(res, sk)
			r.known(res)
			return
		}
	case errors.As(err, &timer):
		f := r.Failure(&Line{Line: &script.Line{}}, transcript.Outcome{Cause: timer})
		f.Expected, f.Observed = []string{"an end of the scenario"}, "it was still running"
		m = &Miss{Failure: f, Effect: true}
		if r.heardOf() {
			m.Verdict, m.why = Inconclusive, fmt.Sprintf("the agent was still at it after the %v that the scenario may take; "+
				"--timeout gives it more", timer.d)
		}
		r.missed(m)
	default:
		res.Verdict, res.Reason = Error, err.Error()
		var missing *agents.MissingError
		if errors.As(err, &missing) {
			res.Reason = missing.Error()
		}
	}
	if lacks && res.Verdict != Error {
		// Whatever became of a call to a tool that does not exist says nothing
		// about what the scenario asks.
		res.Verdict, res.Reason = Skip, "the agent offers its model no tool for "+strings.Join(lacking, ", ")
		r.known(res)
		return
	}
	r.judgeChecks(res, m)
	if res.Verdict != Error {
		r.compare(res, clean && err == nil)
	}
	for _, f := range res.Findings {
		if f.Class == Error && res.Reason == "" {
			res.Reason = "the editor of this program broke the protocol: " + f.Message
		}
	}
	r.known(res)
}

// heardOf reports whether the agent has said something in the time that one line may take
// before its input was closed at the end: then it is no agent that hangs, but one that needs
// more time.
func (r *run) heardOf() bool {
	var last, before, end time.Duration
	for e := range r.t.All() {
		switch {
		case e.Source == transcript.Agent:
			last = e.At
		case e.Source == transcript.Process && e.Kind == transcript.StdinClosed:
			before, end = last, e.At
		}
	}
	return before > 0 && end-before < r.engine.StepTimeout
}

// judgeSkip judges a scenario that turned out not to apply, in its middle
// perhaps: what failed before that has failed.
func (r *run) judgeSkip(res *Result, sk *Skipped) {
	r.state.checks = slices.DeleteFunc(r.state.checks, func(c *checkState) bool { return c.decl != nil && !c.reached })
	r.judgeChecks(res, nil)
	res.Checks = slices.DeleteFunc(res.Checks,
		func(c Check) bool { return c.Verdict == Pass || c.Verdict == Inconclusive })
	if res.Verdict == Fail || res.Verdict == Error {
		res.Notes = append(res.Notes, "the rest was skipped: "+sk.Reason)
		return
	}
	res.Verdict, res.Reason = Skip, sk.Reason
	r.compareSkipped(res)
}

// judgeChecks turns misses into verdicts of checks. fatal is the miss that
// ended the script, nil if it ran to its end.
func (r *run) judgeChecks(res *Result, fatal *Miss) {
	unsure := r.unsure()
	for _, c := range r.state.checks {
		if c.decl == nil {
			r.judgeUnchecked(res, c, unsure)
			res.failedInTurn = res.failedInTurn || r.missedInTurn(c)
			continue
		}
		out := Check{ID: r.scenario.ID + "#" + c.decl.slug, Slug: c.decl.slug, Line: c.decl.line, Title: c.decl.title,
			Requirements: c.decl.requirements, Class: r.classOf(c), Verdict: Pass, inTurn: r.missedInTurn(c)}
		for _, m := range c.misses {
			v := r.verdictOf(m, c, res)
			if unsure != "" && v != Inconclusive && v != Pass {
				v, out.Reason = Inconclusive, unsure
			}
			if out.Failure == nil || severer(v, out.Verdict) {
				out.Failure = m.Failure
			}
			if severer(v, out.Verdict) {
				out.Verdict = v
			}
			if v == Inconclusive && out.Reason == "" {
				out.Reason = m.reason()
			}
		}
		if out.Verdict == Pass && res.Verdict == Error && c == r.state.current {
			out.Verdict, out.Reason = Error, res.Reason // what ended the script ended it here
		}
		if out.NotReached = !c.reached; out.NotReached {
			out.Verdict, out.Reason = Inconclusive, notReached(fatal)
			if res.Verdict == Error {
				out.Verdict = Error
			}
		}
		res.Checks = append(res.Checks, out)
		if out.NotReached {
			continue // it decides nothing: what ended the script does
		}
		res.Verdict = Worst(res.Verdict, out.Verdict)
		if res.Reason == "" && out.Verdict == Inconclusive {
			res.Reason = out.Reason
		}
	}
	if fatal != nil && res.Verdict == Pass && slices.ContainsFunc(res.Checks, func(c Check) bool { return c.NotReached }) {
		res.Notes = append(res.Notes, "not every check was reached: the script ended at "+fatal.Failure.Where)
	}
	for _, f := range res.Findings {
		res.Verdict = Worst(res.Verdict, f.Class)
		if f.Class == Inconclusive && res.Reason == "" {
			res.Reason = f.Message
		}
	}
}

// judgeUnchecked turns the misses of lines before the first check into the verdict
// of the scenario.
func (r *run) judgeUnchecked(res *Result, c *checkState, unsure string) {
	for _, m := range c.misses {
		v := r.verdictOf(m, c, res)
		if v == Warn || v == Lint {
			v = Fail // nobody gave it a lesser class
		}
		if unsure != "" && v == Fail {
			// The agent went on from an answer it was not meant to get.
			res.Verdict, res.Reason = Worst(res.Verdict, Inconclusive), unsure
			continue
		}
		res.Verdict = Worst(res.Verdict, v)
		if severer(v, cmp.Or(res.FailureClass, Pass)) {
			res.Failure, res.FailureClass = m.Failure, v
		}
		if v == Inconclusive && res.Reason == "" {
			res.Reason = m.reason()
		}
	}
}

// notReached says which line ended the script before a check.
func notReached(fatal *Miss) string {
	if fatal == nil || fatal.Failure.Where == "" {
		return "not reached"
	}
	return "not reached: the script ended at " + fatal.Failure.Where
}

// severer reports whether verdict a is worse than b for a check, where warn
// and lint count.
func severer(a, b Verdict) bool {
	order := []Verdict{Pass, Lint, Warn, Skip, Inconclusive, Fail, Error}
	return slices.Index(order, a) > slices.Index(order, b)
}

// classOf is what a miss of the check counts as, from its requirements.
func (r *run) classOf(c *checkState) Verdict {
	if c.decl.class != "" {
		return c.decl.class
	}
	if len(c.decl.requirements) == 0 {
		for _, m := range c.misses {
			if !m.Effect && m.Verdict == "" {
				return Lint
			}
		}
		return Fail
	}
	class := Lint
	for _, id := range c.decl.requirements {
		q, ok := r.protocol().Rules.Requirement(id)
		switch {
		case ok && q.Level == "must":
			return Fail
		case ok && q.Level == "should":
			class = Warn
		}
	}
	return class
}

// verdictOf is what one miss means for its check.
func (r *run) verdictOf(m *Miss, c *checkState, res *Result) Verdict {
	if m.Verdict != "" {
		return m.Verdict
	}
	if why := r.excuse(m); why != "" {
		m.Verdict, m.Failure.Reason, m.why = Inconclusive, why, why
		return m.Verdict
	}
	if at := max(m.turnEnd, m.turnOpen); at > 0 {
		// The turn ended in another way than cancelled, or not at all. Whether the end may
		// have crossed the cancel, and whether the editor keeps it from ending, is for the
		// rule to say: it knows what was provably open.
		for _, f := range res.Findings {
			if f.Rule == r.protocol().EndRule && slices.Contains(f.Entries, at) {
				if f.Class == Inconclusive {
					m.Failure.Reason = f.Message
					return Inconclusive
				}
				m.Failure.Reason = f.Message
			}
		}
	}
	if c.decl == nil {
		return Fail
	}
	if m.turnOpen > 0 && c.decl.denies && !c.decl.claims && slices.ContainsFunc(res.Findings, func(f Finding) bool {
		return f.Class == Fail && slices.Contains(f.Entries, m.turnOpen)
	}) {
		m.Failure.Reason = "the turn did not end, which a rule tells, so nothing is known of what was not to come of it"
		return Inconclusive
	}
	if c.decl.class == "" && len(c.decl.requirements) == 0 {
		if m.Effect {
			return Fail
		}
		return Lint
	}
	return r.classOf(c)
}

// unsure is why checks give no verdict: a permission could not be answered as
// scripted, or the agent wants something first; "" if none.
func (r *run) unsure() string {
	if why := r.protocol().Barred(r.t); why != "" {
		return why
	}
	for e := range r.t.All() {
		if e.Kind == transcript.Noted {
			v := e.JSON()
			if yes, _ := v.Get("inconclusive").Bool(); yes {
				return v.Get("text").Str()
			}
		}
	}
	return ""
}

// mostRemarks bounds how many are shown.
const mostRemarks = 200

// remarks are the sentences the editor and the model server left.
func (r *run) remarks() []string {
	var out []string
	told := map[string]bool{}
	for _, n := range r.state.notes {
		told[n] = true
	}
	for e := range r.t.All() {
		if e.Kind == transcript.Noted || e.Kind == transcript.ModelUnmatched || e.Kind == transcript.ModelUnused {
			if text := e.JSON().Get("text").Str(); text != "" && !told[text] && len(told) < mostRemarks {
				told[text] = true
				out = append(out, text)
			}
		}
	}
	return out
}

func (r *run) frames() int {
	n := 0
	for e := range r.t.All() {
		if e.Frame() {
			n++
		}
	}
	return n
}

// statement says what a check's requirements ask, with the first citation.
func (r *run) statement(d *checkDecl) string {
	for _, id := range d.requirements {
		if q, ok := r.protocol().Rules.Requirement(id); ok {
			return q.Statement
		}
	}
	return d.title
}
