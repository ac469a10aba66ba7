package scenarios

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"time"
)

// Sharing says that a scenario ran in a process of the agent that ran others before
// or after it.
type Sharing struct {
	// Process counts the processes of the run from 1, Nth the scenarios of one.
	Process int `json:"process"`
	Nth     int `json:"nth"`
	// Verdict is what came of it there, if it did not pass. It then ran again alone,
	// and the rest of the result is from that run. Reason says why, in one line.
	Verdict Verdict `json:"verdict,omitempty"`
	Reason  string  `json:"reason,omitempty"`
	// After are the scenarios that ran before it in that process, in order.
	After []string `json:"after,omitempty"`
}

// AfterOthersRule is the rule of findings that show only in a process which has run
// other scenarios.
const AfterOthersRule = "AFTER-OTHERS"

// shares reports whether scenarios may share processes of the agent: they are to have
// the same network and command line, and nobody wants to look at one process alone.
func (e *Engine) shares() bool {
	return e.Share && e.Connect == nil && e.Profile.URL == "" && !e.Isolate && !e.Debug && !e.Keep && !e.Update
}

// Run runs one scenario once. It always returns a result; when ctx ends, what
// has not happened is missing from it, and Reason says so.
func (e *Engine) Run(ctx context.Context, s *Scenario) Result {
	e = e.withDefaults()
	if e.pool == nil || s.alone != "" || len(e.Perturb.How) > 0 {
		own := *e
		own.pool = nil
		return own.attempt(ctx, s)
	}
	use := &sharer{pool: e.pool}
	own := *e
	own.share = use
	res := own.attempt(ctx, s)
	if use.worker != nil {
		res.Shared = &Sharing{Process: use.worker.number, Nth: len(use.after) + 1}
	}
	if ctx.Err() != nil || settled(&res) || res.Verdict == Skip && e.pool.skipsAlone(res.Reason, false) {
		return res
	}
	own.share = nil
	kept := own.keepShared(s)
	again := own.attempt(ctx, s)
	again.Duration += res.Duration
	if again.Verdict == Skip {
		e.pool.skipsAlone(again.Reason, true)
	}
	if kept != nil {
		again.Notes = append(again.Notes, kept.Error())
	}
	if res.Shared != nil {
		again.compareShared(&res, use.after)
	}
	return again
}

// settled reports whether a verdict stands that came of a shared process: the agent
// did as it should, or failed as is known, or there is nothing that another scenario
// could have brought about.
func settled(r *Result) bool {
	switch {
	case r.Shared == nil: // it came to no process
		return r.Verdict == Skip
	case r.Known, r.NotStarted:
		return true
	case r.Verdict == Skip && (r.Shared.Nth == 1 || !r.reached && !r.unreached):
	case r.Verdict != Pass:
		return false
	}
	warns := func(v Verdict) bool { return severer(v, Lint) && v != Skip }
	return !slices.ContainsFunc(r.Findings, func(f Finding) bool { return warns(f.Class) && !f.Known }) &&
		!slices.ContainsFunc(r.Checks, func(c Check) bool { return warns(c.Verdict) && !c.Known && !c.NotReached })
}

// compareShared notes in the result of a run alone what came of the same scenario in a
// shared process, and makes a finding of it where only that one failed.
func (r *Result) compareShared(shared *Result, after []string) {
	at := *shared.Shared
	at.Verdict, at.Reason, at.After = shared.Verdict, shared.summary(), after
	r.Shared = &at
	if shared.broken() && r.Verdict == Pass && !r.broken() && len(after) > 0 {
		r.Findings = append(r.Findings, Finding{Rule: AfterOthersRule, Class: Lint, Message: fmt.Sprintf(
			"It fails in a process that ran %s before, and passes alone: %s", scenariosRun(len(after)), at.Reason)})
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

// broken reports whether something failed or is to be warned of, apart from a golden.
func (r *Result) broken() bool {
	bad := func(v Verdict) bool { return v == Fail || v == Warn }
	return r.FailureClass == Fail ||
		slices.ContainsFunc(r.Findings, func(f Finding) bool { return bad(f.Class) && !f.Known }) ||
		slices.ContainsFunc(r.Checks, func(c Check) bool { return bad(c.Verdict) && !c.Known })
}

// summary says in one line what is worst about a result.
func (r *Result) summary() string {
	for _, c := range r.Checks {
		if c.Verdict == Fail && c.Failure != nil {
			return c.ID + ": " + c.Failure.Error()
		}
	}
	for _, f := range r.Findings {
		if f.Class == Fail || f.Class == Warn {
			return f.Rule + ": " + f.Message
		}
	}
	switch {
	case r.Failure != nil:
		return r.Failure.Error()
	case r.Golden != nil && r.Golden.State == "differs":
		return "it differs from its golden"
	}
	return cmp.Or(r.Reason, string(r.Verdict))
}

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
