package scenarios_test

import (
	"errors"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/acp-test/acp-test/agents"
	"github.com/acp-test/acp-test/protocol/acp"
	"github.com/acp-test/acp-test/scenarios"
	"github.com/acp-test/acp-test/scenarios/language"
	"github.com/acp-test/acp-test/scenarios/results"
)

func parse(script string) (*scenarios.Scenario, error) {
	return acp.V1().Parse("suite/case", "suite/case.txtar", []byte(script))
}

var _ = Describe("several mistakes", func() {
	It("are told together, those of the model's script too", func() {
		_, err := acp.V1().Parse("x", "x.txtar",
			[]byte("# X.\nawait trun\n! prompt x\n-- llm.yaml --\nreplies:\n  - - txt: a\n"))
		Expect(strings.Split(err.Error(), "\n")).
			To(HaveExactElements(HavePrefix("x.txtar:2:7: "), HavePrefix("x.txtar:3:1: "),
				HavePrefix(`x.txtar:6:7: llm.yaml: unknown step "txt"`)))
	})

	It("blames initialize for an agent that ends before it answers, although no line says so, and no check", func() {
		for _, check := range []string{"a", "PROMPT-023"} { // PROMPT-023 is a should
			r := run(engineFor(agents.AdHoc([]string{"sh", "-c", "exit 3"})),
				"check "+check+"\nprompt 'Hello.'\nawait turn\n")
			Expect(r.Verdict).To(Equal(results.Fail), text(r))
			Expect(r.Failure.Where).To(Equal("initialize"), text(r))
			Expect(r.Checks).To(HaveExactElements(HaveField("NotReached", true)), text(r))
		}
	})
})

var _ = Describe("a mistake in a scenario", func() {
	DescribeTable("is told with its place and what would be right",
		func(script, want string) {
			_, err := parse(script)
			var m *language.Mistake
			Expect(errors.As(err, &m)).To(BeTrue(), "got %v", err)
			Expect(err.Error()).To(Equal("suite/case.txtar:" + want))
		},
		Entry("unknown command", "# t\nawiat turn\n", `2:1: unknown command "awiat" (did you mean "await"?)`),
		Entry("unknown command, indented", "group {\n  awiat turn\n}\n",
			`2:3: unknown command "awiat" (did you mean "await"?)`),
		Entry("each without a name", "session new a as N\neach modes of N {\nset-mode a x\n}\n",
			`2:17: "as NAME" is missing at the end (usage: each LIST of REF [CONDITION…] as NAME)`),
		Entry("bad pattern", "await tool_cal\n",
			`1:7: "tool_cal" is not a pattern (did you mean "tool_call"? a pattern begins with a kind of entry: `+
				`acp-test help patterns)`),
		Entry("bad condition", "await tool_call completed\n",
			`1:17: "completed" is no condition (a condition is path=value, path!=value, path~regexp or path?)`),
		Entry("bad stop reason", "await turn end_trun\n",
			`1:12: "end_trun" is no stop reason (did you mean "end_turn"?)`),
		Entry("bad regular expression", "await tool_call title~(\n",
			"1:23: bad regular expression: error parsing regexp: missing closing ): `(`"),
		Entry("open quote", "prompt 'Hello\n",
			`1:8: the quote that begins here is not closed (write '' for a quote inside quotes)`),
		Entry("another quote", "prompt \"Hello there\n",
			`1:8: the quote that begins here is not closed (write "" for a quote inside quotes)`),
		Entry("missing file", "prompt 'x'\ncmp a.txt want/a.txt\n",
			`2:11: the archive holds no file "want/a.txt" (add it below as -- want/a.txt --)`),
		Entry("unquoted text", "prompt Hello there you\n",
			`1:14: "there" is one word too many (quote the text: prompt 'Do this.')`),
		Entry("unknown session", "cancel b\n", `1:8: no session b is open (open it with session new NAME)`),
		Entry("unknown name", "await response R\n",
			`1:16: no line above is named R (name a request with "… as NAME" first)`),
		Entry("negated act", "! prompt 'x'\n",
			`1:1: prompt cannot be negated (only commands that look back can be negated)`),
		Entry("open block", "group {\nawait turn\n", `1:7: the block that begins here is not closed`),
		Entry("stray brace", "await turn\n}\n", `2:1: this } closes no block`),
		Entry("block for none", "await turn {\n", `1:12: await takes no block (usage: await PATTERN [within=D])`),
		Entry("act in a group", "group {\n  cancel\n}\n", `2:3: a group may only contain await lines`),
		Entry("one side of both", "both {\n await turn\n}\n", `1:6: both needs a second block (both { … }{ … })`),
		Entry("check without a name", "check\n",
			`1:6: a check needs a requirement or a slug (usage: check [REQUIREMENT…] [SLUG])`),
		Entry("two checks alike", "check a\ncheck a\n", `2:1: two checks have the id "a" (the first is on line 1)`),
		Entry("a window of needs", "needs saw plan in=run\n",
			`1:19: needs saw looks at the whole run and takes no in= (usage: needs agent:CAPABILITY | model | stdio | `+
				`http | ws | tool:NAME … | [!] saw PATTERN | await PATTERN [within=D] | pick …)`),
		Entry("bad duration", "await turn within=5\n",
			`1:19: "5" is no duration (a duration is a number with a unit, such as 250ms or 2s)`),
		Entry("bad choice", "permit alow_once\n",
			`1:8: unknown answer "alow_once": want allow_once, allow_always, reject_once, reject_always, cancelled, `+
				`hold, never, error, error:CODE or option:ID (usage: permit CHOICE [kind=K] [title=GLOB] `+
				`[about=REGEXP] [offers=O] [nth=N] [after=N] [delay=D] [late] [twice] [remember=tool|session])`),
		Entry("server with a name that is taken", "mcp run canary node\n",
			`1:9: canary is the name of a built-in MCP server: choose another name (usage: mcp canary `+
				`[stdio|http|odd-http|sse|twin|slow|other|odd|older|chatty|loud|prompts|stubborn|paged] `+
				`[name=NAME] [env=apart] | broken | run NAME PROGRAM [ARG]…)`),
		Entry("unknown server", "mcp sings\n",
			`1:5: "sings" is not an MCP server: use canary, broken or run (usage: mcp canary `+
				`[stdio|http|odd-http|sse|twin|slow|other|odd|older|chatty|loud|prompts|stubborn|paged] `+
				`[name=NAME] [env=apart] | broken | run NAME PROGRAM [ARG]…)`),
		Entry("nothing for always", "permit allow_once remember=tool\n",
			`1:28: remember= must be tool or session, and CHOICE must end in _always (usage: permit CHOICE [kind=K] `+
				`[title=GLOB] [about=REGEXP] [offers=O] [nth=N] [after=N] [delay=D] [late] [twice] `+
				`[remember=tool|session])`),
		Entry("condition", "[v3] cancel\n",
			`1:1: unknown condition [v3] (conditions are [v1] [v2] [linux] [darwin] [windows]; a ! inside `+
				`negates one)`),
		Entry("variable in a name", "cancel as $X\n",
			`1:11: "$X" cannot name the result of this line (a name is letters, digits and _)`),
		Entry("count of an absence", "! saw tool_call count=2\n",
			`1:1: "! saw" cannot have a count (usage: saw PATTERN [count=N|count>=N] [before PATTERN] [after `+
				`PATTERN] [in=run|turn=N])`),
		Entry("word after list", "session list evrything\n",
			`1:14: session list takes only all, then names of sessions, not "evrything" (usage: session `+
				`new|load|resume|close|delete|fork NAME [of=NAME] [id=TEXT] [cwd=DIR] [add=DIR]… [meta=JSON] `+
				`[wait=no] [servers=none] | list [cwd=DIR] [cursor=TEXT] | list all [NAME…] [cwd=DIR])`),
		Entry("list all of an unknown session", "session list all b\n",
			`1:18: no session b is open (open it with session new NAME)`),
		Entry("list all from a cursor", "session list all cursor=x\n",
			`1:25: session list all takes no cursor= (usage: session new|load|resume|close|delete|fork NAME `+
				`[of=NAME] [id=TEXT] [cwd=DIR] [add=DIR]… [meta=JSON] [wait=no] [servers=none] | list [cwd=DIR] [cursor=TEXT] | `+
				`list all [NAME…] [cwd=DIR])`),
		Entry("no base64", "prompt 'x'\n-- a.png.base64 --\nno picture\n",
			`2:1: "a.png.base64" does not hold base64: illegal base64 data at input byte 8`),
		Entry("a file as text and in base64", "prompt 'x'\n-- a --\n-- a.base64 --\n",
			`3:1: the archive holds "a" twice`),
		Entry("name outside the workspace", "prompt 'x'\n-- ../a --\n",
			`2:1: "../a" is not a path inside the workspace`),
	)

	It("is told together with all others of the file, but not what follows from it", func() {
		_, err := parse("awiat turn\nsession new 'b\nsession nwe c as S\ncancel c\nawait response S\ncancel d\n" +
			"group {\n  await turn\n-- ../a --\n")
		Expect(err).To(MatchError(strings.Join([]string{
			`suite/case.txtar:1:1: unknown command "awiat" (did you mean "await"?)`,
			`suite/case.txtar:2:13: the quote that begins here is not closed (write '' for a quote inside quotes)`,
			`suite/case.txtar:3:9: unknown session command "nwe" (did you mean "new"?) (usage: session ` +
				`new|load|resume|close|delete|fork NAME [of=NAME] [id=TEXT] [cwd=DIR] [add=DIR]… [meta=JSON] ` +
				`[wait=no] [servers=none] | list [cwd=DIR] [cursor=TEXT] | list all [NAME…] [cwd=DIR])`,
			`suite/case.txtar:6:8: no session d is open (open it with session new NAME)`,
			`suite/case.txtar:7:7: the block that begins here is not closed`,
			`suite/case.txtar:9:1: "../a" is not a path inside the workspace`,
		}, "\n")))
	})

	DescribeTable("is told with its place on the agent's side too",
		func(lines, want string) {
			_, err := parse("role agent\n" + lines + "\n")
			Expect(err).To(MatchError("suite/case.txtar:" + want))
		},
		Entry("unknown command", "om prompt {\n}", `2:1: unknown command "om" (did you mean "on"?)`),
		Entry("act outside", "text 'x'", `2:1: unknown command "text" (put it inside a handler: on EVENT { … })`),
		Entry("command inside", "on prompt {\n  sent x/y\n}", `3:3: unknown command "sent" (did you mean "send"?)`),
		Entry("event", "on promt {\n}",
			`2:4: "promt" is no event (an event is a method of the editor, or prompt, cancel, new, load, resume, `+
				`close, connect or eof)`),
		Entry("regular expression", "on prompt ~ '(' {\n}",
			"2:13: bad regular expression: error parsing regexp: missing closing ): `(`"),
		Entry("no block", "on prompt", `2:9: on needs a block { } (usage: on EVENT [~ 'REGEXP'] [nth=N])`),
		Entry("no words", "on prompt {\n  tool a\n}", `3:9: TITLE is missing (usage: tool ID TITLE [kind=] [status=])`),
		Entry("a word too many", "on prompt {\n  end a b\n}", `3:9: "b" is one word too many (usage: end STOP)`),
		Entry("no JSON", "on prompt {\n  update '{'\n}", `3:10: { is not valid JSON (usage: update JSON [session=ID])`),
		Entry("no number", "on prompt {\n  repeat many {\n    large -1\n  }\n}",
			`3:10: "many" is not a number (usage: repeat N)`),
		Entry("no duration", "on prompt {\n  await cancel within=1\n}",
			`3:23: "1" is no duration (usage: await NAME|cancel|METHOD [within=D])`),
		Entry("no escape", "on prompt {\n  write '\\z'\n}", `3:9: "\\z" has a bad escape (usage: write 'BYTES')`),
		Entry("no choice", "on prompt {\n  ignore int\n}",
			`3:10: "int" is not one of eof|term (usage: ignore eof|term)`),
		Entry("no name", "on prompt {\n  request x/y {}\n}",
			`3:17: request needs a name: as NAME (usage: request METHOD JSON [id=JSON] as NAME)`),
		Entry("unknown name", "check a\nanswered P", `3:10: no request above is named P (name a request with as NAME)`),
		Entry("no check", "sent session/prompt", `2:1: sent must be inside a check (open a check first: check SLUG)`),
		Entry("nothing", "tag x", `1: the script does nothing (acp-test help agent-side explains the language)`),
	)

	It("does not hide a line whose condition does not hold here", func() {
		_, err := parse("[v2] awiat turn\n")
		Expect(err).To(MatchError(ContainSubstring(`unknown command "awiat"`)))
	})
})

var _ = Describe("a scenario", func() {
	It("has the ids of its checks and requirements", func() {
		s, err := parse("# One sentence.\ncheck PROMPT-003\nprompt 'x'\ncheck PERM-006 PERM-007 nothing-before\n" +
			"check effects\n")
		Expect(err).NotTo(HaveOccurred())
		Expect(s.Title).To(Equal("One sentence."))
		Expect(s.CheckIDs()).To(Equal([]string{"suite/case#prompt-003", "suite/case#nothing-before",
			"suite/case#effects"}))
		Expect(s.Requirements()).To(Equal([]string{"PERM-006", "PERM-007", "PROMPT-003"}))
		Expect(s.Tags).To(ContainElement("suite"))
	})

	DescribeTable("is called by its first comment line, and what goes on below", func(comment, want string) {
		s, err := parse(comment + "\ncheck a\nprompt 'x'\n")
		Expect(err).NotTo(HaveOccurred())
		Expect(s.Title).To(Equal(want))
	},
		Entry("a sentence on two lines", "# A session that is made, and\n# taken back.",
			"A session that is made, and taken back."),
		Entry("another sentence", "# A session.\n# It is taken back.", "A session."),
		Entry("other comments", "# A session\n\n# taken back", "A session"),
	)

	It("never panics on any text", func() {
		for _, script := range []string{"", "\n", "-- --", "!", "[", "[]", "as", "await as", "check 'x'", "group {",
			"both {\n}{", "}{", "prompt '''", "$", "permit", "rules off", "session", "exec", "model", "send $X",
			"-- llm.yaml --\n: [", "text", "saw", "\x00", strings.Repeat("{", 1000)} {
			_, err := parse(script)
			_ = err
		}
	})
})

var _ = Describe("Review", func() {
	DescribeTable("doubts what cannot be meant",
		func(script, want string) {
			s, err := parse(script)
			Expect(err).NotTo(HaveOccurred())
			var got []string
			for _, m := range acp.V1().Review(s) {
				got = append(got, m.Error())
			}
			Expect(strings.Join(got, "\n")).To(ContainSubstring(want))
		},
		Entry("no title", "check a\n", "does not say what it is about"),
		Entry("unknown requirement", "# t\ncheck CANCEL-999\n", "there is no requirement CANCEL-999"),
		Entry("unknown gate", "# t\ncheck a\nawait gate b\n-- llm.yaml --\nreplies:\n  - - gate: c\n",
			`the model has no gate "b"`),
		Entry("gate nobody opens", "# t\ncheck a\nprompt 'x'\n-- llm.yaml --\nreplies:\n  - - gate: c\n",
			`nothing awaits or releases the gate "c"`),
		Entry("a pause", "# t\ncheck a\npause 10ms\n", "the scenario pauses"),
		Entry("two sessions with the same text at the same time",
			"# t\ncheck a\nsession new a\nsession new b\nprompt a 'x'\nprompt b 'x'\n",
			"line 5 prompts another session with the same text"),
		Entry("a wanted file nobody compares", "# t\ncheck a\n-- want/a --\nx\n", "nothing compares want/a"),
		Entry("a bad model script", "# t\ncheck a\nprompt 'x'\n-- llm.yaml --\nreplys: []\n",
			`suite/case.txtar:5:1: llm.yaml: unknown key "replys"`),
	)

	It("has nothing against prompts of the same text, one after the other", func() {
		s, err := parse("# t\ncheck a\nsession new a\nsession new b\nprompt a 'x'\nawait turn\nprompt a 'x'\n" +
			"await turn\nprompt b 'x'\nawait turn\n")
		Expect(err).NotTo(HaveOccurred())
		Expect(acp.V1().Review(s)).To(BeEmpty())
	})

	It("has nothing against the suites in the binary", func() {
		list, err := acp.V1().Shipped()
		Expect(err).NotTo(HaveOccurred())
		Expect(len(list)).To(BeNumerically(">=", 30))
		var doubts []string
		for _, s := range list {
			for _, m := range acp.V1().Review(s) {
				doubts = append(doubts, m.Error())
			}
		}
		Expect(doubts).To(BeEmpty(), "acp-test lint reports these: mend the files below scenarios/suites")
		bare := *list[0]
		bare.Checks = nil
		Expect(acp.V1().Review(&bare)).To(ContainElement(MatchError(ContainSubstring("has no check"))))
		bare.Suite = ""
		Expect(acp.V1().Review(&bare)).To(BeEmpty(), "a user's is judged by rules")
	})

	It("has a choice for agents that take long to start", func() {
		list, err := acp.V1().Shipped()
		Expect(err).NotTo(HaveOccurred())
		n := 0
		for _, s := range list {
			if slices.Contains(s.Tags, "matrix") {
				n++
			}
		}
		Expect(n).To(And(BeNumerically(">=", 25), BeNumerically("<=", 40)))
	})
})
