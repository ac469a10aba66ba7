package main_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/acp-test/acp-test/scenarios/results"
	"github.com/acp-test/acp-test/serve/obedient"
)

var _ = Describe("serve without a file", func() {
	It("does what the prompt says, and judges the editor", func() {
		p := newPlace()
		got := p.run("prompt", "--yolo", strings.Join([]string{"/say Hello $HOME.", "/think Deeply.",
			"/stream one two", "/edit a.txt some words", "/read a.txt", "/run echo from-the-shell", "", "/nothing",
			"Words."}, "\n"),
			"--", "acp-test", "serve")
		Expect(got.code).To(Equal(0), got.out+got.err)
		Expect(got.out).To(And(ContainSubstring("Hello $HOME.\none two\n"),
			ContainSubstring("There is no command /nothing."),
			ContainSubstring("/edit PATH TEXT"), ContainSubstring("You said: Words.")))
		Expect(got.err).To(And(ContainSubstring("Deeply."), ContainSubstring("[tool] Read a.txt (read, completed)"),
			ContainSubstring("from-the-shell")))
		Expect(p.read("a.txt")).To(Equal("some words"))
		verdicts, err := filepath.Glob(filepath.Join(p.dir, "acp-test-out", "*-obedient.results.json"))
		Expect(err).NotTo(HaveOccurred())
		Expect(verdicts).To(HaveLen(1))
	})

	DescribeTable("ends a turn in each way", func(prompt, says string, code int) {
		p := newPlace()
		got := p.run("prompt", prompt, "--timeout", "20s", "--exit-codes", "acp", "--", "acp-test", "serve", "-q")
		Expect(got.code).To(Equal(code), got.err)
		Expect(got.out + got.err).To(ContainSubstring(says))
	},
		Entry("a refusal", "/refuse", `ended with "refusal"`, 5),
		Entry("no tokens left", "/say a\n/cut", `ended with "max_tokens"`, 3),
		Entry("an error of the model", "/fail 401", "status 401", 1),
		Entry("a pause", "/slow 10ms\n/say later", "later", 0),
		Entry("what is no time", "/slow down", `/slow takes a time, such as 2s, not "down".`, 0),
		Entry("a tool that fails", "/read none.txt", "Read none.txt (read, failed): Resource not found: ", 7),
		Entry("the end of the process", "/die", "the agent was ended by SIGKILL", 1),
	)

	It("has the exit status 1 for an editor that breaks a rule", func() {
		p := newPlace()
		got := p.with(`{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/","mcpServers":[]}}`+"\n",
			"serve")
		Expect(got.code).To(Equal(1), got.err)
		Expect(got.err).To(ContainSubstring("C-INIT-FIRST"))
	})

	It("holds a turn until it is cancelled", func() {
		got := newPlace().run("prompt", "/hold", "--timeout", "1s", "--", "acp-test", "serve", "-q")
		Expect(got.err).To(ContainSubstring(`it ended with "cancelled"`))
	})

	It("speaks version 2", func() {
		p := newPlace()
		got := p.run("prompt", "/say Hello.", "--protocol", "acp-v2", "--", "acp-test", "serve", "--protocol", "acp-v2")
		Expect(got.code).To(Equal(0), got.err)
		Expect(got.out).To(ContainSubstring("Hello."))
	})

	It("judges nothing where an editor sends nothing", func() {
		p := newPlace()
		for _, args := range [][]string{{"serve"}, {"serve", "m01"}} {
			got := p.with("", args...)
			Expect(got.code).To(Equal(2), got.err)
			Expect(got.err).To(HavePrefix("\nthe editor sent nothing, so nothing was judged\n" +
				"SKIP  editor without a name\n"))
		}
	})

	It("names the editor, and writes the reports that are asked for", func() {
		p := newPlace()
		got := p.with(greeting, "serve", "--report", "junit", "--report", "json=verdicts/one.json")
		Expect(got.code).To(Equal(0), got.err)
		Expect(got.err).To(HavePrefix("\nPASS  my-editor 3\n"))
		var run results.Run
		Expect(json.Unmarshal([]byte(p.read("verdicts/one.json")), &run)).To(Succeed())
		Expect(run.Verdict).To(Equal(results.Pass))
		junit, err := filepath.Glob(filepath.Join(p.dir, "acp-test-out", "*-obedient.junit.xml"))
		Expect(err).NotTo(HaveOccurred())
		Expect(junit).To(HaveLen(1))
	})

	It("does not pass an editor that leaves in its own turn without a cancel", func() {
		p := newPlace()
		left := func(last string) ended {
			c := p.command("serve")
			in, err := c.StdinPipe()
			Expect(err).NotTo(HaveOccurred())
			out, err := c.StdoutPipe()
			Expect(err).NotTo(HaveOccurred())
			var said bytes.Buffer
			c.Stderr = &said
			Expect(c.Start()).To(Succeed())
			lines := bufio.NewReader(out)
			until := func(text string) string {
				for {
					line, err := lines.ReadString('\n')
					Expect(err).NotTo(HaveOccurred(), said.String())
					if strings.Contains(line, text) {
						return line
					}
				}
			}
			fmt.Fprint(in, greeting)
			until("agentInfo")
			fmt.Fprintln(in, `{"jsonrpc":"2.0","id":2,"method":"session/new","params":{"cwd":"/","mcpServers":[]}}`)
			session := regexp.MustCompile(`"sessionId":"[^"]+"`).FindString(until(`"id":2`))
			fmt.Fprintf(in, `{"jsonrpc":"2.0","id":3,"method":"session/prompt","params":{%s,"prompt":[{"type":"text",`+
				`"text":"/say a\n/hold"}]}}`+
				"\n", session)
			until("agent_message_chunk")
			if last != "" {
				fmt.Fprintf(in, last+"\n", session)
				until("cancelled")
			}
			Expect(in.Close()).To(Succeed())
			_, _ = io.Copy(io.Discard, lines)
			return ended{status(c.Wait()), "", said.String()}
		}
		got := left("")
		Expect(got.code).To(Equal(2), got.err)
		Expect(got.err).To(ContainSubstring("the editor left during a turn that it had not cancelled"))
		got = left(`{"jsonrpc":"2.0","method":"session/cancel","params":{%s}}`)
		Expect(got.code).To(Equal(0), got.err)
	})

	DescribeTable("has the name and the ways of a real agent", func(agent, name, choice string) {
		p := newPlace()
		got := p.run("prompt", "--yolo", "/say Hello.\n/run echo from-the-shell", "--", "acp-test", "serve", "--as",
			agent)
		Expect(got.code).To(Equal(0), got.out+got.err)
		log, err := filepath.Glob(filepath.Join(p.dir, "acp-test-out", "*-obedient.jsonl"))
		Expect(err).NotTo(HaveOccurred())
		text, err := os.ReadFile(log[0])
		Expect(err).NotTo(HaveOccurred())
		Expect(string(text)).To(And(ContainSubstring(name), ContainSubstring(`"optionId":"`+choice+`"`),
			ContainSubstring("from-the-shell")))
		Expect(string(text)).NotTo(ContainSubstring("acp-test-refagent"))
		check := p.run("check", log[0])
		Expect(check.code).To(Equal(0), "both sides keep the rules: "+check.out+check.err)
		Expect(check.out).To(MatchRegexp(`(?m)^PASS  \S+`), "it names the agent")
	},
		Entry("Claude", "claude-agent-acp", `"name":"@agentclientprotocol/claude-agent-acp"`, "allow-once"),
		Entry("Gemini", "gemini-cli", `"name":"gemini-cli"`, "proceed_once"),
		Entry("OpenCode", "opencode", `"name":"OpenCode"`, "once"),
		Entry("Qwen", "qwen-code", `"name":"qwen-code"`, "proceed_once"),
		Entry("Codex", "zed-codex", `"name":"codex-acp"`, "approved"),
	)

	It("remembers the modes and options of that agent, and refuses others", func() {
		got := newPlace().run("run", "--profile", "none", "--run",
			"^(mode/(set-idle|unknown|holds|effect-later)|option/(set-select|unknown|follows-mode|is-the-mode))$",
			"--", "acp-test", "refagent", "--as", "claude-agent-acp")
		Expect(got.code).To(Equal(0), got.out+got.err)
		Expect(got.out).To(And(ContainSubstring("8 scenarios: 8 pass"), Not(ContainSubstring("\nwarn "))))
	})

	DescribeTable("has the effects of that agent's modes", func(agent, yolo, flag, mode, prompt string, done bool) {
		p := newPlace()
		got := p.run("prompt", "--yolo="+yolo, flag, mode, prompt, "--", "acp-test", "serve", "--as", agent, "-q")
		_, err := os.Stat(filepath.Join(p.dir, "a.txt"))
		Expect(err == nil).To(Equal(done), got.out+got.err)
	},
		Entry("one that asks", "gemini-cli", "false", "--mode", "default", "/edit a.txt words", false),
		Entry("one that only plans", "gemini-cli", "true", "--mode", "plan", "/edit a.txt words", false),
		Entry("one that lets edits pass", "claude-agent-acp", "false", "--mode", "acceptEdits", "/edit a.txt words",
			true),
		Entry("one that lets edits pass asks before commands", "claude-agent-acp", "false", "--mode", "acceptEdits",
			"/run touch a.txt", false),
		Entry("one that asks for nothing", "qwen-code", "false", "--mode", "yolo", "/run touch a.txt", true),
		Entry("the option for a mode", "opencode", "true", "--option", "mode=plan", "/edit a.txt words", false),
	)

	It("takes the commands that that agent lists", func() {
		got := newPlace().run("prompt", "/review-branch main\n/none", "--", "acp-test", "serve", "--as", "zed-codex",
			"-q")
		Expect(got.out).To(And(ContainSubstring("You gave the command /review-branch main\n"),
			ContainSubstring("There is no command /none.")))
	})

	It("has a recording for each name", func() {
		Expect(obedient.Agents()).To(HaveLen(5))
	})

	It("does the same for front ends", func() {
		p := newPlace()
		c := p.command("serve", "--protocol", "ag-ui")
		said, err := c.StderrPipe()
		Expect(err).NotTo(HaveOccurred())
		Expect(c.Start()).To(Succeed())
		lines := bufio.NewScanner(said)
		Expect(lines.Scan()).To(BeTrue())
		url := regexp.MustCompile(`http://\S+/`).FindString(lines.Text())
		dies := false
		post := func(thread, prompt string) string {
			answer, err := http.Post(url, "application/json",
				strings.NewReader(fmt.Sprintf(`{"threadId":%q,"runId":"r","state":{},`+
					`"messages":[{"id":"m","role":"user","content":%q}],"tools":[{"name":"pick","description":"",`+
					`"parameters":{}}],`+
					`"context":[],"forwardedProps":{}}`, thread, prompt)))
			if dies && err != nil {
				return "" // it was gone before it had answered
			}
			Expect(err).NotTo(HaveOccurred())
			defer answer.Body.Close()
			Expect(answer.Header.Get("Access-Control-Allow-Origin")).To(Equal("*"))
			text, _ := io.ReadAll(answer.Body) // one that dies ends anyhow
			return string(text)
		}
		Expect(post("1", "/say Hello.\n/edit a.txt words")).
			To(And(ContainSubstring(`"delta":"Hello.\n"`), ContainSubstring("RUN_FINISHED")))
		Expect(p.read("a.txt")).To(Equal("words"))
		Expect(post("2", `/call pick {"colour":"red"}`)).
			To(And(ContainSubstring(`"toolCallName":"pick"`), ContainSubstring("pendingToolCallIds")))
		Expect(post("3", "/run ls")).To(ContainSubstring(`"interrupts"`))
		Expect(post("4", "/fail 401")).To(ContainSubstring("RUN_ERROR"))
		Expect(post("5", "/call pick red")).To(ContainSubstring("/call takes the name of a tool and a JSON object"))
		dies = true
		Expect(post("6", "/die")).NotTo(ContainSubstring("RUN_FINISHED"))
		var rest strings.Builder
		for lines.Scan() {
			rest.WriteString(lines.Text() + "\n")
		}
		Expect(c.Wait()).To(Succeed(), rest.String())
		Expect(rest.String()).To(ContainSubstring("PASS  front end\n"))
	})
})

// greeting is how an editor with a name begins.
const greeting = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1,` +
	`"clientCapabilities":{},` +
	`"clientInfo":{"name":"my-editor","version":"3"}}}` + "\n"

var _ = Describe("an editor that says what its user saw", func() {
	judged := func(p *place, fault, agent string) (checks map[string]results.Verdict, said string) {
		clients, err := filepath.Abs("../../ci/editors")
		Expect(err).NotTo(HaveOccurred())
		node := filepath.Join(clients, "node_modules", "node", "bin", "node")
		Expect(node).To(BeAnExistingFile(), "run ci/install-npm ci/editors")
		p.env = append(p.env, "FAULT="+fault)
		got := p.run("editors", "--run",
			"editors/(m06-odd-tool-calls|m07-permission-options|m12-noise|m14-request-ids)$", "-j", "3", "--", node,
			filepath.Join(clients, "sdk-client.mjs"), agent)
		checks = map[string]results.Verdict{}
		for _, r := range p.results().Results {
			for _, k := range r.Checks {
				if strings.HasPrefix(k.Slug, "seen-") && k.Verdict != results.Skip {
					checks[k.ID] = k.Verdict
				}
			}
		}
		return checks, got.out + got.err
	}

	DescribeTable("is judged by that", func(part int, agent string) {
		oneOf(part)
		checks, said := judged(newPlace(), "", agent)
		Expect(checks).To(And(HaveLen(8), HaveEach(results.Pass)), said)
	},
		Entry("with an agent that it starts", 0, "{agent}"),
		Entry("with an agent that it reaches over HTTP", 1, "{url}"),
		Entry("with an agent that it reaches by a WebSocket", 2, "{ws}"),
	)

	DescribeTable("fails where that is not what the agent sent", func(part int, fault, slug, observed string) {
		oneOf(part)
		checks, said := judged(newPlace(), fault, "{agent}")
		Expect(checks).To(ContainElement(results.Fail))
		for id, verdict := range checks {
			Expect(verdict == results.Fail).To(Equal(strings.HasSuffix(id, "#"+slug)), "%s: %s\n%s", id, verdict, said)
		}
		Expect(said).To(ContainSubstring(observed))
	},
		Entry("the last piece is lost", 3, "last-lost", "seen-text", "the text ends before"),
		Entry("a piece is shown twice", 4, "doubled", "seen-text", "more than the agent said in it"),
		Entry("updates are shown in another session", 5, "elsewhere", "seen-text",
			"in session session-1 the text ends before"),
		Entry("a permission is decided unseen", 6, "asks-unseen", "seen-asks", "the user did not see call-1"),
		Entry("a tool call is not shown", 7, "calls-unseen", "seen-calls", "the user did not see"),
	)

	It("is told of a line that is none of an account", func() {
		p := newPlace()
		p.env = append(p.env, "ACP_TEST_SEEN=seen.jsonl")
		p.write("seen.jsonl", `{"tells":["text"]}`+"\n"+`{"txt":"a"}`+"\n")
		got := p.with(greeting, "serve")
		Expect(got.code).To(Equal(2))
		Expect(got.err).To(ContainSubstring("seen.jsonl: line 2: want tells, or session and one of text, call, asks, " +
			"decides; got"))
	})
})

var _ = Describe("drawn agents", func() {
	clients, _ := filepath.Abs("../../ci/editors")
	client := []string{"--", filepath.Join(clients, "node_modules", "node", "bin", "node"),
		filepath.Join(clients, "sdk-client.mjs"), "{agent}"}

	It("are the same for a seed, blame no correct editor, and run again", func() {
		oneOf(5)
		p := newPlace()
		got := p.run(append([]string{"editors", "--draw", "4", "-j", "4"}, client...)...)
		Expect(got.code).To(Equal(0), got.out+got.err)
		Expect(p.results().Counts.Pass).To(Equal(4))
		first := p.read("acp-test-out/drawn-0002.txtar")
		got = p.run(append([]string{"editors", "acp-test-out/drawn-0002.txtar", "--out", "again"}, client...)...)
		Expect(got.code).To(Equal(0), got.out+got.err)
		Expect(p.run(append([]string{"editors", "--draw", "2", "--run", "nothing-matches"}, client...)...).code).
			To(Equal(2))
		Expect(p.read("acp-test-out/drawn-0002.txtar")).To(Equal(first))
	})

	DescribeTable("find an editor", func(fault string, code int, named string) {
		oneOf(6)
		p := newPlace()
		p.env = append(p.env, "FAULT="+fault)
		got := p.run(append([]string{"editors", "--draw", "6", "-j", "4"}, client...)...)
		Expect(got.code).To(Equal(code), got.out+got.err)
		Expect(got.out).To(ContainSubstring(named))
	},
		Entry("that chooses what was not offered", "invents", 1, "C-PERM-OFFERED"),
		Entry("that dies in its turn", "dies", 0,
			"the editor left during a turn that it had not cancelled: ended with status 1"),
	)
})
