package main_test

import (
	"bufio"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("A command line that is wrong", func() {
	It("is told where a scenario is wrong", func() {
		p := newPlace()
		p.write("bad.txtar", "# x\ncheck x\nprompt 'x'\npromt 'x'\n")
		got := p.run("run", "bad.txtar")
		Expect(got.err).To(MatchRegexp(`^acp-test: bad\.txtar:4:1: .*"promt".*did you mean "prompt"`))
		Expect(got.code).To(Equal(2))
	})
})

// This program is started once and more for each scenario.
var _ = Describe("the start of a process", func() {
	It("does little before it knows what is wanted", func() {
		c := newPlace().command("version")
		c.Env = append(c.Env, "GODEBUG=inittrace=1")
		trace, err := c.CombinedOutput()
		Expect(err).NotTo(HaveOccurred())
		all := 0
		for _, m := range regexp.MustCompile(`init (github.com/acp-test/\S+) @.* (\d+) bytes`).
			FindAllStringSubmatch(string(trace), -1) {
			bytes, _ := strconv.Atoi(m[2])
			Expect(bytes).To(BeNumerically("<", 12<<10),
				m[1]+": what few processes need can wait, as package lazy lets it")
			all += bytes
		}
		Expect(all).To(And(BeNumerically(">", 0), BeNumerically("<", 64<<10)))
	})

	It("as an agent reads no rules and no faults: no garbage is collected", func() {
		c := newPlace().command("refagent")
		c.Env = append(c.Env, "GODEBUG=gctrace=1")
		Expect(c.CombinedOutput()).To(BeEmpty())
	})
})

var _ = Describe("help", func() {
	It("shows what there is", func() {
		p := newPlace()
		for _, args := range [][]string{{}, {"help"}, {"-h"}, {"--help"}} {
			got := p.run(args...)
			Expect(got.code).To(Equal(0))
			Expect(got.out).To(ContainSubstring("Agent Client Protocol"))
			Expect(got.out).To(ContainSubstring("  run "))
			Expect(got.out).NotTo(ContainSubstring("keeper"))
		}
	})

	It("has each command in one of five groups, and of run's flags those of every day, all in help run", func() {
		p := newPlace()
		list := p.run("help").out
		Expect(regexp.MustCompile(`(?m)^[A-Z][a-z ]+:\n {2}[a-z]+ {3,}`).FindAllString(list, -1)).To(HaveLen(5))
		for line := range strings.Lines(p.run("__complete", "").out) {
			if name, _, ok := strings.Cut(line, "\t"); ok {
				Expect(list).To(MatchRegexp(`(?m)^  ` + regexp.QuoteMeta(name) + ` `))
			}
		}
		flag := regexp.MustCompile(`(?m)^ +(-\w, )?--[\w-]+`)
		Expect(len(flag.FindAllString(p.run("run", "--help").out, -1))).To(BeNumerically("<=", 12))
		all := p.run("help", "run").out
		Expect(len(flag.FindAllString(all, -1))).To(BeNumerically(">=", 48))
		Expect(all).To(ContainSubstring("\nHow they are judged:\n"))
		Expect(all).NotTo(ContainSubstring("\nMore flags:\n"), "each flag of run has a heading")
		Expect(p.run("help", "faults").out).To(MatchRegexp(`(?m)^cancel-end-turn +\S`))
	})

	DescribeTable("explains", func(topic, want string) {
		got := newPlace().run("help", topic)
		Expect(got.code).To(Equal(0))
		Expect(got.out).To(ContainSubstring(want))
	},
		Entry("a command", "run", "--step-timeout duration"),
		Entry("a word of the language", "await", "await PATTERN"),
		Entry("patterns", "patterns", "A pattern is"),
		Entry("all words", "commands", "prompt"),
		Entry("the language as a page", "reference", "# Scenario language"),
		Entry("scenarios", "scenario", "-- llm.yaml --"),
		Entry("suites", "suites", "cancel/"),
		Entry("a profile", "profile", "write_file  path, content"),
		Entry("itself", "help", "a topic"),
	)

	It("explains a requirement with what passes and what fails", func() {
		p := newPlace()
		got := p.run("help", "requirement", "CANCEL-001")
		Expect(got.out).To(And(ContainSubstring("MUST respond to the original session/prompt"),
			ContainSubstring("cancel/mid-stream-at-gate#cancel-001"),
			MatchRegexp(`(?s)An example that keeps .*"stopReason":"cancelled".*An example that breaks it `+
				`\(fail\).*"stopReason":"end_turn"`)))
		Expect(p.run("help", "CANCEL-001")).To(Equal(got))
		Expect(p.run("help", "rule", "CANCEL-REASON").out).To(ContainSubstring("An example that breaks it"))
		Expect(p.run("help", "SESSION-007").out).
			To(And(ContainSubstring(" tests it:\n\n  # "),
				ContainSubstring("A conversation that passes it:\n\n  --> initialize"),
				ContainSubstring("acp-test run --fault ")))
		for _, topic := range []string{"V2-SES-005", "V2-ECHO"} { // of version 2: what it says to run shows it
			page := p.run("help", topic).out
			Expect(page).To(HavePrefix("### " + topic + "\n"))
			shown := regexp.MustCompile(`--fault \S+ --run '(\S+)'`).FindStringSubmatch(page)
			got := p.run(append(strings.Fields("run --protocol acp-v2 -q "+strings.Split(shown[0], " --run")[0]),
				"--run", shown[1])...)
			Expect(got.code).To(Equal(1), page)
			Expect(got.out).To(ContainSubstring(topic))
		}
		Expect(p.run("help", "cancel-tool").out).To(HavePrefix("cancel-tool "))
		Expect(p.run("help", "FS-006").out).To(ContainSubstring("on prompt {"))
		Expect(p.run("help", "nonsense", "CANCEL-001").err).To(ContainSubstring(`unexpected argument "CANCEL-001"`))
	})

	It("shows a scenario that passes", func() {
		p := newPlace()
		_, example, _ := strings.Cut(p.run("help", "scenario").out, "\n\n")
		example, _, _ = strings.Cut(example, "\n\nA prompt starts")
		var lines []string
		for line := range strings.Lines(example) {
			lines = append(lines, strings.TrimPrefix(line, "  "))
		}
		p.write("s.txtar", strings.Join(lines, "")+"\n")
		Expect(p.run("lint", "s.txtar")).To(Equal(ended{0, "1 scenario passes\n", ""}))
		Expect(p.run("run", "s.txtar").code).To(Equal(0))
	})

	It("completes words in a shell", func() {
		p := newPlace()
		Expect(p.run("completion", "bash").out).To(ContainSubstring("complete -o default"))
		Expect(p.run("__complete", "run", "--agent", "").out).To(ContainSubstring("gemini-cli\n"))
		Expect(p.run("__complete", "run", "--suite", "").out).To(ContainSubstring("cancel\n"))
		Expect(p.run("__complete", "sweep", "--actions", "").out).
			To(And(ContainSubstring("cancel tool call\n"), ContainSubstring("run in another thread\n")))
		Expect(p.run("__complete", "help", "awa").out).To(ContainSubstring("await"))
		Expect(p.run("__complete", "").out).NotTo(ContainSubstring("keeper"))
	})
})

var _ = Describe("version", func() {
	It("says which program this is", func() {
		got := newPlace().run("version")
		Expect(got.out).To(MatchRegexp(`^acp-test \S+ go1\.\S+ \w+/\w+\n`))
	})
	It("says which state of each protocol is judged", func() {
		got := newPlace().run("version", "--protocols")
		Expect(got.out).To(MatchRegexp(`(?m)^acp-v1  schema \S+ \(2026-11-20\)$`))
		Expect(got.out).To(MatchRegexp(`(?m)^  2026-11-20  stable     subagent sessions$`))
		Expect(got.out).To(MatchRegexp(`(?m)^  2026-09-01  withdrawn  subagents as a capability of agents$`))
		Expect(got.out).To(MatchRegexp(`(?m)^acp-v2  schema Preview`))
	})
})

var _ = Describe("lint", func() {
	It("says what is wrong and what is doubtful, each with its place", func() {
		p := newPlace()
		p.write("a.txtar", "# x\ncheck x\npromt 'x'\n")
		p.write("b.txtar", "check y\nprompt 'x'\nawait turn\n-- llm.yaml --\nreplies:\n  - - text: a\n"+
			"    - gate: mid\n")
		p.write("c.txtar", good)
		got := p.run("lint", ".")
		Expect(got.code).To(Equal(2))
		Expect(got.out).To(MatchRegexp(`(?m)^a\.txtar:3:1: `))
		Expect(got.out).To(MatchRegexp(`(?m)^b\.txtar:1: the scenario does not say what it is about`))
		Expect(got.out).To(MatchRegexp(`(?m)^b\.txtar:\d+: nothing awaits or releases the gate "mid"`))
		Expect(got.out).NotTo(ContainSubstring("c.txtar"))
	})

	It("lists what a scenario of a stranger starts", func() {
		p := newPlace()
		p.write("s.txtar", "# x\nenv A=b\nhome x @x\nmcp run own touch x\nterminal real\ncheck x\nexec ls -l\n"+
			"send '{}'\n"+
			"request a/b '{}'\nprompt 'Go.'\nawait turn\n-- x --\n-- llm.yaml --\nreplies:\n"+
			"  - - tool: run_command\n      args: {command: rm -r x}\n  - - text: Done.\n")
		Expect(p.run("lint", "s.txtar")).To(Equal(ended{0, "1 scenario passes\n", ""}))
		Expect(p.run("lint", "--stranger", "s.txtar")).To(Equal(ended{0, `s.txtar:2: the agent gets a variable: env A=b
s.txtar:3: the agent gets a file of settings, which may name programs: home x @x
s.txtar:4: the agent gets a program to start as an MCP server: mcp run own touch x
s.txtar:5: the editor runs the commands that the agent requests: terminal real
s.txtar:7: acp-test runs a program with your rights: exec ls -l
s.txtar:8: the agent gets a raw message: send '{}'
s.txtar:9: the agent gets a raw message: request a/b '{}'
s.txtar:15: the model calls a tool, which the agent may run: run_command command="rm -r x"
1 scenario passes
`, ""}))
	})

	It("finds nothing in the suites of this program", func() {
		args := []string{"lint"}
		for line := range strings.Lines(newPlace().run("help", "suites").out) {
			if !strings.HasPrefix(line, " ") {
				args = append(args, "--suite", strings.TrimSpace(line))
			}
		}
		Expect(newPlace().run(args...).out).To(MatchRegexp(`^\d+ scenarios pass\n$`))
	})
})

var _ = Describe("fmt", func() {
	const untidy, tidy = "# x\ncheck   x\ngroup {\nawait turn\n}\n\n\n-- a --\na  b\n",
		"# x\ncheck x\ngroup {\n  await turn\n}\n\n-- a --\na  b\n"

	It("prints, lists, compares or writes", func() {
		p := newPlace()
		p.write("s/a.txtar", untidy)
		p.write("s/b.txtar", tidy)
		Expect(p.run("fmt", "s")).To(Equal(ended{0, tidy + tidy, ""}))
		Expect(p.run("fmt", "-l", "s")).To(Equal(ended{0, "s/a.txtar\n", ""}))
		Expect(p.run("fmt", "-d", "s/b.txtar")).To(Equal(ended{0, "", ""}))
		got := p.run("fmt", "-d", "s")
		Expect(got.code).To(Equal(1))
		Expect(got.out).To(HavePrefix("diff s/a.txtar\n-want +got\n@@ line 1 @@\n # x\n-check   x\n+check x\n"))
		Expect(p.run("fmt", "-w", "s")).To(Equal(ended{0, "", ""}))
		Expect(p.run("fmt", "-l", "s")).To(Equal(ended{0, "", ""}))
		Expect(p.read("s/a.txtar")).To(Equal(tidy))
	})

	It("formats what comes on stdin", func() {
		p := newPlace()
		Expect(p.with(untidy, "fmt", "-")).To(Equal(ended{0, tidy, ""}))
		Expect(p.with(untidy, "fmt", "-w", "-").err).
			To(Equal("acp-test: fmt: --write cannot write to stdin; leave out --write\n"))
	})

	It("formats the model's script, and leaves those of this program as they are", func() {
		p := newPlace()
		p.write("a.txtar", "# x\n-- llm.yaml --\nreplies: [[{text: Hi}, {gate: g}]]\n")
		p.write("b.txtar", "# x\n-- llm.yaml --\nreplies:\n  # Why.\n  - - text: Hi # so\n    # And then.\n"+
			"    - gate: g\n")
		Expect(p.run("fmt", "-w", ".").code).To(BeZero())
		Expect(p.read("a.txtar")).To(Equal("# x\n-- llm.yaml --\nreplies:\n  - - text: Hi\n    - gate: g\n"))
		Expect(p.read("b.txtar")).To(Equal("# x\n-- llm.yaml --\nreplies:\n  # Why.\n  - - text: Hi # so\n" +
			"    # And then.\n    - gate: g\n"))
		suites, err := filepath.Abs("../../scenarios/suites")
		Expect(err).NotTo(HaveOccurred())
		Expect(p.run("fmt", "-l", suites)).To(Equal(ended{0, "", ""}))
	})

	It("refuses what is not a scenario, and leaves it as it is", func() {
		p := newPlace()
		const text = "a:\n  b: 1\n  c:\n    - x\n"
		p.write("x.yaml", text)
		want := ended{2, "", `acp-test: x.yaml:1:1: "a:" is not a scenario command, so fmt skips the file; acp-test ` +
			`lint says more` + "\n"}
		Expect(p.run("fmt", "-w", "x.yaml")).To(Equal(want))
		Expect(p.read("x.yaml")).To(Equal(text))
	})

	It("leaves a file with mistakes alone, and says all of them", func() {
		p := newPlace()
		p.write("a.txtar", "}\nprompt 'x\n")
		got := p.run("fmt", "-w", ".")
		Expect(got.code).To(Equal(2))
		Expect(got.err).To(Equal("acp-test: a.txtar:1:1: this } closes no block\n" +
			"a.txtar:2:8: the quote that begins here is not closed (write '' for a quote inside quotes)\n"))
		Expect(p.read("a.txtar")).To(Equal("}\nprompt 'x\n"))
		Expect(p.run("fmt", "no.txtar").err).To(ContainSubstring("no such file"))
	})
})

var _ = Describe("agents", func() {
	It("lists the profiles and whether each can run", func() {
		got := newPlace().run("agents")
		Expect(got.code).To(Equal(0))
		Expect(got.out).To(MatchRegexp(`(?m)^reference +Reference agent +built in$`))
		Expect(got.out).To(MatchRegexp(`(?m)^gemini-cli +Gemini CLI `))
	})

	It("shows one", func() {
		got := newPlace().run("agents", "reference")
		Expect(got.out).To(MatchRegexp(`(?m)^model +openai-chat$`))
		got = newPlace().run("agents", "refrence")
		Expect(got.err).To(MatchRegexp(`did you mean "?reference"?\?`))
	})

	It("reads an editor's settings", func() {
		p := newPlace()
		p.write("settings.json", `{"agent_servers": {"Mine": {"command": "./agent", "args": ["--acp"]}, /* c */ `+
			`"Other": {"command": "sh"}}}`)
		p.write("agent", "#!/bin/sh\n")
		got := p.run("agents", "--settings", "settings.json")
		Expect(got.out).To(ContainSubstring("mine"))
		got = p.run("run", "--settings", "settings.json")
		Expect(got.err).To(ContainSubstring("settings.json names several agents; choose one with --agent: "))
	})
})

var _ = Describe("fakellm", func() {
	It("serves a script until it is interrupted", func() {
		p := newPlace()
		p.write("llm.yaml", "replies:\n  - - text: Hello\n    - gate: mid\n    - text: ' there.'\n")
		c := p.command("fakellm", "llm.yaml", "--transcript", "t.jsonl")
		c.Env = append(c.Env, "MY_API_KEY=pl4nt-3d-k3y")
		var log strings.Builder
		c.Stderr = &log
		out, err := c.StdoutPipe()
		Expect(err).NotTo(HaveOccurred())
		Expect(c.Start()).To(Succeed())
		DeferCleanup(func() { _ = c.Process.Kill() })
		url, err := bufio.NewReader(out).ReadString('\n')
		Expect(err).NotTo(HaveOccurred())
		r, err := http.Post(strings.TrimSpace(url)+"/v1/chat/completions", "application/json",
			strings.NewReader(`{"model":"m","messages":[{"role":"user","content":"Hi pl4nt-3d-k3y."}]}`))
		Expect(err).NotTo(HaveOccurred())
		defer r.Body.Close()
		Expect(r).To(HaveHTTPBody(ContainSubstring("Hello there.")))
		Expect(c.Process.Signal(os.Interrupt)).To(Succeed())
		Expect(c.Wait()).To(Succeed())
		Expect(log.String() + p.read("t.jsonl")).
			To(And(ContainSubstring("Hi REDACTED"), Not(ContainSubstring("pl4nt"))))
		Expect(p.run("show", "t.jsonl").out).To(ContainSubstring("model"))
	})

	It("says where a script is wrong", func() {
		p := newPlace()
		p.write("llm.yaml", "replies:\n  - - txt: Hello\n")
		got := p.run("fakellm", "llm.yaml")
		Expect(got.code).To(Equal(2))
		Expect(got.err).To(MatchRegexp(`^acp-test: llm\.yaml:2:\d+: .*txt`))
	})
})

var _ = Describe("refagent", func() {
	It("is an agent on stdin and stdout, until the input ends", func() {
		p := newPlace()
		got := p.with(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}`+"\n", "refagent")
		Expect(got.code).To(Equal(0))
		Expect(got.out).To(HavePrefix(`{"jsonrpc":"2.0","id":1,"result":{`))
		Expect(strings.Count(got.out, "\n")).To(Equal(1))
	})

	It("has faults on request", func() {
		p := newPlace()
		list := p.run("refagent", "--faults").out
		Expect(strings.Count(list, "\n")).To(BeNumerically(">", 10))
		name := strings.Fields(list)[0]
		Expect(p.run("__complete", "run", "--fault", name).out).To(ContainSubstring(name + "\n"))
		got := p.run("refagent", "--fault", name+"x")
		Expect([]any{got.code, got.out}).To(Equal([]any{2, ""}))
		Expect(got.err).To(Equal("acp-test: --fault: there is no fault \"" + name + "x\" (did you mean \"" + name +
			"\"?): acp-test refagent --faults lists them\n"))
		Expect(p.run("run", "--fault", name+"x").err).To(Equal(got.err))
	})
})

var _ = Describe("show", func() {
	var p *place
	BeforeEach(func() {
		p = newPlace()
		p.write("s.txtar", good)
		Expect(p.run("run", "s.txtar").code).To(Equal(0))
	})

	It("prints a transcript for people, from a file, a folder or stdin", func() {
		file := "acp-test-out/s/transcript.jsonl"
		got := p.run("show", file)
		Expect(got.code).To(Equal(0))
		Expect(got.out).To(HavePrefix("# s, reference, acp-test "))
		Expect(got.out).To(MatchRegexp(`(?m)^#\d+ +\d+\.\d{3}  --> session/prompt `))
		Expect(got.out).NotTo(ContainSubstring("\x1b"))
		Expect(p.run("show", filepath.Dir(file))).To(Equal(got))
		Expect(p.with(p.read(file), "show", "-")).To(Equal(got))
	})

	It("prints the canonical text", func() {
		got := p.run("show", "-f", "acp-test-out/s")
		Expect(got.code).To(Equal(0))
		Expect(got.out).To(ContainSubstring(`"Hello."`))
		Expect(got.out).To(ContainSubstring(`cwd="$WORK"`))
		Expect(p.run("show", "--exact", "acp-test-out/s").out).To(ContainSubstring("Hello."))
	})

	It("says that a file ends too early", func() {
		text := p.read("acp-test-out/s/transcript.jsonl")
		got := p.with(text[:len(text)-10], "show", "-")
		Expect(got.out).To(HaveSuffix("# the file ends in the middle of a line\n"))
	})

	It("ends quietly when nobody reads any more", func() {
		c := p.command("show", "acp-test-out/s")
		r, w, err := os.Pipe()
		Expect(err).NotTo(HaveOccurred())
		Expect(r.Close()).To(Succeed())
		c.Stdout = w
		err = c.Run()
		Expect(w.Close()).To(Succeed())
		Expect(err).To(MatchError(ContainSubstring(syscall.SIGPIPE.String())))
	})
})
