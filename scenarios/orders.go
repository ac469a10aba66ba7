package scenarios

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

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

// Count counts the pairs of acts that were tried, each the first before the second.
func (o *SweepOrders) Count(tried [][2]string) {
	all := map[[2]string]bool{}
	note(all, tried)
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

// with adds the orders of another part. What each may have missed, both must have.
func (o *SweepOrders) with(part *SweepOrders) *SweepOrders {
	if o == nil {
		o = &SweepOrders{Depths: map[int]int{}, Missed: map[int]float64{}}
	}
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
