package scenarios

import (
	"cmp"
	"slices"
	"time"

	"github.com/acp-test/acp-test/scenarios/results"
)

// Select gives the scenarios of a shard, in the order of the list. The
// partition depends on nothing but the list and the durations: without these,
// every Of-th scenario from the Index-th; with them, the longest scenarios are
// dealt out first, each to the part that has least to do. A scenario without a
// duration counts as the median.
func Select(list []*Scenario, shard *results.Shard, durations map[string]time.Duration) []*Scenario {
	if shard == nil || shard.Of <= 1 {
		return list
	}
	part := deal(list, shard.Of, durations)
	var out []*Scenario
	for i, s := range list {
		if part[i] == shard.Index-1 {
			out = append(out, s)
		}
	}
	return out
}

// deal says which part each scenario of the list belongs to.
func deal(list []*Scenario, of int, durations map[string]time.Duration) []int {
	part := make([]int, len(list))
	var known []time.Duration
	for i, s := range list {
		part[i] = i % of
		if d, ok := durations[s.ID]; ok {
			known = append(known, d)
		}
	}
	if len(known) == 0 {
		return part
	}
	slices.Sort(known)
	takes := func(i int) time.Duration {
		if d, ok := durations[list[i].ID]; ok {
			return d
		}
		return known[len(known)/2]
	}
	order := make([]int, len(list))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(takes(b), takes(a)) })
	load := make([]time.Duration, of)
	for _, i := range order {
		least := 0
		for p := range load {
			if load[p] < load[least] {
				least = p
			}
		}
		part[i] = least
		// A part of scenarios that take no time must not get them all.
		load[least] += max(takes(i), time.Millisecond)
	}
	return part
}

// Hash identifies a list of scenarios, so that shards can tell whether they
// are of one run.
func Hash(list []*Scenario) string { return results.HashOf(idsOf(list)) }

func idsOf(list []*Scenario) []string {
	ids := make([]string, len(list))
	for i, s := range list {
		ids[i] = s.ID
	}
	return ids
}
