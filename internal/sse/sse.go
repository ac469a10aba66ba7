// Package sse reads streams of server-sent events in bounded memory.
package sse

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"slices"
)

// Event is an event of a stream as it arrived.
type Event struct {
	Data []byte
	// Size is the length of the data on the wire if not all of it was kept, else 0.
	Size int
	// ID is the latest id of the stream.
	ID string
}

// Framing describes the form of a stream, apart from the content of its events.
type Framing struct {
	// Bytes is the length of the stream, Events the number of its events.
	Bytes  int `json:"bytes"`
	Events int `json:"events"`
	// Returns counts the lines that ended with a carriage return, Comments the
	// lines that began with a colon.
	Returns  int `json:"carriageReturns,omitempty"`
	Comments int `json:"comments,omitempty"`
	// Fields are the names of fields other than data, up to a limit.
	Fields []string `json:"fields,omitempty"`
	// Mark says that the stream began with a byte order mark. Unterminated says
	// that no empty line followed the last event.
	Mark         bool `json:"byteOrderMark,omitempty"`
	Unterminated bool `json:"unterminated,omitempty"`
	// Tail describes the incomplete part at the end of a stream in the binary form.
	Tail string `json:"tail,omitempty"`
}

const (
	// MaxEvent is the maximum number of bytes kept of an event.
	MaxEvent = 16 << 20
	// mostFields is the maximum number of field names that are kept.
	mostFields = 16
)

// Reader reads a stream of server-sent events, line by line, in bounded memory. A
// line ends with CR, LF or CRLF, as the standard of the format says.
type Reader struct {
	in      *bufio.Reader
	framing Framing
	data    []byte
	size    int    // of the data, kept or not
	id      string // the latest
	some    bool   // a data line was read
	begun   bool
	skip    bool // the last byte was a CR: skip an LF after it
}

// NewReader returns a Reader of in.
func NewReader(in io.Reader) *Reader { return &Reader{in: bufio.NewReaderSize(in, 32<<10)} }

// Next returns the next event. After the last one it returns io.EOF, or the error
// that cut the stream. It drops an event without an empty line after it.
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

// Step reads a line, or the LF of a CRLF whose CR ended a line. It returns an
// event without an empty line after it together with the error.
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

// Within reports whether an event has begun but not ended.
func (s *Reader) Within() bool { return s.some }

// Shows returns the stream's content so far other than its events.
func (s *Reader) Shows() *Framing { return &s.framing }

func (s *Reader) take() Event {
	p := Event{Data: s.data, ID: s.id}
	if s.size > len(s.data) {
		p.Size = s.size
	}
	s.framing.Events++
	s.data, s.size, s.some = nil, 0, false
	return p
}

// line reads one line and applies its field.
func (s *Reader) line() (empty bool, err error) {
	var l field
	for {
		chunk, err := s.in.Peek(1)
		if err != nil {
			if l.length == 0 {
				return false, err
			}
			s.close(&l)
			return false, nil // the error comes again
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
		return // discarding peeked bytes cannot fail
	}
}

// field is a line that is being read: its name up to a colon, then its value.
type field struct {
	name   []byte
	colon  bool
	spaced bool // the blank after the colon was handled
	length int
	data   bool // it is data, and its value goes to the event
	id     []byte
}

const (
	longestName = 64
	longestID   = 1024
)

// add adds bytes to a line.
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

// named begins the value of a field.
func (s *Reader) named(l *field) {
	l.data = string(l.name) == "data"
	if l.data && s.some {
		s.size++
		s.data = append(s.data, '\n')
	}
	s.some = s.some || l.data
}

// close ends a line.
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
			s.id = string(l.id)
		}
		if len(s.framing.Fields) < mostFields && !slices.Contains(s.framing.Fields, name) {
			s.framing.Fields = append(s.framing.Fields, name)
		}
	}
}
