package agents_test

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/acp-test/acp-test/agents"
)

var _ = Describe("a list of known failures", func() {
	It("is read as it was written", func() {
		list := []agents.KnownFailure{
			{Scenario: "load/*", ID: "TURN-END", Reason: "it says \"no\": 'x' # é \t\x07\U0001F600",
				Link: "https://example.org/#1", Expires: time.Date(2999, 1, 31, 0, 0, 0, 0, time.UTC), Flaky: true,
				Requirements: []string{"PROMPT-003", "RPC-005"}},
			{Scenario: "cancel/idle", ID: "ends", Reason: "{not: a map}"},
			{Scenario: "**", ID: "TURN-END late", Cause: true, Reason: "once for all"},
			{Scenario: "sweep/**", ID: "CANCEL-001", Cause: true, Reason: "there only"},
			{Scenario: "queue/**", ID: "in-order", Reason: "r", Protocols: []string{"acp-v1", "acp-v2"}},
		}
		read, err := agents.ParseKnownFailures("", agents.FormatKnownFailures(list))
		Expect(err).NotTo(HaveOccurred())
		for i := range read {
			read[i].Line = 0
		}
		Expect(read).To(Equal(list))
		Expect(agents.ParseKnownFailures("", agents.FormatKnownFailures(nil))).To(BeEmpty())
	})

	It("names one thing", func() {
		for _, entry := range []string{"{scenario: a, reason: r}", "{scenario: a, check: c, cause: X y, reason: r}"} {
			_, err := agents.ParseKnownFailures("known.yaml", []byte("- "+entry+"\n"))
			Expect(err).To(MatchError(ContainSubstring("either a check, a rule or a cause")))
		}
		_, err := agents.ParseKnownFailures("known.yaml", []byte("- {check: ends, reason: r}\n"))
		Expect(err).To(MatchError(ContainSubstring("unless it names a cause")))
	})

	It("narrows flaky rules only", func() {
		for _, entry := range []string{"rule: TURN-END", "check: ends, flaky: true"} {
			_, err := agents.ParseKnownFailures("known.yaml",
				[]byte("- {scenario: a, "+entry+", reason: r, requirements: [RPC-005]}\n"))
			Expect(err).To(MatchError(ContainSubstring("requirements is only for a flaky rule")))
		}
	})
})
