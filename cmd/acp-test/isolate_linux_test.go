package main_test

import (
	"os"
	"syscall"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("run --isolate", func() {
	It("says what is missing where there are no namespaces", func() {
		if os.Getenv("ACP_TEST_NO_NAMESPACES") != "" {
			e := newPlace().run("run", "--isolate")
			Expect(e.code).To(Equal(2))
			Expect(e.err).To(ContainSubstring("--isolate: user and network namespaces are not available"))
			return
		}
		// In a namespace of its own that allows no further ones.
		p := newPlace()
		c := p.command("run", "--isolate")
		c.Args = append([]string{"sh", "-c", `echo 0 >/proc/sys/user/max_user_namespaces && exec "$@"`, "sh", c.Path}, c.Args[1:]...)
		c.Path = "/bin/sh"
		c.SysProcAttr = &syscall.SysProcAttr{
			Cloneflags:  syscall.CLONE_NEWUSER,
			UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
			GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
		}
		out, err := c.CombinedOutput()
		Expect(status(err)).To(Equal(2), "%s", out)
		Expect(string(out)).To(And(
			ContainSubstring("acp-test: --isolate: user and network namespaces are not available: "),
			ContainSubstring("(user.max_user_namespaces is 0)")))
		Expect(p.results().Exit).To(Equal(2))
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
