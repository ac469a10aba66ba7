package scenarios

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/acp-test/acp-test/internal/lists"
	"github.com/acp-test/acp-test/scenarios/results"
)

// traceLeaks says in the findings of scenarios that failed only after others which of
// those it takes, if it can be brought about again.
func (e *Engine) traceLeaks(ctx context.Context, list []*Scenario, outcomes []results.Result) {
	byID := map[string]*Scenario{}
	order := map[string]int{}
	for i, s := range list {
		byID[s.ID], order[s.ID] = s, i
	}
	traced := 0
	within, stop := context.WithTimeout(ctx, leakTime)
	defer stop()
	for i := range outcomes {
		r := &outcomes[i]
		at := slices.IndexFunc(r.Findings, func(f results.Finding) bool { return f.Rule == results.AfterOthersRule })
		if at < 0 || traced == leaksTraced || ctx.Err() != nil {
			continue
		}
		traced++
		before := lists.Map(r.Shared.After, func(id string) *Scenario { return byID[id] })
		f := &r.Findings[at]
		fewest, ok := e.fewestBefore(within, byID[r.ID], before)
		switch {
		case ok:
		case within.Err() != nil:
			f.Detail = fmt.Sprintf("which of them matter was not found within %v", leakTime)
			continue
		default:
			f.Detail = "when the same scenarios ran in a process once more, it passed"
			continue
		}
		ids := idsOf(fewest)
		f.Message = fmt.Sprintf("It fails in a process that ran %s before, and passes alone: %s", strings.Join(ids, ", "),
			r.Shared.Reason)
		if ids = append(ids, r.ID); slices.IsSortedFunc(ids, func(a, b string) int { return order[a] - order[b] }) {
			f.Detail = fmt.Sprintf("to see it again: acp-test run --agent %s --fresh=false -j 1 --run '^(%s)$'", e.Profile.Name,
				strings.Join(ids, "|"))
		}
	}
}

// fewestBefore returns those of the scenarios before s in one process without which s
// does not fail. ok is false if it does not fail after all of them.
func (e *Engine) fewestBefore(ctx context.Context, s *Scenario, before []*Scenario) (fewest []*Scenario, ok bool) {
	tries := 0
	fails := func(before []*Scenario) bool {
		tries++
		own := *e
		own.Out, own.Folder, own.Golden, own.Step = "", nil, nil, nil
		p := newPool(&own, 1)
		defer p.close()
		var last results.Result
		for _, b := range append(slices.Clone(before), s) {
			with := own
			with.share = &sharer{pool: p}
			last = with.attempt(ctx, b)
		}
		return ctx.Err() == nil && last.Broken() && len(before) > 0
	}
	if !fails(before) {
		return nil, false
	}
	for n := 1; n < len(before) && tries < leakTries; n *= 2 {
		if tail := before[len(before)-n:]; fails(tail) {
			before = tail
			break
		}
	}
	for i := 0; i < len(before) && len(before) > 1 && tries < leakTries; {
		if without := slices.Delete(slices.Clone(before), i, i+1); fails(without) {
			before = without
		} else {
			i++
		}
	}
	return before, true
}

func scenariosRun(n int) string {
	if n == 1 {
		return "1 scenario"
	}
	return fmt.Sprintf("%d scenarios", n)
}
