package reports

import (
	"fmt"
	"slices"
	"strings"

	"github.com/acp-test/acp-test/scenarios/results"
)

// requirementTable is the requirement table for a terminal: counts by tier and
// every requirement that is not simply passed or untested; all of them if all.
func requirementTable(c *results.Conformance, all bool) string {
	var b strings.Builder
	counts := map[string]map[string]int{} // by tier and word; "" counts all of a tier
	var tiers []string
	for _, q := range c.Requirements {
		if counts[q.Tier] == nil {
			counts[q.Tier] = map[string]int{}
			tiers = append(tiers, q.Tier)
		}
		word := q.Verdict.String()
		if !slices.Contains([]results.Verdict{results.Pass, results.Fail, results.Inconclusive}, q.Verdict) {
			word = "untested"
		}
		counted := word
		if word == "untested" && q.Excluded {
			counted = "excluded"
		}
		counts[q.Tier][""]++
		counts[q.Tier][counted]++
		if !all && (q.Verdict == results.Pass || q.Verdict == results.Skip) {
			continue
		}
		fmt.Fprintf(&b, "%-12s %-13s %-6s %-12s %6d  %-15s %s\n", q.ID, q.Tier, q.Level, word, q.Evidence, q.TCK,
			harmless(q.Reason))
	}
	var head strings.Builder
	if b.Len() > 0 {
		fmt.Fprintf(&head, "%-12s %-13s %-6s %-12s %6s  %-15s %s\n", "requirement", "tier", "level", "verdict", "seen",
			"acp-tck", "by")
	}
	b.WriteString("\n")
	for _, t := range tiers {
		n := counts[t]
		fmt.Fprintf(&b, "%-13s %3d requirements: %d pass, %d fail, %d inconclusive, %d untested", t, n[""], n["pass"],
			n["fail"], n["inconclusive"], n["untested"])
		if n["excluded"] > 0 {
			fmt.Fprintf(&b, ", %d excluded", n["excluded"])
		}
		b.WriteString("\n")
	}
	if len(c.Because) > 0 {
		fmt.Fprintf(&b, "decided by: %s\n", strings.Join(c.Because, " "))
	}
	return head.String() + b.String()
}
