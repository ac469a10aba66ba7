package scenarios

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/acp-test/acp-test/scenarios/results"
)

// shares reports whether scenarios may share processes of the agent: they are to have
// the same network and command line, and nobody wants to look at one process alone.
func (e *Engine) shares() bool {
	return e.Share && e.Connect == nil && e.Profile.URL == "" && !e.Isolate && !e.Debug && !e.Keep && !e.Update
}

// Run runs one scenario once. It always returns a result; when ctx ends, what
// has not happened is missing from it, and Reason says so.
func (e *Engine) Run(ctx context.Context, s *Scenario) results.Result {
	res := e.play(ctx, s)
	if e.AskMode == "" || res.Verdict != results.Skip || !strings.HasPrefix(res.Reason, tookTurn) || ctx.Err() != nil {
		return res
	}
	own := *e
	own.AskMode, own.startMode, own.pool, own.Golden = "", e.AskMode, nil, nil
	again := own.play(ctx, s)
	if again.Verdict == results.Skip {
		return res
	}
	again.Duration += res.Duration
	again.Notes = append(again.Notes, "played in the mode "+e.AskMode+", in which the agent asks: "+res.Reason+
		" in the mode in which sessions begin")
	return again
}

// tookTurn begins the reason of a scenario that is skipped since the agent did not do what it may.
const tookTurn = "the agent took its turn without "

// play plays a scenario in the mode in which sessions begin.
func (e *Engine) play(ctx context.Context, s *Scenario) results.Result {
	e = e.withDefaults()
	if e.pool == nil || s.Alone != "" || len(e.Perturb.How) > 0 {
		own := *e
		own.pool = nil
		return own.attempt(ctx, s)
	}
	use := &sharer{pool: e.pool}
	own := *e
	own.share = use
	res := own.attempt(ctx, s)
	if use.worker != nil {
		res.Shared = &results.Sharing{Process: use.worker.number, Nth: len(use.after) + 1}
	}
	if ctx.Err() != nil || settled(&res) || res.Verdict == results.Skip && e.pool.skipsAlone(res.Reason, false) {
		return res
	}
	own.share = nil
	kept := own.keepShared(s)
	again := own.attempt(ctx, s)
	again.Duration += res.Duration
	if again.Verdict == results.Skip {
		e.pool.skipsAlone(again.Reason, true)
	}
	if kept != nil {
		again.Notes = append(again.Notes, kept.Error())
	}
	if res.Shared != nil {
		compareShared(&again, &res, use.after)
	}
	return again
}

// settled reports whether a verdict stands that came of a shared process: the agent
// did as it should, or failed as is known, or there is nothing that another scenario
// could have brought about.
func settled(r *results.Result) bool {
	switch {
	case r.Shared == nil: // it came to no process
		return r.Verdict == results.Skip
	case r.Known, r.NotStarted:
		return true
	case r.Verdict == results.Skip && (r.Shared.Nth == 1 || !r.Reached && !r.Unreached):
	case r.Verdict != results.Pass:
		return false
	}
	warns := func(v results.Verdict) bool { return v > results.Lint && v != results.Skip }
	return !slices.ContainsFunc(r.Findings, func(f results.Finding) bool { return warns(f.Class) && !f.Known }) &&
		!slices.ContainsFunc(r.Checks, func(c results.Check) bool { return warns(c.Verdict) && !c.Known && !c.NotReached })
}

// compareShared notes in the result of a run alone what came of the same scenario in a
// shared process, and makes a finding of it where only that one failed.
func compareShared(r, shared *results.Result, after []string) {
	at := *shared.Shared
	at.Verdict, at.Reason, at.After = shared.Verdict, shared.Summary(), after
	r.Shared = &at
	if shared.Broken() && r.Verdict == results.Pass && !r.Broken() && len(after) > 0 {
		r.Findings = append(r.Findings, results.Finding{Rule: results.AfterOthersRule, Class: results.Lint,
			Message: fmt.Sprintf("It fails in a process that ran %s before, and passes alone: %s",
				scenariosRun(len(after)), at.Reason)})
	}
}

// leakTries bounds how often a scenario runs again to find which of those before it
// matter, and leaksTraced for how many scenarios that is asked.
const (
	leakTries   = 40
	leaksTraced = 5
)

// leakTime is how long all of that may take: a scenario may fail by waiting.
var leakTime = time.Minute

// keepShared keeps what a run in a shared process left on the disk, under other names.
func (e *Engine) keepShared(s *Scenario) error {
	if e.Folder == nil {
		return nil
	}
	var errs []error
	for _, name := range []string{"transcript.jsonl", "stderr.txt"} {
		at := filepath.Join(e.below, filepath.FromSlash(s.ID))
		err := e.Folder.Rename(filepath.Join(at, name), filepath.Join(at, "shared-"+name))
		if !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
