package main

import (
	"slices"

	acp "github.com/coder/acp-go-sdk"
)

// plan shows the calls of an answer as its steps, where it has several.
func (t *turn) plan(calls []*call) {
	t.steps = nil
	if len(calls) < 2 || !fault("failed-step-in-plan-has-own-status") {
		return
	}
	for _, c := range calls {
		t.steps = append(t.steps, acp.PlanEntry{Content: c.title, Priority: acp.PlanEntryPriorityMedium,
			Status: acp.PlanEntryStatusPending})
	}
	t.tell(acp.UpdatePlan(slices.Clone(t.steps)...))
}

// step tells how far a step is.
func (t *turn) step(n int, status acp.PlanEntryStatus) {
	if n >= len(t.steps) {
		return
	}
	t.steps[n].Status = status
	t.tell(acp.UpdatePlan(slices.Clone(t.steps)...))
}

// stepped tells how a step ended.
func (t *turn) stepped(n int, ok bool) {
	if ok {
		t.step(n, acp.PlanEntryStatusCompleted)
		return
	}
	t.step(n, acp.PlanEntryStatus(acp.ToolCallStatusFailed))
}
