package agents_test

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"pgregory.net/rapid"

	"github.com/acp-test/acp-test/agents"
)

// program makes an executable file.
func program(parts ...string) string {
	GinkgoHelper()
	file := filepath.Join(parts...)
	Expect(os.MkdirAll(filepath.Dir(file), 0o755)).To(Succeed())
	Expect(os.WriteFile(file, []byte("#!/bin/sh\n"), 0o755)).To(Succeed())
	return file
}

// environment looks up a variable of a launch.
func environment(l agents.Launch) map[string]string {
	out := map[string]string{}
	for _, kv := range l.Env {
		k, v, _ := strings.Cut(kv, "=")
		out[k] = v
	}
	return out
}

var _ = Describe("a launch", func() {
	var s agents.Sandbox
	var dir string
	BeforeEach(func() {
		dir = GinkgoT().TempDir()
		s = agents.Sandbox{
			Work: "/run/work", Home: "/run/home", Temp: "/run/tmp", LLM: "http://127.0.0.1:1", Self: "/bin/acp-test",
			Cwd: dir,
			HostEnv: []string{"PATH=" + filepath.Join(dir, "bin"), "HOME=" + dir, "LANG=C", "LC_ALL=C", "TERM=xterm",
				"AWS_SECRET_ACCESS_KEY=s3cret", "EDITOR=vi"},
		}
		program(dir, "bin", "my-agent")
	})

	It("has nothing of the host but what is on the list", func() {
		l, err := (&agents.Profile{Name: "a", Command: []string{"my-agent"}}).Launch(s)
		Expect(err).NotTo(HaveOccurred())
		Expect(environment(l)).To(Equal(map[string]string{
			"PATH": filepath.Join(dir, "bin"), "LANG": "C", "LC_ALL": "C",
			"HOME": "/run/home", "TMPDIR": "/run/tmp", "TERM": "dumb", "NO_COLOR": "1",
		}))
		Expect(l.Dir).To(Equal("/run/work"))
		Expect(l.Path).To(Equal(filepath.Join(dir, "bin", "my-agent")))
		Expect(l.Env).To(Equal(slices.Sorted(slices.Values(l.Env))))
	})

	It("puts variables into words, environment and files", func() {
		p := &agents.Profile{
			Name: "a", Command: []string{"my-agent", "$LLM/v1", "$WORK", "100$$"},
			Env:  map[string]string{"URL": "$LLM", "T": "$TMP/x", "S": "$SELF"},
			Home: map[string]string{".a/b": `{"$$schema": "$HOME"}`},
		}
		l, err := p.Launch(s)
		Expect(err).NotTo(HaveOccurred())
		Expect(l.Args).To(Equal([]string{"http://127.0.0.1:1/v1", "/run/work", "100$"}))
		Expect(environment(l)).To(And(HaveKeyWithValue("URL", "http://127.0.0.1:1"),
			HaveKeyWithValue("T", "/run/tmp/x"), HaveKeyWithValue("S", "/bin/acp-test")))
		Expect(l.Files).To(Equal(map[string][]byte{".a/b": []byte(`{"$schema": "/run/home"}`)}))
	})

	It("gives a server a port that the system hands to nobody else, the same wherever it is named", func() {
		p := &agents.Profile{Name: "a", Command: []string{"my-agent", "$PORT"}, URL: "http://127.0.0.1:$PORT/",
			Env: map[string]string{"PORT": "$PORT"}}
		l, err := p.Launch(s)
		Expect(err).NotTo(HaveOccurred())
		port, err := strconv.Atoi(l.Args[0])
		Expect(err).NotTo(HaveOccurred())
		Expect(port).To(And(BeNumerically(">=", 1024), BeNumerically("<", 32768)))
		Expect(l.URL).To(Equal("http://127.0.0.1:" + l.Args[0] + "/"))
		Expect(environment(l)).To(HaveKeyWithValue("PORT", l.Args[0]))
	})

	It("leaves the dollars of a typed command alone", func() {
		l, err := agents.AdHoc([]string{"my-agent", "-c", "echo $$ $FOO $LLM"}).Launch(s)
		Expect(err).NotTo(HaveOccurred())
		Expect(l.Args).To(Equal([]string{"-c", "echo $$ $FOO http://127.0.0.1:1"}))
		Expect(l.Dir).To(Equal(dir), "it starts where the user is")
	})

	It("gives an unknown agent every provider's address and a dummy key", func() {
		l, err := agents.AdHoc([]string{"my-agent"}).Launch(s)
		Expect(err).NotTo(HaveOccurred())
		Expect(environment(l)).To(And(
			HaveKeyWithValue("OPENAI_BASE_URL", "http://127.0.0.1:1/v1"), HaveKeyWithValue("OPENAI_API_KEY", "sk-test"),
			HaveKeyWithValue("ANTHROPIC_BASE_URL", "http://127.0.0.1:1"),
			HaveKeyWithValue("ANTHROPIC_API_KEY", "sk-test"),
			HaveKeyWithValue("GOOGLE_GEMINI_BASE_URL", "http://127.0.0.1:1"),
			HaveKeyWithValue("GEMINI_API_KEY", "sk-test"),
		))
	})

	It("passes what the user names, the nearest to the command line last", func() {
		p := &agents.Profile{Name: "a", Command: []string{"my-agent"}, Env: map[string]string{"EDITOR": "ed", "X": "1"}}
		s.Pass = []string{"EDITOR", "AWS_SECRET_ACCESS_KEY"}
		s.Env = map[string]string{"X": "2", "HOME": "/elsewhere"}
		l, err := p.Launch(s)
		Expect(err).NotTo(HaveOccurred())
		Expect(environment(l)).To(And(HaveKeyWithValue("EDITOR", "vi"),
			HaveKeyWithValue("AWS_SECRET_ACCESS_KEY", "s3cret"), HaveKeyWithValue("X", "2"),
			HaveKeyWithValue("HOME", "/elsewhere")))
		s.Pass = []string{"NOPE"}
		_, err = p.Launch(s)
		Expect(err).To(MatchError("passing NOPE to a: this variable is not set"))
	})

	It("names the proxy, unless another one is named", func() {
		s.Proxy = "http://127.0.0.1:9"
		p := &agents.Profile{Name: "a", Command: []string{"my-agent"}}
		l, err := p.Launch(s)
		Expect(err).NotTo(HaveOccurred())
		for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"} {
			Expect(environment(l)).To(HaveKeyWithValue(name, s.Proxy))
		}
		Expect(environment(l)).To(And(HaveKeyWithValue("NO_PROXY", "127.0.0.1,localhost,::1"),
			HaveKeyWithValue("NODE_USE_ENV_PROXY", "1")))

		// One spelling is enough: programs differ in which one wins.
		s.Env = map[string]string{"https_proxy": "http://proxy.example:3128", "NODE_USE_ENV_PROXY": "0"}
		l, err = p.Launch(s)
		Expect(err).NotTo(HaveOccurred())
		Expect(environment(l)).To(And(HaveKeyWithValue("https_proxy", "http://proxy.example:3128"),
			HaveKeyWithValue("HTTP_PROXY", s.Proxy),
			HaveKeyWithValue("NODE_USE_ENV_PROXY", "0"), Not(HaveKey("HTTPS_PROXY"))))
	})

	It("knows which commands may fetch the agent first", func() {
		for program, fetches := range map[string]bool{"npx": true, "/usr/bin/uvx": true, "go": true, "my-agent": false,
			"node": false, "python3": false} {
			Expect(agents.AdHoc([]string{program, "x"}).Fetches()).To(Equal(fetches), program)
		}
	})

	It("passes caches by their location", func() {
		for _, d := range []string{".npm", ".cargo", "go/pkg/mod", ".cache/uv"} {
			Expect(os.MkdirAll(filepath.Join(dir, d), 0o755)).To(Succeed())
		}
		s.HostEnv = append(s.HostEnv, "VIRTUAL_ENV=/venv", "UV_CACHE_DIR=/uv", "NPM_CONFIG_REGISTRY=https://u:p@host")
		p := &agents.Profile{Name: "a", Command: []string{"my-agent"}}
		l, err := p.Launch(s)
		Expect(err).NotTo(HaveOccurred())
		env := environment(l)
		Expect(env).To(And(
			HaveKeyWithValue("npm_config_cache", filepath.Join(dir, ".npm")),
			HaveKeyWithValue("npm_config_prefer_offline", "true"),
			HaveKeyWithValue("CARGO_HOME", filepath.Join(dir, ".cargo")),
			HaveKeyWithValue("GOMODCACHE", filepath.Join(dir, "go/pkg/mod")),
			HaveKeyWithValue("UV_CACHE_DIR", "/uv"), HaveKeyWithValue("VIRTUAL_ENV", "/venv"),
		))
		Expect(env).NotTo(HaveKey("RUSTUP_HOME"))
		p.NoCaches = true
		l, err = p.Launch(s)
		Expect(err).NotTo(HaveOccurred())
		Expect(environment(l)).NotTo(Or(HaveKey("npm_config_cache"), HaveKey("VIRTUAL_ENV"), HaveKey("CARGO_HOME")))
	})

	It("never hands a secret of the host to the agent", func() {
		rapid.Check(GinkgoT(), func(t *rapid.T) {
			word := rapid.SampledFrom([]string{"OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "GITHUB_TOKEN",
				"NPM_TOKEN", "npm_config__authToken",
				"NPM_CONFIG_USERCONFIG", "UV_INDEX_URL", "PIP_INDEX_URL", "CARGO_REGISTRY_TOKEN", "GOPROXY", "GOAUTH",
				"NODE_OPTIONS", "SSH_AUTH_SOCK", "DATABASE_URL",
				"HTTP_PROXY", "LC_SECRET_x", "PATH_TOKEN", "HOME_KEY", "XDG_CONFIG_HOME", "AZURE_OPENAI_API_KEY",
				"LANGSMITH_API_KEY", "LD_PRELOAD"})
			any := rapid.StringMatching(`[A-Za-z_][A-Za-z0-9_]{0,12}(KEY|TOKEN|SECRET|PASSWORD|AUTH|CREDENTIALS)`)
			names := rapid.SliceOfN(rapid.OneOf(word, any), 1, 20).Draw(t, "names")
			box := s
			box.HostEnv = slices.Clone(s.HostEnv)
			for _, n := range names {
				box.HostEnv = append(box.HostEnv, n+"=the-secret-of-"+n)
			}
			for _, p := range []*agents.Profile{agents.AdHoc([]string{"my-agent"}),
				{Name: "a", Command: []string{"my-agent"}, Env: map[string]string{"A": "$LLM"}}} {
				l, err := p.Launch(box)
				if err != nil {
					t.Fatal(err)
				}
				for _, kv := range l.Env {
					if strings.Contains(kv, "the-secret-of-") {
						t.Fatalf("the agent got %s", kv)
					}
				}
			}
		})
	})
})

var _ = Describe("a program", func() {
	var s agents.Sandbox
	var dir string
	p := &agents.Profile{Name: "mine", Command: []string{"mine"}, Install: agents.Install{NPM: "mine@1.2.3"}}
	BeforeEach(func() {
		dir = GinkgoT().TempDir()
		s = agents.Sandbox{Cwd: filepath.Join(dir, "checkout", "deep"),
			HostEnv: []string{"PATH=" + filepath.Join(dir, "path"), "ACP_TEST_AGENTS=" + filepath.Join(dir, "agents")}}
		Expect(os.MkdirAll(s.Cwd, 0o755)).To(Succeed())
	})

	It("is looked for in $ACP_TEST_AGENTS, then the checkout, then PATH", func() {
		path := program(dir, "path", "mine")
		Expect(p.Locate(s)).To(Equal(agents.Found{Path: path, Where: agents.InPath}))
		checkout := program(dir, "checkout", "ci", "agents", "mine", "node_modules", ".bin", "mine")
		Expect(p.Locate(s)).To(Equal(agents.Found{Path: checkout, Where: agents.InCheckout,
			AgentDir: filepath.Join(dir, "checkout/ci/agents/mine")}))
		own := program(dir, "agents", "mine", "mine")
		Expect(p.Locate(s)).To(Equal(agents.Found{Path: own, Where: agents.InAgents,
			AgentDir: filepath.Join(dir, "agents/mine")}))
	})

	It("finds the interpreter installed beside it first", func() {
		program(dir, "checkout", "ci", "agents", "mine", "node_modules", ".bin", "mine")
		l, err := p.Launch(s)
		Expect(err).NotTo(HaveOccurred())
		Expect(environment(l)["PATH"]).
			To(Equal(filepath.Join(dir, "checkout/ci/agents/mine/node_modules/.bin") + ":" +
				filepath.Join(dir, "path")))
	})

	It("is missing with the command that installs it", func() {
		_, err := p.Locate(s)
		Expect(err).To(MatchError(`starting mine: no program "mine" in ` + filepath.Join(dir, "agents") +
			`, PATH; to fix it: npm install --global mine@1.2.3`))
		program(dir, "checkout", "ci", "agents", "install")
		Expect(os.MkdirAll(filepath.Join(dir, "checkout/ci/agents/mine"), 0o755)).To(Succeed())
		Expect(os.WriteFile(filepath.Join(dir, "checkout/ci/agents/mine/package.json"), []byte("{}"), 0o644)).
			To(Succeed())
		_, err = p.Locate(s)
		Expect(err).To(MatchError(HaveSuffix("to fix it: " + filepath.Join(dir, "checkout/ci/agents/install") +
			" mine")))
		var missing *agents.MissingError
		Expect(err).To(BeAssignableToTypeOf(missing))
	})

	It("may be a path from where the user is", func() {
		file := program(s.Cwd, "bin", "my-agent")
		Expect(agents.AdHoc([]string{"./bin/my-agent"}).Locate(s)).To(HaveField("Path", file))
		Expect(os.Chmod(file, 0o644)).To(Succeed())
		_, err := agents.AdHoc([]string{"./bin/my-agent"}).Locate(s)
		Expect(err).To(MatchError(HaveSuffix("to fix it: chmod +x " + file)))
		_, err = agents.AdHoc([]string{"./bin/none"}).Locate(s)
		Expect(err).To(MatchError(`starting none: no program "` + filepath.Join(s.Cwd, "bin/none") + `" in ` +
			filepath.Join(s.Cwd, "bin")))
	})

	It("of a profile on disk may be a path from the profile's folder", func() {
		file := write("name: a\ncommand: [./my-agent]\ndir: sub\n")
		want := program(filepath.Dir(file), "my-agent")
		q, err := agents.Load(file)
		Expect(err).NotTo(HaveOccurred())
		l, err := q.Launch(s)
		Expect(err).NotTo(HaveOccurred())
		Expect(l.Path).To(Equal(want))
		Expect(l.Dir).To(Equal(filepath.Join(filepath.Dir(file), "sub")))
	})

	It("is this one for the reference agent", func() {
		q, err := agents.Shipped("reference")
		Expect(err).NotTo(HaveOccurred())
		s.Self = "/opt/acp-test"
		l, err := q.Launch(s)
		Expect(err).NotTo(HaveOccurred())
		Expect(l.Path).To(Equal("/opt/acp-test"))
		Expect(l.Args).To(Equal([]string{"refagent"}))
		Expect(l.Found.Where).To(Equal(agents.InSelf))
	})

	It("of a profile gives way to a typed one", func() {
		file := program(s.Cwd, "other")
		l, err := p.WithCommand([]string{"./other", "$X"}).WithEnv(map[string]string{"A": "1"}).Launch(s)
		Expect(err).NotTo(HaveOccurred())
		Expect(l.Path).To(Equal(file))
		Expect(l.Args).To(Equal([]string{"$X"}))
		Expect(l.Dir).To(Equal(s.Cwd))
		Expect(environment(l)).To(HaveKeyWithValue("A", "1"))
		Expect(p.Command).To(Equal([]string{"mine"}), "the profile itself stays")
		Expect(p.Env).To(BeNil())
	})
})
