package endpoint

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/acp-test/acp-test/protocol/agui/aguiproto"
	"github.com/acp-test/acp-test/transcript"
)

// piece is an event of a stream as it came: the data, and its length on the wire if
// not all of it was kept. problem says why it is no event, where its bytes cannot be read as JSON.
type piece struct {
	data    []byte
	size    int
	problem string
}

// source reads a stream a little at a time.
type source interface {
	// step returns an event if one is complete, then or with it the error that ends the stream.
	step() (p piece, complete bool, err error)
	// within reports whether what was read last belongs to an event that is not complete.
	within() bool
	shows() *Framing
}

// next returns the next event of a stream. After the last one it returns io.EOF, or the
// error that cut the stream.
func next(s source) (piece, error) {
	for {
		p, complete, err := s.step()
		switch {
		case complete:
			return p, nil // an error comes again
		case err != nil:
			return piece{}, err
		}
	}
}

// sourceOf reads a stream of a media type.
func sourceOf(kind string, body io.Reader) source {
	if kind == aguiproto.MediaType {
		return &frames{in: bufio.NewReaderSize(body, 32<<10)}
	}
	return &sse{in: bufio.NewReaderSize(body, 32<<10)}
}

// add appends a piece, which answers the frame ref, to a transcript.
func (p piece) add(t *transcript.Transcript, conn, ref int) transcript.Entry {
	if p.problem == "" {
		return t.AppendReply(conn, ref, p.data, p.size)
	}
	e := transcript.Entry{Conn: conn, Source: transcript.Agent, Kind: transcript.Malformed, Ref: ref, Raw: p.data,
		Size: p.size, Problem: p.problem}
	if ref > 0 {
		e.Session = t.At(ref).Session
	}
	return t.Append(e)
}

// Framing is what a stream contains in addition to its events.
type Framing struct {
	// Bytes is the length of the stream, Events the number of its events.
	Bytes  int `json:"bytes"`
	Events int `json:"events"`
	// Returns counts the lines that ended with a carriage return, Comments the
	// lines that began with a colon.
	Returns  int `json:"carriageReturns,omitempty"`
	Comments int `json:"comments,omitempty"`
	// Fields are the names of fields other than data, as far as they are few.
	Fields []string `json:"fields,omitempty"`
	// Mark says that the stream began with a byte order mark, Unterminated that no
	// empty line followed the last event.
	Mark         bool `json:"byteOrderMark,omitempty"`
	Unterminated bool `json:"unterminated,omitempty"`
	// Tail says what is incomplete at the end of a stream in the binary form.
	Tail string `json:"tail,omitempty"`
}

const (
	// MaxEvent is how many bytes of an event are kept.
	MaxEvent = 16 << 20
	// mostFields bounds how many names of fields are told.
	mostFields = 16
)

// sse reads a stream of server-sent events, line by line, in bounded memory. It takes
// CR, LF and CRLF for the end of a line, as the standard of the format says.
type sse struct {
	in      *bufio.Reader
	framing Framing
	data    []byte
	size    int  // of the data, kept or not
	some    bool // a data line was read
	begun   bool
	skip    bool // a CR came: an LF after it belongs to it
}

// step reads a line, or the LF that was left of one. An event that no empty line ended comes with the
// error.
func (s *sse) step() (piece, bool, error) {
	if s.skip {
		if next, err := s.in.Peek(1); err == nil && next[0] == '\n' {
			s.skip = false
			s.read(1)
			return piece{}, false, nil
		}
	}
	empty, err := s.line()
	if err != nil && s.some {
		s.framing.Unterminated = true
	}
	if s.some && (empty || err != nil) {
		return s.take(), true, err
	}
	return piece{}, false, err
}

func (s *sse) within() bool { return s.some }

func (s *sse) shows() *Framing { return &s.framing }

func (s *sse) take() piece {
	p := piece{data: s.data}
	if s.size > len(s.data) {
		p.size = s.size
	}
	s.framing.Events++
	s.data, s.size, s.some = nil, 0, false
	return p
}

// line reads one line and applies its field.
func (s *sse) line() (empty bool, err error) {
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

func (s *sse) read(n int) {
	k, err := s.in.Discard(n)
	s.framing.Bytes += k
	if err != nil && !errors.Is(err, io.EOF) {
		return // what was peeked at can be discarded
	}
}

// field is a line while it is read: its name up to a colon, then its value.
type field struct {
	name   []byte
	colon  bool
	spaced bool // the blank behind the colon was looked for
	length int
	data   bool // it is data, and its value goes to the event
}

const longestName = 64

// add takes more of a line.
func (s *sse) add(l *field, more []byte) {
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
	if !l.data || len(more) == 0 {
		return
	}
	if !l.spaced {
		l.spaced = true
		more = bytes.TrimPrefix(more, []byte(" "))
	}
	s.size += len(more)
	s.data = append(s.data, more[:max(0, min(len(more), MaxEvent-len(s.data)))]...)
}

// named begins the value of a field.
func (s *sse) named(l *field) {
	l.data = string(l.name) == "data"
	if l.data && s.some {
		s.size++
		s.data = append(s.data, '\n')
	}
	s.some = s.some || l.data
}

// close ends a line.
func (s *sse) close(l *field) {
	switch {
	case l.length == 0 || l.data:
	case l.colon && len(l.name) == 0:
		s.framing.Comments++
	case !l.colon && string(l.name) == "data":
		s.named(l)
	default:
		if name := string(l.name); len(s.framing.Fields) < mostFields && !slices.Contains(s.framing.Fields, name) {
			s.framing.Fields = append(s.framing.Fields, name)
		}
	}
}

// keptOfFrame is how many bytes are kept of a frame that is too long.
const keptOfFrame = 4 << 10

// frames reads a stream in the binary form, in bounded memory.
type frames struct {
	in      *bufio.Reader
	framing Framing
	skip    int64 // what is to come of a frame that is too long
}

func (f *frames) within() bool { return false }

func (f *frames) shows() *Framing { return &f.framing }

// step reads a frame, or a part of one that is too long.
func (f *frames) step() (piece, bool, error) {
	if f.skip > 0 {
		n, err := f.in.Discard(int(min(f.skip, 32<<10)))
		f.framing.Bytes += n
		f.skip -= int64(n)
		return piece{}, false, err
	}
	prefix, err := f.in.Peek(aguiproto.Prefix)
	if err != nil {
		n, _ := f.in.Discard(len(prefix))
		f.framing.Bytes += n
		if n > 0 && errors.Is(err, io.EOF) {
			f.framing.Tail = fmt.Sprintf("the body ends within the length of a frame: it has %d bytes, and %d came",
				aguiproto.Prefix, n)
		}
		return piece{}, false, err
	}
	length := aguiproto.Length([aguiproto.Prefix]byte(prefix))
	if length > MaxEvent {
		return f.tooLong(length, string(prefix)), true, nil
	}
	n, _ := f.in.Discard(aguiproto.Prefix)
	f.framing.Bytes += n
	var whole bytes.Buffer
	got, err := io.CopyN(&whole, f.in, length)
	f.framing.Bytes += int(got)
	if err != nil {
		if errors.Is(err, io.EOF) { // a connection that broke is told elsewhere
			f.framing.Tail = fmt.Sprintf("the body ends within a frame: its length is %d bytes, and %d came", length, got)
		}
		return piece{}, false, err
	}
	f.framing.Events++
	data, err := aguiproto.Decode(whole.Bytes())
	if err != nil {
		return piece{data: whole.Bytes(), problem: err.Error()}, true, nil
	}
	return piece{data: data}, true, nil
}

// tooLong begins to pass over a frame.
func (f *frames) tooLong(length int64, prefix string) piece {
	begin, _ := f.in.Peek(min(f.in.Buffered(), keptOfFrame))
	p := piece{data: bytes.Clone(begin), size: aguiproto.Prefix + int(length), problem: fmt.Sprintf(
		"the length of the frame is %d bytes, more than the %d that any event may have", length, MaxEvent)}
	if prefix == "data" {
		p.problem += `: it is the text "data", so the body may be server-sent events`
	}
	f.framing.Events++
	f.skip = aguiproto.Prefix + length
	return p
}
