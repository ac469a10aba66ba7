package scenarios_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/acp-test/acp-test/protocol/acp/invariants"
	"github.com/acp-test/acp-test/scenarios/results"
	"github.com/acp-test/acp-test/scenarios/verdict"
	"github.com/acp-test/acp-test/transcript"
)

var _ = Describe("the verdict of conformance", func() {
	conform := func(r results.Result) *results.Conformance {
		run := results.Run{Results: []results.Result{{ID: "x/y", Verdict: results.Pass}, r}}
		verdict.Conform(invariants.V1(), &run)
		return run.Conformance
	}

	It("is never CONFORMANT beside a failure without a requirement, and names what failed", func() {
		for _, c := range []struct {
			result results.Result
			named  string
		}{
			{results.Result{ID: "a/b", Verdict: results.Fail,
				Checks: []results.Check{{ID: "a/b#c", Verdict: results.Fail}}}, "a/b#c"},
			{results.Result{ID: "a/b", Verdict: results.Fail,
				Findings: []results.Finding{{Rule: "SURVIVORS", Class: results.Fail}}}, "SURVIVORS"},
			{results.Result{ID: "a/b", Verdict: results.Fail,
				Failure: &transcript.Failure{Reason: "gone"}, FailureClass: results.Fail}, "a/b"},
		} {
			got := conform(c.result)
			Expect(got.Verdict).To(Equal("NOT CONFORMANT"))
			Expect(got.Because).To(Equal([]string{c.named}))
		}
	})

	It("takes no account of warnings, and of what this program is to blame for", func() {
		warned := results.Result{ID: "a/b", Verdict: results.Pass,
			Checks: []results.Check{{ID: "a/b#c", Verdict: results.Warn}}}
		Expect(conform(warned).Verdict).To(Equal("CONFORMANT"))
		wrong := results.Result{ID: "a/b", Verdict: results.Error,
			Checks: []results.Check{{ID: "a/b#c", Verdict: results.Fail}}}
		Expect(conform(wrong).Verdict).To(Equal("CONFORMANT"))
	})
})
