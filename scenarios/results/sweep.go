package results

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/acp-test/acp-test/internal/lists"
	"github.com/acp-test/acp-test/internal/printable"
)

// Sweep is the result of a sweep: the schedules that ran, and the coverage.
type Sweep struct {
	Points       []string    `json:"points"`
	Actions      []string    `json:"actions"`
	Cells        []SweepCell `json:"cells"`
	Explored     int         `json:"explored"`
	Pruned       int         `json:"pruned"`
	Inconclusive int         `json:"inconclusive"`
	Unexplored   int         `json:"unexplored"`
	// Pairs is the number of pairs of a kind of situation and an action. PairsTried is how many of them the sweep
	// tried.
	Pairs      int `json:"pairs"`
	PairsTried int `json:"pairs_tried"`
	// Untried lists the combinations in drawn sessions that were not tried. Skipped is the number of drawn sessions that
	// did not reach the situation for which they were drawn.
	Untried []string `json:"untried,omitempty"`
	Skipped int      `json:"skipped,omitempty"`
	// PairsOf is the number of combinations in each scenario.
	PairsOf map[string]int `json:"pairs_of,omitempty"`
	Repros  []string       `json:"repros,omitempty"`
	// Drawn is the coverage of drawn orders of acts; nil if none were drawn.
	Drawn *SweepOrders `json:"orders,omitempty"`
	// Tried lists the combinations that one part of a sweep tried; nil if the sweep was not split.
	Tried *SweepTried `json:"tried,omitempty"`
	// Baselines is the time spent on the unchanged scenarios. Exploring is the time spent on the schedules. Settling is
	// the time spent on confirming and shrinking findings. A budget covers Exploring and Settling.
	Baselines time.Duration `json:"baselines_ns,omitempty"`
	Exploring time.Duration `json:"exploring_ns,omitempty"`
	Settling  time.Duration `json:"settling_ns,omitempty"`
}

// SweepCell is one schedule: an action at a point of a scenario.
type SweepCell struct {
	Scenario string `json:"scenario"`
	Point    string `json:"point"`
	// State is the kind of situation at the point; "" for a drawn order of acts.
	State   string  `json:"state,omitempty"`
	Action  string  `json:"action"`
	Verdict Verdict `json:"verdict"`
	Out     string  `json:"out,omitempty"`
	Finding string  `json:"finding,omitempty"`
}

// SweepTried lists the combinations that one part of a sweep tried. It is needed to merge the parts.
type SweepTried struct {
	// Pairs has the combinations of a kind of situation and an action. States has the combinations of an abstract state
	// and an act.
	Pairs  []string `json:"pairs"`
	States []string `json:"states"`
	// Orders has pairs of acts; the first was done before the second.
	Orders [][2]string `json:"orders"`
}

// SweepOrders is the coverage of a sweep that draws orders of acts.
type SweepOrders struct {
	Drawn int `json:"drawn"`
	// Depths maps a number of deviations to the number of drawn orders that have it.
	Depths map[int]int `json:"depths"`
	// Pairs is how many combinations of an abstract state and an act were tried.
	Pairs int `json:"pairs"`
	// Orders is the number of pairs of acts that were tried in at least one order. Both is the number that were tried in
	// both orders.
	Orders int `json:"orders"`
	Both   int `json:"both"`
	// Missed maps a depth to an upper bound for the probability that the sweep missed a bug of that depth.
	Missed map[int]float64 `json:"missed"`
}

// Spent describes how the time of a sweep was spent, and its budget if that is not 0. It returns "" if no time was
// measured.
func (s *Sweep) Spent(budget time.Duration) string {
	if s.Baselines+s.Exploring+s.Settling == 0 {
		return ""
	}
	round := func(d time.Duration) time.Duration { return d.Round(100 * time.Millisecond) }
	text := ""
	if !s.sessions() {
		text = fmt.Sprintf("the unchanged scenarios took %v, ", round(s.Baselines))
	}
	text += fmt.Sprintf("exploring took %v, confirming and shrinking findings %v", round(s.Exploring), round(s.Settling))
	if budget > 0 {
		text += fmt.Sprintf("; the budget is %v", budget)
	}
	return text
}

// DrawnSession is the key in PairsOf for sessions that are drawn from a grammar.
const DrawnSession = "drawn session"

func (s *Sweep) sessions() bool { _, drawn := s.PairsOf[DrawnSession]; return drawn }

// Counts describes how many schedules or drawn sessions ran, and how many were pruned, skipped or inconclusive.
func (s *Sweep) Counts() string {
	if s.sessions() {
		return fmt.Sprintf("%s explored, %d skipped, %d inconclusive", printable.Plural(s.Explored, "session", "sessions"),
			s.Skipped, s.Inconclusive)
	}
	return fmt.Sprintf("%s explored, %d pruned, %d inconclusive", printable.Plural(s.Explored, "schedule", "schedules"),
		s.Pruned, s.Inconclusive)
}

// Covered describes how many of a scenario's combinations of situation and action were tried. It returns "" if the
// scenario has none.
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

// Count sets Orders and Both from the pairs of acts that were tried. In each pair, the earlier act comes first.
func (o *SweepOrders) Count(tried [][2]string) {
	all := lists.Set(tried)
	o.Orders, o.Both = 0, 0
	for a := range all {
		if back := all[[2]string{a[1], a[0]}]; !back || a[0] <= a[1] {
			o.Orders++
			if back {
				o.Both++
			}
		}
	}
}

// With returns the combined coverage of o, which may be nil, and another part. A bug is missed only if both parts
// miss it, so the bounds on the probability are multiplied.
func (o *SweepOrders) With(part *SweepOrders) *SweepOrders {
	o = cmp.Or(o, &SweepOrders{Depths: map[int]int{}, Missed: map[int]float64{}})
	o.Drawn += part.Drawn
	for d, n := range part.Depths {
		o.Depths[d] += n
	}
	for d, chance := range part.Missed {
		if before, ok := o.Missed[d]; ok {
			chance *= before
		}
		o.Missed[d] = chance
	}
	return o
}

// String describes the coverage in one sentence.
func (o *SweepOrders) String() string {
	var depths, chances []string
	for _, d := range slices.Sorted(maps.Keys(o.Depths)) {
		depths = append(depths, fmt.Sprintf("%d of depth %d", o.Depths[d], d))
	}
	for _, d := range slices.Sorted(maps.Keys(o.Missed)) {
		chances = append(chances, fmt.Sprintf("%.2g for depth %d", o.Missed[d], d))
	}
	share := 0
	if o.Orders > 0 {
		share = 100 * o.Both / o.Orders
	}
	return fmt.Sprintf("%d orders of acts drawn (%s): %d %% of %d pairs of acts ran in both orders, "+
		"%d pairs of state and act ran; the probability of a missed bug is at most %s", o.Drawn,
		strings.Join(depths, ", "), share, o.Orders, o.Pairs, strings.Join(chances, ", "))
}
