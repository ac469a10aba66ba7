package reports

import (
	"fmt"
	"strings"

	"github.com/acp-test/acp-test/scenarios/results"
)

// requirementTable is the requirement table for a terminal: counts by tier and
// every requirement that is not simply passed or untested; all of them if all.
func requirementTable(c *results.Conformance, all bool) string {
	var b strings.Builder
	type count struct{ total, pass, fail, inconclusive, untested, excluded int }
	counts := map[string]*count{}
	var tiers []string
	for _, q := range c.Requirements {
		n := counts[q.Tier]
		if n == nil {
			n = &count{}
			counts[q.Tier] = n
			tiers = append(tiers, q.Tier)
		}
		n.total++
		word := q.Verdict.String()
		switch q.Verdict {
		case results.Pass:
			n.pass++
		case results.Fail:
			n.fail++
		case results.Inconclusive:
			n.inconclusive++
		default:
			word = "untested"
			if q.Excluded {
				n.excluded++
			} else {
				n.untested++
			}
		}
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
		fmt.Fprintf(&b, "%-13s %3d requirements: %d pass, %d fail, %d inconclusive, %d untested", t, n.total, n.pass,
			n.fail, n.inconclusive, n.untested)
		if n.excluded > 0 {
			fmt.Fprintf(&b, ", %d excluded", n.excluded)
		}
		b.WriteString("\n")
	}
	if len(c.Because) > 0 {
		fmt.Fprintf(&b, "decided by: %s\n", strings.Join(c.Because, " "))
	}
	return head.String() + b.String()
}
