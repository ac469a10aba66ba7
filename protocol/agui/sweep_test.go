package agui_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/acp-test/acp-test/protocol/agui"
	"github.com/acp-test/acp-test/protocol/agui/grammar"
	"github.com/acp-test/acp-test/protocol/agui/schedules"
	"github.com/acp-test/acp-test/scenarios"
	"github.com/acp-test/acp-test/scenarios/results"
	"github.com/acp-test/acp-test/sweep"
)

// swept are scenarios with two runs, a tool, a front end's tool, an interrupt and reasoning.
const swept = `^(runs/two-turns|tools/read|tools/write|tools/front-end|interrupts/approve|reasoning/before-a-call|thr` +
	`eads/many)$`

// explore sweeps the scenarios that match.
func explore(t *testing.T, match, fault string, most int, patience time.Duration, actions []string,
	liberties ...string) sweep.Outcome {
	t.Helper()
	e := engine(t, fault, liberties...)
	e.Out, e.Golden, e.Seed, e.StepTimeout = t.TempDir(), nil, 1, patience
	re := regexp.MustCompile(match)
	list := slices.DeleteFunc(shipped(t), func(s *scenarios.Scenario) bool { return !re.MatchString(s.ID) })
	out, err := (&sweep.Sweeper{Engine: e, Planner: schedules.V1(), Jobs: 8, Max: most, Actions: actions, Confirm: 2,
		Shrink: 3 * time.Second,
		Repro:  filepath.Join(e.Out, "repro")}).Run(context.Background(), list)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// A sweep finds nothing in the correct agent, whatever liberties it takes.
func TestSweepsOfTheCorrectAgent(t *testing.T) {
	const most = 100
	for i, liberties := range [][]string{nil, {"chunks", "no-outcome", "no-pending-list", "calls-without-parent"},
		{"bare-chunks", "no-version", "no-steps", "no-state", "no-messages", "no-tool-results"},
		{"queues-runs", "whole-texts", "text-around-calls", "empty-messages", "comments"},
		{"reopens-messages", "announced-subagent", "activities", "thinking-events", "results-as-they-come"}} {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			out := explore(t, swept, "", most, 2*time.Second, nil, liberties...)
			for _, f := range out.Findings {
				if f.Action != "" || f.Class == results.Fail {
					t.Errorf("with %v: %s", liberties, sweep.Describe(f))
				}
			}
			if s := out.Run.Sweep; s.Explored < most || s.Inconclusive > s.Explored/10 {
				t.Errorf("with %v: %d schedules were explored, of which %d were inconclusive", liberties, s.Explored,
					s.Inconclusive)
			}
		})
	}
}

// Conversations that are drawn blame nothing of the correct agent, whatever liberties it takes, and
// find a fault.
func TestDrawnConversations(t *testing.T) {
	t.Parallel()
	draw := func(fault string, liberties ...string) sweep.Outcome {
		e := engine(t, fault, liberties...)
		e.Out, e.Golden, e.Seed, e.StepTimeout = t.TempDir(), nil, 1, 5*time.Second
		w := &sweep.Sweeper{Engine: e, Jobs: 4, Max: 25, Confirm: 1, Shrink: time.Second,
			Repro: filepath.Join(e.Out, "repro")}
		g, _, err := w.Calibrate(context.Background(), grammar.V1(), "", "")
		if err != nil {
			t.Fatal(err)
		}
		out, err := w.Explore(context.Background(), g, nil)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	for _, liberties := range [][]string{nil, {"chunks", "no-outcome", "queues-runs", "comments"}} {
		out := draw("", liberties...)
		for _, f := range out.Findings {
			t.Errorf("with %v: %s", liberties, sweep.Describe(f))
		}
		if s := out.Run.Sweep; s.Explored != 25 || s.Skipped+s.Inconclusive > 5 || s.PairsTried < s.Pairs/4 {
			t.Errorf("with %v: %+v", liberties, s)
		}
	}
	if out := draw("snapshot-changes-text"); !slices.ContainsFunc(out.Findings,
		func(f sweep.Finding) bool { return f.Rule == "MESSAGES" }) {
		t.Errorf("MESSAGES is not found: %v", out.Findings)
	}
}

// What a fault does at one point of a run is found, and a scenario shows it again.
func TestSweepsFindFaults(t *testing.T) {
	for _, c := range []struct{ fault, match, action, rule string }{
		{"goes-on-after-hang-up", "runs/two-turns", "hang-up", "lets-go-of-the-model"},
		{"runs-share-a-message", "runs/two-turns", "run in another thread", "TEXT-PAIR"},
		{"rejection-ignored", "interrupts/approve", "reject", "no-effect"},
		{"omission-as-consent", "interrupts/approve", "run instead of an answer", "no-effect"},
		{"failed-run-without-end", "tools/read", "model disconnect", "RUN-FRAME"},
		{"forgets-tool-answers", "tools/front-end$", "answer the calls", "goes-on-with-the-answer"},
		{"busy-after-hang-up", "runs/two-turns", "hang-up", "works-again"},
	} {
		t.Run(c.fault, func(t *testing.T) {
			t.Parallel()
			out := explore(t, c.match, c.fault, 12, time.Second, []string{c.action})
			i := slices.IndexFunc(out.Findings, func(f sweep.Finding) bool {
				return f.Rule == c.rule || slices.Contains(f.With, c.rule)
			})
			if i < 0 {
				t.Fatalf("%s is not found by %s: %+v", c.rule, c.action, out.Findings)
			}
			text, err := os.ReadFile(out.Findings[i].File)
			if err != nil {
				t.Fatal(err)
			}
			again, err := agui.V1().Parse("again", "again.txtar", text)
			if err != nil {
				t.Fatal(err)
			}
			r := engine(t, c.fault).Run(context.Background(), again)
			if len(r.Findings) == 0 && !slices.ContainsFunc(r.Checks,
				func(k results.Check) bool { return k.Verdict != results.Pass }) {
				t.Errorf("what reproduces it passes:\n%s", text)
			}
		})
	}
}
