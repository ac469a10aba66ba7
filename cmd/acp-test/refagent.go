package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/acp-test/acp-test/mistake"
	"github.com/acp-test/acp-test/protocol/acp/recordings"
	"github.com/acp-test/acp-test/refagent"
	"github.com/acp-test/acp-test/refagent/faults"
	"github.com/acp-test/acp-test/refagent/liberties"
	"github.com/acp-test/acp-test/refagent/mutation"
	"github.com/acp-test/acp-test/refagent/netagent"
	"github.com/acp-test/acp-test/refagent/webagent"
	"github.com/acp-test/acp-test/replay"
	"github.com/acp-test/acp-test/serve/obedient"
	"github.com/acp-test/acp-test/transcript"
)

// reference holds the flags of the refagent command.
type reference struct {
	protocol, fault, web, listen string
	as                           string // the real agent to imitate: a name in this program, or a recording
	liberties                    []string
	listFaults, listHabits       bool
	login                        bool // store a key and exit
}

func refagentCommand(h *host) *cobra.Command {
	var a reference
	var second bool
	c := command("refagent", atMost(0), func(c *cobra.Command, _ []string) error {
		a.protocol = cmp.Or(h.protocol, faults.ACPv1)
		if second {
			a.protocol = faults.ACPv2
		}
		if c.Flags().Changed("ag-ui") {
			a.protocol = faults.AGUI
		}
		if err := oneOf("--protocol", "protocol", a.protocol, protocolNames()); err != nil {
			return err
		}
		if a.as != "" && (a.fault != "" || a.protocol == faults.AGUI) {
			return errors.New("--as cannot be used with --fault or AG-UI")
		}
		if a.listFaults || a.listHabits {
			return h.listDifferences(a)
		}
		return h.referenceAgent(c, a)
	})
	c.Flags().StringVar(&a.listen, "listen", "", "serve ACP over HTTP and WebSocket at `HOST:PORT`")
	c.Flags().StringVar(&a.web, "ag-ui", "", "serve AG-UI over HTTP at `HOST:PORT`")
	c.Flags().BoolVar(&second, "second", false, "the former name of --protocol acp-v2")
	_ = c.Flags().MarkHidden("second") // the flag exists
	c.Flags().StringVar(&a.fault, "fault", "", "run with one deliberate fault, by `NAME`")
	c.Flags().BoolVar(&a.listFaults, "faults", false, "list the faults")
	c.Flags().StringSliceVar(&a.liberties, "liberty", nil, "with a legal habit of other agents, by `NAME` (repeatable)")
	c.Flags().BoolVar(&a.listHabits, "liberties", false, "list the liberties")
	c.Flags().StringVar(&a.as, "as", "",
		"imitate the name and behavior of a real agent, by the `NAME` of its profile or from a "+
			"recording: "+strings.Join(obedient.Agents(), ", "))
	c.Flags().BoolVar(&a.login, "login", false,
		"read a key from the terminal and store it, then exit: the login that the agent offers")
	_ = c.Flags().MarkHidden("login") // the flag exists
	completeWords(c, "fault", faultNames)
	completeWords(c, "liberty", libertyNames)
	return c
}

// referenceAgent serves clients until the input ends or the command is interrupted.
func (h *host) referenceAgent(c *cobra.Command, a reference) error {
	var ways []string // faults and liberties of the server, not of the agent
	if a.listen != "" {
		ways = a.ways()
	}
	if err := differs(a.protocol, a.fault, a.liberties); err != nil {
		return err
	}
	f, broken := faults.Find(a.protocol, a.fault)
	taken, _ := liberties.Find(a.protocol, a.liberties...)
	if a.as != "" {
		guise, err := h.guise(a.as)
		if err != nil {
			return err
		}
		// A real agent's behavior may override the rules of the reference agent, as a fault does. A liberty may not.
		f, broken = faults.Fault{Mutation: guise.Mutation}, true
		guise.Mutation = &mutation.Mutation{}
		taken = append(taken, guise)
	}
	getenv := func(name string) string {
		v, _ := h.getenv(name)
		return v
	}
	if a.protocol == faults.AGUI {
		o := webagent.Options{Listen: a.web, Out: h.out, Log: h.err, Dir: h.cwd, Getenv: getenv,
			Habits: liberties.Web(taken)}
		if broken {
			o.Hooks = f.Web()
		}
		return webagent.Serve(c.Context(), o)
	}
	o := refagent.Options{Log: h.err, Getenv: getenv, Habits: liberties.Habits(taken)}
	serve := func(ctx context.Context, in io.Reader, out io.Writer) error {
		one := o
		one.In, one.Out = in, out
		if broken {
			one.Hooks = f.Hooks() // each connection needs its own hooks
		}
		return refagent.Run(ctx, one)
	}
	var err error
	if a.login {
		o.In, o.Out = h.in, h.out
		if broken {
			o.Hooks = f.Hooks()
		}
		err = refagent.LogIn(o)
	} else if a.listen != "" {
		err = netagent.Serve(c.Context(), netagent.Options{Listen: a.listen, Out: h.out, Log: h.err, Agent: serve, Ways: ways,
			Tokens: strings.FieldsFunc(getenv(envTokens), func(r rune) bool { return r == ',' })})
	} else {
		err = serve(c.Context(), h.in, h.out)
	}
	if err != nil {
		return fmt.Errorf("refagent: %w", err)
	}
	return nil
}

// ways moves the fault and the liberties of a network server out of a, and returns their names. Those of an agent
// stay in a.
func (a *reference) ways() (names []string) {
	if f, ok := faults.Find(faults.Network, a.fault); ok {
		names, a.fault = append(names, f.Name), ""
	}
	a.liberties = slices.DeleteFunc(slices.Clone(a.liberties), func(name string) bool {
		_, unknown := liberties.Find(faults.Network, name)
		if unknown == "" {
			names = append(names, name)
		}
		return unknown == ""
	})
	return names
}

// guise returns a liberty that gives the reference agent the name and the behavior of a real agent.
func (h *host) guise(name string) (liberties.Liberty, error) {
	recording, err := h.guised(name)
	if err != nil {
		return liberties.Liberty{}, err
	}
	text, err := recordings.Guise(recording)
	if err != nil {
		return liberties.Liberty{}, fmt.Errorf("--as %s: %w", name, err)
	}
	one, err := liberties.Parse(name, text)
	if err != nil {
		return liberties.Liberty{}, fmt.Errorf("--as: %w", err)
	}
	return one[0], nil
}

// guised returns the recording of a real agent. name is an agent whose recording this program contains, or a file.
func (h *host) guised(name string) (*transcript.Transcript, error) {
	if in := obedient.Recording(name); in != nil {
		return replay.Read(recordings.V1(), bytes.NewReader(in), nil)
	}
	if !exists(name, false) {
		return nil, fmt.Errorf("--as: %q is neither a file nor a recorded agent%s; expected one of %s", name,
			mistake.Meant(name, obedient.Agents()), strings.Join(obedient.Agents(), ", "))
	}
	t, _, err := h.recordingOf(name)
	return t, err
}

// envTokens is the environment variable with the bearer tokens that a server accepts, separated by commas.
const envTokens = "ACP_TEST_REFAGENT_TOKENS"

// differs returns an error if the protocol's reference agent has no such fault or liberty.
func differs(protocol, fault string, names []string) error {
	lists := "acp-test refagent"
	if protocol != faults.ACPv1 {
		lists += " --protocol " + protocol
	}
	if _, ok := faults.Find(protocol, fault); !ok && fault != "" {
		return fmt.Errorf("--fault: there is no fault %q%s: %s --faults lists them", fault,
			mistake.Meant(fault, namesOf(faults.All(protocol))), lists)
	}
	if _, unknown := liberties.Find(protocol, names...); unknown != "" {
		return fmt.Errorf("--liberty: there is no liberty %q%s: %s --liberties lists them", unknown,
			mistake.Meant(unknown, namesOf(liberties.All(protocol))), lists)
	}
	return nil
}

// named is a fault or a liberty. Line returns the parts of its line in a list.
type named interface {
	Line() (name, requirement, summary string)
}

func namesOf[T named](list []T) (names []string) {
	for _, one := range list {
		name, _, _ := one.Line()
		names = append(names, name)
	}
	return names
}

func faultNames() []string   { return namesOf(faults.All(faults.ACPv1)) }
func libertyNames() []string { return namesOf(liberties.All(faults.ACPv1)) }

// listDifferences prints the faults or the liberties of a protocol's reference agent.
func (h *host) listDifferences(a reference) error {
	w := tabwriter.NewWriter(h.out, 0, 0, 2, ' ', 0)
	line := func(one named) {
		name, requirement, summary := one.Line()
		if a.protocol == faults.ACPv2 {
			summary = requirement + "\t" + summary
		}
		fmt.Fprintf(w, "%s\t%s\n", name, summary)
	}
	protocols := []string{a.protocol}
	if a.protocol != faults.AGUI {
		protocols = append(protocols, faults.Network)
	}
	for _, protocol := range protocols {
		if a.listFaults {
			for _, f := range faults.All(protocol) {
				line(f)
			}
			continue
		}
		for _, l := range liberties.All(protocol) {
			line(l)
		}
	}
	return w.Flush()
}
