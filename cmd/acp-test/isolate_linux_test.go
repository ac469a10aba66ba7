package main_test

import (
	"os"
	"path/filepath"
	"syscall"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("run --isolate", func() {
	It("says what is missing where there are no namespaces", func() {
		if os.Getenv("ACP_TEST_NO_NAMESPACES") != "" {
			e := newPlace().run("run", "--isolate")
			Expect(e.code).To(Equal(2))
			Expect(e.err).To(ContainSubstring("--isolate: the namespaces that --isolate needs are not available"))
			return
		}
		p := newPlace()
		out, err := lacking(p, "max_user_namespaces", "run", "--isolate")
		Expect(status(err)).To(Equal(2), "%s", out)
		Expect(string(out)).To(And(
			ContainSubstring("acp-test: --isolate: the namespaces that --isolate needs are not available: "),
			ContainSubstring("(user.max_user_namespaces is 0)")))
		Expect(p.results().Exit).To(Equal(2))
	})

	It("closes the network alone where there is no more, and says so", func() {
		if os.Getenv("ACP_TEST_NO_NAMESPACES") != "" {
			return
		}
		p := newPlace()
		p.write("hello.txtar", good)
		out, err := lacking(p, "max_mnt_namespaces", "run", "--isolate", "hello.txtar")
		Expect(err).NotTo(HaveOccurred(), "%s", out)
		Expect(string(out)).To(And(ContainSubstring("--isolate kept the agent from the network, but not"),
			ContainSubstring("(user.max_mnt_namespaces is 0)")))
	})

	It("shows what --isolate-read names", func() {
		if os.Getenv("ACP_TEST_NO_NAMESPACES") != "" {
			return
		}
		p := newPlace()
		p.write("hello.txtar", good)
		p.write("notes/mine", "")
		words := []string{"hello.txtar", "--", "sh", "-c",
			"cat " + filepath.Join(p.dir, "notes/mine") + " >&2 && exec acp-test refagent"}
		e := p.run(append([]string{"run", "--isolate"}, words...)...)
		Expect(e.code).To(Equal(1), "%s%s", e.out, e.err)
		e = p.run(append([]string{"run", "--isolate", "--isolate-read", "notes"}, words...)...)
		Expect(e.code).To(Equal(0), "%s%s", e.out, e.err)
		e = p.run(append([]string{"run", "--isolate", "--isolate-read", "missing"}, words...)...)
		Expect(e.code).To(Equal(2))
		Expect(e.err).To(ContainSubstring("--isolate-read: stat "))
	})

	It("runs the suites as ever where there are", func() {
		if os.Getenv("ACP_TEST_NO_NAMESPACES") != "" {
			return
		}
		p := newPlace()
		p.write("hello.txtar", good)
		e := p.run("run", "--isolate", "hello.txtar")
		Expect(e.code).To(Equal(0), "%s%s", e.out, e.err)
	})
})

// lacking runs the command in a user namespace that allows none of a kind.
func lacking(p *place, kind string, words ...string) ([]byte, error) {
	c := p.command(words...)
	c.Args = append([]string{"sh", "-c", `echo 0 >/proc/sys/user/` + kind + ` && exec "$@"`, "sh", c.Path},
		c.Args[1:]...)
	c.Path = "/bin/sh"
	c.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
	return c.CombinedOutput()
}
