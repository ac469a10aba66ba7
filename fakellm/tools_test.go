package fakellm_test

import (
	"encoding/json"
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/acp-test/acp-test/fakellm"
)

// call asks once and returns name and arguments of the only tool call.
func (r rig) call(tools string) string {
	GinkgoHelper()
	got := r.chat(fmt.Sprintf(`{"model":"m","messages":[{"role":"user","content":"x"}],"tools":[%s]}`, tools))
	var v struct {
		Choices []struct {
			Message struct {
				ToolCalls []struct {
					Function struct{ Name, Arguments string }
					Custom   struct{ Name, Input string }
				} `json:"tool_calls"`
			}
		}
	}
	Expect(json.Unmarshal([]byte(got.body), &v)).To(Succeed(), "%s", got.body)
	Expect(v.Choices[0].Message.ToolCalls).To(HaveLen(1))
	c := v.Choices[0].Message.ToolCalls[0]
	return c.Function.Name + c.Custom.Name + " " + c.Function.Arguments + c.Custom.Input
}

func tool(name, properties, required string) string {
	return fmt.Sprintf(`{"type":"function","function":{"name":%q,"parameters":{"type":"object","properties":{%s},`+
		`"required":[%s]}}}`, name, properties, required)
}

var _ = Describe("a neutral tool", func() {
	It("is a text where the agent has no tool of that number", func() {
		r := serving("replies:\n  - - {tool: own, args: {nth: 2}}\n")
		got := r.chat(fmt.Sprintf(`{"model":"m","messages":[{"role":"user","content":"x"}],"tools":[%s]}`,
			tool("now", ``, ``)))
		Expect(got.body).To(And(ContainSubstring("There is no further tool."), Not(ContainSubstring("tool_calls"))))
	})

	DescribeTable("is learned from what the request offers",
		func(step, offered, want string) {
			r := serving("replies:\n  - - " + step + "\n")
			Expect(r.call(offered)).To(Equal(want))
		},
		Entry("by name and spelling", `{tool: write_file, args: {path: /a, content: x}}`,
			tool("Read", `"file_path":{"type":"string"}`, ``)+","+
				tool("Write", `"file_path":{"type":"string"},"content":{"type":"string"}`, `"file_path","content"`),
			`Write {"file_path":"/a","content":"x"}`),
		Entry("with what else is required", `{tool: edit_file, args: {path: /a, old: b, new: c}}`,
			tool("replace", `"file_path":{"type":"string"},"instruction":{"type":"string"},`+
				`"old_string":{"type":"string"},"new_string":{"type":"string"}`,
				`"file_path","instruction","old_string","new_string"`),
			`replace {"file_path":"/a","old_string":"b","new_string":"c","instruction":"ok"}`),
		Entry("as a list of edits", `{tool: edit_file, args: {path: /a, old: b, new: c}}`,
			tool("edit", `"path":{"type":"string"},"edits":{"type":"array","items":{"type":"object",`+
				`"properties":{"oldText":{"type":"string"},"newText":{"type":"string"}}}}`, `"path","edits"`),
			`edit {"path":"/a","edits":[{"oldText":"b","newText":"c"}]}`),
		Entry("as a list of files", `{tool: read_file, args: {path: /a}}`,
			tool("read_files", `"files":{"type":"array","items":{"type":"object",`+
				`"properties":{"path":{"type":"string"}},"required":["path"]}}`, `"files"`),
			`read_files {"files":[{"path":"/a"}]}`),
		Entry("as a list of requests with what else each requires", `{tool: fetch, args: {url: "http://a"}}`,
			tool("fetch_web_content", `"requests":{"type":"array","items":{"type":"object",`+
				`"properties":{"url":{"type":"string"},"prompt":{"type":"string"}},"required":["url","prompt"]}}`,
				`"requests"`),
			`fetch_web_content {"requests":[{"url":"http://a","prompt":"ok"}]}`),
		Entry("as a list of commands", `{tool: run_shell, args: {command: ls -l}}`,
			tool("run_commands", `"commands":{"type":"array","items":{"type":"string"}}`, `"commands"`),
			`run_commands {"commands":["ls -l"]}`),
		Entry("as a list of queries", `{tool: search, args: {pattern: x}}`,
			tool("search_codebase", `"queries":{"type":"array","items":{"type":"string"}}`, `"queries"`),
			`search_codebase {"queries":["x"]}`),
		Entry("a file as a patch", `{tool: write_file, args: {path: /a, content: "x\ny\n"}}`,
			tool("apply_patch", `"patch":{"type":"string"}`, `"patch"`),
			`apply_patch {"patch":"*** Begin Patch\n*** Add File: /a\n+x\n+y\n*** End Patch\n"}`),
		Entry("no edit as a patch", `{tool: edit_file, args: {path: /a, old: b, new: c}}`,
			tool("apply_patch", `"patch":{"type":"string"}`, `"patch"`), `edit_file {"path":"/a","old":"b","new":"c"}`),
		Entry("one of the agent's own, by number", `{tool: own, args: {nth: 1, path: /a, pattern: x}}`,
			tool("Read", `"file_path":{"type":"string"}`, ``)+","+
				tool("count_words", `"path":{"type":"string"},"depth":{"type":"integer"}`, `"path","depth"`),
			`count_words {"path":"/a","depth":0}`),
		Entry("another of its own, which takes nothing", `{tool: own, args: {nth: 2, path: /a}}`,
			tool("count_words", `"path":{"type":"string"}`, ``)+","+tool("Read", `"file_path":{"type":"string"}`, ``)+
				","+tool("now", ``, ``), `now {}`),
		Entry("a command as a list of words", `{tool: run_shell, args: {command: ls -l}}`,
			tool("shell", `"command":{"type":"array","items":{"type":"string"}}`, `"command"`),
			`shell {"command":["bash","-lc","ls -l"]}`),
		Entry("a verb of an editor tool", `{tool: write_file, args: {path: /a, content: x}}`,
			tool("str_replace_editor", `"command":{"type":"string","enum":["view","create","str_replace"]},`+
				`"path":{"type":"string"},"file_text":{"type":"string"}`, `"command","path"`),
			`str_replace_editor {"path":"/a","file_text":"x","command":"create"}`),
		Entry("a tool of an MCP server", `{tool: mcp, args: {server: canary, tool: echo, args: {text: hi}}}`,
			tool("mcp__other__echo", ``, ``)+","+tool("mcp__canary__echo", ``, ``), `mcp__canary__echo {"text":"hi"}`),
		Entry("a plan, in the words of its schema",
			`{tool: plan, args: {steps: [{step: Read, status: completed}, {step: Write, status: in_progress}]}}`,
			tool("todo_write", `"todos":{"type":"array","items":{"type":"object","properties":{"id":{"type":"string"}`+
				`,"content":{"type":"string"},"state":{"type":"string","enum":["open","doing","done"]}},`+
				`"required":["id","content","state"]}}`, `"todos"`),
			`todo_write {"todos":[{"content":"Read","state":"done","id":"Read"},{"content":"Write","state":"doing",`+
				`"id":"Write"}]}`),
		Entry("no plan as a text", `{tool: plan, args: {steps: []}}`, tool("plan", `"text":{"type":"string"}`, ``),
			`plan {"steps":[]}`),
		Entry("a custom tool", `{tool: apply_patch, args: {input: "*** Begin"}}`,
			`{"type":"custom","custom":{"name":"apply_patch"}}`, `apply_patch *** Begin`),
		Entry("not what only has its name", `{tool: write_file, args: {path: /a, content: x}}`,
			tool("write", `"pid":{"type":"integer"},"data":{"type":"string"}`, `"pid","data"`)+","+
				tool("put_file", `"path":{"type":"string"},"content":{"type":"string"}`, `"path","content"`),
			`put_file {"path":"/a","content":"x"}`),
		Entry("by its schema alone", `{tool: edit_file, args: {path: /a, old: b, new: c}}`,
			tool("rework", `"file":{"type":"string"},"find":{"type":"string"},"replace":{"type":"string"}`,
				`"file","find","replace"`),
			`rework {"file":"/a","find":"b","replace":"c"}`),
		Entry("not what takes the same and does something else", `{tool: write_file, args: {path: /a, content: x}}`,
			tool("append_to_file", `"path":{"type":"string"},"content":{"type":"string"}`, `"path","content"`),
			`write_file {"path":"/a","content":"x"}`),
		Entry("nothing, if nothing resembles", `{tool: write_file, args: {path: /a}}`, tool("ponder", ``, ``),
			`write_file {"path":"/a"}`),
		Entry("raw arguments, whatever they are", `{tool: write_file, raw: '{"path":'}`, tool("Write", ``, ``),
			`write_file {"path":`),
	)

	It("is mapped by the profile", func() {
		r := start(fakellm.Config{
			Script: script("replies:\n  - - tool: write_file\n      args: {path: /a, content: [1]}\n  - - tool: mcp\n" +
				"      args: {server: s, tool: t, args: {n: 1}}\n"),
			Tools: map[string]fakellm.Tool{
				"write_file": {Name: "fs.put",
					Args: map[string]any{"where": "file://$path", "what": "$content", "mode": "$mode",
						"nested": []any{map[string]any{"p": "$path"}}, "n": 3}},
				"mcp": {Name: "$server-$tool"},
			}})
		Expect(r.call(tool("x", ``, ``))).
			To(Equal(`fs.put {"n":3,"nested":[{"p":"/a"}],"what":[1],"where":"file:///a"}`))
		got := r.chat(chatRequest(msg("user", "x") + "," + used("y", "z")))
		Expect(got.body).To(ContainSubstring(`"name":"s-t","arguments":"{\"n\":1}"`))
	})

	It("is one patch of several files where the tool takes patches, else a call for each", func() {
		patch := "*** Begin Patch\n*** Update File: $path\n-$old\n+$new\n*** End Patch"
		for template, want := range map[string][]string{
			patch: {`"arguments":"{\"x\":\"*** Begin Patch\\n*** Update File: /a\\n-1\\n+2\\n*** Update File: ` +
				`/b\\n-3\\n+4\\n*** End Patch\"}"`},
			"$path": {`"arguments":"{\"x\":\"/a\"}"`, `"arguments":"{\"x\":\"/b\"}"`},
		} {
			r := start(fakellm.Config{
				Script: script("replies:\n  - - tool: edit_file\n      args: {edits: [{path: /a, old: 1, new: 2}, " +
					"{path: /b, old: 3, new: 4}]}\n"),
				Tools: map[string]fakellm.Tool{"edit_file": {Name: "put", Args: map[string]any{"x": template}}},
			})
			got := r.chat(chatRequest(msg("user", "x")))
			for _, call := range want {
				Expect(got.body).To(ContainSubstring(call))
			}
			Expect(strings.Count(got.body, `"arguments"`)).To(Equal(len(want)))
		}
	})

	DescribeTable("is mapped with its arguments transformed:",
		func(template, want string) {
			r := start(fakellm.Config{
				Script: script("replies:\n  - - tool: write_file\n      args: {path: /it's, content: " +
					"\"a\\n\\\"b\\\"\\n\"}\n"),
				Tools: map[string]fakellm.Tool{"write_file": {Name: "put", Args: map[string]any{"x": template}}},
			})
			var args struct{ X string }
			got := r.call(tool("put", ``, ``))
			Expect(json.Unmarshal([]byte(strings.TrimPrefix(got, "put ")), &args)).To(Succeed(), got)
			Expect(args.X).To(Equal(want))
		},
		Entry("each line gets a prefix", "*** Add File: $path\n${content|prefix:+}*** End",
			"*** Add File: /it's\n+a\n+\"b\"\n*** End"),
		Entry("a word of a shell", "cat ${path|shell}", `cat '/it'\''s'`),
		Entry("the inside of a JSON string", `["${content|json}"]`, `["a\n\"b\"\n"]`),
		Entry("without the last newline", "<${content|chomp}>", "<a\n\"b\">"),
		Entry("two after each other", "${content|chomp|prefix:> }", "> a\n> \"b\""),
		Entry("none", "${path}s", "/it'ss"),
		Entry("an argument that the call does not have", "${mode|shell}", "${mode|shell}"),
		Entry("a dollar", "$${path}", "${path}"),
	)

	// As Codex offers the tools of MCP servers, in the tools or in an item of
	// the input; the call must name tool and namespace apart.
	DescribeTable("may lie in a namespace",
		func(body string) {
			r := start(fakellm.Config{
				Script: script("replies:\n  - - tool: mcp\n      args: {server: canary, tool: sing, args: " +
					"{text: la}}\n"),
				Tools: map[string]fakellm.Tool{"mcp": {Name: "mcp__$server$tool"}},
			})
			got := post(r.URL()+"/v1/responses",
				strings.ReplaceAll(body, "SPACE",
					`{"type":"namespace","name":"mcp__canary","tools":[{"type":"function","name":"sing",`+
						`"parameters":{"type":"object"}}]}`))
			Expect(got.status).To(Equal(200), got.body)
			Expect(got.body).To(ContainSubstring(`"name":"sing","namespace":"mcp__canary",` +
				`"arguments":"{\"text\":\"la\"}"`))
		},
		Entry("of the tools", `{"model":"m","input":"x","tools":[SPACE]}`),
		Entry("of the input", `{"model":"m","input":[{"role":"user","content":"x"},{"type":"additional_tools",`+
			`"tools":[SPACE]}]}`),
	)

	// Codex gives a subagent its task so.
	It("hears what another agent says", func() {
		r := start(fakellm.Config{Script: script("lanes:\n  child:\n    when: {user~: Look}\n" +
			"    reply: [{text: All green.}]\nreplies:\n  - - text: No.\n")})
		got := post(r.URL()+"/v1/responses",
			`{"model":"m","input":[{"role":"user","content":"x"},{"type":"agent_message",`+
				`"content":[{"type":"input_text","text":"NEW_TASK\n"},{"type":"encrypted_content",`+
				`"encrypted_content":"Look."}]}]}`)
		Expect(got.body).To(ContainSubstring("All green."))
	})

	It("tells what was learned", func() {
		r := serving("replies:\n  - - tool: write_file\n      args: {path: /a, content: x}\n")
		r.call(tool("Write", `"file_path":{"type":"string"},"content":{"type":"string"}`, ``))
		wire, tools := r.Learned()
		Expect(wire).To(Equal(fakellm.OpenAIChat))
		Expect(tools).To(Equal(map[string]string{"write_file": "Write"}))
		Expect(r.Lacking()).To(BeEmpty())
	})

	It("tells what the agent lacks", func() {
		r := serving("replies:\n  - - tool: write_file\n      args: {path: /a, content: x}\n")
		r.call(tool("ponder", ``, ``))
		Expect(r.Lacking()).To(Equal([]string{"write_file"}))
		_, tools := r.Learned()
		Expect(tools).To(BeEmpty())
	})
})
