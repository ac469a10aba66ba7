package fakellm_test

import (
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/acp-test/acp-test/fakellm"
)

var _ = Describe("a late text", func() {
	// Of the event that holds it: what else stands there.
	last := map[string]string{fakellm.OpenAIChat: `"finish_reason":"stop"`,
		fakellm.OpenAIResponses: "response.completed",
		fakellm.Anthropic:       "content_block_delta", fakellm.Gemini: `"finishReason":"STOP"`}
	for _, e := range endpoints {
		It("comes in no chunk of its own: "+e.name, func() {
			r := serving("replies:\n  - - text: soon\n    - text: at last\n      late: true\n")
			got := r.ask(e, true, "x")
			Expect([]any{got.status, got.err}).To(Equal([]any{200, nil}))
			var holding []string
			for event := range strings.SplitSeq(got.body, "\n\n") {
				if strings.Contains(event, "at last") {
					holding = append(holding, event)
				}
			}
			Expect(holding).NotTo(BeEmpty())
			Expect(holding).NotTo(ContainElement(ContainSubstring("delta\":\"at last")))
			Expect(holding[len(holding)-1]).To(ContainSubstring(last[e.name]))
			Expect(r.kinds()).To(Equal("model-request model-answer model-chunk model-done"))
			Expect(r.field("model-chunk", "data")).To(Equal(`["soon","at last"]`))

			got = r.ask(e, false, "x")
			Expect(got.body).To(ContainSubstring("at last"))
		})
	}
})

var _ = Describe("a whole reply", func() {
	const script = "replies:\n  - - thinking: hm\n    - text: soon\n" +
		"    - tool: read_file\n      args: {path: /a}\n    - whole: true\n"
	for _, e := range endpoints {
		It("comes in one event where the format knows such: "+e.name, func() {
			got := serving(script).ask(e, true, "x")
			Expect([]any{got.status, got.err}).To(Equal([]any{200, nil}))
			events := strings.Split(got.body, "\n\n")
			i := slices.IndexFunc(events, func(event string) bool { return strings.Contains(event, "soon") })
			Expect(i).To(BeNumerically(">=", 0))
			one := e.name == fakellm.OpenAIChat || e.name == fakellm.Gemini
			for _, beside := range []string{"hm", "/a"} {
				Expect(strings.Contains(events[i], beside)).To(Equal(one), events[i])
			}
		})
	}

	It("has no gate", func() {
		_, err := fakellm.ParseScript("x.yaml", []byte("replies:\n  - - whole: true\n    - gate: g\n"), nil)
		Expect(err).To(MatchError(ContainSubstring("cannot have a gate")))
	})
})
