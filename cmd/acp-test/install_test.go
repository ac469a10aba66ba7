//go:build unix

package main_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/tidwall/jsonc"
)

const zedSettings = `// Zed settings
{
  "agent_servers": {
    // of my own
    "mine": { "command": "acp-test", "args": ["refagent", "--fault", "stop-reason-missing"], },
    "dies": { "type": "custom", "command": "./dies", "env": { "MY_API_KEY": "not-to-be-shown" } },
    "other": { "type": "registry" },
  },
}
`

const (
	zed   = ".config/zed/settings.json"
	store = ".local/state/acp-test/recordings"
)

// edit is a small editor: it starts the agent that its settings name, prompts once, and closes
// the agent's input when the prompt is answered or the agent is gone.
func (p *place) edit(settings, name string) ended {
	GinkgoHelper()
	var read struct {
		Servers map[string]struct {
			Command any               `json:"command"` // older ones of Zed have an object there
			Args    []string          `json:"args"`
			Env     map[string]string `json:"env"`
		} `json:"agent_servers"`
	}
	Expect(json.Unmarshal(jsonc.ToJSON([]byte(p.read(settings))), &read)).To(Succeed())
	agent := read.Servers[name]
	words := agent.Args
	command, plain := agent.Command.(string)
	if !plain {
		older := agent.Command.(map[string]any)
		command = older["path"].(string)
		for _, word := range older["args"].([]any) {
			words = append(words, word.(string))
		}
	}
	c := exec.Command(command, words...)
	if !strings.Contains(command, "/") {
		c.Path = program
	}
	c.Dir, c.Env = p.dir, p.env
	for k, v := range agent.Env {
		c.Env = append(c.Env, k+"="+v)
	}
	var said bytes.Buffer
	c.Stderr = &said
	in, err := c.StdinPipe()
	Expect(err).NotTo(HaveOccurred())
	out, err := c.StdoutPipe()
	Expect(err).NotTo(HaveOccurred())
	Expect(c.Start()).To(Succeed())
	DeferCleanup(func() { _ = c.Process.Kill() })
	lines, heard := bufio.NewScanner(out), ""
	ask := func(method, params string) (result map[string]any) {
		id := strings.Count(heard, `"id"`) + 100
		fmt.Fprintf(in, `{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`+"\n", id, method, params)
		for lines.Scan() {
			heard += lines.Text() + "\n"
			var m struct {
				ID     int
				Result map[string]any
			}
			Expect(json.Unmarshal(lines.Bytes(), &m)).To(Succeed())
			if m.ID == id {
				return m.Result
			}
		}
		return nil
	}
	ask("initialize", `{"protocolVersion":1,"clientCapabilities":{}}`)
	session := ask("session/new", fmt.Sprintf(`{"cwd":%q,"mcpServers":[]}`, p.dir))
	ask("session/prompt", fmt.Sprintf(`{"sessionId":"%v","prompt":[{"type":"text","text":"Good morning."}]}`,
		session["sessionId"]))
	in.Close()
	_, _ = io.Copy(io.Discard, out)
	return ended{status(c.Wait()), heard, said.String()}
}

// files are the names in a folder that fit a pattern.
func (p *place) files(pattern string) []string {
	GinkgoHelper()
	list, err := filepath.Glob(filepath.Join(p.dir, pattern))
	Expect(err).NotTo(HaveOccurred())
	return list
}

var _ = Describe("record --install", func() {
	It("stands between a small editor and its agent, keeps what goes wrong for a report, and leaves no byte behind",
		func() {
			p := newPlace()
			p.write("dies", "#!/bin/sh\nread line\nexit 3\n")
			p.write("dotfiles/zed.json", zedSettings)
			Expect(os.Chmod(filepath.Join(p.dir, "dotfiles/zed.json"), 0o640)).To(Succeed())
			Expect(os.MkdirAll(filepath.Join(p.dir, ".config/zed"), 0o755)).To(Succeed())
			Expect(os.Symlink("../../dotfiles/zed.json", filepath.Join(p.dir, zed))).To(Succeed())
			p.write("llm.yaml", "replies:\n  - - text: Good day.\n")
			p.env = append(p.env, "OPENAI_API_KEY=k", "OPENAI_BASE_URL="+p.fakellm("llm.yaml").url+"/v1")

			dry := p.run("record", "--install", "zed", "--dry-run")
			Expect(dry.code).To(Equal(0), dry.err)
			Expect(dry.out).To(And(ContainSubstring("\n-    \"mine\": { \"command\": \"acp-test\", \"args\": "+
				"[\"refagent\", "),
				ContainSubstring("\n+    \"mine\": { \"command\": \""+program+
					"\", \"args\": [\"record\", \"--ring=20,50MB,30d\", "),
				HaveSuffix("\nNothing was written, because of --dry-run.\n"), Not(ContainSubstring("not-to-be-shown"))))
			Expect(p.read(zed)).To(Equal(zedSettings))

			got := p.run("record", "--install", "zed", "--llm")
			Expect(got.code).To(Equal(0), got.err)
			Expect(got.out).To(MatchRegexp(`(?s)Recorded from the next start of the agent on: mine, dies; left ` +
				`out: other: .*` +
				`acp-test record --uninstall zed\n$`))
			link, err := os.Lstat(filepath.Join(p.dir, zed))
			Expect(err).NotTo(HaveOccurred())
			Expect(link.Mode().Type()).To(Equal(os.ModeSymlink))
			there, err := os.Stat(filepath.Join(p.dir, zed))
			Expect(err).NotTo(HaveOccurred())
			Expect(there.Mode().Perm()).To(Equal(os.FileMode(0o640)))
			Expect(p.files("dotfiles/.*")).To(BeEmpty())
			installed := p.read(zed)
			Expect(p.run("record", "--install", "zed")).To(Equal(ended{2, "", "acp-test: " + filepath.Join(p.dir, zed) +
				": already recorded: mine, dies; acp-test record --uninstall zed removes the recorder\n"}))
			Expect(p.read(zed)).To(Equal(installed))

			seen := p.edit(zed, "mine")
			Expect(seen.code).To(Equal(0), seen.err)
			kept := p.files(store + "/kept/*.jsonl")
			Expect(kept).To(HaveLen(1))
			Expect(seen.err).To(ContainSubstring("acp-test: kept " + kept[0] + ": SHAPE of the agent: "))
			Expect(p.run("keep")).To(Equal(ended{0, kept[0] + "\n", "for a bug report: acp-test reduce " + kept[0] +
				" --issue bug.md -- AGENT…\n"}), "nothing is kept twice")
			got = p.run("reduce", kept[0], "--issue", "bug.md", "--", "acp-test", "refagent", "--fault",
				"stop-reason-missing")
			Expect(got.code).To(Equal(0), got.out+got.err)
			Expect(p.read("bug.md")).To(And(ContainSubstring("\n## Expected\n"), ContainSubstring("stopReason")))

			seen = p.edit(zed, "dies")
			Expect(seen.code).To(Equal(3))
			Expect(seen.err).To(MatchRegexp("acp-test: kept " + p.dir + `/\S+-dies\.jsonl: `))
			Expect(p.files(store + "/kept/*.jsonl")).To(HaveLen(2))

			meanwhile := strings.NewReplacer("of my own", "of ours", `"registry"`, `"registry", "env": {}`)
			p.write("dotfiles/zed.json", meanwhile.Replace(installed))
			Expect(p.run("record", "--uninstall", "zed").out).
				To(HaveSuffix("\nNo longer recorded: mine, dies. Recordings stay where they are.\n"))
			Expect(p.read(zed)).To(Equal(meanwhile.Replace(zedSettings)))
		})

	DescribeTable("is used by a small editor, and leaves the settings byte for byte as they were",
		func(file, agent, program string) {
			p := newPlace()
			src, err := os.ReadFile(filepath.Join("../../agents/testdata/settings", file))
			Expect(err).NotTo(HaveOccurred())
			p.write("s.json", string(src))
			p.write("bin/"+program, "#!/bin/sh\nexec acp-test refagent\n")
			p.env[0] = strings.Replace(p.env[0], "PATH=", "PATH="+p.dir+"/bin:", 1)
			Expect(p.run("record", "--install", "s.json").code).To(Equal(0))
			p.edit("s.json", agent)
			recorded := p.files(store + "/*.jsonl")
			Expect(recorded).To(HaveLen(1))
			Expect(os.ReadFile(recorded[0])).To(ContainSubstring(`"agentInfo"`))
			Expect(p.run("record", "--uninstall", "s.json").code).To(Equal(0))
			Expect(p.read("s.json")).To(Equal(string(src)))
		},
		Entry("Zed's", "zed.json", "Gemini CLI", "gemini"),
		Entry("those of an older Zed", "zed-older.json", "Bare", "bare"),
		Entry("JetBrains'", "jetbrains.json", "Bare", "bare"),
		Entry("those of an extension", "plugin.json", "npx", "npx"),
		Entry("with tabs, written by hand", "tabs.json", "goose", "goose"),
		Entry("on one line, written by a program", "one-line.json", "a", "a"),
	)

	It("is known in the settings whatever the program is called", func() {
		p := newPlace()
		settings := `{"agent_servers": {"A": {"command": "x"}}}`
		p.write("s.json", settings)
		tool, err := os.ReadFile(program)
		Expect(err).NotTo(HaveOccurred())
		renamed := filepath.Join(p.dir, "acp-test-linux-amd64")
		Expect(os.WriteFile(renamed, tool, 0o755)).To(Succeed())
		for _, flag := range []string{"--install", "--uninstall"} {
			c := exec.Command(renamed, "record", flag, "s.json")
			c.Dir, c.Env = p.dir, p.env
			out, err := c.CombinedOutput()
			Expect(err).NotTo(HaveOccurred(), string(out))
			Expect(p.read("s.json") == settings).To(Equal(flag == "--uninstall"))
		}
	})

	It("prints the lines of editors whose settings are programs", func() {
		p := newPlace()
		words := `"` + program + `", "record", "--ring=3,1MB", "--out=` + p.dir + `/r/", "--", "my-agent", "say \"hi\""`
		for editor, line := range map[string]string{
			"agent-shell":   "acp-command '(" + strings.ReplaceAll(words, `, `, " ") + ")",
			"codecompanion": "default = { " + words + " }",
			"avante":        `command = "` + program + `", args = { "record", `,
		} {
			got := p.run("record", "--install", editor, "--ring=3,1MB", "--out", "r", "--", "my-agent", `say "hi"`)
			Expect(got.code).To(Equal(0), got.err)
			Expect(got.out).To(ContainSubstring(line))
			Expect(p.run("record", "--uninstall", editor).out).
				To(Equal("Remove from your settings the lines that --install printed.\n"))
		}
	})
})

var _ = Describe("record --ring", func() {
	ring := func(p *place, in, bounds string, agent ...string) ended {
		return p.with(in, append([]string{"record", "--ring=" + bounds, "--out", "r", "--"}, agent...)...)
	}

	It("holds the newest recordings within its bounds, what is being written, and what a user put there", func() {
		p := newPlace()
		old := func(name string, age time.Duration) string {
			p.write("r/"+name, strings.Repeat("x", 1<<10))
			at := time.Now().Add(-age)
			Expect(os.Chtimes(filepath.Join(p.dir, "r", name), at, at)).To(Succeed())
			return filepath.Join(p.dir, "r", name)
		}
		mine := old("mine.jsonl", 9*time.Hour)
		first := old("2026-01-02T03-04-05-a.jsonl", 3*time.Hour)
		second := old("2026-01-02T03-04-05-b.jsonl", 2*time.Hour)
		script := old("2026-01-02T03-04-05-a.llm.yaml", 3*time.Hour)
		Expect(p.run("keep", first).code).To(Equal(0))
		Expect(ring(p, hello, "2,1MB", "acp-test", "refagent").code).To(Equal(0))
		Expect(p.files("r/*")).To(ConsistOf(mine, second, HaveSuffix("-acp-test.jsonl"), HaveSuffix("/kept")))
		Expect(script).NotTo(BeAnExistingFile())
		Expect(p.files("r/kept/*")).To(ConsistOf(HaveSuffix("-a.jsonl")), "no kept recording goes")
		third := old("2026-01-02T03-04-05-c.jsonl", 49*time.Hour)
		Expect(p.run("keep", third).code).To(Equal(0))
		Expect(ring(p, hello, "9,1MB,2d", "acp-test", "refagent").code).To(Equal(0))
		Expect(p.files("r/*.jsonl")).To(And(HaveLen(4), ContainElement(second), Not(ContainElement(third))),
			"it is too old")
		Expect(p.files("r/kept/*")).To(ConsistOf(HaveSuffix("-a.jsonl")))

		c := p.command("record", "--ring=1,1MB", "--out", "r", "--", "acp-test", "refagent")
		in, err := c.StdinPipe()
		Expect(err).NotTo(HaveOccurred())
		out, err := c.StdoutPipe()
		Expect(err).NotTo(HaveOccurred())
		Expect(c.Start()).To(Succeed())
		DeferCleanup(func() { _ = c.Process.Kill() })
		_, _ = io.WriteString(in, hello)
		_, err = bufio.NewReader(out).ReadString('\n')
		Expect(err).NotTo(HaveOccurred())
		Expect(p.files("r/*.lock")).To(HaveLen(1))
		open := strings.TrimSuffix(p.files("r/*.lock")[0], ".lock")
		Expect(ring(p, hello, "1,1MB", "acp-test", "refagent").code).To(Equal(0))
		Expect(open).To(BeAnExistingFile())
		in.Close()
		Expect(c.Wait()).To(Succeed())
		Expect(p.files("r/*.lock")).To(BeEmpty())
	})

	It("takes turns out of the middle of long recordings, also kept ones, and nothing is concluded from that", func() {
		p := newPlace()
		var long strings.Builder
		seq := 0
		entry := func(text string, args ...any) {
			seq++
			fmt.Fprintf(&long, `{"seq":%d,"ms":%d,"from":`+text+"\n", append([]any{seq, seq}, args...)...)
		}
		long.WriteString(`{"acp-test":3,"protocol":"1"}` + "\n")
		entry(`"process","kind":"started","msg":{"pid":1}}`)
		for i, ask := range []string{`initialize","msg":{"jsonrpc":"2.0","id":0,"method":"initialize",` +
			`"params":{"protocolVersion":1,"clientCapabilities":{}}}}`,
			`session/new","msg":{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/w",` +
				`"mcpServers":[]}}}`} {
			entry(`"editor","kind":"request","id":%d,"method":"`+ask, i)
			entry(`"agent","kind":"response","id":%d,"ref":%d,"msg":{"jsonrpc":"2.0","id":%d,"result":`+
				[]string{`{"protocolVersion":1,"agentCapabilities":{}}`, `{"sessionId":"s"}`}[i]+`}}`, i, seq, i)
		}
		for i := 2; i < 200; i++ {
			entry(`"editor","kind":"request","id":%d,"method":"session/prompt","session":"s","msg":{"jsonrpc":"2.0",`+
				`"id":%d,"method":"session/prompt",`+
				`"params":{"sessionId":"s","prompt":[{"type":"text","text":"Prompt %d."}]}}}`, i, i, i)
			asked := seq
			entry(`"agent","kind":"notification","method":"session/update","session":"s","msg":{"jsonrpc":"2.0",`+
				`"method":"session/update",`+
				`"params":{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text",`+
				`"text":%q}}}}}`,
				strings.Repeat("word ", 1000))
			entry(`"agent","kind":"response","id":%d,"ref":%d,"msg":{"jsonrpc":"2.0","id":%d,`+
				`"result":{"stopReason":"end_turn"}}}`, i, asked, i)
		}
		p.write("r/2026-01-02T03-04-05-long.jsonl", long.String())
		Expect(p.run("keep", "r").code).To(Equal(0))
		Expect(ring(p, hello, "9,1MB", "acp-test", "refagent").code).To(Equal(0))
		for _, file := range []string{"r/2026-01-02T03-04-05-long.jsonl", "r/kept/2026-01-02T03-04-05-long.jsonl"} {
			Expect(len(p.read(file))).To(BeNumerically("~", 1<<19, 6000), file)
			Expect(p.read(file)).NotTo(ContainSubstring("Prompt 2."))
			shown := p.run("show", file).out
			Expect(shown).To(And(ContainSubstring("<-- ok s\n"), ContainSubstring(`"Prompt 199."`)))
			check := p.run("check", file)
			Expect(check.code).To(Equal(0), check.out+check.err)
			Expect(check.err).To(ContainSubstring("line 7 is left out"))
		}
	})

	DescribeTable("keeps a recording", func(in, script, why string) {
		p := newPlace()
		p.write("agent", "#!/bin/sh\n"+script)
		got := ring(p, in, "20,50MB", "./agent")
		kept := p.files("r/kept/*-agent.jsonl")
		if why == "" {
			Expect(got.err).NotTo(ContainSubstring("kept"))
			Expect(kept).To(BeEmpty())
			return
		}
		Expect(kept).To(HaveLen(1), got.err)
		Expect(got.err).To(ContainSubstring("acp-test: kept " + kept[0] + ": " + why))
	},
		Entry("of an agent that ends with an error", "", "exit 7", "the agent ended with status 7\n"),
		Entry("of an agent that crashes", "", "kill -SEGV $$", "the agent was ended by SIGSEGV\n"),
		Entry("with an error response", hello,
			`read l; echo '{"jsonrpc":"2.0","id":0,"error":{"code":-32603,"message":"no"}}'; cat >/dev/null`,
			"the agent answered initialize with error -32603 (#"),
		Entry("that breaks a rule", hello, `read l; echo '{"jsonrpc":"2.0","id":0,"result":{}}'; cat >/dev/null`,
			"SHAPE of the agent: "),
		Entry("of a correct session not", hello, "exec acp-test refagent", ""),
	)

	It("keeps none of an agent that the editor ends by a signal", func() {
		p := newPlace()
		c := p.command("record", "--ring", "--out", "r", "--", "sh", "-c", "echo ready >&2; exec sleep 100")
		said, err := c.StderrPipe()
		Expect(err).NotTo(HaveOccurred())
		Expect(c.Start()).To(Succeed())
		_, err = bufio.NewReader(said).ReadString('\n')
		Expect(err).NotTo(HaveOccurred())
		Expect(c.Process.Signal(os.Interrupt)).To(Succeed())
		Expect(c.Wait()).NotTo(Succeed())
		Expect(p.files("r/*.jsonl")).To(HaveLen(1))
		Expect(p.files("r/kept/*")).To(BeEmpty())
	})
})
