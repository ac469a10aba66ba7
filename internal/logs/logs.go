// Package logs reads the messages of a protocol from logs of other programs:
// lines with times and arrows, objects around a message, exports of a browser,
// streams of events, messages over several lines. It knows no protocol; a Dialect
// recognises the messages.
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

// The sides. A log may not name the sender.
const (
	Unknown Side = 0
	Editor  Side = 1
	Agent   Side = -1
)

// Dialect is the part of a protocol that is needed to read a log.
type Dialect struct {
	// Message reports whether an object is a message of the protocol. Bare, if
	// set, does so for a message from which the log dropped a member. Complete
	// adds this member again, unless another message of the log has it.
	Message, Bare func(wire.Value) bool
	Complete      func(raw []byte) []byte
	// Sender returns the side if only one side sends such a message, else
	// Unknown.
	Sender func(wire.Value) Side
}

// Message is one message of a log.
type Message struct {
	// Raw is its JSON on one line.
	Raw  []byte
	From Side
	// At is its time in ms, since 1970 or since the log began; Timed is false if
	// the log has no time.
	At    float64
	Timed bool
	// Process is the number of the other side's process, from 0.
	Process int
	// Line is the line in which the message begins, from 1.
	Line int

	bare  bool
	claim claim
	known Side // by the protocol
}

// Left is a line that seems to hold an unreadable message.
type Left struct {
	Line int
	Err  error
}

// Log is the content of a log file.
type Log struct {
	// Form names the kind of log, for people: "a HAR".
	Form     string
	Messages []Message
	Left     []Left
	// Dropped names members that the logging program had added to messages and
	// Read has removed.
	Dropped []string
	// Lines counts the lines without a message, except blank ones.
	Lines int
}

// ErrNoMessages says that a text holds no message of the protocol.
var ErrNoMessages = errors.New("no line holds a message of the protocol")

// Read reads the messages of a log. text is the text that Open returns. The error
// is ErrNoMessages if there are none.
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

// Plain reports whether the log holds only messages.
func (l Log) Plain() bool { return l.Lines == 0 && len(l.Dropped) == 0 && len(l.Left) == 0 }

// String returns the kind of log, and the numbers of messages and of omitted parts.
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

// reader is a log that is being read.
type reader struct {
	Dialect
	log     Log
	form    string
	torn    bool    // the line at hand has an unreadable message next to others
	spanned int     // bytes searched for the ends of messages
	last    float64 // the last time of a day, in ms
	days    float64 // midnights since, in ms
}

// place is the context of a message: its line, and the time and the sender given
// before it.
type place struct {
	line    int
	at      float64
	timed   bool
	process int
	claim   claim
	depth   int
}

// maxDepth limits how deep nested objects and texts are searched for messages.
const maxDepth = 4

// add adds a message.
func (r *reader) add(v wire.Value, p place, bare bool) {
	r.log.Messages = append(r.log.Messages, Message{Raw: r.strip(v), At: p.at, Timed: p.timed, Process: p.process,
		Line: p.line, bare: bare, claim: p.claim, known: r.Sender(v)})
}

// strip returns a message on one line, without the member that JetBrains logs
// add.
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

// complete adds the member that the log dropped to all of its messages.
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

// Open returns a reader of a file's text. It unpacks gzip, decodes UTF-16, which
// is usual on Windows, and drops a byte order mark. It reads UTF-16 whole at once,
// and everything else on demand.
func Open(in io.Reader) (io.Reader, error) {
	b := bufio.NewReaderSize(in, 64<<10)
	head, _ := b.Peek(3) // the error comes again with the first read
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

// wide decodes UTF-16.
func wide(in io.Reader, order binary.ByteOrder) (io.Reader, error) {
	text, err := io.ReadAll(io.LimitReader(in, maxUnpacked))
	if err != nil {
		return nil, err
	}
	units := make([]uint16, 0, len(text)/2)
	for i := 2; i+1 < len(text); i += 2 { // the mark comes first
		units = append(units, order.Uint16(text[i:]))
	}
	return bytes.NewReader([]byte(string(utf16.Decode(units)))), nil
}
