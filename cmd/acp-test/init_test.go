//go:build unix

package main_test

import (
	"os"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("init", func() {
	var p *place
	BeforeEach(func() {
		p = newPlace()
		p.write("bin/my agent", "#!/bin/sh\necho \"here: $1 in $PWD\" >&2\nexec "+program+" refagent\n")
	})
	wrote := func(ciFile string) {
		GinkgoHelper()
		for _, name := range []string{"acp-test.yaml", "acp/hello.txtar", ciFile} {
			Expect(filepath.Join(p.dir, name)).To(BeARegularFile())
		}
	}

	It("writes what testing needs, and what it wrote runs", func() {
		got := p.run("init", "--name", "mine", "--", "./bin/my agent", "--acp $X")
		Expect(got.code).To(Equal(0), got.out+got.err)
		Expect(got.out).To(ContainSubstring("wrote acp/mine.yaml\n"))
		wrote(".github/workflows/acp.yml")
		Expect(p.read("acp/golden/mine/acp/hello.golden")).To(ContainSubstring(`"Hello from the model."`))
		again := p.run("run", "--strict", "--golden-required")
		Expect(again.code).To(Equal(0), again.out+again.err)
		Expect(p.read("acp-test-out/acp/hello/stderr.txt")).To(ContainSubstring("here: --acp $X in " + p.dir))
		Expect(p.run("lint", "acp").code).To(Equal(0))
		// Also from a folder below.
		here := p.dir
		p.dir = filepath.Join(here, "bin")
		Expect(p.run("run", "--golden-required").code).To(Equal(0))
	})

	It("asks for what the command line leaves open", func() {
		got := p.with("'./bin/my agent' --acp\ngitlab\n", "init")
		Expect(got.code).To(Equal(0), got.out+got.err)
		Expect(got.out).To(HavePrefix("How is your agent started? Which CI system (github, gitlab, jenkins, none)? [github] wrote "))
		wrote(".gitlab-ci.yml")
		Expect(filepath.Join(p.dir, "acp/my-agent.yaml")).To(BeARegularFile())
	})

	It("overwrites nothing", func() {
		p.write("Jenkinsfile", "mine")
		got := p.run("init", "--ci", "jenkins", "--", "./bin/my agent")
		Expect(got).To(Equal(ended{2, "", "acp-test: init: Jenkinsfile is there already; nothing was written\n"}))
		Expect(p.read("Jenkinsfile")).To(Equal("mine"))
		Expect(filepath.Join(p.dir, "acp-test.yaml")).NotTo(BeAnExistingFile())
	})

	It("says what to do when the agent does not pass", func() {
		got := p.run("init", "--ci", "none", "--", "sh", "-c", "exit 3")
		Expect(got.code).To(Equal(1))
		Expect(got.out).To(ContainSubstring("does not pass its first scenario yet"))
		Expect(filepath.Join(p.dir, "acp/sh.yaml")).To(BeARegularFile())
	})

	DescribeTable("refuses", func(in, want string, args ...string) {
		got := p.with(in, append([]string{"init"}, args...)...)
		Expect(got.code).To(Equal(2))
		Expect(got.err).To(ContainSubstring(want))
	},
		Entry("no command", "\n", "the agent's command is missing"),
		Entry("half a quote", "'x\n", "ends inside a quote"),
		Entry("an unknown CI system", "", `--ci: there is no "githb" (did you mean "github"?)`, "--ci", "githb", "--", "x"),
		Entry("a bad name", "", `--name "A b"`, "--name", "A b", "--", "x"),
		Entry("a word that is no command", "", "the agent's command comes after --", "x"),
	)

	It("writes the templates that ci/ shows", func() {
		for template, file := range map[string]string{"gitlab.yml": "gitlab.yml", "Jenkinsfile": "Jenkinsfile", "github.yml": "github.yml"} {
			want, err := os.ReadFile(filepath.Join("templates", template))
			Expect(err).NotTo(HaveOccurred())
			got, err := os.ReadFile(filepath.Join("..", "..", "ci", "samples", file))
			Expect(err).NotTo(HaveOccurred())
			Expect(string(got)).To(Equal(string(want)), file)
		}
	})
})
