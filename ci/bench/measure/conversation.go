//go:build linux

package main

import (
	_ "embed"
	"fmt"
	"strings"

	"github.com/acp-test/acp-test/ci/must"
	"github.com/acp-test/acp-test/protocol/acp/acpframe"
	"github.com/acp-test/acp-test/transcript"
)

// conversation contains the frames of the start of a session and, after an empty line, of one turn. Each line is a
// sender and a frame. TURN stands for the number of the turn. A frame that contains WORD is repeated 40 times.
//
//go:embed conversation.txt
var conversation string

// transcriptFile writes a transcript with a long ordinary conversation: turns of text, tool calls with permissions,
// and file requests.
func transcriptFile(args []string) {
	if len(args) != 2 {
		must.Fail("want two arguments: the number of entries and the file")
	}
	n := number(args, 0)
	log := must.Get(transcript.New(transcript.Header{},
		transcript.Options{Classifier: acpframe.Classifier{}, Path: args[1]}))
	write := func(frames string) {
		for line := range strings.Lines(frames) {
			from, frame, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
			times := 1
			if strings.Contains(frame, "WORD") {
				times = 40
			}
			for word := range times {
				text := strings.ReplaceAll(frame, "WORD", fmt.Sprint(word))
				log.AppendFrame(0, transcript.Source(from), []byte(text), 0)
			}
		}
	}
	beginning, turn, _ := strings.Cut(conversation, "\n\n")
	write(beginning)
	for id := 2; log.Len() < n; id++ {
		write(strings.ReplaceAll(turn, "TURN", fmt.Sprint(id)))
	}
	must.Do(log.Close())
}
