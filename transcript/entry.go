package transcript

import (
	"sync/atomic"
	"time"

	"github.com/acp-test/acp-test/wire"
)

// Source is the program or component that caused an entry.
type Source string

// The sources of entries. Editor and Agent are the two ends of the wire. The
// others are observations by the harness.
const (
	Editor   Source = "editor"
	Agent    Source = "agent"
	Stderr   Source = "stderr"
	Process  Source = "process"
	Model    Source = "model"
	Terminal Source = "terminal"
	Note     Source = "note"
	Network  Source = "network"
)

// Kind is the kind of an entry. The set of kinds is open: a recording of a
// later version may contain unknown kinds, which are preserved.
type Kind string

// Kinds of frames, for the sources Editor and Agent.
const (
	Request      Kind = "request"
	Response     Kind = "response"
	Notification Kind = "notification"
	// Malformed is a line that is not a message of the protocol. Problem explains
	// why.
	Malformed Kind = "malformed"
	// Written means that the write of the editor's frame Ref blocked before it
	// ended, or that it failed (Problem). A frame without a Written entry was
	// handed to the kernel immediately.
	Written Kind = "written"
	// Ended means that the agent will send no more frames in response to the frame
	// Ref. It is for protocols in which a response is a stream of frames.
	Ended Kind = "ended"
)

// Kinds of the sources Stderr, Process, Terminal and Note.
const (
	Chunk       Kind = "chunk"        // bytes the agent wrote to stderr
	Started     Kind = "started"      // a process was started
	StdinClosed Kind = "stdin-closed" // we closed the agent's input
	Signalled   Kind = "signal"       // we sent a signal
	Exited      Kind = "exit"         // the agent has exited, and all of its output has been read
	Descendant  Kind = "descendant"   // a process that outlived the agent

	TermStarted  Kind = "term-started"
	TermOutput   Kind = "term-output"
	TermExit     Kind = "term-exit"
	TermReleased Kind = "term-released"

	Noted       Kind = "note"    // a decision of the harness that a reader should know
	Places      Kind = "places"  // the directories in which the agent runs, and the files there before it starts
	FileWritten Kind = "file"    // the user wrote a file while the agent was running
	Changed     Kind = "changed" // the changes in the workspace during a turn that has ended
	Served      Kind = "served"  // a request to one of our MCP servers, with its response
	Phase       Kind = "phase"   // a comment line of the scenario
	CheckOpened Kind = "check"   // a check of the scenario starts
	Act         Kind = "act"     // a line of the scenario that sends no frame
)

// Kinds of the source Network, for an agent that is reached over a network.
const (
	Exchanged Kind = "exchange"   // a request over HTTP, with the beginning of its response
	Opened    Kind = "stream"     // from here on, frames of the agent come over an event stream or a socket
	Closed    Kind = "stream-end" // no more frames come over the stream Ref
)

// Kinds of the source Model: requests and replies of the fake model server.
const (
	ModelRequest   Kind = "model-request"
	ModelAnswer    Kind = "model-answer" // the reply to a request, as steps of a script
	ModelChunk     Kind = "model-chunk"
	Gate           Kind = "gate"
	GateReleased   Kind = "gate-released"
	ModelAborted   Kind = "model-aborted"
	ModelDone      Kind = "model-done"
	ModelFault     Kind = "model-fault"
	ModelUnmatched Kind = "model-unmatched"
	ModelUnused    Kind = "model-unused"
)

// Entry is one event in a run. Entries are immutable: any code may read an
// entry at any time, but must not write to its slices.
type Entry struct {
	// Seq is the place in the transcript, from 1. The transcript assigns it.
	Seq int
	// At is the time since the start of the transcript, from a monotonic clock, in
	// whole microseconds. Only Seq determines the order of entries.
	At time.Duration
	// Conn is the number of the agent process within the run: 0 is the first, 1 is
	// the one after a restart, and so on.
	Conn   int
	Source Source
	Kind   Kind

	// ID is the id of a message as JSON text, or "" if there is none.
	ID wire.ID
	// Method is the method of a frame. A response has the method of its request.
	// It has none if it answers no request of this connection.
	Method string
	// Session is the id of the protocol's session to which the entry belongs, or
	// "". It comes from the Classifier or, for a response, from the request.
	Session string
	// Ref is the Seq of the entry that this one completes: for a response its
	// request, for a Written entry the written frame. It is 0 if there is none.
	Ref int
	// Stream is the Seq of the Network entry over which a frame of the agent came:
	// a stream, or the exchange that the frame answers. It is 0 if the agent has a
	// pipe.
	Stream int
	// Problem explains in one sentence why a line is malformed or why a write
	// failed.
	Problem string
	// Size is the number of bytes on the wire if Raw has fewer, because the line
	// was longer than the reader's limit. Otherwise it is 0.
	Size int
	// Redacted lists the paths in Raw at which a placeholder replaces a secret.
	// Only a frame without redactions has the exact bytes of the wire.
	Redacted []string
	// Raw depends on the source. For a frame, it is the exact bytes on the wire,
	// without the newline. For stderr, it is the bytes that were read. For any
	// other entry, it is a JSON object with details.
	Raw []byte

	sound   bool       // Raw is one JSON text
	lens    *lens      // set while the entry is shown to observers and folds
	classes Classifier // the transcript's Classifier; nil means JSONRPC
}

// Frame reports whether the entry is a line that was sent over the wire, in
// either direction.
func (e Entry) Frame() bool {
	return (e.Source == Agent || e.Source == Editor) && e.Kind != Written
}

// JSON returns the parsed Raw, or a missing value if Raw is not JSON or was
// cut. In an observer or a fold, all callers share one parse. The value must
// not be kept there, because the next entry reuses its memory. Elsewhere each
// call parses Raw again.
func (e Entry) JSON() wire.Value {
	if !e.sound {
		return wire.Value{}
	}
	if e.lens != nil && e.lens.shows.Load() == int64(e.Seq) {
		return e.lens.value(e.Raw)
	}
	v, err := wire.Parse(e.Raw)
	if err != nil {
		return wire.Value{}
	}
	return v
}

// JSONIn is like JSON, but parses into doc. The value is valid until doc parses
// another text.
func (e Entry) JSONIn(doc *wire.Doc) wire.Value {
	if !e.sound || doc.Parse(e.Raw) != nil {
		return wire.Value{}
	}
	return doc.Root()
}

// Message returns the parsed Raw, split into its parts by the transcript's
// Classifier. Its cost and the lifetime of the result are the same as for JSON.
func (e Entry) Message() wire.Frame {
	if e.sound && e.lens != nil && e.lens.shows.Load() == int64(e.Seq) {
		return e.lens.message(e)
	}
	return e.classified(e.JSON())
}

func (e Entry) classified(v wire.Value) wire.Frame {
	switch {
	case !v.Exists():
		return wire.Frame{Problem: e.Problem}
	case e.classes == nil:
		return wire.Classify(v)
	}
	return e.classes.Frame(e.Source, e.Raw, v, nil)
}

// Detached returns the entry without the memory that it shares while it is
// shown. An observer or fold must detach an entry before passing it to another
// goroutine. It need not do so only to store the entry.
func (e Entry) Detached() Entry {
	e.lens = nil
	return e
}

// lens holds the parsed form of the entry that is being shown, so that all
// viewers share one parse. It belongs to one transcript. A stored entry
// compares its Seq with that of the lens, because the lens may now show another
// entry.
type lens struct {
	doc    wire.Doc
	parsed bool
	frame  wire.Frame   // valid if classified is true
	shows  atomic.Int64 // Seq of the entry that the lens shows; 0 between two entries

	classified bool
}

// show sets the entry that the lens holds. The lens parses it only when needed.
func (l *lens) show(e *Entry) {
	l.parsed, l.classified = false, false
	l.shows.Store(int64(e.Seq))
	e.lens = l
}

func (l *lens) value(raw []byte) wire.Value {
	if !l.parsed {
		l.parsed = true
		_ = l.doc.Parse(raw) // after an error, the root is missing
	}
	return l.doc.Root()
}

func (l *lens) message(e Entry) wire.Frame {
	if !l.classified {
		l.frame, l.classified = e.classified(l.value(e.Raw)), true
	}
	return l.frame
}

// isJSON reports whether an entry's Raw is one JSON text.
func isJSON(e Entry) bool {
	if len(e.Raw) == 0 || e.Source == Stderr || e.Size > 0 {
		return false
	}
	_, err := wire.Parse(e.Raw)
	return err == nil
}

// Classifier classifies the frames of one protocol. Its methods may be
// called from any goroutine.
type Classifier interface {
	// Frame splits one line that from sent into its parts. v is the parsed line;
	// if it is missing, err explains why. For a line that the protocol does not
	// allow, Frame returns a wire.Malformed frame with a Problem.
	Frame(from Source, line []byte, v wire.Value, err error) wire.Frame
	// Session returns the JSON string that identifies the session of a frame.
	// method is the method of the frame or, for a response, of its request. If the
	// result is missing, a response belongs to the session of its request, and any
	// other frame belongs to no session.
	Session(method string, f wire.Frame) wire.Value
}

// Completer is a Classifier for a protocol in which frames other than the
// response can complete a request.
type Completer interface {
	// Completes returns a function for one transcript. It is called with each
	// frame in order, and with the frame's entry, whose Seq is set. It returns the
	// Seq of the request that the frame completes, or 0. That Seq becomes the
	// entry's Ref.
	Completes() func(e Entry, f wire.Frame) int
}

// JSONRPC is the Classifier of JSON-RPC 2.0 messages without sessions. It is
// the default for transcripts.
type JSONRPC struct{}

// Frame splits a JSON-RPC message into its parts.
func (JSONRPC) Frame(_ Source, line []byte, v wire.Value, err error) wire.Frame {
	if err != nil {
		return wire.Frame{Problem: wire.WhyNotJSON(line, err)}
	}
	return wire.Classify(v)
}

// Session returns a missing value, because JSON-RPC has no sessions.
func (JSONRPC) Session(string, wire.Frame) wire.Value { return wire.Value{} }
