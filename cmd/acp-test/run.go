package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/acp-test/acp-test/agents"
	"github.com/acp-test/acp-test/golden"
	"github.com/acp-test/acp-test/internal/evidence"
	"github.com/acp-test/acp-test/internal/isolate"
	"github.com/acp-test/acp-test/internal/secret"
	"github.com/acp-test/acp-test/refagent/liberties"
	"github.com/acp-test/acp-test/replay"
	"github.com/acp-test/acp-test/reports"
	"github.com/acp-test/acp-test/scenarios"
	"github.com/acp-test/acp-test/scenarios/language"
	"github.com/acp-test/acp-test/scenarios/results"
	"github.com/acp-test/acp-test/scenarios/verdict"
	"github.com/acp-test/acp-test/sweep"
)

func runCommand(h *host) *cobra.Command {
	var o options
	c := command("run", cobra.ArbitraryArgs, o.settled(h, func(c *cobra.Command) error {
		if c.Flags().Changed("budget") && (o.within <= 0 || o.repeat > 1 || o.untilFail) {
			return fmt.Errorf("--budget %v: expected a time longer than 0, without --repeat and --until-fail", o.within)
		}
		return h.run(c, &o)
	}))
	o.flags(c)
	c.Flags().BoolVar(&o.failed, "failed", false, "only scenarios that did not pass in the run stored in --out")
	c.Flags().StringVar(&o.since, "since", "",
		"only scenarios affected since `REF` (a commit or a run's folder), and those that did not pass in --out")
	c.Flags().BoolVar(&o.perturb, "perturb", false,
		"from the second --repeat on, write in pieces, read and answer late, and report what changes")
	c.Flags().DurationVar(&o.within, "budget", 0, "start no scenario after `TIME` like 60s; first the last failures, "+
		"then scenarios that find most faults for their time, then those not run for longest")
	o.smokeFlags(c)
	return c
}

func (h *host) run(c *cobra.Command, o *options) error {
	if o.watch {
		return h.watch(c, o)
	}
	return h.once(c, o, nil)
}

// chosenRun holds the scenarios of a run, after --since, --failed and --shard have narrowed the choice.
type chosenRun struct {
	selection
	mine      []*scenarios.Scenario // scenarios of this shard
	narrowed  *narrowed
	shard     *results.Shard // nil if the run is not split
	from      string         // the flag or variable that names the shard
	durations map[string]time.Duration
}

// choose returns the scenarios of a run. If files is not nil, it drops scenarios in other files.
func (h *host) choose(o *options, files map[string]bool) (x chosenRun, err error) {
	if x.selection, err = o.selection(h); err != nil {
		return x, err
	}
	x.reached(h, o)
	if files != nil {
		x.whole = false
		x.list = slices.DeleteFunc(x.list, func(s *scenarios.Scenario) bool { return !files[h.absolute(s.File)] })
	}
	if x.narrowed, err = h.narrow(o); err != nil {
		return x, err
	}
	if x.narrowed.from(h, &x.selection); len(x.list) == 0 {
		return x, nil
	}
	if x.shard, x.from, err = h.shard(o.shard); err != nil {
		return x, err
	}
	if x.durations, err = readDurations(o.durations); err != nil {
		return x, err
	}
	x.mine = scenarios.Select(x.list, x.shard, x.durations)
	return x, nil
}

// listed prints the chosen scenarios.
func (h *host) listed(list []*scenarios.Scenario) error {
	for _, s := range list {
		h.say("%-32s %s\n", s.ID, s.Title)
	}
	return nil
}

// once runs the chosen scenarios. If files is not nil, it skips scenarios in other files.
func (h *host) once(c *cobra.Command, o *options, files map[string]bool) error {
	chosen, err := h.choose(o, files)
	switch {
	case err != nil:
		return err
	case len(chosen.list) == 0:
		fmt.Fprintf(h.out, "no scenario is run: %s\n", chosen.narrowed.nothing(o))
		return nil
	case o.list:
		return h.listed(chosen.mine)
	}
	o.out = h.freeOut(o.out)
	engine, err := h.engine(c, o, chosen.selection)
	if err != nil {
		return err
	}
	before, err := o.earlier()
	if err != nil {
		return err
	}
	release, err := h.prepareOut(o.out)
	if err != nil {
		return err
	}
	defer release()
	if engine.Folder, err = evidence.Open(o.out, always()); err != nil {
		return fmt.Errorf("--out: %w", err)
	}
	defer engine.Folder.Close()
	if err := h.ready(c.Context(), engine); err != nil {
		return h.unable(engine, o, err)
	}
	return h.play(c, o, engine, chosen, before)
}

// ready prepares the agent with the set-up step of its profile. It returns an error if the agent or its isolation
// cannot work on this machine.
func (h *host) ready(ctx context.Context, engine *scenarios.Engine) error {
	if _, err := engine.Profile.Locate(h.sandbox()); err != nil {
		return err
	}
	if engine.NetworkOnly != "" {
		if err := isolate.Check([]string{h.self, "isolate"}); err != nil {
			return fmt.Errorf("--isolate: %w", err)
		}
	}
	return engine.Prepare(ctx)
}

// play runs the chosen scenarios and writes the reports.
func (h *host) play(c *cobra.Command, o *options, engine *scenarios.Engine, chosen chosenRun, before *earlier) error {
	console := h.console(o, len(chosen.mine)*max(o.repeat, 1))
	defer console.Close()
	again := rerun(c)
	engine.Step = console.Step
	plan := scenarios.Plan{
		Jobs: int(o.jobs), Repeat: o.repeat, UntilFail: o.untilFail, FailFast: o.failFast, Shard: chosen.shard,
		Durations: chosen.durations, Strict: o.strict, Budget: o.within,
		Order:   slices.Sorted(maps.Keys(chosen.narrowed.failed)),
		Started: console.Started,
		Finished: func(r results.Result) {
			r.Rerun = engine.Secrets.Text(again(r.ID))
			console.Finished(r)
		},
	}
	if chosen.whole && len(o.paths) == 0 && !c.Flags().Changed("suite") && !o.conformance {
		plan.GiveUp, plan.Order = wantsMore, append([]string{plainTurn}, plan.Order...)
	}
	if o.perturb {
		plan.Perturb = func(id string, round int) scenarios.Perturbation { return sweep.Perturb(o.seed, id, round) }
	}
	past := h.history(engine, chosen.of.Name)
	if o.within > 0 {
		head, _ := h.git(h.cwd, "rev-parse", "HEAD") // there is no commit outside of a repository
		past.plan(&plan, chosen, string(head))
	}
	run := engine.RunAll(c.Context(), chosen.list, plan)
	past.conclude(&run, o.within, chosen.of.Name)
	if o.perturb {
		run.Differences = sweep.Differences(chosen.of.planner(), run, chosen.list)
	}
	if o.smokes(c, engine, chosen.selection) && drawable(&run) {
		if err := h.smokeSweep(c, o, engine, chosen.selection, console, &run); err != nil {
			return err
		}
	}
	if err := o.writeBaseline(&run, func() []agents.KnownFailure { return engine.Rebase(&run) }); err != nil {
		return err
	}
	if o.conformance {
		verdict.Conform(chosen.of.Rules, &run)
	}
	if err := before.compare(engine.Folder, &run, chosen.mine); err != nil {
		return err
	}
	for i := range run.Results {
		r := &run.Results[i]
		r.Rerun = engine.Secrets.Text(cmp.Or(r.Rerun, again(r.ID)))
	}
	if s := chosen.shard; s != nil {
		run.Notes = append(run.Notes, fmt.Sprintf("part %d of %d, by %s: %d of %d scenarios", s.Index, s.Of, chosen.from,
			len(chosen.mine), len(chosen.list)))
	}
	if o.narrow {
		if all, err := chosen.of.over(engine.Profile.Binding()); err == nil {
			run.Notes = append(run.Notes, fmt.Sprintf("%s selects only these scenarios; "+
				"acp-test run --suite all runs the %d scenarios of the suites", language.Config, all))
		}
	}
	o.sabotage.conclude(&run)
	run = secret.Value(engine.Secrets, run)
	err := errors.Join(h.writeInto(engine.Folder, run, engine.Out, o.reports), console.Summary(run))
	return cmp.Or(err, ended(run.Exit))
}

// plainTurn is the id of the scenario that is the first to show whether an agent accepts a prompt and reaches its
// model.
const plainTurn = "prompt-turn/text"

// wantsMore reports whether a scenario may need a login or a model. It is false only for scenarios of the suite
// initialize that have no model script.
func wantsMore(s *scenarios.Scenario) bool { return s.Suite != "initialize" || s.Model != nil }

// unable ends a run that cannot start. It writes the reason into the reports and returns it as an error.
func (h *host) unable(e *scenarios.Engine, o *options, why error) error {
	run := e.NewRun()
	run.Strict, run.Verdict, run.Exit, run.Notes = o.strict, results.Error, 2, []string{why.Error()}
	return errors.Join(why, h.writeReports(run, e.Out, o.reports))
}

// newRun returns an empty run without an engine. The caller sets its Protocol.
func (h *host) newRun(a results.Agent) results.Run {
	return verdict.NewRun("", tool(), h.commandLine(), a)
}

// commandLine returns the command line as the user would type it again.
func (h *host) commandLine() string {
	return h.secrets().Text(quoted(spoken(append([]string{"acp-test"}, h.args...))))
}

// engine returns an engine with the settings of the command line.
func (h *host) engine(c *cobra.Command, o *options, chosen selection) (*scenarios.Engine, error) {
	if chosen.of.Protocol == nil {
		chosen.of = acpV1()
	}
	p, err := o.subject(h, chosen.of)
	if err != nil {
		return nil, err
	}
	if o.auth != "" {
		p = p.WithAuth(o.auth)
	}
	known, err := knownFailures("--baseline", o.baseline)
	if err != nil {
		return nil, err
	}
	if err := inProtocols(append(slices.Clone(known), p.KnownFailures...)); err != nil {
		return nil, err
	}
	secrets := h.secrets(o.env...)
	e := &scenarios.Engine{
		Protocol: chosen.of.Protocol,
		Profile:  p, Self: h.self, Tool: tool(), Command: h.commandLine(), Cwd: h.cwd, Host: h.env, Env: o.variables(),
		PassEnv: o.passEnv, Secrets: secrets,
		Redact: replay.Redaction{Protocol: chosen.of.recordings, Known: secrets}.Func,
		Update: o.update, GoldenRequired: o.goldenRequired, Known: known,
		Seed: o.seed, Severity: o.severity, Timeout: o.timeout, StepTimeout: o.stepTimeout,
		Debug: o.debug, Keep: o.keep, NoTrap: o.noTrap, Isolate: o.isolate,
		// Starting the reference agent is faster than finding a shared process.
		Share:      !o.fresh && (p.Name != chosen.of.reference || c.Flags().Changed("fresh")),
		Unfiltered: chosen.whole,
	}
	if e.Out, err = filepath.Abs(o.out); err != nil {
		return nil, err
	}
	if err := h.confine(o, e); err != nil {
		return nil, err
	}
	if e.ExtraArgs, err = o.faulty(chosen.of, p); err != nil {
		return nil, err
	}
	err = cmp.Or(o.takeLiberties(e, chosen.of), o.goldensOf(e, chosen), o.play(e), o.sabotage.through(e))
	if err != nil {
		return nil, err
	}
	switch late := conformanceLinger; {
	case c.Flags().Changed("linger"):
		e.Linger = &o.linger
	case o.conformance && p.Name != chosen.of.reference:
		e.Linger = &late
	}
	e.Began = time.Now()
	h.greeted(c.Context(), e, o)
	h.fit(e, chosen.of.generator)
	if o.debug {
		e.Launched = h.waitForDebugger()
	}
	return e, nil
}

// confine sets the files that an isolated agent may read. It restricts isolation to the network if this machine
// cannot hide files.
func (h *host) confine(o *options, e *scenarios.Engine) error {
	for _, path := range o.isolateRead {
		path, err := filepath.Abs(path)
		if err == nil {
			_, err = os.Stat(path)
		}
		if err != nil {
			return fmt.Errorf("--isolate-read: %w", err)
		}
		e.Readable = append(e.Readable, path)
	}
	if o.isolate {
		if why := isolate.CheckView([]string{h.self, "isolate"}); why != nil {
			e.NetworkOnly = why.Error()
		}
	}
	return nil
}

// goldensOf sets the store of goldens that the engine compares runs with.
func (o *options) goldensOf(e *scenarios.Engine, chosen selection) error {
	switch {
	case len(o.liberties) > 0: // goldens describe the agent without liberties
	case o.golden == "none":
		if o.update || o.goldenRequired {
			return errors.New("--golden none contradicts --update and --golden-required, which need a folder")
		}
	case e.Profile.Source != adHoc:
		e.Golden = &golden.Store{Dir: o.golden}
		if chosen.shipped {
			e.Golden.Embedded = golden.Shipped()
		}
		e.Complete = chosen.complete(e.Golden, e.Protocol.GoldensOf(e.Profile))
	case o.update, o.goldenRequired:
		return errors.New("goldens belong to a profile, and a bare command has none: name one with --agent")
	}
	return nil
}

// inProtocols returns an error that names the first known failure whose protocol does not exist.
func inProtocols(list []agents.KnownFailure) error {
	for _, k := range list {
		for _, name := range k.Protocols {
			place := fmt.Sprintf("%s:%d: protocols", k.File, k.Line)
			if err := oneOf(place, "protocol", name, protocolNames()); err != nil {
				return err
			}
		}
	}
	return nil
}

// waitForDebugger returns a function that waits for Enter, so that the user can attach a debugger to an agent.
func (h *host) waitForDebugger() func(id string, pid int) {
	var mu sync.Mutex
	in := bufio.NewReader(h.in)
	return func(id string, pid int) {
		mu.Lock()
		defer mu.Unlock()
		fmt.Fprintf(h.err, "\n%s: the agent runs as process %d; press Enter to go on\n", id, pid)
		_, _ = in.ReadString('\n') // at the end of input, no user can press Enter
	}
}

func (h *host) console(o *options, total int) *reports.Console {
	if o.untilFail {
		total = 0
	}
	return reports.NewConsole(h.out, reports.ConsoleOptions{
		Total: total, Terminal: isTerminal(h.out) && !o.debug, Color: h.style(h.out).colours,
		Width: func() int { return cmp.Or(width(h.out), 80) }, Quiet: o.quiet, Verbose: o.verbose,
	})
}

// width returns the number of columns of the terminal w, or 0 if w is not a terminal.
func width(w io.Writer) int {
	if f, ok := w.(*os.File); ok {
		if columns, _, err := term.GetSize(int(f.Fd())); err == nil {
			return columns
		}
	}
	return 0
}

// takeLiberties makes the engine start the reference agent with the liberties of --liberty.
func (o *options) takeLiberties(e *scenarios.Engine, of protocol) error {
	a := reference{liberties: o.liberties}
	if e.Profile.URL != "" {
		a.ways()
	}
	if err := differs(of.Name, "", a.liberties); err != nil || len(o.liberties) == 0 {
		return err
	}
	if e.Profile.Name != of.reference || len(o.command) > 0 {
		return fmt.Errorf("--liberty: only the reference agent takes liberties, and the agent here is %s", e.Profile.Name)
	}
	e.ExtraArgs = append(e.ExtraArgs, "--liberty", strings.Join(o.liberties, ","))
	taken, _ := liberties.Find(of.Name, a.liberties...)
	for _, l := range taken {
		if l.Learns {
			learning := *e.Profile
			learning.Tools = nil
			e.Profile = &learning
		}
	}
	return nil
}

// conformanceLinger is how long conformance waits for late messages by default. With the reference agent it does not
// wait.
const conformanceLinger = 2 * time.Second

func conformanceCommand(h *host) *cobra.Command {
	o := options{judging: judging{conformance: true}}
	c := command("conformance", cobra.ArbitraryArgs, o.settled(h, func(c *cobra.Command) error { return h.run(c, &o) }))
	o.flags(c)
	o.smokeFlags(c)
	return c
}
