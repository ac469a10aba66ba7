package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/acp-test/acp-test/internal/lists"
	"github.com/acp-test/acp-test/internal/printable"
	"github.com/acp-test/acp-test/protocol/acp/invariants"
	"github.com/acp-test/acp-test/sabotage"
	"github.com/acp-test/acp-test/scenarios"
	"github.com/acp-test/acp-test/scenarios/results"
	"github.com/acp-test/acp-test/transcript"
)

// sabotageFlag holds the name of a mutation; "" means no mutation.
type sabotageFlag struct {
	name string
	*sabotage.Saboteur
}

func (f *sabotageFlag) flag(c *cobra.Command, usage string) {
	c.Flags().StringVar(&f.name, "sabotage", "", usage)
	completeWords(c, "sabotage", sabotage.Names)
}

// find looks up the mutation by its name.
func (f *sabotageFlag) find() error {
	if f.name == "" {
		return nil
	}
	m, err := sabotage.Find(f.name)
	if err != nil {
		return fmt.Errorf("--sabotage: %w", err)
	}
	f.Saboteur = &sabotage.Saboteur{Mutation: m}
	return nil
}

// through makes an engine apply the mutation to its runs. The engine then ignores goldens, because the mutation would
// make each differ.
func (f *sabotageFlag) through(e *scenarios.Engine) error {
	switch err := f.find(); {
	case err != nil || f.Saboteur == nil:
		return err
	case e.Profile.URL != "" || e.Protocol.Served:
		return fmt.Errorf("--sabotage %s requires an agent on stdio, and %s is reached over a network", f.Name,
			e.Profile.Shown())
	case e.Update || e.GoldenRequired:
		return errors.New("--sabotage: goldens need the unchanged agent; leave out --update and --golden-required")
	}
	e.Through, e.Golden = f.Between, nil
	return nil
}

// conclude adds a note on the effect of the mutation. If no message was changed, a passing run becomes inconclusive.
func (f *sabotageFlag) conclude(run *results.Run) {
	if f.Saboteur == nil {
		return
	}
	messages, connections := f.Acted()
	if messages == 0 {
		run.Notes = append(run.Notes, fmt.Sprintf("sabotage %s was not applied: no message matches it", f.Name))
		if run.Exit == 0 {
			run.Verdict, run.Exit = results.Inconclusive, 2
		}
		return
	}
	run.Notes = append(run.Notes, fmt.Sprintf("sabotage %s: %s on %s; %s", f.Name,
		printable.Plural(messages, "message was changed", "messages were changed"),
		printable.Plural(connections, "connection", "connections"), wrongWith(f.Mutation)))
}

// wrongWith returns the requirement that a mutation breaks, or a phrase that it breaks none.
func wrongWith(m sabotage.Mutation) string {
	switch {
	case m.Legal:
		return "it is legal"
	case m.Breaks != "":
		return "it breaks " + m.Breaks
	}
	return "the specification does not cover it, but it hurts users"
}

// sabotaged applies the mutation to a recording and judges the result. Without a mutation it judges the recording
// unchanged. The caller must have called find.
func (h *host) sabotaged(f *sabotageFlag, name string, in io.Reader, severity string) (results.Result,
	*transcript.Transcript, protocol, error) {
	if f.Saboteur == nil {
		return h.checkedSession(name, in, severity)
	}
	if f.Live {
		return results.Result{}, nil, protocol{}, fmt.Errorf("--sabotage %s cannot change a recording: the agent "+
			"would have acted differently; use acp-test run --sabotage %[1]s -- AGENT", f.Name)
	}
	was, of, err := h.session(in)
	if err != nil {
		return results.Result{}, nil, of, err
	}
	defer was.Close()
	t, err := f.Transcript(was, of.Protocol.Classifier)
	if err != nil {
		return results.Result{}, nil, of, err
	}
	return of.judge(severity).Check(name, t), t, of, nil
}

// sabotagePage returns the reference page of the mutations.
func sabotagePage() string {
	return page("sabotage") + lists.Text(sabotage.All(), func(m sabotage.Mutation) string {
		breaks := m.Breaks
		if q, ok := invariants.V1().Requirement(m.Breaks); ok {
			breaks = fmt.Sprintf("[%s](requirements.md#%s) (%s)", q.ID, strings.ToLower(q.ID), strings.ToUpper(q.Level))
		}
		if m.Legal {
			breaks = "nothing"
		}
		return row("`"+m.Name+"`", m.Summary, breaks, map[bool]string{true: "held"}[m.Held])
	})
}

// sabotageHelp returns the list of mutations for help.
func sabotageHelp() string {
	width := 0
	for _, name := range sabotage.Names() {
		width = max(width, len(name))
	}
	return "The changes that --sabotage NAME makes to messages. A FILE may define other changes.\n\n" +
		lists.Text(sabotage.All(), func(m sabotage.Mutation) string {
			return fmt.Sprintf("%-*s  %s (%s)\n", width, m.Name, m.Summary, wrongWith(m))
		})
}
