package main

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/acp-test/acp-test/agents"
	"github.com/acp-test/acp-test/internal/lists"
	"github.com/acp-test/acp-test/internal/printable"
	"github.com/acp-test/acp-test/mistake"
	"github.com/acp-test/acp-test/reports"
	"github.com/acp-test/acp-test/scenarios"
	"github.com/acp-test/acp-test/scenarios/results"
	"github.com/acp-test/acp-test/sweep"
)

// sweeping holds the flags of sweep that other commands lack.
type sweeping struct {
	options
	budget          time.Duration
	points, actions []string
	max, confirm    int
	repro           string
	reuse           bool
}

func sweepCommand(h *host) *cobra.Command {
	var o sweeping
	c := command("sweep", cobra.ArbitraryArgs, o.settled(h, func(c *cobra.Command) error { return h.sweep(c, &o) }))
	o.flags(c)
	f := c.Flags()
	f.DurationVar(&o.budget, "budget", 0,
		"time limit for sweeping, after each scenario has run unchanged, `TIME` (default: none)")
	f.StringSliceVar(&o.points, "points", nil, "only points whose name or situation matches `GLOB` (repeatable)")
	f.StringSliceVar(&o.actions, "actions", nil, "only actions whose name matches `GLOB` (repeatable)")
	f.IntVar(&o.max, "max", 0, "explore at most `N` schedules, each kind of point once before any twice")
	f.IntVar(&o.confirm, "confirm", 20, "run the scenario reported for each finding `N` times")
	f.BoolVar(&o.reuse, "reuse", false,
		"run schedules as sessions of one agent process, if they leave nothing else behind")
	f.StringVar(&o.repro, "repro", "", "write scenarios that reproduce findings to `DIR` (default: repro in --out)")
	hideRunFlags(c, "golden", "keep")
	completeWords(c, "actions", actionNames)
	return c
}

// actionNames returns the names of the actions of all protocols.
func actionNames() (names []string) {
	for _, p := range protocols() {
		if p.planner != nil {
			names = append(names, p.planner().Actions()...)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// runFlags lists the flags of run that a sweep rejects, because it decides these things itself.
var runFlags = []string{"repeat", "until-fail", "fail-fast", "update", "golden-required", "debug"}

// hideRunFlags hides the flags of run that do not apply to a sweep.
func hideRunFlags(c *cobra.Command, more ...string) {
	for _, flag := range append(more, runFlags...) {
		_ = c.Flags().MarkHidden(flag) // it fails only for unknown flags
	}
}

// refuseRunFlags returns an error if the user gave a flag that only run has.
func refuseRunFlags(c *cobra.Command, more ...string) error {
	for _, flag := range append(slices.Clone(runFlags), more...) {
		if c.Flags().Changed(flag) {
			return fmt.Errorf("%s: --%s is a flag of run", c.Name(), flag)
		}
	}
	return nil
}

func (h *host) sweep(c *cobra.Command, o *sweeping) error {
	if err := cmp.Or(refuseRunFlags(c), o.bounds(c)); err != nil {
		return err
	}
	chosen, err := o.selection(h)
	if err != nil {
		return err
	}
	if err := o.knowsActions(chosen.of); err != nil {
		return err
	}
	if o.list {
		return h.listed(chosen.list)
	}
	return h.sweeps(c, o, chosen, "schedules", func(s *sweep.Sweeper, _ *reports.Console) (sweep.Outcome, error) {
		if s.Engine.Linger == nil && s.Engine.Profile.Name != chosen.of.reference {
			long := 2 * time.Second // an unknown agent may respond late
			s.Engine.Linger = &long
		}
		return s.Run(c.Context(), chosen.list)
	})
}

// sweeps creates a sweeper, calls run with it, and writes the results. With --shard it runs only part of the
// schedules. The noun for schedules or conversations in messages is the parameter what.
func (h *host) sweeps(c *cobra.Command, o *sweeping, chosen selection, what string,
	run func(*sweep.Sweeper, *reports.Console) (sweep.Outcome, error)) error {
	shard, from, err := h.shard(o.shard)
	if err != nil {
		return err
	}
	engine, release, err := h.beforeSweep(c, o, chosen)
	if err != nil {
		return err
	}
	defer release()
	console := h.console(&o.options, 0)
	defer console.Close()
	s := h.sweeper(c, o, engine, chosen, console)
	if shard != nil {
		s.Shard = &sweep.Part{Index: shard.Index, Of: shard.Of}
		shard.List = lists.Map(chosen.list, func(sc *scenarios.Scenario) string { return sc.ID })
		shard.Hash = scenarios.Hash(chosen.list)
	}
	out, err := run(s, console)
	console.Close()
	if err != nil {
		return err
	}
	if shard != nil {
		out.Run.Shard = shard
		out.Run.Notes = append(out.Run.Notes,
			fmt.Sprintf("part %d of %d of the %s, by %s", shard.Index, shard.Of, what, from))
	}
	return h.swept(c, o, engine, out)
}

// beforeSweep creates the results folder of a sweep and its engine, and checks that the agent can be started. release
// unlocks the results folder.
func (h *host) beforeSweep(c *cobra.Command, o *sweeping, chosen selection) (engine *scenarios.Engine, release func(),
	err error) {
	o.out = h.freeOut(o.out)
	o.repro = cmp.Or(o.repro, filepath.Join(o.out, "repro"))
	if engine, err = h.engine(c, &o.options, chosen); err != nil {
		return nil, nil, err
	}
	if release, err = h.prepareOut(o.out); err != nil {
		return nil, nil, err
	}
	if err := h.ready(c.Context(), engine); err != nil {
		release()
		return nil, nil, h.unable(engine, &o.options, err)
	}
	engine.Command = h.commandLine()
	return engine, release, nil
}

// bounds returns an error if --max, --budget or --confirm is not positive.
func (o *sweeping) bounds(c *cobra.Command) error {
	set := c.Flags().Changed
	return wrong([]contradiction{
		{set("max") && o.max < 1, fmt.Sprintf("--max %d: at least 1 schedule is expected", o.max)},
		{set("budget") && o.budget <= 0, fmt.Sprintf("--budget %v: a time longer than 0 is expected", o.budget)},
		{o.confirm < 1, fmt.Sprintf("--confirm %d: each finding must run at least once", o.confirm)},
	})
}

// knowsActions returns an error if the protocol has no sweeps, or if a glob of --actions matches no action.
func (o *sweeping) knowsActions(of protocol) error {
	if of.planner == nil {
		return fmt.Errorf("sweep: acp-test cannot sweep %s", of.Name)
	}
	names := of.planner().Actions()
	for _, a := range o.actions {
		if !slices.ContainsFunc(names, func(n string) bool { return sweep.Matches(a, n) }) {
			return fmt.Errorf("--actions: no action matches %q%s", a, mistake.Meant(a, names))
		}
	}
	return nil
}

// sweeper returns a sweeper with the settings of the flags.
func (h *host) sweeper(c *cobra.Command, o *sweeping, engine *scenarios.Engine, chosen selection,
	console *reports.Console) *sweep.Sweeper {
	return &sweep.Sweeper{
		Planner: chosen.of.planner(),
		Engine:  engine, Jobs: int(o.jobs), Budget: o.budget, Points: o.points, Actions: o.actions, Max: o.max,
		Confirm: o.confirm, Repro: o.repro, Reuse: o.reuse,
		Command: func(file string) string { return rerunFile(c, engine, file) },
		Found: func(f sweep.Signature, class results.Verdict) {
			if o.verbose {
				fmt.Fprintf(h.out, "%-5s %s\n", class, f)
			}
		},
		Progress: func(p sweep.Progress) { console.Phase(p.Phase, p.Done, p.Total, p.Now) },
	}
}

// swept writes the results of a sweep, and returns its exit status as an error.
func (h *host) swept(c *cobra.Command, o *sweeping, engine *scenarios.Engine, out sweep.Outcome) error {
	again := rerun(c)
	for i := range out.Run.Results {
		switch r := &out.Run.Results[i]; {
		case r.Rerun != "": // it already has the command that runs its repro
		case r.Artifacts["scenario"] == "":
			r.Rerun = again(r.ID)
		default:
			r.Rerun = rerunFile(c, engine, filepath.Join(o.out, filepath.FromSlash(r.Artifacts["scenario"])))
		}
	}
	rebase := func() []agents.KnownFailure { return out.Rebase(engine) }
	if err := o.writeBaseline(&out.Run, rebase); err != nil {
		return err
	}
	o.sabotage.conclude(&out.Run)
	return cmp.Or(errors.Join(h.writeReports(out.Run, engine.Out, o.reports), h.sweepSummary(o, out)), ended(out.Run.Exit))
}

func (h *host) sweepSummary(o *sweeping, out sweep.Outcome) error {
	run := out.Run
	if !o.quiet {
		if err := sweep.Chart(h.out, run.Sweep); err != nil {
			return err
		}
	}
	for _, f := range out.Findings {
		fmt.Fprintf(h.out, "\n%s\n", sweep.Describe(f))
	}
	if len(out.Findings) > 0 {
		fmt.Fprintln(h.out)
	}
	for _, n := range run.Notes {
		fmt.Fprintln(h.out, n)
	}
	s, findings := run.Sweep, printable.Plural(len(out.Findings), "finding", "findings")
	known := lists.Count(out.Findings, func(f sweep.Finding) bool { return f.Known != "" })
	if known > 0 {
		findings += fmt.Sprintf(", %d known", known)
	}
	if s.Drawn != nil {
		fmt.Fprintln(h.out, s.Drawn)
	}
	if spent := s.Spent(o.budget); spent != "" {
		fmt.Fprintln(h.out, spent)
	}
	_, err := fmt.Fprintf(h.out, "%s; %d of %d pairs of situation and action; %s; %s, seed %d\n",
		s.Counts(), s.PairsTried, s.Pairs, findings, run.Duration.Round(100*time.Millisecond), run.Seed)
	return err
}
