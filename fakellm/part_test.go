package fakellm_test

import (
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/acp-test/acp-test/fakellm"
)

var _ = Describe("a text in parts", func() {
	const script = "replies:\n  - - text: one\n    - text: two\n      part: true\n"
	// What stands between the parts where nothing is streamed.
	between := map[string]string{fakellm.OpenAIChat: `onetwo`, fakellm.OpenAIResponses: `one"},{"type":"output_text"`,
		fakellm.Anthropic: `one"},{"type":"text"`, fakellm.Gemini: `one"},{"text"`}
	for _, e := range endpoints {
		It("has a part for each: "+e.name, func() {
			got := serving(script).ask(e, false, "x")
			Expect([]any{got.status, got.err}).To(Equal([]any{200, nil}))
			Expect(got.body).To(ContainSubstring(between[e.name]))
		})
	}

	It("is one message in a stream of the Responses API", func() {
		e := endpoints[0]
		for _, e = range endpoints {
			if e.name == fakellm.OpenAIResponses {
				break
			}
		}
		body := serving(script).ask(e, true, "x").body
		Expect(strings.Count(body, "event: response.output_item.added")).To(Equal(1))
		Expect(strings.Count(body, "event: response.output_item.done")).To(Equal(1))
		Expect(strings.Count(body, "event: response.content_part.done")).To(Equal(2))
		Expect(body).To(MatchRegexp(`"content_index":1,"delta":"two"`))
	})
})
