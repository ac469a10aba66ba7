package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/acp-test/acp-test/agents"
	"github.com/acp-test/acp-test/mistake"
	"github.com/acp-test/acp-test/protocol/acp/invariants"
	"github.com/acp-test/acp-test/reports"
	"github.com/acp-test/acp-test/scenarios"
	"github.com/acp-test/acp-test/scenarios/language"
)

// options holds the flags of commands that run scenarios, grouped by purpose.
type options struct {
	target
	choice
	course
	judging
	output
}

// target holds the flags that choose the agent under test and its environment.
type target struct {
	agent, settings, fault string
	url                    string // URL of the agent
	liberties              []string
	command                []string // the words after --
	profile, auth          string
	env, passEnv, headers  []string
	over                   string
	sabotage               sabotageFlag
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

// of registers the flags that choose the agent under test.
func (t *target) of(c *cobra.Command) {
	f := c.Flags()
	f.StringVar(&t.agent, "agent", "", "the agent, by the `NAME` or file of its profile (default reference)")
	f.StringVar(&t.settings, "settings", "", "take agents from an editor's settings.json `FILE`")
	f.StringVar(&t.fault, "fault", "", "give the reference agent the deliberate fault `NAME`")
	completeWords(c, "fault", faultNames)
	_ = c.RegisterFlagCompletionFunc("agent", completeAgents)
}

// environment registers --env and --pass-env.
func (t *target) environment(f *pflag.FlagSet, env string) {
	f.StringArrayVar(&t.env, "env", nil, "set a variable in the agent's environment, `K=V` (repeatable)"+env)
	f.StringSliceVar(&t.passEnv, "pass-env", nil,
		"pass a variable of this environment to the agent, by `NAME` (repeatable)")
}

// network registers the flags for agents that are reached over a network.
func (t *target) network(f *pflag.FlagSet) {
	f.StringVar(&t.url, "url", "",
		"the `URL` of an agent on a network: http or https, for ACP also ws or wss; with a command after -- "+
			"it may contain $PORT (a free port), or begin with $PRINTED (the URL that it prints) or ws:$PRINTED")
	f.StringVar(&t.over, "over", "",
		"connect over stdio (the default), `http` or ws; the last two need an agent whose profile has listen")
	f.StringArrayVar(&t.headers, "header", nil,
		"send a header with each HTTP request to the agent, `NAME:VALUE` (repeatable); VALUE may use $VARIABLES")
}

func (t *target) flags(c *cobra.Command) {
	f := c.Flags()
	t.of(c)
	f.StringSliceVar(&t.liberties, "liberty", nil,
		"give the reference agent a legal habit of other agents, by `NAME` (repeatable)")
	completeWords(c, "liberty", libertyNames)
	t.network(f)
	t.sabotage.flag(c, "change messages between agent and editor, by a `NAME` from acp-test help sabotage or a FILE, "+
		"to see whether the run reports it")
	t.environment(f, "; $LLM is the model's base URL, $KEY a key for it")
	f.StringVar(&t.profile, "profile", "",
		"take environment, HOME, login and tools of the command after -- from this profile, or none "+
			"(default: the profile that matches the command, or the name that the agent gives in initialize)")
	f.StringVar(&t.auth, "auth-method", "", "log in with the method of this `ID` before the first session")
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

// jobs is how many scenarios run at once; 0 adapts the number to the speed of the machine.
type jobs int

func (j *jobs) String() string {
	if *j == 0 {
		return "auto"
	}
	return strconv.Itoa(int(*j))
}

// Set implements pflag.Value.
func (j *jobs) Set(text string) error {
	n, err := strconv.Atoi(text)
	if text != "auto" && (err != nil || n < 1) {
		return strconv.ErrRange
	}
	*j = jobs(n)
	return nil
}

// Type implements pflag.Value.
func (*jobs) Type() string { return "jobs" }

func (j *jobs) flag(f *pflag.FlagSet) {
	f.VarP(j, "jobs", "j", "run `N` scenarios at once, or auto: as many as the processors have time for")
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

// checkSeverity returns an error if there is no set of severities with this name.
func checkSeverity(name string) error {
	return oneOf("--severity", "set", name, invariants.SeverityNames())
}

// oneOf returns an error if name is not in known. The message names the place, such as a flag, and the kind of name
// that was expected.
func oneOf(place, what, name string, known []string) error {
	if slices.Contains(known, name) {
		return nil
	}
	return fmt.Errorf("%s: there is no %s %q%s; expected one of %s", place, what, name, mistake.Meant(name, known),
		strings.Join(known, ", "))
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

// contradiction returns an error if flags contradict each other, or if one requires another that is missing.
func (o *options) contradiction(c *cobra.Command) error {
	set := c.Flags().Changed
	return wrong([]contradiction{
		{o.verbose && o.quiet, "-v and -q contradict each other"},
		{o.update && o.goldenRequired,
			"--update and --golden-required contradict each other: one writes goldens, the other requires them"},
		{c.ArgsLenAtDash() >= 0 && len(o.command) == 0, c.Name() + ": the agent's command is missing after --"},
		{o.repeat < 1 && !o.untilFail, fmt.Sprintf("--repeat %d: a scenario must run at least once", o.repeat)},
		{o.perturb && o.repeat < 2 && !o.untilFail,
			"--perturb does not change the first round: set --repeat to 2 or more"},
		{o.perturb && (o.update || o.baselineWrite != ""),
			"--perturb contradicts --update and --baseline-write: they save results of an undisturbed run"},
		{o.perturb && o.debug, "--perturb and --debug contradict each other: --debug turns timeouts off"},
		{set("timeout") && o.timeout <= 0,
			fmt.Sprintf("--timeout %v: the timeout must exceed 0; --debug turns timeouts off", o.timeout)},
		{set("step-timeout") && o.stepTimeout <= 0,
			fmt.Sprintf("--step-timeout %v: the timeout must exceed 0; --debug turns timeouts off", o.stepTimeout)},
		{o.smoke < 0, fmt.Sprintf("--smoke %d: the number of conversations cannot be negative; --no-smoke plays none",
			o.smoke)},
		{exists(o.golden, false), fmt.Sprintf("--golden %s: expected a folder, but this is a file", o.golden)},
		{o.linger < 0, fmt.Sprintf("--linger %v: a time cannot be negative", o.linger)},
		{o.baselineWrite != "" && o.shard != "",
			"--baseline-write and --shard contradict each other: a part does not show all failures"},
		{o.watch && o.list, "--watch and --list contradict each other"},
		{o.watch && o.debug, "--watch and --debug contradict each other: one waits for files, the other for Enter"},
	})
}

// exists reports whether name is an existing folder if folder is true, or an existing non-folder if it is false.
func exists(name string, folder bool) bool {
	info, err := os.Stat(name)
	return err == nil && info.IsDir() == folder
}

// contradiction is a possible mistake in the use of flags. made is true if the user made the mistake.
type contradiction struct {
	made bool
	why  string
}

// wrong returns an error for the first mistake in the list that the user made, or nil if the user made none.
func wrong(list []contradiction) error {
	for _, c := range list {
		if c.made {
			return errors.New(c.why)
		}
	}
	return nil
}

// check returns an error if a flag about the agent under test has a malformed value.
func (t *target) check() error {
	if err := oneOf("--over", "binding", t.over, language.Bindings); t.over != "" && err != nil {
		return err
	}
	for _, header := range t.headers {
		name, _, ok := strings.Cut(header, ":")
		if err := agents.CheckHeader(name); err != nil || !ok {
			return fmt.Errorf("--header %q: NAME:VALUE is expected", header)
		}
	}
	for _, name := range t.passEnv {
		if strings.Contains(name, "=") {
			return fmt.Errorf("--pass-env %q: expected the NAME of a variable; to set a value, use --env", name)
		}
	}
	if err := agents.CheckURL(t.url); t.url != "" && err != nil {
		return fmt.Errorf("--url: %w, such as http://127.0.0.1:8000/agent", err)
	}
	return checkPairs("--env", t.env)
}

// checkPairs returns an error if a value of a flag is not K=V.
func checkPairs(flag string, values []string) error {
	for _, kv := range values {
		if k, _, ok := strings.Cut(kv, "="); !ok || k == "" {
			return fmt.Errorf("%s %q: K=V is expected", flag, kv)
		}
	}
	return nil
}

// variables returns the variables that --env sets.
func (t *target) variables() map[string]string {
	env := map[string]string{}
	for _, kv := range t.env {
		k, v, _ := strings.Cut(kv, "=")
		env[k] = v
	}
	return env
}

// faulty returns the --fault arguments for the reference agent, or nil without --fault. It returns an error if the
// agent under test is not the reference agent, or if the fault does not exist.
func (t *target) faulty(of protocol, p *agents.Profile) ([]string, error) {
	switch {
	case t.fault == "":
		return nil, nil
	case p.Name != of.reference || len(t.command) > 0:
		return nil, fmt.Errorf("--fault %s: only the reference agent has deliberate faults, not %s", t.fault, p.Name)
	}
	a := reference{fault: t.fault}
	if p.URL != "" {
		a.ways()
	}
	return []string{"--fault", t.fault}, differs(of.Name, a.fault, nil)
}

// knownFailures reads the file of known failures that a flag names. It returns nil if file is "".
func knownFailures(flag, file string) ([]agents.KnownFailure, error) {
	if file == "" {
		return nil, nil
	}
	src, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", flag, err)
	}
	return agents.ParseKnownFailures(file, src)
}
