package fakellm

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// sink buffers an answer on its way to the client. The buffer is flushed before each wait and at the end, so that the
// client receives everything produced so far.
type sink struct {
	w       http.ResponseWriter
	rc      *http.ResponseController
	ctx     context.Context
	closed  <-chan struct{}
	timeout time.Duration
	buf     []byte
	pooled  *[]byte
	begun   bool
	status  int
	stream  bool
	slow    *Drip
	leaving func() // called before bytes are sent
}

// errClosed is the error if the server was closed during an answer.
var errClosed = errors.New("the model server was closed")

var buffers = sync.Pool{New: func() any { b := make([]byte, 0, 16<<10); return &b }}

// enough is the number of bytes at which the buffer is written.
const enough = 64 << 10

func newSink(w http.ResponseWriter, ctx context.Context, closed <-chan struct{}, timeout time.Duration) *sink {
	// Suppress the Date header, so that equal requests get equal bytes.
	w.Header()["Date"] = nil
	pooled := buffers.Get().(*[]byte)
	rc := http.NewResponseController(w)
	// Clear the write deadline of the previous answer.
	_ = rc.SetWriteDeadline(time.Time{}) // fails only on connections without deadlines
	return &sink{w: w, rc: rc, ctx: ctx, closed: closed, timeout: timeout, buf: (*pooled)[:0], pooled: pooled}
}

func (k *sink) release() {
	if cap(k.buf) <= 4*enough {
		*k.pooled = k.buf
	}
	buffers.Put(k.pooled)
	k.buf = nil
}

// begin writes the status and the headers. A length of -1 means that the body is streamed.
func (k *sink) begin(status int, contentType string, length int) {
	if k.begun {
		return
	}
	k.begun, k.status, k.stream = true, status, length < 0
	h := k.w.Header()
	h.Set("Content-Type", contentType)
	if length >= 0 {
		h.Set("Content-Length", strconv.Itoa(length))
	} else {
		h.Set("Cache-Control", "no-cache")
		h.Set("X-Accel-Buffering", "no")
		h.Set("Transfer-Encoding", "chunked") // even if the body fits into one write
	}
	k.w.WriteHeader(status)
}

// flush sends the buffer to the client. A client that does not read is cut off
// after the timeout.
func (k *sink) flush() error {
	for len(k.buf) > 0 && k.slow != nil {
		n := min(k.slow.Bytes, len(k.buf))
		if err := k.write(k.buf[:n]); err != nil {
			return err
		}
		k.buf = append(k.buf[:0], k.buf[n:]...)
		if err := k.wait(k.slow.Every); err != nil {
			return err
		}
	}
	err := k.write(k.buf)
	k.buf = k.buf[:0]
	return err
}

func (k *sink) write(b []byte) error {
	if err := k.put(b); err != nil || !k.begun || !k.stream && k.slow == nil {
		return err
	}
	if err := k.rc.Flush(); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	return nil
}

// put hands bytes to the HTTP server, which may buffer them until the answer ends.
func (k *sink) put(b []byte) error {
	k.leaving()
	if err := k.ctx.Err(); err != nil || len(b) == 0 { // an empty write would send the headers too early
		return err
	}
	_ = k.rc.SetWriteDeadline(time.Now().Add(k.timeout)) // fails only on connections without deadlines
	_, err := k.w.Write(b)
	return err
}

// last writes the rest of a complete answer.
func (k *sink) last() error {
	if k.slow != nil {
		return k.flush()
	}
	err := k.put(k.buf)
	k.buf = k.buf[:0]
	return err
}

// spill writes the buffer if it contains at least enough bytes.
func (k *sink) spill() error {
	if len(k.buf) < enough && k.slow == nil {
		return nil
	}
	return k.flush()
}

// wait sleeps for d. It returns an error if the client disconnects or the server is closed first.
func (k *sink) wait(d time.Duration) error {
	if d <= 0 {
		return nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	return until(k, t.C)
}

// until waits for an event. It returns an error if the client disconnects or the server is closed first. A nil
// channel means that no event will come.
func until[T any](k *sink, event <-chan T) error {
	select {
	case <-event:
		return nil
	case <-k.ctx.Done():
		return context.Cause(k.ctx)
	case <-k.closed:
		return errClosed
	}
}

// cut closes the connection at once, without ending the body.
func (k *sink) cut() {
	panic(http.ErrAbortHandler)
}
