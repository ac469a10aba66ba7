package main

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/acp-test/acp-test/agents"
	"github.com/acp-test/acp-test/internal/printable"
	"github.com/acp-test/acp-test/reports"
	"github.com/acp-test/acp-test/scenarios"
	"github.com/acp-test/acp-test/scenarios/results"
	"github.com/acp-test/acp-test/scenarios/verdict"
	"github.com/acp-test/acp-test/sweep"
)

// exploring holds the flags of explore that other commands lack.
type exploring struct {
	sweeping
	sessions     int
	again, write string
	twice        bool
}

func exploreCommand(h *host) *cobra.Command {
	var o exploring
	c := command("explore", noPaths, func(c *cobra.Command, args []string) error {
		if err := o.settle(h, c, args); err != nil {
			return err
		}
		return h.explore(c, &o)
	})
	o.flags(c)
	f := c.Flags()
	f.IntVar(&o.sessions, "sessions", 0, "run `N` conversations (default 300; no limit with --budget)")
	f.DurationVar(&o.budget, "budget", 0, "time limit for exploring and for reproducing findings, `TIME`")
	f.StringVar(&o.again, "again", "",
		"run only the conversation with the `KEY` that a finding shows, --sessions times (default 1)")
	f.BoolVar(&o.twice, "twice", false, "run each conversation twice and report where the agent acts differently")
	f.StringVar(&o.write, "write", "",
		"write the shortest conversation of each covered pair to `DIR`, unless a shipped scenario has its steps")
	f.IntVar(&o.confirm, "confirm", 20, "run the scenario reported for each finding `N` times")
	f.StringVar(&o.repro, "repro", "repro", "write scenarios that reproduce findings to the folder `DIR`")
	hideRunFlags(c, "golden", "keep", "suite", "run", "tag", "list", "durations", "watch")
	return c
}

// noPaths returns an error if the command line names scenarios, because explore draws its conversations.
func noPaths(c *cobra.Command, args []string) error {
	if paths, _ := atDash(c, args); len(paths) > 0 {
		return fmt.Errorf("explore: unexpected argument %q: explore draws its own conversations; acp-test sweep takes "+
			"scenarios, and the agent's command belongs after --", paths[0])
	}
	return nil
}

func (h *host) explore(c *cobra.Command, o *exploring) error {
	if err := refuseRunFlags(c, "suite", "run", "tag", "list", "watch"); err != nil {
		return err
	}
	if c.Flags().Changed("sessions") && o.sessions < 1 {
		return fmt.Errorf("--sessions %d: at least 1 conversation is expected", o.sessions)
	}
	if err := o.bounds(c); err != nil {
		return err
	}
	of, err := o.speaks(h)
	if err != nil {
		return err
	}
	again, err := o.bound()
	if err != nil {
		return err
	}
	learnAndDraw := func(s *sweep.Sweeper, console *reports.Console) (out sweep.Outcome, err error) {
		g, learned, err := h.learn(c.Context(), s, of.generator)
		if err != nil {
			return out, fmt.Errorf("explore: %w", err)
		}
		if !o.quiet {
			console.Say(learned + "\n")
		}
		s.Max, s.Twice, s.Write = o.sessions, o.twice, o.write
		return s.Explore(c.Context(), g, again)
	}
	return h.sweeps(c, &o.sweeping, selection{of: of}, "conversations", learnAndDraw)
}

// learn returns a grammar of the agent's behavior, and a paragraph about it for the user. Both come from the saved
// calibration of this version of the agent. If there is no such calibration, learn calibrates the agent.
func (h *host) learn(ctx context.Context, s *sweep.Sweeper, from *sweep.Generator) (g sweep.Grammar, said string,
	err error) {
	began := time.Now()
	if s.Budget > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeoutCause(ctx, s.Learning(began),
			fmt.Errorf("timeout: try acp-test run --run prompt-turn/text, or raise --budget %v", s.Budget))
		defer stop()
	}
	keep := h.calibration(from, s.Engine.Profile, overrides(s.Engine))
	_, version, _ := s.Engine.Greeting(ctx)
	g, learned, old, ok := sweep.Recall(from, keep)
	how := "Read from " + keep + "; delete this folder to learn the agent again"
	if !ok || old != version {
		if g, learned, err = s.Calibrate(ctx, from, keep, version); err != nil {
			return nil, "", fmt.Errorf("acp-test could not learn how the agent behaves: %w", err)
		}
		how = fmt.Sprintf("Learned in %v", time.Since(began).Round(100*time.Millisecond))
	}
	return g, fmt.Sprintf("%s\n%s.\n", printable.Wrap(learned, 100), how), nil
}

// overrides returns the agent's arguments and variables from the command line. For a sabotaged agent it returns the
// whole command, so that its calibration is stored separately from that of the normal agent.
func overrides(e *scenarios.Engine) []string {
	if e.Through != nil {
		return []string{e.Command}
	}
	return slices.Concat(e.ExtraArgs, assignments(e.Env))
}

// fit sets an engine's AskMode from a saved calibration. AskMode is the mode in which the agent asks for permission.
// Without a calibration, the engine is unchanged.
func (h *host) fit(e *scenarios.Engine, from *sweep.Generator) {
	if e.Profile.URL == "" {
		if g, _, _, ok := sweep.Recall(from, h.calibration(from, e.Profile, overrides(e))); ok {
			e.AskMode = g.AskMode()
		}
	}
}

// calibration returns the folder of an agent's calibrations, or "" if there is no cache folder.
func (h *host) calibration(from *sweep.Generator, p *agents.Profile, args []string) string {
	caches := agents.CacheDir(h.env)
	if caches == "" {
		return ""
	}
	key := sweep.CalibrationKey(from, p, append([]string{h.self}, args...))
	return filepath.Join(caches, "acp-test", "calibration", key)
}

// bound sets how many conversations run; the default without a budget is 300. With --again it returns the key of the
// conversation to repeat, else nil.
func (o *exploring) bound() (*sweep.Key, error) {
	if o.sessions < 0 {
		return nil, fmt.Errorf("--sessions %d: at least 1 conversation must run", o.sessions)
	}
	if o.again == "" {
		if o.sessions == 0 && o.budget == 0 {
			o.sessions = 300
		}
		return nil, nil
	}
	o.sessions = max(o.sessions, 1)
	k, err := sweep.ParseKey(o.again)
	if err != nil {
		return nil, fmt.Errorf("--again: %w", err)
	}
	return &k, nil
}

// smokeSchedules is the default of --smoke: the number of drawn conversations at the end of a run of all suites.
const smokeSchedules = 40

// smokeFlags adds the flags of commands that end with a short sweep.
func (o *options) smokeFlags(c *cobra.Command) {
	c.Flags().IntVar(&o.smoke, "smoke", smokeSchedules,
		"end the run with `N` conversations that explore draws; "+
			"without this flag only a run of all suites does so, except with the reference agent")
	c.Flags().BoolVar(&o.noSmoke, "no-smoke", false, "end the run without such conversations")
}

// smokes reports whether a run ends with a short sweep. That is the case with --smoke, or if the run plays all suites
// with an agent other than the reference agent. Flags such as --repeat, --shard and --no-smoke rule it out.
func (o *options) smokes(c *cobra.Command, engine *scenarios.Engine, chosen selection) bool {
	wanted := c.Flags().Changed("smoke") || chosen.shipped && chosen.whole && engine.Profile.Name != chosen.of.reference
	return wanted && o.smoke > 0 && !o.noSmoke && o.within == 0 &&
		o.repeat <= 1 && o.shard == "" && !o.perturb && !o.update && !o.debug &&
		engine.Profile.URL == "" && chosen.of.planner != nil
}

// drawable reports whether the run is complete, its agent started, and the agent reached a model. Otherwise drawn
// conversations would show nothing.
func drawable(run *results.Run) bool {
	return !run.Interrupted && run.NoModel == "" && slices.ContainsFunc(run.Results, func(r results.Result) bool {
		return !r.NotStarted && r.Verdict != results.Skip
	})
}

// smokeSweep plays drawn conversations after a run, and adds their findings to the run's results.
func (h *host) smokeSweep(c *cobra.Command, o *options, engine *scenarios.Engine, chosen selection,
	console *reports.Console, run *results.Run) error {
	s := &sweep.Sweeper{
		Planner: chosen.of.planner(), Engine: engine, Jobs: int(o.jobs), Max: o.smoke,
		Confirm: smokeConfirm, Repro: filepath.Join(o.out, "repro"),
		Command:  func(file string) string { return rerunFile(c, engine, file) },
		Progress: func(p sweep.Progress) { console.Phase("short sweep: "+p.Phase, p.Done, p.Total, p.Now) },
	}
	began := time.Now()
	g, _, err := h.learn(c.Context(), s, chosen.of.generator)
	if err != nil {
		run.Notes = append(run.Notes, "no smoke sweep: "+err.Error())
		return nil
	}
	out, err := s.Explore(c.Context(), g, nil)
	if err != nil {
		return err
	}
	more := slices.DeleteFunc(out.Run.Results, func(r results.Result) bool {
		return !strings.HasPrefix(r.ID, "sweep/") && !strings.HasPrefix(r.ID, "explore/")
	})
	verdict.Add(run, more...)
	run.Duration = time.Since(run.Started)
	run.Notes = append(run.Notes, fmt.Sprintf("smoke sweep: %s in %s, %d inconclusive; %s; "+
		"acp-test explore explores more", printable.Plural(out.Run.Sweep.Explored, "conversation", "conversations"),
		time.Since(began).Round(100*time.Millisecond), out.Run.Sweep.Inconclusive,
		printable.Plural(len(more), "finding", "findings")))
	for _, f := range out.Findings {
		if f.Action != "" {
			run.Notes = append(run.Notes, sweep.Describe(f))
		}
	}
	return nil
}

// smokeConfirm is how many times a smoke sweep reruns each finding.
const smokeConfirm = 10
