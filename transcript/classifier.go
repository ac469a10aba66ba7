package transcript

import "github.com/acp-test/acp-test/wire"

// Classifier classifies the frames of one protocol. Its methods may be
// called from any goroutine.
type Classifier interface {
	// Frame takes apart one line that was sent by from. v is the line's JSON,
	// missing where it is none; err is then why. A line that the protocol does
	// not allow is a wire.Malformed frame with a Problem.
	Frame(from Source, line []byte, v wire.Value, err error) wire.Frame
	// Session is the JSON string that names the conversation a frame belongs
	// to. method is that of the frame, or of the request that it answers. A
	// missing value leaves a response in the session of its request, and any
	// other frame in none.
	Session(method string, f wire.Frame) wire.Value
}

// Completer is a Classifier of a protocol in which something other than its response
// completes a request.
type Completer interface {
	// Completes makes what looks at each frame of one transcript, in their order. It is
	// given the entry, with its Seq, and returns the Seq of the request that the entry
	// completes, which becomes its Ref; 0: none.
	Completes() func(e Entry, f wire.Frame) int
}

// JSONRPC is the Classifier of JSON-RPC 2.0 messages without sessions. A
// transcript that is given no Classifier uses it.
type JSONRPC struct{}

// Frame takes a JSON-RPC message apart.
func (JSONRPC) Frame(_ Source, line []byte, v wire.Value, err error) wire.Frame {
	if err != nil {
		return wire.Frame{Problem: wire.WhyNotJSON(line, err)}
	}
	return wire.Classify(v)
}

// Session is a missing value.
func (JSONRPC) Session(string, wire.Frame) wire.Value { return wire.Value{} }
