package main

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/acp-test/acp-test/agents"
	"github.com/acp-test/acp-test/protocol/acp/invariants"
	"github.com/acp-test/acp-test/reports"
	"github.com/acp-test/acp-test/scenarios"
)

// options holds the flags of commands that run scenarios, grouped by purpose.
type options struct {
	target
	choice
	course
	judging
	output
}

// choice holds the flags that choose which scenarios run.
type choice struct {
	paths, suites, tags []string
	match               string
	narrow              bool // scenarios come from acp-test.yaml, which names no suite
	list                bool
	failed              bool   // --failed: only scenarios that did not pass in the last run
	since               string // --since: a commit or a folder
	shard, durations    string
}

// course holds the flags that choose how scenarios run.
type course struct {
	jobs                         jobs
	repeat                       int
	untilFail, failFast          bool
	perturb                      bool          // --perturb, only for run
	within                       time.Duration // --budget, only for run
	fresh, watch                 bool
	seed                         int64
	timeout, stepTimeout, linger time.Duration
	debug, keep                  bool
	editor                       string // --editor: a persona
	noTrap, isolate              bool
	isolateRead                  []string
	smoke                        int // --smoke: number of drawn conversations at the end
	noSmoke                      bool
}

// judging holds the flags that choose how runs are judged.
type judging struct {
	conformance            bool // the requirement table decides the verdict
	strict                 bool
	golden                 string
	update, goldenRequired bool
	baseline, severity     string
	baselineWrite, against string
}

// output holds the flags that choose where the results go and how much of them is shown.
type output struct {
	out            string
	reports        []string
	verbose, quiet bool
}

func (o *options) flags(c *cobra.Command) {
	f := c.Flags()
	f.SortFlags = false
	o.target.flags(c)
	o.choice.flags(c)
	o.course.flags(f)
	o.judging.flags(c)
	o.output.flags(c, "show checks, steps and notes")
	f.BoolVarP(&o.quiet, "quiet", "q", false, "show failures and the summary only")
}

func (s *choice) flags(c *cobra.Command) {
	f := c.Flags()
	f.StringSliceVar(&s.suites, "suite", nil, "a suite in this program, by `NAME`, or all (repeatable)")
	completeWords(c, "suite", suiteNames)
	f.StringVar(&s.match, "run", "", "only scenarios whose id matches `REGEXP`")
	f.StringSliceVar(&s.tags, "tag", nil, "only scenarios with one of these tags; !`TAG` excludes a tag (repeatable)")
	f.BoolVar(&s.list, "list", false, "list the scenarios and run none")
	f.StringVar(&s.shard, "shard", "", "run part `I/N` of the scenarios (default: from the CI system's variables)")
	f.StringVar(&s.durations, "durations", "", "split parts of --shard evenly by the scenario durations in `FILE`")
}

func (r *course) flags(f *pflag.FlagSet) {
	r.jobs.flag(f)
	f.IntVar(&r.repeat, "repeat", 1, "run each scenario `N` times")
	f.BoolVar(&r.fresh, "fresh", false,
		"start a process for each scenario (default: share processes, and rerun every non-pass alone)")
	f.BoolVar(&r.untilFail, "until-fail", false, "repeat until something fails, at most --repeat times if that is given")
	f.BoolVar(&r.failFast, "fail-fast", false, "stop at the first failure")
	f.BoolVar(&r.watch, "watch", false, "rerun the scenarios that a saved file affects, until interrupted")
	f.Int64Var(&r.seed, "seed", 1, "the seed of everything that acp-test draws at random")
	r.timeouts(f)
	f.DurationVar(&r.linger, "linger", 0,
		"how long to wait for late messages at the end of a scenario (default 250ms where they matter)")
	f.BoolVar(&r.debug, "debug", false, "turn off timeouts; print the agent's pid and wait for Enter before initialize")
	f.BoolVar(&r.keep, "keep", false, "keep workspace and HOME of each scenario in --out")
	f.BoolVar(&r.noTrap, "no-trap", false,
		"let the agent reach other machines (default: a proxy refuses and reports requests that use HTTP_PROXY)")
	f.StringVar(&r.editor, "editor", "", "imitate a known editor, by its `NAME` in acp-test help personas, such as zed")
	r.isolation(f)
}

func (r *course) isolation(f *pflag.FlagSet) {
	f.BoolVar(&r.isolate, "isolate", false,
		"isolate the agent: it reaches only the model, and sees neither your files nor your processes (Linux)")
	f.StringArrayVar(&r.isolateRead, "isolate-read", nil,
		"one more file or directory that an isolated agent may read, `PATH` (repeatable)")
}

// timeouts registers the timeouts of a scenario and of each of its lines. 0, the default, selects the engine's
// timeout.
func (r *course) timeouts(f *pflag.FlagSet) {
	f.DurationVar(&r.timeout, "timeout", 0, fmt.Sprintf("timeout of a scenario (default: the profile's, else %v)",
		scenarios.DefaultTimeout))
	f.DurationVar(&r.stepTimeout, "step-timeout", 0,
		fmt.Sprintf("timeout of a line of a scenario (default: the profile's, else %v)", scenarios.DefaultStepTimeout))
}

func (j *judging) flags(c *cobra.Command) {
	f := c.Flags()
	f.BoolVar(&j.strict, "strict", false, "exit with status 1 if a scenario is inconclusive")
	j.goldens(f)
	f.BoolVar(&j.goldenRequired, "golden-required", false, "report a missing golden as a failure")
	f.StringVar(&j.baseline, "baseline", "", "known failures from `FILE`, in the format of a profile's known-failures")
	f.StringVar(&j.baselineWrite, "baseline-write", "", "write all failures of this run to `FILE` as known failures")
	f.StringVar(&j.against, "against", "", "report what changed since the run whose results are in `DIR`")
	j.severities(c)
}

func (j *judging) goldens(f *pflag.FlagSet) {
	f.StringVar(&j.golden, "golden", "golden", "the folder of goldens, `DIR`, or none to compare no goldens")
	f.BoolVar(&j.update, "update", false, "write goldens instead of comparing")
}

func (j *judging) severities(c *cobra.Command) {
	c.Flags().StringVar(&j.severity, "severity", "v1",
		"the set of severities: "+strings.Join(invariants.SeverityNames(), ", "))
	completeWords(c, "severity", invariants.SeverityNames)
}

// flags registers the flags for the folder and the reports, and -v with the help text verbose.
func (w *output) flags(c *cobra.Command, verbose string) {
	c.Flags().StringVar(&w.out, "out", "acp-test-out", "the folder for transcripts and reports, `DIR`")
	w.shown(c, "one more report", verbose)
}

func (w *output) shown(c *cobra.Command, report, verbose string) {
	c.Flags().StringArrayVar(&w.reports, "report", nil,
		report+", `FORMAT[=FILE]` (- is stdout), in one of these formats: "+strings.Join(reports.Formats(), ", "))
	c.Flags().BoolVarP(&w.verbose, "verbose", "v", false, verbose)
	completeWords(c, "report", reports.Formats)
}

// completeAgents completes the name of an agent in the shell, from the profiles and from files.
func completeAgents(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return agents.Names(), cobra.ShellCompDirectiveDefault
}

// completeWords makes shells complete the value of a flag with words.
func completeWords(c *cobra.Command, flag string, words func() []string) {
	// The only possible error is that the flag does not exist.
	_ = c.RegisterFlagCompletionFunc(flag, func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return words(), cobra.ShellCompDirectiveNoFileComp
	})
}

// settled returns a RunE function that settles the options and then calls run.
func (o *options) settled(h *host, run func(*cobra.Command) error) func(*cobra.Command, []string) error {
	return func(c *cobra.Command, args []string) error {
		if err := o.settle(h, c, args); err != nil {
			return err
		}
		return run(c)
	}
}

// settle completes the options from the command line and acp-test.yaml. It returns an error if they are wrong.
func (o *options) settle(h *host, c *cobra.Command, args []string) error {
	def, err := findConfig(h.cwd)
	if err != nil {
		return err
	}
	if o.conformance {
		def.Scenarios, def.Suites = nil, nil // conformance runs only the suites
	}
	o.complete(c, args, def)
	return o.check(c)
}

// complete adds the words of the command line. For each flag that was not given, it takes the default in
// acp-test.yaml.
func (o *options) complete(c *cobra.Command, args []string, def config) {
	o.paths, o.command = atDash(c, args)
	set := c.Flags().Changed
	if len(o.paths) == 0 && !set("suite") {
		o.paths, o.suites = def.Scenarios, def.Suites
		o.narrow = len(o.paths) > 0 && len(o.suites) == 0
	}
	if !set("agent") && !set("settings") && !set("fault") && !set("liberty") { // these flags choose the agent
		o.agent = def.Agent
		if len(o.command) == 0 {
			o.command = def.Command
		}
	}
	// parseConfig has checked that both durations are valid.
	timeout, _ := duration(def.Timeout)
	stepTimeout, _ := duration(def.StepTimeout)
	fallback(set, "golden", &o.golden, def.Goldens)
	fallback(set, "baseline", &o.baseline, def.Baseline)
	fallback(set, "severity", &o.severity, def.Severity)
	fallback(set, "out", &o.out, def.Out)
	fallback(set, "durations", &o.durations, def.Durations)
	fallback(set, "timeout", &o.timeout, max(timeout, 0))
	fallback(set, "step-timeout", &o.stepTimeout, max(stepTimeout, 0))
	fallback(set, "strict", &o.strict, def.Strict)
	if !set("report") {
		o.reports = def.Reports
	}
	o.env = append(assignments(def.Env), o.env...)
	o.passEnv = append(slices.Clone(def.PassEnv), o.passEnv...)
	if o.debug && !set("jobs") {
		o.jobs = 1
	}
	if o.untilFail && !set("repeat") {
		o.repeat = 0
	}
}

// fallback sets *to to the repository's value if the flag was not given and the value is not zero.
func fallback[T comparable](set func(string) bool, flag string, to *T, value T) {
	var zero T
	if !set(flag) && value != zero {
		*to = value
	}
}

// check returns an error if a value is invalid or flags contradict each other.
func (o *options) check(c *cobra.Command) error {
	_, err := o.matching()
	return cmp.Or(o.contradiction(c), checkSeverity(o.severity), checkFormats("--report", o.reports), o.target.check(),
		err)
}

// matching returns the regular expression of --run.
func (s *choice) matching() (*regexp.Regexp, error) {
	match, err := regexp.Compile(s.match)
	if err != nil {
		return nil, fmt.Errorf("--run: %w", err)
	}
	return match, nil
}
