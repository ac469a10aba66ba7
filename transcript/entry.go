package transcript

import (
	"sync/atomic"
	"time"

	"github.com/acp-test/acp-test/wire"
)

// Source says who or what caused an entry.
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

// Kind is the kind of an entry. The set is open: a recording by a later version
// may hold kinds that this version does not know; it keeps them.
type Kind string

// Kinds of frames, for the sources Editor and Agent.
const (
	Request      Kind = "request"
	Response     Kind = "response"
	Notification Kind = "notification"
	// Malformed is a line that is not a message of the protocol. Problem says
	// why.
	Malformed Kind = "malformed"
	// Written says that the write of the editor's frame Ref ended after it
	// blocked, or that it failed (Problem). A frame without a Written entry was
	// handed to the kernel at once.
	Written Kind = "written"
	// Ended says that the agent sends nothing more in answer to the frame Ref. It
	// occurs in protocols in which an answer is a stream of frames.
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
	Served      Kind = "served"  // what an MCP server of ours was asked, and what it answered
	Phase       Kind = "phase"   // a comment line of the scenario
	CheckOpened Kind = "check"   // a check of the scenario begins
	Act         Kind = "act"     // a line of the scenario that sends no frame
)

// Kinds of the source Network, for an agent that is reached over a network.
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

// Entry is one thing that happened in a run. Entries are immutable: all code
// may read an entry at any time and must not write to its slices.
type Entry struct {
	// Seq is the place in the transcript, from 1. The transcript assigns it.
	Seq int
	// At is the time since the transcript began, by a monotonic clock, in
	// whole microseconds. Order is told by Seq, never by At.
	At time.Duration
	// Conn numbers the agent processes of one run: 0 is the first, 1 the one
	// after a restart, and so on.
	Conn   int
	Source Source
	Kind   Kind

	// ID is the id of a message with its JSON type; empty if there is none.
	ID wire.ID
	// Method is the method of a frame. A response has the method of the
	// request it answers, or none if it answers no request of this
	// connection.
	Method string
	// Session is the session of the protocol that the entry belongs to, if the
	// Classifier or the request of a response names it.
	Session string
	// Ref is the Seq of the entry that this one completes: the request of a
	// response, the frame of a Written entry. 0 if there is none.
	Ref int
	// Stream is the Seq of the Network entry that brought a frame of the agent:
	// the stream, or the exchange that the frame answers. 0 if the agent has a
	// pipe.
	Stream int
	// Problem is one sentence: why a line is malformed, why a write failed.
	Problem string
	// Size is the number of bytes on the wire if Raw holds fewer, because the
	// line was longer than the reader's limit; else 0.
	Size int
	// Redacted lists the paths in Raw that hold a placeholder instead of a
	// secret. Only a frame without redactions has the exact bytes of the wire.
	Redacted []string
	// Raw is a frame exactly as it was on the wire, without the newline; for
	// stderr the bytes read; for any other entry one JSON object of details.
	Raw []byte

	sound   bool       // Raw is one JSON text
	lens    *lens      // while the entry is shown to observers and folds
	classes Classifier // of the transcript; nil means JSONRPC
}

// Frame reports whether the entry is a line that was sent over the wire.
func (e Entry) Frame() bool {
	return (e.Source == Agent || e.Source == Editor) && e.Kind != Written
}

// JSON returns the parsed Raw, or a missing value if Raw is not JSON or was cut.
// Within an observer or a fold, all callers share one parse, and the value must
// not be kept: the next entry reuses its memory. Elsewhere each call parses anew.
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

// JSONIn is like JSON, but parses into doc: the value is good until doc parses
// another text.
func (e Entry) JSONIn(doc *wire.Doc) wire.Value {
	if !e.sound || doc.Parse(e.Raw) != nil {
		return wire.Value{}
	}
	return doc.Root()
}

// Message returns the parsed Raw, split into its parts by the transcript's
// Classifier. It costs as much and lasts as long as JSON.
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

// Detached returns the entry without the memory it shares while it is shown. An
// observer or fold must detach an entry to pass it to other goroutines, but not
// to keep it for later.
func (e Entry) Detached() Entry {
	e.lens = nil
	return e
}

// lens holds the parsed form of the entry that is being shown, so that all viewers share
// one parse. It belongs to one transcript, in which a Seq names one entry. An entry kept
// for later compares its Seq, to notice that the lens now shows another one.
type lens struct {
	doc    wire.Doc
	parsed bool
	frame  wire.Frame   // if classified
	shows  atomic.Int64 // Seq of the entry it shows, 0 between two

	classified bool
}

// show puts the entry under the lens, which parses it on demand.
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
	// Frame splits one line sent by from into its parts. v is the line's JSON; if
	// it is missing, err says why. For a line that the protocol does not allow it
	// returns a wire.Malformed frame with a Problem.
	Frame(from Source, line []byte, v wire.Value, err error) wire.Frame
	// Session returns the JSON string that names the conversation of a frame.
	// method is the method of the frame, or of the request it answers. If the
	// value is missing, a response belongs to the session of its request, and
	// any other frame to none.
	Session(method string, f wire.Frame) wire.Value
}

// Completer is a Classifier of a protocol in which other frames than its response
// can complete a request.
type Completer interface {
	// Completes returns a function that is called with each frame of one
	// transcript, in order, and its entry with its Seq. The function returns the
	// Seq of the request that the entry completes, which becomes its Ref, or 0.
	Completes() func(e Entry, f wire.Frame) int
}

// JSONRPC is the Classifier of JSON-RPC 2.0 messages without sessions. It is the
// default of a transcript.
type JSONRPC struct{}

// Frame splits a JSON-RPC message into its parts.
func (JSONRPC) Frame(_ Source, line []byte, v wire.Value, err error) wire.Frame {
	if err != nil {
		return wire.Frame{Problem: wire.WhyNotJSON(line, err)}
	}
	return wire.Classify(v)
}

// Session returns a missing value.
func (JSONRPC) Session(string, wire.Frame) wire.Value { return wire.Value{} }
