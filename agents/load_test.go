package agents_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/acp-test/acp-test/agents"
)

// write puts a profile on disk.
func write(src string) string {
	GinkgoHelper()
	file := filepath.Join(GinkgoT().TempDir(), "my.yaml")
	Expect(os.WriteFile(file, []byte(src), 0o644)).To(Succeed())
	return file
}

var _ = Describe("a shipped profile", func() {
	for _, name := range agents.Names() {
		It("is whole: "+name, func() {
			p, err := agents.Shipped(name)
			Expect(err).NotTo(HaveOccurred())
			Expect(p.Name).To(Equal(name), "its file is called like it")
			Expect(p.Title).NotTo(BeEmpty())
			Expect(p.Model.Wire).NotTo(BeEmpty())
			Expect(p.Tools).NotTo(BeNil()) // there may be none
			Expect(p.Timeouts.Start).To(BeNumerically(">", 0))
			Expect(p.Source).To(Equal("shipped"))
			switch name {
			case "reference", "reference-acp-v2", "reference-ag-ui":
			case "langchain-agent", "router-agent", "ts-agent", "go-agent", "py-agent", "wren-agent", // their sources are here
				"ag-ui-server", "copilotkit-ag-ui", "langchain-ag-ui", "mastra-ag-ui", "tanstack-ag-ui":
				Expect(p.Install.Note).To(ContainSubstring("ci/agents/"))
			default:
				Expect(p.Install.NPM).To(MatchRegexp(`@\d+\.\d+\.\d+$`), "pinned")
			}
		})
	}

	It("has a name that is suggested for a misspelt one", func() {
		_, err := agents.Shipped("gemini-cil")
		Expect(err).To(MatchError(`no profile is named "gemini-cil" (did you mean "gemini-cli"?)`))
	})

	It("is what the packages of ci are pinned to", func() {
		for _, name := range agents.Names() {
			src, err := os.ReadFile(filepath.Join("..", "ci", "agents", name, "package.json"))
			if errors.Is(err, os.ErrNotExist) {
				continue
			}
			Expect(err).NotTo(HaveOccurred())
			p, err := agents.Shipped(name)
			Expect(err).NotTo(HaveOccurred())
			if at := strings.LastIndex(p.Install.NPM, "@"); at > 0 {
				Expect(string(src)).To(ContainSubstring(`"` + p.Install.NPM[:at] + `": "` + p.Install.NPM[at+1:] + `"`))
			}
		}
	})

	It("can be installed from ci, with every package pinned by its hash", func() {
		for _, name := range agents.Names() {
			switch name {
			case "reference", "reference-acp-v2", "reference-ag-ui", "py-agent", "wren-agent": // they need nothing
				continue
			case "go-agent":
				Expect(filepath.Join("..", "ci", "agents", name, "go.sum")).To(BeARegularFile())
				continue
			}
			src, err := os.ReadFile(filepath.Join("..", "ci", "agents", name, "package-lock.json"))
			Expect(err).NotTo(HaveOccurred())
			var lock struct {
				Packages map[string]struct{ Integrity, Resolved string }
			}
			Expect(json.Unmarshal(src, &lock)).To(Succeed())
			for at, p := range lock.Packages {
				Expect(p.Resolved).To(BeEmpty(), "%s: %s names the registry of one machine", name, at)
				if at != "" {
					Expect(p.Integrity).NotTo(BeEmpty(), "%s: %s", name, at)
				}
			}
		}
	})
})

var _ = Describe("a profile", func() {
	It("is read whole", func() {
		p, err := agents.Load(write(`
name: mine
title: My Agent
command: [my-agent, --llm, $LLM]
dir: sub
install: {npm: "my-agent@1.2.3", node: 22, note: build it first}
env: {PORT: 80, DEBUG: true, URL: $LLM/v1}
home: {.config/mine.json: '{"a": "$WORK", "$$schema": 1}'}
caches: none
model: {wire: anthropic}
tools:
  write_file: {name: Write, args: {file_path: $path, content: $content, mode: {n: 1, list: [a, true]}}}
  run_shell: Bash
normalize:
  replace: [{pattern: 'took \d+ ms', with: took N ms}]
  unordered: [usage_update]
  omit: [session_info_update]
  values: [cost]
  without: [trace]
  merge-tool-calls: true
timeouts: {start: 20s, step: 1m30s, scenario: 5m}
policy: {concurrent-prompts: reject, asks: [write_file], stops-taken-back: true}
`))
		Expect(err).NotTo(HaveOccurred())
		Expect(p.Shown()).To(Equal("My Agent"))
		Expect(p.Command).To(Equal([]string{"my-agent", "--llm", "$LLM"}))
		Expect(p.Install).To(Equal(agents.Install{NPM: "my-agent@1.2.3", Node: 22, Note: "build it first"}))
		Expect(p.Env).To(Equal(map[string]string{"PORT": "80", "DEBUG": "true", "URL": "$LLM/v1"}))
		Expect(p.NoCaches).To(BeTrue())
		Expect(p.Model.Wire).To(Equal("anthropic"))
		Expect(p.Tools["write_file"].Args).
			To(HaveKeyWithValue("mode", HaveKeyWithValue("list", Equal([]any{"a", true}))))
		Expect(p.Tools["run_shell"]).To(Equal(agents.Tool{Name: "Bash"}))
		Expect(p.Lacks("run_shell")).To(BeEmpty())
		Expect(p.Lacks("fetch")).To(HaveSuffix("has no tool for fetch"))
		p.Tools["write_file"] = agents.Tool{Name: "create", Cannot: []string{"overwrite"}}
		Expect(p.Lacks("write_file")).To(BeEmpty())
		Expect(p.Lacks("write_file:folders")).To(BeEmpty())
		Expect(p.Lacks("write_file:overwrite")).To(
			Equal("create, the tool of My Agent for write_file, cannot overwrite an existing file"))
		Expect(p.Normalize.Replace[0].Pattern.ReplaceAllString("it took 12 ms", p.Normalize.Replace[0].With)).
			To(Equal("it took N ms"))
		Expect(p.Normalize.Unordered).To(Equal([]string{"usage_update"}))
		Expect(p.Normalize.Omit).To(Equal([]string{"session_info_update"}))
		Expect(p.Normalize.Values).To(Equal([]string{"cost"}))
		Expect(p.Normalize.Without).To(Equal([]string{"trace"}))
		Expect(p.Normalize.MergeCalls).To(BeTrue())
		Expect(p.Timeouts).To(Equal(agents.Timeouts{Start: 20 * time.Second, Step: 90 * time.Second,
			Scenario: 5 * time.Minute}))
		Expect(p.Policy).To(Equal(agents.Policy{ConcurrentPrompts: "reject", Asks: []string{"write_file"},
			StopsTakenBack: true}))
	})

	It("keeps the places of its lanes", func() {
		src := "name: mine\ncommand: x # lanes: no\n\nlanes:   # those\n  title:\n    when: {system~: title}\n" +
			"    reply: [{text: t}]\nenv: {A: b}\n"
		p, err := agents.Load(write(src))
		Expect(err).NotTo(HaveOccurred())
		when := p.Lanes.Field("title").Field("when")
		Expect([]int{when.Line, when.Column}).To(Equal([]int{6, 11}))
		Expect(when.Field("system~").Text).To(Equal("title"))
	})

	It("may say something once and point to it with aliases and merge keys, in either style", func() {
		p, err := agents.Load(write("name: &n mine\ncommand: [*n, &u $LLM]\nenv: {URL: *u, A: b}\n" +
			"tools: {run_shell: &t {name: Bash, args: {cmd: $command}}, search: {<<: *t, args: {}}}\nlanes:\n" +
			"  x: {when: {user: *n}}\n"))
		Expect(err).NotTo(HaveOccurred())
		Expect(p.Command).To(Equal([]string{"mine", "$LLM"}))
		Expect(p.Env).To(Equal(map[string]string{"A": "b", "URL": "$LLM"}))
		Expect(p.Tools["search"]).To(Equal(agents.Tool{Name: "Bash", Args: map[string]any{}}))
		Expect(p.Lanes.Field("x").Field("when").Field("user").Text).To(Equal("mine"))
	})

	It("may name a shipped one or a file", func() {
		Expect(agents.Find("reference")).To(HaveField("Source", "shipped"))
		file := write("name: a\ncommand: b\n")
		Expect(agents.Find(file)).To(HaveField("Source", file))
	})

	It("may have a URL in place of a command", func() {
		p, err := agents.Load(write("name: a\nurl: http://127.0.0.1:8000/$LLM\n"))
		Expect(err).NotTo(HaveOccurred())
		l, err := p.Launch(agents.Sandbox{LLM: "llm", Work: "/w"})
		Expect(err).NotTo(HaveOccurred())
		Expect(l.URL).To(Equal("http://127.0.0.1:8000/llm"))
		Expect(l.Found.Where).To(Equal(agents.AtURL))
		Expect(p.Fetches()).To(BeFalse())
		_, err = agents.Load(write("name: a\ncommand: b\nurl: ws://127.0.0.1:$PORT/acp\n"))
		Expect(err).NotTo(HaveOccurred())
	})

	DescribeTable("says what is wrong and where",
		func(src, want string) {
			file := write(src)
			_, err := agents.Load(file)
			var m *agents.Mistake
			Expect(errors.As(err, &m)).To(BeTrue(), "%v", err)
			Expect(strings.Replace(err.Error(), file, "F", 1)).To(Equal(want))
		},
		Entry("nothing", "# empty\n", "F:1:1: the profile is empty (it needs at least name and command)"),
		Entry("a misspelt key", "name: a\ncomand: [b]\n",
			`F:2:1: unknown key "comand" in a profile (did you mean "command"?)`),
		Entry("a key of a key", "name: a\ncommand: b\nmodel:\n  wires: gemini\n",
			`F:4:3: unknown key "wires" in model (did you mean "wire"?)`),
		Entry("a promise", "name: a\ncommand: b\npolicy: {concurrent-prompts: wait}\n",
			`F:3:30: unknown promise "wait" (known: queue, reject, replace)`),
		Entry("a promise that no rule judges",
			"name: a\nurl: http://h/\nprotocol: ag-ui\npolicy: {concurrent-prompts: reject}\n",
			`F:4:9: policy applies only to ACP: no rule of ag-ui judges a promise`),
		Entry("a question about no tool", "name: a\ncommand: b\npolicy: {asks: [write_fil]}\n",
			`F:3:17: there is no neutral tool "write_fil" (did you mean "write_file"?)`),
		Entry("a wire format", "name: a\ncommand: b\nmodel: {wire: openai}\n",
			`F:3:15: unknown wire format "openai" (did you mean "openai-chat"?)`),
		Entry("a list for a text", "name: [a]\ncommand: b\n", `F:1:7: name must be a text, not a list`),
		Entry("a text for a mapping", "name: a\ncommand: b\nenv: A=b\n", `F:3:6: env must be a mapping, not "A=b"`),
		Entry("a mapping for a word", "name: a\ncommand: [b, {c: d}]\n",
			`F:2:14: a word of command must be a text, not a mapping`),
		Entry("a duration", "name: a\ncommand: b\ntimeouts: {start: 20}\n",
			`F:3:19: timeouts.start must be a duration such as 20s or 1m30s, not 20`),
		Entry("a variable", "name: a\ncommand: b\nenv: {A: $LMM/v1}\n",
			`F:3:10: unknown variable "$LMM" (did you mean "LLM"?; $$ is a dollar)`),
		Entry("a neutral tool", "name: a\ncommand: b\ntools: {writefile: w}\n",
			`F:3:9: unknown key "writefile" in tools (did you mean "write_file"?)`),
		Entry("an argument of one", "name: a\ncommand: b\ntools: {write_file: {name: w, args: {p: $paht}}}\n",
			`F:3:37: write_file has no argument "paht" (did you mean "path"?)`),
		Entry("an argument to transform",
			"name: a\ncommand: b\ntools: {write_file: {name: w, args: {p: '${paht|shell}'}}}\n",
			`F:3:37: write_file has no argument "paht" (did you mean "path"?)`),
		Entry("a transformation", "name: a\ncommand: b\ntools: {write_file: {name: w, args: {p: '${path|shel}'}}}\n",
			`F:3:37: unknown transformation "shel" in ${path|shel} (did you mean "shell"?)`),
		Entry("what nobody asks of a tool", "name: a\ncommand: b\ntools: {write_file: {name: w, cannot: [overwrit]}}\n",
			`F:3:40: write_file has no ability "overwrit" (did you mean "overwrite"?)`),
		Entry("a tool without a name", "name: a\ncommand: b\ntools: {write_file: {args: {p: $path}}}\n",
			`F:3:9: tools.write_file has no name`),
		Entry("a pattern", "name: a\ncommand: b\nnormalize: {replace: [{pattern: '(', with: x}]}\n",
			"F:3:33: pattern: missing closing ): `(`"),
		Entry("a path out of HOME", "name: a\ncommand: b\nhome: {../x: y}\n",
			`F:3:8: "../x" is not a path below HOME: use slashes, no leading slash and no ..`),
		Entry("caches", "name: a\ncommand: b\ncaches: no\n", `F:3:9: caches is host (the default) or none, not "no"`),
		Entry("no command", "name: a\n", "F:1:1: the profile has no command"),
		Entry("no URL", "name: a\nurl: h/x\n",
			`F:2:6: "h/x" is not the URL of an agent: expected http, https, ws or wss, and a host (such as `+
				`http://127.0.0.1:8000/agent)`),
		Entry("no name", "command: a\n", "F:1:1: the profile has no name"),
		Entry("a name for no folder", "name: My Agent\ncommand: b\n",
			`F:1:7: a name consists of small letters, digits, dots, dashes and underscores, not "My Agent" (such `+
				`as my-agent)`),
		Entry("a key twice", "name: a\ncommand: b\nname: c\n", `F:3:1: mapping key "name" already defined at [1:1]`),
		Entry("no YAML", "name: a\n  b: [\n", "F:1:7: mapping value is not allowed in this context"),
		Entry("a second document", "name: a\ncommand: b\n---\nname: c\n",
			"F:4:1: a second document begins here, and acp-test reads only one"),
		Entry("a file of known failures that is not there", "name: a\ncommand: b\nknown-failures: k.yaml\n",
			"F:3:17: reading k.yaml: no such file or directory"),
	)

	It("says that its file is not there", func() {
		_, err := agents.Load("/no/such.yaml")
		Expect(err).To(MatchError("reading profile /no/such.yaml: no such file or directory"))
	})
})

var _ = Describe("a known failure", func() {
	const src = `
- scenario: load/*
  rule: LOAD-REPLAY
  reason: the replay comes after the answer
  link: https://example.com/1
  expires: 2027-01-31
- {scenario: cancel/**, check: ends-cancelled, reason: "now and then", flaky: true}
`
	It("names scenarios, a check or a rule, and why", func() {
		list, err := agents.ParseKnownFailures("k.yaml", []byte(src))
		Expect(err).NotTo(HaveOccurred())
		Expect(list).To(HaveLen(2))
		Expect(list[0].Covers("load/fresh", "LOAD-REPLAY")).To(BeTrue())
		Expect(list[0].Covers("load/deep/fresh", "LOAD-REPLAY")).To(BeFalse())
		Expect(list[0].Covers("load/fresh", "OTHER")).To(BeFalse())
		Expect(list[0].Expired(time.Date(2027, 1, 30, 23, 0, 0, 0, time.UTC))).To(BeFalse())
		Expect(list[0].Expired(time.Date(2027, 1, 31, 0, 0, 0, 0, time.UTC))).To(BeTrue())
		Expect(list[0].Line).To(Equal(2))
		Expect(list[1].Covers("cancel/deep/twice", "cancel/deep/twice#ends-cancelled")).To(BeTrue())
		Expect(list[1].Expired(time.Now())).To(BeFalse())
		Expect(list[1].Flaky).To(BeTrue())
	})

	It("comes with its profile", func() {
		file := write("name: a\ncommand: b\nknown-failures: k.yaml\n")
		Expect(os.WriteFile(filepath.Join(filepath.Dir(file), "k.yaml"), []byte(src), 0o644)).To(Succeed())
		p, err := agents.Load(file)
		Expect(err).NotTo(HaveOccurred())
		Expect(p.KnownFailures).To(HaveLen(2))
		Expect(p.KnownFailures[0].File).To(Equal(filepath.Join(filepath.Dir(file), "k.yaml")))
	})

	DescribeTable("says what is wrong and where",
		func(src, want string) {
			_, err := agents.ParseKnownFailures("k.yaml", []byte(src))
			Expect(err).To(MatchError(want))
		},
		Entry("no reason", "- {scenario: a, rule: B}\n", "k.yaml:1:3: a known failure needs a reason"),
		Entry("check and rule", "- {scenario: a, rule: B, check: c, reason: d}\n",
			"k.yaml:1:3: a known failure needs either a check, a rule or a cause"),
		Entry("no scenario", "- {rule: B, reason: d}\n",
			"k.yaml:1:3: a known failure needs a scenario (an id or a glob such as load/*) unless it names a cause"),
		Entry("a misspelt key", "- {scenari: a}\n",
			`k.yaml:1:4: unknown key "scenari" in a known failure (did you mean "scenario"?)`),
		Entry("a date", "- {scenario: a, expires: soon}\n",
			`k.yaml:1:26: expires must be a date such as 2027-01-31, not "soon"`),
		Entry("flaky", "- {scenario: a, flaky: maybe}\n", `k.yaml:1:24: flaky must be true or false, not "maybe"`),
		Entry("no list", "scenario: a\n", "k.yaml:1:1: the file of known failures must be a list, not a mapping"),
	)
})

func FuzzProfile(f *testing.F) {
	for _, name := range agents.Names() {
		src, err := os.ReadFile(filepath.Join("profiles", name+".yaml"))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(src)
	}
	f.Add([]byte("name: a\ncommand: b\nlanes:\n  x: {when: {user: y}}\nenv: {A: $LLM}\n"))
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, src []byte) {
		file := filepath.Join(dir, "p.yaml")
		if err := os.WriteFile(file, src, 0o600); err != nil {
			t.Fatal(err)
		}
		p, err := agents.Load(file)
		var m *agents.Mistake
		switch {
		case err == nil && (p.Name == "" || len(p.Command) == 0):
			t.Fatalf("a profile without name or command: %+v", p)
		case errors.As(err, &m) && (m.Line < 1 || m.Column < 1):
			t.Fatalf("no place: %v", err)
		}
	})
}

func FuzzKnownFailures(f *testing.F) {
	f.Add([]byte("- {scenario: a/*, rule: B, reason: c, expires: 2027-01-01, flaky: true}\n"))
	f.Fuzz(func(t *testing.T, src []byte) {
		list, err := agents.ParseKnownFailures("k.yaml", src)
		if err != nil {
			return
		}
		for _, k := range list {
			k.Covers("a/b", "B")
		}
	})
}
