package transcript_test

import (
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/acp-test/acp-test/transcript"
)

func many(n int, line string) []string {
	var lines []string
	for i := range n {
		lines = append(lines, fmt.Sprintf("%s %d", line, i+1))
	}
	return lines
}

var _ = Describe("Failure", func() {
	It("says everything in a fixed order, and leaves out what is empty", func() {
		f := &transcript.Failure{
			Where:       "cancel/mid-stream.txtar:14",
			Requirement: []string{"CANCEL-004"},
			Statement:   "A cancelled turn ends with the stop reason cancelled.",
			Expected:    []string{"the turn's end with cancelled", "an error"},
			Observed:    "the turn's end with end_turn",
			Verdict:     "unmeetable",
			Reason:      "the turn is over",
			Timer:       "step-timeout 10s",
			Tail:        []string{"#7 --> session/cancel", "#8 <-- end_turn"},
			Stderr:      "late\n",
			Process:     "running",
			Advice:      "Answer the prompt with cancelled.",
		}
		Expect(f.Text("  ")).To(Equal(`  requirement  CANCEL-004  A cancelled turn ends with the stop reason cancelled.
  expected     the turn's end with cancelled
  or           an error
  observed     the turn's end with end_turn
  because      the turn is over
  timer        step-timeout 10s
  where        cancel/mid-stream.txtar:14
  last         #7 --> session/cancel
               #8 <-- end_turn
  stderr       late
  agent        running
  what to do   Answer the prompt with cancelled.
`))
		Expect(f.Error()).To(Equal("expected the turn's end with cancelled or an error, got the turn's end " +
			"with end_turn"))
		Expect((&transcript.Failure{}).Text("")).To(BeEmpty())
	})

	DescribeTable("has a first line", func(f transcript.Failure, want string) {
		Expect(f.Error()).To(Equal(want))
	},
		Entry(nil, transcript.Failure{Reason: "r"}, "r"),
		Entry(nil, transcript.Failure{Observed: "o\nmore"}, "o …"),
		Entry(nil, transcript.Failure{Expected: []string{"e"}}, "expected e"))

	It("fits a screen, whatever is put into it", func() {
		for _, diff := range []string{"", strings.Join(many(100, "-line"), "\n")} {
			long := strings.Repeat("x", 10_000)
			f := &transcript.Failure{
				Where: "a\nb", Requirement: many(50, "R"), Statement: strings.Join(many(9, "s"), "\n"),
				Expected: many(20, "e"), Observed: strings.Join(many(20, "o"), "\n") + long,
				Reason: strings.Join(many(9, "r"), "\n"),
				Timer:  "t\nt", Diff: diff, Tail: append(many(50, "tail"), long),
				Stderr:  strings.Join(many(500, "err"), "\n"),
				Process: long, Advice: strings.Join(many(9, "a"), "\n"),
			}
			lines := strings.Split(strings.TrimSuffix(f.Text("    "), "\n"), "\n")
			Expect(len(lines)).To(BeNumerically("<=", 40))
			for _, line := range lines {
				Expect(len(line)).To(BeNumerically("<", 220))
				Expect(line).To(HavePrefix("    "))
			}
			text := f.Text("")
			Expect(text).To(ContainSubstring("stderr       … "))
			Expect(text).To(ContainSubstring("err 500\n"), "the end of stderr is what tells why")
			Expect(text).To(ContainSubstring("xxx… (10000 bytes)"))
		}
	})

	It("shows control characters of the agent as what they are", func() {
		f := &transcript.Failure{Observed: "\x1b[2Jgone\tif\r\nshown \u202e\u0085", Stderr: "a\r\nb"}
		Expect(f.Text("")).To(Equal("observed     \\x1b[2Jgone    if\n             shown \\u202e\\u0085\n" +
			"stderr       a\n             b\n"))
		Expect(f.Error()).To(Equal("\\x1b[2Jgone    if …"))
	})
})
