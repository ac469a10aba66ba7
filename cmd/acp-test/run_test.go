//go:build unix

package main_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"syscall"

	"github.com/creack/pty"
	"github.com/gofrs/flock"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/acp-test/acp-test/scenarios/results"
)

var _ = Describe("run", func() {
	var p *place
	BeforeEach(func() { p = newPlace() })

	Describe("the exit status", func() {
		It("is 0 when all passes, and everything is on disk", func() {
			p.write("s.txtar", good)
			got := p.run("run", "s.txtar")
			Expect(got.out).To(MatchRegexp(`(?m)^ok +s `))
			Expect([]any{got.code, got.err}).To(Equal([]any{0, ""}))
			for _, name := range []string{"results.json", "junit.xml", "report.html", "s/transcript.jsonl",
				"s/rendered.golden", "s/stderr.txt", "s/workspace.diff"} {
				Expect(filepath.Join(p.dir, "acp-test-out", name)).To(BeARegularFile())
			}
			run := p.results()
			Expect([]any{run.Command, run.Exit, run.Verdict, run.Counts.Pass}).
				To(Equal([]any{"acp-test run s.txtar", 0, results.Pass, 1}))
		})

		It("is 1 when something fails, and the failure says how to run it again", func() {
			p.write("a b.txtar", scenario("prompt 'Say hello.'", "await turn refusal"))
			got := p.run("run", "a b.txtar")
			Expect([]any{got.code, got.err}).To(Equal([]any{1, ""}))
			Expect(got.out).To(MatchRegexp(`(?m)^FAIL +a b `))
			again := p.results().Results[0].Rerun
			Expect(again).To(Equal(`acp-test run --run '^a b$' 'a b.txtar'`))
			Expect(got.out).To(ContainSubstring(again))
			c := exec.Command("sh", "-c", again)
			c.Dir, c.Env = p.dir, p.env
			Expect(status(c.Run())).To(Equal(1))
		})

		It("is 2 when nothing could be judged", func() {
			p.write("s.txtar", "needs agent:sessionCapabilities.fork\n"+good)
			got := p.run("run", "s.txtar")
			Expect(got.out).To(MatchRegexp(`(?m)^skip +s `))
			Expect(got.code).To(Equal(2))
		})

		It("is not about goldens with --golden none", func() {
			p := newPlace()
			p.write("s.txtar", good)
			got := p.run("run", "s.txtar", "--agent", "reference", "--golden", "none")
			Expect(got.code).To(Equal(0), got.out)
			Expect(got.out).NotTo(ContainSubstring("golden"))
			got = p.run("run", "s.txtar", "--agent", "reference", "--golden", "none", "--update")
			Expect(got).To(Equal(ended{2, "",
				"acp-test: --golden none contradicts --update and --golden-required, which need a folder\n"}))
			Expect(filepath.Join(p.dir, "none")).NotTo(BeADirectory())
		})

		It("is 1 when a golden is asked for and there is none", func() {
			p.write("s.txtar", good)
			Expect(p.run("run", "s.txtar", "--golden-required").code).To(Equal(1))
		})
	})

	Describe("an agent", func() {
		BeforeEach(func() { p.write("s.txtar", good) })

		It("that is not there is one message, and reports say so", func() {
			got := p.run("run", "s.txtar", "--", "./no-agent")
			Expect(got.code).To(Equal(2))
			Expect(got.err).To(MatchRegexp(`^acp-test: .*no-agent.*\n$`))
			run := p.results()
			Expect([]any{run.Exit, run.Verdict, len(run.Results)}).To(Equal([]any{2, results.Error, 0}))
			Expect(run.Notes[0]).To(ContainSubstring("no-agent"))
		})

		It("that exits at once is a failure that says so, with what it wrote", func() {
			got := p.run("run", "s.txtar", "--", "sh", "-c", "echo no licence >&2; exit 3")
			Expect(got.code).To(Equal(1))
			Expect(got.out).To(ContainSubstring("no licence"))
			got = p.run("run", "s.txtar", "--", "sh", "-c", "read line; echo no licence >&2; exit 3")
			Expect(got.code).To(Equal(1))
			Expect(got.out).To(MatchRegexp(`stderr +no licence`))
			Expect(got.out).To(ContainSubstring("exited with status 3"))
			Expect(p.read("acp-test-out/s/stderr.txt")).To(Equal("no licence\n"))
			Expect(p.read("acp-test-out/s/transcript.jsonl")).To(ContainSubstring(`"kind":"exit"`))
		})

		It("that prints a banner is told so", func() {
			p.write("agent.sh", "#!/bin/sh\necho Welcome to the agent\nexec "+program+" refagent\n")
			got := p.run("run", "s.txtar", "--", "./agent.sh")
			Expect(got.code).To(Equal(1))
			Expect(got.out).To(ContainSubstring("Welcome to the agent"))
		})

		It("nobody has a profile for is judged without goldens, and learned", func() {
			got := p.run("run", "s.txtar", "--", program, "refagent")
			Expect(got.code).To(Equal(0))
			Expect(got.out).To(ContainSubstring("openai-chat"))
			Expect(p.results().Agent.AdHoc).To(BeTrue())
		})

		It("may be the command of a profile", func() {
			got := p.run("run", "s.txtar", "--agent", "reference", "--env", "X=1", "--", "sh", "-c",
				"echo X is $X >&2; exec "+program+" refagent")
			Expect(got.code).To(Equal(0))
			Expect(p.read("acp-test-out/s/stderr.txt")).To(ContainSubstring("X is 1"))
			Expect(p.results().Agent.Profile).To(Equal("reference"))
		})

		It("logs in before its first session if it is told how", func() {
			login := func(flags ...string) ended {
				return p.run(append(append([]string{"run", "s.txtar", "--env", "ACP_TEST_REFAGENT_LOGIN=agent"},
					flags...), "--", program, "refagent")...)
			}
			got := login()
			Expect(got.code).To(Equal(2))
			Expect(got.out).To(ContainSubstring("log in with --auth-method; it offers agent"))
			Expect(login("--auth-method", "agent").code).To(Equal(0))
			Expect(p.read("acp-test-out/s/transcript.jsonl")).To(ContainSubstring(`"methodId":"agent"`))
			got = login("--auth-method", "other")
			Expect(got.code).To(Equal(2))
			Expect(got.out).To(ContainSubstring(`the agent offers no login method "other" (it offers ` +
				`agent); choose one`))
		})

		It("runs a login in a terminal", func() {
			login := func(lines string) ended {
				p.write("login.txtar", "client auth.terminal=true\n"+lines)
				return p.run("run", "login.txtar", "--env", "ACP_TEST_REFAGENT_LOGIN=terminal", "--", program, "refagent")
			}
			const locked = "request session/new '{\"cwd\": \"$WORK\", \"mcpServers\": []}' as N\n" +
				"await response N code=-32000\n"
			got := login(locked + "login typed\nsession new a\n")
			Expect(got.code).To(Equal(0), got.out)
			got = login(locked + "check a\nlogin ''\n")
			Expect(got.out).To(ContainSubstring(`expected the login to end with status 0, got exit status 2; it printed "Key: `))
			Expect(got.code).To(Equal(1))
			p.write("login.txtar", "login abort\n")
			got = p.run("run", "login.txtar")
			Expect(got.out).To(ContainSubstring("the agent offers no login in a terminal"))
		})

		It("finds the model and a key in what --env says", func() {
			got := p.run("run", "s.txtar", "--profile", "none", "--env", "MINE=$LLM/v1 $KEY $OTHER", "--", "sh", "-c",
				"echo $MINE >&2; exec "+program+" refagent")
			Expect(got.code).To(Equal(0))
			Expect(p.read("acp-test-out/s/stderr.txt")).To(MatchRegexp(`^http://127\.0\.0\.1:\d+/v1 sk-test \$OTHER\n`))
		})

		It("gets what a shipped profile knows of it, says so first, and does not with --profile none", func() {
			p.write("gofer", "#!/bin/sh\necho key $ANTHROPIC_API_KEY home $DEEPSEEK_API_KEY >&2\nexec "+program+
				" refagent\n")
			Expect(os.Chmod(filepath.Join(p.dir, "gofer"), 0o755)).To(Succeed())
			said := "gofer runs with the environment, HOME, login and tools of the profile go-agent; --profile none " +
				"leaves them out\n"
			got := p.run("run", "s.txtar", "--", "./gofer")
			Expect(got.err).To(HavePrefix(said))
			Expect(p.results().Agent.AdHoc).To(BeTrue())
			Expect(p.run("run", "s.txtar", "--profile", "none", "--", "./gofer").err).To(BeEmpty())
			got = p.run("run", "s.txtar", "--profile", "go-agnet", "--", "./gofer")
			Expect(got.code).To(Equal(2))
			Expect(got.err).To(ContainSubstring(`--profile: no profile is named "go-agnet" (did you mean "go-agent"?)`))
			Expect(p.run("run", "s.txtar", "--profile", "none").err).
				To(ContainSubstring("--profile requires an agent command after --"))
		})

		It("gets no more of the environment than is passed", func() {
			p.env = append(p.env, "MY_TOKEN=secret", "MY_OTHER=other")
			got := p.run("run", "s.txtar", "--pass-env", "MY_OTHER", "--", "sh", "-c",
				"env >&2; exec "+program+" refagent")
			Expect(got.code).To(Equal(0))
			Expect(p.read("acp-test-out/s/stderr.txt")).
				To(And(ContainSubstring("MY_OTHER=other"), Not(ContainSubstring("MY_TOKEN"))))
		})
	})

	Describe("goldens", func() {
		It("are written with --update and compared from then on", func() {
			p.write("s.txtar", good)
			Expect(p.run("run", "s.txtar", "--update").code).To(Equal(0))
			Expect(p.read("golden/reference/s.golden")).To(ContainSubstring("Hello."))
			Expect(p.run("run", "s.txtar", "--golden-required").code).To(Equal(0))
			p.write("golden/reference/s.golden",
				strings.ReplaceAll(p.read("golden/reference/s.golden"), "Hello.", "Bye."))
			got := p.run("run", "s.txtar")
			Expect(got.code).To(Equal(1))
			Expect(got.out).To(MatchRegexp(`(?m)-.*Bye\.`))
		})

		It("without a scenario are stale only when the whole folder ran", func() {
			p.write("all/s.txtar", good)
			p.write("golden/reference/gone.golden", "x\n")
			Expect(p.run("run", "all/s.txtar").code).To(Equal(0))
			Expect(p.run("run", "all", "--run", "nothing|s").code).To(Equal(1), "a filter that leaves nothing out")
			got := p.run("run", "all")
			Expect(got.code).To(Equal(1))
			Expect(got.out).To(ContainSubstring("stale: golden reference/gone"))
			p.write("golden/reference/cancel/idle.golden", "x\n")
			Expect(p.run("run", "all").code).To(Equal(0), "goldens of suites lie in the same folder")
		})
	})

	Describe("the choice of scenarios", func() {
		BeforeEach(func() {
			p.write("all/a/one.txtar", good)
			p.write("all/b/two.txtar", "tag slow\n"+good)
			p.write("all/b/three.txtar", good)
		})
		list := func(args ...string) string {
			got := p.run(append([]string{"run", "all", "--list"}, args...)...)
			Expect(got.code).To(Equal(0))
			return strings.Join(regexp.MustCompile(`(?m)^\S+`).FindAllString(got.out, -1), " ")
		}

		It("is by path, regular expression and tag", func() {
			Expect(list()).To(Equal("a/one b/three b/two"))
			Expect(list("--run", "^b/")).To(Equal("b/three b/two"))
			Expect(list("--tag", "slow")).To(Equal("b/two"))
			Expect(list("--tag", "!slow")).To(Equal("a/one b/three"))
			Expect(list("--tag", "a,slow")).To(Equal("a/one b/two"))
			Expect(filepath.Join(p.dir, "acp-test-out")).NotTo(BeADirectory())
		})

		It("is cut into shards, by the flag or by the CI system", func() {
			Expect(list("--shard", "1/2") + " " + list("--shard", "2/2")).To(Equal("a/one b/two b/three"))
			for _, env := range []string{"CI_NODE_INDEX=2 CI_NODE_TOTAL=2", "CIRCLE_NODE_INDEX=1 CIRCLE_NODE_TOTAL=2",
				"JOB_COMPLETION_INDEX=1 JOB_COMPLETIONS=2"} {
				before := p.env
				p.env = append(p.env, strings.Fields(env)...)
				Expect(list()).To(Equal("b/three"), env)
				Expect(list("--shard", "1/1")).To(Equal("a/one b/three b/two"), env)
				p.env = before
			}
			p.env = append(p.env, "CI_NODE_INDEX=x", "CI_NODE_TOTAL=2")
			Expect(p.run("run", "all").err).
				To(ContainSubstring(`CI_NODE_INDEX="x" and CI_NODE_TOTAL="2" do not say which part to run`))
		})

		It("of all suites is what can be about the agent's transport; a scenario that is named says why it is skipped",
			func() {
				suites := func(args ...string) []string {
					return strings.Split(strings.TrimSpace(p.run(append([]string{"run", "--list"}, args...)...).out),
						"\n")
				}
				Expect(suites()).NotTo(ContainElement(HavePrefix("remote/")))
				Expect(suites("--tag", "!none")).NotTo(ContainElement(HavePrefix("remote/")))
				Expect(suites("--over", "http")).To(ContainElement(HavePrefix("remote/accept-refused ")))
				Expect(suites("--over", "http")).NotTo(ContainElement(HavePrefix("transport/end-of-input ")))
				Expect(suites("--over", "ws")).To(ContainElement(HavePrefix("remote/")))
				Expect(suites("--run", "^remote/")).To(Equal(suites("--suite", "remote")))
				Expect(p.run("run", "--run", "^remote/accept-refused$").out).To(
					ContainSubstring("the scenario needs an agent that is reached over http, but Reference agent is " +
						"reached over stdio"))
			})

		It("refuses two scenarios of one id", func() {
			p.write("more/a/one.txtar", good)
			got := p.run("run", "all", "more")
			Expect(got.code).To(Equal(2))
			Expect(got.err).To(ContainSubstring(`has the same id "a/one"`))
		})

		It("is repeated", func() {
			got := p.run("run", "all", "--run", "one", "--repeat", "3", "-j", "2")
			Expect(got.code).To(Equal(0))
			Expect(p.results().Counts.Pass).To(Equal(3))
			Expect(filepath.Join(p.dir, "acp-test-out/repeat-3/a/one/transcript.jsonl")).To(BeARegularFile())
		})

		It("stops at the first failure when asked", func() {
			p.write("all/a/bad.txtar", scenario("prompt 'Say hello.'", "await turn refusal"))
			got := p.run("run", "all", "--fail-fast", "-j", "1")
			Expect(got.code).To(Equal(1))
			Expect(p.results().Counts.Total).To(Equal(1))
			got = p.run("run", "all", "--until-fail", "--run", "bad")
			Expect(got.code).To(Equal(1))
		})
	})

	Describe("the folder for results", func() {
		BeforeEach(func() { p.write("s.txtar", good) })

		It("keeps the previous run beside it, and no more", func() {
			for i := range 3 {
				Expect(p.run("run", "s.txtar", "--seed", fmt.Sprint(i)).code).To(Equal(0))
			}
			Expect(p.results().Seed).To(Equal(int64(2)))
			Expect(p.read("acp-test-out.previous/results.json")).To(MatchRegexp(`"seed": 1\b`))
		})

		It("belongs to one run at a time", func() {
			Expect(p.run("run", "s.txtar").code).To(Equal(0))
			lock := flock.New(filepath.Join(p.dir, "acp-test-out", ".acp-test-out"))
			Expect(lock.TryLock()).To(BeTrue())
			got := p.run("run", "s.txtar", "--seed", "2")
			Expect(got.code).To(Equal(2))
			Expect(got.err).To(Equal("acp-test: --out: another run is writing acp-test-out; wait for its end or name " +
				"another folder\n"))
			Expect(p.results().Seed).To(Equal(int64(1)))
			Expect(lock.Close()).To(Succeed())
			Expect(p.run("run", "s.txtar", "--seed", "2").code).To(Equal(0))
		})

		It("is the run's for as long as it takes", func() {
			inner := fmt.Sprintf("cd %s && acp-test run s.txtar >inner 2>&1; test $? = 2", p.dir)
			p.write("two.txtar", "prompt 'x'\nawait turn end_turn\nexec sh -c '"+inner+"'\n")
			got := p.run("run", "two.txtar")
			Expect(got.code).To(Equal(0), got.out)
			Expect(p.read("inner")).To(ContainSubstring("another run is writing acp-test-out"))
			Expect(p.results().Results).To(HaveLen(1))
		})

		It("is where --out says, with the reports that were asked for", func() {
			got := p.run("run", "s.txtar", "--out", "o/p", "--report", "tap", "--report", "markdown=sum.md", "--report",
				"tap=-", "-q")
			Expect(got.code).To(Equal(0))
			Expect(got.out).To(ContainSubstring("TAP version 14"))
			Expect(p.read("o/p/results.tap")).To(HavePrefix("TAP version 14"))
			Expect(p.read("sum.md")).NotTo(BeEmpty())
		})

		It("gets the agent's folders with --keep", func() {
			Expect(p.run("run", "s.txtar", "--keep").code).To(Equal(0))
			Expect(filepath.Join(p.dir, "acp-test-out/s/run")).To(BeADirectory())
		})
	})

	Describe("acp-test.yaml", func() {
		It("gives defaults, also below its folder, and flags win", func() {
			p.write("acp-test.yaml", "agent: mine.yaml\nscenarios: [tests]\ngoldens: tests/golden\ntimeout: 30s\n"+
				"env: {X: file}\nout: out\nreports: [tap]\n")
			p.write("mine.yaml", "name: mine\ncommand: [sh, -c, 'echo X=$$X >&2; exec "+program+
				" refagent']\nenv: {OPENAI_BASE_URL: $LLM/v1, OPENAI_API_KEY: k}\nmodel: {wire: openai-chat}\n")
			p.write("tests/s.txtar", good)
			p.write("deep/down/.keep", "")
			here := p.dir
			p.dir = filepath.Join(here, "deep/down")
			got := p.run("run", "--update")
			Expect(got.code).To(Equal(0), got.out+got.err)
			p.dir = here
			Expect(p.read("tests/golden/mine/tests/s.golden")).To(ContainSubstring("Hello."))
			Expect(p.read("out/tests/s/stderr.txt")).To(ContainSubstring("X=file"))
			Expect(p.read("out/results.tap")).NotTo(BeEmpty())
			Expect(p.run("run", "--env", "X=flag", "--out", "o").code).To(Equal(0))
			Expect(p.read("o/tests/s/stderr.txt")).To(ContainSubstring("X=flag"))
			Expect(p.run("run", "--list", "--suite", "cancel").out).To(HavePrefix("cancel/"))
		})

		It("ends at the root of the repository", func() {
			p.write("acp-test.yaml", "scenarios: [nowhere]\n")
			p.write("repo/.git/HEAD", "")
			p.dir = filepath.Join(p.dir, "repo")
			Expect(p.run("run", "--list").code).To(Equal(0))
		})

		DescribeTable("is read strictly", func(text, want string) {
			p.write("acp-test.yaml", text)
			got := p.run("run", "--list")
			Expect(got.code).To(Equal(2))
			Expect(got.err).To(MatchRegexp(`^acp-test: \S*acp-test\.yaml:` + want))
		},
			Entry("unknown key", "agent: reference\nsuite: [cancel]\n", `2:1: .*suite.*\(did you mean "suites"\?\)\n$`),
			Entry("wrong kind", "suites: 3\n", `1:9: `),
			Entry("bad time", "timeout: soon\n", `1:10: timeout must be a duration such as 20s or 1m30s, not "soon"`),
			Entry("no YAML", "a: [\n", `\d+:\d+: `),
		)

		It("may be empty: it then only marks the root of scenarios", func() {
			p.write("acp-test.yaml", "# scenarios of this folder\n")
			Expect(p.run("run", "--list", "--suite", "cancel").code).To(Equal(0))
		})
	})

	Describe("on a terminal", func() {
		onTerminal := func(env ...string) (string, int) {
			p.write("s.txtar", good)
			c := p.command("run", "s.txtar")
			c.Env = append(c.Env, env...)
			tty, err := pty.StartWithSize(c, &pty.Winsize{Rows: 24, Cols: 60})
			Expect(err).NotTo(HaveOccurred())
			defer tty.Close()
			var text strings.Builder
			buf := make([]byte, 4096)
			for {
				n, err := tty.Read(buf)
				text.Write(buf[:n])
				if err != nil { // EIO is how a terminal ends
					break
				}
			}
			return text.String(), status(c.Wait())
		}

		It("shows colours and a line of progress that fits", func() {
			text, code := onTerminal()
			Expect(code).To(Equal(0))
			Expect(text).To(ContainSubstring("\x1b[32mPASS\x1b[0m"))
			Expect(text).To(ContainSubstring("\r\x1b[K"))
			Expect(text).To(MatchRegexp(`0/1 +s`))
			for _, line := range regexp.MustCompile(`\r([^\r\n]*)\x1b\[K`).FindAllStringSubmatch(text, -1) {
				Expect(len(line[1])).To(BeNumerically("<", 60))
			}
		})

		It("shows no colours with NO_COLOR", func() {
			text, _ := onTerminal("NO_COLOR=1")
			Expect(text).To(ContainSubstring("PASS"))
			Expect(text).NotTo(ContainSubstring("\x1b[3"))
		})

		It("shows neither elsewhere", func() {
			p.write("s.txtar", good)
			Expect(p.run("run", "s.txtar").out).NotTo(ContainSubstring("\x1b"))
		})
	})

	Describe("--debug", func() {
		It("prints the agent's pid and waits for Enter", func() {
			p.write("s.txtar", good)
			got := p.with("\n", "run", "s.txtar", "--debug")
			Expect(got.code).To(Equal(0))
			Expect(got.err).To(MatchRegexp(`s: the agent runs as process \d+; press Enter to go on`))
		})
	})

	Describe("ended from outside", func() {
		var c *exec.Cmd
		// hanging starts a run whose agent never answers, and returns when
		// both are up.
		hanging := func() (agent int) {
			p.write("s.txtar", good)
			p.write("done.txtar", good)
			p.write("agent.sh", "#!/bin/sh\n[ -f first ] || { touch first; exec "+program+
				" refagent; }\ntrap '' TERM\necho $$ > pid.tmp; mv pid.tmp pid\nwhile :; do sleep 1; done\n")
			c = p.command("run", "done.txtar", "s.txtar", "-j", "1", "--fresh", "--profile", "none", "--", "./agent.sh")
			Expect(c.Start()).To(Succeed())
			DeferCleanup(func() { _ = c.Process.Kill() })
			Eventually(filepath.Join(p.dir, "pid")).Should(BeARegularFile())
			_, err := fmt.Sscan(p.read("pid"), &agent)
			Expect(err).NotTo(HaveOccurred())
			return agent
		}
		gone := func(pid int) func() error { return func() error { return syscall.Kill(pid, 0) } }
		left := func() []os.DirEntry {
			entries, err := os.ReadDir(filepath.Join(p.dir, ".tmp"))
			Expect(err).NotTo(HaveOccurred())
			return entries
		}

		It("by an interrupt, it stops the agent, removes its folders and writes the reports", func() {
			agent := hanging()
			Expect(c.Process.Signal(os.Interrupt)).To(Succeed())
			Expect(status(c.Wait())).To(Equal(1))
			Eventually(gone(agent)).Should(MatchError(syscall.ESRCH))
			Eventually(left).Should(BeEmpty())
			run := p.results()
			Expect([]any{run.Interrupted, run.Counts.Pass}).To(Equal([]any{true, 1}))
			Expect(p.read("acp-test-out/junit.xml")).To(ContainSubstring("done"))
		})

		It("by SIGKILL, its keeper does", func() {
			if runtime.GOOS != "linux" {
				Skip("only Linux lets a keeper adopt orphans")
			}
			agent := hanging()
			Expect(c.Process.Kill()).To(Succeed())
			_ = c.Wait()
			Eventually(gone(agent)).Should(MatchError(syscall.ESRCH))
			Eventually(left).Should(BeEmpty())
		})
	})
})
