package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/acp-test/acp-test/agents"
	"github.com/acp-test/acp-test/internal/printable"
	"github.com/acp-test/acp-test/mistake"
	"github.com/acp-test/acp-test/scenarios"
	"github.com/acp-test/acp-test/sweep"
)

func agentsCommand(h *host) *cobra.Command {
	var settings string
	c := command("agents", atMost(1), func(_ *cobra.Command, args []string) error {
		if len(args) == 1 {
			p, err := h.profile(args[0], settings, nil)
			if err != nil {
				return err
			}
			return h.showAgent(p)
		}
		return h.listAgents(settings)
	})
	c.ValidArgsFunction = completeAgents
	c.Flags().StringVar(&settings, "settings", "", "also take agents from an editor's settings.json `FILE`")
	return c
}

// profile returns the profile of the agent under test. --agent, --settings and the words after -- choose it.
func (h *host) profile(name, settings string, command []string) (*agents.Profile, error) {
	p, err := h.named(name, settings, command)
	if err != nil {
		return nil, err
	}
	if len(command) > 0 && p.Source != adHoc {
		p = p.WithCommand(command)
	}
	return p, nil
}

// dressed completes the ad-hoc profile p with the values of another profile of the same agent, and tells the user
// which one it used. name is that profile's name. "none" leaves p unchanged; "" selects the profile whose command
// matches the command of p.
func (h *host) dressed(p *agents.Profile, name string) (*agents.Profile, error) {
	if p.Source != adHoc {
		if name != "" {
			return nil, errors.New("--profile requires an agent command after --; --agent runs a profile's command")
		}
		return p, nil
	}
	var known *agents.Profile
	switch name {
	case "none":
		return p, nil
	case "":
		if known = agents.Recognize(p.Command); known == nil {
			return p, nil
		}
	default:
		var err error
		if known, err = agents.Find(name); err != nil {
			return nil, fmt.Errorf("--profile: %w", err)
		}
	}
	return h.dress(p, known, ""), nil
}

// dress returns the ad-hoc profile p with the environment, HOME, login and tools of the profile known, and tells the
// user. why says how known was found.
func (h *host) dress(p, known *agents.Profile, why string) *agents.Profile {
	fmt.Fprintf(h.err, "%s%s runs with the environment, HOME, login and tools of the profile %s; "+
		"--profile none leaves them out\n", p.Name, why, known.Name)
	return p.Dressed(known)
}

// greeted handles an agent whose command matches no profile. It starts the agent once and looks for a profile by the
// name in the agent's initialize response. An unknown agent that advertises providers gets its model from
// providers/set instead of a guessed environment variable.
func (h *host) greeted(ctx context.Context, e *scenarios.Engine, o *options) {
	p := e.Profile
	if p.Source != adHoc || o.profile != "" || p.IsDressed() || len(p.Command) == 0 || e.Protocol.Served || p.URL != "" {
		return
	}
	name, _, provided := e.Greeting(ctx)
	if known := agents.RecognizeInfo(name); known != nil {
		e.Profile = h.dress(p, known, fmt.Sprintf(", which calls itself %q,", name))
	} else if provided {
		e.Profile = p.Provided()
		fmt.Fprintf(h.err, "%s advertises providers: acp-test sets its model with providers/set instead of environment "+
			"variables\n", p.Name)
	}
}

const adHoc = "command line" // the source of an ad-hoc profile

func (h *host) named(name, settings string, command []string) (*agents.Profile, error) {
	switch {
	case settings != "":
		list, skipped, err := agents.Settings(settings)
		if err != nil {
			return nil, err
		}
		var names []string
		for _, p := range list {
			if p.Name == name || name == "" && len(list) == 1 {
				return p, nil
			}
			names = append(names, p.Name)
		}
		if name == "" && len(list) > 0 {
			return nil, fmt.Errorf("%s names several agents; choose one with --agent: %s", settings, strings.Join(names, ", "))
		}
		if name != "" && slices.Contains(agents.Names(), name) {
			return agents.Shipped(name)
		}
		if len(list) == 0 {
			return nil, fmt.Errorf("%s: no entry in agent_servers has a command%s", settings,
				because(skipped))
		}
		return nil, fmt.Errorf("%s has no agent %q%s%s", settings, name, mistake.Meant(name, names), because(skipped))
	case name != "":
		return agents.Find(name)
	case len(command) > 0:
		return agents.AdHoc(command), nil
	}
	return agents.Shipped("reference")
}

func because(skipped []string) string {
	if len(skipped) == 0 {
		return ""
	}
	return "; left out: " + strings.Join(skipped, "; ")
}

// sandbox returns a sandbox with only the fields that Locate needs to find a program.
func (h *host) sandbox() agents.Sandbox {
	return agents.Sandbox{Self: h.self, Cwd: h.cwd, HostEnv: h.env}
}

func (h *host) listAgents(settings string) error {
	var list []*agents.Profile
	for _, name := range agents.Names() {
		p, err := agents.Shipped(name)
		if err != nil {
			return err
		}
		list = append(list, p)
	}
	var skipped []string
	if settings != "" {
		more, left, err := agents.Settings(settings)
		if err != nil {
			return err
		}
		list, skipped = append(list, more...), left
	}
	w := tabwriter.NewWriter(h.out, 0, 0, 2, ' ', 0)
	for _, p := range list {
		fmt.Fprintf(w, "%s\t%s\t%s\n", p.Name, cell(p.Shown()), cell(h.whether(p)))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, s := range skipped {
		fmt.Fprintf(h.out, "left out: %s\n", cell(s))
	}
	return nil
}

// cell returns a text from a profile for use in a table: one line, without control sequences.
func cell(text string) string { return printable.Line(text, 1000) }

// whether returns the location of an agent's program. If the program is not installed, it says how to get it.
func (h *host) whether(p *agents.Profile) string {
	found, err := p.Locate(h.sandbox())
	var missing *agents.MissingError
	switch {
	case err == nil && found.Where == agents.InSelf:
		return string(found.Where)
	case err == nil:
		return fmt.Sprintf("%s (%s)", found.Path, found.Where)
	case errors.As(err, &missing) && missing.Fix != "":
		return "not here; " + missing.Fix
	}
	return err.Error()
}

func (h *host) showAgent(p *agents.Profile) error {
	w := tabwriter.NewWriter(h.out, 0, 0, 2, ' ', 0)
	put := func(label, text string) {
		if text != "" {
			fmt.Fprintf(w, "%s\t%s\n", label, cell(text))
		}
	}
	put("name", p.Name)
	put("title", p.Shown())
	put("profile", p.Source)
	put("command", strings.Join(p.Command, " "))
	put("url", p.URL)
	put("found", h.whether(p))
	put("set-up", strings.Join(p.Setup, " "))
	put("install", p.Install.NPM)
	put("", p.Install.Note)
	wire := cmp.Or(p.Model.Wire, "learned from its first request")
	put("model", wire)
	if p.Tools == nil {
		put("tools", "learned from its first request")
	}
	for _, neutral := range slices.Sorted(maps.Keys(p.Tools)) {
		put("tool", neutral+" = "+p.Tools[neutral].Name)
	}
	for _, of := range protocols() {
		if p.Protocol != "" && p.Protocol != of.Name {
			continue
		}
		if _, learned, version, ok := sweep.Recall(of.generator, h.calibration(of.generator, p, nil)); ok {
			put("calibration", strings.TrimSpace("of version "+version))
			for line := range strings.SplitSeq(printable.Wrap(learned, 100), "\n") {
				put("", line)
			}
		}
	}
	for _, k := range p.KnownFailures {
		put("known failure", strings.TrimPrefix(fmt.Sprintf("%s %s %s: %s", strings.Join(k.Protocols, " "), k.Scenario, k.ID,
			k.Reason), " "))
	}
	return w.Flush()
}
