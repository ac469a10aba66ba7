package scenarios

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/acp-test/acp-test/agents"
	"github.com/acp-test/acp-test/golden"
	"github.com/acp-test/acp-test/rules"
	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/wire"
)

// judge fills a result from what happened. err is how the script ended.
func (r *run) judge(ctx context.Context, res *Result, err error, clean bool) {
	res.Frames = r.frames()
	res.NotStarted = r.started != nil
	res.Notes = append(res.Notes, r.notes...)
	res.Notes = append(res.Notes, r.remarks()...)
	if r.engine.Profile.Tools == nil {
		res.Wire, res.Tools = r.model.Learned()
	}
	var m *miss
	// Where a situation did not come about, what was left open for the script
	// to go on from is not the agent's debt.
	brokeOff := errors.As(err, &m) && m.verdict == Inconclusive
	end := rules.End{Clean: clean && !r.killed && !brokeOff, Linger: res.Linger}
	for _, f := range r.checker.Finish(end) {
		if f.Class == rules.Info {
			res.Notes = append(res.Notes, f.Rule+": "+r.plain(f.Message))
			continue
		}
		res.Findings = append(res.Findings, r.finding(f))
	}
	res.Findings = append(res.Findings, r.leftovers()...)
	res.Findings = append(res.Findings, r.egress()...)
	res.Evidence, res.Support = r.checker.Evidence(), r.checker.Support()

	var sk *skipped
	var timer *timerError
	switch {
	case err == nil:
	case errors.As(err, &m):
		r.missed(m)
	case errors.As(err, &sk):
		r.judgeSkip(res, sk)
		r.known(res)
		return
	case errors.As(err, &timer):
		f := r.failure(&line{}, transcript.Outcome{Cause: timer})
		f.Expected, f.Observed = []string{"an end of the scenario"}, "it was still running"
		m = &miss{failure: f, effect: true}
		r.missed(m)
	case ctx.Err() != nil:
		res.Verdict, res.Reason = Error, "interrupted"
	default:
		res.Verdict, res.Reason = Error, err.Error()
		var missing *agents.MissingError
		if errors.As(err, &missing) {
			res.Reason = missing.Error()
		}
	}
	if lacking := r.model.Lacking(); len(lacking) > 0 && r.engine.Profile.Tools == nil && res.Verdict != Error {
		// Whatever became of a call to a tool that does not exist says nothing
		// about what the scenario asks.
		res.Verdict, res.Reason = Skip, "the agent offers its model no tool for "+strings.Join(lacking, ", ")
		r.known(res)
		return
	}
	r.judgeChecks(res, m)
	if res.Verdict != Error && ctx.Err() == nil {
		r.compare(res, clean && err == nil)
	}
	for _, f := range res.Findings {
		if f.Class == Error && res.Reason == "" {
			res.Reason = "the editor of this program broke the protocol: " + f.Message
		}
	}
	r.known(res)
}

// judgeSkip judges a scenario that turned out not to apply, in its middle
// perhaps: what failed before that has failed.
func (r *run) judgeSkip(res *Result, sk *skipped) {
	r.checks = slices.DeleteFunc(r.checks, func(c *checkState) bool { return c.decl != nil && !c.reached })
	r.judgeChecks(res, nil)
	res.Checks = slices.DeleteFunc(res.Checks, func(c Check) bool { return c.Verdict == Pass || c.Verdict == Inconclusive })
	if res.Verdict == Fail || res.Verdict == Error {
		res.Notes = append(res.Notes, "the rest was skipped: "+sk.reason)
		return
	}
	res.Verdict, res.Reason = Skip, sk.reason
}

// judgeChecks turns misses into verdicts of checks. fatal is the miss that
// ended the script, nil if it ran to its end.
func (r *run) judgeChecks(res *Result, fatal *miss) {
	unsure := r.unsure()
	stopped := Verdict("")
	for _, c := range r.checks {
		if c.decl == nil { // lines before the first check
			for _, m := range c.misses {
				v := r.verdictOf(m, c, res)
				if m == fatal {
					stopped = v
				}
				if v == Warn || v == Lint {
					v = Fail // nobody gave it a lesser class
				}
				if unsure != "" && v == Fail {
					// The agent went on from an answer it was not meant to get.
					res.Verdict, res.Reason = Worst(res.Verdict, Inconclusive), unsure
					if m == fatal {
						stopped = Inconclusive
					}
					continue
				}
				res.Verdict = Worst(res.Verdict, v)
				if res.Failure == nil {
					res.Failure = m.failure
				}
				if v == Inconclusive && res.Reason == "" {
					res.Reason = m.failure.Error()
				}
			}
			continue
		}
		out := Check{ID: r.scenario.ID + "#" + c.decl.slug, Slug: c.decl.slug, Line: c.decl.line, Title: c.decl.title,
			Requirements: c.decl.requirements, Class: r.classOf(c), Verdict: Pass}
		for _, m := range c.misses {
			v := r.verdictOf(m, c, res)
			if unsure != "" && v != Inconclusive && v != Pass {
				v, out.Reason = Inconclusive, unsure
			}
			if m == fatal {
				stopped = v
			}
			if out.Failure == nil || severer(v, out.Verdict) {
				out.Failure = m.failure
			}
			if severer(v, out.Verdict) {
				out.Verdict = v
			}
			if v == Inconclusive && out.Reason == "" {
				out.Reason = m.failure.Error()
			}
		}
		if !c.reached {
			out.NotReached = true
			switch {
			case stopped == Inconclusive:
				out.Verdict, out.Reason = Inconclusive, "not reached: an earlier line gave no verdict"
			case res.Verdict == Error:
				out.Verdict, out.Reason = Error, "not reached"
			default:
				out.Verdict, out.Reason = out.Class, "not reached: an earlier line failed"
			}
		}
		res.Checks = append(res.Checks, out)
		res.Verdict = Worst(res.Verdict, out.Verdict)
		if res.Reason == "" && out.Verdict == Inconclusive {
			res.Reason = out.Reason
		}
	}
	for _, f := range res.Findings {
		res.Verdict = Worst(res.Verdict, f.Class)
		if f.Class == Inconclusive && res.Reason == "" {
			res.Reason = f.Message
		}
	}
}

// severer reports whether verdict a is worse than b for a check, where warn
// and lint count.
func severer(a, b Verdict) bool {
	order := []Verdict{Pass, Lint, Warn, Skip, Inconclusive, Fail, Error}
	return slices.Index(order, a) > slices.Index(order, b)
}

// classOf is what a miss of the check counts as, from its requirements.
func (r *run) classOf(c *checkState) Verdict {
	if len(c.decl.requirements) == 0 {
		for _, m := range c.misses {
			if !m.effect && m.verdict == "" {
				return Lint
			}
		}
		return Fail
	}
	class := Lint
	for _, id := range c.decl.requirements {
		q, ok := rules.Lookup(id)
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
func (r *run) verdictOf(m *miss, c *checkState, res *Result) Verdict {
	if m.verdict != "" {
		return m.verdict
	}
	if m.turnEnd > 0 {
		// The turn ended in another way than cancelled. Whether the end may
		// have crossed the cancel is for the rule to say: it knows what was
		// provably open.
		for _, f := range res.Findings {
			if f.Rule == "CANCEL-REASON" && slices.Contains(f.Entries, m.turnEnd) {
				if f.Class == Inconclusive {
					m.failure.Reason = f.Message
					return Inconclusive
				}
				m.failure.Reason = f.Message
			}
		}
	}
	if c.decl == nil {
		return Fail
	}
	if len(c.decl.requirements) == 0 {
		if m.effect {
			return Fail
		}
		return Lint
	}
	return r.classOf(c)
}

// unsure is why checks after a permission that could not be answered as
// scripted give no verdict; "" if none.
func (r *run) unsure() string {
	for e := range r.t.All() {
		if e.Kind == transcript.Remark {
			if v := e.JSON(); on(v.Get("inconclusive")) {
				return v.Get("text").Str()
			}
		}
	}
	return ""
}

// remarks are the sentences the editor and the model server left.
func (r *run) remarks() []string {
	var out []string
	for e := range r.t.All() {
		if e.Kind == transcript.Remark || e.Kind == transcript.ModelUnmatched || e.Kind == transcript.ModelUnused {
			if text := e.JSON().Get("text").Str(); text != "" && !slices.Contains(out, text) && !slices.Contains(r.notes, text) {
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

// finding is a rule's finding in the form of results.
func (r *run) finding(f rules.Finding) Finding {
	out := Finding{Rule: f.Rule, Point: f.Point, Sub: f.Damage, Requirements: f.Requirements, Citation: f.Citation, Session: f.Session,
		Entries: f.Entries, Message: r.plain(f.Message), Detail: r.plain(f.Detail), Count: f.Count}
	switch f.Class {
	case rules.Fail:
		out.Class = Fail
	case rules.Warn:
		out.Class = Warn
	case rules.Lint:
		out.Class = Lint
	case rules.Inconclusive:
		out.Class = Inconclusive
	}
	if f.Side == rules.OfClient {
		out.Class = Error
		if r.unlawful || slices.ContainsFunc(f.Entries, func(seq int) bool { return r.lawless[seq] }) {
			out.Class = Lint
			out.Message += " (the scenario does this on purpose)"
		}
	}
	if len(f.Entries) > 0 {
		out.Tail = r.around(f.Entries)
	}
	return out
}

func (r *run) plain(s string) string {
	return strings.NewReplacer(r.box.work, "$WORK", r.box.home, "$HOME", r.box.root, "$RUN").Replace(s)
}

// around is the entries a finding names and the frames next to the last one.
func (r *run) around(seqs []int) []string {
	last := slices.Max(seqs)
	want := map[int]bool{}
	for _, s := range seqs {
		want[s] = true
	}
	var lines []string
	for e := range r.t.Between(1, last+1) {
		if want[e.Seq] || e.Frame() && e.Seq >= last-2 {
			mark := "  "
			if want[e.Seq] {
				mark = "> "
			}
			lines = append(lines, r.short(fmt.Sprintf("%s#%d %s", mark, e.Seq, golden.Line(e))))
		}
	}
	if len(lines) > 8 {
		lines = append(lines[:2], append([]string{"  …"}, lines[len(lines)-5:]...)...)
	}
	return lines
}

// leftovers are findings about the end of the agent, which no frame shows.
func (r *run) leftovers() []Finding {
	var out []Finding
	for _, p := range r.survivors {
		out = append(out, Finding{Rule: "EXIT-LEFTOVER", Class: Warn, Requirements: []string{"STDIO-007"},
			Message: fmt.Sprintf("A process outlived the agent and was killed: %s", r.plain(p.Command)), Detail: fmt.Sprintf("pid %d, parent %d", p.PID, p.Parent)})
	}
	if steps := r.shutdown.Steps; slices.Contains(steps, "SIGTERM") && !r.killed {
		out = append(out, Finding{Rule: "EXIT-EOF", Class: Lint, Requirements: []string{"STDIO-007"},
			Message: fmt.Sprintf("The agent did not end when its input was closed; it took %s.", strings.Join(steps[1:], ", then "))})
	}
	return out
}

// compare compares the run with its golden.
func (r *run) compare(res *Result, whole bool) {
	s, e := r.scenario, r.engine
	n := e.Profile.Normalize
	o := golden.Options{Exact: s.decl.golden == "exact", Work: r.box.work, Home: r.box.home, Temp: r.box.temp, Unordered: n.Unordered}
	o.Replace = r.places()
	for _, x := range n.Replace {
		o.Replace = append(o.Replace, golden.Replacement{Pattern: x.Pattern, With: x.With})
	}
	r.rendered = golden.Render(r.t.Between(1, r.settled), o)
	if s.decl.golden == "off" || e.Golden == nil {
		res.Golden = &Golden{State: "off"}
		return
	}
	if !whole || res.Verdict == Inconclusive || res.Verdict == Skip {
		return // half a conversation differs from a whole one
	}
	want, source, err := e.Golden.Read(e.Profile.Name, s.ID)
	g := &Golden{Path: source}
	res.Golden = g
	switch {
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		res.Verdict, res.Reason = Error, err.Error()
	case err != nil && r.isKnown("golden"):
		g.State = "off" // there is none that would be right
	case err != nil:
		g.State = "new"
		if e.Update && !r.unlisted(res) {
			r.update(res, g)
		} else if e.GoldenRequired {
			res.Verdict = Worst(res.Verdict, Fail)
			g.Diff = "there is no golden; run with --update to write it"
		}
	case want == r.rendered:
		g.State = "match"
	default:
		g.State = "differs"
		g.Diff = golden.Diff(want, r.rendered)
		if e.Update && !r.unlisted(res) && !r.isKnown("golden") {
			r.update(res, g)
		} else {
			res.Verdict = Worst(res.Verdict, Fail)
		}
	}
}

func (r *run) update(res *Result, g *Golden) {
	if err := r.engine.Golden.Write(r.engine.Profile.Name, r.scenario.ID, r.rendered); err != nil {
		res.Verdict, res.Reason = Error, err.Error()
		return
	}
	g.State = "updated"
}

// unlisted reports whether there is a failure that no list of known failures
// has: then a golden must not be blessed.
func (r *run) unlisted(res *Result) bool {
	for _, c := range res.Checks {
		if c.Verdict == Fail && !r.isKnown(c.ID, c.Slug) {
			return true
		}
	}
	for _, f := range res.Findings {
		if f.Class == Fail && !r.isKnown(f.Rule) {
			return true
		}
	}
	return res.Failure != nil || res.Verdict == Error
}

func (r *run) isKnown(ids ...string) bool {
	return covered(append(slices.Clone(r.engine.Known), r.engine.Profile.KnownFailures...), r.scenario.ID, ids...)
}

// covered reports whether a list of known failures has one of these checks or
// rules of a scenario.
func covered(list []agents.KnownFailure, scenario string, ids ...string) bool {
	for _, k := range list {
		for _, id := range ids {
			if k.Covers(scenario, id) {
				return true
			}
		}
	}
	return false
}

// known marks the parts that are known to fail, and the whole if nothing else
// does.
func (r *run) known(res *Result) { res.mark(r.isKnown) }

func (r *Result) mark(isKnown func(ids ...string) bool) {
	all := true
	for i, c := range r.Checks {
		if c.Verdict == Pass || c.Verdict == Skip {
			continue
		}
		r.Checks[i].Known = isKnown(c.ID, c.Slug)
		if (c.Verdict == Fail || c.Verdict == Inconclusive) && !r.Checks[i].Known {
			all = false
		}
	}
	for i, f := range r.Findings {
		r.Findings[i].Known = isKnown(f.Rule)
		if (f.Class == Fail || f.Class == Inconclusive) && !r.Findings[i].Known {
			all = false
		}
	}
	if r.Golden.failed() {
		r.Golden.Known = isKnown("golden")
		all = all && r.Golden.Known
	}
	if r.Failure != nil || r.Verdict == Error {
		all = false
	}
	r.Known = all && (r.Verdict == Fail || r.Verdict == Inconclusive)
}

// failed reports whether the comparison counts: the text differs, or there was
// none and one is required, which the difference then says.
func (g *Golden) failed() bool {
	return g != nil && (g.State == "differs" || g.State == "new" && g.Diff != "")
}

// statements says what a check's requirements ask, with the first citation.
func statements(d *checkDecl) string {
	for _, id := range d.requirements {
		if q, ok := rules.Lookup(id); ok {
			return q.Statement
		}
	}
	return d.title
}

func parseJSON(b []byte) (wire.Value, error) { return wire.Parse(b) }
