package main_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gexec"

	"github.com/acp-test/acp-test/ci/proof"
	"github.com/acp-test/acp-test/scenarios/results"
)

func TestCommand(t *testing.T) {
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(2 * time.Minute) // the end of it is a failure, never a verdict on speed
	RunSpecs(t, "acp-test")
}

var program string // the path of acp-test, built once

var _ = SynchronizedBeforeSuite(func() []byte {
	path, err := gexec.Build("github.com/acp-test/acp-test/cmd/acp-test")
	Expect(err).NotTo(HaveOccurred())
	return []byte(path)
}, func(path []byte) { program = string(path) })

var _ = SynchronizedAfterSuite(func() {}, gexec.CleanupBuildArtifacts)

// place is a folder of a user's, and the environment of a shell there.
type place struct {
	dir string
	env []string
}

func newPlace() *place {
	GinkgoHelper()
	p := &place{dir: GinkgoT().TempDir()}
	tmp := filepath.Join(p.dir, ".tmp")
	Expect(os.Mkdir(tmp, 0o755)).To(Succeed())
	p.env = []string{"PATH=" + filepath.Dir(program) + ":" + os.Getenv("PATH"), "HOME=" + p.dir, "TMPDIR=" + tmp,
		"TERM=xterm",
		"GIT_DISCOVERY_ACROSS_FILESYSTEM=1"} // git says the same wherever the folder is
	return p
}

func (p *place) write(name, text string) {
	GinkgoHelper()
	file := filepath.Join(p.dir, name)
	Expect(os.MkdirAll(filepath.Dir(file), 0o755)).To(Succeed())
	Expect(os.WriteFile(file, []byte(text), 0o755)).To(Succeed())
}

func (p *place) read(name string) string {
	GinkgoHelper()
	text, err := os.ReadFile(filepath.Join(p.dir, name))
	Expect(err).NotTo(HaveOccurred())
	return string(text)
}

func (p *place) command(args ...string) *exec.Cmd {
	c := exec.Command(program, args...)
	c.Dir, c.Env = p.dir, p.env
	return c
}

// ended is how a command line ended.
type ended struct {
	code     int
	out, err string
}

func (p *place) run(args ...string) ended {
	GinkgoHelper()
	return p.with("", args...)
}

// with gives the command a text on stdin.
func (p *place) with(in string, args ...string) ended {
	GinkgoHelper()
	c := p.command(args...)
	var out, err bytes.Buffer
	c.Stdin, c.Stdout, c.Stderr = strings.NewReader(in), &out, &err
	return ended{status(c.Run()), out.String(), err.String()}
}

func status(err error) int {
	GinkgoHelper()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return exit.ExitCode()
	}
	Expect(err).NotTo(HaveOccurred())
	return 0
}

func (p *place) results() results.Run { return p.resultsIn("acp-test-out") }

func (p *place) resultsIn(dir string) results.Run {
	GinkgoHelper()
	var run results.Run
	Expect(json.Unmarshal([]byte(p.read(dir+"/results.json")), &run)).To(Succeed())
	return run
}

// scenario is a file with one turn, in which the model says Hello.
func scenario(lines ...string) string {
	return "# A greeting.\ncheck hello\n" + strings.Join(lines, "\n") + `
-- llm.yaml --
replies:
  - - text: Hello.
`
}

var good = scenario("prompt 'Say hello.'", "await turn end_turn")

// oneOf skips a test that is the i-th of many and not in this run's part of them.
func oneOf(i int) {
	if !proof.Part(i) {
		Skip("another commit has this part")
	}
}
