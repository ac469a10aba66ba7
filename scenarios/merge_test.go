package scenarios_test

import (
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/acp-test/acp-test/protocol/acp/invariants"
	"github.com/acp-test/acp-test/scenarios"
	"github.com/acp-test/acp-test/scenarios/results"
	"github.com/acp-test/acp-test/scenarios/verdict"
)

// listed is a list of scenarios with these ids.
func listed(ids ...string) []*scenarios.Scenario {
	var list []*scenarios.Scenario
	for _, id := range ids {
		list = append(list, &scenarios.Scenario{ID: id})
	}
	return list
}

var _ = Describe("the parts of a run", func() {
	all := listed("a", "b", "c", "d", "e")

	// cut is a run of all scenarios, as parts.
	cut := func(of int, edit func(*results.Run)) []results.Run {
		var parts []results.Run
		for i := range of {
			shard := &results.Shard{Index: i + 1, Of: of, Hash: scenarios.Hash(all)}
			for _, s := range all {
				shard.List = append(shard.List, s.ID)
			}
			run := results.Run{Version: 1, Tool: "acp-test 1",
				Command: fmt.Sprintf("acp-test run --shard %d/%d -- x --shard 9/9", i+1, of),
				Agent:   results.Agent{Profile: "x", Command: []string{"x"}},
				Shard:   shard, Started: time.Unix(int64(100-i), 0), Duration: time.Duration(i),
				Notes: []string{fmt.Sprintf("part %d", i+1)}}
			for _, s := range scenarios.Select(all, shard, nil) {
				run.Results = append(run.Results,
					results.Result{ID: s.ID, Verdict: results.Pass, AgentName: "X", AgentVersion: "2",
						Evidence: map[string]int{"TURN-END": 1}})
			}
			if edit != nil {
				edit(&run)
			}
			parts = append(parts, run)
		}
		return parts
	}
	ids := func(run results.Run) (out []string) {
		for _, r := range run.Results {
			out = append(out, fmt.Sprint(r.ID, r.Repeat))
		}
		return out
	}

	It("become the run again, in whatever order they come", func() {
		p := cut(3, nil)
		whole, err := verdict.Merge(invariants.V1(), []results.Run{p[2], p[0], p[1]})
		Expect(err).NotTo(HaveOccurred())
		Expect(ids(whole)).To(Equal([]string{"a0", "b0", "c0", "d0", "e0"}))
		Expect(whole.Shard).To(BeNil())
		Expect([]any{whole.Counts.Pass, whole.Verdict, whole.Exit, whole.Notes, whole.Started, whole.Duration}).
			To(Equal([]any{5, results.Pass, 0, []string(nil), time.Unix(98, 0), time.Duration(2)}))
		Expect(whole.Command).To(Equal("acp-test run -- x --shard 9/9"))
		Expect(whole.Agent.Version).To(Equal("2"))
		Expect(p[0].Shard).NotTo(BeNil(), "the parts stay as they are")
	})

	It("keep the order of repeats", func() {
		whole, err := verdict.Merge(invariants.V1(), cut(2, func(r *results.Run) {
			once := r.Results
			r.Results = nil
			for n := 1; n <= 2; n++ {
				for _, x := range once {
					x.Repeat = n
					r.Results = append(r.Results, x)
				}
			}
		}))
		Expect(err).NotTo(HaveOccurred())
		Expect(ids(whole)).To(Equal([]string{"a1", "b1", "c1", "d1", "e1", "a2", "b2", "c2", "d2", "e2"}))
	})

	It("decide together which known failures and goldens are stale", func() {
		whole, err := verdict.Merge(invariants.V1(), cut(3, func(r *results.Run) {
			r.Shard.Unclaimed = []string{"golden x/gone belongs to no scenario: delete it"}
			r.Shard.Expected = []results.Expected{
				{Scenario: "*", ID: "TURN-END"}, {Scenario: "b", ID: "TURN-END", Flaky: true},
				{Scenario: "*", ID: "OTHER"}, {Scenario: "**", ID: "TURN-END", Part: true},
				{Scenario: "a", ID: "OTHER", Expires: time.Unix(1, 0)}, {Scenario: "c", ID: "#check"},
			}
		}))
		Expect(err).NotTo(HaveOccurred())
		Expect(whole.Stale).To(Equal([]string{"golden x/gone belongs to no scenario: delete it",
			"known failure TURN-END of * no longer fails: delete it",
			"known failure OTHER of a has expired: fix it or extend it"}))
		Expect(whole.Exit).To(Equal(1))
	})

	It("get the requirement table of the whole", func() {
		whole, err := verdict.Merge(invariants.V1(),
			cut(2, func(r *results.Run) { r.Conformance = &results.Conformance{Verdict: "CONFORMANT"} }))
		Expect(err).NotTo(HaveOccurred())
		Expect(whole.Conformance.Requirements).NotTo(BeEmpty())
	})

	DescribeTable("are refused",
		func(edit func([]results.Run) []results.Run, why string) {
			_, err := verdict.Merge(invariants.V1(), edit(cut(3, nil)))
			Expect(err).To(MatchError(ContainSubstring(why)))
		},
		Entry("when there are none", func([]results.Run) []results.Run { return nil }, "there is nothing to merge"),
		Entry("when one is missing", func(p []results.Run) []results.Run { return p[:2] }, "part 3 of 3 is missing"),
		Entry("when one is there twice", func(p []results.Run) []results.Run { return append(p, p[1]) },
			"part 2 is given twice"),
		Entry("when one is no part", func(p []results.Run) []results.Run { p[1].Shard = nil; return p }, "is complete"),
		Entry("when one did not begin", func(p []results.Run) []results.Run {
			p[1] = results.Run{Notes: []string{"no such agent"}}
			return p
		}, "did not begin: no such agent"),
		Entry("when one is of another list", func(p []results.Run) []results.Run {
			p[1].Shard.List = p[1].Shard.List[1:]
			p[1].Shard.Hash = scenarios.Hash(all[1:])
			return p
		}, "part 2 has another list of scenarios than part 1"),
		Entry("when a list was changed", func(p []results.Run) []results.Run { p[1].Shard.List[0] = "z"; return p },
			"part 2 has been changed"),
		Entry("when one has another number of parts",
			func(p []results.Run) []results.Run { p[1].Shard.Of = 4; return p },
			"part 2 has another number of parts than part 1: 4, not 3"),
		Entry("when an index cannot be", func(p []results.Run) []results.Run { p[1].Shard.Index = 7; return p },
			"part 7 of 3 cannot be"),
		Entry("when one was interrupted", func(p []results.Run) []results.Run { p[1].Interrupted = true; return p },
			"part 2 was interrupted"),
		Entry("when one is a sweep", func(p []results.Run) []results.Run { p[1].Sweep = &results.Sweep{}; return p },
			"part 2 has another kind of run than part 1: sweep, not run"),
		Entry("when one is of another program",
			func(p []results.Run) []results.Run { p[2].Tool = "acp-test 2"; return p },
			"part 3 has another version of acp-test than part 1: acp-test 2, not acp-test 1"),
		Entry("when one tested another agent",
			func(p []results.Run) []results.Run { p[2].Agent.Profile = "y"; return p }, "another agent"),
		Entry("when one tested another version", func(p []results.Run) []results.Run {
			p[0].Agent.Version, p[2].Agent.Version = "1", "2"
			return p
		}, "part 3 tested version 2 of the agent, part 1 version 1"),
		Entry("when one has another seed", func(p []results.Run) []results.Run { p[2].Seed = 7; return p },
			"another seed"),
		Entry("when one is a conformance run",
			func(p []results.Run) []results.Run { p[2].Conformance = &results.Conformance{}; return p },
			"another kind of run"),
		Entry("when a scenario is missing", func(p []results.Run) []results.Run { p[1].Results = nil; return p },
			"b ran in none of the parts"),
		Entry("when a scenario ran twice", func(p []results.Run) []results.Run {
			p[1].Results = append(p[1].Results, p[0].Results[0])
			return p
		}, "a ran in part 1 and in part 2"),
		Entry("when a scenario is not in the list", func(p []results.Run) []results.Run {
			p[1].Results = append(p[1].Results, results.Result{ID: "z"})
			return p
		}, "part 2 ran z, which is not in the list"),
	)

	It("take equally long, when durations are known", func() {
		takes := map[string]time.Duration{"a": 9 * time.Second, "b": 4 * time.Second, "c": 3 * time.Second,
			"e": 2 * time.Second}
		var parts [][]string
		for i := 1; i <= 2; i++ {
			var part []string
			for _, s := range scenarios.Select(all, &results.Shard{Index: i, Of: 2}, takes) {
				part = append(part, s.ID)
			}
			parts = append(parts, part)
		}
		// d has no duration: it counts as the median, four seconds.
		Expect(parts).To(Equal([][]string{{"a", "e"}, {"b", "c", "d"}}))
	})

	It("are the same list dealt out, whatever the durations", func() {
		for _, takes := range []map[string]time.Duration{nil, {"zzz": 1}, {"a": 0, "b": 0, "c": 0, "d": 0, "e": 0}} {
			for of := 1; of <= 7; of++ {
				got := map[string]int{}
				for i := 1; i <= of; i++ {
					for _, s := range scenarios.Select(all, &results.Shard{Index: i, Of: of}, takes) {
						got[s.ID]++
					}
				}
				Expect(got).To(Equal(map[string]int{"a": 1, "b": 1, "c": 1, "d": 1, "e": 1}))
			}
		}
	})
})
