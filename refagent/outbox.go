package refagent

import (
	"context"
	"io"
	"sync"
)

// maxQueued is the number of queued bytes above which turns wait for a slow editor.
const maxQueued = 8 << 20

// outbox queues frames and is the only writer to the output. The method put never blocks, so the loop that reads the
// input never waits for the editor to read. Turns call drain to wait for a slow editor.
type outbox struct {
	mu     sync.Mutex
	frames [][]byte
	bytes  int
	closed bool
	err    error
	wake   *sync.Cond    // signalled when there is work
	room   chan struct{} // closed and replaced whenever a frame was written
	done   chan struct{} // closed when the method run has ended
}

func newOutbox() *outbox {
	o := &outbox{room: make(chan struct{}), done: make(chan struct{})}
	o.wake = sync.NewCond(&o.mu)
	return o
}

// put queues one frame. It drops the frame after close or after a write error.
func (o *outbox) put(frame []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.closed && o.err == nil {
		o.frames = append(o.frames, frame)
		o.bytes += len(frame)
		o.wake.Signal()
	}
}

// drain waits until the queue has no more than most bytes, a write fails, or ctx ends. With most 0, it waits until
// all queued frames are written.
func (o *outbox) drain(ctx context.Context, most int) {
	for {
		o.mu.Lock()
		full, room := o.bytes > most && o.err == nil, o.room
		o.mu.Unlock()
		if !full {
			return
		}
		select {
		case <-room:
		case <-ctx.Done():
			return
		}
	}
}

// close makes the method run return after the last queued frame.
func (o *outbox) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	o.wake.Signal()
}

// next waits for a frame. ok is false after the last frame.
func (o *outbox) next() (frame []byte, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for len(o.frames) == 0 && !o.closed {
		o.wake.Wait()
	}
	if len(o.frames) == 0 {
		return nil, false
	}
	frame, o.frames = o.frames[0], o.frames[1:]
	return frame, true
}

// run writes the frames, each with a single Write, until close or the first write error.
func (o *outbox) run(w io.Writer) error {
	defer close(o.done)
	for {
		frame, ok := o.next()
		if !ok {
			return nil
		}
		_, err := w.Write(frame)
		o.mu.Lock()
		o.bytes -= len(frame)
		o.err = err
		close(o.room)
		o.room = make(chan struct{})
		o.mu.Unlock()
		if err != nil {
			return err
		}
	}
}
