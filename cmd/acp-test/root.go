package main

import (
	"fmt"
	"strings"

	"github.com/acp-test/acp-test/mistake"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

const about = `acp-test tests implementations of the Agent Client Protocol (ACP): it plays a
code editor to an agent, with a scripted model behind it, and judges what the
agent does.

  acp-test run                       the suites, against the reference agent
  acp-test run -- ./my-agent --acp   the suites, against yours
  acp-test help scenario             how to write a scenario`

func rootCommand(h *host) *cobra.Command {
	root := &cobra.Command{
		Use:           "acp-test",
		Short:         "tests agents and editors of the Agent Client Protocol",
		Long:          about,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          knownCommand,
		RunE:          func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	root.AddCommand(
		runCommand(h), conformanceCommand(h), lintCommand(h), formatCommand(h), showCommand(h), agentsCommand(h),
		reportCommand(h), initCommand(h),
		sweepCommand(h), matrixCommand(h), promptCommand(h), fakellmCommand(h), refagentCommand(h), versionCommand(h),
	)
	root.AddCommand(recordingCommands(h)...)
	root.SetHelpCommand(helpCommand(h))
	root.SetFlagErrorFunc(flagError)
	root.PersistentFlags().BoolP("help", "h", false, "what the command does and its flags")
	return root
}

// knownCommand refuses a word that is no command.
func knownCommand(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	var names []string
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() {
			names = append(names, sub.Name())
		}
	}
	return fmt.Errorf("there is no command %q%s: acp-test help lists them", args[0], meant(args[0], names))
}

// flagError says what is wrong with a flag, and which was meant.
func flagError(c *cobra.Command, err error) error {
	where := strings.TrimPrefix(c.CommandPath(), "acp-test ")
	var unknown *pflag.NotExistError
	if e, ok := err.(*pflag.NotExistError); ok {
		unknown = e
	}
	if unknown == nil {
		return fmt.Errorf("%s: %w", where, err)
	}
	name := unknown.GetSpecifiedName()
	if len(name) < 2 {
		return fmt.Errorf("%s: there is no flag -%s: acp-test help %s lists them", where, name, where)
	}
	var names []string
	c.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	hint := ""
	if n := mistake.Closest(name, names); n != "" {
		hint = fmt.Sprintf(" (did you mean --%s?)", n)
	}
	return fmt.Errorf("%s: there is no flag --%s%s", where, name, hint)
}

// meant is " (did you mean …?)" for the nearest of the known words.
func meant(word string, known []string) string {
	if hint := mistake.Nearest(word, known); hint != "" {
		return " (" + hint + ")"
	}
	return ""
}
