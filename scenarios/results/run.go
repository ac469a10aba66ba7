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
	// Version is the version of this format; see docs/schema/results.schema.json.
	Version int `json:"version"`
	// Tool is the name and version of this program.
	Tool string `json:"tool"`
	// Command is the command line that repeats the run.
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
	// Recorded: the run judged recordings instead of running scenarios. A log that proves nothing is then not the
	// harness's fault.
	Recorded bool `json:"-"`
	// Interrupted: the run was stopped before all scenarios ran.
	Interrupted bool `json:"interrupted,omitempty"`
	// LeftOut lists the ids of scenarios that did not run because the budget left no time.
	LeftOut []string `json:"left_out,omitempty"`
	// Left lists agent processes that could not be killed.
	Left  []string `json:"left,omitempty"`
	Shard *Shard   `json:"shard,omitempty"`
	// NoModel is advice for a run in which no scenario reached the model server; "" if one did. Scenarios that need a
	// model are then inconclusive, and the exit status is 2.
	NoModel string   `json:"no_model,omitempty"`
	Verdict Verdict  `json:"verdict"`
	Counts  Counts   `json:"counts"`
	Exit    int      `json:"exit"`
	Results []Result `json:"results"`
	// Causes are the causes of failures, each once, the most important first.
	Causes []Cause `json:"causes,omitempty"`
	// Flaky lists the scenarios that passed in some repeats only.
	Flaky []Flaky `json:"flaky,omitempty"`
	// Differences lists the scenarios whose result changed under a perturbation, passed or not.
	Differences []Difference `json:"differences,omitempty"`
	// Against holds the changes since an earlier run; nil if none was named.
	Against *Against `json:"against,omitempty"`
	// Stale lists goldens without a scenario, and known failures that no longer fail. Each makes the exit status 1.
	Stale []string `json:"stale,omitempty"`
	// Notes are sentences for the reader, such as what to do next or what is new.
	Notes []string `json:"notes,omitempty"`
	// Conformance is filled by the conformance command.
	Conformance *Conformance `json:"conformance,omitempty"`
	// Sweep is filled by the sweep command.
	Sweep *Sweep `json:"sweep,omitempty"`
}

// Agent identifies the tested agent.
type Agent struct {
	Profile string `json:"profile"`
	// Goldens is the folder of the agent's goldens, if its name differs from the profile's.
	Goldens string   `json:"goldens,omitempty"`
	Title   string   `json:"title,omitempty"`
	Command []string `json:"command"`
	// Name and Version are the agent's own name and version, from initialize.
	Name    string `json:"name,omitempty"`
	Version string `json:"version,omitempty"`
	Wire    string `json:"wire,omitempty"`
	AdHoc   bool   `json:"ad_hoc,omitempty"`
}

// String returns the agent's profile, or the name that it gave itself, and its version. It returns "recording" if
// neither is known, as for a judged recording.
func (a Agent) String() string {
	return strings.TrimSpace(cmp.Or(a.Profile, a.Name, "recording") + " " + a.Version)
}

// Counts of scenarios by verdict.
type Counts struct {
	Total        int `json:"total"`
	Pass         int `json:"pass"`
	Apart        int `json:"apart,omitempty"` // failed only by causes wrong everywhere; not in Pass, Fail or Known
	Fail         int `json:"fail"`
	Known        int `json:"known"` // failed as listed in known failures; not in Fail
	Skip         int `json:"skip"`
	Inconclusive int `json:"inconclusive"`
	Error        int `json:"error"`
	Flaky        int `json:"flaky"`
	NewGoldens   int `json:"new_goldens"`
	Warnings     int `json:"warnings"` // findings and checks of class warn
	Lints        int `json:"lints"`
}

// Add counts a result n times; a negative n removes it.
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

// Flaky is a scenario that passed in Passed of its Of repeats.
type Flaky struct {
	ID     string `json:"id"`
	Passed int    `json:"passed"`
	Of     int    `json:"of"`
}

// Shard identifies a part of a run, and holds what Merge needs to join the parts.
type Shard struct {
	Index int    `json:"index"` // from 1
	Of    int    `json:"of"`
	Hash  string `json:"hash"` // of the list of all scenarios
	// List holds the ids of the scenarios of all parts, in the order of an undivided run.
	List []string `json:"list"`
	// Expected are the known failures. Whether one is stale shows only after merging all parts.
	Expected []Expected `json:"expected,omitempty"`
	// Unclaimed are messages about goldens that belong to no scenario.
	Unclaimed []string `json:"unclaimed,omitempty"`
}

// Expected is a known failure, with the fields that decide whether it is stale.
type Expected struct {
	Scenario string    `json:"scenario"` // a glob
	ID       string    `json:"id"`       // of a check or a rule
	Flaky    bool      `json:"flaky,omitempty"`
	Expires  time.Time `json:"expires,omitzero"`
	Part     bool      `json:"part,omitempty"` // not all scenarios that the glob selects were to run
}

// Against holds the changes since an earlier run.
type Against struct {
	// Run identifies the earlier run: agent, version and time.
	Run     string   `json:"run"`
	Changes []Change `json:"changes,omitempty"`
}

// Change is one difference between two runs of a scenario.
type Change struct {
	ID string `json:"id"` // of the scenario
	// What is the kind of change: "verdict", "check", "rule", "text", or "scenario" if only one of the runs has it.
	What string `json:"what"`
	// Name is the slug of the check or the id of the rule.
	Name string `json:"name,omitempty"`
	// Was and Is are the verdicts in the two runs; "" if a run has none.
	Was Verdict `json:"was,omitempty"`
	Is  Verdict `json:"is,omitempty"`
	// Diff is the diff of the canonical texts.
	Diff string `json:"diff,omitempty"`
}

// Difference is a scenario whose result differs between two rounds.
type Difference struct {
	ID string `json:"id"`
	// Rounds are the number of the first round, and of the first round that differs from it.
	Rounds   [2]int     `json:"rounds"`
	Verdicts [2]Verdict `json:"verdicts"`
	// How describes the changes that the second of the two rounds made.
	How []string `json:"how,omitempty"`
	// Explanation is the normalizer or the race that explains the difference.
	Explanation string `json:"explanation"`
	// Rows are the two transcripts side by side, around each difference. Rows of "…" stand for equal parts.
	Rows [][2]string `json:"rows,omitempty"`
	// Times is the number of rounds that differed from the first.
	Times int `json:"times"`
}

// HashOf returns a hash of the ids of a list of scenarios, by which shards can tell whether they belong to one run.
func HashOf(ids []string) string {
	h := sha256.New()
	for _, id := range ids {
		fmt.Fprintln(h, id)
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// Cause is one cause of failures, wherever it was seen: the violations of one point of a rule, together with the
// checks of the same requirement that missed in the same results.
type Cause struct {
	// ID is the rule with its point, else the requirement, else the check, else "golden" or "".
	ID string `json:"id,omitempty"`
	// Class is the most severe class with which the cause was seen.
	Class        Verdict  `json:"class"`
	Title        string   `json:"title"` // one sentence
	Requirements []string `json:"requirements,omitempty"`
	Citation     string   `json:"citation,omitempty"`
	// Known: the cause is a known failure in each of the Scenarios.
	Known bool `json:"known,omitempty"`
	// Everywhere: at least half of the scenarios show the cause, so that the report lists it separately.
	Everywhere bool `json:"everywhere,omitempty"`
	// Scenarios lists the scenarios that show the cause. The scenario with the fewest frames is first.
	Scenarios []string `json:"scenarios"`
}

// Conformance is the requirement table and its verdict.
type Conformance struct {
	Verdict string `json:"verdict"` // CONFORMANT, NOT CONFORMANT, INCONCLUSIVE
	// Because are the requirements that decided the verdict, and failures without a requirement: a check, a rule, or a
	// scenario that failed before its first check.
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
	// Excluded: no test can show that the requirement is broken; Reason says why.
	Excluded bool     `json:"excluded,omitempty"`
	Reason   string   `json:"reason,omitempty"`
	Checks   []string `json:"checks,omitempty"`
	Rules    []string `json:"rules,omitempty"`
}
