package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/acp-test/acp-test/agents"
	"github.com/acp-test/acp-test/mistake"
	"github.com/acp-test/acp-test/protocol/acp/invariants"
)

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

// checkPairs returns an error if a value of a flag is not K=V.
func checkPairs(flag string, values []string) error {
	for _, kv := range values {
		if k, _, ok := strings.Cut(kv, "="); !ok || k == "" {
			return fmt.Errorf("%s %q: K=V is expected", flag, kv)
		}
	}
	return nil
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
