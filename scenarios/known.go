package scenarios

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/acp-test/acp-test/agents"
	"github.com/acp-test/acp-test/scenarios/language"
	"github.com/acp-test/acp-test/scenarios/results"
	"github.com/acp-test/acp-test/scenarios/verdict"
)

// unclaimed returns a message in out for each golden that belongs to no scenario. With Update it removes such a
// golden; its message is then in removed.
func (e *Engine) unclaimed(all []*Scenario) (out, removed []string) {
	if e.Golden != nil && e.Complete && len(all) > 0 {
		goldens := e.goldens()
		for _, id := range e.Golden.List(goldens) {
			if !slices.ContainsFunc(all, func(s *Scenario) bool { return s.ID == id }) {
				name := goldens + "/" + id
				if e.Update && e.Golden.Remove(goldens, id) == nil {
					removed = append(removed, fmt.Sprintf("golden %s removed: it belongs to no scenario", name))
					continue
				}
				out = append(out, fmt.Sprintf("golden %s belongs to no scenario: delete it (--update does)", name))
			}
		}
	}
	return out, removed
}

// expected returns the known failures of the baseline and of the profile.
func (e *Engine) expected() []results.Expected {
	return e.expectations(e.knownFailures())
}

func (e *Engine) expectations(list []agents.KnownFailure) []results.Expected {
	var out []results.Expected
	for _, k := range list {
		out = append(out, results.Expected{Scenario: k.Scenario, ID: k.ID, Flaky: k.Flaky, Expires: k.Expires,
			Part: !e.Unfiltered && strings.ContainsAny(k.Scenario, "*?")})
	}
	return out
}

// Rebase returns a new baseline for a run. It contains the entries of e.Known that are not stale, and an entry for
// each unlisted failure. Rebase also judges the run again with that baseline. Some failures cannot be listed and
// remain: an agent that does not start, and a scenario that exceeds its deadline.
func (e *Engine) Rebase(run *results.Run) []agents.KnownFailure {
	now := time.Now()
	var list []agents.KnownFailure
	for _, k := range e.Known {
		here := e.Protocol.KnownOf(e.Profile, []agents.KnownFailure{k})
		stale := verdict.Stale(run, e.expectations(here), now)
		run.Stale = slices.DeleteFunc(run.Stale, func(s string) bool { return slices.Contains(stale, s) })
		if len(stale) == 0 {
			list = append(list, k)
		}
	}
	with := *e
	with.Known = list
	for _, k := range verdict.Unlisted(run, with.knownFailures()) {
		k.Protocols = e.ListedIn()
		list = append(list, k)
	}
	with.Known = list
	known := with.knownFailures()
	for i := range run.Results {
		r := &run.Results[i]
		verdict.Mark(r, func(ids ...string) bool { return verdict.Listed(known, r.ID, ids...) })
	}
	verdict.Add(run)
	return list
}

// unlisted reports whether the result has a failure that is not a known failure. Such a result must not update its
// golden.
func (r *run) unlisted(res *results.Result) bool {
	for _, c := range res.Checks {
		if c.Verdict == results.Fail && !r.isKnown(res.Names(c)...) {
			return true
		}
	}
	for _, f := range res.Findings {
		if f.Class == results.Fail && !r.isKnown(f.Names()...) {
			return true
		}
	}
	return res.Failure != nil || res.Verdict == results.Error
}

func (r *run) isKnown(ids ...string) bool {
	return verdict.Listed(r.engine.knownFailures(), r.scenario.ID, ids...)
}

// Expects returns the reason that the baseline or profile gives for an expected failure. names are the names of the
// failed check or finding in the scenario. ok is false if this failure is not expected.
func (e *Engine) Expects(scenario string, names ...string) (reason string, ok bool) {
	for _, k := range e.knownFailures() {
		if k.Covers(scenario, names...) && !k.Expired(time.Now()) {
			return k.Reason, true
		}
	}
	return "", false
}

// knownFailures returns the known failures of the baseline and of the profile that apply to the engine's protocol.
func (e *Engine) knownFailures() []agents.KnownFailure {
	return e.Protocol.KnownOf(e.Profile, append(slices.Clone(e.Known), e.Profile.KnownFailures...))
}

// NewRun returns an empty run with the engine's agent and settings.
func (e *Engine) NewRun() results.Run {
	p := e.Profile
	run := verdict.NewRun(e.Protocol.Version, e.Tool, e.Command, results.Agent{
		Profile: p.Name, Title: p.Shown(), Command: append(slices.Clone(p.Command), e.ExtraArgs...), Wire: p.Model.Wire,
		AdHoc: strings.HasPrefix(p.Source, "command line"),
	})
	if name := e.goldens(); name != p.Name {
		run.Agent.Goldens = name
	}
	run.Seed, run.Out = e.Seed, e.Out
	if !e.Began.IsZero() {
		run.Started = e.Began
	}
	return run
}

// GoldensOf returns the name of the folder with a profile's goldens for this protocol. It is the profile's name. If
// the profile is for another protocol, the name of this protocol follows.
func (p *Protocol) GoldensOf(of *agents.Profile) string {
	if p.own(of) {
		return of.Name
	}
	return of.Name + "-" + p.Name
}

// own reports whether a profile is for this protocol.
func (p *Protocol) own(of *agents.Profile) bool {
	return p.Name == "" || p.Name == cmp.Or(of.Protocol, language.Default)
}

// KnownOf returns those entries of a profile's known failures that apply to this protocol. An entry that lists no
// protocols applies only to the profile's own protocol. KnownOf replaces the alias of a rule by the rule's id.
func (p *Protocol) KnownOf(of *agents.Profile, list []agents.KnownFailure) (here []agents.KnownFailure) {
	for _, k := range list {
		if slices.Contains(k.Protocols, p.Name) || len(k.Protocols) == 0 && p.own(of) {
			k.ID = p.Rules.Current(k.ID)
			here = append(here, k)
		}
	}
	return here
}

// renamed returns a note with the current id of the rule for each known failure that uses an alias.
func (e *Engine) renamed() (notes []string) {
	for _, k := range append(slices.Clone(e.Known), e.Profile.KnownFailures...) {
		if now := e.Protocol.Rules.Renamed(k.ID); now != "" {
			notes = append(notes, fmt.Sprintf("known failure %s:%d: %s", k.File, k.Line, now))
		}
	}
	return notes
}

func (e *Engine) goldens() string { return e.Protocol.GoldensOf(e.Profile) }

// ListedIn returns the protocols that a new known failure of this engine must list. It returns nil if the entry can
// omit them.
func (e *Engine) ListedIn() []string {
	if e.Protocol.own(e.Profile) {
		return nil
	}
	return []string{e.Protocol.Name}
}
