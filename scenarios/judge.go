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
	"github.com/acp-test/acp-test/internal/lists"
	"github.com/acp-test/acp-test/rules"
	"github.com/acp-test/acp-test/scenarios/language"
	"github.com/acp-test/acp-test/scenarios/results"
	"github.com/acp-test/acp-test/scenarios/script"
	"github.com/acp-test/acp-test/scenarios/verdict"
	"github.com/acp-test/acp-test/transcript"
)

// interrupted is the reason in the result of a run that was stopped from outside.
const interrupted = "interrupted"

// judge sets the verdict and findings in the result of a run. err is the error with which the script ended, or nil.
// clean is false if the run was cut off.
func (r *run) judge(ctx context.Context, res *results.Result, err error, clean bool) {
	if ctx.Err() != nil { // an interruption is not the agent's fault
		res.Verdict, res.Reason = results.Error, interrupted
		return
	}
	defer verdict.Mark(res, r.isKnown)
	res.Frames = len(seqsOf(r.t.All(), transcript.Entry.Frame))
	res.NotStarted, res.Barred = r.state.unstarted != nil, r.protocol().Barred(r.t)
	res.Offers = r.engine.Protocol.Offers(r.t)
	res.Notes = slices.Concat(res.Notes, r.state.notes, r.renamed(), r.remarks())
	var lacking []string
	if r.engine.Profile.Tools == nil {
		res.Wire, res.Tools = r.model.Learned()
		lacking = r.model.Lacking()
	}
	r.judgeRules(res, err, clean)
	fatal := r.ending(res, err)
	r.advise()
	var skipped *Skipped
	switch {
	case len(lacking) > 0 && res.Verdict != results.Error:
		// A call to a missing tool creates no situation to judge, and the agent is not to blame for warnings about its
		// turn.
		res.Findings = slices.DeleteFunc(res.Findings, func(f results.Finding) bool {
			return f.InTurn && f.Class != results.Fail
		})
		res.Verdict, res.Reason = results.Skip, "the agent offers its model no tool for "+strings.Join(lacking, ", ")
		return
	case errors.As(err, &skipped):
		r.judgeSkip(res, skipped)
		return
	}
	r.judgeChecks(res, fatal)
	if res.Verdict != results.Error {
		r.compare(res, clean && err == nil)
	}
	for _, f := range res.Findings {
		if f.Class == results.Error && res.Reason == "" {
			res.Reason = "acp-test's own editor broke the protocol: " + f.Message
		}
	}
}

// renamed returns a note for each rule that the script turns off by a former id.
func (r *run) renamed() (notes []string) {
	for _, id := range slices.Sorted(maps.Keys(r.scenario.RulesOff)) {
		if now := r.protocol().Rules.Renamed(id); now != "" {
			notes = append(notes, "rules off: "+now)
		}
	}
	return notes
}

// judgeRules adds the findings of the rules and of the engine itself.
func (r *run) judgeRules(res *results.Result, err error, clean bool) {
	var m *Miss
	// If the situation to judge did not come about, the agent is not to blame for unanswered requests: the script would
	// have continued them.
	if errors.As(err, &m) && m.Verdict == 0 && m.Failure.Timer != "" {
		if m.why = cmp.Or(r.retrying(), cutShort(res)); m.why != "" {
			m.Verdict, m.Failure.Reason = results.Inconclusive, m.why
		}
	}
	brokeOff := m != nil && m.Verdict == results.Inconclusive
	r.judged()
	for _, f := range r.checker.Finish(rules.End{Clean: clean && !r.state.killed && !brokeOff, Linger: res.Linger}) {
		switch {
		case r.meant(f):
		// A lint about acp-test's own editor becomes a note.
		case f.Class == rules.Info, f.Class == rules.Lint && f.Side == rules.OfClient:
			res.Notes = append(res.Notes, f.Rule+": "+r.Plain(f.Message))
		default:
			res.Findings = append(res.Findings, r.finding(f))
		}
	}
	res.Findings = slices.Concat(res.Findings, r.leftovers(), r.egress(), r.strangeTools())
	r.markTurns(res)
	res.Evidence, res.Support = r.checker.Evidence(), r.checker.Support()
}

// ending returns the Miss that ended the script, or nil. If an error kept the script from running, ending sets the
// verdict and reason of res.
func (r *run) ending(res *results.Result, err error) (fatal *Miss) {
	var skipped *Skipped
	var timer *timerError
	switch {
	case err == nil, errors.As(err, &skipped):
		return nil
	case errors.As(err, &fatal):
	case errors.As(err, &timer):
		f := r.Failure(&Line{Line: &script.Line{}}, transcript.Outcome{Cause: timer})
		f.Expected, f.Observed = []string{"an end of the scenario"}, "it was still running"
		fatal = &Miss{Failure: f, Effect: true}
		if r.heardOf() {
			fatal.Verdict = results.Inconclusive
			fatal.why = fmt.Sprintf("the agent was still working when the scenario's timeout of %v ended; "+
				"raise it with --timeout", timer.d)
		}
	default:
		res.Verdict, res.Reason = results.Error, err.Error()
		if missing, ok := errors.AsType[*agents.MissingError](err); ok {
			res.Reason = missing.Error()
		}
		return nil
	}
	r.missed(fatal)
	return fatal
}

// heardOf reports whether the agent sent something less than one step timeout before the editor closed its input.
// Such an agent does not hang; it needs more time.
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

// judgeSkip judges a scenario that proved not to apply, perhaps in the middle of its script. Failures before that
// point count.
func (r *run) judgeSkip(res *results.Result, sk *Skipped) {
	r.state.checks = slices.DeleteFunc(r.state.checks, func(c *checkState) bool { return c.decl != nil && !c.reached })
	r.judgeChecks(res, nil)
	res.Checks = slices.DeleteFunc(res.Checks,
		func(c results.Check) bool { return c.Verdict == results.Pass || c.Verdict == results.Inconclusive })
	if res.Verdict == results.Fail || res.Verdict == results.Error {
		res.Notes = append(res.Notes, "the rest was skipped: "+sk.Reason)
		return
	}
	res.Verdict, res.Reason = results.Skip, sk.Reason
	r.compareSkipped(res)
}

// judgeChecks turns misses into verdicts of checks. fatal is the miss that ended the script, or nil if the script ran
// to its end.
func (r *run) judgeChecks(res *results.Result, fatal *Miss) {
	unsure := r.unsure()
	for _, c := range r.state.checks {
		if c.decl == nil {
			r.judgeUnchecked(res, c, unsure)
			res.FailedInTurn = res.FailedInTurn || r.missedInTurn(c)
			continue
		}
		out := r.judgeCheck(res, c, unsure)
		switch {
		case !c.reached: // the miss that ended the script decides instead
			out.NotReached, out.Verdict, out.Reason = true, results.Inconclusive, notReached(fatal)
			if res.Verdict == results.Error {
				out.Verdict = results.Error
			}
		default:
			res.Verdict = results.Worst(res.Verdict, out.Verdict)
			if res.Reason == "" && out.Verdict == results.Inconclusive {
				res.Reason = out.Reason
			}
		}
		res.Checks = append(res.Checks, out)
	}
	unreached := slices.ContainsFunc(res.Checks, func(c results.Check) bool { return c.NotReached })
	if fatal != nil && res.Verdict == results.Pass && unreached {
		res.Notes = append(res.Notes, "some checks were not reached: the script ended at "+fatal.Failure.Where)
	}
	for _, f := range res.Findings {
		res.Verdict = results.Worst(res.Verdict, f.Class)
		if f.Class == results.Inconclusive && res.Reason == "" {
			res.Reason = f.Message
		}
	}
}

// judgeCheck turns the misses of one check into its verdict.
func (r *run) judgeCheck(res *results.Result, c *checkState, unsure string) results.Check {
	out := results.Check{ID: r.scenario.ID + "#" + c.decl.Slug, Slug: c.decl.Slug, Line: c.decl.Line, Title: c.decl.Title,
		Requirements: c.decl.Requirements, Class: r.classOf(c), Verdict: results.Pass, InTurn: r.missedInTurn(c)}
	for _, m := range c.misses {
		v := r.verdictOf(m, c, res)
		if unsure != "" && v != results.Inconclusive && v != results.Pass {
			v, out.Reason = results.Inconclusive, unsure
		}
		if out.Failure == nil || v > out.Verdict {
			out.Failure = m.Failure
		}
		if v > out.Verdict {
			out.Verdict = v
		}
		if v == results.Inconclusive && out.Reason == "" {
			out.Reason = m.reason()
		}
		if m.Unanswered != "" && v == results.Fail && !slices.Contains(out.Requirements, m.Unanswered) {
			out.Class, out.Requirements = v, slices.Concat(out.Requirements, []string{m.Unanswered})
			m.Failure.Requirement = out.Requirements
		}
	}
	if out.Verdict == results.Pass && res.Verdict == results.Error && c == r.state.current {
		out.Verdict, out.Reason = results.Error, res.Reason // the error that ended the script ended this check
	}
	return out
}

// judgeUnchecked adds the misses of lines before the first check to the verdict of the scenario.
func (r *run) judgeUnchecked(res *results.Result, c *checkState, unsure string) {
	for _, m := range c.misses {
		v := r.verdictOf(m, c, res)
		if v == results.Warn || v == results.Lint {
			v = results.Fail // no check gave the miss a milder class
		}
		if unsure != "" && v == results.Fail {
			// The agent continued after a response that the script did not intend.
			res.Verdict, res.Reason = results.Worst(res.Verdict, results.Inconclusive), unsure
			continue
		}
		res.Verdict = results.Worst(res.Verdict, v)
		if v > cmp.Or(res.FailureClass, results.Pass) {
			res.Failure, res.FailureClass = m.Failure, v
		}
		if v == results.Inconclusive && res.Reason == "" {
			res.Reason = m.reason()
		}
	}
}

// notReached returns the reason for a check that was not reached, with the line that ended the script.
func notReached(fatal *Miss) string {
	if fatal == nil || fatal.Failure.Where == "" {
		return "not reached"
	}
	return "not reached: the script ended at " + fatal.Failure.Where
}

// classOf returns the class of a failed check: the declared class, else that of its requirements, else one that
// depends on its misses.
func (r *run) classOf(c *checkState) results.Verdict {
	switch {
	case c.decl.Class != 0:
		return c.decl.Class
	case len(c.decl.Requirements) > 0:
		return results.ClassOf(r.protocol().Rules, c.decl.Requirements)
	case slices.ContainsFunc(c.misses, func(m *Miss) bool { return !m.Effect && m.Verdict == 0 }):
		return results.Lint
	}
	return results.Fail
}

// verdictOf returns the verdict that a check would have with only this miss.
func (r *run) verdictOf(m *Miss, c *checkState, res *results.Result) results.Verdict {
	if m.Verdict != 0 {
		return m.Verdict
	}
	why := r.excuse(m)
	if m.Failure.Timer != "" {
		why = cmp.Or(why, cutShort(res))
	}
	if why != "" {
		m.Verdict, m.Failure.Reason, m.why = results.Inconclusive, why, why
		return m.Verdict
	}
	if at := max(m.turnEnd, m.turnOpen); at > 0 {
		// The turn had another stop reason than cancelled, or did not end. A rule decides whether the end crossed the
		// cancel or the editor kept the turn open, because the rule knows which requests were provably open.
		for _, f := range res.Findings {
			if f.Rule == r.protocol().EndRule && slices.Contains(f.Entries, at) {
				if f.Class == results.Inconclusive {
					m.Failure.Reason = f.Message
					return results.Inconclusive
				}
				m.Failure.Reason = f.Message
			}
		}
	}
	if c.decl == nil {
		return results.Fail
	}
	tells := func(f results.Finding) bool {
		return f.Class == results.Fail && slices.Contains(f.Entries, m.turnOpen)
	}
	if m.turnOpen > 0 && c.decl.Denies && !c.decl.Claims && slices.ContainsFunc(res.Findings, tells) {
		m.Failure.Reason = "the turn did not end, as a finding reports, so the absence of an entry proves nothing"
		return results.Inconclusive
	}
	if m.Unanswered != "" {
		return max(r.classOf(c), results.ClassOf(r.protocol().Rules, []string{m.Unanswered}))
	}
	if c.decl.Class == 0 && len(c.decl.Requirements) == 0 {
		if m.Effect {
			return results.Fail
		}
		return results.Lint
	}
	return r.classOf(c)
}

// unsure returns why the checks have no verdict: a permission could not be answered as scripted, or the agent requires
// something first, such as a login. It returns "" if there is no such reason.
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

// mostRemarks is the maximum number of remarks in a result.
const mostRemarks = 200

// remarks returns the remarks that the editor and the model server logged, each once.
func (r *run) remarks() []string {
	var out []string
	told := lists.Set(r.state.notes)
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

// statement returns the text of a check's requirements with the first citation. It returns the check's title if it
// has no requirements.
func (r *run) statement(d *language.Check) string {
	return cmp.Or(r.protocol().Rules.Statement(d.Requirements), d.Title)
}
