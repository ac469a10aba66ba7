//go:build unix

package mockclient_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/acp-test/acp-test/internal/process"
	"github.com/acp-test/acp-test/mockclient"
)

var _ = Describe("TypeInto", func() {
	into := func(ctx context.Context, script string, texts ...string) (string, int, error) {
		mark := process.TerminalVariable("typing")
		cmd := exec.Command("sh", "-c", script)
		cmd.Env = append(os.Environ(), mark)
		return mockclient.TypeInto(ctx, cmd, func() { process.KillCarriers(mark) }, texts...)
	}

	It("types when the command waits for input", func(ctx SpecContext) {
		printed, typed, err := into(ctx, "echo Key:; read key; echo got $key; exit 3", "abc\r")
		Expect(err).To(MatchError("exit status 3"))
		Expect(typed).To(Equal(1))
		Expect(printed).To(ContainSubstring("got abc"))
	})

	It("types nothing into a command that ends by itself", func(ctx SpecContext) {
		printed, typed, err := into(ctx, "echo Logged in already.", "\x04")
		Expect(err).NotTo(HaveOccurred())
		Expect(typed).To(BeZero())
		Expect(printed).To(Equal("Logged in already.\r\n"))
	})

	It("does not wait for processes that the command leaves in the terminal", func(ctx SpecContext) {
		_, _, err := into(ctx, "setsid sleep 600 & echo done")
		Expect(err).NotTo(HaveOccurred())
	}, SpecTimeout(time.Minute))

	It("kills a command that outlasts the context", func(ctx SpecContext) {
		cause := errors.New("enough")
		short, cancel := context.WithTimeoutCause(ctx, 200*time.Millisecond, cause)
		defer cancel()
		_, _, err := into(short, "trap '' INT; echo waiting; while :; do sleep 600; done", "\x03")
		Expect(err).To(Equal(cause))
	}, SpecTimeout(time.Minute))
})
