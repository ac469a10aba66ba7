package reports_test

import (
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/acp-test/acp-test/reports"
	"github.com/acp-test/acp-test/scenarios/results"
)

var _ = Describe("what came out differently", func() {
	It("stands side by side, cut so that what differs can be seen", func() {
		var b strings.Builder
		c := reports.NewConsole(&b, reports.ConsoleOptions{})
		same := strings.Repeat("x", 90)
		Expect(c.Summary(results.Run{Differences: []results.Difference{{
			ID: "a/b", Rounds: [2]int{1, 3}, Verdicts: [2]results.Verdict{results.Pass, results.Fail}, Times: 1,
			How: []string{"writes in pieces of 7 bytes"}, Explanation: "a race in the agent",
			Rows: [][2]string{{"…", "…"}, {"<-- one", "<-- one"}, {same + "LEFT", same + "RIGHT"},
				{"", "<-- \x1b[2Jmore"}},
		}}})).To(Succeed())
		Expect(b.String()).To(ContainSubstring("differs: a/b, round 1 (pass) and round 3 (fail): a race in the " +
			"agent\n  round 3: writes in pieces of 7 bytes\n"))
		column := func(s string) string { return s + strings.Repeat(" ", 46-len([]rune(s))) }
		Expect(b.String()).To(ContainSubstring("  " + column("<-- one") + "   <-- one\n"))
		Expect(b.String()).To(ContainSubstring("  " + column("…xxxxxxxxxxxxxxxxxxxxLEFT") +
			" | …xxxxxxxxxxxxxxxxxxxxRIGHT\n"))
		Expect(b.String()).To(ContainSubstring("  " + column("") + ` | <-- \x1b[2Jmore` + "\n"))
	})
})
