package sweep

import (
	"fmt"

	"github.com/acp-test/acp-test/scenarios/results"
)

// Progress describes how far a sweep has got.
type Progress struct {
	Phase       string // baseline, explore, or confirm and shrink
	Done, Total int
	Now         string // the schedule that has just ended, or the finding that is being confirmed
	Verdict     results.Verdict
}

// Finding is a failure that several schedules may show and that probably has
// one cause. It is a violation of one point of a rule, or a failed check with
// the same message after the same kind of act. Its Signature is that of the
// shortest schedule that shows it.
type Finding struct {
	Signature
	Class    results.Verdict
	Message  string
	Scenario string // the swept scenario
	Point    string
	// Seen is how many schedules showed the finding. The representative schedule
	// ran Runs more times and showed the finding Hits times.
	Seen, Hits, Runs int
	// First is the number of the first schedule that showed the finding, in the
	// order of their start. 0 means that an unchanged scenario shows it.
	First int
	// Elsewhere lists the other actions and situations in which the finding was
	// seen. With lists the rules and checks that failed only together with it.
	Elsewhere, With []string
	// Alone is how many of AloneRuns showed the finding. These are runs of a race
	// while nothing else ran.
	Alone, AloneRuns int
	// Known is the reason why the finding is expected, from the known failures of
	// the swept scenario. It is "" for an unexpected finding. A known finding is
	// neither repeated nor shortened.
	Known string
	// File is the path of the repro. Command is the command line that runs it.
	// Lines is the length of its script.
	File, Command string
	Lines         int

	seen, also []*sighting // sightings of this finding, and of findings that only occur with it
	schedule   Schedule
	result     results.Result
	point      string // violated point of the rule
	late       bool   // a timeout expired
}

// Signature distinguishes findings. It has the rule, the kind of situation and
// the action.
type Signature struct {
	// Rule is the id of a rule or the slug of a check in the schedule.
	Rule, State, Action string
}

func (s Signature) String() string {
	if s.Action == "" {
		return s.Rule + " in the baseline"
	}
	return fmt.Sprintf("%s: %s, %s", s.Rule, s.State, s.Action)
}

// Outcome is the result of a sweep: the run for reports, and the findings.
type Outcome struct {
	Run      results.Run
	Findings []Finding
	// Notes explain which scenarios and turns were not swept.
	Notes []string
}
