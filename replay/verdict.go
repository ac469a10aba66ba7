package replay

import (
	"context"
	"iter"
	"slices"
	"time"

	"github.com/acp-test/acp-test/golden"
	"github.com/acp-test/acp-test/internal/lists"
	"github.com/acp-test/acp-test/rules"
	"github.com/acp-test/acp-test/scenarios/results"
	"github.com/acp-test/acp-test/transcript"
)

// Replay plays a recording once and judges the agent.
type Replay struct {
	Player
	// ID and File name the replay in results.
	ID, File string
	// Log receives the entries of the replay.
	Log *transcript.Transcript
	// Golden has the options for the compared texts, such as values to mask. Want returns the expected text; it is
	// called after the recording was played. If Want is nil, no texts are compared.
	Golden golden.Options
	Want   func() string
	// altered lists the frames that Confine changed. Both compared texts omit them.
	altered []Altered
	// AsRecorded marks findings that are already in the recording as known, so that only new findings fail the replay.
	AsRecorded bool
	Judge      Judge
	// Beside is the recorded parent folder of the workspace and its replacement. It is empty if nothing depends on that
	// folder.
	Beside [2]string
}

// Against returns the canonical text of the recording. As the value of Want, it compares a replay with its recording.
func (r *Replay) Against() string {
	o := Masked(r.Judge.Protocol, r.Recording, r.Golden)
	o.Root = r.Beside[0]
	text := r.Judge.Text.Render(r.kept(r.Recording, func(a Altered) int { return a.Recorded }), o)
	return newBinding(r.Renamed).text(text)
}

// Text returns the canonical text of the replay.
func (r *Replay) Text() string {
	o := r.Golden
	o.Work, o.Home, o.Root = r.Work, r.Home, r.Beside[1]
	return r.Judge.Text.Render(r.kept(r.Log, func(a Altered) int { return a.Sent }), o)
}

// kept yields the frames of a transcript, except altered ones. seq returns the Seq of an altered frame in that
// transcript.
func (r *Replay) kept(t *transcript.Transcript, seq func(Altered) int) iter.Seq[transcript.Entry] {
	return func(yield func(transcript.Entry) bool) {
		for e := range Frames(t) {
			altered := func(a Altered) bool { return seq(a) == e.Seq }
			if !slices.ContainsFunc(r.altered, altered) && !yield(e) {
				return
			}
		}
	}
}

// Run plays the recording and judges the agent by the rules, and by the difference from the expected text.
func (r *Replay) Run(ctx context.Context) (res results.Result) {
	began := time.Now()
	res = results.Result{ID: r.ID, File: r.File, Verdict: results.Pass, Started: began}
	checker := r.Judge.Rules.NewChecker(rules.Config{Severity: r.Judge.Severity, Start: r.Work,
		Roots: slices.Compact([]string{r.Work, r.Home})})
	r.Log.Observe(checker.Observe)
	r.Protocol = r.Judge.Protocol
	played, err := r.Play(ctx, r.Log)
	told := r.Judge.telling(r.Log, func(transcript.Entry) {})
	r.Judge.conclude(&res, r.Log, checker, rules.End{Clean: err == nil && ctx.Err() == nil}, told, TheAgent)
	res.Duration = time.Since(began)
	res.Notes = played.Missed
	for _, s := range played.Shutdowns {
		if slices.Contains(s.Steps, "SIGTERM") {
			res.Findings = append(res.Findings, results.Finding{Rule: "EXIT-EOF", Class: results.Lint,
				Requirements: []string{"STDIO-007"},
				Message:      "The agent did not end when its input was closed."})
		}
	}
	switch {
	case err != nil && ctx.Err() != nil:
		res.Verdict, res.FailureClass, res.Reason = results.Fail, results.Fail, err.Error()
		res.Failure = &transcript.Failure{Expected: []string{"an end of the replay"}, Observed: err.Error()}
	case err != nil:
		res.Verdict, res.Reason, res.NotStarted = results.Error, err.Error(), true
		return res
	}
	if r.AsRecorded {
		r.altered = played.Altered
		r.forgive(&res)
	}
	defer r.withoutTurn(&res)
	if r.Want == nil {
		res.Golden = &results.Golden{State: "off"}
		return res
	}
	res.Golden = &results.Golden{State: "match", Path: r.File, Recording: r.AsRecorded}
	if want, text := r.Want(), r.Text(); !brokenOff(r.Recording) || !golden.GoesOn(want, text) {
		res.Golden.Diff = golden.Diff(want, text)
	}
	if res.Golden.Diff != "" {
		res.Golden.State = "differs"
		res.Verdict, res.Known = results.Worst(res.Verdict, results.Fail), false
	}
	return res
}

// brokenOff reports whether a recording is incomplete, for example after a crash: it ends in the middle of a line or
// while the agent was running. Later frames of the live agent are then no difference.
func brokenOff(t *transcript.Transcript) bool {
	running := false
	for e := range t.All() {
		switch {
		case e.Source != transcript.Process:
		case e.Kind == transcript.Started:
			running = true
		case e.Kind == transcript.StdinClosed, e.Kind == transcript.Exited:
			running = false
		}
	}
	return running || t.Torn()
}

// forgive marks findings that are already in the recording as known. If nothing else failed, the result is known too.
func (r *Replay) forgive(res *results.Result) {
	then := map[[2]string]bool{}
	for _, f := range r.Judge.Check(r.ID, r.Recording).Findings {
		then[[2]string{f.Rule, f.Sub}] = true
	}
	all := res.Failure == nil
	for i, f := range res.Findings {
		res.Findings[i].Known = then[[2]string{f.Rule, f.Sub}]
		if (f.Class == results.Fail || f.Class == results.Inconclusive) && !res.Findings[i].Known {
			all = false
		}
	}
	res.Known = all && (res.Verdict == results.Fail || res.Verdict == results.Inconclusive)
}

// withoutTurn makes a pass inconclusive if the recording contains no turn, because such a replay shows nothing about
// the agent.
func (r *Replay) withoutTurn(res *results.Result) {
	for e := range r.Recording.All() {
		if _, ok := r.Judge.Protocol.Prompt(e); ok {
			return
		}
	}
	if res.Verdict == results.Pass && !brokenOff(r.Recording) {
		res.Verdict, res.Reason = results.Inconclusive, "the recording holds no turn, so its replay proves nothing: "+
			"record until the agent has answered a prompt"
	}
}

// Acts reports whether a recording contains an action of the editor: a frame, closing the agent's input, or a signal.
func Acts(t *transcript.Transcript) bool {
	return lists.Any(t.All(), func(e transcript.Entry) bool {
		return e.Source == transcript.Editor || e.Kind == transcript.StdinClosed || e.Kind == transcript.Signalled
	})
}
