//go:build unix

package mockclient_test

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gleak"

	"github.com/acp-test/acp-test/internal/process"
	"github.com/acp-test/acp-test/mockclient"
	"github.com/acp-test/acp-test/transcript"
)

// kills is how often a harness is killed; ci/soak asks for 1,000.
var kills = flag.Int("kills", 4, "how often to kill a harness")

// patient is the grace of an agent that should end by itself, brief that of one
// that will not.
const patient, brief = 20 * time.Second, 100 * time.Millisecond

func startAgent(keeper []string, grace time.Duration, args ...string) (*mockclient.Agent, *transcript.Transcript) {
	GinkgoHelper()
	t := newTranscript()
	a, err := mockclient.Start(within(), t, 0, mockclient.Command{
		Path: self, Args: args, Keeper: keeper, Grace: grace, Linger: 100 * time.Millisecond,
	})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { a.Stop(context.Background()) })
	return a, t
}

// alive reports whether a process runs; a zombie does not.
func alive(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return runtime.GOOS != "linux" && syscall.Kill(pid, 0) == nil
	}
	i := strings.LastIndexByte(string(stat), ')')
	return i >= 0 && !strings.HasPrefix(string(stat[i+1:]), " Z")
}

// parentOf is the process that has started an agent: its keeper.
func parentOf(a *mockclient.Agent) int {
	GinkgoHelper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", a.PID()))
	Expect(err).NotTo(HaveOccurred())
	parent, err := strconv.Atoi(strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))[1])
	Expect(err).NotTo(HaveOccurred())
	return parent
}

// carriers lists the processes of a run.
func carriers(run string) []string {
	var found []string
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		env, _ := os.ReadFile(dir + "/environ")
		if strings.Contains("\x00"+string(env), "\x00ACP_TEST_RUN="+run+"\x00") {
			found = append(found, dir)
		}
	}
	return found
}

var _ = Describe("an agent's process", func() {
	BeforeEach(func() {
		before := gleak.Goroutines()
		DeferCleanup(func() { Eventually(gleak.Goroutines).ShouldNot(gleak.HaveLeaked(before)) })
	})
	for _, how := range []struct {
		name   string
		keeper []string
	}{{"with a keeper", keeperCommand}, {"without a keeper", nil}} {
		Context(how.name, func() {
			It("ends by itself when its input is closed", func() {
				a, t := startAgent(how.keeper, patient, "agent-echo")
				Expect(a.PID()).To(BeNumerically(">", 0))
				s := a.Stop(within())
				Expect(s.Steps).To(Equal([]string{"stdin-closed"}))
				Expect(s.Exit).To(Equal(mockclient.Exit{}))
				Expect(s.Survivors).To(BeEmpty())
				Expect(kinds(t, transcript.Process)).To(Equal([]string{"started", "stdin-closed", "exit"}))
				Expect(a.Stop(within())).To(Equal(s), "a second Stop")
			})
			It("gets SIGTERM when it stays", func() {
				a, t := startAgent(how.keeper, 2*time.Second, "agent-polite")
				await(t, named("ready"))
				s := a.Stop(within())
				Expect(s.Steps).To(Equal([]string{"stdin-closed", "SIGTERM"}))
				Expect(s.Exit.Code).To(Equal(7))
				Expect(kinds(t, transcript.Process)).To(Equal([]string{"started", "stdin-closed", "signal", "exit"}))
			})
			It("gets SIGKILL when it minds nothing", func() {
				a, t := startAgent(how.keeper, brief, "agent-deaf")
				await(t, named("ready"))
				s := a.Stop(within())
				Expect(s.Steps).To(Equal([]string{"stdin-closed", "SIGTERM", "SIGKILL"}))
				Expect(s.Exit).To(Equal(mockclient.Exit{Code: -1, Signal: "SIGKILL"}))
				Expect(alive(a.PID())).To(BeFalse())
			})
			It("is killed at once when the context of Stop has ended", func() {
				a, t := startAgent(how.keeper, brief, "agent-deaf")
				await(t, named("ready"))
				ctx, cancel := context.WithCancel(context.Background())
				cancel()
				s := a.Stop(ctx)
				Expect(s.Exit.Signal).To(Equal("SIGKILL"))
				Expect(s.Steps).To(Equal([]string{"stdin-closed", "SIGKILL"}))
			})
			It("can be signalled alone", func() {
				a, t := startAgent(how.keeper, patient, "agent-polite")
				await(t, named("ready"))
				Expect(a.Signal(syscall.SIGTERM)).To(Succeed())
				Eventually(a.Exited()).Should(BeClosed())
				exit, ok := a.Exit()
				Expect(ok).To(BeTrue())
				Expect(exit.Code).To(Equal(7))
				Expect(a.Signal(syscall.SIGTERM)).To(MatchError(mockclient.ErrExited))
				Expect(a.Stop(within()).Steps).To(BeEmpty())
			})
			It("has all it wrote in the transcript before its exit", func() {
				a, t := startAgent(how.keeper, patient, "agent-last")
				Eventually(a.Exited()).Should(BeClosed())
				frames, chunks, exit := 0, "", 0
				for e := range t.All() {
					switch {
					case e.Source == transcript.Agent:
						frames++
						Expect(exit).To(BeZero())
					case e.Source == transcript.Stderr:
						chunks += string(e.Raw)
						Expect(exit).To(BeZero())
					case e.Kind == transcript.Exited:
						exit = e.Seq
						Expect(e.JSON().Path("code").Text()).To(Equal("3"))
					}
				}
				Expect(frames).To(Equal(1001))
				Expect(chunks).To(Equal("giving up\n"))
				Expect(exit).To(Equal(t.Len()))
				Expect(codes(t)).To(Equal([]string{"unterminated-line"}))
			})
			It("loses nothing when it exits while the reader is stalled", func() {
				a, t := startAgent(how.keeper, patient, "agent-last")
				a.PauseReading()
				Eventually(a.Exited()).Should(BeClosed())
				last := transcript.Entry{}
				frames := 0
				for e := range t.All() {
					last = e
					if e.Source == transcript.Agent {
						frames++
					}
				}
				Expect(frames).To(Equal(1001))
				Expect(last.Kind).To(Equal(transcript.Exited))
			})
			It("names and kills what outlives it", func() {
				kinds := []string{"setsid", "plain"}
				if how.keeper != nil && runtime.GOOS == "linux" {
					kinds = append(kinds, "bare")
				}
				a, t := startAgent(how.keeper, patient, append([]string{"agent-parent"}, kinds...)...)
				await(t, named("ready"))
				Expect(a.Descendants()).To(HaveLen(len(kinds)))
				s := a.Stop(within())
				Expect(s.Survivors).To(HaveLen(len(kinds)))
				var commands []string
				for e := range t.All() {
					if e.Kind == transcript.Descendant {
						commands = append(commands, e.JSON().Get("command").Str())
					}
					if e.Method == "child" {
						pid, _ := e.JSON().Path("params.pid").Int()
						Expect(alive(int(pid))).To(BeFalse())
					}
				}
				want := []any{HaveSuffix("child setsid"), HaveSuffix("child plain"), HaveSuffix("child bare")}
				Expect(commands).To(ConsistOf(want[:len(kinds)]...))
			})
			It("is not taken to stay because of what outlives it", func() {
				t := newTranscript()
				a, err := mockclient.Start(within(), t, 0, mockclient.Command{
					Path: self, Args: []string{"agent-parent", "plain"}, Keeper: how.keeper, Grace: 2 * time.Second,
					Linger: 3 * time.Second,
				})
				Expect(err).NotTo(HaveOccurred())
				await(t, named("ready"))
				s := a.Stop(within())
				Expect(s.Steps).To(Equal([]string{"stdin-closed"}))
				Expect(s.Survivors).To(HaveLen(1))
			})
			It("says what is wrong with a command that does not exist", func() {
				_, err := mockclient.Start(within(), newTranscript(), 0,
					mockclient.Command{Path: "no-such-agent", Keeper: how.keeper})
				Expect(err).To(MatchError(ContainSubstring(`starting agent "no-such-agent"`)))
				_, err = mockclient.Start(within(), newTranscript(), 0,
					mockclient.Command{Path: self, Dir: "/no/such/dir", Keeper: how.keeper})
				Expect(err).To(MatchError(ContainSubstring("no such file or directory")))
			})
		})
	}

	It("gets its frames in pieces through a real pipe", func() {
		a, t := startAgent(keeperCommand, patient, "agent-pieces")
		e := mockclient.NewEditor(a, mockclient.Options{})
		Expect(a.WriteShape(within(), mockclient.Shape{Split: 9})).To(Succeed())
		_, err := e.Notify("hello", nil)
		Expect(err).NotTo(HaveOccurred())
		longest, _ := await(t, named("longest")).JSON().Path("params.n").Int()
		if runtime.GOOS == "linux" {
			Expect(longest).To(BeNumerically("==", 9))
		}
	})

	It("can be caught up with: what it wrote before something else has then been read", func() {
		file := filepath.Join(GinkgoT().TempDir(), "started")
		t := newTranscript()
		a, err := mockclient.Start(within(), t, 0, mockclient.Command{
			Path: "/bin/sh", Args: []string{"-c",
				`for i in 1 2 3 4 5 6 7 8 9; do echo "{\"jsonrpc\":\"2.0\",\"method\":\"m\"}"; done; : > "$0"; ` +
					`read -r line`, file},
		})
		Expect(err).NotTo(HaveOccurred())
		a.SetPace(mockclient.Pace{Read: func() time.Duration { return 10 * time.Millisecond }})
		Eventually(func() error { _, err := os.Stat(file); return err }).WithTimeout(patient).Should(Succeed())
		a.CatchUp(within())
		Expect(kinds(t, transcript.Agent)).To(HaveLen(9))
		a.CatchUp(within()) // there is nothing more
		a.Stop(within())
		a.CatchUp(within()) // nor will there be
	})

	It("is told apart from one that has not yet taken what was written to it", func() {
		if runtime.GOOS != "linux" {
			Skip("no other kernel tells what is left in a pipe")
		}
		dir := GinkgoT().TempDir()
		a, err := mockclient.Start(within(), newTranscript(), 0, mockclient.Command{
			Path: "/bin/sh", Dir: dir, Args: []string{"-c",
				`until [ -e go ]; do :; done; : > reads; read -r line; read -r more`},
		})
		Expect(err).NotTo(HaveOccurred())
		_, err = mockclient.NewEditor(a, mockclient.Options{}).Notify("m", nil)
		Expect(err).NotTo(HaveOccurred())
		ended, end := context.WithCancel(context.Background())
		end()
		a.Taken(ended)
		Expect(filepath.Join(dir, "reads")).NotTo(BeAnExistingFile())
		Expect(os.WriteFile(filepath.Join(dir, "go"), nil, 0o600)).To(Succeed())
		a.Taken(within())
		Expect(filepath.Join(dir, "reads")).To(BeAnExistingFile())
		a.Stop(within())
		a.Taken(within()) // nothing more will be taken
	})

	It("has the end of a write noted that had to wait for it, and of no other", func() {
		t, dir := newTranscript(), GinkgoT().TempDir()
		a, err := mockclient.Start(within(), t, 0, mockclient.Command{
			Path: "/bin/sh", Dir: dir, Args: []string{"-c", `until [ -e go ]; do :; done; cat > all`},
		})
		Expect(err).NotTo(HaveOccurred())
		defer a.Stop(within())
		e := mockclient.NewEditor(a, mockclient.Options{})
		_, err = e.Notify("fits", strings.Repeat("x", 30<<10))
		Expect(err).NotTo(HaveOccurred())
		full, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
		defer cancel()
		_, err = e.NotifyContext(full, "fills", strings.Repeat("x", 60<<10))
		Expect(err).To(MatchError(context.DeadlineExceeded), "there is room for 64 KiB")
		Expect(os.WriteFile(filepath.Join(dir, "go"), nil, 0o600)).To(Succeed())
		_, err = e.Notify("after", nil)
		Expect(err).NotTo(HaveOccurred())
		Expect(kinds(t, transcript.Editor)).
			To(Equal([]string{"notification", "notification", "written", "notification"}))
	})

	It("is busy while a process of its tree runs, and not while all wait", func() {
		if runtime.GOOS != "linux" {
			Skip("no other kernel tells")
		}
		dir := GinkgoT().TempDir()
		a, err := mockclient.Start(within(), newTranscript(), 0, mockclient.Command{
			Path: "/bin/sh", Dir: dir, Args: []string{"-c",
				`sh -c 'until [ -e go ]; do :; done; : > waits; read -r line' <&0 & read -r line; wait`},
		})
		Expect(err).NotTo(HaveOccurred())
		Eventually(a.Busy).WithTimeout(patient).Should(BeTrue())
		Expect(a.Busy()).To(BeTrue(), "the child never waits")
		Expect(os.WriteFile(filepath.Join(dir, "go"), nil, 0o600)).To(Succeed())
		Eventually(func() error { _, err := os.Stat(filepath.Join(dir, "waits")); return err }).WithTimeout(patient).
			Should(Succeed())
		Eventually(a.Busy).WithTimeout(patient).Should(BeFalse())
		a.Stop(within())
		Expect(a.Busy()).To(BeFalse(), "it has ended")
	})

	It("tells a process that is killed from one that runs", func() {
		if runtime.GOOS != "linux" {
			Skip("no other kernel tells")
		}
		cmd := exec.Command("sleep", "600")
		Expect(cmd.Start()).To(Succeed())
		p := process.Info{PID: cmd.Process.Pid}
		Expect(p.Dying()).To(BeFalse())
		Expect(cmd.Process.Kill()).To(Succeed())
		Expect(p.Dying()).To(BeTrue(), "from the moment of the kill")
		Expect(cmd.Wait()).To(HaveOccurred())
		Expect(p.Dying()).To(BeTrue(), "gone")
	})

	It("does not start when the context has ended", func() {
		ctx, cancel := context.WithCancelCause(context.Background())
		cancel(fmt.Errorf("too late"))
		_, err := mockclient.Start(ctx, newTranscript(), 0,
			mockclient.Command{Path: self, Args: []string{"agent-deaf"}, Keeper: keeperCommand})
		Expect(err).To(MatchError(ContainSubstring("too late")))
	})

	It("says so when the keeper is no keeper", func() {
		_, err := mockclient.Start(within(), newTranscript(), 0,
			mockclient.Command{Path: self, Keeper: []string{"/bin/true"}})
		Expect(err).To(MatchError(ContainSubstring("must be a command that calls KeeperMain")))
	})

	It("survives its keeper's death only until that is noticed", func() {
		if runtime.GOOS != "linux" {
			Skip("needs /proc")
		}
		a, t := startAgent(keeperCommand, patient, "agent-parent", "setsid")
		await(t, named("ready"))
		Expect(syscall.Kill(parentOf(a), syscall.SIGKILL)).To(Succeed())
		s := a.Stop(within())
		Expect(s.Exit.Error).To(ContainSubstring("keeper"))
		pid, _ := await(t, named("child")).JSON().Path("params.pid").Int()
		Expect(alive(int(pid))).To(BeFalse())
	})
})

var _ = Describe("a keeper", func() {
	BeforeEach(func() {
		if runtime.GOOS != "linux" {
			Skip("needs /proc")
		}
		process.EndKeepers() // those that other tests left
	})
	run := func(args ...string) (keeper int, s mockclient.Shutdown) {
		GinkgoHelper()
		a, t := startAgent(keeperCommand, 2*time.Second, args...)
		if args[0] == "agent-parent" {
			await(t, named("ready"))
		}
		keeper = parentOf(a)
		return keeper, a.Stop(within())
	}

	It("has one agent after the other, if none leaves anything", func() {
		first, _ := run("agent-echo")
		second, s := run("agent-echo")
		Expect(second).To(Equal(first))
		Expect(s.Exit).To(Equal(mockclient.Exit{}))
		Expect(s.Survivors).To(BeEmpty())
	})

	It("has no agent after one that left a process, or was killed", func() {
		former, s := run("agent-parent", "setsid")
		Expect(s.Survivors).To(HaveLen(1))
		next, _ := run("agent-echo")
		Expect(next).NotTo(Equal(former))
		Expect(alive(former)).To(BeFalse())
		a, t := startAgent(keeperCommand, brief, "agent-deaf")
		await(t, named("ready"))
		former = parentOf(a)
		Expect(a.Stop(within()).Exit.Signal).To(Equal("SIGKILL"))
		next, _ = run("agent-echo")
		Expect(next).NotTo(Equal(former))
		Expect(alive(former)).To(BeFalse())
	})

	It("without an agent ends when that is asked for", func() {
		former, _ := run("agent-echo")
		Expect(alive(former)).To(BeTrue())
		process.EndKeepers()
		Expect(alive(former)).To(BeFalse())
	})

	It("that was killed between two agents is replaced", func() {
		former, _ := run("agent-echo")
		Expect(syscall.Kill(former, syscall.SIGKILL)).To(Succeed())
		next, s := run("agent-echo")
		Expect(next).NotTo(Equal(former))
		Expect(s.Exit).To(Equal(mockclient.Exit{}))
	})
})

var _ = Describe("a terminal login", func() { // AUTH-019
	It("runs the agent's program with the method's words and environment", func() {
		agent, _ := scripted(map[string]string{"initialize": everything})
		e := edit(mockclient.Options{}, agent)
		info, err := e.Initialize(within())
		Expect(err).NotTo(HaveOccurred())
		c := mockclient.Command{Path: self, Args: []string{"login"}, Env: []string{"L=0", "K=k"}, Keeper: keeperCommand}
		_, err = mockclient.TerminalLogin(within(), c, info, "login")
		Expect(err).NotTo(HaveOccurred())
		c.Env = nil
		_, err = mockclient.TerminalLogin(within(), c, info, "login")
		Expect(err).To(MatchError("logging in: the program ended with 9"))
		_, err = mockclient.TerminalLogin(within(), c, info, "key")
		Expect(err).To(MatchError(ContainSubstring("not a terminal login")))
	})
})

var _ = Describe("a harness that is killed", func() {
	It("leaves no process and no directory behind", func() {
		if runtime.GOOS != "linux" {
			Skip("only Linux has a subreaper")
		}
		for round := range *kills {
			run := fmt.Sprintf("test-%d-%d", os.Getpid(), round)
			parent := GinkgoT().TempDir()
			harness := exec.Command(self, "harness", parent, run)
			out, err := harness.StdoutPipe()
			Expect(err).NotTo(HaveOccurred())
			Expect(harness.Start()).To(Succeed())
			var children []int
			if round%2 == 1 { // killed at a random moment, most of them before the agent runs
				time.Sleep(rand.N(40 * time.Millisecond))
			} else {
				line, err := bufio.NewReader(out).ReadString('\n')
				Expect(err).NotTo(HaveOccurred())
				words := strings.Fields(line)
				Expect(words).To(HaveLen(4), line)
				for _, word := range words[1:] {
					pid, err := strconv.Atoi(word)
					Expect(err).NotTo(HaveOccurred())
					Expect(alive(pid)).To(BeTrue())
					children = append(children, pid)
				}
				Expect(carriers(run)).To(HaveLen(3)) // and one that dropped the variable
			}
			Expect(syscall.Kill(harness.Process.Pid, syscall.SIGKILL)).To(Succeed())
			_ = harness.Wait()
			Eventually(func() []string { return carriers(run) }).Should(BeEmpty())
			Eventually(func() []os.DirEntry { list, _ := os.ReadDir(parent); return list }).Should(BeEmpty())
			for _, pid := range children {
				Eventually(alive).WithArguments(pid).Should(BeFalse())
			}
		}
	})
})

var _ = Describe("a temporary directory", func() {
	for _, keeper := range [][]string{nil, keeperCommand} {
		It(fmt.Sprintf("is removed, also where an agent made it read-only (keeper: %v)", keeper != nil), func() {
			parent := GinkgoT().TempDir()
			s, err := process.NewTempDir(keeper, parent, "")
			Expect(err).NotTo(HaveOccurred())
			Expect(os.MkdirAll(s.Dir()+"/a/b", 0o700)).To(Succeed())
			Expect(os.WriteFile(s.Dir()+"/a/b/c", nil, 0o400)).To(Succeed())
			Expect(os.Chmod(s.Dir()+"/a/b", 0o500)).To(Succeed())
			Expect(s.Close()).To(Succeed())
			Expect(os.ReadDir(parent)).To(BeEmpty())
		})
	}
})
