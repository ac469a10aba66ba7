package invariants_test

import (
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"pgregory.net/rapid"

	"github.com/acp-test/acp-test/protocol/acp/invariants"
	"github.com/acp-test/acp-test/rules"
)

var _ = Describe("the verdict", func() {
	DescribeTable("depends on tier and outcome",
		func(outcomes map[string]rules.Outcome, want rules.Verdict, because ...string) {
			c := invariants.V1().Conclude(outcomes)
			Expect(c.Verdict).To(Equal(want))
			Expect(c.Because).To(ConsistOf(because))
		},
		Entry("nothing known", nil, rules.Conformant),
		Entry("MANDATORY passes", map[string]rules.Outcome{"CANCEL-001": rules.Passed}, rules.Conformant),
		Entry("MANDATORY fails", map[string]rules.Outcome{"CANCEL-001": rules.Broken}, rules.NotConformant,
			"CANCEL-001"),
		Entry("MANDATORY not reached", map[string]rules.Outcome{"CANCEL-001": rules.NotReached},
			rules.InconclusiveVerdict,
			"CANCEL-001"),
		Entry("MANDATORY inconclusive", map[string]rules.Outcome{"CANCEL-001": rules.Undecided},
			rules.InconclusiveVerdict,
			"CANCEL-001"),
		Entry("CAPABILITY fails", map[string]rules.Outcome{"LOAD-004": rules.Broken}, rules.NotConformant, "LOAD-004"),
		Entry("CAPABILITY not reached", map[string]rules.Outcome{"LOAD-004": rules.NotReached}, rules.Conformant),
		Entry("CAPABILITY inconclusive", map[string]rules.Outcome{"LOAD-004": rules.Undecided}, rules.Conformant),
		Entry("ADVISORY fails", map[string]rules.Outcome{"CANCEL-003": rules.Broken}, rules.Conformant),
		Entry("INFORMATIONAL fails", map[string]rules.Outcome{"PROMPT-016": rules.Broken}, rules.Conformant),
		Entry("the worst counts", map[string]rules.Outcome{"CANCEL-001": rules.Undecided, "CANCEL-002": rules.Broken,
			"CANCEL-004": rules.Passed}, rules.NotConformant, "CANCEL-002"),
	)

	It("counts each requirement once", func() {
		c := invariants.V1().Conclude(map[string]rules.Outcome{"CANCEL-001": rules.Passed})
		total := 0
		for _, byOutcome := range c.Counts {
			for _, n := range byOutcome {
				total += n
			}
		}
		Expect(total).To(Equal(len(invariants.V1().Requirements())))
		Expect(c.Counts[rules.Mandatory][rules.Passed]).To(Equal(1))
		Expect(c.Verdict.String()).To(Equal("CONFORMANT"))
	})

	It("never gets better when an outcome gets worse", func() {
		var ids []string
		for _, q := range invariants.V1().Requirements() {
			ids = append(ids, q.ID)
		}
		rapid.Check(GinkgoT(), func(t *rapid.T) {
			outcomes := map[string]rules.Outcome{}
			for _, id := range rapid.SliceOfN(rapid.SampledFrom(ids), 0, 20).Draw(t, "ids") {
				outcomes[id] = rules.Outcome(rapid.IntRange(0, int(rules.Broken)).Draw(t, "outcome"))
			}
			before := invariants.V1().Conclude(outcomes)
			id := rapid.SampledFrom(ids).Draw(t, "id")
			if outcomes[id] >= rules.Passed {
				outcomes[id] = rules.Outcome(rapid.IntRange(int(outcomes[id]), int(rules.Broken)).Draw(t, "worse"))
			}
			after := invariants.V1().Conclude(outcomes)
			if after.Verdict < before.Verdict {
				t.Fatalf("%v became %v", before.Verdict, after.Verdict)
			}
		})
	})
})

var _ = Describe("a tally", func() {
	It("turns findings, evidence and checks into outcomes", func() {
		var tally rules.Tally
		found, checker, _ := stage(strings.TrimSpace(`
start
session s
--> 2 session/prompt s "hi"
<-- s agent_message_chunk "hello"
--> session/cancel s
<-- 2 = {"stopReason":"end_turn"}
<-- vendor/status {}`), rules.Config{})
		tally.AddFindings(found, checker.Support())
		tally.AddCheck("cancel/x#cancel-011", []string{"CANCEL-011"}, rules.Broken)
		tally.AddCheck("load/x#load-007", []string{"LOAD-007"}, rules.Untested)
		got := tally.Outcomes()
		Expect(got).To(HaveKeyWithValue("CANCEL-001", rules.Undecided))
		Expect(got).To(HaveKeyWithValue("CANCEL-002", rules.Passed))
		Expect(got).To(HaveKeyWithValue("EXT-002", rules.Broken))
		Expect(got).To(HaveKeyWithValue("CANCEL-011", rules.Broken))
		Expect(got).NotTo(HaveKey("LOAD-007"))
		Expect(got).NotTo(HaveKey("TERM-004"), "there was no terminal to judge")

		rows := tally.Rows(invariants.V1())
		Expect(rows).To(HaveLen(len(invariants.V1().Requirements())))
		row := rows[slices.IndexFunc(rows, func(r rules.Row) bool { return r.Requirement.ID == "CANCEL-011" })]
		Expect(row.Sources).To(Equal([]string{"cancel/x#cancel-011"}))
		Expect(row.String()).To(Equal("CANCEL-011 MANDATORY fail (evidence: 1)"))
		Expect(invariants.V1().Conclude(got).Verdict).To(Equal(rules.NotConformant))
	})

	It("keeps the client's faults from the agent", func() {
		var tally rules.Tally
		tally.AddFindings([]rules.Finding{{Rule: "C-CWD", Side: rules.OfClient, Class: rules.Fail,
			Requirements: []string{"SESSION-005"}}}, nil)
		Expect(tally.Outcomes()).To(BeEmpty())
	})
})
