package clients_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// The clients run at the same time on one server, each under a path of its
// own.
var _ = Describe("the vendors' JavaScript clients", func() {
	It("hold a conversation", func(ctx SpecContext) {
		dir := filepath.Join("..", "..", "ci", "fakellm-npm")
		if _, err := os.Stat(filepath.Join(dir, "node_modules", "openai")); err != nil {
			Fail("the JavaScript clients are not installed: run `npm ci --prefix ci/fakellm-npm` (Node 20 or later)")
		}
		r := serving()
		cmd := exec.CommandContext(ctx, "node", "clients.mjs", r.URL())
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "NO_COLOR=1", "OPENAI_LOG=off")
		out, err := cmd.CombinedOutput()
		Expect(err).NotTo(HaveOccurred(), "%s", out)
		Expect(strings.Count(string(out), "ok ")).To(Equal(8), "%s", out)
	}, SpecTimeout(time.Minute))
})
