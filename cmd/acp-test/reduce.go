package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/acp-test/acp-test/internal/lists"
	"github.com/acp-test/acp-test/protocol/acp/recordings"
	"github.com/acp-test/acp-test/scenarios"
	"github.com/acp-test/acp-test/scenarios/results"
	"github.com/acp-test/acp-test/scenarios/script"
	"github.com/acp-test/acp-test/sweep"
	"github.com/acp-test/acp-test/transcript"
)

// reducing holds the flags of reduce.
type reducing struct {
	options
	cause, to, issue, llm string // to is the file for the result
	budget                time.Duration
	confirm               int
	trust                 []string
}

func reduceCommand(h *host) *cobra.Command {
	var o reducing
	c := command("reduce", oneBeforeAgent("recording"), func(c *cobra.Command, args []string) error {
		o.complete(c, args, config{})
		if o.budget <= 0 || o.confirm < 1 {
			return errors.New("reduce: --budget and --confirm must be more than 0")
		}
		return h.reduce(c, &o)
	})
	f := c.Flags()
	f.SortFlags = false
	o.target.of(c)
	f.StringVar(&o.cause, "cause", "", "the `RULE` that the result must break, or the slug of a check")
	f.StringVar(&o.to, "out", "reduced.txtar", "write the scenario to `FILE`")
	f.StringVar(&o.issue, "issue", "", "write a bug report to `FILE`")
	f.StringVar(&o.llm, "llm", "", "the model's script, a `FILE`")
	f.StringArrayVar(&o.trust, "trust", nil,
		"give the agent the variables, settings and paths that the recording `FILE` names")
	f.DurationVar(&o.budget, "budget", 4*time.Minute, "time limit for the reduction")
	f.IntVar(&o.confirm, "confirm", 5, "how many times a result is run to confirm it")
	o.jobs.flag(f)
	o.target.environment(f, "")
	o.severities(c)
	f.BoolVarP(&o.quiet, "quiet", "q", false, "show no progress")
	return c
}

func (h *host) reduce(c *cobra.Command, o *reducing) error {
	if err := checkSeverity(o.severity); err != nil {
		return err
	}
	file := o.paths[0]
	of, text, cause, err := h.toReduce(o, file)
	if err != nil {
		return err
	}
	cause = cmp.Or(o.cause, cause)
	temp, err := os.MkdirTemp("", "acp-test-reduce-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temp)
	o.out = temp
	engine, err := h.engine(c, &o.options, selection{of: of})
	if err != nil {
		return err
	}
	if err := h.ready(c.Context(), engine); err != nil {
		return err
	}
	r := sweep.Reduction{Engine: engine, Jobs: int(o.jobs), Cause: cause, Confirm: o.confirm, Budget: o.budget}
	began := time.Now()
	console := h.console(&o.options, 0)
	r.Progress = func(lines, tries int) {
		console.Phase("reduce", 0, 0, fmt.Sprintf("%d lines left, %d scripts tried", lines, tries))
	}
	made, err := r.Run(c.Context(), text)
	console.Close()
	var missing *sweep.NotShownError
	switch {
	case errors.As(err, &missing):
		fmt.Fprintf(h.err, "acp-test: %s: %v; it may be a race: try again, or change --cause\n", file, err)
		return status(1)
	case err != nil && (made.Lines == 0 || !errors.Is(err, context.Canceled)):
		return fmt.Errorf("%s: %w", file, err)
	}
	return h.reduced(o, of, engine, made, began)
}

// toReduce returns the scenario to reduce, its protocol, and the rule that the agent broke in the recording. The rule
// is "" if the agent broke none, or if file is a scenario instead of a recording.
func (h *host) toReduce(o *reducing, file string) (of protocol, text []byte, cause string, err error) {
	if strings.HasSuffix(file, ".txtar") {
		if of, err = o.speaks(h); err == nil {
			text, err = os.ReadFile(file)
		}
		return of, text, "", err
	}
	t, of, err := h.recordingOf(file)
	if err != nil {
		return of, nil, "", err
	}
	if !of.Served {
		trusted, err := trusts(o.paths[:1], o.trust)
		if err != nil {
			return of, nil, "", err
		}
		if trusted[filepath.Clean(file)] {
			h.announce(file, t)
		} else if err := distrust(file, t); err != nil {
			return of, nil, "", err
		}
	}
	for _, f := range of.judge(o.severity).Check(file, t).Findings {
		if f.Class == results.Fail && !strings.HasPrefix(f.Rule, "C-") {
			cause = f.Rule
			break
		}
	}
	model, err := modelOf(file, o.llm)
	if err != nil {
		return of, nil, "", err
	}
	if of.hasModel(t) && o.llm == "" {
		model = nil // the recording's own script also marks where the editor acted
	}
	made, err := of.convert(t, "Reduced.", model)
	if err != nil {
		return of, nil, "", fmt.Errorf("%s: %w", file, err)
	}
	h.omitted(made.Left)
	text = of.relaxed(made.Text)
	if cause == "" {
		text = recordings.Awaited(text)
	}
	return of, text, cause, nil
}

// reduced writes the reduced scenario and prints a summary.
func (h *host) reduced(o *reducing, of protocol, e *scenarios.Engine, made sweep.Reduced, began time.Time) error {
	finding := findingOf(made)
	again := []string{"acp-test", "run", o.to}
	if o.agent != "" {
		again = append(again, "--agent", o.agent)
	}
	if o.fault != "" {
		again = append(again, "--fault", o.fault)
	}
	if len(o.command) > 0 {
		again = append(append(again, "--"), o.command...)
	}
	head := []*script.Line{
		script.NewComment(fmt.Sprintf("%s: %s", made.Cause, oneLine(finding.Message))),
		script.NewComment(e.Secrets.Text("Run: " + quoted(again))),
		{Kind: script.Blank},
	}
	a := made.Script
	a.Lines = slices.Concat(head, slices.DeleteFunc(slices.Clone(a.Lines),
		func(l *script.Line) bool { return l.Kind == script.Comment }))
	clean := func(b []byte) []byte { return []byte(e.Secrets.Text(string(b))) }
	if err := os.WriteFile(o.to, clean(a.Text()), 0o644); err != nil {
		return err
	}
	if o.issue != "" {
		text, err := h.issue(o, of, made, finding, a.Text(), quoted(again))
		if err == nil {
			err = os.WriteFile(o.issue, clean(text), 0o644)
		}
		if err != nil {
			return fmt.Errorf("--issue: %w", err)
		}
	}
	fmt.Fprintf(h.out, "%s: %s\n", made.Cause, oneLine(finding.Message))
	fmt.Fprintf(h.out, "%s: %d of %d lines are left; fails in %d of %d runs; took %s\n", o.to, made.Lines,
		made.Before, made.Hits, made.Runs, time.Since(began).Round(time.Second))
	fmt.Fprintf(h.out, "run it: %s\n", e.Secrets.Text(quoted(again)))
	return nil
}

// findingOf returns the finding that the reduced scenario reproduces.
func findingOf(made sweep.Reduced) results.Finding {
	shows := func(f results.Finding) bool { return f.Rule == made.Cause }
	if f, ok := lists.Find(made.Result.Findings, shows); ok {
		return f
	}
	f := results.Finding{Rule: made.Cause, Message: made.Result.Reason}
	for _, check := range made.Result.Checks {
		if check.Failure != nil && f.Message == "" {
			f.Message = "expected " + strings.Join(check.Failure.Expected, " or ") + ", got " + check.Failure.Observed
			f.Requirements = check.Requirements
		}
	}
	return f
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// issue returns the text of a bug report.
func (h *host) issue(o *reducing, of protocol, made sweep.Reduced, f results.Finding, scenario []byte,
	run string) ([]byte, error) {
	var b bytes.Buffer
	fmt.Fprintf(&b, "# %s\n\n", oneLine(f.Message))
	fmt.Fprintf(&b, "## Steps\n\nRun this scenario, which fails in %d of %d runs:\n\n```\n%s```\n\n", made.Hits,
		made.Runs, scenario)
	fmt.Fprintf(&b, "Run it with `%s`.\n\n## Expected\n\n", run)
	for _, id := range f.Requirements {
		if q, ok := of.Rules.Requirement(id); ok {
			fmt.Fprintf(&b, "%s: %s (%s)\n\n", id, q.Statement, q.Cite)
		}
	}
	if r, ok := of.Rules.Rule(made.Cause); ok {
		fmt.Fprintf(&b, "%s: %s\n\n", r.ID, r.Sentence)
	}
	fmt.Fprintf(&b, "## Observed\n\n%s\n\n", f.Message)
	if len(f.Tail) > 0 {
		fmt.Fprintf(&b, "```\n%s\n```\n\n", strings.Join(f.Tail, "\n"))
	}
	fmt.Fprintf(&b, "## Versions\n\n- agent: %s %s\n- %s\n- %s/%s\n\n", made.Result.AgentName,
		made.Result.AgentVersion, tool(), runtime.GOOS, runtime.GOARCH)
	name := filepath.Join(o.out, filepath.FromSlash(made.Result.Artifacts["transcript"]))
	in, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	t, err := transcript.Load(in, of.Classifier)
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(&b, "## Transcript\n\n```\n%s```\n", of.judge("").Canonical(t))
	return b.Bytes(), nil
}
