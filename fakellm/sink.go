package fakellm

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// sink buffers an answer on its way to the client. The buffer is flushed before
// each wait and at the end, so that the client has everything sent so far.
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
	leaving func() // called before bytes leave
}

// errClosed says that the server was closed while it answered.
var errClosed = errors.New("the model server was closed")

var buffers = sync.Pool{New: func() any { b := make([]byte, 0, 16<<10); return &b }}

// enough is the maximum number of bytes kept for one write.
const enough = 64 << 10

func newSink(w http.ResponseWriter, ctx context.Context, closed <-chan struct{}, timeout time.Duration) *sink {
	// No Date header, so that equal requests get equal bytes.
	w.Header()["Date"] = nil
	pooled := buffers.Get().(*[]byte)
	rc := http.NewResponseController(w)
	// Clear the write deadline of the previous answer.
	_ = rc.SetWriteDeadline(time.Time{}) // fails only where there is none
	return &sink{w: w, rc: rc, ctx: ctx, closed: closed, timeout: timeout, buf: (*pooled)[:0], pooled: pooled}
}

func (k *sink) release() {
	if cap(k.buf) <= 4*enough {
		*k.pooled = k.buf
	}
	buffers.Put(k.pooled)
	k.buf = nil
}

// begin writes the header; length is -1 for a stream.
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
		h.Set("Transfer-Encoding", "chunked") // even if all fits into one write
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

// put hands bytes to the HTTP server, which may keep them until the answer
// ends.
func (k *sink) put(b []byte) error {
	k.leaving()
	if err := k.ctx.Err(); err != nil || len(b) == 0 { // writing nothing would send a header, before it is known
		return err
	}
	_ = k.rc.SetWriteDeadline(time.Now().Add(k.timeout)) // fails only where there is none
	_, err := k.w.Write(b)
	return err
}

// last writes the rest of an answer that ends here.
func (k *sink) last() error {
	if k.slow != nil {
		return k.flush()
	}
	err := k.put(k.buf)
	k.buf = k.buf[:0]
	return err
}

// spill writes the buffer if it is full enough.
func (k *sink) spill() error {
	if len(k.buf) < enough && k.slow == nil {
		return nil
	}
	return k.flush()
}

// wait sleeps for d. It returns an error if the client hangs up first.
func (k *sink) wait(d time.Duration) error {
	if d <= 0 {
		return nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	return until(k, t.C)
}

// until waits for an event (nil: none), the client's hang-up, or the server's
// close.
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

// cut ends the connection at once, without the end of the body.
func (k *sink) cut() {
	panic(http.ErrAbortHandler)
}
