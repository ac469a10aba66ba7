package fakellm_test

import (
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/acp-test/acp-test/fakellm"
)

// chatRequest is a Chat Completions request with tools.
func chatRequest(messages string, more ...string) string {
	extra := ""
	for _, m := range more {
		extra += "," + m
	}
	return fmt.Sprintf(`{"model":"m","messages":[%s],"tools":[{"type":"function","function":{"name":"WriteFile",`+
		`"parameters":{"type":"object","properties":{"absolute_path":{"type":"string"},"contents":{"type":"string"},`+
		`"mode":{"type":"string","enum":["w","a"]}},"required":["absolute_path","contents","mode"]}}}]%s}`, messages,
		extra)
}

func msg(role, text string) string { return fmt.Sprintf(`{"role":%q,"content":%q}`, role, text) }

// used is a message that calls a tool, and the result.
func used(text, result string) string {
	return fmt.Sprintf(`{"role":"assistant","content":%q,"tool_calls":[{"id":"c","type":"function",`+
		`"function":{"name":"f","arguments":"{}"}}]},`+
		`{"role":"tool","tool_call_id":"c","content":%q}`, text, result)
}

func (r rig) chat(body string) answer {
	GinkgoHelper()
	return post(r.URL()+"/v1/chat/completions", body)
}

var _ = Describe("the reply to a request", func() {
	var r rig
	BeforeEach(func() {
		r = start(fakellm.Config{
			Script: script(`
lanes:
  suggestion: {when: {user~: "SUGGEST"}, reply: [{text: a suggestion}]}
turns:
  - - - text: one-1
    - - text: one-2
  - - - text: two-1
  - - - when: {user~: "blue", model: m}
      - text: three-1
`),
			Tools: map[string]fakellm.Tool{},
			Prompts: []fakellm.Prompt{{Index: 1, Text: "Hello"}, {Index: 2, Text: "Hello again"},
				{Index: 3, Text: "Paint it"}},
		})
	})
	It("is found by the prompt that occurs last, and by the replies after it", func() {
		Expect(r.chat(chatRequest(msg("user", "<context/>\nHello\n<files/>"))).body).To(ContainSubstring("one-1"))
		Expect(r.chat(chatRequest(msg("user", "Hello") + "," + used("x", "res"))).body).To(ContainSubstring("one-2"))
		Expect(r.chat(chatRequest(msg("user", "Hello") + "," + msg("assistant", "x") + "," +
			msg("user", "Hello again"))).body).To(ContainSubstring("two-1"))
		Expect(r.field("model-request", "user")).To(Equal("Hello again"))
		Expect(r.field("model-request", "prompt")).To(Equal("2"))
		Expect(r.field("model-request", "lane")).To(Equal("main"))
	})
	It("ignores white space that the agent changed", func() {
		Expect(r.chat(chatRequest(msg("user", "> Hello\n  again"))).body).To(ContainSubstring("two-1"))
	})
	It("is the same for the same key, in any order", func() {
		second := chatRequest(msg("user", "Hello") + "," + used("x", "res"))
		first := chatRequest(msg("user", "Hello"))
		a := r.chat(second).body
		Expect(r.chat(first).body).To(ContainSubstring("one-1"))
		Expect(r.chat(second).body).To(Equal(a))
	})
	It("has the ACP session once the prompt was begun", func() {
		r.Begin(fakellm.Prompt{Session: "sess-7", Index: 1, Text: "Hello"})
		r.chat(chatRequest(msg("user", "Hello")))
		Expect(r.await("model-done").Session).To(Equal("sess-7"))
		Expect(r.chat(chatRequest(msg("user", "Hello again"))).body).
			To(ContainSubstring("one-1"), "prompt 2 was not begun")
	})
	It("tells prompts of one text apart by how often it was said, and sessions by who was prompted last", func() {
		once := chatRequest(msg("user", "Hello"))
		twice := chatRequest(msg("user", "Hello") + "," + msg("assistant", "x") + "," + msg("user", "Hello"))
		r.Begin(fakellm.Prompt{Session: "a", Index: 1, Text: "Hello"})
		r.Begin(fakellm.Prompt{Session: "a", Index: 2, Text: "Hello"})
		Expect(r.chat(once).body).To(ContainSubstring("one-1"))
		Expect(r.chat(twice).body).To(ContainSubstring("two-1"))
		r.Begin(fakellm.Prompt{Session: "b", Index: 3, Text: "Hello"})
		r.chat(once)
		Expect(r.field("model-request", "prompt")).To(Equal("3"))
		Expect(r.chat(twice).body).To(ContainSubstring("two-1"))
	})
	It("is a short text beyond the last step, and that is noted", func() {
		Expect(r.chat(chatRequest(msg("user", "Hello again") + "," + used("x", "y"))).body).
			To(ContainSubstring("Done."))
		Expect(r.field("model-request", "lane")).To(Equal("after"))
	})
	It("goes to lanes by content", func() {
		Expect(r.chat(`{"model":"m","messages":[` + msg("user", "Hello") + `]}`).body).
			To(ContainSubstring("A short text."))
		Expect(r.field("model-request", "lane")).To(Equal("no-tools"))
		Expect(r.chat(chatRequest(msg("user", "Hello") + "," + msg("assistant", "x") + "," +
			msg("user", "SUGGEST something"))).body).To(ContainSubstring("a suggestion"))
		Expect(r.field("model-request", "lane")).To(Equal("suggestion"))
		got := r.chat(chatRequest(msg("user", "Hello"),
			`"response_format":{"type":"json_schema","json_schema":{"name":"x","schema":{"type":"object",`+
				`"properties":{"score":{"type":"integer","minimum":1},"note":{"type":"string"},`+
				`"tags":{"type":"array","items":{"type":"string"},"minItems":1}},"required":["score","tags"]}}}`))
		Expect(got.body).To(ContainSubstring(`"content":"{\"score\":1,\"tags\":[\"\"]}"`))
		Expect(r.field("model-request", "lane")).To(Equal("schema"))
	})
	It("is an error that explains itself if nothing matches", func() {
		got := r.chat(chatRequest(msg("user", "Paint it red")))
		Expect(got.status).To(Equal(400))
		Expect(got.body).To(ContainSubstring("no_scripted_reply"))
		Expect(r.field("model-unmatched", "why")).To(Equal("the conditions (when) of reply 1 to prompt 3 do not hold"))
		Expect(r.field("model-unmatched", "closest")).
			To(Equal(`llm.yaml:8: 1 of 2 conditions hold; wanted user~ "blue", but user is "Paint it red"`))
		Expect(r.chat(chatRequest(msg("user", "Paint it blue"))).body).To(ContainSubstring("three-1"))
		r.chat(chatRequest(msg("user", "Hullo again")))
		Expect(r.field("model-unmatched", "closest")).
			To(Equal(`prompt 2 "Hello again" shares 1 word with the user's text "Hullo again"`))
	})
	It("is listed at the end if nobody asked for it", func() {
		r.chat(chatRequest(msg("user", "Hello again")))
		r.Finish()
		var got []string
		for _, e := range r.entries("model-unused") {
			got = append(got, string(e.Raw))
		}
		Expect(got).To(Equal([]string{
			`{"turn":1,"reply":1,"must":false,"line":5}`, `{"turn":1,"reply":2,"must":false,"line":6}`,
			`{"turn":3,"reply":1,"must":false,"line":8}`,
		}))
	})
})

var _ = Describe("equal prompts", func() {
	It("are told apart by how often they were said", func() {
		r := start(fakellm.Config{Script: script("turns:\n  - - - text: first\n  - - - text: second\n"),
			Tools:   map[string]fakellm.Tool{},
			Prompts: []fakellm.Prompt{{Index: 1, Text: "again"}, {Index: 2, Text: "again"}}})
		Expect(r.chat(chatRequest(msg("user", "again"))).body).To(ContainSubstring("first"))
		Expect(r.chat(chatRequest(msg("user", "again") + "," + msg("user", "again"))).body).
			To(ContainSubstring("second"))
	})
})

var _ = Describe("an agent without tools", func() {
	It("is answered as the conversation unless the request reads like a side job", func() {
		c := fakellm.Config{Script: script("replies:\n  - - text: the answer\n"),
			Prompts: []fakellm.Prompt{{Index: 1, Text: "Make a title page"}}}
		r := start(c)
		Expect(r.ask(endpoints[0], false, "Make a title page").body).To(ContainSubstring("the answer"))
		Expect(r.ask(endpoints[0], false, "Generate a title for: Make a title page").body).
			To(ContainSubstring("A short text."))
		c.Script, c.Tools = script("lanes: {no-tools: {main: true}}\nreplies:\n  - - text: the answer\n"),
			map[string]fakellm.Tool{}
		Expect(start(c).ask(endpoints[0], false, "Make a title page").body).To(ContainSubstring("the answer"))
	})
})

var _ = Describe("a reply with alternatives", func() {
	It("is the first whose guard holds", func() {
		r := serving("replies:\n  - any:\n      - - when: {result~: denied}\n        - text: a pity\n" +
			"      - - text: fine\n    must: true\n")
		Expect(r.chat(chatRequest(msg("user", "x"))).body).To(ContainSubstring("fine"))
		r.Finish()
		Expect(r.entries("model-unused")).To(BeEmpty())
	})
})
