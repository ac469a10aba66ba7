package agents_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/acp-test/acp-test/agents"
)

var _ = DescribeTable("an unknown agent is named after",
	func(command, want string) {
		p := agents.AdHoc(strings.Fields(command))
		Expect(p.Name).To(Equal(want))
		Expect(p.Tools).To(BeNil())
		Expect(p.Model.Wire).To(BeEmpty())
		Expect(p.KnownFailures).To(BeEmpty())
	},
	Entry("its program", "./my-agent --acp", "my-agent"),
	Entry("its program on Windows", `C:\bin\My_Agent.exe`, "my_agent"),
	Entry("its package", "npx -y @scope/my-agent@1.2.3 --acp", "my-agent"),
	Entry("its package, named by a flag", "npx --package=@scope/tool@1 tool-bin", "tool"),
	Entry("its package, named by another", "npx -p my-agent agent", "my-agent"),
	Entry("its Python package", "uvx --from my-agent==1.0 agent", "my-agent"),
	Entry("its Python package alone", "uvx my-agent@latest", "my-agent"),
	Entry("its script", "node agents/coder.mjs", "coder"),
	Entry("the folder of its script", "node /srv/my-agent/dist/index.js --acp", "my-agent"),
	Entry("the folder above", "node ./packages/coder/dist/bin/cli.js", "coder"),
	Entry("a script whose folders say nothing", "node dist/index.js", "index"),
	Entry("its Python script", "python3.12 my_agent.py", "my_agent"),
	Entry("its module", "python -u -m my_agent", "my_agent"),
	Entry("its script under uv", "uv run --quiet agent.py", "agent"),
	Entry("its module under uv", "uv run python -m coder", "coder"),
	Entry("its script under deno", "deno run -A src/coder.ts", "coder"),
	Entry("what env starts", "env A=b B=c ./coder", "coder"),
	Entry("its Go package", "go run ./cmd/coder", "coder"),
	Entry("its binary", "cargo run --bin coder", "coder"),
	Entry("its jar", "java -jar build/coder.jar", "coder"),
	Entry("the shell that runs it", "sh -c true", "sh"),
	Entry("nothing fit for a name", "./äöü", "agent"),
	Entry("node alone", "node", "node"),
	Entry("npx alone", "npx -y", "npx"),
)

var _ = It("an agent of any provider finds the model server, and no key leads elsewhere", func() {
	env := agents.AdHoc([]string{"./a"}).Env
	Expect(env).To(And(HaveKeyWithValue("OPENAI_BASE_URL", "$LLM/v1"), HaveKeyWithValue("OPENROUTER_API_KEY", "$KEY"),
		HaveKeyWithValue("ANTHROPIC_BASE_URL", "$LLM"), HaveKeyWithValue("GEMINI_API_KEY", "$KEY")))
	for name, value := range env {
		provider, _, _ := strings.Cut(name, "_")
		Expect(value).To(BeElementOf("$LLM", "$LLM/v1", "$KEY"), name)
		Expect(env).To(Or(HaveKey(provider+"_BASE_URL"), HaveKey(provider+"_GEMINI_BASE_URL")), name)
	}
})

var _ = It("an agent that a launcher starts has time to be unpacked", func() {
	Expect(agents.AdHoc([]string{"npx", "a"}).Timeouts.Start).
		To(BeNumerically(">", agents.AdHoc([]string{"./a"}).Timeouts.Start))
})

var _ = Describe("an editor's settings", func() {
	It("reads the older form, with the environment inside the command", func() {
		profiles, _, err := agents.ParseSettings("s.json",
			[]byte(`{"agent_servers": {"x": {"command": {"path": "/bin/x", "args": ["-a"], "env": {"K": "V"}}}}}`))
		Expect(err).NotTo(HaveOccurred())
		Expect(profiles).To(HaveLen(1))
		Expect(profiles[0].Command).To(Equal([]string{"/bin/x", "-a"}))
		Expect(profiles[0].Env).To(HaveKeyWithValue("K", "V"))
	})

	It("name agents", func() {
		profiles, skipped, err := agents.ParseSettings("settings.json", []byte(`{
  // where my agents are
  "theme": "One Dark",
  "agent_servers": {
    "My Agent": {
      "type": "custom",
      "command": "node",
      "args": ["/srv/agent.js", "--acp"],
      "env": {"DEBUG": "1", "PRICE": "$5", "OPENAI_API_KEY": "sk-real", "MY_TOKEN": "real", "ANTHROPIC_BASE_URL": `+
			`"https://real"},
    },
    "old": {"command": {"path": "/bin/old", "args": ["-x"]}},
    "claude": {"type": "registry"},
    "empty": {"default_mode": "x"},
  },
}`))
		Expect(err).NotTo(HaveOccurred())
		Expect(skipped).To(Equal([]string{
			`claude: the editor installs this agent itself (type "registry"), so no command is named`,
			`empty: it has no command`,
		}))
		Expect(profiles).To(HaveLen(2))
		mine := profiles[0]
		Expect(mine.Name).To(Equal("my-agent"))
		Expect(mine.Title).To(Equal("My Agent"))
		Expect(mine.Command).To(Equal([]string{"node", "/srv/agent.js", "--acp"}))
		Expect(mine.Env).To(And(
			HaveKeyWithValue("DEBUG", "1"), HaveKeyWithValue("PRICE", "$$5"),
			HaveKeyWithValue("OPENAI_API_KEY", "$KEY"), HaveKeyWithValue("MY_TOKEN", "sk-test"),
			HaveKeyWithValue("ANTHROPIC_BASE_URL", "$LLM"),
		))
		Expect(profiles[1].Command).To(Equal([]string{"/bin/old", "-x"}))
	})

	DescribeTable("name agents in other forms too",
		func(src string) {
			profiles, _, err := agents.ParseSettings("s.json", []byte(src))
			Expect(err).NotTo(HaveOccurred())
			Expect(profiles).To(HaveLen(1))
			home, err := os.UserHomeDir()
			Expect(err).NotTo(HaveOccurred())
			Expect(profiles[0].Command).To(Equal([]string{filepath.Join(home, "bin/x"), "--acp"}))
		},
		Entry("as the whole of a file", `{"x": {"command": "~/bin/x", "args": ["--acp"]}}`),
		Entry("as a part that was copied out of a file", `
  // mine
  "agent_servers": {"x": {"command": "~/bin/x", "args": ["--acp"]}},
`),
	)

	It("have the mode and the model of an agent's sessions", func() {
		profiles, _, err := agents.ParseSettings("s.json",
			[]byte(`{"agent_servers": {"x": {"command": "y", "default_mode": "plan", "default_model": "small"}}}`))
		Expect(err).NotTo(HaveOccurred())
		Expect([]string{profiles[0].OwnMode, profiles[0].OwnModel}).To(Equal([]string{"plan", "small"}))
	})

	It("name MCP servers as an object, or as a list as in session/new", func() {
		want := []agents.Server{{Name: "a", Type: "stdio", Command: "x", Args: []string{"-s"},
			Pairs: [][2]string{{"K", "V"}}},
			{Name: "b", Type: "http", URL: "http://h", Pairs: [][2]string{{"A", "B"}}}}
		for _, src := range []string{
			`{"context_servers": {"a": {"command": "x", "args": ["-s"], "env": {"K": "V"}}, "b": {"url": "http://h", ` +
				`"headers": {"A": "B"}}}}`,
			`{"mcp_servers": [{"name": "a", "command": "x", "args": ["-s"], "env": [{"name": "K", "value": "V"}]},
  {"name": "b", "type": "http", "url": "http://h", "headers": [{"name": "A", "value": "B"}]}]}`,
		} {
			Expect(agents.ParseServers("s.json", []byte(src))).To(Equal(want))
		}
		_, err := agents.ParseServers("s.json", []byte(`{"mcpServers": [{"command": "x"}]}`))
		Expect(err).To(MatchError("s.json:1:17: each of mcpServers must have a name"))
	})

	DescribeTable("say what is wrong and where",
		func(src, want string) {
			_, _, err := agents.ParseSettings("s.json", []byte(src))
			Expect(err).To(MatchError(want))
		},
		Entry("no JSON", "{\n  \"a\": }\n", "s.json:2:8: invalid character '}' where a value should begin"),
		Entry("a number for arguments", "{\n \"agent_servers\": {\"x\": {\"command\": \"y\", \"args\": 1}}}",
			`s.json:2:50: agent_servers.x.args must be a list of texts`),
		Entry("a mistake in a part that was copied", "\"agent_servers\": {\"x\": {\"command\": 7}}",
			`s.json:1:36: agent_servers.x.command must be a text, not 7`),
		Entry("a list for a command", `{"agent_servers": {"x": {"command": ["y"]}}}`,
			`s.json:1:37: agent_servers.x.command must be a text, not ["y"]`),
	)
})

var _ = DescribeTable("a death before initialize is diagnosed:",
	func(stderr, want string) {
		if want == "" {
			Expect(agents.Diagnose(stderr)).To(BeEmpty())
			return
		}
		Expect(agents.Diagnose(stderr)).To(ContainSubstring(want))
	},
	Entry("nothing known", "panic: oh no", ""),
	Entry("no node", "env: ‘node’: No such file or directory", "needs the program node"),
	Entry("no node, as macOS says it", "env: node: No such file or directory", "needs the program node"),
	Entry("no command", "sh: 1: bun: not found", "program bun"),
	Entry("a spawn", "Error: spawn rg ENOENT", "program rg"),
	Entry("a module", "Error: Cannot find module '/srv/dist/index.js'", "Node cannot find /srv/dist/index.js"),
	Entry("a package", "Error [ERR_MODULE_NOT_FOUND]: Cannot find package 'zod' imported from /x.js",
		"Node cannot find zod"),
	Entry("a Python module", "ModuleNotFoundError: No module named 'acp.core'", "no module acp.core"),
	Entry("npm offline", "npm error code ENOTCACHED\nnpm error request to https://registry.example/x failed",
		"npm's cache"),
	Entry("npm without a network",
		"npm error request to https://registry.example/x failed, reason: getaddrinfo EAI_AGAIN registry.example\n"+
			"npm error code EAI_AGAIN", "npm's cache"),
	Entry("uv without a network", "error: Failed to fetch: `https://pypi.org/simple/acp/`", "uv's cache"),
	Entry("pyenv", "pyenv: version `3.12.1' is not installed (set by /x/.python-version)", "pyenv install 3.12.1"),
	Entry("rustup", "error: rustup could not choose a version of cargo to run", "RUSTUP_TOOLCHAIN"),
	Entry("an old Node", "SyntaxError: Unexpected token '??='", "too old"),
	Entry("a key", "Error: The FOO_API_KEY environment variable is missing or empty", "--env FOO_API_KEY=test"),
	Entry("a login", "You are not logged in. Run login first.", "--env NAME=test"),
	Entry("no provider", "Error: no providers configured. Run 'agent login'.",
		"--env NAME='$LLM'), or write a profile with the configuration file"),
	Entry("no model", "error: gpt-9 is not a configured model", "it has no model here"),
	Entry("a file of HOME", "ENOENT: no such file or directory, open '/run/home/.config/coder.json'",
		"looked for /run/home/.config/coder.json"),
	Entry("a library", "./agent: error while loading shared libraries: libssl.so.3: cannot open shared object file",
		"library libssl.so.3"),
	Entry("a flag", "Error: Unknown option '--acp'. To specify a positional argument", "does not know --acp"),
	Entry("an argument", "error: unexpected argument '--acp' found", "does not know --acp"),
	Entry("a command", "Error: unknown command \"acp\" for \"x\"", "does not know acp"),
	Entry("a flag in Go", "flag provided but not defined: -acp", "does not know -acp"),
	Entry("a terminal", "Fatal error: Cannot start TUI in TTY-less environment.",
		"which flag or subcommand makes it speak ACP"),
	Entry("another system", "cannot execute binary file: Exec format error", "another system"),
)

func FuzzSettings(f *testing.F) {
	f.Add([]byte(`{"agent_servers": {"a": {"command": "b", "args": ["c"], "env": {"K": "v"}}, "d": {"command": ` +
		`{"path": "e"}}}} // x`))
	f.Fuzz(func(t *testing.T, src []byte) {
		profiles, _, err := agents.ParseSettings("s.json", src)
		if err != nil {
			return
		}
		for _, p := range profiles {
			if p.Name == "" || len(p.Command) == 0 {
				t.Fatalf("a profile without name or command: %+v", p)
			}
		}
	})
}
