package scenarios_test

import (
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/acp-test/acp-test/scenarios/results"
	"github.com/acp-test/acp-test/transcript"
)

var _ = Describe("the log of what changed in the workspace", func() {
	It("waits for a held request that the editor answers late as usual, once", func() {
		r := run(engine(), `hold fs/read_text_file once
prompt 'Read it.'
await fs/read_text_file as R
answer R usual
await turn end_turn
answer R usual
check is-told
saw model request raw~'what it holds'
-- note.txt --
what it holds
-- llm.yaml --
replies:
  - - tool: read_file
      args: {path: $WORK/note.txt}
  - - text: Read.
`)
		Expect(r.Verdict).To(Equal(results.Pass), text(r))
	})

	It("has each turn's changes, apart from what the user did, and no text of a file that may hold secrets", func() {
		e := engine()
		r := run(e, `permit allow_once
permit allow_once
prompt 'Write one.'
await turn end_turn
write two.txt 'mine'
prompt 'Do nothing.'
await turn end_turn
prompt 'Write once you may.'
await gate held
write three.txt 'mine'
release held
await turn end_turn
prompt 'Write the secret.'
await turn end_turn
-- llm.yaml --
turns:
  - - - tool: write_file
        args: {path: one.txt, content: "one"}
    - - text: One.
  - - - text: Nothing.
  - - - gate: held
      - tool: write_file
        args: {path: four.txt, content: "four"}
    - - text: Four.
  - - - tool: write_file
        args: {path: .env, content: "KEY=1"}
    - - text: Secret.
`)
		Expect(r.Verdict).To(Equal(results.Pass), text(r))
		var seen []string
		for entry := range transcriptOf(e, r).All() {
			if entry.Kind != transcript.Changed {
				continue
			}
			of, words := "the turn", []string{}
			if turn, _ := entry.JSON().Get("turn").Int(); turn == 0 {
				of = "others"
			}
			for f := range entry.JSON().Get("files").Items() {
				words = append(words, fmt.Sprintf("%s %q", f.Get("path").Str(), f.Get("text").Str()))
			}
			seen = append(seen, of+": "+strings.Join(words, ", "))
		}
		Expect(seen).To(Equal([]string{
			`the turn: one.txt "one"`, `others: two.txt "mine"`, `the turn: `, `others: three.txt "mine"`,
			`others: four.txt "four"`,
			`the turn: .env ""`,
		}))
	})
})
