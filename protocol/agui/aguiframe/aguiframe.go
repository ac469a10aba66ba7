// Package aguiframe classifies the frames of AG-UI: the RunAgentInput that a client posts, and the events in the
// stream that answers the post.
package aguiframe

import (
	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/wire"
)

// Run is the method of a frame with which a client starts a run.
const Run = "run"

// Classifier classifies the frames of AG-UI for a transcript. An event is a notification, and its type is the method.
// The transport records the stream of each event.
type Classifier struct{}

// Frame parses one message.
func (Classifier) Frame(from transcript.Source, line []byte, v wire.Value, err error) wire.Frame {
	switch {
	case err != nil:
		return wire.Frame{Problem: wire.WhyNotJSON(line, err)}
	case v.Kind() != wire.Object:
		return wire.Frame{Problem: "the data is a JSON " + v.Kind().String() + ", and an event is an object"}
	case from == transcript.Editor:
		f := wire.Frame{Kind: wire.Request, Method: Run, Params: v}
		if id := v.Get("runId"); id.Kind() == wire.String {
			f.ID = wire.ID(id.Raw())
		}
		return f
	case v.Get("type").Kind() != wire.String:
		return wire.Frame{Problem: `the event has no "type", which must be a string`}
	}
	return wire.Frame{Kind: wire.Notification, Method: v.Get("type").Str(), Params: v}
}

// Session returns the thread id of an input. For an event, it returns a missing value.
func (Classifier) Session(method string, f wire.Frame) wire.Value {
	if method == Run {
		return f.Params.Get("threadId")
	}
	return wire.Value{}
}

// Event returns the type of an event, or "" for any other entry.
func Event(e transcript.Entry) string {
	if e.Source != transcript.Agent || e.Kind != transcript.Notification {
		return ""
	}
	return e.Method
}
