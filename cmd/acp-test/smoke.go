package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/acp-test/acp-test/reports"
	"github.com/acp-test/acp-test/scenarios"
	"github.com/acp-test/acp-test/scenarios/results"
	"github.com/acp-test/acp-test/scenarios/verdict"
	"github.com/acp-test/acp-test/sweep"
)

// A run of all suites ends with conversations that fit the agent. Where none can be drawn, smoked
// are the scenarios of the sweep that ends it instead: a turn of text,
// turns with a tool and a permission, and a load. What is done at their points is what
// users do most.
var (
	smoked  = []string{"prompt-turn/two-turns", "tool-calls/read", "permission/allow-once-edit", "load/fresh-process"}
	smoking = []string{"cancel", "close"}
)

// smokeSchedules is how many conversations or schedules it has unless --smoke says otherwise.
const smokeSchedules = 40

// smokeFlags are the flags of commands that end with a short sweep.
func (o *options) smokeFlags(c *cobra.Command) {
	c.Flags().IntVar(&o.smoke, "smoke", smokeSchedules,
		"end with `N` conversations as explore draws them, or a sweep of as many schedules; "+
			"without this, a run of all suites of another agent than the reference does")
	c.Flags().BoolVar(&o.noSmoke, "no-smoke", false, "end it without one")
}

// smokes reports whether a run ends with a sweep: one of all suites of another agent than
// the reference, or any that is told so, where scenarios run once.
func (o *options) smokes(c *cobra.Command, engine *scenarios.Engine, chosen selection) bool {
	wanted := c.Flags().Changed("smoke") || chosen.shipped && chosen.whole && engine.Profile.Name != chosen.of.reference
	return wanted && o.smoke > 0 && !o.noSmoke && o.repeat <= 1 && o.shard == "" && !o.perturb && !o.update && !o.debug &&
		engine.Profile.URL == "" && chosen.of.planner != nil
}

// smokeSweep draws conversations, or sweeps a few scenarios, at the end of a run and adds what that
// finds.
func (h *host) smokeSweep(c *cobra.Command, o *options, engine *scenarios.Engine, chosen selection,
	console *reports.Console, run *results.Run) error {
	swept := slices.DeleteFunc(slices.Clone(chosen.list), func(s *scenarios.Scenario) bool {
		return !slices.Contains(smoked, s.ID)
	})
	from, what := chosen.of.generator, "schedules"
	if from == nil && len(swept) == 0 {
		return nil
	}
	s := &sweep.Sweeper{
		Planner: chosen.of.planner, Engine: engine, Jobs: int(o.jobs), Actions: smoking, Max: o.smoke, Confirm: smokeConfirm,
		Repro:    filepath.Join(o.out, "repro"),
		Command:  func(file string) string { return rerunFile(c, engine, file) },
		Progress: func(p sweep.Progress) { console.Phase("short sweep: "+p.Phase, p.Done, p.Total, p.Now) },
	}
	began := time.Now()
	var out sweep.Outcome
	var err error
	if from == nil {
		out, err = s.Run(c.Context(), swept)
	} else if g, _, unable := h.learn(c.Context(), s, from); unable != nil {
		run.Notes = append(run.Notes, "no smoke sweep: "+unable.Error())
		return nil
	} else {
		what = "conversations"
		out, err = s.Explore(c.Context(), g, nil)
	}
	if err != nil {
		return err
	}
	more := slices.DeleteFunc(out.Run.Results, func(r results.Result) bool {
		return !strings.HasPrefix(r.ID, "sweep/") && !strings.HasPrefix(r.ID, "explore/")
	})
	verdict.Add(run, more...)
	run.Duration = time.Since(run.Started)
	run.Notes = append(run.Notes, fmt.Sprintf("smoke sweep: %d %s in %s, %d inconclusive; %d findings; "+
		"acp-test %s explores more", out.Run.Sweep.Explored, what, time.Since(began).Round(100*time.Millisecond),
		out.Run.Sweep.Inconclusive, len(more), map[bool]string{true: "sweep", false: "explore"}[from == nil]))
	for _, f := range out.Findings {
		if f.Action != "" {
			run.Notes = append(run.Notes, sweep.Describe(f))
		}
	}
	return nil
}

// smokeConfirm is how often a finding of it is run.
const smokeConfirm = 5
