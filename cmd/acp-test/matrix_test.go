//go:build unix

package main_test

import (
	"os/exec"
	"regexp"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// compared is the part of matrix.md that has to be the same again.
func (p *place) compared(file string) string {
	before, _, found := strings.Cut(p.read(file), "\n## Measured\n")
	ExpectWithOffset(1, found).To(BeTrue())
	return before
}

var _ = Describe("matrix", func() {
	var p *place
	BeforeEach(func() { p = newPlace() })

	few := []string{"--run", "^(cancel/mid-stream-at-gate|prompt-turn/text)$"}

	It("shows an agent that does all, and is the same three times", func() {
		var tables []string
		for range 3 {
			got := p.run(append([]string{"matrix", "reference"}, few...)...)
			Expect(got.code).To(BeZero(), got.out+got.err)
			Expect(got.out).NotTo(ContainSubstring("FAIL "))
			tables = append(tables, p.compared("acp-test-matrix/matrix.md"))
		}
		Expect(tables[1]).To(Equal(tables[0]))
		Expect(tables[2]).To(Equal(tables[0]))
		Expect(tables[0]).To(MatchRegexp(`(?m)^\| CANCEL-001 .* \| ok \|$`))
		Expect(tables[0]).To(ContainSubstring("- reference: `sessionId`\n"), "what differs when the same is done twice")
		measured := strings.TrimPrefix(p.read("acp-test-matrix/matrix.md"), tables[0])
		Expect(measured).To(MatchRegexp(`(?m)^\| model requests of a text turn \| 1 \|$`))
		Expect(measured).To(MatchRegexp(`(?m)^\| cancel to end of turn \| < \S+ \|$`))
		Expect(measured).To(MatchRegexp(`(?m)^\| start-up \| < \S+ \|$`))
		Expect(p.read("acp-test-matrix/matrix.html")).To(ContainSubstring("Agents compared"))
		Expect(p.read("acp-test-matrix/reference/report.html")).NotTo(BeEmpty())
	})

	It("shows what a fault breaks, with the command that shows it again", func() {
		got := p.run(append([]string{"matrix", "reference", "--fault", "cancel-end-turn"}, few...)...)
		Expect(got.code).To(Equal(1), got.err)
		Expect(got.out).To(MatchRegexp(`(?m)^CANCEL-001 +FAIL \d`))
		Expect(p.compared("acp-test-matrix/matrix.md")).To(MatchRegexp(`(?m)^\| CANCEL-001 .* \| FAIL `))
		again := regexp.MustCompile(`(?m)^ +(acp-test run .*)$`).FindStringSubmatch(got.out)
		Expect(again).NotTo(BeNil())
		c := exec.Command("sh", "-c", again[1])
		c.Dir, c.Env = p.dir, p.env
		out, err := c.CombinedOutput()
		Expect(status(err)).To(Equal(1), string(out))
		Expect(string(out)).To(ContainSubstring("FAIL  cancel/mid-stream-at-gate"))
	})

	It("keeps agents apart, and says of one that is not here how to get it", func() {
		p.write("mine.yaml", "name: mine\ntitle: Mine\ncommand: [acp-test, refagent, --fault, cancel-end-turn]\n"+
			"env: {OPENAI_BASE_URL: $LLM/v1, OPENAI_API_KEY: x}\nmodel: {wire: openai-chat}\n")
		p.write("away.yaml", "name: away\ncommand: [no-such-agent]\ninstall: {npm: no-such-agent@1.2.3}\n")
		got := p.run(append([]string{"matrix", "reference", "./mine.yaml", "./away.yaml"}, few...)...)
		Expect(got.code).To(Equal(1), got.err)
		Expect(got.err).To(ContainSubstring("3 of 3: away: not here; npm install --global no-such-agent@1.2.3\n"))
		table := p.compared("acp-test-matrix/matrix.md")
		Expect(table).To(MatchRegexp(`(?m)^\| CANCEL-001 .* \| ok \| FAIL [\d,]+ \| – \|$`))
		Expect(table).To(ContainSubstring("acp-test run --agent ./mine.yaml --run '^cancel/mid-stream-at-gate$'"))
		Expect(table).To(ContainSubstring("away did not run: "))
	})

	It("is an error when no agent can run", func() {
		p.write("away.yaml", "name: away\ncommand: [no-such-agent]\n")
		got := p.run("matrix", "./away.yaml")
		Expect(got.code).To(Equal(2))
		Expect(got.out).To(ContainSubstring("away"))
	})

	It("is a table of the protocol of the first agent, or of the one that is named", func() {
		got := p.run("matrix", "reference-ag-ui", "--run", "^runs/hello$")
		Expect(got.code).To(BeZero(), got.out+got.err)
		table := p.compared("acp-test-matrix/matrix.md")
		Expect(table).To(MatchRegexp(`(?m)^\| AGUI-RUN-001 .* \| ok \|$`))
		Expect(table).NotTo(ContainSubstring("CANCEL-"))
		Expect(p.read("acp-test-matrix/matrix.md")).To(ContainSubstring("| model requests of a text turn | 1 |"))

		got = p.run(append([]string{"matrix", "--protocol", "acp-v2"}, few...)...)
		Expect(got.code).To(BeZero(), got.out+got.err)
		Expect(got.err).To(ContainSubstring("1 of 1: reference-acp-v2 is done"))
		Expect(p.compared("acp-test-matrix/matrix.md")).To(MatchRegexp(`(?m)^\| V2-PRM-001 .* \| ok \|$`))

		got = p.run(append([]string{"matrix", "reference", "reference-ag-ui"}, few...)...)
		Expect(got.code).To(Equal(2))
		Expect(got.err).To(ContainSubstring("reference speaks acp-v1, and reference-ag-ui speaks ag-ui: " +
			"a matrix has one protocol; choose with --protocol"))
	})

	It("refuses two agents of one name", func() {
		got := p.run(append([]string{"matrix", "reference", "reference"}, few...)...)
		Expect(got.code).To(Equal(2))
		Expect(got.err).To(ContainSubstring("two agents are named reference"))
	})
})
