package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/acp-test/acp-test/protocol/acp"
	"github.com/acp-test/acp-test/protocol/acp/acpreport"
	"github.com/acp-test/acp-test/scenarios"
	"github.com/acp-test/acp-test/scenarios/results"
	"github.com/acp-test/acp-test/transcript"
)

func upgradeCommand(h *host) *cobra.Command {
	var o options
	var to string
	c := command("upgrade", cobra.ArbitraryArgs, func(c *cobra.Command, args []string) error {
		typed, _ := atDash(c, args)
		o.conformance = true // run only the suites
		if err := o.settle(h, c, args); err != nil {
			return err
		}
		if h.protocol != "" || len(typed) > 0 {
			return errors.New("upgrade always runs all suites in both versions: leave out --protocol and paths")
		}
		return h.upgrade(c, &o, to)
	})
	o.flags(c)
	f := c.Flags()
	f.StringVar(&to, "to", "-", "write the checklist to `FILE`, - is stdout")
	f.Lookup("out").DefValue, o.out = "acp-test-upgrade", "acp-test-upgrade"
	for _, flag := range []string{"repeat", "until-fail", "fail-fast", "watch", "list", "update", "golden",
		"golden-required", "debug", "shard",
		"baseline", "baseline-write", "against", "report", "fault", "liberty", "verbose"} {
		_ = f.MarkHidden(flag) // flags of run that do not apply here
	}
	return c
}

func (h *host) upgrade(c *cobra.Command, o *options, to string) error {
	v1, v2 := acp.V1(), acp.V2()
	u := acpreport.Upgrade{Rules: v2.Rules}
	var err error
	if u.V1, err = h.inVersion(c, *o, v1); err != nil {
		return err
	}
	if u.V2, err = h.inVersion(c, *o, v2); err != nil {
		return err
	}
	was := toldIn(v1, u.V1, func(id string, t *transcript.Transcript) { u.Habits = acpreport.Seen(u.Habits, id, t) })
	is := toldIn(v2, u.V2, func(string, *transcript.Transcript) {})
	for _, r := range u.V2.Results {
		before, both := was[r.ID]
		if now, ok := is[r.ID]; ok && both && before != now {
			u.Differences = append(u.Differences, acpreport.Difference{Scenario: r.ID, V1: before, V2: now})
		}
	}
	if len(was)+len(is) == 0 && !u.Speaks() {
		why := "nothing was run"
		for _, r := range u.V1.Results[:min(len(u.V1.Results), 1)] {
			why = r.Reason
			if r.Failure != nil {
				why = r.Failure.Observed
			}
		}
		return fmt.Errorf("upgrade: no scenario judged the agent in either version: %s; see acp-test run", why)
	}
	u.Habits = slices.DeleteFunc(u.Habits, func(b acpreport.Broken) bool { return b.Count == 0 })
	if to == "-" {
		err = u.Markdown(h.out)
	} else {
		err = writeFile(to, u.Markdown)
	}
	if err == nil && (!u.Speaks() || len(u.Missing()) > 0 || len(u.Differences) > 0) {
		return status(1)
	}
	return err
}

// toldIn returns a summary of the agent's messages and actions in each scenario of a run, by scenario id. It calls
// see with each transcript, including those of skipped scenarios.
func toldIn(p *scenarios.Protocol, run results.Run, see func(id string, t *transcript.Transcript)) map[string]string {
	told := map[string]string{}
	for _, r := range run.Results {
		t, effects, err := evidenceOf(p, run, r)
		if err != nil || r.NotStarted {
			continue // there is no evidence for this result
		}
		see(r.ID, t)
		if r.Verdict != results.Skip { // a skipped scenario did not reach the tested behavior
			told[r.ID] = strings.Join(acpreport.Told(p, t), "; ") + effects
		}
	}
	return told
}

// inVersion runs the suites in one version of the protocol, without output, and returns the results.
func (h *host) inVersion(c *cobra.Command, o options, p *scenarios.Protocol) (results.Run, error) {
	o.out, o.noSmoke, o.quiet = filepath.Join(o.out, p.Name), true, true
	o.reports = []string{"json=" + filepath.Join(o.out, "results.json")}
	out := h.out
	h.protocol, h.out = p.Name, io.Discard
	err := h.once(c, &o, nil)
	h.protocol, h.out = "", out
	var failed status
	if err != nil && !errors.As(err, &failed) {
		return results.Run{}, fmt.Errorf("in %s: %w", p.Name, err)
	}
	run, err := readResults(filepath.Join(o.out, "results.json"))
	run.Out = o.out
	return run, err
}

// evidenceOf returns the transcript of a result, and its list of changed files as text.
func evidenceOf(p *scenarios.Protocol, run results.Run, r results.Result) (*transcript.Transcript, string, error) {
	in, err := os.Open(filepath.Join(run.Out, filepath.FromSlash(r.Artifacts["transcript"])))
	if err != nil {
		return nil, "", err
	}
	defer in.Close()
	t, err := transcript.Load(in, p.Classifier)
	if err != nil || r.Artifacts["workspace"] == "" {
		return t, "", err
	}
	diff, err := os.ReadFile(filepath.Join(run.Out, filepath.FromSlash(r.Artifacts["workspace"])))
	return t, changed(string(diff)), err
}

// changed returns the lines that name files in a diff of workspaces.
func changed(diff string) (text string) {
	for line := range strings.Lines(diff) {
		for _, what := range []string{"new file ", "changed ", "deleted "} {
			if strings.HasPrefix(line, what) {
				text += "; " + strings.TrimSpace(line)
			}
		}
	}
	return text
}
