package scenarios_test

import (
	"context"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/acp-test/acp-test/agents"
	"github.com/acp-test/acp-test/protocol/acp"
	"github.com/acp-test/acp-test/protocol/acp/acpframe"
	"github.com/acp-test/acp-test/scenarios"
	"github.com/acp-test/acp-test/scenarios/results"
	"github.com/acp-test/acp-test/transcript"
)

// engine runs scenarios against the reference agent, which is this binary.
func engine() *scenarios.Engine {
	p, err := agents.Shipped("reference")
	Expect(err).NotTo(HaveOccurred())
	return engineFor(p)
}

func engineFor(p *agents.Profile) *scenarios.Engine {
	self, err := os.Executable()
	Expect(err).NotTo(HaveOccurred())
	// One folder, since the time that Ginkgo takes to clean up grows with the square of their number.
	of := GinkgoT().TempDir()
	for _, name := range []string{"cwd", "out", "temp"} {
		Expect(os.Mkdir(filepath.Join(of, name), 0o700)).To(Succeed())
	}
	return &scenarios.Engine{Protocol: acp.V1(), Profile: p, Self: self, Cwd: filepath.Join(of, "cwd"),
		Host: os.Environ(),
		Out:  filepath.Join(of, "out"), Temp: filepath.Join(of, "temp"),
		Grace: time.Second, NoFurther: true}
}

func run(e *scenarios.Engine, script string) results.Result {
	s, err := acp.V1().Parse("case", "case.txtar", []byte(script))
	Expect(err).NotTo(HaveOccurred())
	return e.Run(context.Background(), s)
}

func transcriptOf(e *scenarios.Engine, r results.Result) *transcript.Transcript {
	GinkgoHelper()
	f, err := os.Open(filepath.Join(e.Out, r.Artifacts["transcript"]))
	Expect(err).NotTo(HaveOccurred())
	defer f.Close()
	t, err := transcript.Load(f, acpframe.Classifier{})
	Expect(err).NotTo(HaveOccurred())
	return t
}

// text is a result as failures show it.
func text(r results.Result) string {
	var b strings.Builder
	b.WriteString(r.Verdict.String() + " " + r.Reason + "\n")
	if r.Failure != nil {
		b.WriteString(r.Failure.Text(""))
	}
	for _, c := range r.Checks {
		b.WriteString(c.Verdict.String() + " " + c.ID + " " + c.Reason + "\n")
		if c.Failure != nil {
			b.WriteString(c.Failure.Text("  "))
		}
	}
	for _, f := range r.Findings {
		b.WriteString(f.Class.String() + " " + f.Rule + " " + f.Message + "\n")
	}
	return b.String()
}

const hello = `
-- llm.yaml --
replies:
  - - text: Hello.
`

var _ = Describe("await", func() {
	It("takes entries in order, and those that came before it asks", func() {
		r := run(engine(), "check a\nprompt 'Say hello.'\nawait agent_message text~^Hello\nawait turn end_turn\n"+hello)
		Expect(r.Verdict).To(Equal(results.Pass), text(r))
	})

	It("never jumps back", func() {
		r := run(engine(), "check a\nprompt 'Say hello.'\nawait turn\nawait agent_message within=50ms\n"+hello)
		Expect(r.Verdict).To(Equal(results.Inconclusive), text(r)) // the check names no requirement that asks for it
		Expect(r.Checks[0].Failure.Timer).To(Equal("within 50ms"))
	})

	It("gives up as soon as the turn has ended without it", func() {
		r := run(engine(), "check PERM-006\nprompt 'Say hello.'\nawait tool_call\n"+hello)
		Expect(r.Verdict).To(Equal(results.Fail), text(r))
		Expect(r.Checks[0].Failure.Reason).To(ContainSubstring("the turn ended first"))
		Expect(r.Checks[0].Failure.Timer).To(BeEmpty())
	})

	It("is inconclusive about what never opened", func() {
		r := run(engine(), "prompt 'Say hello.'\nawait permission\ncheck CANCEL-001\ncancel\nawait turn cancelled\n"+
			hello)
		Expect(r.Verdict).To(Equal(results.Inconclusive), text(r))
		Expect(r.Checks[0].NotReached).To(BeTrue())
		Expect(r.Checks[0].Verdict).To(Equal(results.Inconclusive))
	})

	It("finds a file, and gives no verdict without it", func() {
		const left = `
-- llm.yaml --
replies:
  - - tool: run_shell
      args: {command: touch left}
  - - gate: g
`
		const begin = "client terminal=false\npermit allow_once\n"
		r := run(engine(), begin+"check a\nprompt 'Leave a file.'\nawait file left\nawait gate g\nrelease g\n"+
			"await turn\n"+left)
		Expect(r.Verdict).To(Equal(results.Pass), text(r))
		r = run(engine(), "check CANCEL-001\nprompt 'Say hello.'\nawait file left\n"+hello)
		Expect(r.Verdict).To(Equal(results.Inconclusive), text(r))
		Expect(r.Checks[0].Failure.Reason).To(ContainSubstring("the turn ended first"))
		r = run(engine(), begin+"check CANCEL-001\nprompt 'Leave a file.'\nawait gate g\n"+
			"await file right within=50ms\n"+left)
		Expect(r.Verdict).To(Equal(results.Inconclusive), text(r))
		Expect(r.Checks[0].Failure.Timer).To(Equal("within 50ms"))
	})

	It("tells the next process other capabilities", func() {
		e := engine()
		r := run(e, "check a\nsession new s\nclient next terminal=none\nkill\nrestart\nsession new t\n")
		Expect(r.Verdict).To(Equal(results.Pass), text(r))
		var told []bool
		for f := range transcriptOf(e, r).All() {
			if f.Source == transcript.Editor && f.Method == "initialize" {
				told = append(told, f.JSON().Path("params.clientCapabilities.terminal").Exists())
			}
		}
		Expect(told).To(Equal([]bool{true, false}))
	})

	It("compares a file when the editor has written it, also for an agent that waits for no answer", func() {
		const agent = `
read -r initialize; echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1,"agentCapabilities":{}}}'
read -r new; echo '{"jsonrpc":"2.0","id":2,"result":{"sessionId":"s"}}'
work=$(printf %s "$new" | sed 's/.*"cwd":"\([^"]*\)".*/\1/')
read -r prompt
big=$(head -c 1000000 /dev/zero | tr '\0' x)
for i in 1 2 3 4 5 6 7 8 9; do
	printf '{"jsonrpc":"2.0","id":%s,"method":"fs/write_text_file","params":{"sessionId":"s","path":"%s/other.txt",` +
			`"content":"%s"}}\n' $i "$work" "$big"
done
printf '{"jsonrpc":"2.0","id":10,"method":"fs/write_text_file","params":{"sessionId":"s","path":"%s/last.txt",` +
			`"content":"written\\n"}}\n' "$work"
echo '{"jsonrpc":"2.0","id":3,"result":{"stopReason":"end_turn"}}'
cat >/dev/null`
		r := run(engineFor(agents.AdHoc([]string{"sh", "-c", agent})),
			"check a\nprompt Write.\nawait turn\ncmp last.txt want/last.txt\n-- want/last.txt --\nwritten\n")
		Expect(r.Checks).To(HaveEach(HaveField("Verdict", results.Pass)), text(r))
	})

	It("is inconclusive about a session that the agent refused to open", func() {
		e := engine()
		e.ExtraArgs = []string{"--fault", "login-without-effect"}
		for _, line := range []string{"set-mode a any", "session resume a", "prompt a $SESSION(a)",
			"! saw agent_message session=a"} {
			r := run(e, "session new a as N\ncheck MODE-005\n"+line+"\n")
			Expect(r.Verdict).To(Equal(results.Inconclusive), line+"\n"+text(r))
			Expect(r.Checks[0].Failure.Observed).To(ContainSubstring("authentication required"), line)
		}
	})

	It("is inconclusive about sessions of an agent that wants a login and offers no way to it", func() {
		judged := func(message string) results.Result {
			agent := `
read -r initialize; echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1,"agentCapabilities":{},` +
				`"authMethods":[]}}'
read -r new; echo '{"jsonrpc":"2.0","id":2,"error":{"code":-32000,"message":"` + message + `"}}'
cat >/dev/null`
			return run(engineFor(agents.AdHoc([]string{"sh", "-c", agent})),
				"initialize\ncheck SESSION-003\nrequest session/new '{\"cwd\": \"$WORK\", \"mcpServers\": []}' as N\n"+
					"await response N sessionId?\n")
		}
		r := judged("Authentication required: please run agent login.")
		Expect(r.Verdict).To(Equal(results.Inconclusive), text(r))
		Expect(r.Reason).To(ContainSubstring("offers no login method: give it a key with --env"))
		Expect(judged("The disk is full.").Verdict).To(Equal(results.Fail))
	})

	It("holds nothing against an agent that was left in the middle", func() {
		e := engine()
		e.StepTimeout = 100 * time.Millisecond
		r := run(e, "prompt 'Wait.'\nawait permission\ncheck a\nawait turn\n-- llm.yaml --\nreplies:\n  - - gate: g\n")
		Expect(r.Verdict).To(Equal(results.Inconclusive), text(r))
		Expect(r.Findings).To(BeEmpty(), text(r))
	})

	It("takes no second answer to a prompt for the end of the next turn", func() {
		const agent = `
read -r initialize; echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1,"agentCapabilities":{}}}'
read -r new; echo '{"jsonrpc":"2.0","id":2,"result":{"sessionId":"s"}}'
read -r prompt; echo '{"jsonrpc":"2.0","id":3,"result":{"stopReason":"end_turn"}}'
read -r prompt; echo '{"jsonrpc":"2.0","id":3,"result":{"stopReason":"end_turn"}}'; echo ` +
			`'{"jsonrpc":"2.0","id":4,"result":{"stopReason":"refusal"}}'
cat >/dev/null`
		r := run(engineFor(agents.AdHoc([]string{"sh", "-c", agent})),
			"check a\nprompt One.\nawait turn end_turn\ncheck b\nprompt Two.\nawait turn refusal\n")
		Expect(r.Checks).To(HaveEach(HaveField("Verdict", results.Pass)), text(r))
		Expect(r.Findings).To(ContainElement(HaveField("Rule", "ONE-RESPONSE")))
	})

	It("says of a turn without an end only that, where a check is about what must not come of it", func() {
		const agent = `
read -r initialize; echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1,"agentCapabilities":{}}}'
read -r new; echo '{"jsonrpc":"2.0","id":2,"result":{"sessionId":"s"}}'
cat >/dev/null`
		judged := func(lines string) results.Result {
			e := engineFor(agents.AdHoc([]string{"sh", "-c", agent}))
			e.StepTimeout = 100 * time.Millisecond
			return run(e, "check FS-001\nprompt One.\nawait turn\n! exists one.txt\n"+lines)
		}
		r := judged("")
		Expect(r.Findings).To(ContainElement(HaveField("Rule", "ONE-RESPONSE")))
		Expect([]results.Verdict{r.Verdict, r.Checks[0].Verdict}).
			To(Equal([]results.Verdict{results.Fail, results.Inconclusive}), text(r))
		Expect(judged("exists two.txt\n").Checks[0].Verdict).To(Equal(results.Fail))
	})

	It("is fail where an answer never comes, also in a check of a lesser class", func() {
		const agent = `
read -r initialize; echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1,` +
			`"agentCapabilities":{"loadSession":true}}}'
read -r new; echo '{"jsonrpc":"2.0","id":2,"result":{"sessionId":"s"}}'
cat >/dev/null`
		p := agents.AdHoc([]string{"sh", "-c", agent})
		p.Timeouts.Start = 100 * time.Millisecond
		e := engineFor(p)
		e.StepTimeout = p.Timeouts.Start
		r := run(e, "session new a\ncheck LOAD-011\nsession load a\n")
		Expect(r.Checks).To(ConsistOf(And(HaveField("Verdict", results.Fail), HaveField("Class", results.Fail),
			HaveField("Requirements", []string{"LOAD-011", "RPC-005"}))), text(r))
	})

	It("fails on another stop reason and says which", func() {
		r := run(engine(), "check a\nprompt 'Say hello.'\nawait turn refusal\ncheck b\n"+hello)
		Expect(r.Verdict).To(Equal(results.Fail), text(r))
		Expect(r.Checks[0].Failure.Error()).To(ContainSubstring("expected turn refusal, got #"))
		Expect(r.Checks[1].NotReached).To(BeTrue())
	})

	It("waits as long as it is told, else as long as the profile says", func() {
		const held = "check a\nprompt 'Say hello.'\nawait turn\n-- llm.yaml --\nreplies:\n  - - gate: g\n"
		e := engine()
		e.Profile.Timeouts.Step = 90 * time.Millisecond
		Expect(run(e, held).Checks[0].Failure.Timer).To(Equal("step timeout 90ms"))
		e.Profile.Timeouts.Step = time.Hour
		e.StepTimeout = 80 * time.Millisecond
		Expect(run(e, held).Checks[0].Failure.Timer).To(Equal("step timeout 80ms"))
	})

	It("looks back as far as the session that a line names had its prompt", func() {
		const talk = "session new a\nprompt a 'Say hello.'\nawait turn\nsession new b\nprompt b 'Say more.'\n" +
			"await turn\n" +
			"check a\nsaw agent_message session=a\nsaw agent_message session=b count=1\n-- llm.yaml --\nturns:\n" +
			"  - - - text: hello\n  - - - text: more\n"
		r := run(engine(), talk)
		Expect(r.Verdict).To(Equal(results.Pass), text(r))
	})

	It("holds the end of its time against an agent that is silent, not against one that is still at it", func() {
		agent := func(then string) results.Result {
			e := engineFor(agents.AdHoc([]string{"sh", "-c", `
read -r initialize; echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1,"agentCapabilities":{}}}'
read -r new; echo '{"jsonrpc":"2.0","id":2,"result":{"sessionId":"s"}}'
read -r prompt; ` + then}))
			e.StepTimeout, e.Timeout = 500*time.Millisecond, 2*time.Second
			return run(e, "check a\nprompt One.\nawait turn within=1h\n")
		}
		Expect(agent("exec cat >/dev/null").Checks[0].Verdict).To(Equal(results.Fail))
		const update = `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":` +
			`{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"more"}}}}`
		busy := agent("while echo '" + update + "'; do sleep 0.05; done")
		Expect(busy.Checks[0].Verdict).To(Equal(results.Inconclusive), text(busy))
		Expect(busy.Reason).To(HavePrefix("the agent was still working when the scenario's timeout of 2s ended"))
	})

	It("names the timer and what was last seen", func() {
		e := engine()
		e.StepTimeout = 100 * time.Millisecond
		r := run(e, "check a\nprompt 'Say hello.'\nawait turn\n-- llm.yaml --\nreplies:\n  - - gate: g\n")
		Expect(r.Verdict).To(Equal(results.Fail), text(r))
		f := r.Checks[0].Failure
		Expect(f.Timer).To(Equal("step timeout 100ms"))
		Expect(strings.Join(f.Tail, "\n")).To(ContainSubstring(`gate="g"`))
		Expect(f.Process).To(HavePrefix("running"))
		Expect(f.Where).To(HavePrefix("case.txtar:3"))
		Expect(strings.Count(f.Text(""), "\n")).To(BeNumerically("<=", 24))
	})

	It("takes different entries in a group, in any order", func() {
		r := run(engine(), "check a\nprompt 'Say hello.'\ngroup {\n  await turn\n  await agent_message text~^A\n"+
			"  await agent_message text~B\n}\n-- llm.yaml --\nreplies:\n  - - text: AB\n      chunks: 2\n")
		Expect(r.Verdict).To(Equal(results.Pass), text(r))
	})

	It("says which line of a group took the only entry there was, and what variables stand for", func() {
		r := run(engine(), "check a\nprompt 'Say hello.'\ngroup {\n  await agent_message text~Hello\n"+
			"  await agent_message text~Hello within=50ms\n}\n-- llm.yaml --\nreplies:\n  - - text: Hello.\n"+
			"    - gate: g\n")
		Expect(text(r)).To(MatchRegexp(`another line of the group took #\d+, and no second entry matched`))
		r = run(engine(), "session new a as A\ncheck a\nprompt 'Say hello.'\nawait turn\n"+
			"saw agent_message text=$A.sessionId text!=$WORK\ncheck b\n! saw agent_message session=any "+
			"text!=$A.sessionId\n-- llm.yaml --\nreplies:\n  - - text: Hello.\n")
		Expect(text(r)).To(MatchRegexp(`expected +agent_message text=sess\S+ text!=\$WORK\n`))
		Expect(text(r)).To(MatchRegexp(`expected +no agent_message session=any text!=sess`))
	})

	It("looks in a group for what a named session said from where the script is in it, and goes on behind that",
		func() {
			const two = "session new a\nsession new b\nprompt a 'Say hello.'\nawait gate g\nprompt b 'Say more.'\n" +
				"await agent_message session=a\nawait turn session=b\ncheck x\n"
			const model = "-- llm.yaml --\nturns:\n  - - - text: One, two.\n        chunks: 2\n      - gate: g\n" +
				"  - - - text: More.\n"
			r := run(engine(), two+"group {\n  await agent_message session=a text~two\n}\nrelease g\n"+
				"await turn session=a\n"+model)
			Expect(r.Verdict).To(Equal(results.Pass), text(r))
			r = run(engine(), two+"group {\n  await agent_message session=a\n}\ncheck PERM-006\n"+
				"await agent_message session=a within=50ms\n"+model)
			Expect(r.Verdict).To(Equal(results.Fail), "there were two, and both were awaited")
		})

	It("lets both sides of both await the same entries of one session", func() {
		side := "  await agent_message text~^Hello\n  await turn end_turn\n"
		r := run(engine(), "session new a\nprompt a 'Say hello.'\ncheck x\nboth {\n"+side+"}{\n"+side+"}\n"+hello)
		Expect(r.Verdict).To(Equal(results.Pass), text(r))
		r = run(engine(), "session new a\nprompt a 'Say hello.'\nboth {\n"+side+"}{\n"+side+
			"}\ncheck PERM-006\nawait agent_message within=50ms\n"+hello)
		Expect(r.Verdict).To(Equal(results.Fail), "after both, the cursor is where the farther side has come to")
	})

	It("lets the agent go on where it has to make room for what is sent", func() {
		big := `'{"pad": "` + strings.Repeat("x", 300_000) + `"}'`
		r := run(engine(), "golden off\nprompt 'Leave a file.'\nawait gate g\ntogether {\n  notify _acp-test/pad "+big+
			"\n  cancel\n}\ncheck a\nawait turn any\n-- llm.yaml --\nturns:\n  - - - gate: g\n      - text: Gone on.\n")
		Expect(r.Verdict).To(Equal(results.Pass), "%+v", r)
	})

	It("does several things while the agent stands still", func() {
		e := engine()
		r := run(e, "golden off\nprompt 'Leave a file.'\nawait gate g\ntogether {\n  release g\n  cancel\n}\n"+
			"check a\nawait turn any\n"+
			"check b\nprompt 'Say hello.'\nawait turn end_turn\n-- llm.yaml --\nturns:\n  - - - gate: g\n"+
			"      - text: Gone on.\n  - - - text: Hello.\n")
		Expect(r.Verdict).To(BeElementOf(results.Pass, results.Inconclusive), "%+v", r)
		Expect(r.Checks).To(HaveEach(HaveField("NotReached", false)))
		var between []transcript.Kind
		inside := false
		for e := range transcriptOf(e, r).All() {
			switch code := e.JSON().Get("code"); {
			case code.Is("held"):
				inside = true
			case code.Is("goes-on"):
				inside = false
			case inside && e.Source != transcript.Model:
				between = append(between, e.Kind)
			}
		}
		Expect(between).To(ContainElement(transcript.Notification), "the cancel")
		_, err := acp.V1().Parse("case", "case.txtar", []byte("together {\n  await turn\n  session new a\n}\n"))
		Expect(err).To(MatchError(And(ContainSubstring("await may wait for the agent"),
			ContainSubstring("session may wait"))))
	})

	It("decides nothing by a check that was not reached", func() {
		script := "check TOOL-001\nprompt 'Say hello.'\nawait tool_call\ncheck PROMPT-003\nawait turn\n"
		r := run(engine(), script+hello)
		Expect(r.Checks[0].Verdict).To(Equal(results.Warn), text(r))
		Expect(r.Checks[1].NotReached).To(BeTrue())
		Expect(r.Checks[1].Verdict).To(Equal(results.Inconclusive))
		Expect(r.Checks[1].Reason).To(Equal("not reached: the script ended at case.txtar:3  await tool_call"))
		Expect(r.Verdict).To(Equal(results.Pass), text(r))
		Expect(r.Notes).To(ContainElement(ContainSubstring("case.txtar:3")))
	})

	It("makes an error of a panic, whichever side it is on", func() {
		err := scenarios.Guarded(func() { panic("a bug") })
		Expect(err).To(MatchError(ContainSubstring("acp-test failed: a bug")))
	})

	It("has a cursor for each side of both", func() {
		r := run(engine(), "session new a\nsession new b\ncheck x\nboth {\n  prompt a 'In a.'\n"+
			"  await turn end_turn\n}{\n  prompt b 'In b.'\n  await turn end_turn\n}\n-- llm.yaml --\nturns:\n"+
			"  - - - text: A\n  - - - text: B\n")
		Expect(r.Verdict).To(Equal(results.Pass), text(r))
	})
})

var _ = Describe("looking back", func() {
	const write = `
-- llm.yaml --
replies:
  - - tool: write_file
      args: {path: $WORK/a.txt, content: "x\n"}
  - - text: Done.
-- want/a.txt --
y
-- want/same.txt --
x
`
	It("goes on after a miss and shows the difference", func() {
		r := run(engine(), "permit allow_once\nprompt 'Write.'\nawait turn\ncheck a\ncmp a.txt want/a.txt\ncheck b\n"+
			"cmp a.txt want/same.txt\ncheck c\n! exists a.txt\n"+write)
		Expect(r.Verdict).To(Equal(results.Fail), text(r))
		Expect(r.Checks[0].Failure.Diff).To(ContainSubstring("-y\n+x"))
		Expect(r.Checks[1].Verdict).To(Equal(results.Pass))
		Expect(r.Checks[2].Verdict).To(Equal(results.Fail))
	})

	DescribeTable("answers",
		func(line string, want results.Verdict) {
			r := run(engine(), "permit allow_once\nprompt 'Write.'\nawait turn\ncheck PERM-006\n"+line+"\n"+write)
			Expect(r.Checks[0].Verdict).To(Equal(want), text(r))
		},
		Entry(nil, "saw permission", results.Pass),
		Entry(nil, "! saw permission", results.Fail),
		Entry(nil, "saw permission count=1", results.Pass),
		Entry(nil, "saw permission count=2", results.Fail),
		Entry(nil, "saw agent_message count>=1", results.Pass),
		Entry(nil, "saw fs/write_text_file after permission", results.Pass),
		Entry(nil, "! saw fs/write_text_file before answer", results.Pass),
		Entry(nil, "! saw fs/write_text_file after permission", results.Fail),
		Entry(nil, "saw permission after turn", results.Fail),
		Entry(nil, "saw tool_call kind=edit status=pending|in_progress title~a.txt", results.Pass),
		Entry(nil, "saw tool_call kind=read", results.Fail),
		Entry(nil, "saw tool_call kind!=read", results.Pass),
		Entry(nil, "saw tool_call nothing?", results.Fail),
		Entry(nil, "saw permission toolCall.kind=edit", results.Pass),
		Entry(nil, "saw permission turn=1", results.Pass),
		Entry(nil, "saw sent initialize in=run", results.Pass),
		Entry(nil, "saw sent initialize", results.Fail),
		Entry(nil, "saw turn end_turn", results.Pass),
		Entry(nil, "saw turn cancelled", results.Fail),
		Entry(nil, "! saw turn error", results.Pass),
		Entry(nil, "text ~ ^Done", results.Pass),
		Entry(nil, "! text ~ ^Done", results.Fail),
		Entry(nil, "model requests==2", results.Pass),
		Entry(nil, "model requests<=1", results.Fail),
		Entry(nil, "model saw text~Write step=1", results.Pass),
		Entry(nil, "! model saw text~Write", results.Fail),
		Entry(nil, "descendants none", results.Pass),
		Entry(nil, "exec sh -c 'grep -q session/prompt'", results.Pass),
		Entry(nil, "exec sh -c 'exit 3'", results.Fail),
	)
})

var _ = Describe("descendants none", func() {
	// left is a scenario whose second turn leaves a process behind.
	left := func(process string) (r results.Result) {
		GinkgoHelper()
		e := engine()
		e.Profile.Command = []string{"sh", "-c", "sleep 600 & exec '" + e.Self + "' refagent"}
		r = run(e, "client terminal=false\npermit allow_once\ncheck a\nprompt 'Say hello.'\nawait turn\n"+
			"descendants none\n"+
			"check b\nprompt 'Leave one.'\nawait turn\ndescendants none\n-- llm.yaml --\nturns:\n"+
			"  - - - text: Hello.\n"+
			"  - - - tool: run_shell\n        args: {command: \"setsid sh -c 'touch up; exec "+process+
			"' >/dev/null 2>&1 & until [ -e up ]; do :; done\"}\n    - - text: Left.\n")
		Expect(r.Checks[0].Verdict).To(Equal(results.Pass), text(r))
		return r
	}
	It("means those that a turn has left, not what a launcher keeps", func() {
		r := left("sleep 601")
		Expect(r.Checks[1].Failure).NotTo(BeNil(), text(r))
		Expect(r.Checks[1].Failure.Observed).To(And(ContainSubstring("sleep 601"), Not(ContainSubstring("sleep 600"))))
	})

	It("blames no agent for a process that is about to be gone", func() {
		r := left("sleep 0.3")
		Expect(r.Checks[1].Failure).To(BeNil(), text(r))
	})
})

var _ = Describe("the response to a named request", func() {
	It("is found in a group, also where another act came after it", func() {
		r := run(engine(), "check a\nprompt 'x' as ONE\nawait turn\nsession new other\ngroup {\n"+
			"  await response ONE\n}\n")
		Expect(r.Verdict).To(Equal(results.Pass), text(r))
	})
})

var _ = Describe("a verdict", func() {
	It("is skip where a capability is not advertised", func() {
		r := run(engine(), "needs agent:sessionCapabilities.dreams\ncheck a\nprompt 'x'\n")
		Expect(r.Verdict).To(Equal(results.Skip))
		Expect(r.Reason).To(Equal("the agent does not advertise sessionCapabilities.dreams"))
	})

	It("is skip where the profile has no such tool", func() {
		e := engine()
		p := *e.Profile
		p.Tools = maps.Clone(p.Tools)
		delete(p.Tools, "fetch")
		e.Profile = &p
		r := run(e, "needs tool:fetch\ncheck a\nprompt 'x'\n")
		Expect(r.Verdict).To(Equal(results.Skip), text(r))
	})

	It("is fail where a check had failed before the scenario turned out not to apply", func() {
		r := run(engine(), "check a\nprompt 'x'\nawait turn end_turn\nexists nothing.txt\ncheck b\nneeds saw plan\n"+
			"await plan\ncheck c\nprompt 'y'\n")
		Expect(r.Verdict).To(Equal(results.Fail), text(r))
		Expect(r.Checks).To(HaveLen(1))
		Expect(r.Checks[0].Slug).To(Equal("a"))
		Expect(r.Notes).To(ContainElement(HavePrefix("the rest was skipped: the agent has sent nothing that " +
			"matches plan")))
	})

	It("is skip where nothing had failed before the scenario turned out not to apply", func() {
		r := run(engine(), "check a\nprompt 'x'\nawait turn end_turn\ncheck b\nneeds saw plan\nawait plan\n")
		Expect(r.Verdict).To(Equal(results.Skip), text(r))
		Expect(r.Checks).To(BeEmpty())
	})

	It("is skip where the agent takes its turn without what is waited for", func() {
		r := run(engine(), "prompt 'x'\nneeds await plan as P\ncheck a\nprompt $P.nothing\n")
		Expect(r.Verdict).To(Equal(results.Skip), text(r))
		Expect(r.Reason).To(Equal("the turn ended without plan"))
	})

	It("is skip where the agent waits for an answer that the editor keeps back", func() {
		e := engine()
		e.StepTimeout, e.ExtraArgs = time.Second, []string{"--fault", "cancel-waits-for-the-answer"}
		r := run(e, "permit hold late\nprompt 'x'\nawait permission\ncancel\ncheck CANCEL-001\n"+
			"needs await turn cancelled\n"+
			"-- llm.yaml --\nreplies:\n  - - tool: write_file\n      args: {path: $WORK/a, content: b}\n")
		Expect(r.Verdict).To(Equal(results.Skip), text(r))
		Expect(r.Reason).To(HavePrefix("the agent waits for the editor's answer"))
	})

	It("waits no longer than within= for what is needed", func() {
		r := run(engine(), "prompt 'x'\nneeds await plan within=150ms\n"+
			"-- llm.yaml --\nreplies:\n  - - gate: never\n")
		Expect(r.Verdict).NotTo(Equal(results.Pass), text(r))
		Expect(r.Failure.Timer).To(Equal("within 150ms"))
	})

	It("goes on where what is waited for comes", func() {
		r := run(engine(), "prompt 'x'\nneeds await agent_message\ncheck a\nawait turn end_turn\ntext ~ Done\n")
		Expect(r.Verdict).To(Equal(results.Pass), text(r))
	})

	It("is no skip where an error kept the agent from what is waited for", func() {
		r := run(engine(), "prompt 'x'\nneeds await plan\n-- llm.yaml --\nreplies:\n"+
			"  - - fail: {status: 400, times: 100}\n")
		Expect(r.Verdict).To(Equal(results.Inconclusive), text(r))
	})

	It("is error where the scenario is wrong", func() {
		r := run(engine(), "check a\nprompt $NOBODY\n")
		Expect(r.Verdict).To(Equal(results.Error))
		Expect(r.Reason).To(Equal("case.txtar:2: unknown variable $NOBODY"))
	})

	It("is inconclusive where the agent's message lacks what a line wants of it", func() {
		r := run(engine(), "check a\nprompt 'x'\nawait turn end_turn as T\nprompt 'Again $T'\n"+
			"prompt $T.result.nothing\n")
		Expect(r.Verdict).To(Equal(results.Inconclusive), text(r))
		Expect(r.Reason).To(ContainSubstring("expected T.result.nothing"))
	})

	It("is error with the place of a mistake in llm.yaml", func() {
		r := run(engine(), "check a\nprompt 'x'\n-- llm.yaml --\nreplies:\n  - - txet: Hello\n")
		Expect(r.Verdict).To(Equal(results.Error))
		Expect(r.Reason).To(HavePrefix("case.txtar:5:"))
	})

	It("is inconclusive where the permission cannot be answered as scripted", func() {
		r := run(engine(), "permit hold\nprompt 'Write.'\nawait permission as P\ncheck PERM-008\n"+
			"answer P allow_maybe\nawait turn\n-- llm.yaml --\nreplies:\n  - - tool: write_file\n"+
			"      args: {path: $WORK/a.txt, content: x}\n  - - text: Done.\n")
		Expect(r.Verdict).To(Equal(results.Inconclusive), text(r))
	})

	It("is inconclusive also for what no check says, where the permission cannot be answered as scripted", func() {
		e := engine()
		e.ExtraArgs = []string{"--fault", "permission-one-way"}
		r := run(e, "permit reject_once\nprompt 'Write.'\nawait turn refusal\ncheck a\nexists a.txt\n-- llm.yaml --\n"+
			"replies:\n  - - tool: write_file\n      args: {path: $WORK/a.txt, content: x}\n  - - text: Done.\n")
		Expect(r.Verdict).To(Equal(results.Inconclusive), text(r))
		Expect(r.Reason).To(ContainSubstring("is not offered"))
		Expect(r.Failure).To(BeNil())
	})

	It("is the worst of the parts", func() {
		Expect(results.Worst(results.Pass, results.Warn)).To(Equal(results.Pass))
		Expect(results.Worst(results.Skip, results.Inconclusive)).To(Equal(results.Inconclusive))
		Expect(results.Worst(results.Fail, results.Inconclusive)).To(Equal(results.Fail))
		Expect(results.Worst(results.Fail, results.Error)).To(Equal(results.Error))
	})
})

var _ = Describe("an agent that does not work", func() {
	adHoc := func(argv ...string) *scenarios.Engine {
		p := agents.AdHoc(argv)
		p.Timeouts.Start = 0
		e := engineFor(p)
		e.StepTimeout = 2 * time.Second
		return e
	}
	const script = "check a\nprompt 'Say hello.'\nawait turn\n" + hello

	It("does not exist: error, with what to do", func() {
		r := run(adHoc("no-such-agent-anywhere"), script)
		Expect(r.Verdict).To(Equal(results.Error), text(r))
		Expect(r.Reason).To(ContainSubstring("no-such-agent-anywhere"))
	})

	It("exits at once: a failure with its status and stderr", func() {
		r := run(adHoc("sh", "-c", "echo cannot find my soul >&2; exit 3"), script)
		Expect(r.Verdict).To(Equal(results.Fail), text(r))
		f := r.Failure
		Expect(f.Process).To(Equal("exited with status 3"))
		Expect(f.Stderr).To(ContainSubstring("cannot find my soul"))
		Expect(f.Advice).NotTo(BeEmpty())
	})

	It("prints a banner and nothing else: a failure that says so", func() {
		e := adHoc("sh", "-c", "echo Welcome to my agent; cat >/dev/null")
		e.StepTimeout = 300 * time.Millisecond
		r := run(e, script)
		Expect(r.Verdict).To(Equal(results.Fail), text(r))
		Expect(r.Failure.Advice).To(ContainSubstring("stdout"))
		Expect(r.Findings).To(ContainElement(HaveField("Rule", "STDOUT-CLEAN")))
	})

	It("never answers: the timer is named", func() {
		e := adHoc("sh", "-c", "cat >/dev/null")
		e.StepTimeout = 200 * time.Millisecond
		r := run(e, script)
		Expect(r.Verdict).To(Equal(results.Fail), text(r))
		Expect(r.Failure.Timer).To(ContainSubstring("200ms"))
	})

	It("does not read: a gate is not released before it has had a second to", func() {
		if runtime.GOOS != "linux" {
			Skip("no other kernel tells what is left in a pipe")
		}
		e := adHoc("sh", "-c", `read -r line; echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1,`+
			`"agentCapabilities":{}}}'; sleep 60`)
		r := run(e, "golden off\ninitialize\nsend unread\ncheck a\nrelease g\n-- llm.yaml --\nreplies:\n"+
			"  - - gate: g\n")
		var sent, released time.Duration
		for x := range transcriptOf(e, r).All() {
			switch {
			case x.Source == transcript.Editor:
				sent = x.At
			case x.Kind == transcript.GateReleased:
				released = x.At
			}
		}
		Expect(released).To(BeNumerically(">=", sent+time.Second), text(r))
	})

	It("prints a line of 50 MB: its beginning is kept, and it is named", func() {
		e := adHoc("sh", "-c", "head -c 50000000 /dev/zero | tr '\\0' x; echo")
		// Its exit ends the run, and not before all of the line has come.
		e.StepTimeout = time.Minute
		r := run(e, script)
		Expect(r.Verdict).To(Equal(results.Fail), text(r))
		longest, kept := 0, 0
		for x := range transcriptOf(e, r).All() {
			if x.Kind == transcript.Malformed {
				longest, kept = max(longest, x.Size), max(kept, len(x.Raw))
			}
		}
		Expect(longest).To(Equal(50000000))
		Expect(kept).To(Equal(1 << 20))
	})
})

var _ = Describe("RunAll", func() {
	list := func(names ...string) []*scenarios.Scenario {
		var out []*scenarios.Scenario
		for _, n := range names {
			s, err := acp.V1().Parse(n, n+".txtar", []byte("check a\nprompt 'Say hello.'\nawait turn end_turn\n"+hello))
			Expect(err).NotTo(HaveOccurred())
			out = append(out, s)
		}
		return out
	}

	It("keeps the order of the list whatever ends first, and survives JSON", func() {
		r := engine().RunAll(context.Background(), list("a", "b", "c", "d"), scenarios.Plan{Jobs: 4, Repeat: 2})
		var ids []string
		for _, x := range r.Results {
			ids = append(ids, x.ID)
		}
		Expect(ids).To(Equal([]string{"a", "b", "c", "d", "a", "b", "c", "d"}))
		Expect(r.Counts.Pass).To(Equal(8))
		Expect(r.Exit).To(Equal(0))
		data, err := json.Marshal(r)
		Expect(err).NotTo(HaveOccurred())
		var back results.Run
		Expect(json.Unmarshal(data, &back)).To(Succeed())
		Expect(back.Results).To(HaveLen(8))
	})

	It("stops trying an agent that never starts", func() {
		e := engineFor(agents.AdHoc([]string{"sh", "-c", "exit 1"}))
		r := e.RunAll(context.Background(), list("a", "b", "c", "d", "e", "f"), scenarios.Plan{Jobs: 1})
		Expect(r.Counts.Fail).To(Equal(3), "%+v", r.Results)
		Expect(r.Counts.Skip).To(Equal(3))
		Expect(r.Exit).To(Equal(1))
	})

	It("ends soon when it is interrupted, and keeps what has finished", func() {
		s, err := acp.V1().Parse("held", "held.txtar",
			[]byte("check a\nprompt 'Wait.'\nawait gate g\nawait turn\n-- llm.yaml --\nreplies:\n  - - gate: g\n"))
		Expect(err).NotTo(HaveOccurred())
		ctx, cancel := context.WithCancel(context.Background())
		e := engine()
		e.Step = func(id, step string) {
			if id == "held" && step == "check a" {
				cancel()
			}
		}
		r := e.RunAll(ctx, append(list("a"), s), scenarios.Plan{Jobs: 1})
		Expect(r.Interrupted).To(BeTrue())
		Expect(r.Results).To(HaveLen(1))
		Expect(r.Results[0].ID).To(Equal("a"))
	})

	It("is an error if nothing gave a verdict", func() {
		s, err := acp.V1().Parse("s", "s.txtar", []byte("needs agent:dreams\ncheck a\nprompt 'x'\n"))
		Expect(err).NotTo(HaveOccurred())
		r := engine().RunAll(context.Background(), []*scenarios.Scenario{s}, scenarios.Plan{})
		Expect(r.Exit).To(Equal(2))
	})

	It("gives each scenario to exactly one shard", func() {
		all := list("a", "b", "c", "d", "e")
		seen := map[string]int{}
		for i := 1; i <= 3; i++ {
			for _, s := range scenarios.Select(all, &results.Shard{Index: i, Of: 3}, nil) {
				seen[s.ID]++
			}
		}
		Expect(seen).To(Equal(map[string]int{"a": 1, "b": 1, "c": 1, "d": 1, "e": 1}))
	})
})
