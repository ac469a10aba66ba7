package main

import (
	"time"

	"github.com/spf13/cobra"
)

// conformanceLinger is how long conformance listens for late messages of
// agents other than the reference, unless --linger says otherwise.
const conformanceLinger = 2 * time.Second

func conformanceCommand(h *host) *cobra.Command {
	o := options{judging: judging{conformance: true}}
	c := &cobra.Command{
		Use:   "conformance [-- AGENT…]",
		Short: "judges an agent by the specification: CONFORMANT or not",
		Long: `Runs the suites in this program and tells for each requirement of the
specification what was seen of it: the verdict, the evidence behind it, and the
rule or check that decided. The whole is CONFORMANT, NOT CONFORMANT (a MANDATORY
or CAPABILITY requirement is broken), or INCONCLUSIVE (a MANDATORY requirement
could not be judged, or no check of it was reached).

The exit status is 0 for CONFORMANT, 1 for the other two, and 2 if the harness
could not judge. Known failures count: a specification has no baseline. With -v
every requirement is listed.`,
		Args: cobra.ArbitraryArgs,
		RunE: o.settled(h, func(c *cobra.Command) error { return h.run(c, &o) }),
	}
	o.flags(c)
	o.smokeFlags(c)
	return c
}
