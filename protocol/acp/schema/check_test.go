package schema_test

import (
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/acp-test/acp-test/protocol/acp/schema"
	"github.com/acp-test/acp-test/wire"
)

func frame(text string) wire.Frame {
	GinkgoHelper()
	var d wire.Doc
	f := wire.ClassifyLine(&d, []byte(text))
	Expect(f.Problem).To(BeEmpty(), text)
	return f
}

func update(fields string) string {
	return `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{` + fields + `}}}`
}

func request(method, params string) string {
	return `{"jsonrpc":"2.0","id":1,"method":"` + method + `","params":` + params + `}`
}

func notification(method, params string) string {
	return `{"jsonrpc":"2.0","method":"` + method + `","params":` + params + `}`
}

func result(value string) string { return `{"jsonrpc":"2.0","id":1,"result":` + value + `}` }

const (
	toAgent  = schema.ToAgent
	toEditor = schema.ToEditor
)

var _ = Describe("Check", func() {
	DescribeTable("finds", func(d schema.Direction, answered, text string, want ...string) {
		Expect(strings.Join(problems(d, frame(text), answered), "\n")).To(Equal(strings.Join(want, "\n")))
	},
		Entry("a stop reason that does not exist", toEditor, "session/prompt", result(`{"stopReason":"error"}`),
			`fatal result.stopReason: must be one of "end_turn", "max_tokens", "max_turn_requests", "refusal" or `+
				`"cancelled", is "error"`),
		Entry("a stop reason with the wrong spelling", toEditor, "session/prompt", result(`{"stopReason":"endTurn"}`),
			`fatal result.stopReason: must be one of "end_turn", "max_tokens", "max_turn_requests", "refusal" or `+
				`"cancelled", is "endTurn" ("end_turn" is meant?)`),
		Entry("a missing stop reason", toEditor, "session/prompt", result(`{}`), `fatal result.stopReason: is missing`),
		Entry("a permission option of an unknown kind", toEditor, "",
			request("session/request_permission",
				`{"sessionId":"s","toolCall":{"toolCallId":"c"},"options":[{"optionId":"1","name":"Yes",`+
					`"kind":"allow"}]}`),
			`fatal params.options.0.kind: must be one of "allow_once", "allow_always", "reject_once" or `+
				`"reject_always", is "allow"`),
		Entry("a chunk without content", toEditor, "", update(`"sessionUpdate":"agent_message_chunk"`),
			`fatal params.update.content: is missing`),
		Entry("a chunk with a bare string", toEditor, "",
			update(`"sessionUpdate":"agent_message_chunk","content":"hi"`),
			`fatal params.update.content: must be an object, is a string`),
		Entry("a tool call status that readers lose", toEditor, "",
			update(`"sessionUpdate":"tool_call_update","toolCallId":"c","status":"cancelled"`),
			`lossy params.update.status: must be one of "pending", "in_progress", "completed" or "failed", is `+
				`"cancelled"`),
		Entry("a bare text block in tool content", toEditor, "",
			update(`"sessionUpdate":"tool_call","toolCallId":"c","title":"T","content":[{"type":"text","text":"x"}]`),
			`lossy params.update.content.0.type: must be one of "content", "diff", "terminal" or "session", is "text"`),
		Entry("null where a tool call may not have it", toEditor, "",
			update(`"sessionUpdate":"tool_call","toolCallId":"c","title":"T","kind":null`),
			`lossy params.update.kind: must be a string, is null`),
		Entry("no fault in null where an update may have it", toEditor, "",
			update(`"sessionUpdate":"tool_call_update","toolCallId":"c","kind":null,"content":null,"rawInput":null`)),
		Entry("a plan entry without priority", toEditor, "",
			update(`"sessionUpdate":"plan","entries":[{"content":"x","status":"pending"}]`),
			`lossy params.update.entries.0.priority: is missing`),
		Entry("a plan without entries", toEditor, "", update(`"sessionUpdate":"plan"`),
			`fatal params.update.entries: is missing`),
		Entry("the wrong example of the mode update", toEditor, "",
			update(`"sessionUpdate":"current_mode_update","modeId":"ask"`),
			`unknown params.update.modeId: unknown key ("currentModeId" is meant?)`,
			`fatal params.update.currentModeId: is missing`),
		Entry("a snake case key", toAgent, "", request("session/prompt", `{"session_id":"s","prompt":[]}`),
			`unknown params.session_id: unknown key ("sessionId" is meant?)`,
			`fatal params.sessionId: is missing`),
		Entry("an update of an unknown kind", toEditor, "", update(`"sessionUpdate":"agent_message"`),
			`fatal params.update.sessionUpdate: must be one of "user_message_chunk", "agent_message_chunk", `+
				`"agent_thought_chunk", "tool_call", "tool_call_update", "plan", "available_commands_update", `+
				`"current_mode_update", "config_option_update", "session_info_update", "usage_update", "notice", `+
				`"compaction_update", "compaction_summary_chunk", "subagent_update", "session_message" or `+
				`"session_message_chunk", is "agent_message"`),
		Entry("an update of an unstable kind, whatever is wrong in it", toEditor, "",
			update(`"sessionUpdate":"plan_removed","planId":7`),
			`unstable params.update.sessionUpdate: is a value of the unstable schema`,
			`unstable params.update.planId: must be a string, is a number`),
		Entry("usage that is null", toEditor, "", update(`"sessionUpdate":"usage_update","used":null,"size":1`),
			`fatal params.update.used: must be a number, is null`),
		Entry("a negative number", toEditor, "",
			update(`"sessionUpdate":"usage_update","used":-1,"size":18446744073709551616`),
			`fatal params.update.used: must be a whole number from 0 to 18446744073709551615, is -1`,
			`fatal params.update.size: must be a whole number from 0 to 18446744073709551615, is 18446744073709551616`),
		Entry("a whole number with a fraction", toAgent, "", request("initialize", `{"protocolVersion":1.0}`),
			`style params.protocolVersion: is a whole number written as 1.0, which strict readers refuse`),
		Entry("a version that is a text", toAgent, "", request("initialize", `{"protocolVersion":"1"}`),
			`fatal params.protocolVersion: must be a number, is a string`),
		Entry("a version beyond its range", toAgent, "", request("initialize", `{"protocolVersion":70000}`),
			`fatal params.protocolVersion: must be a whole number from 0 to 65535, is 70000`),
		Entry("_meta that is no object, and keys that belong into it", toAgent, "",
			notification("session/cancel", `{"sessionId":"s","_meta":1,"_mine":2}`),
			`lossy params._meta: must be an object or null, is a number`,
			`unknown params._mine: unknown key; put the data of an extension into _meta`),
		Entry("no fault in _meta that is an object or null", toAgent, "",
			request("session/prompt", `{"sessionId":"s","_meta":null,"prompt":[{"type":"text","text":"",`+
				`"_meta":{"a":1}}]}`)),
		Entry("no _meta in a cancelled outcome", toAgent, "session/request_permission",
			result(`{"outcome":{"outcome":"cancelled","_meta":{}}}`),
			`unknown result.outcome._meta: this type has no _meta`),
		Entry("a selected outcome without option", toAgent, "session/request_permission",
			result(`{"outcome":{"outcome":"selected"}}`),
			`fatal result.outcome.optionId: is missing`),
		Entry("an outcome that is not nested", toAgent, "session/request_permission", result(`{"outcome":"cancelled"}`),
			`fatal result.outcome: must be an object, is a string`),
		Entry("a server without command, and that the list loses nothing", toAgent, "",
			request("session/new", `{"cwd":"/","mcpServers":[{"name":"n","args":[],"env":[]}]}`),
			`fatal params.mcpServers.0.command: is missing`),
		Entry("a server that says http", toAgent, "",
			request("session/new", `{"cwd":"/","mcpServers":[{"type":"http","name":"n","headers":[]}]}`),
			`fatal params.mcpServers.0.url: is missing`),
		Entry("a server that says http and is none", toAgent, "",
			request("session/new", `{"cwd":"/","mcpServers":[{"type":"http","name":"n","command":"c","args":[],`+
				`"env":[]}]}`),
			`style params.mcpServers.0: says that it is a McpServerHttp but fits only McpServerStdio`,
			`unknown params.mcpServers.0.type: unknown key`),
		Entry("null for a list with a default", toAgent, "", request("session/new", `{"cwd":"/","mcpServers":null}`),
			`lossy params.mcpServers: must be an array, is null`),
		Entry("an unstable server", toAgent, "",
			request("session/new", `{"cwd":"/","mcpServers":[{"type":"acp","name":"n","serverId":"i"}]}`),
			`unstable params.mcpServers.0: is a form of the unstable schema: McpServerAcp`),
		Entry("a key that stands twice", toAgent, "",
			notification("session/cancel", `{"sessionId":"s","sessionId":"t"}`),
			`style params.sessionId: is a duplicate key; readers take one of the values or refuse the message`),
		Entry("no fault in escaped keys", toAgent, "", notification("session/cancel", `{"session\u0049d":"s"}`)),
		Entry("mixed options", toEditor, "session/set_config_option",
			result(`{"configOptions":[{"type":"select","id":"i","name":"n","currentValue":"v",`+
				`"options":[{"value":"v","name":"n"},{"group":"g","name":"n","options":[]}]}]}`),
			`unknown result.configOptions.0.options.1.group: unknown key`,
			`unknown result.configOptions.0.options.1.options: unknown key`,
			`lossy result.configOptions.0.options.1.value: is missing`),
		Entry("a category of nobody", toEditor, "session/resume",
			result(`{"configOptions":[{"type":"boolean","id":"i","name":"n","category":"colour",`+
				`"currentValue":true}]}`),
			`unknown result.configOptions.0.category: is "colour", not "mode", "model", "model_config" or `+
				`"thought_level"; values of an extension begin with _`),
		Entry("a boolean option without its type", toAgent, "",
			request("session/set_config_option", `{"sessionId":"s","configId":"c","value":true}`),
			`fatal params.type: must be "boolean"`),

		Entry("no fault in null for load", toEditor, "session/load", result(`null`),
			`style result: is null, as in an example of the specification; the schema wants an object`),
		Entry("no fault in null for a write", toAgent, "fs/write_text_file", result(`null`),
			`style result: is null, as in an example of the specification; the schema wants an object`),
		Entry("null for other results", toEditor, "session/set_mode", result(`null`),
			`fatal result: must be an object, is null`),
		Entry("a result that is a list", toEditor, "session/close", result(`[]`),
			`fatal result: must be an object, is an array`),
		Entry("nothing in the result of a request nobody knows", toEditor, "_mine", result(`7`)),
		Entry("nothing in the result of a request that is not there", toEditor, "", result(`7`)),

		Entry("a method of nobody", toEditor, "", request("session/set_moods", `{}`),
			`unknown method: "session/set_moods" is not known ("session/set_mode" is meant?); methods of an `+
				`extension begin with _`),
		Entry("a method of JSON-RPC's kind", toAgent, "", request("$/progress", `{}`),
			`unknown method: "$/progress" is not known; names that begin with $/ are reserved for the protocol itself`),
		Entry("no fault in an extension", toEditor, "", request("_vendor/thing", `[1]`)),
		Entry("an unstable method", toAgent, "", request("session/fork", `{"sessionId":"s"}`),
			`unstable method: is a method of the unstable schema`,
			`unstable params.cwd: is missing`),
		Entry("a method that goes the other way", toAgent, "", request("fs/read_text_file", `{}`),
			`fatal method: fs/read_text_file is sent to the editor, not to the agent`),
		Entry("a request without id", toAgent, "",
			`{"jsonrpc":"2.0","method":"session/prompt","params":{"sessionId":"s","prompt":[]}}`,
			`fatal id: session/prompt is a request and needs an id`),
		Entry("a notification with id", toAgent, "",
			`{"jsonrpc":"2.0","id":"x","method":"session/cancel","params":{"sessionId":"s"}}`,
			`fatal id: session/cancel is a notification and has no id`),
		Entry("no params where some are needed", toAgent, "", `{"jsonrpc":"2.0","id":1,"method":"session/new"}`,
			`fatal params: is missing`),
		Entry("no fault in no params where none are needed", toAgent, "",
			`{"jsonrpc":"2.0","id":1,"method":"session/list"}`),
		Entry("params that are null", toAgent, "", request("logout", `null`),
			`style params: is null, but should be an object or be omitted`),
		Entry("params that are null where some are needed", toAgent, "", request("session/new", `null`),
			`fatal params: is null, must be an object`),
		Entry("params in a list", toAgent, "", request("session/new", `["/"]`),
			`fatal params: must be an object, is an array`),
		Entry("an id that is null", toAgent, "", `{"jsonrpc":"2.0","id":null,"method":"session/list","params":{}}`,
			`style id: is null, which JSON-RPC discourages in a request`),
		Entry("an id of more than 64 bits", toEditor, "session/list",
			`{"jsonrpc":"2.0","id":9223372036854775808,"result":{"sessions":[]}}`,
			`fatal id: 9223372036854775808 does not fit into 64 bits`),
		Entry("a member that is not JSON-RPC's", toEditor, "session/list",
			`{"jsonrpc":"2.0","id":1,"result":{"sessions":[]},"sessionId":"s"}`,
			`unknown sessionId: is no member of a JSON-RPC message`),

		Entry("an error without message", toEditor, "session/prompt",
			`{"jsonrpc":"2.0","id":1,"error":{"code":-32603}}`, `fatal error.message: is missing`),
		Entry("an error that is a text", toEditor, "session/prompt", `{"jsonrpc":"2.0","id":1,"error":"no"}`,
			`fatal error: must be an object, is a string`),
		Entry("an error code that is a text", toEditor, "session/prompt",
			`{"jsonrpc":"2.0","id":1,"error":{"code":"E","message":""}}`,
			`fatal error.code: must be a number, is a string`),
		Entry("an error code that is reserved", toEditor, "session/prompt",
			`{"jsonrpc":"2.0","id":1,"error":{"code":-32605,"message":""}}`,
			`style error.code: -32605 is a reserved code without a meaning in JSON-RPC`),
		Entry("no fault in other error codes", toEditor, "session/prompt",
			`{"jsonrpc":"2.0","id":1,"error":{"code":42,"message":"","data":[null]}}`),
	)

	DescribeTable("elicitation", func(d schema.Direction, answered, text string, want ...string) {
		Expect(strings.Join(problems(d, frame(text), answered), "\n")).To(Equal(strings.Join(want, "\n")))
	},
		Entry("a form", toEditor, "", request("elicitation/create",
			`{"mode":"form","message":"?","sessionId":"s","toolCallId":null,"requestedSchema":{"type":"object",`+
				`"properties":{"a":{"type":"string","format":"email"},"b":{"type":"array",`+
				`"items":{"anyOf":[{"const":"1","title":"one"}]}}},"required":["a"]}}`)),
		Entry("a form for a request", toEditor, "",
			request("elicitation/create", `{"mode":"form","message":"?","requestId":7,`+
				`"requestedSchema":{"type":"object"}}`)),
		Entry("a form for nobody", toEditor, "",
			request("elicitation/create", `{"mode":"form","message":"?","requestedSchema":{}}`),
			`fatal params.sessionId: is missing`),
		Entry("a page without address", toEditor, "",
			request("elicitation/create", `{"mode":"url","message":"?","sessionId":"s","elicitationId":"e"}`),
			`fatal params.url: is missing`),
		Entry("a custom mode", toEditor, "",
			request("elicitation/create", `{"mode":"_voice","message":"?","sessionId":"s","speed":2}`)),
		Entry("an unknown mode", toEditor, "",
			request("elicitation/create", `{"mode":"voice","message":"?","sessionId":"s"}`),
			`unknown params.mode: is "voice", not "form" or "url"; values of an extension begin with _`),
		Entry("no mode", toEditor, "", request("elicitation/create", `{"message":"?","sessionId":"s"}`),
			`fatal params.mode: is missing`),
		Entry("an unknown format", toEditor, "",
			request("elicitation/create", `{"mode":"form","message":"?","sessionId":"s",`+
				`"requestedSchema":{"properties":{"a":{"type":"string","format":"phone"}}}}`),
			`fatal params.requestedSchema.properties.a.format: must be one of "email", "uri", "date" or `+
				`"date-time", is "phone"`),
		Entry("answers", toAgent, "elicitation/create",
			result(`{"action":"accept","content":{"a":"x","b":1,"c":1.5,"d":true,"e":["y"]}}`)),
		Entry("an answer with an object in it", toAgent, "elicitation/create",
			result(`{"action":"accept","content":{"a":{}}}`),
			`fatal result.content.a: must be a string, is an object`),
		Entry("a refusal", toAgent, "elicitation/create", result(`{"action":"decline"}`)))

	It("says nothing about malformed frames", func() {
		var d wire.Doc
		Expect(problems(toAgent, wire.ClassifyLine(&d, []byte(`{"jsonrpc":"2.0","foo":1}`)), "")).To(BeEmpty())
	})

	It("names the type that is broken", func() {
		types := map[string]string{}
		schema.V1().Check(toEditor, frame(update(`"sessionUpdate":"tool_call","toolCallId":"c","kind":"write",`+
			`"content":[{"type":"diff","path":1,"newText":""}],"x":1`)), "", func(p schema.Problem) {
			types[p.Path] = p.Type
		})
		Expect(types).To(Equal(map[string]string{
			"params.update.title":          "ToolCall",
			"params.update.kind":           "ToolKind",
			"params.update.content.0.path": "Diff",
			"params.update.x":              "ToolCall",
		}))
	})

	It("checks a value as a type by its name", func() {
		v, err := wire.Parse([]byte(`{"type":"text"}`))
		Expect(err).NotTo(HaveOccurred())
		var got []string
		schema.V1().CheckType("ContentBlock", v, func(p schema.Problem) { got = append(got, p.String()) })
		Expect(got).To(Equal([]string{"text: is missing"}))
		schema.V1().CheckType("NoSuchType", v, func(schema.Problem) { Fail("an unknown type allows everything") })
	})
})
