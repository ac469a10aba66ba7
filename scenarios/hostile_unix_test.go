//go:build unix

package scenarios_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/acp-test/acp-test/agents"
	"github.com/acp-test/acp-test/scenarios"
	"github.com/acp-test/acp-test/scenarios/results"
)

var _ = Describe("a hostile file", func() {
	const secret = "harness-secret-4711"
	// leave runs a scenario with an agent that runs a command in the workspace.
	leave := func(command, script string) (*scenarios.Engine, results.Result) {
		e := engineFor(agents.AdHoc([]string{"sh", "-c", `
read -r initialize
echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1,"agentCapabilities":{"promptCapabilities":{"embeddedConte` +
			`xt":true}}}}'
read -r new; echo '{"jsonrpc":"2.0","id":2,"result":{"sessionId":"s"}}'
cd "$(printf %s "$new" | sed 's/.*"cwd":"\([^"]*\)".*/\1/')"
read -r prompt
` + command + `
echo '{"jsonrpc":"2.0","id":3,"result":{"stopReason":"end_turn"}}'
cat >/dev/null`}))
		outside := filepath.Join(GinkgoT().TempDir(), "outside")
		Expect(os.WriteFile(outside, []byte(secret+"\n"), 0o600)).To(Succeed())
		e.Host = append(e.Host, "OUTSIDE="+outside)
		e.Env = map[string]string{"OUTSIDE": outside}
		return e, run(e, "check a\nprompt Go.\nawait turn\n"+script)
	}
	DescribeTable("is named, and nothing of it is shown", func(command, script, says string) {
		begin := time.Now()
		e, r := leave(command, script)
		Expect(time.Since(begin)).To(BeNumerically("<", 15*time.Second)) // the limit of a scenario is more
		Expect(r.Checks[0].Verdict).To(Equal(results.Fail), text(r))
		Expect(r.Checks[0].Failure.Observed).To(ContainSubstring(says))
		Expect(text(r)).NotTo(ContainSubstring(secret))
		Expect(filepath.WalkDir(e.Out, func(name string, d os.DirEntry, err error) error {
			if err == nil && !d.IsDir() {
				raw, err := os.ReadFile(name)
				Expect(err).NotTo(HaveOccurred())
				Expect(string(raw)).NotTo(ContainSubstring(secret))
			}
			return err
		})).To(Succeed())
	},
		Entry("a FIFO", "mkfifo x", "cmp x want/x\n-- want/x --\n",
			"x: it is a FIFO (named pipe): want a regular file"),
		Entry("a link out", `ln -s "$OUTSIDE" x`, "cmp x want/x\n-- want/x --\n",
			"x: the path leads out of the directory"),
		Entry("the harness's environment", `ln -s /proc/self/environ x`, "cmp x want/x\n-- want/x --\n",
			"x: the path leads out"),
		Entry("a device", `ln -s /dev/zero x`, "cmp x want/x\n-- want/x --\n", "x: the path leads out"),
		Entry("a sparse file", "truncate -s 1T x", "cmp x want/x\n-- want/x --\n",
			"x: the file is too large: 1099511627776 bytes"),
		Entry("another workspace", `cd ..; rm -r work; ln -s "$(dirname "$OUTSIDE")" work`,
			"cmp outside want/x\n-- want/x --\n", "outside: the path leads out"),
		Entry("what is attached", `ln -s "$OUTSIDE" x`, "prompt Again. attach=x\n",
			"x: the path leads out of the directory"),
		Entry("what is looked for", `ln -s "$(dirname "$OUTSIDE")" x`, "exists x/outside\n",
			"x/outside: the path leads out of the directory"),
		Entry("what is looked for in vain", `ln -s / x`, "! exists x/none\n",
			"x/none: the path leads out of the directory"),
	)
	DescribeTable("is not reached by a line that leads out of the run", func(line, says string) {
		_, r := leave("true", line+"\n-- want/x --\n")
		Expect(r.Verdict).To(Equal(results.Error), text(r))
		Expect(text(r)).To(ContainSubstring(says))
	},
		Entry("attach", "prompt Again. attach=$WORK/../../../../../../../../etc/passwd",
			"passwd is outside of the run's directories: name a file below $WORK"),
		Entry("cmp", "cmp $WORK/../../../../../../../../etc/passwd want/x",
			"passwd is outside of the run's directories"),
		Entry("exists", "exists $TMP/../../x", "/x is outside of the run's directories"),
		Entry("await file", "await file $HOME/../../x", "/x is outside of the run's directories"),
		Entry("session cwd", "session new other cwd=$WORK/../..", ".. is outside of the run's directories"),
		Entry("session add", "session new other add=$WORK/../..", ".. is outside of the run's directories"),
	)
	It("does not go on for ever in one line", func() {
		e := engineFor(agents.AdHoc([]string{"sh", "-c", `exec 4<&0; exec tr '\0' x </dev/zero`}))
		r := run(e, "check a\nprompt Go.\nawait turn\n")
		Expect(text(r)).To(ContainSubstring("The agent was killed: it wrote more than 256 MiB in one scenario"))
	})
	It("has reached the model that refuses it", func() {
		p, err := agents.Shipped("reference")
		Expect(err).NotTo(HaveOccurred())
		r := run(engineFor(p), "check a\nprompt Go.\nawait turn any|error\n-- llm.yaml --\nmodels: [other]\n"+
			"replies:\n  - - text: Hi.\n")
		Expect([]bool{r.Reached, r.Unreached}).To(Equal([]bool{true, false}), text(r))
	})
	It("tells the time since its command began", func() {
		e := engineFor(agents.AdHoc([]string{"true"}))
		e.Began = time.Now().Add(-time.Hour)
		s, err := e.Protocol.Parse("case", "case.txtar", []byte("check a\nprompt Go.\n"))
		Expect(err).NotTo(HaveOccurred())
		Expect(e.RunAll(context.Background(), []*scenarios.Scenario{s}, scenarios.Plan{}).Duration).
			To(BeNumerically(">", time.Hour))
	})
	It("is in the difference of the workspace as what it is", func() {
		e, r := leave(`mkfifo fifo; ln "$OUTSIDE" hard; ln -s "$OUTSIDE" link; truncate -s 1T sparse; mkdir 'a
b'; echo text > 'a
b/c'`, "")
		Expect(r.Artifacts).To(HaveKey("workspace"), text(r))
		raw, err := os.ReadFile(filepath.Join(e.Out, r.Artifacts["workspace"]))
		Expect(err).NotTo(HaveOccurred())
		Expect(string(raw)).To(And(
			ContainSubstring("new file fifo\n-want +got\n@@ line 1 @@\n+special file p"),
			ContainSubstring("new file hard\n-want +got\n@@ line 1 @@\n+hard link, one of 2 names of a file: 20 bytes"),
			ContainSubstring("+link to /"), ContainSubstring("+1099511627776 bytes, more than"),
			ContainSubstring(`new file "a\nb/c"`), Not(ContainSubstring(secret))))
	})
	It("is not written to", func() {
		_, r := leave("mkfifo x", "write x text\n")
		Expect(text(r)).To(ContainSubstring("x: it is a FIFO (named pipe)"))
	})
	It("is left out of what is kept", func() {
		e, _ := leave("true", "")
		e.Keep = true
		r := run(e, "check a\nprompt Go.\nawait turn\n")
		Expect(r.Artifacts).To(HaveKey("run"), text(r))
		e, _ = leave("mkfifo x; echo y > y", "")
		e.Keep = true
		r = run(e, "check a\nprompt Go.\nawait turn\n")
		Expect(strings.Join(r.Notes, "\n")).
			To(ContainSubstring("keeping the run's directory: open work/x: it is a FIFO"))
		Expect(os.ReadFile(filepath.Join(e.Out, r.Artifacts["run"], "work", "y"))).To(Equal([]byte("y\n")))
	})
})
