package transcript

import (
	"sync/atomic"
	"time"

	"github.com/acp-test/acp-test/wire"
)

// Source says who made an entry happen.
type Source string

// The sources of entries. Editor and Agent are the two ends of the wire; the
// others are observations of the harness next to it.
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

// Kind is the kind of an entry. The set is open: a recording made by a later
// version may hold kinds this one does not know, and they are kept.
type Kind string

// Kinds of frames, for the sources Editor and Agent.
const (
	Request      Kind = "request"
	Response     Kind = "response"
	Notification Kind = "notification"
	// Malformed is a line that is no message of the protocol. Problem says why.
	Malformed Kind = "malformed"
	// Written says that the write of the editor's frame Ref ended, after it
	// blocked, or that it failed (Problem). A frame without a Written entry
	// was handed to the kernel at once.
	Written Kind = "written"
	// Ended says that nothing more comes of the agent to the frame Ref: of a
	// protocol in which an answer is a stream of frames.
	Ended Kind = "ended"
)

// Kinds of the sources Stderr, Process, Terminal and Note.
const (
	Chunk       Kind = "chunk"        // bytes the agent wrote to stderr
	Started     Kind = "started"      // a process runs
	StdinClosed Kind = "stdin-closed" // we closed the agent's input
	Signalled   Kind = "signal"       // we sent a signal
	Exited      Kind = "exit"         // the agent is gone, and all it wrote has been read
	Descendant  Kind = "descendant"   // a process that outlived the agent

	TermStarted  Kind = "term-started"
	TermOutput   Kind = "term-output"
	TermExit     Kind = "term-exit"
	TermReleased Kind = "term-released"

	Noted       Kind = "note"    // something the harness decided and a reader should know
	Places      Kind = "places"  // where the agent runs, and what lies there before it does
	FileWritten Kind = "file"    // the user wrote a file, beside the agent
	Changed     Kind = "changed" // what a turn that has ended changed in the workspace
	Phase       Kind = "phase"   // a comment line of the scenario
	CheckOpened Kind = "check"   // a check of the scenario begins
	Act         Kind = "act"     // a line of the scenario that sends no frame
)

// Kinds of the source Network, of an agent that is reached over one.
const (
	Exchanged Kind = "exchange"   // a request over HTTP, and what its answer begins with
	Opened    Kind = "stream"     // the agent's frames come by a stream of events or a socket from here on
	Closed    Kind = "stream-end" // no more of them come by the stream Ref
)

// Kinds of the source Model: requests and replies of the fake model server.
const (
	ModelRequest   Kind = "model-request"
	ModelAnswer    Kind = "model-answer" // what is said to a request, as steps of a script
	ModelChunk     Kind = "model-chunk"
	Gate           Kind = "gate"
	GateReleased   Kind = "gate-released"
	ModelAborted   Kind = "model-aborted"
	ModelDone      Kind = "model-done"
	ModelFault     Kind = "model-fault"
	ModelUnmatched Kind = "model-unmatched"
	ModelUnused    Kind = "model-unused"
)

// Entry is one thing that happened in a run. Entries are immutable: whoever
// gets one may read it at any time and must not write to its slices.
type Entry struct {
	// Seq is the place in the transcript, from 1. The transcript assigns it.
	Seq int
	// At is the time since the transcript began, by a monotonic clock, in
	// whole microseconds. Order is told by Seq, never by At.
	At time.Duration
	// Conn tells the agent processes of one run apart: 0 is the first, 1 the
	// one after a restart, and so on.
	Conn   int
	Source Source
	Kind   Kind

	// ID is the id of a message with its JSON type; empty where there is none.
	ID wire.ID
	// Method is the method of a frame. A response has the method of the
	// request it answers, or none if it answers no request of this
	// connection.
	Method string
	// Session is the session of the protocol that the entry belongs to, where
	// the Classifier or the request that a response answers tells it.
	Session string
	// Ref is the Seq of the entry this one completes: of a response's
	// request, of a Written entry's frame. 0 if there is none.
	Ref int
	// Stream is the Seq of the Network entry by which a frame of the agent came: the stream, or
	// the exchange that it answers. 0 if the agent has a pipe.
	Stream int
	// Problem is one sentence: why a line is malformed, why a write failed.
	Problem string
	// Size is the number of bytes on the wire when Raw holds fewer, because
	// the line was longer than the reader's limit; else 0.
	Size int
	// Redacted lists the paths in Raw that hold a placeholder instead of a
	// secret. Only frames without any promise identical bytes.
	Redacted []string
	// Raw is a frame exactly as it was on the wire, without the newline; for
	// stderr the bytes read; for any other entry one JSON object of details.
	Raw []byte

	sound   bool       // Raw is one JSON text
	lens    *lens      // while the entry is shown to observers and folds
	classes Classifier // of the transcript; nil means JSONRPC
}

// Frame reports whether the entry is a line that crossed the wire.
func (e Entry) Frame() bool {
	return (e.Source == Agent || e.Source == Editor) && e.Kind != Written
}

// JSON is the parsed Raw, or a missing value if Raw is not JSON or was cut.
// Within an observer or a fold it costs one parse for all who ask, and the
// value must not be kept: the next entry reuses its memory. Elsewhere each
// call parses anew.
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

// JSONIn is JSON in memory of the caller's: what it gives is good until doc parses another
// text.
func (e Entry) JSONIn(doc *wire.Doc) wire.Value {
	if !e.sound || doc.Parse(e.Raw) != nil {
		return wire.Value{}
	}
	return doc.Root()
}

// Message is the parsed Raw taken apart by the transcript's Classifier. It
// costs and lasts as JSON does.
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

// Detached is the entry without the memory it shares while it is shown. An
// observer or fold that hands an entry to another goroutine hands on this;
// one that only keeps it for later need not.
func (e Entry) Detached() Entry {
	e.lens = nil
	return e
}

// lens holds the parsed form of one entry after the other while they are
// shown, so that one parse serves all who look. It belongs to one transcript,
// within which a Seq names one entry: an entry kept from an earlier showing
// sees by it that the lens has moved on.
type lens struct {
	doc    wire.Doc
	parsed bool
	frame  wire.Frame   // if classified
	shows  atomic.Int64 // Seq of the entry it shows, 0 between two

	classified bool
}

// show puts the entry under the lens, to be parsed when somebody asks.
func (l *lens) show(e *Entry) {
	l.parsed, l.classified = false, false
	l.shows.Store(int64(e.Seq))
	e.lens = l
}

func (l *lens) value(raw []byte) wire.Value {
	if !l.parsed {
		l.parsed = true
		_ = l.doc.Parse(raw) // an error leaves the root missing
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
