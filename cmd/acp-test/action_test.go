//go:build unix

package main_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("the GitHub action", func() {
	// as runs the script of the action as GitHub's runner does, and gives what
	// it said, its summary and its outputs.
	as := func(p *place, inputs ...string) (out, summary, outputs string) {
		GinkgoHelper()
		script, err := filepath.Abs("../../ci/action")
		Expect(err).NotTo(HaveOccurred())
		for _, f := range []string{"summary", "output"} {
			p.write(f, "")
		}
		c := exec.Command("bash", script)
		c.Dir = p.dir
		c.Env = append(append(p.env, "CI=true", "GITHUB_ACTIONS=true", "GITHUB_STEP_SUMMARY="+p.dir+"/summary", "GITHUB_OUTPUT="+p.dir+"/output"), inputs...)
		text, err := c.CombinedOutput()
		Expect(err).NotTo(HaveOccurred(), string(text))
		return string(text), p.read("summary"), p.read("output")
	}

	It("runs what its inputs say, and hands on summary, annotations and status", func() {
		p := newPlace()
		p.write("my tests/unused.txtar", good)
		p.write("tests/good.txtar", good)
		p.write("tests/bad.txtar", scenario("prompt 'Say hello.'", "await turn refusal"))
		out, summary, outputs := as(p, "ACP_COMMAND=acp-test 'refagent'", "ACP_SCENARIOS=tests", "ACP_STRICT=true", "ACP_AGENT=", "ACP_SUITES=", "ACP_BASELINE=", "ACP_SHARD=")
		Expect(out).To(MatchRegexp(`(?m)^::error file=tests/bad\.txtar,line=2,title=bad#hello::A greeting\.`))
		Expect(summary).To(And(ContainSubstring("### fail bad"), ContainSubstring("`tests/bad.txtar`")))
		Expect(outputs).To(Equal("exit=1\nout=acp-test-out\n"))
		Expect(p.results().Strict).To(BeTrue())

		_, _, outputs = as(p, "ACP_COMMAND=acp-test refagent", "ACP_SCENARIOS=tests/good.txtar")
		Expect(outputs).To(HavePrefix("exit=0\n"))
	})

	It("says so when the run cannot begin", func() {
		p := newPlace()
		_, summary, outputs := as(p, "ACP_SUITES=nothing")
		Expect(summary).To(Equal("acp-test could not begin, with exit status 2\n"))
		Expect(outputs).To(Equal("exit=2\n"))
	})

	It("takes a hostile input for a word", func() {
		p := newPlace()
		_, _, outputs := as(p, "ACP_AGENT=$(touch pwned); touch pwned", "ACP_SHARD=1/1 --x")
		Expect(outputs).To(Equal("exit=2\n"))
		Expect(filepath.Join(p.dir, "pwned")).NotTo(BeAnExistingFile())
	})
})

var _ = Describe("the Kubernetes Job", func() {
	It("makes parts, and joins them, with the commands of the manifest", func() {
		src, err := os.ReadFile("../../ci/kubernetes.yml")
		Expect(err).NotTo(HaveOccurred())
		var scripts []string
		for _, part := range strings.Split(string(src), "args:\n            - |\n")[1:] {
			text, _, ok := strings.Cut(part, "          env:\n")
			Expect(ok).To(BeTrue())
			scripts = append(scripts, text)
		}
		Expect(scripts).To(HaveLen(2))
		p := newPlace()
		p.write("acp-test.yaml", "scenarios: [tests]\n")
		for _, name := range []string{"a", "b", "c", "d", "e"} {
			p.write("tests/"+name+".txtar", good)
		}
		p.write("tests/e.txtar", scenario("prompt 'Say hello.'", "await turn refusal"))
		sh := func(script string, env ...string) int {
			// A pod has these folders to itself.
			script = strings.NewReplacer("/results", p.dir+"/results", "/tmp/part", p.dir+"/part").Replace(script)
			c := exec.Command("sh", "-c", script)
			c.Dir, c.Env = p.dir, append(p.env, env...)
			return status(c.Run())
		}
		for _, index := range []string{"0", "1", "2", "3"} {
			Expect(sh(scripts[0], "JOB_COMPLETION_INDEX="+index, "JOB_COMPLETIONS=4")).To(Equal(0), "a part that fails is no failure of the pod")
		}
		Expect(sh(scripts[1], "PARTS=4")).To(Equal(1), "the whole failed")
		Expect(p.read("results/whole/results.json")).To(ContainSubstring(`"total": 5`))
	})
})
