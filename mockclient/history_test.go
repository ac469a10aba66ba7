package mockclient_test

import (
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/acp-test/acp-test/mockclient"
	"github.com/acp-test/acp-test/transcript"
)

// told makes a transcript of a conversation: "> text" is a prompt, anything
// else the update of the agent.
func told(lines ...string) *transcript.Transcript {
	t := newTranscript()
	for i, line := range lines {
		if text, ok := strings.CutPrefix(line, "> "); ok {
			t.AppendFrame(0, transcript.Editor,
				fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,"method":"session/prompt","params":{"sessionId":"s",`+
					`"prompt":[{"type":"text","text":%q}]}}`, i, text), 0)
			continue
		}
		t.AppendFrame(0, transcript.Agent,
			fmt.Appendf(nil, `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":%s}}`,
				line), 0)
	}
	return t
}

func said(kind, text, id string) string {
	if id != "" {
		id = fmt.Sprintf(`,"messageId":%q`, id)
	}
	return fmt.Sprintf(`{"sessionUpdate":"%s_chunk","content":{"type":"text","text":%q}%s}`, kind, text, id)
}

func history(lines ...string) mockclient.History {
	return mockclient.FoldHistory(told(lines...).All(), "s")
}

var _ = Describe("a history", func() {
	It("joins chunks and divides messages by side and id", func() {
		h := history("> hi", said("agent_thought", "hm", ""), said("agent_thought", "m", ""),
			said("agent_message", "a", "1"), said("agent_message", "b", "1"),
			said("agent_message", "c", "2"), said("agent_message", "d", ""),
			`{"sessionUpdate":"agent_message_chunk","content":{"type":"image","mimeType":"image/png","data":""}}`)
		Expect(h).To(HaveLen(3))
		Expect(h[1].Parts).To(HaveLen(2))
		Expect(h[1].Parts[0]).To(Equal(mockclient.Part{Kind: "thought", Text: "hmm"}))
		Expect(h[2].ID).To(Equal("2"))
		Expect(h[2].Parts[0].Text).To(Equal("cd"))
		Expect(h.String()).To(Equal("user: hi\nagent thinks: hmm\nagent: abcd\nagent: [image image/png]\n"))
	})
	It("takes whole messages as it takes their chunks, and a later one in the place of the earlier", func() {
		whole := func(kind, id, text string) string {
			return `{"sessionUpdate":"` + kind + `","messageId":"` + id + `","content":[{"type":"text","text":"` +
				text + `"}]}`
		}
		h := history(whole("user_message", "1", "hi"), whole("agent_thought", "2", "hm"),
			whole("agent_message", "3", "a"), whole("agent_message", "3", "ab"))
		Expect(h.String()).To(Equal("user: hi\nagent thinks: hm\nagent: ab\n"))
		echoed := history("> hi", whole("user_message", "1", "hi"), said("agent_message", "x", ""))
		Expect(echoed.String()).To(Equal("user: hi\nagent: x\n"))
	})
	It("does not count a prompt twice that the agent sends back", func() {
		Expect(history("> hello", said("user_message", "hel", ""), said("user_message", "lo", ""),
			said("agent_message", "x", "")).String()).To(Equal("user: hello\nagent: x\n"))
		Expect(history(said("user_message", "hello", ""), said("agent_message", "x", "")).String()).
			To(Equal("user: hello\nagent: x\n"))
	})
	It("applies updates to tool calls: lists replaced, the rest kept", func() { // TOOL-021
		h := history(
			`{"sessionUpdate":"tool_call","toolCallId":"c","title":"Edit","kind":"edit","locations":[{"path":"/a",`+
				`"line":3}],"content":[{"type":"content","content":{"type":"text","text":"old"}}],"rawInput":{"x":1}}`,
			`{"sessionUpdate":"tool_call_update","toolCallId":"c","status":"completed","title":null,`+
				`"content":[{"type":"diff","path":"/a","newText":"n"},{"type":"terminal","terminalId":"t"},`+
				`{"type":"content","content":{"type":"text","text":"new"}}]}`)
		c := h[0].Parts[0].Tool
		Expect(c.Title).To(Equal("Edit"))
		Expect(c.Status).To(Equal("completed"))
		Expect(c.Locations).To(Equal([]string{"/a:3"}))
		Expect(c.Diffs).To(Equal([]mockclient.FileDiff{{Path: "/a", NewText: "n"}}))
		Expect(c.Terminals).To(Equal([]string{"t"}))
		Expect(c.Input).To(Equal(`{"x":1}`))
		Expect(c.Name).To(Equal("Edit"))
		Expect(c.Output).To(Equal("new"))
	})
	It("takes output and name from where agents put them", func() {
		output := func(members string) *mockclient.ToolCall {
			return history(`{"sessionUpdate":"tool_call","toolCallId":"c","title":"T","content":[{"type":"content",` +
				`"content":{"type":"text","text":"c"}}]` + members + `}`)[0].Parts[0].Tool
		}
		Expect(output(``).Output).To(Equal("c"))
		t := output(`,"_meta":{"vendor":{"toolName":"Bash","toolResponse":"m"}}`)
		Expect(t.Output).To(Equal("m"))
		Expect(t.Name).To(Equal("Bash"))
		Expect(output(`,"rawOutput":{"r":1},"_meta":{"vendor":{"toolResponse":"m"}}`).Output).To(Equal(`{"r":1}`))
	})
	It("keeps one plan, the latest, of a message", func() { // PLAN-006
		h := history(`{"sessionUpdate":"plan","entries":[{"content":"a","priority":"high","status":"pending"},`+
			`{"content":"b","priority":"low","status":"pending"}]}`,
			said("agent_message", "x", ""),
			`{"sessionUpdate":"plan","entries":[{"content":"a","priority":"high","status":"completed"}]}`)
		Expect(h.String()).To(Equal("agent plans:\n  [completed] a (high)\nagent: x\n"))
	})
	It("survives what makes no sense", func() {
		h := history(`7`, `{"sessionUpdate":"tool_call"}`, `{"sessionUpdate":"plan","entries":7}`,
			`{"sessionUpdate":"agent_message_chunk","content":[]}`, `{"sessionUpdate":"user_message_chunk"}`)
		Expect(h.String()).NotTo(BeEmpty())
	})

	live := []string{"> go", said("agent_thought", "t", ""), said("agent_message", "a", "1"),
		said("agent_message", "b", "1"),
		`{"sessionUpdate":"tool_call","toolCallId":"c","title":"Edit","kind":"edit"}`,
		`{"sessionUpdate":"tool_call_update","toolCallId":"c","status":"completed"}`,
		said("agent_message", "done", "2")}
	replay := func(change ...string) []string {
		lines := []string{said("user_message", "go", ""), said("agent_message", "ab", ""),
			`{"sessionUpdate":"tool_call","toolCallId":"c","title":"Edit","kind":"edit","status":"completed"}`,
			said("agent_message", "done", "")}
		for i := 0; i+1 < len(change); i += 2 {
			for j := range lines {
				lines[j] = strings.ReplaceAll(lines[j], change[i], change[i+1])
			}
		}
		return lines
	}
	It("is the same as its replay, whatever the chunks, ids and thoughts", func() {
		Expect(mockclient.Same(history(live...), history(replay()...))).To(BeEmpty())
	})
	It("does not change by white space around what was said", func() {
		Expect(mockclient.Same(history(live...), history(replay(`"ab"`, `"\n\n ab "`)...))).To(BeEmpty())
	})
	It("may word the title of a tool call anew", func() {
		Expect(mockclient.Same(history(live...), history(replay(`"Edit"`, `"edit: /a"`)...))).To(BeEmpty())
	})
	It("does not change by an empty chunk", func() {
		Expect(mockclient.Same(history(live...),
			history(append([]string{said("agent_message", "", "")}, replay()...)...))).To(BeEmpty())
	})
	DescribeTable("differs from a replay that", func(lines []string, want ...string) {
		got := mockclient.Same(history(live...), history(lines...))
		for _, w := range want {
			Expect(got).To(ContainSubstring(w))
		}
	},
		Entry("lost the user", replay()[1:], "-user: go"),
		Entry("changed a text", replay(`"ab"`, `"aB"`), "-agent: ab", "+agent: aB"),
		Entry("changed white space within", replay(`"ab"`, `"a b"`), "-agent: ab", "+agent: a b"),
		Entry("left a tool open", replay(`completed`, `pending`), "-agent uses edit (completed)",
			"+agent uses edit (pending)"),
		Entry("lost a title", replay(`"Edit"`, `""`), "+agent uses edit without a title (completed)"),
		Entry("lost the end", replay()[:3], "-agent: done"),
		Entry("changed the order", []string{replay()[0], replay()[2], replay()[1], replay()[3]}, "agent uses edit"),
		Entry("tells another thought", append(replay(), said("agent_thought", "other", "")), "+agent thinks: other"),
	)
	It("may end a tool call that was open in the live conversation", func() {
		Expect(mockclient.Same(history(live[:5]...), history(replay("completed", "failed")[:3]...))).To(BeEmpty())
	})
})

var _ = Describe("a recorded decision", func() {
	It("is made again", func() {
		all := options("allow_once", "allow_always", "reject_once")
		params := []string{request("edit", "a", all), request("edit", "a", all), request("execute", "b", all),
			request("edit", "c", all), request("edit", "d", all)}
		first := &mockclient.Policy{Rules: []mockclient.Rule{
			{Title: "a", Nth: 1, Answer: mockclient.Answer{Kind: "allow_always"}},
			{Title: "a", Answer: mockclient.Answer{Cancelled: true}},
			{Title: "b", Answer: mockclient.Answer{Error: &mockclient.RPCError{Code: -32603, Message: "x"}}},
			{Title: "c", Answer: mockclient.Answer{Option: "bogus"}},
		}}
		want, e := asked(first, params...)
		Expect(want).To(Equal([]string{"selected id-allow_always", "cancelled", "error -32603", "selected bogus",
			"selected id-reject_once"}))
		got, _ := asked(mockclient.Recorded(e.Transcript().All()), params...)
		Expect(got).To(Equal(want))
	})
})
