package scenarios

import (
	"errors"
	"io/fs"
	"maps"
	"regexp"
	"slices"

	"github.com/acp-test/acp-test/agents"
	"github.com/acp-test/acp-test/golden"
	"github.com/acp-test/acp-test/scenarios/results"
)

// GoldenOptions returns the options of a profile for the canonical text of its agent's conversations.
func GoldenOptions(p *agents.Profile) golden.Options {
	n := p.Normalize
	o := golden.Options{Unordered: n.Unordered, Omit: n.Omit, Values: n.Values, Without: n.Without,
		MergeCalls: n.MergeCalls}
	for _, x := range n.Replace {
		o.Replace = append(o.Replace, golden.Replacement{Pattern: x.Pattern, With: x.With})
	}
	return o
}

// render sets r.rendered to the conversation in the format of goldens.
func (r *run) render() {
	o := GoldenOptions(r.engine.Profile)
	o.Exact, o.Work, o.Home, o.Temp = r.scenario.Golden == "exact", r.box.Work, r.box.Home, r.box.Temp
	o.Root = r.box.Root
	o.Replace = append(r.masks(), o.Replace...)
	r.rendered = r.engine.clean(r.protocol().Canonical.Render(r.t.Between(1, r.state.settled), o))
}

// compare sets res.Golden to the difference between the run and its golden. It renders the conversation in any case.
// If whole is false, the conversation is incomplete and there is no comparison.
func (r *run) compare(res *results.Result, whole bool) {
	s, e := r.scenario, r.engine
	r.render()
	if s.Golden == "off" || e.Golden == nil {
		res.Golden = &results.Golden{State: "off"}
		return
	}
	if !whole || res.Verdict == results.Inconclusive || res.Verdict == results.Skip {
		return // an incomplete conversation always differs
	}
	want, source, err := e.Golden.Read(e.goldens(), s.ID)
	want = e.clean(want) // the golden may be older than the variable that reveals a secret
	g := &results.Golden{Path: source}
	res.Golden = g
	switch {
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		res.Verdict, res.Reason = results.Error, err.Error()
	case err != nil && r.isKnown("golden"):
		g.State = "off" // no golden would be correct
	case err != nil:
		g.State = "new"
		if e.Update && !r.unlisted(res) {
			r.update(res, g)
		} else if e.GoldenRequired {
			res.Verdict = results.Worst(res.Verdict, results.Fail)
			g.Diff = "this scenario has no golden yet; --update writes it"
		}
	case want == r.rendered:
		g.State = "match"
	default:
		g.State = "differs"
		g.Diff = golden.Diff(want, r.rendered)
		if e.Update && !r.unlisted(res) && !r.isKnown("golden") {
			r.update(res, g)
		} else {
			res.Verdict = results.Worst(res.Verdict, results.Fail)
		}
	}
}

// compareSkipped fails a skipped scenario that has a golden. The golden shows that the scenario once applied. So the
// agent's behavior has changed, even if the specification allows it. With --update, the golden is removed instead.
func (r *run) compareSkipped(res *results.Result) {
	s, e := r.scenario, r.engine
	if s.Golden == "off" || e.Golden == nil {
		return
	}
	want, source, err := e.Golden.Read(e.goldens(), s.ID)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	want = e.clean(want)
	r.render()
	differs := err == nil && want != r.rendered
	if differs && e.Update {
		err = e.Golden.Remove(e.goldens(), s.ID)
	}
	switch {
	case err != nil:
		res.Verdict, res.Reason = results.Error, err.Error()
	case differs && e.Update:
		res.Golden = &results.Golden{Path: source, State: "removed"}
	case differs:
		res.Golden = &results.Golden{Path: source, State: "differs", Diff: golden.Diff(want, r.rendered), Skipped: res.Reason}
		res.Verdict = results.Fail
	}
}

func (r *run) update(res *results.Result, g *results.Golden) {
	if err := r.engine.Golden.Write(r.engine.goldens(), r.scenario.ID, r.rendered); err != nil {
		res.Verdict, res.Reason = results.Error, err.Error()
		return
	}
	g.State = "updated"
}

// masks returns replacements for values that differ from machine to machine. Longer values come first, because one
// value may begin with another.
func (r *run) masks() []golden.Replacement {
	names := r.client.Masks()
	if names == nil {
		names = map[string]string{}
	}
	if r.engine.Self != "" {
		names[r.engine.Self] = "$SELF"
	}
	var out []golden.Replacement
	for _, place := range slices.SortedFunc(maps.Keys(names), func(a, b string) int { return len(b) - len(a) }) {
		out = append(out, golden.Replacement{Pattern: regexp.MustCompile(regexp.QuoteMeta(place) + `\b`), With: "$" +
			names[place]})
	}
	return out
}
