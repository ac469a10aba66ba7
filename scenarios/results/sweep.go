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
	// Untried are the pairs that were not tried, of drawn sessions; Skipped is how many of
	// these did not get where they were to go.
	Untried []string `json:"untried,omitempty"`
	Skipped int      `json:"skipped,omitempty"`
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

// SweepTried is what a part of a sweep has tried, so that the parts become one.
type SweepTried struct {
	// Pairs are pairs of a kind of situation and an action, States those of an abstract
	// state and an act.
	Pairs  []string `json:"pairs"`
	States []string `json:"states"`
	// Orders are pairs of acts, the first before the second.
	Orders [][2]string `json:"orders"`
}

// SweepOrders is what a sweep has tried by orders of acts that it drew.
type SweepOrders struct {
	Drawn int `json:"drawn"`
	// Depths is how many orders of each number of deviations there were.
	Depths map[int]int `json:"depths"`
	// Pairs is how many pairs of an abstract state and an act were tried.
	Pairs int `json:"pairs"`
	// Orders is how many pairs of acts were tried in one order or in both, Both how
	// many in both.
	Orders int `json:"orders"`
	Both   int `json:"both"`
	// Missed bounds the chance that a bug of each depth has been missed.
	Missed map[int]float64 `json:"missed"`
}

// Spent says where the time of a sweep went, and what its budget was for, 0 if it had none;
// "" if nobody measured.
func (s *Sweep) Spent(budget time.Duration) string {
	if s.Baselines+s.Exploring+s.Settling == 0 {
		return ""
	}
	round := func(d time.Duration) time.Duration { return d.Round(100 * time.Millisecond) }
	text := ""
	if !s.sessions() {
		text = fmt.Sprintf("the scenarios as they are took %v, ", round(s.Baselines))
	}
	text += fmt.Sprintf("exploring took %v, confirming and shrinking findings %v", round(s.Exploring), round(s.Settling))
	if budget > 0 {
		text += fmt.Sprintf("; the budget is %v", budget)
	}
	return text
}

// DrawnSession is the situation of the sessions that a grammar draws.
const DrawnSession = "drawn session"

func (s *Sweep) sessions() bool { _, drawn := s.PairsOf[DrawnSession]; return drawn }

// Counts says how many schedules or drawn sessions ran, and how many of them say nothing.
func (s *Sweep) Counts() string {
	if s.sessions() {
		return fmt.Sprintf("%s explored, %d skipped, %d inconclusive", printable.Plural(s.Explored, "session", "sessions"),
			s.Skipped, s.Inconclusive)
	}
	return fmt.Sprintf("%s explored, %d pruned, %d inconclusive", printable.Plural(s.Explored, "schedule", "schedules"),
		s.Pruned, s.Inconclusive)
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

// Count counts the pairs of acts that were tried, each the first before the second.
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

// With adds the orders of another part. What each may have missed, both must have.
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

// String says it in a sentence.
func (o *SweepOrders) String() string {
	var depths, chances []string
	for _, d := range slices.Sorted(maps.Keys(o.Depths)) {
		depths = append(depths, fmt.Sprintf("%d of depth %d", o.Depths[d], d))
	}
	for _, d := range slices.Sorted(maps.Keys(o.Missed)) {
		chances = append(chances, fmt.Sprintf("%.2g of depth %d", o.Missed[d], d))
	}
	share := 0
	if o.Orders > 0 {
		share = 100 * o.Both / o.Orders
	}
	return fmt.Sprintf("%d orders of acts drawn (%s): %d %% of %d pairs of acts in both orders, "+
		"%d pairs of state and act; the chance to have missed a bug is at most %s", o.Drawn,
		strings.Join(depths, ", "), share, o.Orders, o.Pairs, strings.Join(chances, ", "))
}
