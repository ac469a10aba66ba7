package replay_test

import (
	"bytes"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/acp-test/acp-test/golden"
	"github.com/acp-test/acp-test/protocol/acp"
	"github.com/acp-test/acp-test/protocol/acp/acpframe"
	"github.com/acp-test/acp-test/protocol/acp/canonical"
	"github.com/acp-test/acp-test/protocol/acp/recordings"
	"github.com/acp-test/acp-test/transcript"
)

// talk is a recording of lines: > is the editor, < the agent, and == is where
// another process begins, or the first one goes on.
func talk(lines ...string) *transcript.Transcript {
	GinkgoHelper()
	t, err := transcript.New(transcript.Header{}, transcript.Options{Classifier: acpframe.Classifier{}})
	Expect(err).NotTo(HaveOccurred())
	conn := 0
	for _, l := range lines {
		switch {
		case l == "==":
			conn = 1 - conn
		case l[0] == '>':
			t.AppendFrame(conn, transcript.Editor, []byte(l[2:]), 0)
		default:
			t.AppendFrame(conn, transcript.Agent, []byte(l[2:]), 0)
		}
	}
	return t
}

const (
	initialized = `> {"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1,` +
		`"clientInfo":{"name":"zed","version":"9"},"clientCapabilities":{"fs":{"readTextFile":true,` +
		`"writeTextFile":true},"terminal":true}}}`
	welcome  = `< {"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1,"agentCapabilities":{"loadSession":true}}}`
	opened   = `> {"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/home/me/w","mcpServers":[]}}`
	session1 = `< {"jsonrpc":"2.0","id":1,"result":{"sessionId":"s1"}}`
	saidText = `< {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s1",` +
		`"update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"TEXT"}}}}`
	end = `< {"jsonrpc":"2.0","id":2,"result":{"stopReason":"end_turn"}}`
)

func prompted(text string) string {
	return `> {"jsonrpc":"2.0","id":2,"method":"session/prompt","params":{"sessionId":"s1",` +
		`"prompt":[{"type":"text","text":` + text + `}]}}`
}

func converted(lines ...string) *recordings.Converted {
	GinkgoHelper()
	c, err := recordings.Convert(acp.V1(), talk(lines...), "A recorded session.", nil)
	Expect(err).NotTo(HaveOccurred())
	return c
}

var _ = Describe("convert", func() {
	It("awaits a turn once that was answered twice", func() {
		text := string(converted(initialized, welcome, opened, session1, prompted(`"hi"`), end, end).Text)
		Expect(strings.Count(text, "await turn")).To(Equal(1), text)
	})

	It("awaits turns that the recording ended in, to be reduced", func() {
		hangs := converted(initialized, welcome, opened, session1, prompted(`"hi"`), end,
			strings.Replace(prompted(`"again"`), `"id":2`, `"id":3`, 1))
		Expect(string(hangs.Text)).To(HaveSuffix("await turn end_turn\n\ncheck turn-2\nprompt main 'again'\n"))
		Expect(string(recordings.Awaited(hangs.Text))).
			To(HaveSuffix("\nprompt main 'again'\nawait turn session=main\n"))
		ended := converted(initialized, welcome, opened, session1, prompted(`"hi"`), end)
		Expect(recordings.Awaited(ended.Text)).To(Equal(ended.Text))
	})

	It("makes a scenario that says what the editor did", func() {
		made, err := recordings.Convert(acp.V1(), recorded(), "A recorded session.", []byte(story))
		Expect(err).NotTo(HaveOccurred())
		Expect(made.Left).To(BeEmpty())
		script, rest, _ := bytes.Cut(made.Text, []byte("-- main.go --\n"))
		Expect(string(script)).To(Equal(`# A recorded session.
tag cancel load
needs agent:loadSession
session new main

check recorded
permit allow_once
prompt main 'Rename foo to bar in main.go.'
await turn end_turn

check turn-2
prompt main 'Tell me a long story.'
await agent_message
cancel main
await turn cancelled
session load main

check turn-3
prompt main 'Go on please.'
await turn end_turn

`))
		Expect(string(rest)).To(HavePrefix("package main // foo\n"))
		s, err := acp.V1().Parse("x", "x.txtar", made.Text)
		Expect(err).NotTo(HaveOccurred())
		Expect(s.Model != nil).To(BeTrue())
		Expect(acp.V1().Review(s)).To(BeEmpty())
	})

	It("says what the agent said in a golden, with the editor as the scenario has it", func() {
		c := converted(initialized, welcome, opened, session1, prompted(`"hi"`),
			`< {"jsonrpc":"2.0","id":7,"method":"fs/read_text_file","params":{"sessionId":"s1",`+
				`"path":"/home/me/w/no.txt"}}`,
			`> {"jsonrpc":"2.0","id":7,"error":{"code":-1,"message":"ENOENT","data":{"errno":2}}}`, end)
		Expect(c.Golden(canonical.V1(), golden.Options{})).
			To(Equal(`--> initialize protocolVersion=1 clientInfo={name: "acp-test", title: "acp-test", version: ` +
				`<version>} clientCapabilities={fs: {readTextFile: true, writeTextFile: true}, terminal: true}
<-- ok protocolVersion=1 agentCapabilities={loadSession: true}
--> session/new cwd="$WORK" mcpServers=[]
<-- ok sess#1
--> session/prompt sess#1 "hi"
<-- fs/read_text_file $WORK/no.txt
--> error -1 "ENOENT" data={errno: 2}
<-- end_turn
`))
	})

	It("restarts the agent where the recording has another process", func() {
		c := converted(initialized, welcome, opened, session1, prompted(`"one"`), end, "==", initialized, welcome,
			`> {"jsonrpc":"2.0","id":1,"method":"session/load","params":{"sessionId":"s1","cwd":"/home/me/w",`+
				`"mcpServers":[]}}`,
			`< {"jsonrpc":"2.0","id":1,"result":{}}`, prompted(`"two"`), end)
		Expect(string(c.Text)).To(ContainSubstring("prompt main 'one'\nawait turn end_turn\nrestart\n" +
			"session load main\n\ncheck turn-2\nprompt main 'two'\nawait turn end_turn\n"))
		Expect(c.Golden(canonical.V1(), golden.Options{})).
			To(ContainSubstring("<-- end_turn\n--> end of input\n<-- exit code=0\n== agent started again\n" +
				"--> initialize "))
	})

	It("waits in the middle of a turn for what the turn had shown", func() {
		call := `< {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s1",` +
			`"update":{"sessionUpdate":"tool_call","toolCallId":"a","title":"A"}}}`
		c := converted(initialized, welcome, opened, session1, prompted(`"go"`), call, call,
			`> {"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"s1"}}`,
			`< {"jsonrpc":"2.0","id":2,"result":{"stopReason":"cancelled"}}`)
		Expect(string(c.Text)).To(ContainSubstring("prompt main 'go'\nawait tool_call\nawait tool_call\ncancel main\n" +
			"await turn cancelled\n"))
	})

	It("waits for what comes between turns, message by message", func() {
		says := func(who, text string) string {
			return `< {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s1",` +
				`"update":{"sessionUpdate":"` + who + `_message_chunk","content":{"type":"text","text":"` + text +
				`"}}}}`
		}
		c := converted(initialized, welcome, opened, session1, prompted(`"one"`), end, says("agent", "late"),
			`> {"jsonrpc":"2.0","id":3,"method":"session/load","params":{"sessionId":"s1","cwd":"/home/me/w",`+
				`"mcpServers":[]}}`, says("user", "on"),
			`< {"jsonrpc":"2.0","id":3,"result":{}}`, says("user", "e"), says("agent", "l"), says("agent", "ate"),
			prompted(`"two"`), end)
		Expect(string(c.Text)).To(ContainSubstring("await turn end_turn\nawait agent_message\n" +
			"session load main as R8\nawait response R8\n\ncheck turn-2\nawait user_message\nawait agent_message\n" +
			"prompt main 'two'\n"))
	})

	It("answers the permissions of each turn as they were", func() {
		ask := func(id string) string {
			return `< {"jsonrpc":"2.0","id":` + id +
				`,"method":"session/request_permission","params":{"sessionId":"s1","toolCall":{"toolCallId":"a"},` +
				`"options":[{"optionId":"y","name":"Yes","kind":"allow_once"},{"optionId":"z","name":"Yes!",` +
				`"kind":"allow_once"},{"optionId":"n","name":"No","kind":"reject_once"}]}}`
		}
		choose := func(id, option string) string {
			return `> {"jsonrpc":"2.0","id":` + id + `,"result":{"outcome":{"outcome":"selected","optionId":"` +
				option + `"}}}`
		}
		c := converted(initialized, welcome, opened, session1, prompted(`"one"`), ask("5"), choose("5", "y"), ask("6"),
			choose("6", "n"), end,
			prompted(`"two"`), ask("7"), choose("7", "z"), end, prompted(`"three"`), ask("8"), choose("8", "z"), end)
		Expect(string(c.Text)).To(ContainSubstring("permit allow_once nth=1\npermit reject_once nth=2\n" +
			"prompt main 'one'\nawait turn end_turn\n\ncheck turn-2\npermit 'option:z'\nprompt main 'two'\n" +
			"await turn end_turn\n\ncheck turn-3\nprompt main 'three'\n"))
	})

	It("keeps texts with line breaks and quotes, and files without an end of line", func() {
		c := converted(initialized, welcome, opened, session1, prompted(`"It's\n/home/me/w/a.txt:\n$x"`),
			`< {"jsonrpc":"2.0","id":7,"method":"fs/read_text_file","params":{"sessionId":"s1",`+
				`"path":"/home/me/w/a.txt"}}`,
			`> {"jsonrpc":"2.0","id":7,"result":{"content":"no end"}}`, end)
		Expect(string(c.Text)).To(ContainSubstring(`prompt main 'It''s'$NL''$WORK'/a.txt:'$NL'$x'`))
		Expect(string(c.Text)).To(ContainSubstring("write 'a.txt' 'no end'\n"))
	})

	It("has the capabilities of the recorded editor", func() {
		c := converted(`> {"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1,`+
			`"clientCapabilities":{"fs":{"readTextFile":true,"writeTextFile":false},"_meta":{"a.b":true}}}}`,
			welcome, opened, session1)
		Expect(string(c.Text)).To(ContainSubstring(`client _meta='{"a.b":true}' ` +
			`fs='{"readTextFile":true,"writeTextFile":false}' terminal=none` + "\n"))
	})

	It("names in its head what a scenario cannot have", func() {
		c := converted(initialized, welcome,
			strings.Replace(opened, "[]", `[{"name":"x","command":"/bin/x","args":[],"env":[]}]`, 1), session1,
			strings.Replace(prompted(`"look"`), "}]}}", `},{"type":"resource_link","uri":"file:///a","name":"a"}]}}`,
				1), end)
		Expect(string(c.Text)).To(HavePrefix("# A recorded session.\n# Left out: the model's replies, "))
		Expect(string(c.Text)).To(ContainSubstring("# Left out: the MCP server x that the editor's #3 named\n"))
		Expect(c.Golden(canonical.V1(), golden.Options{})).To(ContainSubstring("mcpServers=[]\n"))
		Expect(string(c.Text)).To(ContainSubstring(`prompt main ` +
			`'look' blocks='[{"type":"text","text":"look"},{"type":"resource_link","uri":"file:///a","name":"a"}]'`))
	})

	DescribeTable("says what cannot be a scenario", func(want string, lines ...string) {
		_, err := recordings.Convert(acp.V1(), talk(lines...), "x", nil)
		Expect(err).To(MatchError(ContainSubstring(want)))
	},
		Entry("two agents at a time", "two agent processes run at the same time", initialized, "==", initialized, "==",
			initialized),
	)

	It("says a prompt again", func() {
		c := converted(initialized, welcome, opened, session1, prompted(`"on"`), end, prompted(`"on"`), end)
		Expect(string(c.Text)).To(ContainSubstring("prompt main 'on'\nawait turn end_turn\n\ncheck turn-2\n" +
			"prompt main 'on'\nawait turn end_turn\n"))
	})

	DescribeTable("leaves out, and goes on", func(left, text string, lines ...string) {
		c, err := recordings.Convert(acp.V1(), talk(lines...), "x", []byte("replies: []"))
		Expect(err).NotTo(HaveOccurred())
		Expect(c.Left).To(ConsistOf(ContainSubstring(left)))
		Expect(string(c.Text)).To(And(ContainSubstring(text), ContainSubstring("golden off\n")))
	},
		Entry("the conversation of a session of another recording",
			"the earlier conversation of the session that the editor opens at #3",
			"session new main\n\ncheck recorded\nprompt main 'on'\nawait turn end_turn\n", initialized, welcome,
			`> {"jsonrpc":"2.0","id":1,"method":"session/load","params":{"sessionId":"s1","cwd":"/w","mcpServers":[]}}`,
			strings.Replace(saidText, "TEXT", "old", 1), `< {"jsonrpc":"2.0","id":1,"result":{}}`,
			strings.Replace(saidText, "TEXT", "older", 1),
			prompted(`"on"`), end),
		Entry("a folder beside the first session's",
			"the folder /home/me/v, outside of the first session's folder /home/me/w: the session that the editor "+
				"opens at #5",
			"session new main\nsession new s2\n", initialized, welcome, opened, session1,
			strings.Replace(opened, "/me/w", "/me/v", 1), strings.Replace(session1, "s1", "s2", 1)),
	)

	It("leaves out which of two sessions with the same text the model answered", func() {
		c := converted(initialized, welcome, opened, session1, prompted(`"on"`), opened,
			strings.Replace(session1, "s1", "s2", 1),
			strings.Replace(prompted(`"on"`), "s1", "s2", 1), end)
		Expect(c.Left).To(ContainElement(ContainSubstring("which of the prompts #5 and #8 each model reply answers")))
	})

	It("finds directories that the model's answer has in pieces", func() {
		made, err := recordings.Convert(acp.V1(), talk(initialized, welcome, opened, session1, prompted(`"hi"`), end),
			"x",
			[]byte("turns:\n  - replies:\n      - - text: [\"costs $5 in /ho\", \"me/me\", \"/w/a\", \" or $WORK\"]\n"))
		Expect(err).NotTo(HaveOccurred())
		Expect(string(made.Text)).To(ContainSubstring(`- text: ["costs $$5 in $WORK/a", " or $WORK"]`))
		Expect(string(recordings.ModelHere([]byte(`        raw: ["{\"p\":\"/home/m", "e/w", "/a\"}"]`), talk(opened),
			"/x", "/y"))).To(Equal(`        raw: ["{\"p\":\"/x", "/a\"}"]`))
	})
})
