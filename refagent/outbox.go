package refagent

import (
	"context"
	"io"
	"sync"
)

// maxQueued is how many bytes may wait for a slow reader before turns have to
// wait.
const maxQueued = 8 << 20

// outbox is the single writer of the output. Putting a frame never blocks, so
// that the loop that reads input never waits for the editor to read. Turns call
// drain to wait for a slow editor.
type outbox struct {
	mu     sync.Mutex
	frames [][]byte
	bytes  int
	closed bool
	err    error
	wake   *sync.Cond    // signalled when there is work
	room   chan struct{} // closed and replaced whenever a frame has left
	done   chan struct{} // closed when run has ended
}

func newOutbox() *outbox {
	o := &outbox{room: make(chan struct{}), done: make(chan struct{})}
	o.wake = sync.NewCond(&o.mu)
	return o
}

// put queues one frame. After close or a write error it drops it.
func (o *outbox) put(frame []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.closed && o.err == nil {
		o.frames = append(o.frames, frame)
		o.bytes += len(frame)
		o.wake.Signal()
	}
}

// drain waits until no more than most bytes are queued; 0 waits until everything
// queued is written.
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

// close makes run end after the last queued frame.
func (o *outbox) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	o.wake.Signal()
}

// next waits for a frame. ok is false after the last one.
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

// run writes frames, one Write each, until close or the first write error.
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
