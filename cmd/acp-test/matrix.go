package main

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/acp-test/acp-test/agents"
	"github.com/acp-test/acp-test/editors/personas"
	"github.com/acp-test/acp-test/internal/lists"
	"github.com/acp-test/acp-test/reports"
	"github.com/acp-test/acp-test/scenarios"
	"github.com/acp-test/acp-test/scenarios/results"
)

// Tags of the scenarios in a matrix. A matrix runs scenarios with twiceTag twice, to show which fields differ by
// chance.
const (
	matrixTag = "matrix"
	twiceTag  = "twice"
)

func matrixCommand(h *host) *cobra.Command {
	o := options{course: course{repeat: 1, seed: 1}, judging: judging{severity: "v1"}}
	var also []string
	c := command("matrix", cobra.ArbitraryArgs, func(c *cobra.Command, args []string) error {
		if err := o.check(c); err != nil {
			return err
		}
		return h.matrix(c, &o, append(args, also...))
	})
	c.ValidArgsFunction = completeAgents
	f := c.Flags()
	f.SortFlags = false
	f.StringSliceVar(&also, "agent", nil, "one more AGENT, by the `NAME` or file of its profile (repeatable)")
	_ = c.RegisterFlagCompletionFunc("agent", completeAgents)
	f.StringSliceVar(&o.tags, "tag", []string{matrixTag},
		"the scenarios with one of these tags; !`TAG` excludes a tag (repeatable)")
	f.StringVar(&o.match, "run", "", "of these scenarios, only those whose id matches `REGEXP`")
	o.jobs.flag(f)
	o.timeouts(f)
	f.StringVar(&o.fault, "fault", "", "give the reference agent the deliberate fault `NAME`")
	f.BoolVar(&o.noTrap, "no-trap", false,
		"let the agents reach other machines (default: a proxy refuses and reports requests that use HTTP_PROXY)")
	f.StringVar(&o.editor, "editor", "",
		"play a known editor, by its `NAME` in acp-test help personas, or all of them with all")
	o.isolation(f)
	f.StringVar(&o.out, "out", "acp-test-matrix", "the folder for the table and the results of each agent, `DIR`")
	completeWords(c, "fault", faultNames)
	return c
}

func (h *host) matrix(c *cobra.Command, o *options, names []string) error {
	names, err := h.beside(names)
	if err != nil {
		return err
	}
	o.agent = names[0]
	chosen, err := o.selection(h)
	if err != nil {
		return err
	}
	out := h.freeOut(o.out)
	release, err := h.prepareOut(out)
	if err != nil {
		return err
	}
	defer release()
	var columns []reports.Column
	worst := 0
	ran := false
	beside := underEditors(names, o.editor)
	for i, one := range beside {
		mine := *o
		mine.agent, mine.editor = one.agent, one.editor
		column, err := h.column(c, &mine, chosen, fmt.Sprintf("%d of %d", i+1, len(beside)))
		if err != nil {
			return err
		}
		if slices.ContainsFunc(columns, func(x reports.Column) bool { return x.Name == column.Name }) {
			return fmt.Errorf("two agents are named %s", column.Name)
		}
		columns = append(columns, column)
		if c.Context().Err() != nil {
			return errors.New("interrupted")
		}
		ran = ran || column.Absent == ""
		switch n := column.Run; {
		case n.Counts.Error > 0:
			worst = 2
		case n.Verdict == results.Fail:
			worst = max(worst, 1)
		}
	}
	m := reports.NewMatrix(chosen.of.reports, columns)
	for format, file := range map[string]string{"markdown": "matrix.md", "html": "matrix.html"} {
		err = errors.Join(err, writeFile(filepath.Join(out, file),
			func(w io.Writer) error { return reports.WriteMatrix(format, m, w) }))
	}
	if err := errors.Join(err, reports.WriteMatrix("text", m, h.out)); err != nil {
		return err
	}
	if !ran {
		worst = 2
	}
	return ended(worst)
}

// column runs one agent and returns its column of the matrix.
func (h *host) column(c *cobra.Command, o *options, chosen selection, place string) (reports.Column, error) {
	p, err := h.profile(o.agent, "", nil)
	if err != nil {
		return reports.Column{}, err
	}
	title := p.Name
	if o.editor != "" {
		title += "-under-" + o.editor
	}
	column := reports.Column{Name: title, Known: chosen.of.KnownOf(p, p.KnownFailures), Omit: p.Normalize.Omit,
		Chance: append(slices.Clone(p.Normalize.Values), p.Normalize.Without...)}
	if _, err := p.Locate(h.sandbox()); err != nil {
		column.Absent = err.Error()
		fmt.Fprintf(h.err, "%s: %s: %s\n", place, p.Name, h.whether(p))
		return column, nil
	}
	if o.fault != "" && p.Name != chosen.of.reference {
		o.fault = ""
	}
	o.out = filepath.Join(o.out, title)
	e, err := h.engine(c, o, chosen)
	if err != nil {
		return column, err
	}
	if err := h.ready(c.Context(), e); err != nil {
		return column, err
	}
	e.Golden = nil // a matrix ignores goldens
	began := time.Now()
	fmt.Fprintf(h.err, "%s: %s runs %d scenarios\n", place, title, len(chosen.list))
	again := rerunIn(o, h.protocol)
	column.Run = e.RunAll(c.Context(), chosen.list, scenarios.Plan{Jobs: int(o.jobs)})
	for i := range column.Run.Results {
		column.Run.Results[i].Rerun = again(column.Run.Results[i].ID)
	}
	twice := lists.Where(chosen.list, func(s *scenarios.Scenario) bool { return slices.Contains(s.Tags, twiceTag) })
	if len(twice) > 0 {
		second := *e
		second.Out = filepath.Join(e.Out, "again")
		column.Again = second.RunAll(c.Context(), twice, scenarios.Plan{Jobs: int(o.jobs)})
	}
	fmt.Fprintf(h.err, "%s: %s is done after %v\n", place, title, time.Since(began).Truncate(time.Second))
	return column, h.writeReports(column.Run, e.Out, nil)
}

// underEditors pairs each agent with the named editor, or with every known editor if editor is "all".
func underEditors(agents []string, editor string) (all []subject) {
	editors := []string{editor}
	if editor == "all" {
		editors = personas.Names()
	}
	for _, agent := range agents {
		for _, editor := range editors {
			all = append(all, subject{agent, editor})
		}
	}
	return all
}

// subject is an agent, and the editor that it runs under; "" is the usual editor.
type subject struct{ agent, editor string }

// beside returns the agents of a matrix: those in names or, if names is empty, all profiles of the protocol.
func (h *host) beside(names []string) ([]string, error) {
	of, err := protocolNamed(h.protocol)
	if err != nil {
		return nil, err
	}
	if len(names) == 0 {
		return slices.DeleteFunc(agents.Names(), func(name string) bool { return spokenBy(name) != of.Name }), nil
	}
	for _, name := range names {
		if _, err := agents.Find(name); err != nil {
			return nil, err
		}
		if its := spokenBy(name); h.protocol == "" && its != spokenBy(names[0]) {
			return nil, fmt.Errorf("%s speaks %s, and %s speaks %s: a matrix has one protocol; choose with --protocol",
				names[0], spokenBy(names[0]), name, its)
		}
	}
	return names, nil
}

// spokenBy returns the protocol of an agent's profile. It returns ACP version 1 if there is no such profile or the
// profile names no protocol.
func spokenBy(agent string) string {
	if p, err := agents.Find(agent); err == nil && p.Protocol != "" {
		return p.Protocol
	}
	return acpV1().Name
}

// rerunIn returns a function that returns the command line to rerun one scenario of a matrix.
func rerunIn(o *options, protocol string) func(id string) string {
	words := []string{"acp-test", "run", "--agent", o.agent}
	if protocol != "" {
		words = append(words, "--protocol", protocol)
	}
	if o.fault != "" {
		words = append(words, "--fault", o.fault)
	}
	if o.editor != "" {
		words = append(words, "--editor", o.editor)
	}
	words = slices.Clip(words)
	return func(id string) string {
		return quoted(append(words, "--run", "^"+regexp.QuoteMeta(id)+"$"))
	}
}
