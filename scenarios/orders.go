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
