//go:build unix

package main_test

import (
	"os"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// transcripts runs a part of the suites and returns their transcripts.
func transcripts(p *place, match string) []string {
	GinkgoHelper()
	got := p.run("run", "-q", "--run", match, "--out", "suites")
	Expect(got.code).To(Equal(0), got.out+got.err)
	var files []string
	Expect(filepath.WalkDir(filepath.Join(p.dir, "suites"), func(path string, _ os.DirEntry, err error) error {
		if filepath.Base(path) == "transcript.jsonl" {
			files = append(files, path)
		}
		return err
	})).To(Succeed())
	return files
}

// of what an editor and an agent do with each other there is one of each kind.
const variety = `^(prompt-turn/(text|many-chunks)|cancel/(mid-stream-at-gate|tool-running|by-request|fs-req` +
	`uest-open)|` +
	`load/(fresh-process|after-kill-keeps)|session/(two-are-apart|three-at-once)|mcp/(stdio|http)|` +
	`files/(unsaved-buffer|read-error)|terminal/cancel|auth/required|list/pages|elicitation/declined-with-content)$`

var _ = Describe("a session that was recorded", func() {
	It("is replayed and becomes a scenario, with all that it needs", func() {
		p := newPlace()
		files := transcripts(p, variety)
		Expect(len(files)).To(BeNumerically(">=", 15))
		got := p.run(append([]string{"replay", "--out", "replayed"}, files...)...)
		Expect(got.code).To(Equal(0), got.out+got.err)
		var list []string
		for _, file := range files {
			name := strings.ReplaceAll(filepath.Base(filepath.Dir(filepath.Dir(file))), "/", "-") + "-" +
				filepath.Base(filepath.Dir(file)) + ".txtar"
			got := p.run("convert", file, "--agent", "reference", "--out", filepath.Join("again", name))
			Expect(got.code).To(Equal(0), name+got.out+got.err)
			list = append(list, filepath.Join("again", name))
		}
		got = p.run(append([]string{"lint"}, list...)...)
		Expect(got.code).To(Equal(0), got.out+got.err)
		Expect(p.run(append([]string{"fmt", "--list"}, list...)...).out).To(BeEmpty())
		got = p.run(append([]string{"run", "--golden-required", "-q"}, list...)...)
		Expect(got.code).To(Equal(0), got.out+got.err)
	})

	It("shows where an agent does something else than it did", func() {
		p := newPlace()
		files := transcripts(p, "^prompt-turn/text$")
		got := p.run("replay", files[0], "--fault", "stop-reason-unknown")
		Expect(got.code).To(Equal(1))
		Expect(got.out).To(And(ContainSubstring("the messages differ from the recording"),
			ContainSubstring("-<-- end_turn")))
	})

	It("is refused where it loads a session that is older than itself", func() {
		p := newPlace()
		got := p.run("run", "-q", "--run", "^load/fresh-process$", "--profile", "none", "--", "acp-test", "record",
			"--llm", "--out",
			filepath.Join(p.dir, "rec")+"/", "--", "acp-test", "refagent")
		Expect(got.code).To(Equal(0), got.out+got.err)
		files, err := filepath.Glob(filepath.Join(p.dir, "rec", "*.jsonl"))
		Expect(err).NotTo(HaveOccurred())
		Expect(files).To(HaveLen(2), "one of each process")
		var refused []string
		for _, file := range files {
			if got := p.run("replay", "-q", file); got.code != 0 {
				refused = append(refused, got.err)
			}
		}
		Expect(refused).To(ConsistOf(ContainSubstring(" is loaded in the recording but began before it")))
	})

	It("is never moved or removed by what reads it", func() {
		p := newPlace()
		files := transcripts(p, "^prompt-turn/text$")
		for _, args := range [][]string{
			{"replay", files[0], "--out", "suites"},
			{"run", "-q", "--run", "^prompt-turn/text$", "--out", "suites", "--against", "suites"},
		} {
			before, err := os.ReadFile(files[0])
			Expect(err).NotTo(HaveOccurred())
			for range 3 {
				got := p.run(args...)
				Expect(got.err).To(ContainSubstring("this command reads files in suites, so the results go " +
					"to suites-2"))
				after, err := os.ReadFile(files[0])
				Expect(err).NotTo(HaveOccurred())
				Expect(after).To(Equal(before))
			}
		}
	})

	It("is read as far as it can be, and what is left out is named", func() {
		p := newPlace()
		files := transcripts(p, "^prompt-turn/text$")
		lines := strings.SplitAfter(p.read(strings.TrimPrefix(files[0], p.dir+"/")), "\n")
		lines[8] = "{\"seq\":\n"
		p.write("damaged.jsonl", strings.Join(lines, ""))
		got := p.run("check", "damaged.jsonl")
		Expect(got.err).To(ContainSubstring("damaged.jsonl: line 9 is left out: "))
		Expect(p.run("show", "damaged.jsonl").out).To(ContainSubstring("session/prompt"))
	})

	It("shrinks to the lines that show what went wrong, with a text for a report", func() {
		p := newPlace()
		p.write("long.txtar", `# Much business, and a turn in which a command runs.
permit allow_once
prompt 'One.'
await turn end_turn
prompt 'Two.'
await turn end_turn
prompt 'Three: read it.'
await turn end_turn
prompt 'Four.'
await turn end_turn
-- a.txt --
hello
-- b.txt --
other
-- llm.yaml --
turns:
  - - - text: [One, " and ", more]
  - - - text: Two.
  - - - text: Reading.
      - tool: read_file
        args: {path: $WORK/a.txt}
    - - text: Read.
  - - - text: Four.
`)
		fault := []string{"--fault", "tool-without-title"}
		got := p.run(append([]string{"run", "-q", "long.txtar", "--out", "o"}, fault...)...)
		Expect(got.code).To(Equal(1), got.out+got.err)
		got = p.run(append([]string{"reduce", "o/long/transcript.jsonl", "--out", "small.txtar", "--issue", "issue.md"},
			fault...)...)
		Expect(got.code).To(Equal(0), got.out+got.err)
		small := p.read("small.txtar")
		Expect(small).To(And(ContainSubstring("prompt main 'Three: read it.'"),
			ContainSubstring("# Run: acp-test run small.txtar"),
			Not(ContainSubstring("Two.")), Not(ContainSubstring("b.txt"))))
		Expect(p.run("lint", "small.txtar")).To(Equal(ended{0, "1 scenario passes\n", ""}))
		Expect(p.run(append([]string{"run", "-q", "small.txtar"}, fault...)...).code).To(Equal(1))
		Expect(p.run("run", "-q", "small.txtar").code).To(Equal(0))
		Expect(p.read("issue.md")).To(And(ContainSubstring("## Expected"), ContainSubstring("## Observed"),
			ContainSubstring("## Transcript"), ContainSubstring("session/prompt")))

		got = p.run("reduce", "o/long/transcript.jsonl")
		Expect(got.code).To(Equal(1))
		Expect(got.err).To(ContainSubstring("did not appear again"))
	})

	It("is reduced though its agent fails at more in some runs than in others", func() {
		p := newPlace()
		p.write("agent.sh", `read -r initialize
echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1,"agentCapabilities":{"loadSession":"yes"}}}'
cd "$(dirname "$0")" # it is started once to see whether it can be, and then for the first run
mkdir one 2>/dev/null || mkdir two 2>/dev/null || echo '{"jsonrpc":"2.0","id":77,"result":{}}'
read -r new
echo '{"jsonrpc":"2.0","id":2,"result":{"sessionId":"s"}}'
read -r _
`)
		p.write("bad.txtar", "session new main\n")
		got := p.run("reduce", "bad.txtar", "--cause", "SHAPE", "--", "sh", p.dir+"/agent.sh")
		Expect(got.code).To(Equal(0), got.out+got.err)
		Expect(got.out).To(ContainSubstring("fails in 5 of 5 runs"))
	})
})
