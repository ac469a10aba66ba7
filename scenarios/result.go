package scenarios

import (
	"fmt"
	"time"

	"github.com/acp-test/acp-test/transcript"
)

// Verdict is the judgement of a scenario, or of a part of one.
type Verdict string

// The verdicts, worst first: a whole has the worst verdict of its parts.
const (
	// Error: the command line, scenario, profile, environment or harness is
	// at fault, not the agent.
	Error Verdict = "error"
	// Fail: the agent broke something that was required of it.
	Fail Verdict = "fail"
	// Inconclusive: the harness could not make the situation it needed, so
	// neither pass nor fail would be honest.
	Inconclusive Verdict = "inconclusive"
	// Skip: the agent did not advertise what the scenario needs.
	Skip Verdict = "skip"
	Pass Verdict = "pass"
	// Warn and Lint are verdicts of checks and findings only; they never
	// change that of the scenario.
	Warn Verdict = "warn"
	Lint Verdict = "lint"
)

// Worst returns the worse of two verdicts. Warn and Lint count as Pass.
func Worst(a, b Verdict) Verdict {
	if a.rank() >= b.rank() {
		return a.sober()
	}
	return b.sober()
}

func (v Verdict) rank() int {
	switch v {
	case Error:
		return 5
	case Fail:
		return 4
	case Inconclusive:
		return 3
	case Skip:
		return 2
	case Pass, Warn, Lint:
		return 1
	}
	return 0
}

func (v Verdict) sober() Verdict {
	if v == Warn || v == Lint {
		return Pass
	}
	return v
}

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

// Flaky is a scenario whose repeats did not agree: it passed Passed of Of times.
type Flaky struct {
	ID     string `json:"id"`
	Passed int    `json:"passed"`
	Of     int    `json:"of"`
}

// Counts of scenarios by verdict.
type Counts struct {
	Total        int `json:"total"`
	Pass         int `json:"pass"`
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

// Result is the outcome of one scenario, run once.
type Result struct {
	// ID is the scenario's path without extension, "cancel/mid-stream".
	ID    string   `json:"id"`
	File  string   `json:"file"`
	Title string   `json:"title,omitempty"` // its first comment line
	Tags  []string `json:"tags,omitempty"`
	// Repeat counts from 1 under --repeat; 0 for a single run.
	Repeat  int     `json:"repeat,omitempty"`
	Verdict Verdict `json:"verdict"`
	// Known: the verdict was fail, and every failure is listed in the
	// profile's known failures or the baseline. It does not count as a fail.
	Known bool `json:"known,omitempty"`
	// Reason is one sentence for skip, inconclusive and error.
	Reason string `json:"reason,omitempty"`
	// NotStarted: the agent did not get through initialize, or was not tried since it
	// had not before.
	NotStarted bool          `json:"not_started,omitempty"`
	Started    time.Time     `json:"started"`
	Duration   time.Duration `json:"duration_ns"`
	Checks     []Check       `json:"checks,omitempty"`
	Findings   []Finding     `json:"findings,omitempty"`
	Golden     *Golden       `json:"golden,omitempty"`
	// Failure is an error that belongs to no check: the agent did not start,
	// the scenario hit its deadline.
	Failure *transcript.Failure `json:"failure,omitempty"`
	// FailureClass is what Failure counts as, fail or inconclusive.
	FailureClass Verdict `json:"failure_class,omitempty"`
	// Notes are decisions of the harness a reader should know.
	Notes []string `json:"notes,omitempty"`
	// Evidence counts, per rule, how often it had something to judge.
	Evidence map[string]int `json:"evidence,omitempty"`
	// Support counts, per requirement, how often a rule had something to judge
	// by it.
	Support map[string]int `json:"support,omitempty"`
	// Frames is the number of frames that crossed the wire.
	Frames int `json:"frames"`
	// Linger is how long the transcript stayed open after the last line.
	Linger time.Duration `json:"linger_ns,omitempty"`
	// Waits is how much of the duration was waited.
	Waits Waits `json:"waits,omitzero"`
	// Heard is the Seq of the last entry of each session that the script waited for; "" is
	// none. Of what came later, or in another session, another run may see less.
	Heard map[string]int `json:"-"`
	// Artifacts maps what ("transcript", "rendered", "before", "stderr", "workspace")
	// to a path relative to the run's out directory.
	Artifacts map[string]string `json:"artifacts,omitempty"`
	// Rerun is the command that runs just this scenario again.
	Rerun string `json:"rerun,omitempty"`
	// AgentName, AgentVersion are what this process said of itself.
	AgentName    string `json:"agent_name,omitempty"`
	AgentVersion string `json:"agent_version,omitempty"`
	// Offers is another protocol that this process said it speaks, as --protocol has it.
	Offers string `json:"offers,omitempty"`
	// Wire and Tools are what an ad-hoc agent showed of itself: the wire format
	// of its model requests and its tools by neutral name.
	Wire  string            `json:"wire,omitempty"`
	Tools map[string]string `json:"tools,omitempty"`

	// Shared says in which process of several scenarios it ran, if it did.
	Shared *Sharing `json:"shared,omitempty"`

	// reached: a request came to the model server. unreached: none came although
	// the script prompted the agent, in the turns of which failedInTurn is what
	// belongs to no check.
	reached, unreached, failedInTurn bool
}

// Check is one named expectation of a scenario.
type Check struct {
	// ID is "scenario#slug".
	ID   string `json:"id"`
	Slug string `json:"slug"`
	Line int    `json:"line"`
	// Title is the comment above the check.
	Title        string   `json:"title,omitempty"`
	Requirements []string `json:"requirements,omitempty"`
	// Class is what a miss counts as: fail, warn or lint.
	Class      Verdict `json:"class"`
	Verdict    Verdict `json:"verdict"`
	NotReached bool    `json:"not_reached,omitempty"`
	Known      bool    `json:"known,omitempty"`
	// Reason is one sentence for inconclusive and skip.
	Reason  string              `json:"reason,omitempty"`
	Failure *transcript.Failure `json:"failure,omitempty"`

	inTurn bool // it missed after the first prompt
}

// Finding is one place where a rule is broken.
type Finding struct {
	Rule string `json:"rule"`
	// Point is the part of the rule that is broken.
	Point string `json:"point,omitempty"`
	// Class is fail, warn, lint or inconclusive; error if the editor broke
	// a rule for clients, which is a fault of the harness.
	Class        Verdict  `json:"class"`
	Sub          string   `json:"sub,omitempty"` // fatal, lossy
	Requirements []string `json:"requirements,omitempty"`
	Citation     string   `json:"citation,omitempty"`
	Session      string   `json:"session,omitempty"`
	Entries      []int    `json:"entries,omitempty"`
	Message      string   `json:"message"`
	Detail       string   `json:"detail,omitempty"`
	Count        int      `json:"count,omitempty"` // places, when one stands for several
	Known        bool     `json:"known,omitempty"`
	// Tail is the frames around it, one line each.
	Tail []string `json:"tail,omitempty"`

	inTurn bool // it is about a turn
}

// Golden is the outcome of comparing a run with its golden.
type Golden struct {
	// State is match, differs, new, updated, removed or off.
	State string `json:"state"`
	Path  string `json:"path,omitempty"`
	Diff  string `json:"diff,omitempty"`
	// Skipped is why the scenario would be skipped, where the golden shows that
	// it once was not; the state is differs.
	Skipped string `json:"skipped,omitempty"`
	Known   bool   `json:"known,omitempty"`
	// Recording says that the file is a recording that was played again.
	Recording bool `json:"recording,omitempty"`
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

// Sweep is the map of a sweep.
type Sweep struct {
	Points       []string    `json:"points"`
	Actions      []string    `json:"actions"`
	Cells        []SweepCell `json:"cells"`
	Explored     int         `json:"explored"`
	Pruned       int         `json:"pruned"`
	Inconclusive int         `json:"inconclusive"`
	Unexplored   int         `json:"unexplored"`
	// Pairs is how many pairs of a kind of situation and an action there are;
	// PairsTried how many of them the sweep has tried.
	Pairs      int `json:"pairs"`
	PairsTried int `json:"pairs_tried"`
	// PairsOf are the pairs that there are in each scenario.
	PairsOf map[string]int `json:"pairs_of,omitempty"`
	Repros  []string       `json:"repros,omitempty"`
	// Drawn says what orders of acts were drawn; nil if none were.
	Drawn *SweepOrders `json:"orders,omitempty"`
	// Tried is what a part of a sweep has tried; nil in a whole one.
	Tried *SweepTried `json:"tried,omitempty"`
	// Baselines is how long the scenarios as they are took, Exploring the schedules, and
	// Settling the confirming and shrinking of what they showed. A budget is for the last
	// two.
	Baselines time.Duration `json:"baselines_ns,omitempty"`
	Exploring time.Duration `json:"exploring_ns,omitempty"`
	Settling  time.Duration `json:"settling_ns,omitempty"`
}

// Spent says where the time of a sweep went, and what its budget was for, 0 if it had none;
// "" if nobody measured.
func (s *Sweep) Spent(budget time.Duration) string {
	if s.Baselines+s.Exploring+s.Settling == 0 {
		return ""
	}
	round := func(d time.Duration) time.Duration { return d.Round(100 * time.Millisecond) }
	text := fmt.Sprintf("the scenarios as they are took %v, exploring %v, confirming and shrinking %v", round(s.Baselines),
		round(s.Exploring), round(s.Settling))
	if budget > 0 {
		text += fmt.Sprintf("; the budget of %v is for the last two", budget)
	}
	return text
}

// Covered says how much of a scenario was tried: how many of its pairs of a situation and
// an action; "" if it has none.
func (s *Sweep) Covered(scenario string) string {
	all := s.PairsOf[scenario]
	if all == 0 {
		return ""
	}
	tried := map[[2]string]bool{}
	for _, c := range s.Cells {
		if c.Scenario == scenario && c.State != "" {
			tried[[2]string{c.State, c.Action}] = true
		}
	}
	return fmt.Sprintf("%d of %d pairs of situation and action", len(tried), all)
}

// SweepCell is one schedule: an action at a point of a scenario.
type SweepCell struct {
	Scenario string `json:"scenario"`
	Point    string `json:"point"`
	// State is the kind of situation of the point; "" of an order that was drawn.
	State   string  `json:"state,omitempty"`
	Action  string  `json:"action"`
	Verdict Verdict `json:"verdict"`
	Out     string  `json:"out,omitempty"`
	Finding string  `json:"finding,omitempty"`
}
