package main

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"runtime"
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

// options are the flags of commands that run scenarios.
type options struct {
	agent, settings, fault string
	url                    string // where the agent is
	liberties              []string
	command                []string // the words after --
	conformance            bool     // the requirement table decides

	paths, suites, tags []string
	match               string
	list                bool

	jobs, repeat                int
	untilFail, failFast, strict bool
	perturb                     bool // of run alone
	fresh                       bool
	watch                       bool
	failed                      bool   // what did not pass in the last run
	since                       string // a commit or a folder
	seed                        int64
	shard, durations            string

	timeout, stepTimeout, linger time.Duration
	debug, keep                  bool
	noTrap, isolate              bool
	isolateRead                  []string
	profile, auth                string
	env, passEnv, headers        []string

	golden                 string
	update, goldenRequired bool
	baseline, severity     string
	baselineWrite, against string

	out            string
	reports        []string
	verbose, quiet bool

	smoke   int // schedules of the sweep at the end
	noSmoke bool
}

func (o *options) isolation(f *pflag.FlagSet) {
	f.BoolVar(&o.isolate, "isolate", false,
		"run the agent where it reaches nothing but the model, and sees neither your files nor your processes (Linux)")
	f.StringArrayVar(&o.isolateRead, "isolate-read", nil,
		"one more file or directory that an isolated agent may read, `PATH` (repeatable)")
}

func (o *options) flags(c *cobra.Command) {
	f := c.Flags()
	f.SortFlags = false
	f.StringVar(&o.agent, "agent", "", "the agent, by the `NAME` or file of its profile (default reference)")
	f.StringVar(&o.settings, "settings", "", "take agents from an editor's settings.json `FILE`")
	f.StringVar(&o.url, "url", "",
		"where an agent of a protocol over HTTP is, `URL`; of the command after --, it may name "+
			"$PORT or $PRINTED")
	f.StringArrayVar(&o.headers, "header", nil,
		"a header of each request to an agent over HTTP, `NAME:VALUE` (repeatable); VALUE may name variables, such as $TOKEN")
	f.StringVar(&o.fault, "fault", "", "the reference agent with one deliberate fault, by `NAME`")
	f.StringSliceVar(&o.liberties, "liberty", nil,
		"the reference agent with what another correct agent does, by `NAME` (repeatable)")

	f.StringSliceVar(&o.suites, "suite", nil, "a suite in this program, by `NAME` (repeatable; default all)")
	f.StringVar(&o.match, "run", "", "only scenarios whose id matches `REGEXP`")
	f.StringSliceVar(&o.tags, "tag", nil, "only scenarios with one of these tags, or without !`TAG` (repeatable)")
	f.BoolVar(&o.list, "list", false, "list the scenarios and run none")

	f.IntVarP(&o.jobs, "jobs", "j", runtime.NumCPU(), "how many scenarios run at once")
	f.Lookup("jobs").DefValue = "the number of CPUs" // a reference page is the same everywhere
	f.IntVar(&o.repeat, "repeat", 1, "run each scenario so often")
	f.BoolVar(&o.fresh, "fresh", false, "start the agent for each scenario; else those that can share its processes, and "+
		"what does not pass runs again alone")
	f.BoolVar(&o.untilFail, "until-fail", false, "repeat until something fails, at most --repeat times if that is given")
	f.BoolVar(&o.failFast, "fail-fast", false, "stop at the first failure")
	f.BoolVar(&o.watch, "watch", false, "run again what a saved file touches, until interrupted")
	f.BoolVar(&o.strict, "strict", false, "an inconclusive scenario makes the exit status 1")
	f.Int64Var(&o.seed, "seed", 1, "the seed of all that is drawn")
	f.StringVar(&o.shard, "shard", "", "run part `I/N` of the scenarios (default from the usual CI variables)")

	f.StringVar(&o.durations, "durations", "", "cut parts so that they take equally long, by the durations in `FILE`")

	o.timeouts(f)
	f.DurationVar(&o.linger, "linger", 0,
		"how long a scenario stays open for late messages (default 250ms where they matter)")
	f.BoolVar(&o.debug, "debug", false, "no timeouts; print the agent's pid and wait for Enter before initialize")
	f.BoolVar(&o.keep, "keep", false, "keep workspace and HOME of each scenario in --out")
	f.StringArrayVar(&o.env, "env", nil,
		"more environment for the agent, `K=V` (repeatable); $LLM is the model's base URL, $KEY a key for it")
	f.StringVar(&o.profile, "profile", "",
		"what the command after -- gets environment, HOME, login and tools of: a profile, or none "+
			"(default the one that knows it, by its command or the name that it gives itself)")
	f.StringVar(&o.auth, "auth-method", "", "log in with the method of this `ID` before the first session")
	f.StringSliceVar(&o.passEnv, "pass-env", nil,
		"pass a variable of this environment to the agent, by `NAME` (repeatable)")

	f.BoolVar(&o.noTrap, "no-trap", false,
		"let the agent reach other machines; else a proxy refuses and reports what honours HTTP_PROXY")
	o.isolation(f)

	f.StringVar(&o.golden, "golden", "golden", "the folder of goldens, `DIR`")
	f.BoolVar(&o.update, "update", false, "write goldens instead of comparing")
	f.BoolVar(&o.goldenRequired, "golden-required", false, "a missing golden is a failure")
	f.StringVar(&o.baseline, "baseline", "", "known failures, in the form of a profile's, from `FILE`")
	f.StringVar(&o.baselineWrite, "baseline-write", "", "list all that fails as known, in `FILE`")
	f.StringVar(&o.against, "against", "", "say what changed since the run whose results are in `DIR`")
	f.StringVar(&o.severity, "severity", "v1", "the set of severities: "+strings.Join(invariants.SeverityNames(), ", "))

	f.StringVar(&o.out, "out", "acp-test-out", "the folder for transcripts and reports, `DIR`")
	f.StringArrayVar(&o.reports, "report", nil,
		"one more report, `FORMAT[=FILE]`, - is stdout: "+strings.Join(reports.Formats(), ", "))
	f.BoolVarP(&o.verbose, "verbose", "v", false, "show checks, steps and notes")
	f.BoolVarP(&o.quiet, "quiet", "q", false, "show failures and the summary only")

	completeWords(c, "suite", suiteNames)
	completeWords(c, "severity", invariants.SeverityNames)
	completeWords(c, "report", reports.Formats)
	completeWords(c, "fault", faultNames)
	completeWords(c, "liberty", libertyNames)
	_ = c.RegisterFlagCompletionFunc("agent", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return agents.Names(), cobra.ShellCompDirectiveDefault
	})
}

// completeWords completes the value of a flag in shells.
func completeWords(c *cobra.Command, flag string, words func() []string) {
	// The error says only that there is no such flag.
	_ = c.RegisterFlagCompletionFunc(flag, func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return words(), cobra.ShellCompDirectiveNoFileComp
	})
}

// timeouts are of scenarios and of their lines; 0, which they are unless set,
// leaves it to the engine.
func (o *options) timeouts(f *pflag.FlagSet) {
	f.DurationVar(&o.timeout, "timeout", 0, fmt.Sprintf("how long a scenario may take (default the profile's, else %v)",
		scenarios.DefaultTimeout))
	f.DurationVar(&o.stepTimeout, "step-timeout", 0,
		fmt.Sprintf("how long a line of a scenario may take (default the profile's, else %v)", scenarios.DefaultStepTimeout))
}

// settle makes the options what they are for a run, and says what is wrong with
// them.
func (o *options) settle(h *host, c *cobra.Command, args []string) error {
	def, err := findConfig(h.cwd)
	if err != nil {
		return err
	}
	if o.conformance {
		def.Scenarios = nil // it is what the suites here say, not a repository's own scenarios
	}
	o.complete(c, args, def)
	return o.check(c)
}

// complete adds the words of the command line, and the defaults of the
// repository for what the command line leaves open.
func (o *options) complete(c *cobra.Command, args []string, def config) {
	o.paths = args
	if dash := c.ArgsLenAtDash(); dash >= 0 {
		o.paths, o.command = args[:dash], args[dash:]
	}
	set := func(flag string) bool { return c.Flags().Changed(flag) }
	if len(o.paths) == 0 && !set("suite") {
		o.paths, o.suites = def.Scenarios, def.Suites
	}
	if !set("agent") && !set("settings") {
		o.agent = def.Agent
		if len(o.command) == 0 {
			o.command = def.Command
		}
	}
	for _, s := range []struct {
		flag string
		to   *string
		def  string
	}{{"golden", &o.golden, def.Goldens}, {"baseline", &o.baseline, def.Baseline}, {"severity", &o.severity, def.Severity},
		{"out", &o.out, def.Out}, {"durations", &o.durations, def.Durations}} {
		if !set(s.flag) && s.def != "" {
			*s.to = s.def
		}
	}
	// parseConfig has made sure that these are times.
	if d, _ := duration(def.Timeout); !set("timeout") && d > 0 {
		o.timeout = d
	}
	if d, _ := duration(def.StepTimeout); !set("step-timeout") && d > 0 {
		o.stepTimeout = d
	}
	if !set("strict") {
		o.strict = def.Strict
	}
	if !set("report") {
		o.reports = def.Reports
	}
	var env []string
	for k, v := range def.Env {
		env = append(env, k+"="+v)
	}
	o.env = append(env, o.env...)
	o.passEnv = append(slices.Clone(def.PassEnv), o.passEnv...)
	if o.debug && !set("jobs") {
		o.jobs = 1
	}
	if o.untilFail && !set("repeat") {
		o.repeat = 0
	}
}

// checkSeverity says whether there is a set of severities of a name.
func checkSeverity(name string) error {
	if slices.Contains(invariants.SeverityNames(), name) {
		return nil
	}
	return fmt.Errorf("--severity: there is no set %q%s; they are %s", name, meant(name, invariants.SeverityNames()),
		strings.Join(invariants.SeverityNames(), ", "))
}

// check says what is wrong with the values.
func (o *options) check(c *cobra.Command) error {
	set := c.Flags().Changed
	for _, wrong := range []struct {
		is  bool
		why string
	}{
		{o.verbose && o.quiet, "-v and -q contradict each other"},
		{o.update && o.goldenRequired,
			"--update and --golden-required contradict each other: one writes what the other asks for"},
		{c.ArgsLenAtDash() >= 0 && len(o.command) == 0, c.Name() + ": after -- the agent's command is missing"},
		{o.jobs < 1, fmt.Sprintf("-j %d: at least 1 scenario must run", o.jobs)},
		{o.repeat < 1 && !o.untilFail, fmt.Sprintf("--repeat %d: a scenario must run at least once", o.repeat)},
		{o.perturb && o.repeat < 2 && !o.untilFail,
			"--perturb leaves the first round as it is: say how many there are with --repeat"},
		{o.perturb && (o.update || o.baselineWrite != ""),
			"--perturb contradicts --update and --baseline-write: they keep what an undisturbed run shows"},
		{o.perturb && o.debug, "--perturb and --debug contradict each other: one is about time, the other takes it away"},
		{set("timeout") && o.timeout <= 0 || set("step-timeout") && o.stepTimeout <= 0,
			"a timeout must be longer than 0; --debug turns all off"},
		{o.linger < 0, fmt.Sprintf("--linger %v: a time cannot be negative", o.linger)},
		{o.baselineWrite != "" && o.shard != "",
			"--baseline-write and --shard contradict each other: a part does not show all that fails"},
		{o.watch && o.list, "--watch and --list contradict each other"},
		{o.watch && o.debug, "--watch and --debug contradict each other: one waits for files, the other for Enter"},
	} {
		if wrong.is {
			return errors.New(wrong.why)
		}
	}
	if err := checkSeverity(o.severity); err != nil {
		return err
	}
	if _, err := regexp.Compile(o.match); err != nil {
		return fmt.Errorf("--run: %w", err)
	}
	if err := checkFormats("--report", o.reports); err != nil {
		return err
	}
	for _, header := range o.headers {
		name, _, ok := strings.Cut(header, ":")
		if err := agents.CheckHeader(name); err != nil || !ok {
			return fmt.Errorf("--header %q: NAME:VALUE is expected", header)
		}
	}
	for _, kv := range o.env {
		if k, _, ok := strings.Cut(kv, "="); !ok || k == "" {
			return fmt.Errorf("--env %q: K=V is expected", kv)
		}
	}
	return nil
}

func (o *options) environment() map[string]string {
	env := map[string]string{}
	for _, kv := range o.env {
		k, v, _ := strings.Cut(kv, "=")
		env[k] = v
	}
	return env
}

// known reads the baseline.
func (o *options) known() ([]agents.KnownFailure, error) {
	if o.baseline == "" {
		return nil, nil
	}
	src, err := os.ReadFile(o.baseline)
	if err != nil {
		return nil, fmt.Errorf("--baseline: %w", err)
	}
	return agents.ParseKnownFailures(o.baseline, src)
}
