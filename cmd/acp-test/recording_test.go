//go:build unix

package main_test

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// session is a conversation with all that a recording has to keep: a tool call,
// a permission, a cancel, a load, and a prompt of two lines.
const session = `# A session to record.
needs agent:loadSession
permit allow_once

check recorded
prompt 'Rename foo'$NL'to bar in main.go.'
await turn end_turn
prompt 'Tell me a long story.'
await agent_message
cancel
await turn cancelled
session load main
prompt 'Go on please.'
await turn end_turn
-- main.go --
package main // foo
-- llm.yaml --
turns:
  - - - text: I'll rename it, for $$5.
      - tool: write_file
        args: {path: $WORK/main.go, content: "package main // bar\n"}
    - - text: Renamed.
  - - - text: Once upon a time
      - fail: {hang: true, after_chunks: 1}
  - - - text: Done.
`

// recorded is a place with session.jsonl and session.llm.yaml, made of the
// reference agent and a model behind it.
func recorded() *place {
	GinkgoHelper()
	p := newPlace()
	p.write("session.txtar", session)
	got := p.run("run", "session.txtar", "--agent", "reference", "--", "acp-test", "record", "--out",
		filepath.Join(p.dir, "session.jsonl"), "--llm", "--", "acp-test", "refagent")
	Expect(got.code).To(Equal(0), got.out+got.err)
	return p
}

// hello is what an editor says that only says hello.
const hello = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}` + "\n"

var _ = Describe("paths of a recorded session", func() {
	It("are those of now, beside the workspace and without their first slash too", func() {
		p := newPlace()
		agent := []string{"acp-test", "refagent", "--liberty", "tool-title-from-root"}
		got := p.run(append([]string{"run", "--run", "^files/outside$", "--profile", "none", "--", "acp-test", "record",
			"--out", filepath.Join(p.dir, "outside.jsonl"), "--llm", "--"}, agent...)...)
		Expect(got.code).To(Equal(0), got.out+got.err)
		Expect(p.read("outside.jsonl")).To(MatchRegexp(`"title":"Write \w[^"]*/work/\.\./outside\.txt"`))
		got = p.run(append([]string{"replay", "outside.jsonl", "--"}, agent...)...)
		Expect(got.code).To(Equal(0), got.out)
		Expect(p.results().Results[0].Golden.State).To(Equal("match"))
	})

	It("are those of now where a profile masks the name of the run's folder", func() {
		p := newPlace()
		p.write("mine.yaml", "name: mine\n"+
			"command: [acp-test, refagent]\nenv: {OPENAI_BASE_URL: $LLM/v1, OPENAI_API_KEY: x}\n"+
			"model: {wire: openai-chat}\nnormalize: {replace: [{pattern: 'acp-test-run-\\d+', with: RUN}]}\n")
		got := p.run("run", "--run", "^(files/outside|mcp/handshake)$", "--profile", "none", "--", "acp-test", "record",
			"--out", filepath.Join(p.dir, "r.jsonl"), "--llm=$LLM/v1", "--", "acp-test", "refagent")
		Expect(got.code).To(Equal(0), got.out+got.err)
		got = p.run("replay", "r.jsonl", "r-2.jsonl", "--agent", "mine.yaml")
		Expect(got.out).To(ContainSubstring("2 scenarios: 2 pass"))
	})
})

var _ = Describe("record --llm", func() {
	It("says that requests go to the vendor, and that the agent never asked", func() {
		p := newPlace()
		p.write("silent.sh", "#!/bin/sh\nunset OPENAI_BASE_URL\nexport OPENAI_BASE_URL=\"$ELSEWHERE\"\nexec "+program+
			" refagent\n")
		Expect(os.Chmod(filepath.Join(p.dir, "silent.sh"), 0o755)).To(Succeed())
		p.write("s.txtar", "prompt 'Hello.'\nawait turn\n-- llm.yaml --\nreplies:\n  - - text: Hello.\n")
		got := p.run("run", "s.txtar", "-v", "--profile", "none", "--env", "ELSEWHERE=$LLM/v1", "--env",
			"ANTHROPIC_BASE_URL=",
			"--", "acp-test", "record", "--out", filepath.Join(p.dir, "r.jsonl"), "--llm", "--",
			filepath.Join(p.dir, "silent.sh"))
		Expect(got.code).To(Equal(0), got.out+got.err)
		said := p.read("acp-test-out/s/transcript.jsonl")
		for _, text := range []string{"the agent sent no model request through the recorder, so no model " +
			"reply was saved",
			"ANTHROPIC_BASE_URL is not set: https://api.anthropic.com)"} {
			Expect(strings.Count(said, text)).To(Equal(1), said)
			Expect(strings.Count(p.read("r.jsonl"), text)).To(Equal(1))
		}
		Expect(p.run("replay", "r.jsonl").out).To(ContainSubstring("so no model answers"))
	})
})

var _ = Describe("a recorded session, with the model's side", Ordered, func() {
	var p *place
	BeforeAll(func() { p = recorded() })

	It("is on the disk without what it should not hold", func() {
		Expect(p.read("session.llm.yaml")).
			To(And(ContainSubstring(`text: "I'll rename it, for $5."`), ContainSubstring("fail: {hang: true}")))
		info, err := os.Stat(filepath.Join(p.dir, "session.jsonl"))
		Expect(err).NotTo(HaveOccurred())
		Expect(info.Mode().Perm()).To(Equal(os.FileMode(0o600)))
	})

	It("is replayed without a provider, in another place", func() {
		got := p.run("replay", "session.jsonl", "--agent", "reference", "--repeat", "3")
		Expect(got.code).To(Equal(0), got.out)
		run := p.results()
		Expect(run.Results).To(HaveLen(3))
		for _, r := range run.Results {
			Expect(r.Golden.State).To(Equal("match"))
			Expect(r.Notes).To(BeEmpty())
			t := p.read("acp-test-out/" + r.Artifacts["transcript"])
			Expect(t).To(ContainSubstring(`"kind":"model-request"`))
			Expect(t).NotTo(ContainSubstring(`"kind":"model-unmatched"`))
		}
	})

	It("shows what an agent does otherwise, and with a golden of its own", func() {
		got := p.run("replay", "session.jsonl", "--agent", "reference", "--fault", "cancel-end-turn-settled")
		Expect(got.code).To(Equal(1))
		Expect(got.out).To(MatchRegexp(`(?m)^ +-<-- cancelled\n +\+<-- end_turn$`))
		Expect(p.run("replay", "session.jsonl", "--agent", "reference", "--against", "golden").err).
			To(HaveSuffix("--update writes it\n"))
		Expect(p.run("replay", "session.jsonl", "--agent", "reference", "--against", "golden", "--update").code).
			To(Equal(0))
		Expect(p.run("replay", "session.jsonl", "--agent", "reference", "--against", "golden").code).To(Equal(0))
		Expect(p.run("replay", "session.jsonl", "--agent", "reference", "--against", "nothing").code).To(Equal(0))
		Expect(p.results().Results[0].Golden.State).To(Equal("off"))
	})

	It("becomes a scenario with a golden, which passes with the same agent and no other", func() {
		got := p.run("convert", "session.jsonl", "--to", "scenario", "--agent", "reference", "--out", "again.txtar")
		Expect(got).To(Equal(ended{}))
		Expect(p.read("again.txtar")).To(ContainSubstring(`prompt main 'Rename foo'$NL'to bar in main.go.'`))
		Expect(p.read("golden/reference/again.golden")).
			To(ContainSubstring("\n<-- agent_message msg#1 \"I'll rename it, for $5.\"\n"))
		Expect(p.run("lint", "again.txtar").code).To(Equal(0))
		got = p.run("run", "again.txtar", "--golden-required")
		Expect(got.code).To(Equal(0), got.out)
		Expect(p.results().Results[0].Golden.State).To(Equal("match"))
		got = p.run("run", "again.txtar", "--fault", "tool-status-back")
		Expect(got.code).To(Equal(1))
		Expect(p.results().Results[0].Golden.State).To(Equal("differs"))
	})

	It("plays the agent, also to an editor that goes another way", func() {
		got := p.with(hello, "serve", "session.jsonl")
		Expect(got.code).To(Equal(0), got.err)
		Expect(got.out).To(HavePrefix(`{"jsonrpc":"2.0","id":0,"result":{`))
		got = p.run("prompt", "Anything.", "--", "acp-test", "serve", "session.jsonl")
		Expect(got.code).To(Equal(0), got.err)
		Expect(got.out).To(ContainSubstring("I'll rename it, for $5."))
	})

	It("differs from another one by a few lines, and from itself by none", func() {
		text := p.read("session.jsonl")
		p.write("other.jsonl", strings.Replace(text, `"stopReason":"cancelled"`, `"stopReason":"refusal"`, 1))
		Expect(p.run("diff", "session.jsonl", "session.jsonl")).To(Equal(ended{}))
		got := p.run("diff", "session.jsonl", "other.jsonl")
		Expect(got.code).To(Equal(1))
		Expect(got.out).To(ContainSubstring("-<-- cancelled\n+<-- refusal\n"))
		Expect(strings.Count(got.out, "\n")).To(BeNumerically("<", 15))
	})

	It("has what the model said when a crash cut its answer off", func() {
		var kept []string
		for line := range strings.Lines(p.read("session.jsonl")) {
			if strings.Contains(line, `"kind":"model-answer","msg":{"n":3,`) ||
				strings.Contains(line, `"kind":"model-aborted"`) {
				continue
			}
			if strings.Contains(line, `"method":"session/load"`) {
				break
			}
			kept = append(kept, line)
		}
		p.write("crashed.jsonl", strings.Join(kept, ""))
		Expect(p.read("crashed.jsonl")).NotTo(ContainSubstring("hang: true"))
		got := p.run("replay", "crashed.jsonl", "--agent", "reference")
		Expect(got.code).To(Equal(0), got.out)
	})

	It("is replayed up to wherever a crash cut it off, and blames an agent for what it does before that", func() {
		lines := strings.SplitAfter(p.read("session.jsonl"), "\n")
		for cut := 5; cut < len(lines)-1; cut += 12 {
			p.write("short.jsonl", strings.Join(lines[:cut], "")+lines[cut][:len(lines[cut])/2])
			got := p.run("replay", "short.jsonl", "--agent", "reference")
			Expect(got.code).To(Equal(0), "cut in line %d: %s", cut+1, got.out)
		}
		p.write("none.jsonl", strings.Join(lines[:3], ""))
		none := p.run("replay", "none.jsonl", "--agent", "reference")
		Expect([]any{none.code, none.err}).To(Equal([]any{2,
			"acp-test: none.jsonl: the recording has no action of an editor, so there is nothing to replay\n"}))
		got := p.run("replay", "short.jsonl", "--agent", "reference", "--fault", "cancel-end-turn-settled")
		Expect(got.code).To(Equal(1))
		Expect(got.out).To(MatchRegexp(`(?m)^ +-<-- cancelled\n +\+<-- end_turn$`))
	})

	It("is good up to where a crash cut it off", func() {
		text := p.read("session.jsonl")
		cut := strings.Index(text, `"method":"session/load"`)
		p.write("torn.jsonl", text[:cut])
		warning := "acp-test: torn.jsonl ends in the middle of a line, as after a crash; earlier lines are read\n"
		p.write("torn.llm.yaml", p.read("session.llm.yaml"))
		got := p.run("replay", "torn.jsonl", "--agent", "reference")
		Expect(got.err).To(HavePrefix(warning))
		Expect(got.code).To(Equal(0), got.out)
		got = p.run("convert", "torn.jsonl")
		Expect([]any{got.code, got.err}).To(Equal([]any{0, warning}))
		Expect(got.out).NotTo(ContainSubstring("session load"))
		Expect(p.with(hello, "serve", "torn.jsonl").err).To(HavePrefix(warning))
		Expect(p.run("diff", "torn.jsonl", "torn.jsonl").err).To(Equal(warning + warning))
		got = p.run("show", "torn.jsonl")
		Expect(got.err).To(BeEmpty())
		Expect(got.out).To(HaveSuffix("# the file ends in the middle of a line\n"))
	})
})

var _ = Describe("convert", func() {
	It("takes a run in which the agent was started twice", func() {
		p := newPlace()
		p.write("twice.txtar", `# Loaded by a second process.
needs agent:loadSession
further off 'the model has no more to say'
check twice
prompt 'Remember the number seven.'
await turn end_turn
restart
session load main
prompt 'Which number was it?'
await turn end_turn
-- llm.yaml --
turns:
  - - - text: Seven, noted.
  - - - text: It was seven.
`)
		Expect(p.run("run", "twice.txtar").code).To(Equal(0))
		p.write("model.yaml", p.read("twice.txtar")[strings.Index(p.read("twice.txtar"), "turns:"):])
		got := p.run("convert", "acp-test-out/twice", "--llm", "model.yaml", "--out", "again.txtar")
		Expect(got).To(Equal(ended{}))
		Expect(p.read("again.txtar")).To(ContainSubstring("await turn end_turn\nrestart\nsession load main\n"))
		got = p.run("run", "again.txtar", "--golden-required")
		Expect(got.code).To(Equal(0), got.out)
	})

	It("cancels at an entry", func() {
		p := newPlace()
		p.write("story.txtar", `# A story.
further off 'the model has no more to say'
check told
prompt 'Tell a story.'
await turn end_turn
-- llm.yaml --
replies:
  - - text: It rained all night.
`)
		Expect(p.run("run", "story.txtar").code).To(Equal(0))
		said := regexp.MustCompile(`(?m)^#(\d+) .* agent_message_chunk`).
			FindStringSubmatch(p.run("show", "acp-test-out/story").out)
		Expect(said).To(HaveLen(2))
		Expect(p.run("convert", "acp-test-out/story", "--cancel-at", "1000").err).
			To(ContainSubstring("the recording has no entry #1000: its last one is #"))
		Expect(p.run("convert", "acp-test-out/story", "--cancel-at", "1").err).
			To(ContainSubstring("no turn is open at #1"))

		Expect(p.run("convert", "acp-test-out/story", "--cancel-at", said[1], "--out", "cancel.txtar").code).
			To(Equal(0))
		Expect(p.read("cancel.txtar")).To(ContainSubstring("check CANCEL-001\ncancel main\nawait turn cancelled\n"))
		Expect(p.run("run", "cancel.txtar").code).To(Equal(0))
		Expect(p.run("run", "cancel.txtar", "--fault", "cancel-end-turn").code).To(Equal(1))
	})

	It("says that a golden needs a profile", func() {
		p := newPlace()
		Expect(p.with(hello, "record", "--out", "r.jsonl", "--", "acp-test", "refagent").code).To(Equal(0))
		got := p.run("convert", "r.jsonl", "--out", "r.txtar")
		Expect(got).To(Equal(ended{0, "",
			"acp-test: r.txtar gets no golden: no profile fits the recorded agent; name one with --agent\n"}))
		Expect(p.run("convert", "r.jsonl").out).To(Equal("# Recorded: r.\n\ncheck recorded\ninitialize\n"))
	})
})

var _ = Describe("record", func() {
	It("replaces no recording, and dates those in a folder", func() {
		p := newPlace()
		var told ended
		for range 2 {
			told = p.with(hello, "record", "--out", "r.jsonl", "--", "acp-test", "refagent")
			Expect(told.out).To(HavePrefix(`{"jsonrpc":"2.0","id":0,"result":`))
			Expect(p.with(hello, "record", "--out", "many/", "--", "acp-test", "refagent").err).To(BeEmpty())
		}
		Expect(told.err).To(Equal("acp-test: r.jsonl exists already, so this session is recorded in r-2.jsonl\n"))
		Expect(p.read("r-2.jsonl")).To(ContainSubstring(`"method":"initialize"`))
		files, err := filepath.Glob(filepath.Join(p.dir, "many", "2*-acp-test*.jsonl"))
		Expect(err).NotTo(HaveOccurred())
		Expect(files).To(HaveLen(2))
	})

	It("ends as the agent does, with its stderr", func() {
		p := newPlace()
		p.write("agent", "#!/bin/sh\necho going >&2\nexit 7\n")
		Expect(p.run("record", "--out", "r.jsonl", "--", "./agent")).To(Equal(ended{7, "", "going\n"}))
		Expect(p.read("r.jsonl")).To(ContainSubstring(`"text":"going\n"`))
		p.write("agent", "#!/bin/sh\nkill -TERM $$\n")
		err := p.command("record", "--out", "s.jsonl", "--", "./agent").Run()
		Expect(err).To(MatchError("signal: terminated"))
	})

	It("prints what is wrong while it goes on, to stderr or a socket", func() {
		p := newPlace()
		wrong := hello + `{"jsonrpc":"2.0","id":1,"method":"session/prompt","params":{}}` + "\n"
		Expect(p.with(wrong, "record", "--live", "--out", "r.jsonl", "--", "acp-test", "refagent").err).
			To(ContainSubstring("acp-test: fail of the client: "))
		l, err := net.Listen("unix", filepath.Join(p.dir, "sock"))
		Expect(err).NotTo(HaveOccurred())
		defer l.Close()
		heard := make(chan string, 1)
		go func() {
			c, err := l.Accept()
			if err != nil {
				return
			}
			defer c.Close()
			var b bytes.Buffer
			_, _ = b.ReadFrom(c)
			heard <- b.String()
		}()
		Expect(p.with(wrong, "record", "--live="+filepath.Join(p.dir, "sock"), "--out", "s.jsonl", "--", "acp-test",
			"refagent").err).NotTo(ContainSubstring("acp-test: "))
		Eventually(heard).Should(Receive(ContainSubstring("acp-test: fail of the client: ")))
	})

	It("takes out what is secret", func() {
		p := newPlace()
		p.env = append(p.env, "MY_API_KEY=very-secret-value")
		in := hello + `{"jsonrpc":"2.0","method":"_x","params":{"a":"very-secret-value","b":"ticket-4711",` +
			`"c":"plain"}}` + "\n"
		Expect(p.with(in, "record", "--redact", `ticket-\d+`, "--out", "r.jsonl", "--", "acp-test", "refagent").code).
			To(Equal(0))
		Expect(p.read("r.jsonl")).To(And(Not(ContainSubstring("very-secret-value")), Not(ContainSubstring("4711")),
			ContainSubstring(`"c":"plain"`)))
	})

	It("leaves no empty file of an agent that is not there", func() {
		p := newPlace()
		got := p.run("record", "--out", "r.jsonl", "--", "no-such-agent")
		Expect(got).To(Equal(ended{2, "",
			`acp-test: starting agent "no-such-agent": exec: "no-such-agent": executable file not found in $PATH` +
				"\n"}))
		Expect(filepath.Join(p.dir, "r.jsonl")).NotTo(BeAnExistingFile())
	})
})

// forms are one session as four other programs write it down.
func forms() map[string]string {
	frames := []struct{ dir, raw string }{
		{"c2a", `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}`},
		{"a2c", `{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1}}`},
		{"c2a", `{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/w","mcpServers":[]}}`},
		{"a2c", `{"jsonrpc":"2.0","id":1,"result":{"sessionId":"s"}}`},
	}
	var lines, flow strings.Builder
	var messages []any
	for i, f := range frames {
		lines.WriteString(f.raw + "\n")
		long, short := "editor-to-agent", "outbound"
		if f.dir == "a2c" {
			long, short = "agent-to-editor", "inbound"
		}
		fmt.Fprintf(&flow, `{"seq":%d,"at":"2026-01-02T03:04:05.%03dZ","direction":%q,"message":%s}`+"\n", i, i, short,
			f.raw)
		messages = append(messages, map[string]any{"timestamp": 1000 + i, "direction": long, "raw": f.raw})
	}
	export, err := json.Marshal(map[string]any{"version": 1,
		"tool": map[string]any{"name": "acp-devtools", "version": "1"}, "session": map[string]any{"agentCommand": "x"},
		"messages": messages})
	Expect(err).NotTo(HaveOccurred())
	zed := `[
  {"_direction": "outgoing", "_type": "request", "id": 0, "method": "initialize", "params": {"protocolVersion": 1}},
  {"_direction": "incoming", "_type": "response", "id": 0, "method": "initialize", "params": {"protocolVersion": 1}},
  {"_direction": "outgoing", "_type": "request", "id": 1, "method": "session/new", "params": {
    "cwd": "/w", "mcpServers": []
  }},
  {"_direction": "incoming", "_type": "response", "id": 1, "method": "session/new", "params": {"sessionId": "s"}}
]`
	return map[string]string{"lines.jsonl": lines.String(), "flow.jsonl": flow.String(), "export.json": string(export),
		"zed.json": zed}
}

var _ = Describe("a load that is refused while a turn goes on", func() {
	It("is replayed, on whichever side of it the turn's text comes", func() {
		p := newPlace()
		p.write("agent.txtar", "# It refuses to load what runs.\nrole agent\ncapabilities loadSession=true\n"+
			"on prompt {\n"+
			"  text 'Begun.'\n  update '{\"sessionUpdate\":\"tool_call\",\"toolCallId\":\"c\",\"title\":\"Look.\","+
			"\"status\":\"completed\"}'\n  await cancel\n  end cancelled\n}\n"+
			"on load {\n  error -32600 'It is at work.'\n}\n")
		update := func(u string) string {
			return `{"dir":"a2c","frame":{"jsonrpc":"2.0","method":"session/update",` +
				`"params":{"sessionId":"s","update":` + u + `}}}` + "\n"
		}
		p.write("r.jsonl", `{"dir":"c2a","frame":{"jsonrpc":"2.0","id":0,"method":"initialize",`+
			`"params":{"protocolVersion":1,"clientCapabilities":{}}}}
{"dir":"a2c","frame":{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1,"agentCapabilities":{"loadSession":true}}}}
{"dir":"c2a","frame":{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/w","mcpServers":[]}}}
{"dir":"a2c","frame":{"jsonrpc":"2.0","id":1,"result":{"sessionId":"s"}}}
{"dir":"c2a","frame":{"jsonrpc":"2.0","id":2,"method":"session/prompt","params":{"sessionId":"s",`+
			`"prompt":[{"type":"text","text":"hi"}]}}}
`+update(`{"sessionUpdate":"tool_call","toolCallId":"c","title":"Look.","status":"completed"}`)+
			`{"dir":"c2a","frame":{"jsonrpc":"2.0","id":3,"method":"session/load","params":{"sessionId":"s",`+
			`"cwd":"/w","mcpServers":[]}}}
`+update(`{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"Begun."}}`)+
			`{"dir":"a2c","frame":{"jsonrpc":"2.0","id":3,"error":{"code":-32600,"message":"It is at work."}}}
{"dir":"c2a","frame":{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"s"}}}
{"dir":"a2c","frame":{"jsonrpc":"2.0","id":2,"result":{"stopReason":"cancelled"}}}
`)
		got := p.run("replay", "r.jsonl", "--against", "nothing", "-v", "--patience", "5s", "--", "acp-test", "serve",
			filepath.Join(p.dir, "agent.txtar"))
		Expect(got.code).To(Equal(0), got.out+got.err)
		Expect(p.results().Results[0].Notes).NotTo(ContainElement(ContainSubstring("the replay sent the editor's #")))
	})
})

var _ = Describe("a recorded session of version 2", func() {
	It("is judged, shown, played and converted as one of version 2, whatever recorded it", func() {
		p := newPlace()
		p.write("s.txtar", "protocol acp-v2\n# Two prompts, the first one held.\nprompt 'Begin.'\nawait gate held\n"+
			"release held\nawait turn\nprompt 'Go on.'\nawait turn\n-- llm.yaml --\n"+
			"turns:\n  - - - text: Begun.\n      - gate: held\n      - text: \" Ended.\"\n  - - - text: Gone on.\n")
		got := p.run("run", "s.txtar", "--agent", "reference-acp-v2", "--", "acp-test", "record", "--out",
			filepath.Join(p.dir, "r.jsonl"), "--llm", "--", "acp-test", "refagent")
		Expect(got.code).To(Equal(0), got.out+got.err)
		Expect(p.run("check", "r.jsonl", "--report", "json=check.json").code).To(Equal(0))
		Expect(p.read("check.json")).To(ContainSubstring(`"protocol": "2"`))
		Expect(p.run("convert", "r.jsonl").out).
			To(And(HavePrefix("protocol acp-v2\n"), ContainSubstring("await turn end_turn\n"),
				ContainSubstring("prompt main 'Go on.'\n")))
		got = p.run("replay", "r.jsonl", "acp-test-out/s", "--out", "again")
		Expect(got.code).To(Equal(0), got.out)
		Expect(got.out).To(ContainSubstring("2 scenarios: 2 pass"))
		got = p.run("replay", "r.jsonl", "--fault", "no-stop-reason")
		Expect(got.code).To(Equal(1), got.out)
		Expect(got.out).To(ContainSubstring("V2-STATES"))
		p.write("first.jsonl", forms()["lines.jsonl"])
		Expect(p.run("replay", "r.jsonl", "first.jsonl").err).
			To(Equal("acp-test: r.jsonl is a recording of acp-v2, first.jsonl of acp-v1: replay them separately\n"))
	})
})

var _ = Describe("a run in version 1", func() {
	const line = "the agent answers acp-v2 too, as initialize/version-unknown shows; judge it there with " +
		"--protocol acp-v2\n"
	It("says that the agent speaks version 2 too, where it showed it", func() {
		p := newPlace()
		Expect(p.run("run", "--suite", "initialize", "-q").out).To(ContainSubstring(line))
		Expect(p.run("run", "--run", "^initialize/basic$", "-q").out).NotTo(ContainSubstring("acp-v2"))
		Expect(p.run("run", "--suite", "initialize", "-q", "--", "acp-test", "refagent", "--second", "--liberty",
			"first-only").
			out).NotTo(ContainSubstring("acp-v2"))
		Expect(p.run("run", "--protocol", "acp-v2", "--suite", "negotiation", "-q").out).
			NotTo(ContainSubstring("too, as"))
	})
})

var _ = Describe("an agent in two versions", func() {
	both := []string{"run", "s.txtar", "--agent", "my.yaml"}
	const asBoth = "# A greeting in both.\nprotocol acp-v1 acp-v2\n"
	second := append(slices.Clone(both), "--protocol", "acp-v2")
	var p *place
	BeforeEach(func() {
		p = newPlace()
		p.write("my.yaml", "name: my\ncommand: [$SELF, refagent, --protocol, acp-v2]\n"+
			"env: {OPENAI_BASE_URL: $LLM/v1}\nmodel: {wire: openai-chat}\n")
	})

	It("has goldens of each", func() {
		p.write("s.txtar", asBoth+good)
		for _, args := range [][]string{both, second} {
			Expect(p.run(append(args, "--update")...).code).To(Equal(0))
		}
		Expect(p.read("golden/my/s.golden")).To(ContainSubstring("protocolVersion=1 "))
		Expect(p.read("golden/my-acp-v2/s.golden")).To(ContainSubstring("protocolVersion=2 "))
		for _, args := range [][]string{both, second} {
			Expect(p.run(append(args, "--golden-required")...).code).To(Equal(0))
		}
		p.write("golden/my-acp-v2/s.golden", "else\n")
		Expect(p.run(both...).code).To(Equal(0))
		Expect(p.run(second...).code).To(Equal(1))
		Expect(p.run("review", "--accept", "s").out).
			To(ContainSubstring("accepted 1, rejected 0, left 0; goldens are in golden/my-acp-v2\n"))
		Expect(p.run(second...).code).To(Equal(0))
	})

	It("has known failures of each", func() {
		p.write("s.txtar", asBoth+scenario("check refuses", "prompt 'Say hello.'", "await turn refusal"))
		Expect(p.run(append(second, "--baseline-write", "known.yaml")...).code).To(Equal(0))
		Expect(p.read("known.yaml")).To(ContainSubstring("protocols: [acp-v2]"))
		known := []string{"--baseline", "known.yaml"}
		Expect(p.run(append(second, known...)...).code).To(Equal(0))
		Expect(p.run(append(both, known...)...).code).To(Equal(1))
		Expect(p.run(append(both, append(known, "--baseline-write", "known.yaml")...)...).code).To(Equal(0))
		for _, args := range [][]string{both, second} {
			Expect(p.run(append(args, known...)...).code).To(Equal(0))
		}
		p.write("s.txtar", asBoth+scenario("check refuses", "prompt 'Say hello.'", "await turn end_turn"))
		Expect(p.run(append(second, known...)...).out).
			To(MatchRegexp("(?m)^stale: known failure refuses of s no longer fails"))
		p.write("known.yaml", "- {scenario: s, check: refuses, reason: r, protocols: [acp-v3]}\n")
		Expect(p.run(append(both, known...)...).err).
			To(HavePrefix(`acp-test: known.yaml:1: protocols: there is no protocol "acp-v3"`))
	})
})

var _ = Describe("upgrade", func() {
	const some = "^(tool-calls/read|turns/two)$"
	It("finds nothing missing and nothing different in an agent that is right in both versions", func() {
		p := newPlace()
		got := p.run("upgrade", "--run", some, "--out", "up")
		Expect(got).To(Equal(ended{out: `# ACP version 2: acp-test-refagent 1.0.0

The agent speaks version 2 and meets each of its requirements that were tested.

## What differs between the versions

Nothing: in both versions each scenario had the same conversation, effects and stop reasons.
`}))
	})

	It("says what is missing by requirement, and what differs", func() {
		oneOf(7)
		p := newPlace()
		got := p.run("upgrade", "--run", some, "--to", "up.md", "--", "acp-test", "refagent", "--protocol", "acp-v2",
			"--fault", "no-echo")
		Expect(got.code).To(Equal(1), got.out+got.err)
		Expect(p.read("up.md")).To(And(ContainSubstring("It breaks 1 of its requirements."),
			ContainSubstring("\n- [ ] **V2-PRM-002** "),
			MatchRegexp("\\n  - V2-ECHO: .*never showed the prompt as message")))
	})

	It("says of an agent of version 1 which of its habits break", func() {
		oneOf(5)
		p := newPlace()
		got := p.run("upgrade", "--run", some, "--", "acp-test", "refagent", "--second", "--liberty", "first-only")
		Expect(got.code).To(Equal(1), got.out+got.err)
		Expect(got.out).To(And(ContainSubstring("The agent does not speak version 2."),
			MatchRegexp("- \\[ \\] \\*\\*V2-RPC-004\\*\\* reads and writes files through the editor \\(\\d+ times, "+
				"first in `tool-calls/read` #\\d+\\)"),
			ContainSubstring("**V2-UPD-002** begins tool calls with tool_call "),
			ContainSubstring("**V2-PRM-001** answers a prompt at the end")))
		Expect(got.out).NotTo(ContainSubstring("terminals of the editor"))
		got = p.run("upgrade", "--run", some, "--", "acp-test", "no-such-command")
		Expect(got.code).To(Equal(2), got.out+got.err)
		Expect(got.err).To(ContainSubstring("no scenario judged the agent in either version: "))
	})
})

var _ = Describe("recordings of other programs", func() {
	for _, name := range []string{"lines.jsonl", "flow.jsonl", "export.json", "zed.json"} {
		It("are shown, compared, converted and judged: "+name, func() {
			p := newPlace()
			for file, text := range forms() {
				p.write(file, text)
			}
			Expect(p.run("show", "-f", name)).To(Equal(p.run("show", "-f", "lines.jsonl")))
			Expect(p.run("show", name).out).To(MatchRegexp(`(?m)^#4 .* <-- session/new ok s$`))
			Expect(p.run("diff", name, "lines.jsonl")).To(Equal(ended{}))
			Expect(p.run("convert", name).out).To(ContainSubstring("session new main\n"))
			Expect(p.run("check", name).code).To(Equal(0))
		})
	}
})

var _ = Describe("check", func() {
	DescribeTable("names what people reported, in the logs that they have", func(log string, code int, named string) {
		p := newPlace()
		p.write("log.jsonl", log)
		got := p.run("check", "-v", "log.jsonl")
		Expect(got.code).To(Equal(code), got.out+got.err)
		Expect(got.out).To(ContainSubstring(named))
	},
		Entry("cyzus/suzent#111", `{"t":0,"dir":"c2a","frame":{"jsonrpc":"2.0","id":1,"method":"session/new",`+
			`"params":{"cwd":"/shop","mcpServers":[]}}}
{"t":100,"dir":"a2c","frame":{"jsonrpc":"2.0","id":1,"error":{"code":-32002,"message":"initialize must be `+
			`called first"}}}
`, 1, "FAIL  C-INIT-FIRST  The editor: The client sent session/new as its first request, not initialize, and the "+
			"agent refused it"),
		Entry("microsoft/agent-framework#4194",
			`{"threadId":"t","runId":"r","messages":[{"id":"u","role":"user","content":"Buy `+
				`milk."}],"tools":[],"context":[],"state":{},"forwardedProps":{}}
{"type":"RUN_STARTED","threadId":"t","runId":"r"}
{"type":"TOOL_CALL_START","toolCallId":"c","toolCallName":"add","parentMessageId":"m"}
{"type":"TOOL_CALL_ARGS","toolCallId":"c","delta":"{\"a\":1}"}
{"type":"TOOL_CALL_END","toolCallId":"c"}
{"type":"MESSAGES_SNAPSHOT","messages":[{"id":"u","role":"user","content":"Buy `+
				`milk."},{"id":"m","role":"assistant","toolCalls":[{"id":"c","type":"function",`+
				`"function":{"name":"add","arguments":"{\"a\":1}{\"a\":1}"}}]}]}
{"type":"RUN_FINISHED","threadId":"t","runId":"r"}
`, 0, `warn  MESSAGES  The snapshot has the arguments "{\"a\":1}{\"a\":1}" of tool call "c", but the stream had `+
				`"{\"a\":1}".`),
	)

	It("fails a session in which something could not be judged only if it is told to be strict", func() {
		p := newPlace()
		p.write("crossed.jsonl", `{"t":1,"dir":"c2a","frame":{"jsonrpc":"2.0","id":0,"method":"initialize",`+
			`"params":{"protocolVersion":1,"clientCapabilities":{}}}}
{"t":2,"dir":"a2c","frame":{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1,"agentCapabilities":{}}}}
{"t":3,"dir":"c2a","frame":{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/w","mcpServers":[]}}}
{"t":4,"dir":"a2c","frame":{"jsonrpc":"2.0","id":1,"result":{"sessionId":"s"}}}
{"t":5,"dir":"c2a","frame":{"jsonrpc":"2.0","id":2,"method":"session/prompt","params":{"sessionId":"s",`+
			`"prompt":[{"type":"text","text":"hi"}]}}}
{"t":6,"dir":"a2c","frame":{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s",`+
			`"update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"Hello."}}}}}
{"t":7,"dir":"c2a","frame":{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"s"}}}
{"t":8,"dir":"a2c","frame":{"jsonrpc":"2.0","id":2,"result":{"stopReason":"end_turn"}}}
`)
		got := p.run("check", "crossed.jsonl")
		Expect(got.out).To(ContainSubstring("INCONCLUSIVE"))
		Expect(got.code).To(Equal(0))
		Expect(p.run("check", "--strict", "crossed.jsonl").code).To(Equal(1))
	})
})

var _ = Describe("show --html", func() {
	It("is the page of a report, in a file or on stdout", func() {
		p := newPlace()
		p.write("r.jsonl", forms()["lines.jsonl"])
		Expect(p.run("show", "r.jsonl", "--html", "r.html")).To(Equal(ended{}))
		page := p.read("r.html")
		Expect(page).To(And(HavePrefix("<!doctype html>"), ContainSubstring(`<script type="text/plain" id="t0">`),
			ContainSubstring(`"id":"r.jsonl"`)))
		Expect(unpack(page)).To(And(ContainSubstring(`session/new ok`), ContainSubstring(`cwd=\"$WORK\"`)))
		Expect(p.run("show", "--html", "-", "r.jsonl").out).To(HavePrefix("<!doctype html>"))
		left, err := os.ReadDir(filepath.Join(p.dir, ".tmp"))
		Expect(err).NotTo(HaveOccurred())
		Expect(left).To(BeEmpty())
	})
})

var _ = Describe("editors", func() {
	It("starts a client with our agent, and judges it", func() {
		p := newPlace()
		got := p.run("editors", "--run", "m02", "--", "acp-test", "prompt", "Say hello.", "--", "{agent}")
		Expect(got.code).To(Equal(0), got.out+got.err)
		Expect(p.results().Results).NotTo(BeEmpty())
		recordings, err := filepath.Glob(filepath.Join(p.dir, "acp-test-out/editors/m02-*/agent/*.jsonl"))
		Expect(err).NotTo(HaveOccurred())
		Expect(recordings).NotTo(BeEmpty())
		for _, file := range recordings {
			text, err := os.ReadFile(file)
			Expect(err).NotTo(HaveOccurred())
			Expect(string(text)).To(MatchRegexp(`"kind":"places","msg":\{"work":".*"listed":true`))
		}
		p.write("agents/greets.txtar",
			"# It greets.\nrole agent\non prompt {\n  text 'Hello.'\n  end end_turn\n}\n"+
				"check PROMPT-001 prompted-twice\nsent session/prompt count=2\n")
		got = p.run("editors", "agents", "--", "sh", "-c", `eval exec acp-test prompt hi -- "$ACP_TEST_AGENT"`)
		Expect(got.code).To(Equal(1), got.out+got.err)
		Expect(got.out).To(ContainSubstring("prompted-twice"))
	})

	It("shows each result when it is there, in the given number at once", func() {
		p := newPlace()
		p.write("client", "#!/bin/sh\ntouch "+p.dir+"/$$.begun\n"+
			"until [ $(ls "+p.dir+" | grep -c begun) -ge 2 ]; do sleep 0.01; done\nexec acp-test prompt hi -- \"$@\"\n")
		got := p.run("editors", "-j", "2", "--run", "m0[23]", "--", p.dir+"/client", "{agent}")
		Expect(got.err).NotTo(ContainSubstring("still running"))
		results := p.results()
		Expect(results.Results).To(HaveLen(2))
		Expect(results.Results[0].ID < results.Results[1].ID).To(BeTrue(), "in the order of the list")
		Expect(got.out).NotTo(ContainSubstring("still running"), "one waits for the other")
		Expect(p.run("editors", "-j", "0", "--", "true", "{agent}").err).
			To(Equal("acp-test: -j 0: at least 1 scenario must run at a time\n"))
	})

	It("lists of the folder of an editor only so much, and says what it leaves out", func() {
		p := newPlace()
		for i := range 600 {
			p.write(fmt.Sprintf("project/%03d.txt", i), strings.Repeat("word ", 2000))
		}
		got := p.with(fmt.Sprintf(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1,`+
			`"clientCapabilities":{}}}
{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":%q,"mcpServers":[]}}
`, filepath.ToSlash(filepath.Join(p.dir, "project"))), "serve", "m07")
		Expect(got.err).To(ContainSubstring("1 scenario"))
		files, err := filepath.Glob(filepath.Join(p.dir, "acp-test-out/*.jsonl"))
		Expect(err).NotTo(HaveOccurred())
		Expect(files).To(HaveLen(1))
		text, err := os.ReadFile(files[0])
		Expect(err).NotTo(HaveOccurred())
		Expect(len(text)).To(BeNumerically("<", 512<<10))
		Expect(string(text)).To(And(ContainSubstring("together the files have more than 262144 bytes"),
			ContainSubstring("there are more than 500 files"), ContainSubstring(`"path":"000.txt","text":"word `)))
	})

	It("lists what there is", func() {
		got := newPlace().run("editors", "--list")
		Expect(got.code).To(Equal(0))
		Expect(strings.Count(got.out, "\n")).To(BeNumerically(">=", 20))
		Expect(got.out).To(MatchRegexp(`(?m)^editors/m07-`))
	})

	It("says that the client never started the agent", func() {
		got := newPlace().run("editors", "--run", "m02", "--", "true")
		Expect(got.code).To(Equal(2))
		Expect(got.out).To(ContainSubstring("the editor never started the agent: is {agent} or ACP_TEST_AGENT in its " +
			"command line?"))
		got = newPlace().run("editors", "--run", "m02", "--", "sh", "-c", "echo no client.js >&2; exit 3")
		Expect(got.out).To(ContainSubstring("the client ended with status 3 before it started the agent: no " +
			"client.js (it runs in a folder of its own: its files need absolute paths)"))
	})
})

var _ = Describe("a recording that was cut off", func() {
	It("is shown and checked as far as it goes, and what is left out is named", func() {
		p := newPlace()
		p.write("torn.jsonl", `{"jsonrpc":"2.0","method":"x"}`+"\n"+`{"jsonrpc":"2.0","me`)
		for command, code := range map[string]int{"show": 0, "check": 1} {
			got := p.run(command, "torn.jsonl")
			Expect(got.err).To(Equal("acp-test: torn.jsonl: read as lines with 1 message, 1 other line; 1 line "+
				"cannot be read, "+
				"so nothing is concluded from what is missing\n"+
				"acp-test: torn.jsonl: line 2 is left out: it seems to hold a message, but the message is cut off "+
				"or not JSON\n"), command)
			Expect(got.out).NotTo(BeEmpty(), command)
			Expect(got.code).To(Equal(code), command)
		}
	})
})

// unpack is what a page has of its first transcript.
func unpack(page string) string {
	GinkgoHelper()
	_, rest, _ := strings.Cut(page, `id="t0">`)
	packed, _, _ := strings.Cut(rest, "<")
	z, err := gzip.NewReader(base64.NewDecoder(base64.StdEncoding, strings.NewReader(packed)))
	Expect(err).NotTo(HaveOccurred())
	text, err := io.ReadAll(z)
	Expect(err).NotTo(HaveOccurred())
	return string(text)
}
