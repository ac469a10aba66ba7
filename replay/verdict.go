package replay

import (
	"context"
	"slices"
	"time"

	"github.com/acp-test/acp-test/golden"
	"github.com/acp-test/acp-test/rules"
	"github.com/acp-test/acp-test/scenarios"
	"github.com/acp-test/acp-test/transcript"
)

// Replay is one replay of one recording, with a verdict.
type Replay struct {
	Player
	// ID and File name it in results.
	ID, File string
	// Log takes what happens.
	Log *transcript.Transcript
	// Golden is what the replay is compared with: its options mask what is
	// volatile. Want is the text wanted; nil compares with nothing.
	Golden golden.Options
	Want   *string
	// Severity names a set of severities of package rules.
	Severity string
}

// Against is the canonical text of the recording, for Want.
func (r *Replay) Against() *string {
	o := r.Golden
	o.Work, o.Home = directories(r.Recording)
	text := golden.Render(Frames(r.Recording), o)
	return &text
}

// Text is the canonical text of what happened in the replay.
func (r *Replay) Text() string {
	o := r.Golden
	o.Work, o.Home = r.Work, r.Home
	return golden.Render(Frames(r.Log), o)
}

// Run plays the recording and judges the agent: by the rules, and by how it
// differs from what is wanted.
func (r *Replay) Run(ctx context.Context) scenarios.Result {
	began := time.Now()
	res := scenarios.Result{ID: r.ID, File: r.File, Verdict: scenarios.Pass, Started: began}
	checker := rules.NewChecker(rules.Config{Severity: r.Severity, Start: r.Work, Roots: slices.Compact([]string{r.Work, r.Home})})
	r.Log.Observe(checker.Observe)
	played, err := r.Play(ctx, r.Log)
	conclude(&res, r.Log, checker, rules.End{Clean: err == nil && ctx.Err() == nil}, TheAgent)
	res.Duration = time.Since(began)
	res.Notes = played.Missed
	for _, s := range played.Shutdowns {
		if slices.Contains(s.Steps, "SIGTERM") {
			res.Findings = append(res.Findings, scenarios.Finding{Rule: "EXIT-EOF", Class: scenarios.Lint, Requirements: []string{"STDIO-007"},
				Message: "The agent did not end when its input was closed."})
		}
	}
	switch {
	case err != nil && ctx.Err() != nil:
		res.Verdict, res.Reason = scenarios.Fail, err.Error()
		res.Failure = &transcript.Failure{Expected: []string{"an end of the replay"}, Observed: err.Error()}
	case err != nil:
		res.Verdict, res.Reason, res.NotStarted = scenarios.Error, err.Error(), true
		return res
	}
	if r.Want == nil {
		res.Golden = &scenarios.Golden{State: "off"}
		return res
	}
	res.Golden = &scenarios.Golden{State: "match", Path: r.File, Diff: golden.Diff(*r.Want, r.Text())}
	if res.Golden.Diff != "" {
		res.Golden.State = "differs"
		res.Verdict = scenarios.Worst(res.Verdict, scenarios.Fail)
	}
	return res
}
