package sse

import (
	"bytes"
	"context"
	"io"
)

// Passing is the body of an event stream that a proxy forwards. Read passes on an event only when the complete event
// has arrived and In.Step has processed it. It passes on the bytes between events as they arrive. All fields are
// required.
type Passing struct {
	Body io.ReadCloser
	// In processes the stream that Feed returns.
	In interface {
		// Step processes one line. An error ends the stream.
		Step() error
		// Within reports whether the last line is inside an event that is not complete yet.
		Within() bool
		Shows() *Framing
	}
	// Ended is called once, with the error that ended the stream. The error is context.Canceled if the stream was
	// closed by Close.
	Ended func(err error)

	raw    bytes.Buffer // bytes received but not passed on yet
	passed int
	err    error
}

// Feed returns the stream that In must process.
func (p *Passing) Feed() io.Reader { return io.TeeReader(p.Body, &p.raw) }

// Read implements io.Reader.
func (p *Passing) Read(to []byte) (int, error) {
	for p.err == nil && (p.In.Within() || p.In.Shows().Bytes == p.passed) {
		if err := p.In.Step(); err != nil {
			p.stop(err)
		}
	}
	free := p.In.Shows().Bytes - p.passed
	if p.err != nil {
		free = p.raw.Len()
	}
	if free == 0 {
		return 0, p.err
	}
	n := copy(to, p.raw.Next(min(free, len(to))))
	p.passed += n
	return n, nil
}

func (p *Passing) stop(err error) {
	if p.err == nil {
		p.err = err
		p.Ended(err)
	}
}

// Close closes the stream. It must be called when the stream has ended, or when its reader stops early.
func (p *Passing) Close() error {
	p.stop(context.Canceled)
	return p.Body.Close()
}
