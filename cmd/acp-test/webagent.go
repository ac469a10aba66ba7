package main

import (
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/acp-test/acp-test/refagent/webagent"
)

// webAgent serves the reference agent of AG-UI, or lists how it can differ.
func (h *host) webAgent(c *cobra.Command, listen, fault string, liberty []string, faults, liberties bool) error {
	if faults || liberties {
		w := tabwriter.NewWriter(h.out, 0, 0, 2, ' ', 0)
		if faults {
			for _, f := range webagent.Faults() {
				fmt.Fprintf(w, "%s\t%s\n", f.Name, f.Summary)
			}
		} else {
			for _, l := range webagent.Liberties() {
				fmt.Fprintf(w, "%s\t%s\n", l.Name, l.Summary)
			}
		}
		return w.Flush()
	}
	o := webagent.Options{Listen: listen, Out: h.out, Log: h.err, Dir: h.cwd, Getenv: func(name string) string {
		v, _ := h.getenv(name)
		return v
	}}
	if err := o.Take(fault, liberty); err != nil {
		return err
	}
	return webagent.Serve(c.Context(), o)
}
