package main_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"golang.org/x/tools/txtar"
)

// sayings are ways to say a secret.
var sayings = []string{"my password is %s", "api_key=%s", "run --token %s", "Authorization: Bearer %s",
	"https://me:%s@host/x",
	`{"secret": "%s"}`, "GH_TOKEN=%s", "Cookie: %s"}

// everywhere is a scenario in which the reference agent says, writes, runs and sends a secret in each form, and how
// many those are.
func everywhere() (text string, n int) {
	lines := "check all\nmcp canary stdio\npermit allow_once\nterminal real\nsession new main\n"
	model := "-- llm.yaml --\nturns:\n"
	for _, form := range sayings {
		said := func() string {
			n++
			return strings.ReplaceAll(form, "%s", fmt.Sprintf("pl4in-S3cr3t-%d", 200+n))
		}
		lines += fmt.Sprintf("prompt '%s'\nawait turn end_turn\n", said())
		model += fmt.Sprintf("  - - - text: %q\n      - tool: write_file\n        args: {path: $WORK/notes.txt, "+
			"content: %q}\n"+
			"    - - tool: run_shell\n        args: {command: %q}\n"+
			"    - - tool: mcp\n        args: {server: canary, tool: canary_sing, args: {text: %q}}\n"+
			"    - - thinking: %q\n      - text: Done.\n", said(), said(), "echo '"+said()+"'", said(), said())
	}
	return lines + model, n
}

// One agent says a secret in each place that it can; what is printed and written of it has none.
var _ = Describe("a secret of the agent's", Ordered, func() {
	planted := regexp.MustCompile(`pl4in?[^ ]*`) // also what is left of one that was cut
	var p *place
	var printed map[string]string
	BeforeAll(func() {
		oneOf(0)
		archive, err := txtar.ParseFile("testdata/leaks.txtar")
		Expect(err).NotTo(HaveOccurred())
		p = newPlace()
		p.env = append(p.env, "MY_TOKEN=required") // a word of the scenario
		for _, f := range archive.Files {
			p.write(f.Name, strings.NewReplacer("DIR/", p.dir+"/", "FORMS", "'"+strings.Join(sayings, "' '")+"'").
				Replace(string(f.Data)))
		}
		text, n := everywhere()
		Expect(strings.Count(string(archive.Files[0].Data), "pl4in") - 2 + 2*len(sayings) + n).
			To(BeNumerically(">=", 96))
		p.write("everywhere.txtar", text)
		command := []string{"run", "required.txtar", "--agent", "leaky.yaml", "--update", "-v"}
		for _, format := range []string{"json", "junit", "html", "markdown", "tap", "badge", "github"} {
			command = append(command, "--report", format)
		}
		printed = map[string]string{}
		again := slices.Concat([]string{"run", "everywhere.txtar", "--out", "more"}, command[4:])
		const log, more = "acp-test-out/required/transcript.jsonl", "more/everywhere/transcript.jsonl"
		for _, words := range [][]string{command, {"show", log}, {"check", log}, {"convert", log, "--partial"},
			{"report", "convert", "acp-test-out/results.json", "--to", "github"},
			{"explore", "--sessions", "3", "--agent", "leaky.yaml", "--out", "explored", "--repro", "repro"},
			{"reduce", log, "--out", "small.txtar", "--issue", "issue.md", "--", "sh", p.dir + "/agent.sh"},
			again, {"show", more}, {"show", more, "--canonical"}, {"check", more}, {"convert", more}} {
			got := p.run(words...)
			printed[words[0]] += got.out + got.err
		}
		a := p.mcp("acp-test-out")
		for tool, args := range map[string]map[string]any{"list": nil, "causes": {"run": "results.json"},
			"failure": {"run": "results.json", "scenario": "required"},
			"frames":  {"file": "required/transcript.jsonl"}, "findings": {"file": "required/transcript.jsonl"}} {
			printed["mcp "+tool], _ = a.call(tool, args)
		}
	})

	It("is in nothing that is printed", func() {
		for name, text := range printed {
			if slices.Contains([]string{"run", "show", "check", "convert", "mcp causes", "mcp frames"}, name) {
				Expect(text).To(ContainSubstring("REDACTED"), name)
			}
			Expect(planted.FindAllString(text, -1)).To(BeEmpty(), name)
		}
	})

	It("is in no file that is written", func() {
		n := 0
		for name, text := range p.all() {
			// The agent runs in the user's folder. It wrote two of these files itself.
			if !strings.Contains("agent.sh leaky.yaml required.txtar everywhere.txtar leak.txt "+
				"passwd=pl4in-S3cr3t-13.txt", name) {
				n++
				Expect(planted.FindAllString(text, -1)).To(BeEmpty(), name)
			}
		}
		Expect(n).To(BeNumerically(">=", 20))
		Expect(p.read("more/everywhere/transcript.jsonl")).
			To(And(ContainSubstring("terminal/output"), ContainSubstring("api_key=REDACTED")))
		Expect(p.read("issue.md")).To(ContainSubstring("REDACTED"))
		Expect(p.read("repro/ONE-RESPONSE-1.txtar")).To(ContainSubstring("Expect a fail of ONE-RESPONSE"))
		Expect(p.read("acp-test-out/required/workspace.diff")).To(ContainSubstring("api_key=REDACTED"))
	})

	It("is told from a word of the user's", func() {
		Expect(p.results().Results[0].ID).To(Equal("required"))
		Expect(p.read("acp-test-out/junit.xml")).To(ContainSubstring(`name="required"`))
	})
})
