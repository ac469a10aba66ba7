// Package results defines the outcome of a run as plain data, in the form that reports read and results.json stores:
// the results of scenarios, checks and rules. Package verdict computes the judgments.
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
// scenarios share one order of severity. A greater value is more severe.
type Verdict = rules.Class

// The verdicts, mildest first.
const (
	Pass = rules.Pass
	// Lint and Warn are verdicts of checks and findings. They never change the verdict of
	// their scenario.
	Lint = rules.Lint
	Warn = rules.Warn
	// Skip means that the agent did not advertise a capability that the scenario needs.
	Skip = rules.Skip
	// Inconclusive means that the harness could not create the situation that the scenario needs. Neither pass nor fail
	// would be honest.
	Inconclusive = rules.Inconclusive
	// Fail means that the agent violated a requirement.
	Fail = rules.Fail
	// Error means that the command line, scenario, profile, environment or harness is at fault, not the agent.
	Error = rules.Error
)

// Worst returns the verdict of a whole with the parts a and b: the more severe of the two. Lint and Warn count as
// Pass.
func Worst(a, b Verdict) Verdict { return max(ofWhole(a), ofWhole(b)) }

func ofWhole(v Verdict) Verdict {
	if v == Warn || v == Lint {
		return Pass
	}
	return v
}

// Rules of the engine itself. They are about facts that no frame shows.
const (
	// EgressRule is the rule of findings about hosts that the agent tried to reach.
	EgressRule = "EGRESS"
	// ToolOfferedRule is the rule of findings about tools of the profile that the agent does not offer to its model.
	ToolOfferedRule = "TOOL-OFFERED"
	// AfterOthersRule is the rule of findings that occur only in a process that has run other scenarios before.
	AfterOthersRule = "AFTER-OTHERS"
)

// FurtherCheck is the slug of the check on the simple turn that follows each scenario.
const FurtherCheck = "further"

// Result is the outcome of one scenario in one run.
type Result struct {
	// ID is the scenario's path without extension, such as "cancel/mid-stream".
	ID    string   `json:"id"`
	File  string   `json:"file"`
	Title string   `json:"title,omitempty"` // the scenario's first comment line, and its continuation
	Tags  []string `json:"tags,omitempty"`
	// Repeat numbers the runs of the scenario, from 1, if --repeat is set. It is 0 for a single run.
	Repeat  int     `json:"repeat,omitempty"`
	Verdict Verdict `json:"verdict"`
	// Known means that the scenario failed, but every failure is a known failure of the profile or baseline. The
	// scenario does not count as failed.
	Known bool `json:"known,omitempty"`
	// Apart means that all causes of the scenario's failure are marked Everywhere. The report lists these causes
	// separately and counts the scenario separately.
	Apart bool `json:"apart,omitempty"`
	// Reason is one sentence that explains skip, inconclusive or error.
	Reason string `json:"reason,omitempty"`
	// NotStarted means that the agent did not complete initialize, or that the scenario was not tried because the agent
	// failed to start in too many earlier scenarios.
	NotStarted bool `json:"not_started,omitempty"`
	// Barred describes the login that the agent demanded although the scenario has none, or is "".
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
	// Notes are sentences about decisions of the harness that a reader should know.
	Notes []string `json:"notes,omitempty"`
	// Evidence is how many situations each rule judged.
	Evidence map[string]int `json:"evidence,omitempty"`
	// Support is how many situations the rules judged for each requirement.
	Support map[string]int `json:"support,omitempty"`
	// Frames is the number of frames that were sent in either direction.
	Frames int `json:"frames"`
	// Linger is how long the transcript stayed open after the last line.
	Linger time.Duration `json:"linger_ns,omitempty"`
	// Waits is how much of Duration the scenario only waited.
	Waits Waits `json:"waits,omitzero"`
	// Heard maps a session to the Seq of the last entry in it that the script waited for. The key "" is for entries
	// without a session. In another run, later entries may be missing or belong to other sessions.
	Heard map[string]int `json:"-"`
	// Vain lists the waits that timed out.
	Vain []Vain `json:"-"`
	// Artifacts maps the kind of an artifact ("transcript", "rendered", "before", "stderr", "workspace") to its path,
	// relative to the run's output folder.
	Artifacts map[string]string `json:"artifacts,omitempty"`
	// Rerun is the command that reruns only this scenario.
	Rerun string `json:"rerun,omitempty"`
	// AgentName and AgentVersion are the agent's own name and version.
	AgentName    string `json:"agent_name,omitempty"`
	AgentVersion string `json:"agent_version,omitempty"`
	// Offers is another protocol that the agent claims to support, as a value of --protocol, or "".
	Offers string `json:"offers,omitempty"`
	// Wire and Tools are learned from an agent without a profile: the wire format of its model requests, and its tools
	// by neutral name.
	Wire  string            `json:"wire,omitempty"`
	Tools map[string]string `json:"tools,omitempty"`

	// Shared describes the agent process that the scenario shared with others. It is nil if the scenario had its own
	// process.
	Shared *Sharing `json:"shared,omitempty"`

	// Reached means that the agent sent a request to the model server. Unreached means that the agent sent none although
	// the script prompted it. FailedInTurn means that Failure occurred after the first prompt.
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
	// Class is the verdict of the check if it fails: fail, warn or lint.
	Class      Verdict `json:"class"`
	Verdict    Verdict `json:"verdict"`
	NotReached bool    `json:"not_reached,omitempty"`
	Known      bool    `json:"known,omitempty"`
	// Reason is one sentence that explains inconclusive or skip.
	Reason  string              `json:"reason,omitempty"`
	Failure *transcript.Failure `json:"failure,omitempty"`

	// InTurn means that the check failed after the first prompt.
	InTurn bool `json:"-"`
}

// Finding is one violation of a rule.
type Finding struct {
	Rule string `json:"rule"`
	// Point is the violated part of the rule.
	Point string `json:"point,omitempty"`
	// Class is fail, warn, lint or inconclusive. It is error if the editor violated a rule for clients, which is a fault
	// of the harness.
	Class        Verdict  `json:"class"`
	Sub          string   `json:"sub,omitempty"` // the damage: fatal, lossy or ""
	Requirements []string `json:"requirements,omitempty"`
	Citation     string   `json:"citation,omitempty"`
	Session      string   `json:"session,omitempty"`
	Entries      []int    `json:"entries,omitempty"`
	Message      string   `json:"message"`
	Detail       string   `json:"detail,omitempty"`
	Count        int      `json:"count,omitempty"` // number of violations, if the finding represents several
	Known        bool     `json:"known,omitempty"`
	// Tail has the frames around the violation, one line each.
	Tail []string `json:"tail,omitempty"`

	// About is the host of an EgressRule finding.
	About string `json:"-"`
	// InTurn means that the finding is about a turn.
	InTurn bool `json:"-"`
}

// Golden is the outcome of comparing a run with its golden.
type Golden struct {
	// State is match, differs, new, updated, removed or off.
	State string `json:"state"`
	Path  string `json:"path,omitempty"`
	Diff  string `json:"diff,omitempty"`
	// Skipped is the reason why the scenario was skipped although the golden shows that it once ran. State is then
	// differs.
	Skipped string `json:"skipped,omitempty"`
	Known   bool   `json:"known,omitempty"`
	// Recording means that the file is a replayed recording instead of a golden.
	Recording bool `json:"recording,omitempty"`
}

// Vain is a wait that timed out. For is the kind of the wait. Cut means that its timeout was shortened, because a
// wait of the same kind had timed out before.
type Vain struct {
	For string
	Cut bool
}

// Waits holds the times during which a scenario only waited.
type Waits struct {
	// Start is the time from starting the agent to its response to the greeting, such as initialize.
	Start time.Duration `json:"start_ns,omitempty"`
	// Deadline is the time spent in lines that timed out.
	Deadline time.Duration `json:"deadline_ns,omitempty"`
	// Linger is the time at the end during which the run listened to a silent agent.
	Linger time.Duration `json:"linger_ns,omitempty"`
	// Exit is the time until the agent's processes had ended.
	Exit time.Duration `json:"exit_ns,omitempty"`
}

// Sharing describes the run of a scenario in an agent process that also ran other scenarios.
type Sharing struct {
	// Process is the number of the process in the run, from 1. Nth is the number of the scenario in the process, from
	// 1.
	Process int `json:"process"`
	Nth     int `json:"nth"`
	// Verdict is the verdict in the shared process if it was not pass. In that case the scenario was rerun in its own
	// process, and all other fields of the result describe that second run. Reason explains Verdict in one line.
	Verdict Verdict `json:"verdict,omitempty"`
	Reason  string  `json:"reason,omitempty"`
	// After lists the scenarios that ran in the same process before, in order.
	After []string `json:"after,omitempty"`
}

// Add adds the waits of another scenario to w.
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

// Names returns the names that can refer to the finding in a list of known failures.
func (f Finding) Names() []string {
	return append([]string{f.Rule, f.Cause()}, f.Requirements[:min(1, len(f.Requirements))]...)
}

// Names returns the names that can refer to a check in a list of known failures. These are its id, slug and first
// requirement, and the causes of findings that have the same class and a requirement in common.
func (r *Result) Names(c Check) []string {
	names := append([]string{c.ID, c.Slug}, c.Requirements[:min(1, len(c.Requirements))]...)
	for _, f := range r.Findings {
		if f.Class == c.Verdict && Overlap(f.Requirements, c.Requirements) {
			names = append(names, f.Cause())
		}
	}
	return names
}

// Overlap reports whether two lists have a common element.
func Overlap(a, b []string) bool {
	return slices.ContainsFunc(a, func(s string) bool { return slices.Contains(b, s) })
}

// Broken reports whether the result has a failure or warning that is not known. It ignores goldens.
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

// ClassOf returns the class of a violation of these requirements: fail if one of them is a must, else warn if one is
// a should, else lint.
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

// FindingOf converts a finding of package rules.
func FindingOf(f rules.Finding) Finding {
	return Finding{Rule: f.Rule, Class: f.Class, Sub: f.Damage, Requirements: f.Requirements, Citation: f.Citation,
		Session: f.Session, Entries: f.Entries, Message: f.Message, Detail: f.Detail, Count: f.Count}
}
