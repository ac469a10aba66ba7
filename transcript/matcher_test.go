package transcript_test

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"

	"github.com/acp-test/acp-test/transcript"
)

// mockEditor stands for anything that has a transcript.
type mockEditor struct{ t *transcript.Transcript }

func (e mockEditor) Transcript() *transcript.Transcript { return e.t }

// fails runs an assertion that should fail and returns its message.
func fails(assertion func(g Gomega)) string {
	var message string
	g := NewGomega(func(m string, _ ...int) { message = m })
	assertion(g)
	return message
}

var _ = Describe("An expectation as a gomega matcher", func() {
	var t *transcript.Transcript
	BeforeEach(func() { t = empty() })

	var _ types.GomegaMatcher = transcript.Expectation{}

	It("matches a transcript, or what has one", func() {
		note(t, "x")
		Expect(t).To(a("x"))
		Expect(mockEditor{t}).To(a("x"))
		Expect(t).NotTo(a("y"))
		Expect(t).To(SatisfyAll(a("x"), Not(a("y")), transcript.Not(a("y"))))
	})

	It("says what it can be matched against", func() {
		_, err := a("x").Match(3)
		Expect(err).To(MatchError(ContainSubstring("not a int")))
	})

	It("looks at each entry once, however often it is polled", func() {
		seen := 0
		x := transcript.Expect("three entries", func() transcript.Fold {
			return func(transcript.Entry) (transcript.Verdict, string) {
				if seen++; seen >= 3 {
					return transcript.Met, ""
				}
				return transcript.Unmet, ""
			}
		})
		go func() {
			for range 3 {
				note(t, "x")
			}
		}()
		Eventually(t).WithPolling(time.Millisecond).Should(x)
		Expect(t).To(x)
		Expect(seen).To(Equal(3))
	})

	It("begins again with another transcript", func() {
		x := a("x")
		note(t, "x")
		Expect(t).To(x)
		Expect(empty()).NotTo(x)
		Expect(t).To(x)
	})

	It("works for a value made without Expect", func() {
		note(t, "x")
		x := transcript.Expectation{Description: "an x", Start: a("x").Start}
		Expect(t).To(x)
	})

	It("stops Eventually when the verdict is final", func(ctx context.Context) {
		note(t, "y")
		x := a("x").Before(a("y"))
		Expect(x.MatchMayChangeInTheFuture(t)).To(BeFalse())
		message := fails(func(g Gomega) { g.Eventually(ctx, t).WithTimeout(time.Hour).Should(x) })
		Expect(message).To(ContainSubstring("a x before a y\nit is unmeetable: a y came first, at #1\n" +
			"the last entries are:\n  #1 note note"))
	}, NodeTimeout(10*time.Second))

	It("stops Eventually when the agent has exited", func(ctx context.Context) {
		started(t, 0)
		exited(t, 0, 1)
		message := fails(func(g Gomega) { g.Eventually(ctx, t).WithTimeout(time.Hour).Should(a("x")) })
		Expect(message).To(ContainSubstring(`it is unmeetable: no agent runs any more; no such entry`))
		Expect(message).To(ContainSubstring(`#2 process exit {"code":1}`))
	}, NodeTimeout(10*time.Second))

	It("does not stop while something can still change", func() {
		Expect(a("x").MatchMayChangeInTheFuture(t)).To(BeTrue())
		Expect(transcript.Not(a("x")).MatchMayChangeInTheFuture(t)).To(BeTrue())
		note(t, "x")
		Expect(a("x").MatchMayChangeInTheFuture(t)).To(BeFalse())
		Expect(transcript.Not(a("x")).MatchMayChangeInTheFuture(t)).To(BeFalse())
	})

	It("has a message for what should not be", func() {
		agent(t, update(1)+string(make([]byte, 300)))
		note(t, "x")
		Expect(fails(func(g Gomega) { g.Expect(t).NotTo(a("x")) })).
			To(HavePrefix("expected no a x\nthe last entries are:\n  #1 agent malformed {"))
	})
})
