// Package canonical is how transcripts of ACP version 1 become text: each message
// on one line, with every field shown or hashed, in an order that is the same for
// any two runs that differ only by an interleaving the protocol allows.
package canonical

import (
	"github.com/acp-test/acp-test/golden"
	"github.com/acp-test/acp-test/transcript"
)

// V1 returns the renderer of version 1.
func V1() golden.Renderer { return renderer{} }

// V2 returns the renderer of version 2. What says that a prompt is part of the conversation
// stands below the prompt: the editor may have gone on meanwhile. The state idle bounds
// what the answer to a prompt bounds in version 1.
func V2() golden.Renderer { return renderer{v2: true} }

type renderer struct {
	v2     bool
	survey *survey // nil: Render takes it
}

// Survey implements golden.Surveyor.
func (v renderer) Survey() (see func(transcript.Entry), surveyed golden.Renderer) {
	v.survey = newSurvey()
	return func(e transcript.Entry) { v.survey.see(e, v.v2) }, v
}

// What the opaque ids of the protocol name.
const (
	sessionID  golden.IDClass = "sess"
	callID     golden.IDClass = "call"
	terminalID golden.IDClass = "term"
	messageID  golden.IDClass = "msg"
	cursor     golden.IDClass = "cursor"
)

// Line returns the text of any one entry for people.
func (renderer) Line(e transcript.Entry) string {
	if !e.Frame() {
		return golden.Event(e)
	}
	mask := golden.PlainMask()
	l := line{Line: golden.NewLine(mask), mask: mask, exact: true}
	return l.frame(e, e.JSON(), false)
}
