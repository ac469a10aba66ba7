package scenarios_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/acp-test/acp-test/protocol/acp/invariants"
	"github.com/acp-test/acp-test/scenarios"
	"github.com/acp-test/acp-test/transcript"
)

var _ = Describe("the verdict of conformance", func() {
	conform := func(r scenarios.Result) *scenarios.Conformance {
		run := scenarios.Run{Results: []scenarios.Result{{ID: "x/y", Verdict: scenarios.Pass}, r}}
		scenarios.Conform(invariants.V1(), &run)
		return run.Conformance
	}

	It("is never CONFORMANT beside a failure without a requirement, and names what failed", func() {
		for _, c := range []struct {
			result scenarios.Result
			named  string
		}{
			{scenarios.Result{ID: "a/b", Verdict: scenarios.Fail, Checks: []scenarios.Check{{ID: "a/b#c", Verdict: scenarios.Fail}}}, "a/b#c"},
			{scenarios.Result{ID: "a/b", Verdict: scenarios.Fail, Findings: []scenarios.Finding{{Rule: "SURVIVORS", Class: scenarios.Fail}}}, "SURVIVORS"},
			{scenarios.Result{ID: "a/b", Verdict: scenarios.Fail,
				Failure: &transcript.Failure{Reason: "gone"}, FailureClass: scenarios.Fail}, "a/b"},
		} {
			got := conform(c.result)
			Expect(got.Verdict).To(Equal("NOT CONFORMANT"))
			Expect(got.Because).To(Equal([]string{c.named}))
		}
	})

	It("takes no account of warnings, and of what this program is to blame for", func() {
		warned := scenarios.Result{ID: "a/b", Verdict: scenarios.Pass, Checks: []scenarios.Check{{ID: "a/b#c", Verdict: scenarios.Warn}}}
		Expect(conform(warned).Verdict).To(Equal("CONFORMANT"))
		wrong := scenarios.Result{ID: "a/b", Verdict: scenarios.Error, Checks: []scenarios.Check{{ID: "a/b#c", Verdict: scenarios.Fail}}}
		Expect(conform(wrong).Verdict).To(Equal("CONFORMANT"))
	})
})
