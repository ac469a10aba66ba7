package schema_test

import (
	"testing/fstest"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/acp-test/acp-test/protocol/acp/schema"
	"github.com/acp-test/acp-test/wire"
)

var _ = Describe("Version", func() {
	v := schema.V1()

	It("knows methods", func() {
		Expect(v.Number()).To(Equal(1))
		m, ok := v.Method("session/load")
		Expect(ok).To(BeTrue())
		Expect(m).To(Equal(schema.Method{
			Name: "session/load", Direction: schema.ToAgent, Request: true, Stable: true,
			Gate: "agentCapabilities.loadSession", Params: "LoadSessionRequest", Result: "LoadSessionResponse",
		}))
		m, _ = v.Method("$/cancel_request")
		Expect(m.Direction).To(Equal(schema.Both))
		Expect(m.Notification && !m.Request).To(BeTrue())
		m, _ = v.Method("session/fork")
		Expect(m.Stable).To(BeFalse())
		_, ok = v.Method("_mine")
		Expect(ok).To(BeFalse())
		stable := 0
		for _, m := range v.Methods() {
			if m.Stable {
				stable++
			}
		}
		Expect(stable).To(Equal(25))
	})

	It("tells content from state", func() {
		var content, state []string
		for _, u := range v.Updates() {
			switch {
			case !u.Stable:
			case u.Content:
				content = append(content, u.Kind)
			default:
				state = append(state, u.Kind)
			}
		}
		Expect(content).To(Equal([]string{"user_message_chunk", "agent_message_chunk", "agent_thought_chunk",
			"tool_call", "tool_call_update", "plan",
			"subagent_update", "session_message", "session_message_chunk"}))
		Expect(state).To(Equal([]string{"available_commands_update", "current_mode_update", "config_option_update",
			"session_info_update", "usage_update", "notice", "compaction_update", "compaction_summary_chunk"}))
		u, ok := v.Update("plan_update")
		Expect(ok).To(BeTrue())
		Expect(u).To(Equal(schema.Update{Kind: "plan_update", Type: "PlanUpdate", Gate: "clientCapabilities.plan"}))
		_, ok = v.Update("nothing")
		Expect(ok).To(BeFalse())
	})

	It("knows enums, variants and codes", func() {
		values, open := v.Enum("StopReason")
		Expect(values).To(Equal([]string{"end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled"}))
		Expect(open).To(BeFalse())
		_, open = v.Enum("SessionConfigOptionCategory")
		Expect(open).To(BeTrue())
		Expect(v.Variants("ContentBlock")[1]).
			To(Equal(schema.Variant{Tag: "image", Type: "ImageContent",
				Gate: "agentCapabilities.promptCapabilities.image", Stable: true}))
		Expect(v.Variants("McpServer")[3]).
			To(Equal(schema.Variant{Tag: "acp", Type: "McpServerAcp", Gate: "agentCapabilities.mcpCapabilities.acp"}))
		Expect(v.Variants("Diff")).To(BeNil())
		Expect(v.ErrorMeaning(-32601)).To(Equal("method not found"))
		Expect(v.ErrorMeaning(1)).To(BeEmpty())
	})

	It("gives every gate a capability that exists", func() {
		var gates []string
		for _, m := range v.Methods() {
			gates = append(gates, m.Gate)
		}
		for _, name := range v.Types() {
			for _, variant := range v.Variants(name) {
				gates = append(gates, variant.Gate)
			}
		}
		for _, gate := range gates {
			if gate == "" {
				continue
			}
			Expect(gateType(v, gate)).NotTo(BeEmpty(), gate)
		}
	})

	DescribeTable("Advertised", func(caps string, want bool) {
		value, err := wire.Parse([]byte(caps))
		Expect(err).NotTo(HaveOccurred())
		Expect(schema.Advertised(value, "agentCapabilities")["agentCapabilities.sessionCapabilities.list"]).
			To(Equal(want))
	},
		Entry(nil, `{}`, false),
		Entry(nil, `{"agentCapabilities":null}`, false),
		Entry(nil, `{"agentCapabilities":{"sessionCapabilities":{}}}`, false),
		Entry(nil, `{"agentCapabilities":{"sessionCapabilities":{"list":null}}}`, false),
		Entry(nil, `{"agentCapabilities":{"sessionCapabilities":{"list":false}}}`, false),
		Entry(nil, `{"agentCapabilities":{"sessionCapabilities":{"list":"yes"}}}`, false),
		Entry(nil, `{"agentCapabilities":{"sessionCapabilities":{"list":true}}}`, true),
		Entry(nil, `{"agentCapabilities":{"sessionCapabilities":{"list":{}}}}`, true))

	It("is nothing without capabilities", func() {
		Expect(schema.Advertised(wire.Value{}, "agentCapabilities")).To(BeEmpty())
	})
})

// gateType follows a gate through the tables and returns "found" if all of its
// steps are keys of the types on the way.
func gateType(v *schema.Version, gate string) string {
	found := ""
	for _, start := range []string{"InitializeRequest", "InitializeResponse"} {
		if v.HasPath(start, gate) {
			found = "found"
		}
	}
	return found
}

var _ = Describe("a table with a mistake", func() {
	DescribeTable("is refused with its place", func(text, want string) {
		_, err := schema.Compile(9, fstest.MapFS{"a.txt": {Data: []byte(text)}}, "unstable.txt")
		Expect(err).To(MatchError(want))
	},
		Entry(nil, "type A\n  b C\n", `"C" is used and not defined`),
		Entry(nil, "type A\ntype A\n", `a.txt:2: "A" is there twice`),
		Entry(nil, "type A\n  b\n", `a.txt:2: field "b" has no type`),
		Entry(nil, "type A\n  b string x\n", `a.txt:2: field "b": unknown mark 'x'`),
		Entry(nil, "type A\n  b string]\n", `a.txt:2: "string]" is no type`),
		Entry(nil, "type A open\n", `a.txt:1: a type has no option "open"`),
		Entry(nil, "  b string\n", `a.txt:1: "b" belongs to nothing`),
		Entry(nil, "union A\n", `a.txt:1: union A: want by KEY`),
		Entry(nil, "union A by b\n  c string zzz\n", `a.txt:2: "zzz" is not a property of a variant`),
		Entry(nil, "shape A\n", `a.txt:1: "shape" is no kind of definition`),
		Entry(nil, "type\n", `a.txt:1: "type" says nothing`),
		Entry(nil, "code x y\n", `a.txt:1: error code "x" is not a number`),
		Entry(nil, "method m\n", `a.txt:1: method m: want KIND DIRECTION PARAMS`),
		Entry(nil, "method m call to-agent any\n", `a.txt:1: method m: unknown kind "call"`),
		Entry(nil, "method m request up any\n", `a.txt:1: method m: unknown direction "up"`),
		Entry(nil, "method m request to-agent any\n",
			`a.txt:1: method m: a request must have a result, and a notification must have none`),
		Entry(nil, "method m request to-agent any -> any if x\n", `a.txt:1: method m: want -> or when, not "if"`),
		Entry(nil, "method m request to-agent any ->\n", `a.txt:1: method m: "->" needs a word after it`),
		Entry(nil, "alias A B\nalias B A\n", `alias "A" stands for itself`),
		Entry(nil, "method m notification both any\nmethod m notification both any\n",
			`a.txt:2: method m is there twice`))
})

var _ = Describe("Version 2", func() {
	v := schema.V2()

	problems := func(d schema.Direction, text, answered string) (all []string) {
		v.Check(d, frame(text), answered,
			func(p schema.Problem) { all = append(all, p.Severity.String()+" "+p.String()) })
		return all
	}

	It("has its own methods, and none that version 1 alone has", func() {
		Expect(v.Number()).To(Equal(2))
		for _, name := range []string{"auth/login", "tool_call/cancel", "terminal/cancel"} {
			_, ok := v.Method(name)
			Expect(ok).To(BeTrue(), name)
		}
		for _, name := range []string{"session/load", "session/set_mode", "authenticate", "fs/read_text_file",
			"terminal/create"} {
			_, ok := v.Method(name)
			Expect(ok).To(BeFalse(), name)
		}
	})

	It("looks into a union within a union", func() {
		idle := func(rest string) []string {
			return problems(toEditor, update(`"sessionUpdate":"state_update","state":"idle"`+rest), "")
		}
		Expect(idle("")).To(BeEmpty())
		Expect(idle(`,"stopReason":"end_turn","background":[]`)).To(BeEmpty())
		Expect(idle(`,"stopReason":"error","error":{"code":1,"message":"m"}`)).To(BeEmpty())
		Expect(idle(`,"stopReason":"error","error":{"code":1}`)).To(HaveLen(1))
		Expect(idle(`,"other":1`)).To(Equal([]string{"unknown params.update.other: unknown key"}))
	})

	It("wants at least one item, and numbers that begin at 1", func() {
		Expect(problems(toAgent, request("session/prompt", `{"sessionId":"s","prompt":[]}`), "")).To(
			Equal([]string{"fatal params.prompt: must have at least one item"}))
		size := func(cols string) []string {
			return problems(toEditor, update(`"sessionUpdate":"terminal_update","terminalId":"t",`+
				`"size":{"rows":1,"cols":`+cols+`}`), "")
		}
		Expect(size("1")).To(BeEmpty())
		Expect(size("0")).To(HaveLen(1))
	})

	It("wants the id of the message in the answer to a prompt", func() {
		Expect(problems(toEditor, result(`{"messageId":"m"}`), "session/prompt")).To(BeEmpty())
		Expect(problems(toEditor, result(`{"stopReason":"end_turn"}`), "session/prompt")).To(HaveLen(2))
	})
})
