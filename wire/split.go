package wire

import (
	"bytes"
	"cmp"
	"io"
)

const (
	defaultMaxLine = 256 << 20 // default for the maximum number of bytes that are kept of a line
	firstBuffer    = 64 << 10
	mostHead       = 1 << 20 // maximum number of bytes that are kept of a line beyond the limit
	idleBuffer     = 1 << 20 // a larger buffer is freed after its line
	longest        = 8       // a line longer than this many times the limit is split
)

// Line is one line of a stream.
type Line struct {
	// Bytes has the bytes before the newline, including a carriage return. They
	// are valid until the next call of Next.
	Bytes []byte
	// Terminated is false if the line has no newline: the rest at the end of the
	// stream, or a part of a split line.
	Terminated bool
	// Size is the full length in bytes. It is greater than len(Bytes) if the line
	// was longer than the limit.
	Size int
}

// Splitter splits a stream into lines. It never loses a line, and never needs
// much more memory than its limit. Of a longer line, it keeps only the
// beginning, at most 1 MiB, and counts the rest. A line that is longer than 8
// times the limit and longer than 256 MiB is returned in parts, because it may
// never end.
type Splitter struct {
	r       io.Reader
	maxLine int
	buf     []byte
	from    int    // buf[from:to] was read but not yet returned
	to      int    //
	rest    []byte // bytes after the end of an oversize line that are not in buf yet
	err     error  // error of r, returned after the last line
}

// NewSplitter returns a Splitter for r. maxLine is the maximum number of bytes
// that are kept of a line; 0 means 256 MiB.
func NewSplitter(r io.Reader, maxLine int) *Splitter {
	return &Splitter{r: r, maxLine: cmp.Or(max(maxLine, 0), defaultMaxLine)}
}

// Next returns the next line. Bytes after the last newline are an unterminated
// line. After that, Next returns the error of the reader, which is io.EOF at
// its end.
func (s *Splitter) Next() (Line, error) {
	if s.rest != nil {
		s.buf, s.from, s.to, s.rest = s.rest, 0, len(s.rest), nil
	}
	if s.from == s.to {
		s.from, s.to = 0, 0
		if len(s.buf) > idleBuffer {
			s.buf = nil
		}
	}
	searched := s.from
	for {
		if i := bytes.IndexByte(s.buf[searched:s.to], '\n'); i >= 0 && searched+i-s.from <= s.maxLine {
			return s.take(searched+i, true), nil
		}
		searched = s.to
		if s.to-s.from > s.maxLine {
			return s.oversize(), nil
		}
		if s.err != nil {
			if s.from < s.to {
				return s.take(s.to, false), nil
			}
			return Line{}, s.err
		}
		if s.to == len(s.buf) {
			searched -= s.from
			s.makeRoom()
		}
		s.fill()
	}
}

// take returns buf[from:end] as a line and moves past it.
func (s *Splitter) take(end int, terminated bool) Line {
	line := Line{Bytes: s.buf[s.from:end:end], Terminated: terminated, Size: end - s.from}
	s.from = end
	if terminated {
		s.from++
	}
	return line
}

// makeRoom makes space after the pending bytes. It moves them to the front of
// the buffer, or of a new buffer with a better size.
func (s *Splitter) makeRoom() {
	pending, buf := s.buf[s.from:s.to], s.buf
	switch {
	case len(buf) == 0 || len(pending) > len(buf)/2:
		// The extra byte distinguishes a line of exactly the limit from a longer one.
		buf = make([]byte, max(min(2*len(buf), s.maxLine+1), min(firstBuffer, s.maxLine+1), len(pending)+1))
	case len(buf) > idleBuffer && len(pending) < firstBuffer:
		buf = make([]byte, 2*firstBuffer)
	}
	copy(buf, pending)
	s.buf, s.from, s.to = buf, 0, len(pending)
}

func (s *Splitter) fill() {
	n, err := s.read(s.buf[s.to:])
	s.to += n
	s.err = err
}

// read calls the reader's Read. After 100 empty results in a row, it returns
// io.ErrNoProgress.
func (s *Splitter) read(into []byte) (int, error) {
	for range 100 {
		n, err := s.r.Read(into)
		if n > 0 || err != nil {
			return n, err
		}
	}
	return 0, io.ErrNoProgress
}

// oversize returns the beginning of the pending line and skips the rest.
func (s *Splitter) oversize() Line {
	head := bytes.Clone(s.buf[s.from : s.from+min(s.maxLine, mostHead)])
	size := s.maxLine
	rest := bytes.Clone(s.buf[s.from+s.maxLine : s.to])
	s.buf, s.from, s.to = nil, 0, 0 // the next line begins in another buffer
	var scratch []byte
	for {
		if i := bytes.IndexByte(rest, '\n'); i >= 0 {
			// The returned bytes must stay unchanged until the next call. So copy the
			// bytes after the newline to another buffer.
			s.rest = append(make([]byte, 0, firstBuffer), rest[i+1:]...)
			s.buf, s.from, s.to = nil, 0, 0
			return Line{Bytes: head, Terminated: true, Size: size + i}
		}
		size += len(rest)
		if s.err != nil || size > max(longest*s.maxLine, defaultMaxLine) {
			s.buf, s.from, s.to = nil, 0, 0
			return Line{Bytes: head, Size: size}
		}
		if scratch == nil {
			scratch = make([]byte, firstBuffer)
		}
		var n int
		n, s.err = s.read(scratch)
		rest = scratch[:n]
	}
}
