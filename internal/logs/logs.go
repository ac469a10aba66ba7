// Package logs extracts the messages of a protocol from the logs of other programs. It reads lines with times and
// arrows, JSON objects that contain a message, exports of a browser, event streams, and messages split over several
// lines. The package is independent of the protocol: a Dialect recognises the messages.
package logs

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf16"

	"github.com/acp-test/acp-test/internal/lists"
	"github.com/acp-test/acp-test/wire"
)

// Side is the sender of a message.
type Side int8

// The sides. Unknown means that the log does not name the sender.
const (
	Unknown Side = 0
	Editor  Side = 1
	Agent   Side = -1
)

// Dialect contains the facts about a protocol that Read needs.
type Dialect struct {
	// Message reports whether an object is a message of the protocol. Bare, if not nil, reports whether an object is
	// a message from which the log dropped a member that all messages have. If no message of the log has that member,
	// Complete adds it.
	Message, Bare func(wire.Value) bool
	Complete      func(raw []byte) []byte
	// Sender returns the only side that can send such a message, or Unknown if both can.
	Sender func(wire.Value) Side
}

// Message is one message of a log.
type Message struct {
	// Raw is the message's JSON, on one line.
	Raw  []byte
	From Side
	// At is the message's time in ms, since 1970 or since the start of the log. Timed is false if the log has no time
	// for it.
	At    float64
	Timed bool
	// Process is the number of the process to which the message belongs, from 0.
	Process int
	// Line is the line in which the message begins, from 1.
	Line int

	bare  bool
	claim claim
	known Side // sender according to the protocol
}

// Left is a line that seems to contain a message but cannot be read.
type Left struct {
	Line int
	Err  error
}

// Log is the content of a log file.
type Log struct {
	// Form names the kind of log for people, such as "a HAR".
	Form     string
	Messages []Message
	Left     []Left
	// Dropped lists the members that the logging program had added to messages. Read has removed them.
	Dropped []string
	// Lines is the number of lines without a message, except blank lines.
	Lines int
}

// ErrNoMessages means that a text contains no message of the protocol.
var ErrNoMessages = errors.New("no line holds a message of the protocol")

// Read reads the messages of a log. text is what a reader from Open returns. The error is ErrNoMessages if the log
// contains no messages.
func Read(text []byte, d Dialect) (Log, error) {
	r := &reader{Dialect: d}
	if v, err := wire.Parse(text); err == nil && r.document(v) {
		r.log.Form = r.form
	} else {
		r.log = Log{}
		r.lines(string(text), place{})
		r.log.Form = "lines"
	}
	if len(r.log.Messages) == 0 {
		return r.log, ErrNoMessages
	}
	r.complete()
	r.decide()
	return r.log, nil
}

// Plain reports whether the log contains only messages and Read could read all of them.
func (l Log) Plain() bool { return l.Lines == 0 && len(l.Dropped) == 0 && len(l.Left) == 0 }

// String describes the log: its kind, and the numbers of messages, of other lines and of unreadable lines.
func (l Log) String() string {
	said := l.Form + " with " + counted(len(l.Messages), "message")
	if l.Lines > 0 {
		said += ", " + counted(l.Lines, "other line")
	}
	if len(l.Dropped) > 0 {
		said += ", without the log's own members " + strings.Join(l.Dropped, ", ")
	}
	if len(l.Left) > 0 {
		said += fmt.Sprintf("; %s cannot be read, so nothing is concluded from what is missing", counted(len(l.Left), "line"))
	}
	return said
}

func counted(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return fmt.Sprintf("%d %s", n, noun)
}

// reader is the state of Read.
type reader struct {
	Dialect
	log     Log
	form    string
	torn    bool    // the current line has an unreadable message
	spanned int     // number of bytes searched for the ends of messages
	last    float64 // last time of day, in ms
	days    float64 // whole days since the start, in ms
}

// place is the context of a message: its line, and the time, process and sender given around it.
type place struct {
	line    int
	at      float64
	timed   bool
	process int
	claim   claim
	depth   int
}

// maxDepth limits how deeply nested objects and strings are searched for messages.
const maxDepth = 4

func (r *reader) add(v wire.Value, p place, bare bool) {
	r.log.Messages = append(r.log.Messages, Message{Raw: r.strip(v), At: p.at, Timed: p.timed, Process: p.process,
		Line: p.line, bare: bare, claim: p.claim, known: r.Sender(v)})
}

// strip returns a message on one line. It removes the member "type" that logs of JetBrains editors add.
func (r *reader) strip(v wire.Value) []byte {
	if !strings.HasPrefix(v.Get("type").Str(), "com.agentclientprotocol.") {
		return []byte(compact(v.Raw()))
	}
	r.log.Dropped = lists.With(r.log.Dropped, "type")
	var members []string
	for key, m := range v.Fields() {
		if !key.Is("type") {
			members = append(members, string(key.Raw())+":"+compact(m.Raw()))
		}
	}
	return []byte("{" + strings.Join(members, ",") + "}")
}

// complete adds the member that the log dropped from messages. It does nothing if any message still has the member.
func (r *reader) complete() {
	whole := slices.ContainsFunc(r.log.Messages, func(m Message) bool { return !m.bare })
	for i, m := range r.log.Messages {
		if m.bare && !whole {
			r.log.Messages[i].Raw = r.Complete(m.Raw)
		}
	}
}

// maxUnpacked is the maximum size of an unpacked log in bytes.
const maxUnpacked = 1 << 30

// Open returns a reader of a file's text. It unpacks gzip, decodes UTF-16, which Windows programs often write, and
// removes a byte order mark. Open reads a UTF-16 file completely; other files are read on demand.
func Open(in io.Reader) (io.Reader, error) {
	b := bufio.NewReaderSize(in, 64<<10)
	head, _ := b.Peek(3) // the first read returns the error
	switch {
	case bytes.HasPrefix(head, []byte{0x1f, 0x8b}):
		unpacked, err := gzip.NewReader(b)
		if err != nil {
			return nil, fmt.Errorf("unpacking gzip: %w", err)
		}
		return Open(io.LimitReader(unpacked, maxUnpacked))
	case bytes.HasPrefix(head, []byte{0xff, 0xfe}):
		return wide(b, binary.LittleEndian)
	case bytes.HasPrefix(head, []byte{0xfe, 0xff}):
		return wide(b, binary.BigEndian)
	case bytes.HasPrefix(head, []byte{0xef, 0xbb, 0xbf}):
		_, _ = b.Discard(3)
	}
	return b, nil
}

// wide reads all of in and decodes it from UTF-16.
func wide(in io.Reader, order binary.ByteOrder) (io.Reader, error) {
	text, err := io.ReadAll(io.LimitReader(in, maxUnpacked))
	if err != nil {
		return nil, err
	}
	units := make([]uint16, 0, len(text)/2)
	for i := 2; i+1 < len(text); i += 2 { // skip the byte order mark
		units = append(units, order.Uint16(text[i:]))
	}
	return bytes.NewReader([]byte(string(utf16.Decode(units)))), nil
}
