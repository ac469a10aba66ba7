//go:build unix

package main_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/acp-test/acp-test/scenarios/results"
)

var _ = Describe("init", func() {
	var p *place
	BeforeEach(func() {
		p = newPlace()
		p.write("bin/my agent", "#!/bin/sh\necho \"here: $1 in $PWD\" >&2\nexec "+program+" refagent\n")
	})
	wrote := func(ciFile string) {
		GinkgoHelper()
		for _, name := range []string{"acp-test.yaml", "acp/hello.txtar", "acp/cancel.txtar", ".gitignore", ciFile} {
			Expect(filepath.Join(p.dir, name)).To(BeARegularFile())
		}
	}

	It("writes what testing needs, and what it wrote runs", func() {
		got := p.run("init", "--from", "latest", "--name", "mine", "--", "./bin/my agent", "--acp $X")
		Expect(got.code).To(Equal(0), got.out+got.err)
		Expect(got.out).To(ContainSubstring("wrote acp/mine.yaml\n"))
		wrote(".github/workflows/acp.yml")
		Expect(p.read("acp/golden/mine/acp/hello.golden")).To(ContainSubstring(`"Hello from the model."`))
		Expect(p.read("acp/golden/mine/acp/cancel.golden")).To(ContainSubstring("cancelled"))
		again := p.run("run", "acp", "--strict", "--golden-required", "--fresh")
		Expect(again.code).To(Equal(0), again.out+again.err)
		Expect(p.read("acp-test-out/acp/hello/stderr.txt")).To(ContainSubstring("here: --acp $X in " + p.dir))
		Expect(p.run("lint", "acp").code).To(Equal(0))
		// Also from a folder below.
		here := p.dir
		p.dir = filepath.Join(here, "bin")
		Expect(p.run("run", "../acp", "--golden-required").code).To(Equal(0))
	})

	It("writes what a first turn shows, and the profile passes when it is used", func() {
		got := p.run("init", "--ci", "none", "--name", "mine", "--", "./bin/my agent")
		Expect(got.code).To(Equal(0), got.out+got.err)
		Expect(got.out).To(HavePrefix("learned: acp-test reference agent 1.0.0 uses wire format openai-chat and " +
			"offers its model "))
		written := p.read("acp/mine.yaml")
		Expect(written).To(ContainSubstring("env:\n  OPENAI_API_KEY: $KEY\n  OPENAI_BASE_URL: $LLM/v1\n" +
			"model: {wire: openai-chat}\n"))
		Expect(written).To(ContainSubstring("\n  write_file: {name: write_file, args: {content: $content, " +
			"path: $path}}\n"))
		Expect(written).To(ContainSubstring("\n  mcp: {name: mcp__$server__$tool}\n"))
		Expect(written).To(ContainSubstring("\n# The agent advertises these capabilities: loadSession, "))
		used := p.run("run", "--suite", "tool-calls", "--suite", "mcp", "--suite", "elicitation", "--strict", "-q")
		Expect(used.code).To(Equal(0), used.out+used.err)
		for _, r := range p.results().Results {
			// Sessions of this agent open before their servers are there.
			Expect(r.Verdict == results.Skip).To(Equal(r.ID == "mcp/slow-start-beside"), r.ID)
		}
	})

	DescribeTable("says in the profile", func(agent string, code int, want ...string) {
		p.write("bin/other", "#!/bin/sh\n"+strings.ReplaceAll(agent, "AGENT", program+" refagent")+"\n")
		got := p.run("init", "--ci", "none", "--", "./bin/other")
		Expect(got.code).To(Equal(code), got.out+got.err)
		for _, text := range want {
			Expect(p.read("acp/other.yaml")).To(MatchRegexp(text))
		}
	},
		Entry("what a shipped one knows of the agent", "AGENT | sed -u s/acp-test-refagent/quill/", 0,
			`# From the profile ts-agent of acp-test, `, `\n  QUILL_HOME: \$HOME/\.quill\n`),
		Entry("how it is logged in to", "exec AGENT --liberty login-first", 0,
			`# The agent requires a login; its methods: \w.*\.\nauth: [\w-]+\n`, `\nmodel: {wire: openai-chat}\n`),
		Entry("that it did not reach its model", "unset OPENAI_BASE_URL; exec AGENT", 2,
			`# missing: the agent did not reach the fake model, \$LLM\.`, `# incomplete: the agent's first turn failed: `),
		Entry("that it did not start", "exit 3", 1,
			`# incomplete: the agent's first turn failed: expected an (answer to initialize|agent that reads its input)`),
	)

	It("asks at a terminal for what the command line and the repository leave open", func() {
		t := p.atTerminal("init", "--from", "latest")
		t.sees(`How is your agent started\? `, "'./bin/my agent' --acp\n")
		t.sees(`Which CI system \(github, gitlab, jenkins, forgejo, woodpecker, azure, none\)\? \[github\] `,
			"gitlab\n")
		t.sees("Commit these files", "")
		Expect(status(t.Wait())).To(Equal(0))
		wrote(".gitlab-ci.yml")
		Expect(filepath.Join(p.dir, "acp/my-agent.yaml")).To(BeARegularFile())
	})

	It("asks nothing elsewhere, and writes nothing in a dry run", func() {
		got := p.with("x\n", "init", "--from", "latest", "--dry-run", "--", "./bin/my agent")
		Expect([]any{got.code, got.err}).To(Equal([]any{0, ""}))
		Expect(got.out).To(ContainSubstring("would write acp/my-agent.yaml:\n  # How to run the agent"))
		Expect(filepath.Join(p.dir, "acp-test.yaml")).NotTo(BeAnExistingFile())
	})

	It("can be run again for another CI system", func() {
		Expect(p.run("init", "--ci", "none", "--", "./bin/my agent").code).To(Equal(0))
		before := p.read("acp-test.yaml")
		Expect(p.run("init", "--ci", "azure", "--from", "1.2.3")).
			To(Equal(ended{0, "azure-pipelines.yml assumes: release 1.2.3 is published at " +
				"https://github.com/acp-test/acp-test/releases\nwrote azure-pipelines.yml\n\n" +
				"acp-test.yaml existed already. Commit the new file.\n", ""}))
		Expect(p.read("acp-test.yaml")).To(Equal(before))
		Expect(p.run("init", "--ci", "azure", "--from", "1.2.3").err).
			To(Equal("acp-test: init: these files exist already: azure-pipelines.yml; nothing was written\n"))
		Expect(p.run("init", "--ci", "none").err).
			To(Equal("acp-test: init: acp-test.yaml exists already, and with --ci none there is nothing " +
				"else to write\n"))
	})

	DescribeTable("reads from the repository what the agent is called, how it is started and built, and where",
		func(files map[string]string, name, command, ci string, contents ...string) {
			for name, text := range files {
				p.write(name, text)
			}
			got := p.run("init", "--dry-run", "--from", "latest")
			Expect([]any{got.code, got.err}).To(Equal([]any{0, ""}))
			Expect(got.out).To(HavePrefix("the agent is started by: " + command + "\n"))
			Expect(got.out).To(ContainSubstring("would write " + ci + ":\n"))
			Expect(got.out).To(ContainSubstring("\n  name: " + name + "\n"))
			for _, text := range contents {
				Expect(got.out).To(ContainSubstring(text))
			}
		},
		Entry("npm, a program", map[string]string{"package.json": `{"bin": {"b": "./dist/b.js", "a": "./dist/a.js"}, ` +
			`"scripts": {"build": "tsc"}}`, "package-lock.json": "{}",
			".git/config": "[remote \"origin\"]\n\turl = git@gitlab.example:x/y.git\n"},
			"a", "node dist/a.js", ".gitlab-ci.yml", "image: node:22\n", "    - npm ci\n      - npm run build\n",
			`npm_config_cache: "$CI_PROJECT_DIR/.npm"`),
		Entry("pnpm, a script", map[string]string{"package.json": `{"name": "@me/my-agent", "scripts": {"start": "x"}}`,
			"pnpm-lock.yaml": "", ".github/workflows/x.yml": ""},
			"my-agent", "pnpm run --silent start", ".github/workflows/acp.yml", "uses: actions/setup-node@v4",
			"with: {path: .pnpm-store, key: \".pnpm-store-${{ hashFiles('pnpm-lock.yaml') }}\"}",
			"- run: corepack enable && pnpm install --frozen-lockfile"),
		Entry("uv", map[string]string{"pyproject.toml": "[project]\nname = 'my-agent'\n[project.scripts]\n" +
			"agent = 'my_agent:main'\n", "uv.lock": "", "Jenkinsfile.old": "", ".woodpecker/x.yml": ""},
			"agent", "uv run agent", ".woodpecker/acp.yml", "image: python:3.13\n", "- pip install uv\n",
			"- mkdir -p .bin && curl -fsSL https://github.com/acp-test/acp-test/releases/latest/download/acp-test-lin"+
				"ux-amd64.tar.gz | tar -xz -C .bin --strip-components=1"),
		Entry("a Python module", map[string]string{"pyproject.toml": "[project]\nname = 'my-agent'\n",
			".forgejo/x": ""}, "my-agent", "python -m my_agent", ".forgejo/workflows/acp.yml", "setup-python@v5",
			"- run: pip install .\n"),
		Entry("Rust", map[string]string{"Cargo.toml": "[package]\nname = 'pkg'\n[[bin]]\nname = 'agent'\n",
			"Cargo.lock": "", ".git/config": "url = https://dev.azure.com/x\n"}, "agent", "./target/release/agent",
			"azure-pipelines.yml", "container: rust:1\n",
			"inputs: {key: '\".cargo\" | Cargo.lock', path: $(Pipeline.Workspace)/.cargo}",
			"- script: cargo build --release\n"),
		Entry("Go", map[string]string{"go.mod": "module x\n", "go.sum": "", "cmd/agent/main.go": "package main"},
			"agent", "go run ./cmd/agent", ".github/workflows/acp.yml", "- run: go build ./...\n"),
	)

	It("finds an agent that does not look at a cancel, and keeps the golden of what is right", func() {
		p.write("bin/careless", "#!/bin/sh\nexec "+program+" refagent --fault cancel-end-turn\n")
		got := p.run("init", "--ci", "none", "--name", "mine", "--", "./bin/careless")
		Expect(got.code).To(Equal(1), got.out+got.err)
		Expect(got.out).To(MatchRegexp(`FAIL +acp/cancel `))
		Expect(filepath.Join(p.dir, "acp/golden/mine/acp/hello.golden")).To(BeARegularFile())
		Expect(filepath.Join(p.dir, "acp/golden/mine/acp/cancel.golden")).NotTo(BeAnExistingFile())
	})

	It("leaves out of git what the language makes, where there is no list of that", func() {
		p.write("package.json", "{}")
		Expect(p.run("init", "--ci", "none", "--dry-run", "--", "x").out).
			To(ContainSubstring("would write .gitignore:\n  node_modules/\n  acp-test-out*/\n  repro/\n"))
		p.write(".gitignore", "mine\n")
		Expect(p.run("init", "--ci", "none", "--dry-run", "--", "x").out).NotTo(ContainSubstring(".gitignore"))
	})

	It("is no false green: it says how few scenarios ran, and the next run is of all suites", func() {
		got := p.run("init", "--ci", "none", "--name", "mine", "--", "./bin/my agent")
		Expect(got.code).To(Equal(0), got.out+got.err)
		suites := strings.Count(p.run("run", "--suite", "all", "--list").out, "\n")
		Expect(suites).To(BeNumerically(">", 200))
		Expect(got.out).To(HaveSuffix(fmt.Sprintf(
			"\nCommit these files.\nOnly 2 of %d scenarios ran, from acp/. Run all, as CI will: acp-test run\n",
			suites+2)))
		Expect(strings.Count(p.run("run", "--list").out, "\n")).To(Equal(suites + 2))
		Expect(strings.Count(p.run("run", "--list", "--", "./bin/my agent").out, "\n")).To(Equal(suites + 2))
		Expect(strings.Count(p.run("run", "--list", "acp").out, "\n")).To(Equal(2))
		Expect(p.run("run", "--suite", "al", "--list").err).To(ContainSubstring("there is no suite of that name"))

		By("with a file that names scenarios and no suite")
		p.write("acp-test.yaml", "agent: acp/mine.yaml\nscenarios: [acp]\n")
		Expect(p.run("run").out).To(ContainSubstring(fmt.Sprintf(
			"\nacp-test.yaml selects only these scenarios; acp-test run --suite all runs the %d scenarios of "+
				"the suites\n", suites)))
	})

	It("leaves flags that are not about its agent what they are", func() {
		p.write("acp-test.yaml", "agent: acp/none-such.yaml\nscenarios: [acp]\n")
		p.write("acp/hello.txtar", good)
		Expect(p.run("run", "acp", "--fault", "cancel-end-turn").code).To(Equal(0))
		got := p.run("upgrade", "--agent", "reference", "--run", "xyzzy")
		Expect(got.err).To(ContainSubstring("in acp-v1: none of "))
	})

	// steps runs the commands of a GitHub workflow that init wrote, as CI does.
	steps := func(p *place) (out string, code int) {
		GinkgoHelper()
		p.write("acp-test.yaml", strings.Replace(p.read("acp-test.yaml"), "suites: all", "suites: [content]", 1))
		var lines []string
		for _, step := range regexp.MustCompile(`(?m)^ +- run: (.*)$`).
			FindAllStringSubmatch(p.read(".github/workflows/acp.yml"), -1) {
			lines = append(lines, step[1])
		}
		c := exec.Command("bash", "-euc", strings.Join(lines, "\n"))
		c.Dir, c.Env = p.dir, append(p.env, "GITHUB_STEP_SUMMARY=summary.md")
		text, err := c.CombinedOutput()
		return string(text), status(err)
	}

	It("writes CI that takes the program from a tarball, and works", func() {
		p.write("acp-test-linux-amd64/acp-test", "#!/bin/sh\nexec "+program+" \"$@\"\n")
		Expect(os.Chmod(filepath.Join(p.dir, "acp-test-linux-amd64/acp-test"), 0o755)).To(Succeed())
		tar := exec.Command("tar", "-czf", "tool.tgz", "acp-test-linux-amd64")
		tar.Dir = p.dir
		Expect(tar.Run()).To(Succeed())
		got := p.run("init", "--ci", "github", "--from", "tool.tgz", "--", "./bin/my agent")
		Expect(got.code).To(Equal(0), got.out+got.err)
		Expect(got.out).To(HavePrefix(".github/workflows/acp.yml assumes: tool.tgz is committed, and CI runs on the " +
			"system it was built for\n"))
		out, code := steps(p)
		Expect(code).To(Equal(0), out)
		Expect(p.read("summary.md")).To(ContainSubstring("pass"))
		Expect(p.results().Counts.Pass).To(BeNumerically(">", 2))
	})

	It("writes CI that builds the program from a checkout's origin, and works", func() {
		oneOf(6)
		p.write("src/go.mod", "module github.com/acp-test/acp-test\n")
		p.write("src/cmd/acp-test/main.go",
			"package main\n\nimport \"os\"\n\nfunc main() { os.WriteFile(\"ran\", []byte(os.Args[1]), 0o644) }\n")
		for _, git := range []string{"init -q .", "config user.email a@b.c", "config user.name a", "add -A",
			"commit -qm a",
			"remote add origin https://me:token@git.example/acp-test",
			"config --file " + p.dir + "/home/.gitconfig url." + p.dir +
				"/src.insteadOf https://git.example/acp-test"} {
			c := exec.Command("git", append([]string{"-C", filepath.Join(p.dir, "src")}, strings.Fields(git)...)...)
			c.Env = p.env
			Expect(os.MkdirAll(filepath.Join(p.dir, "home"), 0o755)).To(Succeed())
			out, err := c.CombinedOutput()
			Expect(err).NotTo(HaveOccurred(), string(out))
		}
		got := p.run("init", "--ci", "github", "--from", "src", "--", "./bin/my agent")
		Expect(got.code).To(Equal(0), got.out+got.err)
		Expect(got.out).To(MatchRegexp(`^\.github/workflows/acp\.yml assumes: CI has git and Go 1\.26, and may clone ` +
			`https://git\.example/acp-test, which has commit [0-9a-f]{12}\n`))
		p.env = append(p.env, "HOME="+filepath.Join(p.dir, "home"), "GOFLAGS=",
			"GOCACHE="+filepath.Join(p.dir, "cache"))
		out, code := steps(p)
		Expect(code).To(Equal(0), out)
		Expect(p.read("ran")).To(Equal("run"))
	})

	It("says where CI could get the program, instead of pointing at what is not there", func() {
		got := p.run("init", "--", "./bin/my agent")
		Expect(got.code).To(Equal(0), got.out+got.err)
		Expect(got.err).To(ContainSubstring("no CI file is written: this acp-test was built from a checkout that CI " +
			"cannot reach; say where CI gets it: --from CHECKOUT"))
		Expect(filepath.Join(p.dir, ".github")).NotTo(BeADirectory())
		p.write("local/go.mod", "module github.com/acp-test/acp-test\n")
		p.write("other.tgz", "text")
		for from, want := range map[string]string{
			"":             "init: this acp-test was built from a checkout that CI cannot reach",
			"local":        "CI cannot clone it from its origin",
			"acp":          "this is not a checkout of github.com/acp-test/acp-test",
			"no-such":      "no such file or directory; expected CHECKOUT",
			"other.tgz":    "expected acp-test-linux-amd64.tar.gz",
			"/bin/sh":      "copy the file into this repository, because CI sees only that",
			"acp/nonsense": "no such file",
		} {
			args := []string{"init", "--ci", "github"}
			if from != "" {
				args = append(args, "--from", from)
			}
			got := p.run(args...)
			Expect(got.code).To(Equal(2))
			Expect(got.err).To(ContainSubstring(want))
		}
	})

	It("overwrites nothing", func() {
		p.write("Jenkinsfile", "mine")
		got := p.run("init", "--ci", "jenkins", "--from", "latest", "--", "./bin/my agent")
		Expect(got).To(Equal(ended{2, "Jenkinsfile assumes: release latest is published at " +
			"https://github.com/acp-test/acp-test/releases\n",
			"acp-test: init: these files exist already: Jenkinsfile; nothing was written\n"}))
		Expect(p.read("Jenkinsfile")).To(Equal("mine"))
		Expect(filepath.Join(p.dir, "acp-test.yaml")).NotTo(BeAnExistingFile())
	})

	It("says what to do when the agent does not pass", func() {
		got := p.run("init", "--ci", "none", "--", "sh", "-c", "exit 3")
		Expect(got.code).To(Equal(1))
		Expect(got.out).To(And(HavePrefix("learned nothing: "),
			ContainSubstring("does not pass its first scenarios yet")))
		Expect(filepath.Join(p.dir, "acp/sh.yaml")).To(BeARegularFile())
	})

	DescribeTable("refuses", func(in, want string, args ...string) {
		got := p.with(in, append([]string{"init"}, args...)...)
		Expect(got.code).To(Equal(2))
		Expect(got.err).To(ContainSubstring(want))
	},
		Entry("no command", "", "the agent's command is missing, and no package.json, pyproject.toml, Cargo.toml or "+
			"go.mod here names it"),
		Entry("an unknown CI system", "", `--ci: there is no CI system "githb" (did you mean "github"?)`, "--ci",
			"githb", "--", "x"),
		Entry("a bad name", "", `--name "A b"`, "--name", "A b", "--", "x"),
		Entry("a word that is no command", "", "the agent's command belongs after --", "x"),
	)

	It("writes what ci/ shows", func() {
		for ci, file := range map[string]string{"gitlab": "gitlab.yml", "jenkins": "Jenkinsfile",
			"github": "github.yml", "forgejo": "forgejo.yml",
			"woodpecker": "woodpecker.yml", "azure": "azure.yml"} {
			got := p.run("init", "--ci", ci, "--from", "latest", "--dry-run", "--", "./bin/my agent")
			sample := filepath.Join("..", "..", "ci", "samples", file)
			text := regexp.MustCompile(`(?s)would write (\.git[hl]|\.f|\.w|azure|Jenk)[^\n]*:\n(.*?\n)(would|$)`).
				FindStringSubmatch(got.out + "would")[2]
			text = strings.ReplaceAll(strings.TrimPrefix(text, "  "), "\n  ", "\n")
			want, err := os.ReadFile(sample)
			Expect(err).NotTo(HaveOccurred())
			Expect(text).To(Equal(string(want)), file)
			Expect(text).To(MatchRegexp(`--budget 60s|budget: .*'60s'`), file)
		}
	})
})
