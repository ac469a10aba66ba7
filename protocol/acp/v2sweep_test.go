package acp_test

import (
	"context"
	"maps"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/acp-test/acp-test/protocol/acp/grammar"
	"github.com/acp-test/acp-test/protocol/acp/schedules"
	"github.com/acp-test/acp-test/scenarios"
	"github.com/acp-test/acp-test/sweep"
)

// swept are scenarios with a permission, a command, background work, two turns and a child.
var swept = []string{"turns/two", "permission/reject-once", "items/terminal-output", "background/through-a-turn",
	"load/fresh-process",
	"subagents/permission"}

// A sweep acts in turns of version 2, also by what it alone has: it finds nothing in the
// correct agent, and in others what they do wrong.
func TestSweepsOfVersion2(t *testing.T) {
	t.Parallel()
	explore := func(t *testing.T, fault string, most int, actions ...string) sweep.Outcome {
		e := engine(t, fault)
		e.Out, e.Golden, e.Seed = t.TempDir(), nil, 1
		list := slices.DeleteFunc(shipped(t, swept...),
			func(s *scenarios.Scenario) bool { return !slices.Contains(swept, s.ID) })
		out, err := (&sweep.Sweeper{Engine: e, Planner: schedules.V2(), Jobs: 4, Max: most, Actions: actions,
			Confirm: 1}).Run(context.Background(), list)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	t.Run("correct", func(t *testing.T) {
		t.Parallel()
		out := explore(t, "", 30)
		for _, f := range out.Findings {
			t.Errorf("the correct agent: %s", sweep.Describe(f))
		}
		if out.Run.Sweep.Explored < 30 {
			t.Errorf("%d schedules were explored", out.Run.Sweep.Explored)
		}
	})
	for fault, c := range map[string]struct{ rule, action string }{
		"cancel-is-an-end":          {"ends-as-cancelled", "cancel"},
		"resume-without-state":      {"V2-RESUME", "load"},
		"queue-as-internal-error":   {"V2-CANCEL", "second prompt + cancel"},
		"retry-is-new":              {"one-prompt", "lose the answer*"},
		"call-cancel-ends-the-turn": {"CANCEL-CAUSE", "cancel tool call"},
		"child-cancel-stops-parent": {"CANCEL-CAUSE", "cancel subagent"},
	} {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			found := explore(t, fault, 8, c.action).Findings
			if !slices.ContainsFunc(found, func(f sweep.Finding) bool { return f.Rule == c.rule }) {
				t.Errorf("%s is not found by %s: %v", c.rule, c.action, found)
			}
		})
	}
}

// Conversations that are drawn blame nothing of the correct agent, whatever liberties it takes, and
// find a fault.
func TestDrawnConversationsOfVersion2(t *testing.T) {
	t.Parallel()
	draw := func(fault string, liberties ...string) sweep.Outcome {
		e := engine(t, fault, liberties...)
		e.Profile.Tools = maps.Clone(e.Profile.Tools)
		delete(e.Profile.Tools, "mcp") // its server would be this program
		e.Out, e.Golden, e.Seed, e.StepTimeout = t.TempDir(), nil, 1, 5*time.Second
		w := &sweep.Sweeper{Engine: e, Jobs: 4, Max: 12, Confirm: 1, Shrink: time.Second,
			Repro: filepath.Join(e.Out, "repro")}
		g, _, err := w.Calibrate(context.Background(), grammar.V2(), "", "")
		if err != nil {
			t.Fatal(err)
		}
		out, err := w.Explore(context.Background(), g, nil)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	for _, liberties := range [][]string{nil,
		{"inserts-late", "echo-in-chunks", "idle-again", "message-as-a-whole-first"}} {
		out := draw("", liberties...)
		for _, f := range out.Findings {
			t.Errorf("with %v: %s", liberties, sweep.Describe(f))
		}
		if s := out.Run.Sweep; s.Explored != 12 || s.Skipped+s.Inconclusive > 3 || s.PairsTried < s.Pairs/4 {
			t.Errorf("with %v: %+v", liberties, s)
		}
	}
	if out := draw("value-twice"); !slices.ContainsFunc(out.Findings,
		func(f sweep.Finding) bool { return f.Rule == "CONFIG-COMPLETE" }) {
		t.Errorf("CONFIG-COMPLETE is not found: %v", out.Findings)
	}
}
