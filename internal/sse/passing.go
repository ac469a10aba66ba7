package sse

import (
	"bytes"
	"context"
	"io"
)

// Passing is the body of an event stream that a proxy forwards. Read returns
// each event whole, after In.Step has read it. It returns the bytes between
// events as they arrive. All fields are required.
type Passing struct {
	Body io.ReadCloser
	// In reads the stream from Feed.
	In interface {
		// Step reads one line; an error ends the stream.
		Step() error
		// Within reports whether an event has begun and has not ended.
		Within() bool
		Shows() *Framing
	}
	// Ended is called once, with the error that ended the stream:
	// context.Canceled if the reader closed it.
	Ended func(err error)

	raw    bytes.Buffer // bytes received but not passed on
	passed int
	err    error
}

// Feed returns the stream for In to read.
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

// Close must be called when the stream has ended, or its reader stops.
func (p *Passing) Close() error {
	p.stop(context.Canceled)
	return p.Body.Close()
}
