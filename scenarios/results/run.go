package results

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"time"
)

// Run is the outcome of one command, with everything that reports need. It is plain data and round-trips through JSON.
type Run struct {
	// Version is the version of the results format; see docs/schema/results.schema.json.
	Version int `json:"version"`
	// Tool is the name and version of this program.
	Tool string `json:"tool"`
	// Command is the command line that repeats the run.
	Command string `json:"command"`
	// Agent describes the tested agent and its profile.
	Agent    Agent         `json:"agent"`
	Protocol string        `json:"protocol"`
	Seed     int64         `json:"seed"`
	Started  time.Time     `json:"started"`
	Duration time.Duration `json:"duration_ns"`
	Out      string        `json:"out,omitempty"`
	// Strict means that an inconclusive scenario makes the exit status 1.
	Strict bool `json:"strict,omitempty"`
	// Recorded means that recordings were judged instead of running scenarios. An inconclusive recording is then not a
	// fault of the harness.
	Recorded bool `json:"-"`
	// Interrupted means that the run was stopped before all scenarios had run.
	Interrupted bool `json:"interrupted,omitempty"`
	// LeftOut lists the ids of scenarios for which the budget left no time.
	LeftOut []string `json:"left_out,omitempty"`
	// Left lists agent processes that could not be killed.
	Left  []string `json:"left,omitempty"`
	Shard *Shard   `json:"shard,omitempty"`
	// NoModel is advice for the user if no scenario reached the model server, or "" if one did. Without a model,
	// scenarios that need one are inconclusive, and the exit status is 2.
	NoModel string   `json:"no_model,omitempty"`
	Verdict Verdict  `json:"verdict"`
	Counts  Counts   `json:"counts"`
	Exit    int      `json:"exit"`
	Results []Result `json:"results"`
	// Causes lists each cause of failures once, the most important first.
	Causes []Cause `json:"causes,omitempty"`
	// Flaky lists the scenarios that passed in some repeats but not in all.
	Flaky []Flaky `json:"flaky,omitempty"`
	// Differences lists the scenarios whose result changed under a perturbation, even if they passed.
	Differences []Difference `json:"differences,omitempty"`
	// Against has the changes since an earlier run, or is nil without such a run.
	Against *Against `json:"against,omitempty"`
	// Stale has messages about goldens without a scenario and known failures that no longer fail. If there are any, the
	// exit status is 1.
	Stale []string `json:"stale,omitempty"`
	// Notes are sentences for the reader, for example about what to do next.
	Notes []string `json:"notes,omitempty"`
	// Conformance is set by the command conformance, else nil.
	Conformance *Conformance `json:"conformance,omitempty"`
	// Sweep is set by the command sweep, else nil.
	Sweep *Sweep `json:"sweep,omitempty"`
}

// Agent identifies the tested agent.
type Agent struct {
	Profile string `json:"profile"`
	// Goldens is the name of the folder with the agent's goldens, if it differs from Profile.
	Goldens string   `json:"goldens,omitempty"`
	Title   string   `json:"title,omitempty"`
	Command []string `json:"command"`
	// Name and Version are the agent's own name and version, from initialize.
	Name    string `json:"name,omitempty"`
	Version string `json:"version,omitempty"`
	Wire    string `json:"wire,omitempty"`
	AdHoc   bool   `json:"ad_hoc,omitempty"`
}

// String returns the agent's profile or, without a profile, the agent's own name, followed by its version. If neither
// is known, as for some recordings, it returns "recording".
func (a Agent) String() string {
	return strings.TrimSpace(cmp.Or(a.Profile, a.Name, "recording") + " " + a.Version)
}

// Counts is the number of scenarios per verdict.
type Counts struct {
	Total        int `json:"total"`
	Pass         int `json:"pass"`
	Apart        int `json:"apart,omitempty"` // failed only by causes marked Everywhere; not in Pass, Fail or Known
	Fail         int `json:"fail"`
	Known        int `json:"known"` // all failures are known; not in Fail
	Skip         int `json:"skip"`
	Inconclusive int `json:"inconclusive"`
	Error        int `json:"error"`
	Flaky        int `json:"flaky"`
	NewGoldens   int `json:"new_goldens"`
	Warnings     int `json:"warnings"` // findings and checks of class warn
	Lints        int `json:"lints"`
}

// Add adds a result n times. A negative n removes it.
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

// Flaky is a scenario that passed in only some of its repeats.
type Flaky struct {
	ID     string `json:"id"`
	Passed int    `json:"passed"`
	Of     int    `json:"of"`
}

// Shard identifies one part of a run. It also has the data that Merge needs to join the parts.
type Shard struct {
	Index int    `json:"index"` // from 1
	Of    int    `json:"of"`
	Hash  string `json:"hash"` // hash of the list of all scenarios
	// List has the ids of the scenarios of all parts, in the order of a run that is not split.
	List []string `json:"list"`
	// Expected lists the known failures. Only after merging all parts is it clear which are stale.
	Expected []Expected `json:"expected,omitempty"`
	// Unclaimed are messages about goldens that belong to no scenario.
	Unclaimed []string `json:"unclaimed,omitempty"`
}

// Expected is a known failure. It has only the fields that decide whether the known failure is stale.
type Expected struct {
	Scenario string    `json:"scenario"` // a glob
	ID       string    `json:"id"`       // id of a check or a rule
	Flaky    bool      `json:"flaky,omitempty"`
	Expires  time.Time `json:"expires,omitzero"`
	Part     bool      `json:"part,omitempty"` // the run did not include all scenarios that match the glob
}

// Against has the changes between an earlier run and this one.
type Against struct {
	// Run identifies the earlier run by agent, version and time.
	Run     string   `json:"run"`
	Changes []Change `json:"changes,omitempty"`
}

// Change is one difference between the results of a scenario in two runs.
type Change struct {
	ID string `json:"id"` // id of the scenario
	// What is the kind of change: "verdict", "check", "rule" or "text". It is "scenario" if only one of the runs has the
	// scenario.
	What string `json:"what"`
	// Name is the slug of the changed check or the id of the changed rule.
	Name string `json:"name,omitempty"`
	// Was and Is are the verdicts in the earlier and the later run. A run without a verdict has "".
	Was Verdict `json:"was,omitempty"`
	Is  Verdict `json:"is,omitempty"`
	// Diff is the difference between the canonical texts.
	Diff string `json:"diff,omitempty"`
}

// Difference is a scenario whose results differ between two rounds of a run with perturbations.
type Difference struct {
	ID string `json:"id"`
	// Rounds has the number of the first round, and that of the first round whose result differs from it.
	Rounds   [2]int     `json:"rounds"`
	Verdicts [2]Verdict `json:"verdicts"`
	// How describes the perturbation in the second of the two rounds.
	How []string `json:"how,omitempty"`
	// Explanation is the reason for the difference: a normalizer or a race.
	Explanation string `json:"explanation"`
	// Rows has the two transcripts side by side, around each difference. A row of "…" replaces equal parts.
	Rows [][2]string `json:"rows,omitempty"`
	// Times is the number of rounds whose result differs from that of the first.
	Times int `json:"times"`
}

// HashOf returns a hash of the ids of a list of scenarios. Shards with the same hash belong to the same run.
func HashOf(ids []string) string {
	h := sha256.New()
	for _, id := range ids {
		fmt.Fprintln(h, id)
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// Cause is one cause of failures, from all scenarios that show it. It combines the violations of one point of a rule
// with the failed checks of the same requirement in the same results.
type Cause struct {
	// ID is the rule with its point, else the requirement, else the check, else "golden" or "".
	ID string `json:"id,omitempty"`
	// Class is the most severe class of the cause in any scenario.
	Class        Verdict  `json:"class"`
	Title        string   `json:"title"` // one sentence
	Requirements []string `json:"requirements,omitempty"`
	Citation     string   `json:"citation,omitempty"`
	// Known means that the cause is a known failure in all of the Scenarios.
	Known bool `json:"known,omitempty"`
	// Everywhere means that at least half of the scenarios show the cause. The report lists such a cause separately.
	Everywhere bool `json:"everywhere,omitempty"`
	// Scenarios lists the scenarios that show the cause. The scenario with the fewest frames is first.
	Scenarios []string `json:"scenarios"`
}

// Conformance holds the requirement table and the verdict that follows from it.
type Conformance struct {
	Verdict string `json:"verdict"` // CONFORMANT, NOT CONFORMANT, INCONCLUSIVE
	// Because lists the requirements that decided the verdict. It also lists failures without a requirement: checks,
	// rules, or scenarios that failed before their first check.
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
	// Excluded means that no test can show a violation of the requirement. Reason explains why.
	Excluded bool     `json:"excluded,omitempty"`
	Reason   string   `json:"reason,omitempty"`
	Checks   []string `json:"checks,omitempty"`
	Rules    []string `json:"rules,omitempty"`
}
