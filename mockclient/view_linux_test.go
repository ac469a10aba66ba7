package mockclient_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/acp-test/acp-test/internal/isolate"
	"github.com/acp-test/acp-test/mockclient"
	"github.com/acp-test/acp-test/transcript"
)

func init() {
	tell := func(what string, got any) {
		fmt.Printf("{\"jsonrpc\":\"2.0\",\"method\":%q,\"params\":{\"got\":%q}}\n", what, fmt.Sprint(got))
	}
	// agent-looker says what it can do with a file, a socket, a folder to write to, one
	// to read from, a hidden one, and processes; it leaves a child and ends with 7.
	programs["agent-looker"] = func(args []string) int {
		_, err := os.ReadFile(args[0])
		tell("secret", err)
		_, err = net.Dial("unix", args[1])
		tell("socket", err)
		tell("write", os.WriteFile(filepath.Join(args[2], "written"), []byte("x"), 0o644))
		text, err := os.ReadFile(filepath.Join(args[3], "tool"))
		tell("read", fmt.Sprintf("%s %v", text, err))
		tell("read-only", os.WriteFile(filepath.Join(args[3], "tool"), []byte("x"), 0o644))
		hidden, _ := os.ReadDir(filepath.Join(args[3], "out"))
		tell("hidden", hidden)
		tell("root", os.WriteFile("/x", nil, 0o644))
		tell("temp", os.WriteFile("/tmp/x", nil, 0o644))
		tell("kernel", os.WriteFile("/proc/sys/kernel/domainname", []byte("x"), 0o644))
		tell("device", os.WriteFile("/dev/null", []byte("x"), 0o644))
		_, err = exec.Command("sh", "-c", "true").Output()
		tell("shell", err)
		dir, _ := os.Getwd()
		tell("dir", dir)
		all, _ := filepath.Glob("/proc/[0-9]*")
		tell("processes", len(all))
		tell("parent", os.Getppid())
		for _, s := range []syscall.Signal{syscall.SIGKILL, syscall.SIGSTOP, syscall.SIGTERM, syscall.SIGQUIT,
			syscall.SIGSEGV} {
			_ = syscall.Kill(1, s)
		}
		_, err = os.ReadFile("/proc/1/environ")
		tell("first", err)
		tell("mount", syscall.Mount("tmpfs", "/tmp", "tmpfs", 0, ""))
		child := exec.Command(os.Args[0], "child", "bare")
		child.Env, child.SysProcAttr = []string{"A=b"}, detached()
		tell("child", child.Start())
		return 7
	}
	// agent-forks starts processes that start the next one and end, and waits.
	programs["agent-forks"] = func([]string) int {
		for range 5 {
			_ = forks().Start()
		}
		tell("ready", "")
		select {}
	}
	programs["forks"] = func([]string) int {
		_ = forks().Start()
		return 0
	}
}

func forks() *exec.Cmd {
	c := exec.Command(os.Args[0], "forks")
	c.Env, c.SysProcAttr = []string{"A=b"}, detached()
	return c
}

var _ = Describe("an agent with a view of its own", func() {
	type place struct{ secret, socket, work, tools string }
	var at place
	start := func(read string, args ...string) (*mockclient.Agent, *transcript.Transcript) {
		t := newTranscript()
		a, err := mockclient.Start(within(), t, 0, mockclient.Command{
			Path: self, Args: args, Keeper: keeperCommand, Dir: at.work, Env: []string{"PATH=/usr/bin:/bin"},
			Isolation: &isolate.Isolation{
				Helper: []string{self, "isolate"}, Dir: at.work,
				View: &isolate.View{Write: []string{at.work}, Read: []string{self, read},
					Hide: []string{filepath.Join(at.tools, "out")}},
			},
		})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func() { a.Stop(context.Background()) })
		return a, t
	}
	BeforeEach(func() {
		if !views() {
			Skip("NOT TESTED: this machine has no namespaces for a view")
		}
		root, err := filepath.EvalSymlinks(GinkgoT().TempDir())
		Expect(err).NotTo(HaveOccurred())
		at = place{filepath.Join(root, "home", "secret"), filepath.Join(root, "home", "socket"),
			filepath.Join(root, "work"),
			filepath.Join(root, "tools")}
		for _, dir := range []string{filepath.Dir(at.secret), at.work, filepath.Join(at.tools, "out")} {
			Expect(os.MkdirAll(dir, 0o755)).To(Succeed())
		}
		for _, path := range []string{at.secret, filepath.Join(at.tools, "tool"),
			filepath.Join(at.tools, "out", "results.json")} {
			Expect(os.WriteFile(path, []byte("text"), 0o644)).To(Succeed())
		}
		Expect(os.Symlink(at.tools, filepath.Join(root, "link"))).To(Succeed())
		l, err := net.Listen("unix", at.socket)
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(l.Close)
	})

	It("sees its own files and processes, and tools through links; its end and what it leaves are told", func() {
		link := filepath.Join(filepath.Dir(at.tools), "link")
		a, t := start(link, "agent-looker", at.secret, at.socket, at.work, link)
		Eventually(a.Exited()).Should(BeClosed())
		got := map[string]string{}
		for e := range t.All() {
			if e.Source == transcript.Agent {
				got[e.Method] = e.JSON().Path("params.got").Str()
			}
		}
		const none, fine = "no such file or directory", "<nil>"
		Expect(got["secret"]).To(HaveSuffix(none))
		Expect(got["socket"]).To(HaveSuffix(none))
		Expect(got["write"]).To(Equal(fine))
		Expect(os.ReadFile(filepath.Join(at.work, "written"))).To(BeEquivalentTo("x"))
		Expect(got["read"]).To(Equal("text <nil>"))
		Expect(got["hidden"]).To(Equal("[]"))
		for _, what := range []string{"read-only", "root", "kernel"} {
			Expect(got[what]).To(Or(HaveSuffix("read-only file system"), HaveSuffix("permission denied")), what)
		}
		for _, what := range []string{"temp", "device", "shell", "child"} {
			Expect(got[what]).To(Equal(fine), what)
		}
		Expect(got["dir"]).To(Equal(at.work))
		Expect(got["processes"]).To(Equal("2"))
		Expect(got["parent"]).To(Equal("1"))
		Expect(got["first"]).To(HaveSuffix("permission denied"))
		Expect(got["mount"]).To(Equal("operation not permitted"))

		stopped := a.Stop(within())
		survivors := stopped.Survivors
		Expect(stopped.Exit.Code).To(Equal(7))
		Expect(survivors).To(HaveLen(1))
		Expect(survivors[0].Command).To(ContainSubstring("child bare"))
		Expect(survivors[0].Left).To(BeFalse())
		Expect(alive(survivors[0].PID)).To(BeFalse())
		Expect(os.ReadFile(filepath.Join(at.tools, "out", "results.json"))).To(BeEquivalentTo("text"))
	})

	It("is signalled itself, by the pid that others see", func() {
		a, t := start(at.tools, "agent-polite")
		await(t, named("ready"))
		Expect(os.Readlink(fmt.Sprintf("/proc/%d/exe", a.PID()))).To(Equal(self))
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", a.PID()))
		Expect(err).NotTo(HaveOccurred())
		_, pids, _ := strings.Cut(string(status), "NSpid:")
		Expect(strings.Fields(pids)[0]).To(Equal(strconv.Itoa(a.PID())))
		Expect(a.Signal(syscall.SIGKILL)).To(Succeed())
		Eventually(a.Exited()).Should(BeClosed())
		stopped := a.Stop(within())
		Expect(stopped.Exit.Signal).To(Equal("SIGKILL"))
		Expect(stopped.Exit.Keeper).To(BeEmpty())
		Expect(stopped.Survivors).To(BeEmpty())
	})

	It("cannot outrun its end", func() {
		a, t := start(at.tools, "agent-forks")
		await(t, named("ready"))
		s := a.Stop(within())
		Expect(s.Exit.Signal).NotTo(BeEmpty())
		for _, left := range s.Survivors {
			Expect(left.Left).To(BeFalse())
		}
		living, _ := filepath.Glob("/proc/[0-9]*/cmdline")
		for _, path := range living {
			text, _ := os.ReadFile(path)
			Expect(string(text)).NotTo(Equal(self + "\x00forks\x00"))
		}
	})

	It("takes a keeper", func() {
		_, err := mockclient.Start(within(), newTranscript(), 0,
			mockclient.Command{Path: self, Isolation: &isolate.Isolation{
				Helper: []string{self, "isolate"}, Dir: at.work, View: &isolate.View{Write: []string{at.work}}}})
		Expect(err).To(MatchError(ContainSubstring("requires a keeper")))
	})
})

// views is as namespaces, of those for a view.
func views() bool {
	GinkgoHelper()
	err := isolate.CheckView([]string{self, "isolate"})
	if os.Getenv("ACP_TEST_NO_NAMESPACES") != "" {
		return err == nil
	}
	Expect(err).NotTo(HaveOccurred(),
		"allow mount and process namespaces on this machine, or set ACP_TEST_NO_NAMESPACES=1 if it cannot have them")
	return true
}
