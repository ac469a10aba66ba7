package sweep

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/acp-test/acp-test/scenarios"
	"github.com/acp-test/acp-test/scenarios/results"
)

// Reduction shortens one scenario as far as possible while it still fails for
// the same cause. Engine is required, with a folder for transcripts.
type Reduction struct {
	Engine *scenarios.Engine
	// Jobs is how many scenarios run at once; 0 means the number of CPUs.
	Jobs int
	// Cause is the rule, or the slug of the check, that must still fail. "" means
	// the most severe one that the scenario shows.
	Cause string
	// Confirm is how many times a script runs before its result is trusted; 0
	// means 5.
	Confirm int
	// Budget is the maximum total time, including the first and the last runs; 0
	// means 4 min.
	Budget time.Duration
	// Progress is called with the number of lines that are left and the number of
	// scripts that were tried.
	Progress func(lines, tries int)
}

// Reduced is the shortest scenario found.
type Reduced struct {
	Script Archive
	Cause  string
	// Before and Lines are the numbers of commands before and after shortening.
	Before, Lines int
	// Hits is how many of the Runs of the result showed the cause.
	Hits, Runs int
	// Result is the result of one run of the shortest scenario.
	Result results.Result
}

// NotShownError means that a scenario does not show the cause that it should
// keep.
type NotShownError struct {
	Cause string
	Shown []string // the rules and checks that it shows instead
	// Result is the result of the run that did not show the cause.
	Result results.Result
}

func (e *NotShownError) Error() string {
	what := "nothing fails"
	if len(e.Shown) > 0 {
		what = "these fail: " + strings.Join(e.Shown, ", ")
	}
	if e.Cause != "" {
		return fmt.Sprintf("%s did not appear again: %s", e.Cause, what)
	}
	return "nothing to reduce: " + what
}

// Run reduces a scenario. It returns a *NotShownError if the scenario does not
// show the cause, and another error if it cannot be run.
func (r *Reduction) Run(ctx context.Context, text []byte) (Reduced, error) {
	budget := cmp.Or(max(r.Budget, 0), 4*time.Minute)
	began, user := time.Now(), ctx
	ctx, stop := context.WithTimeoutCause(ctx, budget, errBudget)
	defer stop()
	s := newSweep(ctx, &Sweeper{Engine: r.Engine, Jobs: r.Jobs, Confirm: r.Confirm})
	temp, err := s.engine.MakeTemp()
	if err != nil {
		return Reduced{}, err
	}
	defer temp.Close()
	x := &reducer{sweep: s, ctx: ctx, id: "reduced", keep: map[string]bool{}}
	a := Split(text)
	first, err := r.first(ctx, x, a)
	if err != nil {
		return Reduced{}, err
	}
	out := Reduced{Cause: x.rule, Before: scriptLines(a)}
	x.step = 5 * first.Duration
	if waited := s.waited(first); waited > 0 { // such a run is no measure for the duration of other runs
		x.step = first.Duration - waited
	}
	x.step = min(max(x.step, 1500*time.Millisecond), 10*time.Second)
	x.learns = true
	hits, runs := x.confirm(a, s.times())
	x.learns = false
	if ctx.Err() != nil {
		return out, context.Cause(ctx)
	}
	// A tenth of the remaining budget is for the final runs, whose result is
	// returned.
	if s.Shrink = (budget - time.Since(began)) * 9 / 10; hits == 0 {
		return out, &NotShownError{Cause: x.rule, Result: first}
	}
	x.sure, x.tries = hits == runs, min(max(1, (2*runs+hits-1)/hits-1), 4)
	tries := 0
	x.told = func(left Archive, tried int) {
		if tries += tried; r.Progress != nil {
			r.Progress(scriptLines(left), tries)
		}
	}
	var short Archive
	short, out.Hits, out.Runs = x.shrunk(a, hits, runs, s.times())
	out.Script, out.Lines = short, scriptLines(short)
	e := s.engine
	sc, err := e.Protocol.Parse(x.id, x.id+".txtar", short.Text())
	if err != nil {
		return out, err
	}
	out.Result = first
	for range 2 * s.times() {
		res := e.Run(ctx, sc)
		if ctx.Err() != nil {
			break
		}
		if out.Result = res; x.hit(res) {
			break
		}
	}
	return out, user.Err()
}

// waited returns how long a run waited in vain, which is its number of timeouts
// times the step timeout.
func (s *sweep) waited(res results.Result) (d time.Duration) {
	step := cmp.Or(s.engine.StepTimeout, s.engine.Profile.Timeouts.Step, scenarios.DefaultStepTimeout)
	if res.Failure != nil && res.Failure.Timer != "" {
		d += step
	}
	for _, c := range res.Checks {
		if c.Failure != nil && c.Failure.Timer != "" {
			d += step
		}
	}
	return d
}

// first runs the scenario until it shows the cause to keep, and sets that cause
// in x.
func (r *Reduction) first(ctx context.Context, x *reducer, a Archive) (results.Result, error) {
	e := x.engine
	e.Out = ""
	sc, err := e.Protocol.Parse(x.id, x.id+".txtar", a.Text())
	if err != nil {
		return results.Result{}, err
	}
	var res results.Result
	missing := &NotShownError{Cause: r.Cause}
	for range x.times() {
		if res = e.Run(ctx, sc); ctx.Err() != nil {
			return res, context.Cause(ctx)
		}
		if res.Verdict == results.Error && len(res.Findings) == 0 {
			return res, fmt.Errorf("running the scenario: %s", res.Reason)
		}
		shown := found(res)
		slices.SortStableFunc(shown, func(a, b sign) int { return cmp.Compare(blame(b.class), blame(a.class)) })
		x.only = append(x.only, rulesOf(shown)...)
		missing.Shown, missing.Result = nil, res
		for _, g := range shown {
			if blame(g.class) >= blame(results.Warn) {
				missing.Shown = append(missing.Shown, g.rule)
			}
		}
		i := slices.IndexFunc(shown, func(g sign) bool {
			return g.rule == r.Cause || r.Cause == "" && g.class == results.Fail
		})
		if i >= 0 {
			x.rule, x.late, x.heard = shown[i].rule, shown[i].late, shown[i].heard
			return res, nil
		}
	}
	return res, missing
}
