// Package results holds the outcome of a run as plain data, in the form that reports read and results.json stores: the
// results of scenarios, checks and rules. It judges nothing; package verdict does.
package results

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/acp-test/acp-test/rules"
	"github.com/acp-test/acp-test/transcript"
)

// Verdict is the judgment of a scenario or of a part of it. It is a class of package rules, so that rules, checks and
// scenarios share one order of severity. The greater value is the more severe.
type Verdict = rules.Class

// The verdicts, mildest first.
const (
	Pass = rules.Pass
	// Lint and Warn are verdicts of checks and findings. They never change the verdict of
	// their scenario.
	Lint = rules.Lint
	Warn = rules.Warn
	// Skip: the agent did not advertise a capability that the scenario needs.
	Skip = rules.Skip
	// Inconclusive: the harness could not create the situation that the scenario needs, so
	// neither pass nor fail would be honest.
	Inconclusive = rules.Inconclusive
	// Fail: the agent broke something that was required of it.
	Fail = rules.Fail
	// Error: the command line, scenario, profile, environment or harness is at fault, not
	// the agent.
	Error = rules.Error
)

// Worst returns the verdict of a whole that consists of a and b: the more severe of the two, with Lint and Warn as
// Pass.
func Worst(a, b Verdict) Verdict { return max(ofWhole(a), ofWhole(b)) }

func ofWhole(v Verdict) Verdict {
	if v == Warn || v == Lint {
		return Pass
	}
	return v
}

// Rules of the engine itself, about things that no frame shows.
const (
	// EgressRule is the rule of findings about hosts that the agent wanted to reach.
	EgressRule = "EGRESS"
	// ToolOfferedRule is the rule of findings about tools of a profile that the agent does
	// not offer its model.
	ToolOfferedRule = "TOOL-OFFERED"
	// AfterOthersRule is the rule of findings that show only in a process that has run
	// other scenarios before.
	AfterOthersRule = "AFTER-OTHERS"
)

// FurtherCheck is the slug of the check of the plain turn that follows each scenario.
const FurtherCheck = "further"

// Result is the outcome of one scenario, run once.
type Result struct {
	// ID is the scenario's path without extension, "cancel/mid-stream".
	ID    string   `json:"id"`
	File  string   `json:"file"`
	Title string   `json:"title,omitempty"` // the scenario's first comment line, and its continuation
	Tags  []string `json:"tags,omitempty"`
	// Repeat counts from 1 under --repeat; 0 for a single run.
	Repeat  int     `json:"repeat,omitempty"`
	Verdict Verdict `json:"verdict"`
	// Known: the verdict was fail, and every failure is listed in the
	// profile's known failures or the baseline. It does not count as a fail.
	Known bool `json:"known,omitempty"`
	// Apart: the scenario failed only by causes found Everywhere. It counts as passed apart from them.
	Apart bool `json:"apart,omitempty"`
	// Reason is one sentence for skip, inconclusive and error.
	Reason string `json:"reason,omitempty"`
	// NotStarted: the agent did not get through initialize, or the scenario was not tried because too many before it
	// failed to start.
	NotStarted bool `json:"not_started,omitempty"`
	// Barred is the login that the agent required although the script has none; else "".
	Barred   string        `json:"-"`
	Started  time.Time     `json:"started"`
	Duration time.Duration `json:"duration_ns"`
	Checks   []Check       `json:"checks,omitempty"`
	Findings []Finding     `json:"findings,omitempty"`
	Golden   *Golden       `json:"golden,omitempty"`
	// Failure is an error that belongs to no check: for example, the agent did not start, or the scenario exceeded its
	// deadline.
	Failure *transcript.Failure `json:"failure,omitempty"`
	// FailureClass is the verdict of Failure: fail or inconclusive.
	FailureClass Verdict `json:"failure_class,omitempty"`
	// Notes are decisions of the harness that a reader should know.
	Notes []string `json:"notes,omitempty"`
	// Evidence counts, per rule, the situations that the rule judged.
	Evidence map[string]int `json:"evidence,omitempty"`
	// Support counts, per requirement, the situations that rules judged by it.
	Support map[string]int `json:"support,omitempty"`
	// Frames is the number of frames that crossed the wire.
	Frames int `json:"frames"`
	// Linger is how long the transcript stayed open after the last line.
	Linger time.Duration `json:"linger_ns,omitempty"`
	// Waits is the part of the duration that was spent waiting.
	Waits Waits `json:"waits,omitzero"`
	// Heard maps a session to the Seq of its last entry that the script waited for; the key "" is for entries without a
	// session. Another run may lack later entries, or have them in other sessions.
	Heard map[string]int `json:"-"`
	// Vain are the waits that timed out.
	Vain []Vain `json:"-"`
	// Artifacts maps the kind of an artifact ("transcript", "rendered", "before", "stderr", "workspace") to a path
	// relative to the run's out directory.
	Artifacts map[string]string `json:"artifacts,omitempty"`
	// Rerun is the command that runs just this scenario again.
	Rerun string `json:"rerun,omitempty"`
	// AgentName and AgentVersion are the agent's own name and version.
	AgentName    string `json:"agent_name,omitempty"`
	AgentVersion string `json:"agent_version,omitempty"`
	// Offers is another protocol that the agent claimed to speak, as a value of --protocol.
	Offers string `json:"offers,omitempty"`
	// Wire and Tools are learned from an ad-hoc agent: the wire format of its model requests, and its tools by neutral
	// name.
	Wire  string            `json:"wire,omitempty"`
	Tools map[string]string `json:"tools,omitempty"`

	// Shared describes the process that the scenario shared with others; nil if it shared none.
	Shared *Sharing `json:"shared,omitempty"`

	// Reached: the agent sent a request to the model server. Unreached: the agent sent no such request although the
	// script prompted it. FailedInTurn: Failure happened after the first prompt.
	Reached, Unreached, FailedInTurn bool `json:"-"`
}

// Check is one named expectation of a scenario.
type Check struct {
	// ID is "scenario#slug".
	ID   string `json:"id"`
	Slug string `json:"slug"`
	Line int    `json:"line"`
	// Title is the text of the comment above the check.
	Title        string   `json:"title,omitempty"`
	Requirements []string `json:"requirements,omitempty"`
	// Class is the verdict that a miss counts as: fail, warn or lint.
	Class      Verdict `json:"class"`
	Verdict    Verdict `json:"verdict"`
	NotReached bool    `json:"not_reached,omitempty"`
	Known      bool    `json:"known,omitempty"`
	// Reason is one sentence for inconclusive and skip.
	Reason  string              `json:"reason,omitempty"`
	Failure *transcript.Failure `json:"failure,omitempty"`

	// InTurn: the check missed after the first prompt.
	InTurn bool `json:"-"`
}

// Finding is one place where a rule was broken.
type Finding struct {
	Rule string `json:"rule"`
	// Point is the part of the rule that is broken.
	Point string `json:"point,omitempty"`
	// Class is fail, warn, lint or inconclusive; error if the editor broke
	// a rule for clients, which is a fault of the harness.
	Class        Verdict  `json:"class"`
	Sub          string   `json:"sub,omitempty"` // the damage: fatal or lossy
	Requirements []string `json:"requirements,omitempty"`
	Citation     string   `json:"citation,omitempty"`
	Session      string   `json:"session,omitempty"`
	Entries      []int    `json:"entries,omitempty"`
	Message      string   `json:"message"`
	Detail       string   `json:"detail,omitempty"`
	Count        int      `json:"count,omitempty"` // number of places, if the finding stands for several
	Known        bool     `json:"known,omitempty"`
	// Tail is the frames around the finding, one line each.
	Tail []string `json:"tail,omitempty"`

	// About is the host of an EgressRule finding.
	About string `json:"-"`
	// InTurn: the finding is about a turn.
	InTurn bool `json:"-"`
}

// Golden is the outcome of comparing a run with its golden.
type Golden struct {
	// State is match, differs, new, updated, removed or off.
	State string `json:"state"`
	Path  string `json:"path,omitempty"`
	Diff  string `json:"diff,omitempty"`
	// Skipped is why the scenario was skipped although the golden shows that it once ran. State is then differs.
	Skipped string `json:"skipped,omitempty"`
	Known   bool   `json:"known,omitempty"`
	// Recording says that the file is a recording that was played again.
	Recording bool `json:"recording,omitempty"`
}

// Vain is a wait that timed out. Cut says that its timeout was shortened because another wait of its kind timed out
// before.
type Vain struct {
	For string
	Cut bool
}

// Waits are the times in which a scenario only waited.
type Waits struct {
	// Start is the time from starting the agent to its answer to the greeting, such as initialize.
	Start time.Duration `json:"start_ns,omitempty"`
	// Deadline is the time spent in lines that timed out.
	Deadline time.Duration `json:"deadline_ns,omitempty"`
	// Linger is the time spent listening to a silent agent at the end.
	Linger time.Duration `json:"linger_ns,omitempty"`
	// Exit is the time until the agent's processes had ended.
	Exit time.Duration `json:"exit_ns,omitempty"`
}

// Sharing describes a scenario's run in a process of the agent that also ran other scenarios.
type Sharing struct {
	// Process is the number of the process in the run, from 1. Nth is the number of the scenario in the process, from
	// 1.
	Process int `json:"process"`
	Nth     int `json:"nth"`
	// Verdict is the verdict in the shared process, if it was not pass. The scenario then ran again alone, and all
	// other fields of the result are from that second run. Reason is the reason for Verdict, in one line.
	Verdict Verdict `json:"verdict,omitempty"`
	Reason  string  `json:"reason,omitempty"`
	// After lists the scenarios that ran before in the same process, in order.
	After []string `json:"after,omitempty"`
}

// Add adds the waits of another scenario.
func (w *Waits) Add(other Waits) {
	w.Start += other.Start
	w.Deadline += other.Deadline
	w.Linger += other.Linger
	w.Exit += other.Exit
}

// Failed reports whether the comparison counts against the agent: the text differs, or a required golden does not
// exist. Diff tells which.
func (g *Golden) Failed() bool {
	return g != nil && (g.State == "differs" || g.State == "new" && g.Diff != "")
}

// Cause returns the rule and its point, separated by a space.
func (f Finding) Cause() string { return strings.TrimSpace(f.Rule + " " + f.Point) }

// Names returns the names by which a list of known failures may refer to the finding.
func (f Finding) Names() []string {
	return append([]string{f.Rule, f.Cause()}, f.Requirements[:min(1, len(f.Requirements))]...)
}

// Names returns the names by which a list of known failures may refer to a check: its id, its requirement, and the
// cause of a finding of the same class that breaks the same requirement.
func (r *Result) Names(c Check) []string {
	names := append([]string{c.ID, c.Slug}, c.Requirements[:min(1, len(c.Requirements))]...)
	for _, f := range r.Findings {
		if f.Class == c.Verdict && Overlap(f.Requirements, c.Requirements) {
			names = append(names, f.Cause())
		}
	}
	return names
}

// Overlap reports whether two lists of requirements have an element in common.
func Overlap(a, b []string) bool {
	return slices.ContainsFunc(a, func(s string) bool { return slices.Contains(b, s) })
}

// Broken reports whether the result has a failure or warning that is not a known one, goldens excepted.
func (r *Result) Broken() bool {
	bad := func(v Verdict) bool { return v == Fail || v == Warn }
	return r.FailureClass == Fail ||
		slices.ContainsFunc(r.Findings, func(f Finding) bool { return bad(f.Class) && !f.Known }) ||
		slices.ContainsFunc(r.Checks, func(c Check) bool { return bad(c.Verdict) && !c.Known })
}

// Summary describes the worst part of a result in one line.
func (r *Result) Summary() string {
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
	return cmp.Or(r.Reason, r.Verdict.String())
}

// ClassOf returns the class of breaking these requirements: fail if one is a must, warn if one is a should, else lint.
func ClassOf(set *rules.Set, requirements []string) Verdict {
	class := Lint
	for _, id := range requirements {
		switch q, ok := set.Requirement(id); {
		case ok && q.Level == "must":
			return Fail
		case ok && q.Level == "should":
			class = Warn
		}
	}
	return class
}

// FindingOf converts a rule's finding into a Finding.
func FindingOf(f rules.Finding) Finding {
	return Finding{Rule: f.Rule, Class: f.Class, Sub: f.Damage, Requirements: f.Requirements, Citation: f.Citation,
		Session: f.Session, Entries: f.Entries, Message: f.Message, Detail: f.Detail, Count: f.Count}
}
