package fakellm_test

import (
	"errors"
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/acp-test/acp-test/fakellm"
	"github.com/acp-test/acp-test/mistake"
)

var _ = Describe("a script", func() {
	DescribeTable("says where a mistake is and what was meant",
		func(src, want string) {
			_, err := fakellm.ParseScript("llm.yaml", []byte(src), nil)
			var e *mistake.Mistake
			Expect(errors.As(err, &e)).To(BeTrue(), "got %v", err)
			Expect(err.Error()).To(Equal(want))
		},
		Entry("a key of the script", "replis: []\n",
			`llm.yaml:1:1: unknown key "replis" in a script (did you mean "replies"?)`),
		Entry("a step", "replies:\n  - - txet: hi\n", `llm.yaml:2:7: unknown step "txet" (did you mean "text"?)`),
		Entry("a key of a step", "replies:\n  - - text: hi\n      chunk: 2\n",
			`llm.yaml:3:7: unknown key "chunk" in a text step (did you mean "chunks"?)`),
		Entry("two steps in one", "replies:\n  - - text: hi\n      gate: mid\n",
			`llm.yaml:3:7: a step does one thing: "text" and "gate" must be two steps, each with its own dash`),
		Entry("a reply that is no list", "replies:\n  - text: hi\n",
			`llm.yaml:2:5: a reply must be a list of steps (write it as a list of steps: "- - text: …")`),
		Entry("a stop", "replies:\n  - - stop: lenght\n",
			`llm.yaml:2:13: stop cannot be "lenght" (did you mean "length"?)`),
		Entry("a fault", "replies:\n  - - fail: {statsu: 500}\n",
			`llm.yaml:2:14: unknown key "statsu" in fail (did you mean "status"?)`),
		Entry("two ends", "replies:\n  - - fail: {status: 500, hang: true}\n",
			`llm.yaml:2:14: a fault can do only one of status and hang`),
		Entry("nothing", "replies:\n  - - fail: {times: 2}\n",
			`llm.yaml:2:14: this fault does nothing (one of status, disconnect, hang, malformed, truncate, `+
				`content_type, body, slow, comment)`),
		Entry("a condition", "replies:\n  - - when: {usr~: x}\n",
			`llm.yaml:2:14: unknown field "usr" in a condition (did you mean "user"?)`),
		Entry("a regular expression", "replies:\n  - - when: {user~: \"(\"}\n",
			"llm.yaml:2:21: bad regular expression: missing closing ): `(`"),
		Entry("chunks that are not the text", "replies:\n  - - text: hello\n      chunks: [he, lo]\n",
			`llm.yaml:3:15: text must be the chunks joined (joined they are "helo")`),
		Entry("a lane without a condition", "lanes:\n  title: {reply: [{text: T}]}\n",
			`llm.yaml:2:3: lane "title" has no when, so it would take every request`),
		Entry("a duration", "delay: {ttft: fast}\n",
			`llm.yaml:1:15: ttft must be a duration, not "fast" (such as 20ms, 1.5s, or a number of seconds)`),
		Entry("both forms", "turns: []\nreplies: []\n",
			`llm.yaml:2:10: a script has either turns or replies, not both (replies is shorthand for a script `+
				`with one turn)`),
		Entry("YAML", "replies: [\n", `llm.yaml:1:10: sequence end token ']' not found`),
	)

	It("puts variables into texts and arguments, not into names and patterns", func() {
		expand := func(s string) (string, error) {
			if strings.Contains(s, "$NOPE") {
				return "", fmt.Errorf("no variable $NOPE")
			}
			return strings.ReplaceAll(s, "$WORK", "/w"), nil
		}
		s, err := fakellm.ParseScript("llm.yaml",
			[]byte("replies:\n  - - when: {user~: \"$WORK$\"}\n    - text: in $WORK\n    - tool: write_file\n"+
				"      args: {path: $WORK/a, n: 1, list: [$WORK]}\n"), expand)
		Expect(err).NotTo(HaveOccurred())
		r := s.Turns[0].Replies[0]
		Expect(r.When[0].Pattern.String()).To(Equal("$WORK$"))
		Expect(r.Steps[0].Chunks).To(Equal([]string{"in /w"}))
		Expect(fmt.Sprint(r.Steps[1].Args)).To(Equal("[{path /w/a} {n 1} {list [/w]}]"))
		_, err = fakellm.ParseScript("llm.yaml", []byte("replies:\n  - - text: $NOPE\n"), expand)
		Expect(err).To(MatchError("llm.yaml:2:13: no variable $NOPE"))
	})

	It("cuts texts at character boundaries", func() {
		s := script("replies:\n  - - text: äöü€x\n      chunks: 3\n  - - text: ab\n      chunks: 5\n  - - text: ab\n" +
			"      repeat: 3\n")
		Expect(s.Turns[0].Replies[0].Steps[0].Chunks).To(Equal([]string{"ä", "öü", "€x"}))
		Expect(s.Turns[0].Replies[1].Steps[0].Chunks).To(Equal([]string{"a", "b"}))
		Expect(s.Turns[0].Replies[2].Steps[0].Chunks).To(Equal([]string{"ababab"}))
	})

	It("puts a passing fault before the reply it delays", func() {
		s := script("replies:\n  - - text: one\n  - - fail: {status: 429, times: 1}\n  - - text: two\n")
		Expect(s.Turns[0].Replies).To(HaveLen(2))
		Expect(s.Turns[0].Replies[1].Steps).To(HaveLen(2))
	})
})
