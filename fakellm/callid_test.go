package fakellm_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/acp-test/acp-test/fakellm"
)

var _ = Describe("the id of a call", func() {
	for _, e := range endpoints {
		It("is the script's where servers of many hands speak the format: "+e.name, func() {
			r := serving("replies:\n  - - tool: look\n      id: 0\n")
			got := r.ask(e, true, "x")
			Expect([]any{got.status, got.err}).To(Equal([]any{200, nil}))
			Expect(got.body).To(ContainSubstring(`"look"`))
			if e.name == fakellm.OpenAIChat {
				Expect(got.body).To(ContainSubstring(`"id":"call_0"`))
			} else {
				Expect(got.body).NotTo(MatchRegexp(`"(call|toolu)_0"`))
			}
		})
	}
})

var _ = Describe("a call without arguments", func() {
	It("has no text of them in a stream of Anthropic's, and an object in one that is whole", func() {
		for stream, want := range map[bool]string{true: `"partial_json":""`, false: `"input":{}`} {
			got := serving("replies:\n  - - tool: look\n").ask(endpoints[2], stream, "x")
			Expect([]any{got.status, got.err}).To(Equal([]any{200, nil}))
			Expect(got.body).To(ContainSubstring(want))
		}
	})
})
