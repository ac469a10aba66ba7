package transport

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/acp-test/acp-test/transcript"
)

// Shape is how frames to the agent are divided into writes. The zero value
// writes each frame in one call. The agent always gets complete frames in the
// end.
type Shape struct {
	// Coalesce holds frames back and joins them into one write. The write happens
	// at Flush, when the shape changes, or when stdin is closed. A held frame is
	// logged immediately; a Written entry follows when it is written.
	Coalesce bool
	// Split divides each write into pieces of this many bytes: 1 is byte by byte,
	// and 0 does not divide. On Linux and within this process, a piece is written
	// when the agent has read the previous one, with a limit of 1 s per frame. On
	// other systems, an agent may read several pieces at once.
	Split int
}

// ParseShape parses the name of a shape: normal, coalesce, bytewise or split=N.
// ok is false for any other name.
func ParseShape(name string) (shape Shape, ok bool) {
	switch pieces, split := strings.CutPrefix(name, "split="); {
	case split:
		n, err := strconv.Atoi(pieces)
		return Shape{Split: n}, err == nil && n > 0
	case name == "coalesce":
		return Shape{Coalesce: true}, true
	case name == "bytewise":
		return Shape{Split: 1}, true
	}
	return Shape{}, name == "normal"
}

// heldFrame is a frame that a coalescing shape holds back.
type heldFrame struct {
	transcript.Entry
	tail string
}

// job is one task of the writing goroutine. begin appends the entry and returns
// it, or returns false if there is nothing to write.
type job struct {
	begin func() (transcript.Entry, bool)
	flush bool
	shape *Shape // the shape from now on; nil keeps the current one
	tail  string // text after the frame: a newline or ""

	entry transcript.Entry
	err   error
	begun chan struct{}
	done  chan struct{}
}

// Send calls begin in the writing goroutine. It then writes the frame that
// begin appended to the transcript, followed by tail. So no other frame comes
// between the state that begin sees and its frame. begin returns false if there
// is nothing to write. Send returns when the write has ended, or with the cause
// of ctx when ctx ends; a write that has begun continues. If the write fails,
// the error is a *WriteError.
func (a *Agent) Send(
	ctx context.Context, tail string, begin func() (transcript.Entry, bool),
) (transcript.Entry, error) {
	return a.do(ctx, &job{begin: begin, tail: tail})
}

// Append appends a frame of the editor to the transcript, but does not write
// it. It is for use in Send's begin.
func (a *Agent) Append(raw []byte) transcript.Entry {
	return a.t.AppendFrame(a.conn, transcript.Editor, raw, 0)
}

func (a *Agent) do(ctx context.Context, j *job) (transcript.Entry, error) {
	j.begun, j.done = make(chan struct{}), make(chan struct{})
	select {
	case <-a.exited: // select chooses at random, but an agent that has exited must get no frame
		return transcript.Entry{}, ErrExited
	default:
	}
	select {
	case a.jobs <- j:
	case <-a.exited:
		return transcript.Entry{}, ErrExited
	case <-ctx.Done():
		return transcript.Entry{}, fmt.Errorf("waiting to write: %w", context.Cause(ctx))
	}
	select {
	case <-j.done:
		return j.entry, j.err
	case <-ctx.Done():
	}
	select {
	case <-j.begun:
		return j.entry, fmt.Errorf("writing: %w", context.Cause(ctx))
	case <-j.done:
		return j.entry, j.err
	}
}

func (a *Agent) writeLoop() {
	for {
		select {
		case j := <-a.jobs:
			a.perform(j)
			close(j.done)
		case <-a.exited:
			return
		}
	}
}

func (a *Agent) perform(j *job) {
	a.mu.Lock()
	closed, shape := a.stdinClosed, a.shape
	a.mu.Unlock()
	if j.flush {
		j.err = a.writeHeld(shape)
		if j.shape != nil {
			a.setShape(*j.shape)
		}
		close(j.begun)
		return
	}
	if closed {
		j.err = ErrStdinClosed
		close(j.begun)
		return
	}
	entry, ok := j.begin()
	j.entry = entry
	close(j.begun)
	if !ok {
		return
	}
	if shape.Coalesce {
		a.mu.Lock()
		a.held = append(a.held, heldFrame{entry, j.tail})
		a.mu.Unlock()
		return
	}
	buf := make([]byte, 0, len(entry.Raw)+1)
	buf = append(append(buf, entry.Raw...), j.tail...)
	start := time.Now()
	waited, err := a.put(buf, shape.Split)
	if err != nil || waited {
		a.written(entry, time.Since(start), err)
	}
	j.err = err
}

// writeHeld writes the frames that were held back in one call.
func (a *Agent) writeHeld(shape Shape) error {
	a.mu.Lock()
	held := a.held
	a.held = nil
	a.mu.Unlock()
	if len(held) == 0 {
		return nil
	}
	var buf []byte
	for _, e := range held {
		buf = append(append(buf, e.Raw...), e.tail...)
	}
	start := time.Now()
	_, err := a.put(buf, shape.Split)
	took := time.Since(start)
	for _, e := range held {
		a.written(e.Entry, took, err)
	}
	return err
}

// put writes buf. waited reports whether it had to wait for the agent, so that
// the end of buf was written later than its beginning.
func (a *Agent) put(buf []byte, split int) (waited bool, err error) {
	split = cmp.Or(max(split, 0), len(buf))
	// All pieces share one timeout, because the agent may not be reading.
	patience, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	for len(buf) > 0 {
		n := min(split, len(buf))
		held, err := a.transport.Send(buf[:n])
		waited = waited || held
		if err != nil {
			return waited, &WriteError{err}
		}
		if buf = buf[n:]; len(buf) > 0 {
			a.Taken(patience) // makes the agent read the next piece separately
			waited = true
		}
	}
	return waited, nil
}

// Taken waits until the agent has read everything that was written to its
// stdin, has ended, or ctx ends. It returns immediately if the amount of unread
// input is unknown, as for pipes on systems other than Linux.
func (a *Agent) Taken(ctx context.Context) {
	// The kernel sends no event when a pipe becomes empty, so poll.
	for ctx.Err() == nil {
		if left, ok := a.transport.Unread(); !ok || left == 0 {
			return
		}
		select {
		case <-a.exited:
			return
		case <-time.After(50 * time.Microsecond):
		}
	}
}

// WriteError is a write that failed, as opposed to one that was given up.
type WriteError struct{ Cause error }

func (e *WriteError) Error() string { return "writing to the agent: " + e.Cause.Error() }

// Unwrap returns the cause of the failure.
func (e *WriteError) Unwrap() error { return e.Cause }

func (a *Agent) written(frame transcript.Entry, took time.Duration, err error) {
	e := transcript.Entry{
		Conn: a.conn, Source: transcript.Editor, Kind: transcript.Written,
		ID: frame.ID, Method: frame.Method, Session: frame.Session, Ref: frame.Seq,
		Raw: fmt.Appendf(nil, `{"took_us":%d}`, took.Microseconds()),
	}
	if err != nil {
		e.Problem = err.Error()
	}
	a.t.Append(e)
}

// WriteShape sets how later frames are written. It first writes frames that the
// previous shape holds back.
func (a *Agent) WriteShape(ctx context.Context, s Shape) error {
	a.mu.Lock()
	holds, empty := a.shape.Coalesce, len(a.held) == 0
	a.mu.Unlock()
	if holds { // no frame may come between the last that is held and the new shape
		if _, err := a.do(ctx, &job{flush: true, shape: &s}); !empty || err != ErrExited {
			return err
		}
	}
	a.setShape(s)
	return nil
}

func (a *Agent) setShape(s Shape) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.shape = s
}

// Flush writes the frames that a coalescing shape holds back, in one write.
func (a *Agent) Flush(ctx context.Context) error {
	a.mu.Lock()
	nothing := len(a.held) == 0
	a.mu.Unlock()
	if nothing {
		return nil
	}
	_, err := a.do(ctx, &job{flush: true})
	return err
}
