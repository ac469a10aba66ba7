// Package sse reads streams of server-sent events in bounded memory.
package sse

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"slices"
)

// Event is one event of a stream.
type Event struct {
	Data []byte
	// Size is the length of the received data in bytes, if Data contains only a part of it; else 0.
	Size int
	// ID is the value of the stream's latest id field. Own says that the field belongs to this event.
	ID  string
	Own bool
}

// Framing describes how a stream is encoded. It does not contain the content of the events.
type Framing struct {
	// Bytes is the length of the stream so far, Events the number of events in it.
	Bytes  int `json:"bytes"`
	Events int `json:"events"`
	// Returns is the number of lines that ended with a carriage return. Comments is the number of lines that began
	// with a colon.
	Returns  int `json:"carriageReturns,omitempty"`
	Comments int `json:"comments,omitempty"`
	// Fields contains the names of fields other than data, at most mostFields of them.
	Fields []string `json:"fields,omitempty"`
	// Mark is true if the stream began with a byte order mark. Unterminated is true if no empty line followed the
	// last event.
	Mark         bool `json:"byteOrderMark,omitempty"`
	Unterminated bool `json:"unterminated,omitempty"`
	// Tail describes the incomplete part at the end of a stream in the binary form; "" if there is none.
	Tail string `json:"tail,omitempty"`
}

const (
	// MaxEvent is the maximum number of bytes that are kept of an event's data.
	MaxEvent = 16 << 20
	// mostFields is the maximum number of field names that are kept.
	mostFields = 16
)

// Reader reads a stream of server-sent events, line by line, in bounded memory. A line ends with CR, LF or CRLF, as
// in the HTML standard's definition of event streams.
type Reader struct {
	in      *bufio.Reader
	framing Framing
	data    []byte
	size    int    // length of the data, kept or not
	id      string // the stream's latest id
	own     bool   // the current event has set it
	some    bool   // the current event has a data line
	begun   bool
	skip    bool // the last byte was a CR, so a following LF belongs to it
}

func NewReader(in io.Reader) *Reader { return &Reader{in: bufio.NewReaderSize(in, 32<<10)} }

// Next returns the next event. After the last event it returns io.EOF, or the error that ended the stream. An event
// that no empty line follows is dropped.
func (s *Reader) Next() (Event, error) {
	for {
		e, complete, err := s.Step()
		if err != nil {
			return Event{}, err
		}
		if complete {
			return e, nil
		}
	}
}

// Step reads one line, or only the LF of a CRLF whose CR ended the previous line. It returns an event and true if the
// line completed the event. If the stream ends before the empty line after an event, Step returns the incomplete
// event together with the error.
func (s *Reader) Step() (Event, bool, error) {
	if s.skip {
		if next, err := s.in.Peek(1); err == nil && next[0] == '\n' {
			s.skip = false
			s.read(1)
			return Event{}, false, nil
		}
	}
	empty, err := s.line()
	if err != nil && s.some {
		s.framing.Unterminated = true
	}
	if s.some && (empty || err != nil) {
		return s.take(), true, err
	}
	return Event{}, false, err
}

// Within reports whether an event has begun and is not complete yet.
func (s *Reader) Within() bool { return s.some }

// Shows returns the framing of the stream read so far.
func (s *Reader) Shows() *Framing { return &s.framing }

func (s *Reader) take() Event {
	p := Event{Data: s.data, ID: s.id, Own: s.own}
	if s.size > len(s.data) {
		p.Size = s.size
	}
	s.framing.Events++
	s.data, s.size, s.some, s.own = nil, 0, false, false
	return p
}

// line reads one line and applies its field. empty is true for an empty line.
func (s *Reader) line() (empty bool, err error) {
	var l field
	for {
		chunk, err := s.in.Peek(1)
		if err != nil {
			if l.length == 0 {
				return false, err
			}
			s.close(&l)
			return false, nil // the next read returns the error again
		}
		if n := s.in.Buffered(); n > 1 {
			chunk, _ = s.in.Peek(n)
		}
		if s.skip {
			s.skip = false
			if chunk[0] == '\n' {
				s.read(1)
				continue
			}
		}
		if !s.begun {
			s.begun = true
			if mark, err := s.in.Peek(3); err == nil && string(mark) == "\uFEFF" {
				s.framing.Mark = true
				s.read(3)
				continue
			}
		}
		end := bytes.IndexAny(chunk, "\r\n")
		if end < 0 {
			s.add(&l, chunk)
			s.read(len(chunk))
			continue
		}
		s.add(&l, chunk[:end])
		if chunk[end] == '\r' {
			s.framing.Returns++
			s.skip = true
		}
		s.read(end + 1)
		s.close(&l)
		return l.length == 0, nil
	}
}

func (s *Reader) read(n int) {
	k, err := s.in.Discard(n)
	s.framing.Bytes += k
	if err != nil && !errors.Is(err, io.EOF) {
		return // cannot happen: peeked bytes can be discarded
	}
}

// field is the line that is being read. It consists of a name and, after a colon, a value.
type field struct {
	name   []byte
	colon  bool
	spaced bool // the space after the colon was skipped
	length int
	data   bool // the name is "data", so the value belongs to the event
	id     []byte
}

const (
	longestName = 64
	longestID   = 1024
)

// add adds the next bytes of a line to the field.
func (s *Reader) add(l *field, more []byte) {
	l.length += len(more)
	if !l.colon {
		name, value, found := bytes.Cut(more, []byte(":"))
		l.name = append(l.name, name[:min(len(name), longestName)]...)
		l.name = l.name[:min(len(l.name), longestName)]
		if !found {
			return
		}
		l.colon, more = true, value
		s.named(l)
	}
	id := string(l.name) == "id"
	if !l.data && !id || len(more) == 0 {
		return
	}
	if !l.spaced {
		l.spaced = true
		more = bytes.TrimPrefix(more, []byte(" "))
	}
	if id {
		l.id = append(l.id, more[:min(len(more), max(0, longestID-len(l.id)))]...)
		return
	}
	s.size += len(more)
	s.data = append(s.data, more[:max(0, min(len(more), MaxEvent-len(s.data)))]...)
}

// named is called when the name of a field is complete. For a data field, it starts a new line of the event's data.
func (s *Reader) named(l *field) {
	l.data = string(l.name) == "data"
	if l.data && s.some {
		s.size++
		s.data = append(s.data, '\n')
	}
	s.some = s.some || l.data
}

// close is called at the end of a line and applies the complete field.
func (s *Reader) close(l *field) {
	switch {
	case l.length == 0 || l.data:
	case l.colon && len(l.name) == 0:
		s.framing.Comments++
	case !l.colon && string(l.name) == "data":
		s.named(l)
	default:
		name := string(l.name)
		if name == "id" {
			s.id, s.own = string(l.id), true
		}
		if len(s.framing.Fields) < mostFields && !slices.Contains(s.framing.Fields, name) {
			s.framing.Fields = append(s.framing.Fields, name)
		}
	}
}
