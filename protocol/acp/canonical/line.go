package canonical

import (
	"github.com/acp-test/acp-test/golden"
	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/wire"
)

// line builds the text of one message.
type line struct {
	*golden.Line
	mask *golden.Mask
	// exact shows the kinds of chunks by their full names.
	exact bool
	// options tells how the options of a permission request are called.
	options func(id string) string
	// about is the tool call of the permission request that is answered.
	about string
	// prompt tells the answer to one of several open prompts; 0 else.
	prompt int
	// session is named at the end of the line.
	session string
	// joined is the text of a message that came in several chunks.
	joined *string
	// merged is shown for the update of a tool call.
	merged wire.Value
}

// frame is the text of one frame. shown says that the request a response
// answers is the line above, so that the response need not name it. v is e, parsed.
func (l *line) frame(e transcript.Entry, v wire.Value, shown bool) string {
	l.Word(golden.Arrow(e.Source))
	switch e.Kind {
	case transcript.Request, transcript.Notification, transcript.Response:
	default: // it may be long, and is not parsed
		l.Malformed(e)
		return l.String()
	}
	if e.Kind == transcript.Response {
		l.answer(e, v, shown)
	} else {
		l.ask(e, v.Get("params"))
	}
	l.Envelope(v)
	if l.session != "" {
		l.Word("of " + l.mask.ID(sessionID, l.session))
	}
	return l.String()
}
