package words

import (
	"cmp"
	"strings"

	"github.com/acp-test/acp-test/protocol/agui/aguiframe"
	"github.com/acp-test/acp-test/transcript"
)

// whole names a message or a tool call of a stream.
type whole struct {
	ref int
	id  string
}

// newStories keeps what comes in pieces: the arguments of a tool call and the text of a
// message, for patterns about the event that began it.
func newStories() (observe func(transcript.Entry), told func(transcript.Entry, string) (string, bool)) {
	texts := map[whole]*strings.Builder{}
	last := map[int]string{} // of a stream: what a chunk without an id continues
	observe = func(e transcript.Entry) {
		kind := aguiframe.Event(e)
		if !strings.HasPrefix(kind, "TEXT_MESSAGE_") && !strings.HasPrefix(kind, "TOOL_CALL_") {
			return
		}
		v := e.JSON()
		id := idOf(e)
		if strings.HasSuffix(kind, "_CHUNK") {
			id = cmp.Or(id, last[e.Ref])
			last[e.Ref] = id
		}
		at := whole{e.Ref, id}
		if texts[at] == nil {
			texts[at] = &strings.Builder{}
		}
		texts[at].WriteString(v.Get("delta").Str())
	}
	told = func(e transcript.Entry, path string) (string, bool) {
		kind := aguiframe.Event(e)
		if path != "arguments" || !strings.HasPrefix(kind, "TOOL_CALL_") {
			return "", false
		}
		text := texts[whole{e.Ref, idOf(e)}]
		if text == nil {
			return "", false
		}
		return text.String(), true
	}
	return observe, told
}

// idOf is the id of the message or the tool call that an event is about.
func idOf(e transcript.Entry) string {
	v := e.JSON()
	if strings.HasPrefix(e.Method, "TOOL_CALL_") {
		return v.Get("toolCallId").Str()
	}
	return v.Get("messageId").Str()
}
