//go:build unix

package main_test

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/http/httptest"
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
		c.Env = append(append(p.env, "CI=true", "GITHUB_ACTIONS=true", "GITHUB_STEP_SUMMARY="+p.dir+"/summary",
			"GITHUB_OUTPUT="+p.dir+"/output"), inputs...)
		text, err := c.CombinedOutput()
		Expect(err).NotTo(HaveOccurred(), string(text))
		return string(text), p.read("summary"), p.read("output")
	}

	It("runs what its inputs say, and hands on summary, annotations and status", func() {
		p := newPlace()
		p.write("my tests/unused.txtar", good)
		p.write("tests/good.txtar", good)
		p.write("tests/bad.txtar", scenario("prompt 'Say hello.'", "await turn refusal"))
		out, summary, outputs := as(p, "ACP_COMMAND=acp-test 'refagent'", "ACP_SCENARIOS=tests", "ACP_STRICT=true",
			"ACP_AGENT=", "ACP_SUITES=", "ACP_BASELINE=", "ACP_SHARD=")
		Expect(out).To(MatchRegexp(`(?m)^::error file=tests/bad\.txtar,line=2,title=bad#hello::A greeting\.`))
		Expect(summary).To(And(ContainSubstring("### fail bad"), ContainSubstring("`tests/bad.txtar`")))
		Expect(outputs).To(Equal("exit=1\nout=acp-test-out\n"))
		Expect(p.results().Strict).To(BeTrue())

		_, _, outputs = as(p, "ACP_COMMAND=acp-test refagent", "ACP_SCENARIOS=tests/good.txtar")
		Expect(outputs).To(HavePrefix("exit=0\n"))
	})

	It("tests an endpoint of AG-UI", func() {
		p := newPlace()
		_, _, outputs := as(p, "ACP_PROTOCOL=ag-ui", "ACP_SUITES=runs",
			"ACP_COMMAND=acp-test refagent --ag-ui 127.0.0.1:0")
		Expect(outputs).To(HavePrefix("exit=0\n"))
		Expect(p.results().Protocol).To(Equal("ag-ui"))
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

var _ = Describe("the GitHub action has the program", func() {
	var p *place
	var served map[string][]byte // what the release has, by path
	var asked []string           // the paths of requests
	var server *httptest.Server
	BeforeEach(func() {
		p = newPlace()
		asked = nil
		var archive bytes.Buffer
		c := exec.Command("sh", "-c", `mkdir acp-test-linux-amd64; printf '#!/bin/sh\necho it is 0.0.7\n' `+
			`>acp-test-linux-amd64/acp-test; chmod +x acp-test-linux-amd64/acp-test; tar -czf - acp-test-linux-amd64`)
		c.Dir, c.Stdout = p.dir, &archive
		Expect(c.Run()).To(Succeed())
		served = map[string][]byte{
			"/latest":     []byte("moved"),
			"/tag/v0.0.7": []byte("a page"),
			"/download/v0.0.7/acp-test-linux-amd64.tar.gz": archive.Bytes(),
			"/download/v0.0.7/SHA256SUMS": fmt.Appendf(nil, "%x  acp-test-linux-amd64.tar.gz\n",
				sha256.Sum256(archive.Bytes())),
		}
		server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			asked = append(asked, r.URL.Path)
			body, ok := served[r.URL.Path]
			switch {
			case !ok:
				http.NotFound(w, r)
			case r.URL.Path == "/latest":
				http.Redirect(w, r, "/tag/v0.0.7", http.StatusFound)
			default:
				_, _ = w.Write(body)
			}
		}))
		DeferCleanup(server.Close)
	})
	// step runs a step of the action, and gives its outputs and what is added to PATH.
	step := func(name, version string) (outputs, path string) {
		GinkgoHelper()
		script, err := filepath.Abs("../../ci/action-install")
		Expect(err).NotTo(HaveOccurred())
		p.write("output", "")
		p.write("path", "")
		c := exec.Command("bash", script, name)
		c.Dir = p.dir
		c.Env = append(p.env, "VERSION="+version, "RUNNER_OS=Linux", "RUNNER_ARCH=X64", "RUNNER_TEMP="+p.dir+"/.tmp",
			"GITHUB_OUTPUT="+p.dir+"/output",
			"GITHUB_PATH="+p.dir+"/path", "ACP_TEST_RELEASES="+server.URL)
		text, err := c.CombinedOutput()
		Expect(err).NotTo(HaveOccurred(), string(text))
		return p.read("output"), strings.TrimSpace(p.read("path"))
	}

	It("from the release, and then from the cache", func() {
		outputs, _ := step("which", "latest")
		Expect(outputs).To(Equal("folder=" + p.dir + "/.tmp/acp-test\nversion=v0.0.7\n"))
		outputs, path := step("get", "v0.0.7")
		Expect(outputs).To(Equal("version=v0.0.7\nbuild=false\n"))
		said, err := exec.Command(path + "/acp-test").Output()
		Expect(err).NotTo(HaveOccurred())
		Expect(string(said)).To(Equal("it is 0.0.7\n"))
		before := len(asked)
		outputs, again := step("get", "0.0.7")
		Expect([]any{outputs, again, len(asked)}).
			To(Equal([]any{"version=v0.0.7\nbuild=false\n", path, before}), "%q", asked)
	})

	DescribeTable("else it is built", func(lacks, version string) {
		if lacks == "right sum" {
			served["/download/v0.0.7/SHA256SUMS"] = []byte("00  acp-test-linux-amd64.tar.gz\n")
		}
		delete(served, lacks)
		outputs, path := step("get", version)
		Expect([]any{outputs, path}).To(Equal([]any{"version=" + version + "\nbuild=true\n", ""}))
		Expect(filepath.Join(p.dir, ".tmp/acp-test/acp-test")).NotTo(BeAnExistingFile())
	},
		Entry("without an archive", "/download/v0.0.7/acp-test-linux-amd64.tar.gz", "v0.0.7"),
		Entry("without sums", "/download/v0.0.7/SHA256SUMS", "v0.0.7"),
		Entry("with another sum", "right sum", "v0.0.7"),
		Entry("of a branch", "", "main"),
		Entry("where the latest is not known", "/latest", "latest"),
	)
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
			Expect(sh(scripts[0], "JOB_COMPLETION_INDEX="+index, "JOB_COMPLETIONS=4")).
				To(Equal(0), "a part that fails is no failure of the pod")
		}
		Expect(sh(scripts[1], "PARTS=4")).To(Equal(1), "the whole failed")
		Expect(p.read("results/whole/results.json")).To(ContainSubstring(`"total": 5`))
	})
})
