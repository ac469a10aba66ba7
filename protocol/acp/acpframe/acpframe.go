// Package acpframe classifies the frames of ACP: JSON-RPC 2.0
// messages, most of which belong to a session.
package acpframe

import (
	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/wire"
)

// Classifier classifies the frames of ACP version 1 for a transcript.
type Classifier struct{ transcript.JSONRPC }

// Frame parses one message.
func (c Classifier) Frame(from transcript.Source, line []byte, v wire.Value, err error) wire.Frame {
	if v.Kind() == wire.Array {
		return wire.Frame{Problem: "the line is a JSON array, " +
			"but ACP has no batches: each message must be on its own line"}
	}
	return c.JSONRPC.Frame(from, line, v, err)
}

// Session returns the sessionId in the params of a request or notification, or in the result that creates a session.
func (Classifier) Session(method string, f wire.Frame) wire.Value {
	switch {
	case f.Kind != wire.Response:
		return f.Params.Get("sessionId")
	case method == "session/new" || method == "session/fork":
		return f.Result.Get("sessionId")
	}
	return wire.Value{}
}

// Update returns the kind of a session/update notification ("tool_call", …), or "" for any other entry.
func Update(e transcript.Entry) string {
	if e.Kind != transcript.Notification || e.Method != "session/update" {
		return ""
	}
	return e.JSON().Get("params").Get("update").Get("sessionUpdate").Str()
}
