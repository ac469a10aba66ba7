package wire

import (
	"bytes"
	"cmp"
	"io"
)

const (
	defaultMaxLine = 256 << 20 // bytes of a line that are kept
	firstBuffer    = 64 << 10
	mostHead       = 1 << 20 // bytes kept of a line beyond the limit
	idleBuffer     = 1 << 20 // a larger buffer is given back after its line
	longest        = 8       // a line longer than this many times the limit is cut
)

// Line is one line of a stream.
type Line struct {
	// Bytes are the bytes before the newline; a carriage return stays. They
	// are good until the next call of Next.
	Bytes []byte
	// Terminated is false for the bytes after the last newline.
	Terminated bool
	// Size is the full length in bytes, more than len(Bytes) if the line was
	// longer than the limit.
	Size int
}

// Splitter splits a stream into lines. It never loses a line and never needs much
// more memory than its limit. Of a longer line it keeps only the head, at most a
// MiB, and counts the rest. A line longer than 8 times the limit, and than 256
// MiB, is returned in parts, because it may never end.
type Splitter struct {
	r       io.Reader
	maxLine int
	buf     []byte
	from    int    // buf[from:to] has been read but not returned
	to      int    //
	rest    []byte // read beyond the end of an oversize line, not in buf yet
	err     error  // of r, returned after the last line
}

// NewSplitter returns a Splitter of r that keeps at most maxLine bytes of each
// line; 0 means 256 MiB.
func NewSplitter(r io.Reader, maxLine int) *Splitter {
	return &Splitter{r: r, maxLine: cmp.Or(max(maxLine, 0), defaultMaxLine)}
}

// Next returns the next line. It returns bytes after the last newline as an
// unterminated line, and after that the error of the reader, io.EOF at its end.
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

// makeRoom moves the pending bytes to the front of this buffer, or of a new one
// of a better size, to make space after them.
func (s *Splitter) makeRoom() {
	pending, buf := s.buf[s.from:s.to], s.buf
	switch {
	case len(buf) == 0 || len(pending) > len(buf)/2:
		// One byte more than the limit tells a line of just that length from
		// a longer one.
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

// read calls the reader's Read, and returns io.ErrNoProgress after 100 empty results in a row.
func (s *Splitter) read(into []byte) (int, error) {
	for range 100 {
		n, err := s.r.Read(into)
		if n > 0 || err != nil {
			return n, err
		}
	}
	return 0, io.ErrNoProgress
}

// oversize returns the head of the pending line and skips the rest.
func (s *Splitter) oversize() Line {
	head := bytes.Clone(s.buf[s.from : s.from+min(s.maxLine, mostHead)])
	size := s.maxLine
	rest := bytes.Clone(s.buf[s.from+s.maxLine : s.to])
	s.buf, s.from, s.to = nil, 0, 0 // the next line begins elsewhere
	var scratch []byte
	for {
		if i := bytes.IndexByte(rest, '\n'); i >= 0 {
			// The head must stay unchanged until the next call, so copy the
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
