package results

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"time"
)

// Run is the outcome of one command: all that reports need. It is plain data
// and round-trips through JSON.
type Run struct {
	// Version is the version of this form; see docs/schema/results.schema.json.
	Version int `json:"version"`
	// Tool is name and version of this program.
	Tool string `json:"tool"`
	// Command is the command line, as a user would type it again.
	Command string `json:"command"`
	// Agent is the profile the scenarios ran with.
	Agent    Agent         `json:"agent"`
	Protocol string        `json:"protocol"`
	Seed     int64         `json:"seed"`
	Started  time.Time     `json:"started"`
	Duration time.Duration `json:"duration_ns"`
	Out      string        `json:"out,omitempty"`
	// Strict: an inconclusive scenario makes the exit status 1.
	Strict bool `json:"strict,omitempty"`
	// Recorded: sessions of others were judged, not run, so that nothing is wrong
	// with the harness where the log proves nothing.
	Recorded bool `json:"-"`
	// Interrupted: the run was stopped before all scenarios ran.
	Interrupted bool `json:"interrupted,omitempty"`
	// LeftOut are scenarios, by id, for which a budget had no time.
	LeftOut []string `json:"left_out,omitempty"`
	// Left are processes of agents that could not be killed.
	Left  []string `json:"left,omitempty"`
	Shard *Shard   `json:"shard,omitempty"`
	// NoModel says what to do where no scenario reached the model server; then what
	// needs a model is inconclusive, and the exit status 2.
	NoModel string   `json:"no_model,omitempty"`
	Verdict Verdict  `json:"verdict"`
	Counts  Counts   `json:"counts"`
	Exit    int      `json:"exit"`
	Results []Result `json:"results"`
	// Causes are what is wrong, each once, those that matter most first.
	Causes []Cause `json:"causes,omitempty"`
	// Flaky lists the scenarios that passed in some repeats only.
	Flaky []Flaky `json:"flaky,omitempty"`
	// Differences are the scenarios that a perturbation made come out
	// differently, passed or not.
	Differences []Difference `json:"differences,omitempty"`
	// Against is what changed since an earlier run, if one was named.
	Against *Against `json:"against,omitempty"`
	// Stale lists goldens no scenario has, and known failures that no longer
	// fail. Each makes the exit status 1.
	Stale []string `json:"stale,omitempty"`
	// Notes are sentences for the reader: what to do next, what was new.
	Notes []string `json:"notes,omitempty"`
	// Conformance is filled by the conformance command.
	Conformance *Conformance `json:"conformance,omitempty"`
	// Sweep is filled by the sweep command.
	Sweep *Sweep `json:"sweep,omitempty"`
}

// Agent identifies what was tested.
type Agent struct {
	Profile string `json:"profile"`
	// Goldens is the folder of its goldens, where that is not named as the profile.
	Goldens string   `json:"goldens,omitempty"`
	Title   string   `json:"title,omitempty"`
	Command []string `json:"command"`
	// Name and Version are what the agent said of itself in initialize.
	Name    string `json:"name,omitempty"`
	Version string `json:"version,omitempty"`
	Wire    string `json:"wire,omitempty"`
	AdHoc   bool   `json:"ad_hoc,omitempty"`
}

// String returns the agent's profile, or the name that it gave itself, and its version: "recording" if neither is
// known, as where a recording is judged.
func (a Agent) String() string {
	return strings.TrimSpace(cmp.Or(a.Profile, a.Name, "recording") + " " + a.Version)
}

// Counts of scenarios by verdict.
type Counts struct {
	Total        int `json:"total"`
	Pass         int `json:"pass"`
	Apart        int `json:"apart,omitempty"` // passed apart from what is wrong everywhere; not in Pass, Fail or Known
	Fail         int `json:"fail"`
	Known        int `json:"known"` // failed as known-failures says; not in Fail
	Skip         int `json:"skip"`
	Inconclusive int `json:"inconclusive"`
	Error        int `json:"error"`
	Flaky        int `json:"flaky"`
	NewGoldens   int `json:"new_goldens"`
	Warnings     int `json:"warnings"` // findings and checks of class warn
	Lints        int `json:"lints"`
}

// Add counts a result n times: a negative n takes it out again.
func (c *Counts) Add(r *Result, n int) {
	c.Total += n
	switch {
	case r.Apart:
		c.Apart += n
	case r.Known:
		c.Known += n
	case r.Verdict == Pass:
		c.Pass += n
	case r.Verdict == Fail:
		c.Fail += n
	case r.Verdict == Skip:
		c.Skip += n
	case r.Verdict == Inconclusive:
		c.Inconclusive += n
	case r.Verdict == Error:
		c.Error += n
	}
}

// Flaky is a scenario whose repeats did not agree: it passed Passed of Of times.
type Flaky struct {
	ID     string `json:"id"`
	Passed int    `json:"passed"`
	Of     int    `json:"of"`
}

// Shard says which part of a run this is, and what the parts need to become
// one run again.
type Shard struct {
	Index int    `json:"index"` // from 1
	Of    int    `json:"of"`
	Hash  string `json:"hash"` // of the list of all scenarios
	// List are the ids of the scenarios of all parts, in the order in which one
	// run would have had them.
	List []string `json:"list"`
	// Expected are the known failures. Whether one is stale shows only when all
	// parts are there.
	Expected []Expected `json:"expected,omitempty"`
	// Unclaimed are sentences about goldens that no scenario has.
	Unclaimed []string `json:"unclaimed,omitempty"`
}

// Expected is a known failure, as far as it must be known to tell whether it is
// stale.
type Expected struct {
	Scenario string    `json:"scenario"` // a glob
	ID       string    `json:"id"`       // of a check or a rule
	Flaky    bool      `json:"flaky,omitempty"`
	Expires  time.Time `json:"expires,omitzero"`
	Part     bool      `json:"part,omitempty"` // not all of what the glob selects was to run
}

// Against is what changed since an earlier run.
type Against struct {
	// Run says which run it was: agent, version and time.
	Run     string   `json:"run"`
	Changes []Change `json:"changes,omitempty"`
}

// Change is one difference between two runs of a scenario.
type Change struct {
	ID string `json:"id"` // of the scenario
	// What changed: "verdict", "check", "rule", "text", or "scenario" where one
	// of the runs did not have it.
	What string `json:"what"`
	// Name is the slug of the check or the id of the rule.
	Name string `json:"name,omitempty"`
	// Was and Is are verdicts; "" where there was, or is, none.
	Was Verdict `json:"was,omitempty"`
	Is  Verdict `json:"is,omitempty"`
	// Diff is the difference of the canonical texts.
	Diff string `json:"diff,omitempty"`
}

// Difference is a scenario that did not come out the same in two rounds.
type Difference struct {
	ID string `json:"id"`
	// Rounds are the first and the first that differs from it.
	Rounds   [2]int     `json:"rounds"`
	Verdicts [2]Verdict `json:"verdicts"`
	// How is what the second round did differently.
	How []string `json:"how,omitempty"`
	// Explanation is the normaliser or the race that makes the difference.
	Explanation string `json:"explanation"`
	// Rows are the two transcripts side by side around each difference; rows
	// of "…" stand for what is the same.
	Rows [][2]string `json:"rows,omitempty"`
	// Times is in how many rounds it differed from the first.
	Times int `json:"times"`
}

// HashOf identifies a list of scenarios by their ids, so that shards can tell whether they
// belong to one run.
func HashOf(ids []string) string {
	h := sha256.New()
	for _, id := range ids {
		fmt.Fprintln(h, id)
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// Cause is one thing that is wrong, wherever it was seen: what breaks one point of a
// rule, and the checks of the same requirement that miss beside it, are one cause.
type Cause struct {
	// ID is the rule with its point, else the requirement, else the check, else "golden"
	// or nothing.
	ID string `json:"id,omitempty"`
	// Class is the worst with which it was seen.
	Class        Verdict  `json:"class"`
	Title        string   `json:"title"` // one sentence
	Requirements []string `json:"requirements,omitempty"`
	Citation     string   `json:"citation,omitempty"`
	// Known: it is a known failure in each of the Scenarios.
	Known bool `json:"known,omitempty"`
	// Everywhere: at least half of the scenarios show it, so that it stands for itself.
	Everywhere bool `json:"everywhere,omitempty"`
	// Scenarios are those that show it, the one with the fewest frames first.
	Scenarios []string `json:"scenarios"`
}

// Conformance is the requirement table with its verdict.
type Conformance struct {
	Verdict string `json:"verdict"` // CONFORMANT, NOT CONFORMANT, INCONCLUSIVE
	// Because are the requirements that decided the verdict, and what failed without
	// one: a check, a rule, or a scenario before its first check.
	Because      []string             `json:"because,omitempty"`
	Requirements []RequirementOutcome `json:"requirements"`
}

// RequirementOutcome is one line of the requirement table.
type RequirementOutcome struct {
	ID       string  `json:"id"`
	Tier     string  `json:"tier"`
	Level    string  `json:"level"`
	TCK      string  `json:"tck,omitempty"`
	Verdict  Verdict `json:"verdict"`
	Evidence int     `json:"evidence"`
	// Excluded: no test can show it broken; Reason says why.
	Excluded bool     `json:"excluded,omitempty"`
	Reason   string   `json:"reason,omitempty"`
	Checks   []string `json:"checks,omitempty"`
	Rules    []string `json:"rules,omitempty"`
}
