package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/acp-test/acp-test/scenarios"
)

func lintCommand(h *host) *cobra.Command {
	var suites []string
	c := &cobra.Command{
		Use:   "lint PATH…",
		Short: "looks for mistakes in scenarios, without an agent",
		Long: `Reads scenarios and says, as file:line:column, what cannot be read and what is
doubtful: checks that do not exist, gates that nobody releases, prompts that the
model could not tell apart. The exit status is 2 if there is anything to say.`,
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 && len(suites) == 0 {
				return errors.New("lint: a file or a folder with scenarios is missing; usage: acp-test lint PATH…")
			}
			p, err := (&options{choice: choice{paths: args, suites: suites}}).speaks(h)
			if err != nil {
				return err
			}
			var list []*scenarios.Scenario
			var errs []error
			if len(args) > 0 {
				l, err := p.Load(args...)
				list, errs = append(list, l...), append(errs, err)
			}
			if len(suites) > 0 {
				l, err := p.Shipped(suites...)
				list, errs = append(list, l...), append(errs, err)
			}
			said := 0
			if err := errors.Join(errs...); err != nil {
				fmt.Fprintln(h.out, err)
				said++
			}
			for _, s := range list {
				for _, m := range p.Review(s) {
					fmt.Fprintln(h.out, m)
					said++
				}
			}
			if said > 0 {
				return status(2)
			}
			fmt.Fprintln(h.out, well(len(list)))
			return nil
		},
	}
	c.Flags().StringSliceVar(&suites, "suite", nil, "a suite in this program, by `NAME` (repeatable)")
	return c
}

func well(n int) string {
	if n == 1 {
		return "1 scenario is well"
	}
	return fmt.Sprintf("%d scenarios are well", n)
}
