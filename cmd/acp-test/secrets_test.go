package main_test

import (
	"regexp"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"golang.org/x/tools/txtar"
)

// One agent says a secret in each place that it can; what is printed and written of it has none.
var _ = Describe("a secret of the agent's", Ordered, func() {
	planted := regexp.MustCompile(`pl4in-S3cr3t-\d\d`)
	var p *place
	var printed map[string]string
	BeforeAll(func() {
		archive, err := txtar.ParseFile("testdata/leaks.txtar")
		Expect(err).NotTo(HaveOccurred())
		p = newPlace()
		p.env = append(p.env, "MY_TOKEN=required") // a word of the scenario
		for _, f := range archive.Files {
			p.write(f.Name, strings.ReplaceAll(string(f.Data), "DIR/", p.dir+"/"))
		}
		command := []string{"run", "required.txtar", "--agent", "leaky.yaml", "--update", "-v"}
		for _, format := range []string{"json", "junit", "html", "markdown", "tap", "badge", "github"} {
			command = append(command, "--report", format)
		}
		printed = map[string]string{}
		for _, words := range [][]string{command, {"show", "acp-test-out/required/transcript.jsonl"},
			{"check", "acp-test-out/required/transcript.jsonl"}} {
			got := p.run(words...)
			printed[words[0]] = got.out + got.err
		}
	})

	It("is in nothing that is printed", func() {
		for name, text := range printed {
			Expect(text).To(ContainSubstring("REDACTED"), name)
			Expect(planted.FindAllString(text, -1)).To(BeEmpty(), name)
		}
	})

	It("is in no file that is written", func() {
		n := 0
		for name, text := range p.all() {
			if !strings.Contains("agent.sh leaky.yaml required.txtar", name) {
				n++
				Expect(planted.FindAllString(text, -1)).To(BeEmpty(), name)
			}
		}
		Expect(n).To(BeNumerically(">=", 10))
		Expect(p.read("acp-test-out/required/workspace.diff")).To(ContainSubstring("api_key=REDACTED"))
	})

	It("is told from a word of the user's", func() {
		Expect(p.results().Results[0].ID).To(Equal("required"))
		Expect(p.read("acp-test-out/junit.xml")).To(ContainSubstring(`name="required"`))
	})
})
