//go:build unix

package main_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/creack/pty"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
)

// terminal is a command at a terminal at which somebody types.
type terminal struct {
	*exec.Cmd
	tty  *os.File
	text *gbytes.Buffer
}

func (p *place) atTerminal(args ...string) *terminal {
	GinkgoHelper()
	t := &terminal{Cmd: p.command(args...), text: gbytes.NewBuffer()}
	t.Env = append(t.Env, "NO_COLOR=1")
	var err error
	t.tty, err = pty.StartWithSize(t.Cmd, &pty.Winsize{Rows: 40, Cols: 200})
	Expect(err).NotTo(HaveOccurred())
	go func() { _, _ = t.tty.WriteTo(t.text) }() // EIO is how a terminal ends
	DeferCleanup(func() { _ = t.Process.Kill(); _ = t.tty.Close() })
	return t
}

// sees waits for a text, which comes after those that were seen, and then types.
func (t *terminal) sees(text, keys string) {
	GinkgoHelper()
	Eventually(t.text).Should(gbytes.Say(text))
	_, err := t.tty.WriteString(keys)
	Expect(err).NotTo(HaveOccurred())
}

// update is a line of an agent's script that sends a session/update.
func update(u string) string {
	return `say '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":` + u + `}}'`
}

const runs = `
turns:
  - prompt: Rename
    replies:
      - - thinking: "First I look.\nThen I write."
        - text: I'll rename it.
        - tool: write_file
          args: {path: main.go, content: "bar\n"}
      - - tool: run_shell
          args: {command: "echo $((20+3)); exit 3"}
      - - tool: run_shell
          args: {command: "echo $((20+3)); exit 3"}
      - - text: Done.
`

var _ = Describe("prompt as a client", func() {
	var p *place
	BeforeEach(func() { p = newPlace(); p.write("model.yaml", runs) })

	It("has a model for the reference agent", func() {
		got := p.run("prompt", "-a", "reference", "-o", "simple", "hello")
		Expect([]any{got.code, got.err}).To(Equal([]any{0, ""}))
		Expect(got.out).To(ContainSubstring("built in"))
	})

	It("shows thoughts, changes and commands with what they print", func() {
		p.write("main.go", "foo\n")
		got := p.run("prompt", "-a", "reference", "--llm", "model.yaml", "--yolo", "--option", "show_thoughts=true",
			"Rename")
		Expect([]any{got.code, got.out}).To(Equal([]any{0, "I'll rename it.\nDone.\n"}))
		_, shown, _ := strings.Cut(got.err, "\n")
		const command = "[permission] Run echo $((20+3)); exit 3 (execute): allowed once\n" +
			"[terminal] $ sh -c echo $((20+3)); exit 3\n[terminal] ended with status 3\n  23\n" +
			"[tool] Run echo $((20+3)); exit 3 (execute, failed): the command ended with exit status 3 23\n"
		Expect(shown).To(Equal("[commands] /status /tools /compact\n[thought] First I look.\n" +
			"[thought] Then I write.\n" +
			"[permission] Write main.go (edit): allowed once\n[tool] Write main.go (edit, completed)\n" +
			"[diff] main.go, +1 -1\n  @@ line 1 @@\n  -foo\n  +bar\n" +
			command + command))
	})

	It("shows of a plan what has changed, and a new mode", func() {
		plan := func(first string) string {
			return update(`{"sessionUpdate":"plan","entries":[{"content":"Look","priority":"high","status":"` + first +
				`"},{"content":"Write","priority":"low","status":"pending"}]}`)
		}
		p.agent(plan("pending"), plan("completed"),
			update(`{"sessionUpdate":"current_mode_update","currentModeId":"code"}`), ends)
		Expect(p.run("prompt", "x", "--", "./agent").err).
			To(Equal("[session] s: new\n[plan] pending: Look\n[plan] pending: Write\n[plan] completed: Look\n" +
				"[mode] code\n"))
	})

	It("colours a terminal only", func() {
		p.write("main.go", "foo\n")
		t := p.atTerminal("prompt", "-a", "reference", "--llm", "model.yaml", "--write", "Rename")
		t.sees(`\n  -foo\r\n  \+bar\r\n`, "")
		p.write("main.go", "foo\n")
		c := p.command("prompt", "-a", "reference", "--llm", "model.yaml", "--write", "Rename")
		tty, err := pty.Start(c)
		Expect(err).NotTo(HaveOccurred())
		text := gbytes.NewBuffer()
		_, _ = tty.WriteTo(text)
		Expect(c.Wait()).To(Succeed())
		Expect(string(text.Contents())).To(ContainSubstring("\x1b[31m  -foo\x1b[0m\r\n\x1b[32m  +bar\x1b[0m\r\n"))
	})

	Describe("--ask", func() {
		It("offers the agent's options by number", func() {
			t := p.atTerminal("prompt", "-a", "reference", "--llm", "model.yaml", "--ask", "Rename")
			t.sees(`\[permission\] Write main.go \(edit\)\?\r\n\[diff\] main.go, \+1 -0\r\n(?s:.*)about main.go\r\n  `+
				`1  Allow \(allow_once\)\r\n(?s:.*)1-4: `, "9\n")
			t.sees(`1-4: `, "1\n")
			t.sees(`Run echo(?s:.*)2  .* \(allow_always\)(?s:.*)1-4: `, "2\n")
			t.sees(`allowed for always\r\n(?s:.*)\n  23\r\n`, "")
			Expect(status(t.Wait())).To(Equal(0))
			Expect(p.read("main.go")).To(Equal("bar\n"))
		})

		It("remembers what was chosen for always, for calls of the same kind and title", func() {
			p.agent(asks(`{"toolCallId":"t","title":"T","kind":"execute"}`),
				asks(`{"toolCallId":"u","title":"T","kind":"execute"}`),
				asks(`{"toolCallId":"v","title":"V","kind":"execute"}`), ends)
			t := p.atTerminal("prompt", "x", "--ask", "--", "./agent")
			t.sees(`1-3: `, "2\n")
			t.sees(`T \(execute\): allowed for always\r\n\[permission\] T \(execute\): allowed for always, as `+
				`before\r\n\[permission\] V \(execute\)\?\r\n(?s:.*)1-3: `, "3\n")
			t.sees(`V \(execute\): rejected\r\n`, "")
			Expect(status(t.Wait())).To(Equal(0))
		})

		It("does what the user refuses not", func() {
			t := p.atTerminal("prompt", "-a", "reference", "--llm", "model.yaml", "--ask", "Rename")
			t.sees(`1-4: `, "3\n")
			t.sees(`Write main.go \(edit\): rejected\r\n`, "")
			Expect(filepath.Join(p.dir, "main.go")).NotTo(BeAnExistingFile())
		})

		It("leaves a question for an interrupt", func() {
			t := p.atTerminal("prompt", "-a", "reference", "--llm", "model.yaml", "--ask", "Rename")
			t.sees(`1-4: `, "\x03")
			Expect(status(t.Wait())).To(Equal(130))
			t.sees(`\[permission\] .*: cancelled\r\n(?s:.*)acp-test: cancelled\r\n`, "")
		})
	})

	Describe("-i", func() {
		It("takes prompts until the end of the input, completes commands and brings back what was typed", func() {
			t := p.atTerminal("prompt", "-a", "reference")
			t.sees(`> `, "hello\r")
			t.sees(`built in(?s:.*)> `, "this is taken back\x03/sta\t\r")
			t.sees(`Mode: agentic\r\nDirectory: (?s:.*)> `, "/tools\r")
			t.sees("run_shell(?s:.*)> ", "\x1b[A\x1b[A\r")
			t.sees(`Mode: agentic(?s:.*)> `, "\x04")
			Expect(status(t.Wait())).To(Equal(0))
		})

		It("cancels a turn for Ctrl-C, and goes on", func() {
			p.agent(`: > `+p.dir+`/asked`, `got`,
				`say '{"jsonrpc":"2.0","id":3,"result":{"stopReason":"cancelled"}}'; got`,
				`say '{"jsonrpc":"2.0","id":4,"result":{"stopReason":"refusal"}}'; got`,
				`say '{"jsonrpc":"2.0","id":5,"error":{"code":-32603,"message":"no"}}'; got`)
			t := p.atTerminal("prompt", "-i", "--", "./agent")
			t.sees(`> `, "one\r")
			Eventually(filepath.Join(p.dir, "asked")).Should(BeAnExistingFile())
			t.sees(``, "\x03")
			t.sees(`\[turn\] ended with "cancelled"\r\n> `, "two\r")
			t.sees(`\[turn\] ended with "refusal"\r\n> `, "three\r")
			t.sees(`\[turn\] failed: session/prompt: no \(-32603\)\r\n> `, "/exit\r")
			Expect(status(t.Wait())).To(Equal(0))
			Expect(p.answers()[0]).To(ContainSubstring("session/cancel"))
			Expect(p.answers()[1]).To(ContainSubstring(`"text":"two"`))
		})

		It("ends with an agent that ends", func() {
			p.agent("exit 3")
			t := p.atTerminal("prompt", "-i", "--", "./agent")
			t.sees(`> `, "one\r")
			t.sees(`acp-test: the agent exited with status 3 before it answered session/prompt\r\n`, "")
			Expect(status(t.Wait())).To(Equal(1))
		})
	})

	Describe("--mode and --option", func() {
		It("put the session into a mode and set options before the turn", func() {
			got := p.run("prompt", "-a", "reference", "--mode", "planning", "--option", "show_thoughts=true", "-o",
				"json", "/status")
			Expect(got.out).To(MatchRegexp(`(?s)"configId":"show_thoughts".*"type":"boolean",` +
				`"value":true.*"session/prompt"`))
			Expect(got.out).To(ContainSubstring("Mode: planning"))
		})

		DescribeTable("say what there is", func(message string, args ...string) {
			got := p.run(append([]string{"prompt", "-a", "reference", "-o", "simple", "x"}, args...)...)
			Expect(got).To(Equal(ended{2, "", "acp-test: Reference agent: " + message + "\n"}))
		},
			Entry("a mode", `--mode plannin: the agent has no mode "plannin" (did you mean "planning"?); it has `+
				`agentic, interactive, readonly, planning`, "--mode", "plannin"),
			Entry("an option", `--option show=true: the agent has no option "show" (did you mean "show_thoughts"?); `+
				`it has mode, show_thoughts`, "--option", "show=true"),
			Entry("a boolean", `--option show_thoughts=yes: "show_thoughts" must be true or false, not "yes"`,
				"--option", "show_thoughts=yes"),
			Entry("a value", `--option mode=plan: the agent has no value "plan" (did you mean "planning"?); it has `+
				`agentic, interactive, readonly, planning`, "--option", "mode=plan"),
		)
	})

	Describe("mcp_servers of the settings", func() {
		agent := func(capabilities string) {
			p.agent(ends)
			p.write("agent", strings.Replace(p.read("agent"), `{"protocolVersion":1}`,
				`{"protocolVersion":1,"agentCapabilities":{`+capabilities+`}}`, 1))
		}
		servers := func(list string) {
			p.write("settings.json", `{"agent_servers": {"a": {"command": "`+p.dir+`/agent"}},
  "mcp_servers": {`+list+`}}`)
		}
		const all = `
    "files": {"command": "sh", "args": ["-c", "true"], "env": {"B": "2", "A": "1"}},
    "old": {"command": {"path": "sh", "args": [], "env": {}}},
    "off": {"command": "no-such", "enabled": false},
    "web": {"url": "https://mcp.example/x", "headers": {"Authorization": "Bearer x"}},
    "stream": {"type": "sse", "url": "https://mcp.example/sse"}`

		It("are handed on to an agent that takes them", func() {
			servers(all)
			agent(`"mcpCapabilities":{"http":true,"sse":true}`)
			Expect(p.run("prompt", "x", "--settings", "settings.json", "-o", "simple")).To(Equal(ended{0, "", ""}))
			sh, err := exec.LookPath("sh")
			Expect(err).NotTo(HaveOccurred())
			Expect(strings.Split(p.read("got"), "\n")[1]).To(ContainSubstring(`"mcpServers":[` +
				`{"name":"files","command":"` + sh +
				`","args":["-c","true"],"env":[{"name":"A","value":"1"},{"name":"B","value":"2"}]},` +
				`{"name":"old","command":"` + sh + `","args":[],"env":[]},` +
				`{"type":"http","name":"web","url":"https://mcp.example/x","headers":[{"name":"Authorization",` +
				`"value":"Bearer x"}]},` +
				`{"type":"sse","name":"stream","url":"https://mcp.example/sse","headers":[]}]`))
		})

		It("are left out, with a line, where the agent does not take them", func() {
			servers(all)
			agent(`"mcpCapabilities":{"http":true}`)
			Expect(p.run("prompt", "x", "--settings", "settings.json").err).
				To(Equal("[mcp] stream is left out: the agent does not advertise " +
					"agentCapabilities.mcpCapabilities.sse\n[session] s: new\n"))
		})

		DescribeTable("that are wrong have their place", func(list, message string) {
			servers(list)
			agent("")
			got := p.run("prompt", "x", "--settings", "settings.json")
			Expect(got).To(Equal(ended{2, "", "acp-test: settings.json:" + message + "\n"}))
		},
			Entry("no object", `"x": 7`, `2:24: mcp_servers.x must be an object with a command or a url`),
			Entry("no command", `"x": {"comand": "sh"}`,
				`2:35: mcp_servers.x: unknown key "comand" (did you mean "command"?)`),
			Entry("args", `"x": {"command": "sh", "args": "y"}`, `2:50: mcp_servers.x.args must be a list of texts`),
			Entry("an arg", `"x": {"command": "sh", "args": [7]}`, `2:51: mcp_servers.x.args must be a text, not 7`),
			Entry("env", `"x": {"command": "sh", "env": {"A": true}}`,
				`2:55: mcp_servers.x.env.A must be a text, not true`),
			Entry("a type", `"x": {"type": "ws", "url": "u"}`,
				`2:24: mcp_servers.x.type must be http or sse, not "ws"`),
			Entry("no program", `"x": {"command": "no-such"}`,
				` the MCP server x: exec: "no-such": executable file not found in $PATH`),
		)
	})

	It("cancels a turn that takes longer than --timeout", func() {
		p.agent(`got`, `say '{"jsonrpc":"2.0","id":3,"result":{"stopReason":"cancelled"}}'; got`)
		got := p.run("prompt", "x", "-o", "simple", "--timeout", "1s", "--exit-codes", "acp", "--", "./agent")
		Expect(got).To(Equal(ended{124, "",
			"acp-test: the turn took longer than 1s (--timeout) and was cancelled; it ended with \"cancelled\"\n"}))
		Expect(p.answers()[0]).To(ContainSubstring("session/cancel"))
	})

	DescribeTable("--exit-codes tells how the turn ended", func(stop string, simple, acp int) {
		p.agent(`say '{"jsonrpc":"2.0","id":3,"result":{"stopReason":"` + stop + `"}}'; got`)
		Expect(p.run("prompt", "x", "--", "./agent").code).To(Equal(simple))
		Expect(p.run("prompt", "x", "--exit-codes", "acp", "--", "./agent").code).To(Equal(acp))
	},
		Entry("end_turn", "end_turn", 0, 0), Entry("max_tokens", "max_tokens", 1, 3),
		Entry("max_turn_requests", "max_turn_requests", 1, 4),
		Entry("refusal", "refusal", 1, 5), Entry("cancelled", "cancelled", 1, 6), Entry("what nobody knows", "x", 1, 1),
	)

	DescribeTable("says what contradicts", func(message string, args ...string) {
		Expect(p.run(append([]string{"prompt"}, args...)...)).To(Equal(ended{2, "", "acp-test: " + message + "\n"}))
	},
		Entry("nobody to ask", "--ask: stdin is not a terminal, so nobody can be asked; --write and --yolo allow "+
			"without asking", "--ask", "x"),
		Entry("nobody to type", "-i: stdin is not a terminal; give the prompt as an argument, or on stdin without -i",
			"-i"),
		Entry("a prompt with -i", `prompt: unexpected argument "x": -i reads prompts`, "-i", "x"),
		Entry("codes", `--exit-codes: there is no "apc" (did you mean "acp"?); expected simple, acp`, "--exit-codes",
			"apc", "x"),
		Entry("an option without a value", `--option "x": K=V is expected`, "--option", "x", "y"),
		Entry("a negative time", "--timeout -1s: a time cannot be negative", "--timeout", "-1s", "x"),
		Entry("no script", "--llm: open no.yaml: no such file or directory", "-a", "reference", "--llm", "no.yaml",
			"x"),
	)
})
