package main

import (
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/acp-test/acp-test/refagent"
	"github.com/acp-test/acp-test/refagent/faults"
	"github.com/acp-test/acp-test/refagent/liberties"
	"github.com/acp-test/acp-test/refagent/second"
)

func refagentCommand(h *host) *cobra.Command {
	var fault string
	var liberty []string
	var list, free bool
	var listen string
	var next bool
	c := &cobra.Command{
		Use:   "refagent",
		Short: "the reference agent itself, on stdin and stdout",
		Long: fmt.Sprintf(`Serves one editor on stdin and stdout, as an agent of any editor does. The model
is reached with %s and %s; the model's name is in
%s. With --ag-ui it is a server of AG-UI instead, at
an address such as 127.0.0.1:0, and says at which URL.`, refagent.EnvBaseURL, refagent.EnvAPIKey, refagent.EnvModel),
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if listen != "" || c.Flags().Changed("ag-ui") {
				return h.webAgent(c, listen, fault, liberty, list, free)
			}
			if next {
				return h.secondAgent(c, fault, liberty, list, free)
			}
			if list {
				return h.listFaults()
			}
			if free {
				return h.listLiberties()
			}
			hooks, err := hooksOf(fault)
			if err != nil {
				return err
			}
			taken, err := libertiesOf(liberty)
			if err != nil {
				return err
			}
			err = refagent.Run(c.Context(), refagent.Options{
				In: h.in, Out: h.out, Log: h.err, Hooks: hooks, Habits: liberties.Habits(taken),
				Getenv: func(name string) string {
					v, _ := h.getenv(name)
					return v
				},
			})
			if err != nil {
				return fmt.Errorf("refagent: %w", err)
			}
			return nil
		},
	}
	c.Flags().StringVar(&listen, "ag-ui", "", "serve AG-UI over HTTP at `HOST:PORT`")
	c.Flags().BoolVar(&next, "second", false, "--fault, --liberty and the lists are those of version 2 of ACP")
	c.Flags().StringVar(&fault, "fault", "", "with one deliberate fault, by `NAME`")
	c.Flags().BoolVar(&list, "faults", false, "list the faults")
	c.Flags().StringSliceVar(&liberty, "liberty", nil, "with what another correct agent does, by `NAME` (repeatable)")
	c.Flags().BoolVar(&free, "liberties", false, "list the liberties")
	completeWords(c, "fault", faultNames)
	completeWords(c, "liberty", libertyNames)
	return c
}

func faultNames() []string {
	var names []string
	for _, f := range faults.All() {
		names = append(names, f.Name)
	}
	return names
}

// hooksOf is what a fault changes; nothing for "".
func hooksOf(fault string) (refagent.Hooks, error) {
	if fault == "" {
		return refagent.Hooks{}, nil
	}
	f, ok := faults.Find(fault)
	if !ok {
		return refagent.Hooks{}, fmt.Errorf("--fault: there is no fault %q%s: acp-test refagent --faults lists them", fault,
			meant(fault, faultNames()))
	}
	return f.Hooks(), nil
}

func (h *host) listFaults() error {
	w := tabwriter.NewWriter(h.out, 0, 0, 2, ' ', 0)
	for _, f := range faults.All() {
		fmt.Fprintf(w, "%s\t%s\n", f.Name, f.Summary)
	}
	return w.Flush()
}

func libertyNames() []string {
	var names []string
	for _, l := range liberties.All() {
		names = append(names, l.Name)
	}
	return names
}

// libertiesOf finds liberties by their names.
func libertiesOf(names []string) ([]liberties.Liberty, error) {
	var list []liberties.Liberty
	for _, name := range names {
		l, ok := liberties.Find(name)
		if !ok {
			return nil, fmt.Errorf("--liberty: there is no liberty %q%s: acp-test refagent --liberties lists them", name,
				meant(name, libertyNames()))
		}
		list = append(list, l)
	}
	return list, nil
}

func (h *host) listLiberties() error {
	w := tabwriter.NewWriter(h.out, 0, 0, 2, ' ', 0)
	for _, l := range liberties.All() {
		fmt.Fprintf(w, "%s\t%s\n", l.Name, l.Summary)
	}
	return w.Flush()
}

// secondAgent serves with a fault or liberties of version 2 of ACP, or lists them.
func (h *host) secondAgent(c *cobra.Command, fault string, liberty []string, list, free bool) error {
	w := tabwriter.NewWriter(h.out, 0, 0, 2, ' ', 0)
	switch {
	case list:
		for _, f := range second.Faults() {
			fmt.Fprintf(w, "%s\t%s\t%s\n", f.Name, f.Breaks, f.Summary)
		}
		return w.Flush()
	case free:
		for _, l := range second.Liberties() {
			fmt.Fprintf(w, "%s\t%s\t%s\n", l.Name, l.Allows, l.Summary)
		}
		return w.Flush()
	}
	o := refagent.Options{In: h.in, Out: h.out, Log: h.err, Getenv: func(name string) string {
		v, _ := h.getenv(name)
		return v
	}}
	if err := second.Take(&o, fault, liberty); err != nil {
		return err
	}
	if err := refagent.Run(c.Context(), o); err != nil {
		return fmt.Errorf("refagent: %w", err)
	}
	return nil
}
