package main

import (
	"cmp"
	"errors"
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
	}
	told := root.Flags().Bool("version", false, "the version of this program")
	root.RunE = func(c *cobra.Command, _ []string) error {
		if *told {
			fmt.Fprintln(h.out, tool())
			return nil
		}
		h.explain(c, true)
		return nil
	}
	root.SetHelpFunc(func(c *cobra.Command, _ []string) { h.explain(c, false) })
	root.AddCommand(
		runCommand(h), conformanceCommand(h), lintCommand(h), formatCommand(h), showCommand(h), agentsCommand(h),
		reportCommand(h), uiCommand(h), initCommand(h),
		reviewCommand(h), sweepCommand(h), exploreCommand(h), upgradeCommand(h), matrixCommand(h), promptCommand(h),
		fakellmCommand(h), refagentCommand(h), versionCommand(h),
		recordCommand(h), checkCommand(h), diffCommand(h), replayCommand(h), serveCommand(h),
		editorsCommand(h), convertRecordingCommand(h), reduceCommand(h),
	)
	root.SetHelpCommand(helpCommand(h))
	root.SetFlagErrorFunc(flagError)
	root.PersistentFlags().StringVar(&h.protocol, "protocol", "", "the protocol, by `NAME`: "+
		strings.Join(protocolNames(), ", ")+" (default that of the agent, the scenario or the recording)")
	completeWords(root, "protocol", protocolNames)
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
	where, lists := "", "acp-test help"
	if name, sub := strings.CutPrefix(c.CommandPath(), "acp-test "); sub {
		where, lists = name+": ", lists+" "+name
	} else if err := knownCommand(c, c.Flags().Args()); err != nil {
		return err
	}
	var invalid *pflag.InvalidValueError
	var lacking *pflag.ValueRequiredError
	var unknown *pflag.NotExistError
	switch {
	case errors.As(err, &invalid):
		f := invalid.GetFlag()
		return fmt.Errorf("%s--%s: %s is expected, not %q", where, f.Name, allowed(f), invalid.GetValue())
	case errors.As(err, &lacking):
		f := lacking.GetFlag()
		return fmt.Errorf("%s--%s: a value is missing: %s", where, f.Name, allowed(f))
	case !errors.As(err, &unknown):
		return fmt.Errorf("%s%w: %s lists the flags", where, err, lists)
	}
	name := unknown.GetSpecifiedName()
	if len(name) < 2 {
		return fmt.Errorf("%sthere is no flag -%s: %s lists them", where, name, lists)
	}
	var names []string
	c.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	hint := ""
	if n := mistake.Closest(name, names); n != "" {
		hint = fmt.Sprintf(" (did you mean --%s?)", n)
	}
	hint = cmp.Or(hint, ": "+lists+" lists them")
	return fmt.Errorf("%sthere is no flag --%s%s", where, name, hint)
}

// allowed says what a flag takes, by its type and else by what its usage calls it.
func allowed(f *pflag.Flag) string {
	switch kind := f.Value.Type(); kind {
	case "int", "int64":
		return "a whole number"
	case "jobs":
		return "auto or a whole number from 1"
	case "float64":
		return "a number"
	case "duration":
		return "a time such as 500ms, 30s or 2m"
	case "bool":
		return "true or false"
	}
	name, usage := pflag.UnquoteUsage(f)
	return name + " (" + usage + ")"
}

// meant is " (did you mean …?)" for the nearest of the known words.
func meant(word string, known []string) string {
	if hint := mistake.Nearest(word, known); hint != "" {
		return " (" + hint + ")"
	}
	return ""
}
