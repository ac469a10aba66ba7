package mockclient

import (
	"io"
	"os"
	"sync"
)

// valve is a reader that can be shut: a shut valve hands nothing over.
type valve struct {
	r       io.Reader
	mu      sync.Mutex
	cond    *sync.Cond
	shutNow bool
}

func newValve(r io.Reader) *valve {
	v := &valve{r: r}
	v.cond = sync.NewCond(&v.mu)
	return v
}

func (v *valve) Read(p []byte) (int, error) {
	v.pass()
	n, err := v.r.Read(p)
	// The read may have begun before the valve was shut.
	v.pass()
	return n, err
}

func (v *valve) pass() {
	v.mu.Lock()
	defer v.mu.Unlock()
	for v.shutNow {
		v.cond.Wait()
	}
}

func (v *valve) shut() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.shutNow = true
}

func (v *valve) open() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.shutNow = false
	v.cond.Broadcast()
}

// queue passes entries, by their Seq, from the reader to the goroutine that
// handles the agent's requests. It has no bound: an agent that asks faster than
// we answer must not stop the reader, and a number is all it can make us keep.
type queue struct {
	mu     sync.Mutex
	cond   *sync.Cond
	seqs   []int
	closed bool
}

func newQueue() *queue {
	q := &queue{}
	q.cond = sync.NewCond(&q.mu)
	return q
}

func (q *queue) put(seq int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.seqs = append(q.seqs, seq)
	q.cond.Signal()
}

func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.cond.Broadcast()
}

// get waits for the next Seq. ok is false when the queue is closed and empty.
func (q *queue) get() (seq int, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.seqs) == 0 && !q.closed {
		q.cond.Wait()
	}
	if len(q.seqs) == 0 {
		return 0, false
	}
	seq = q.seqs[0]
	q.seqs = q.seqs[1:]
	return seq, true
}

// pipe is an in-memory pipe that behaves as the kernel's does: it buffers
// 64 KiB, a writer blocks when it is full, closing the read end makes writes
// fail, and closing the write end lets the reader finish what is there.
type pipe struct {
	mu         sync.Mutex
	cond       *sync.Cond
	buf        []byte
	readClosed bool
	ended      bool
}

const pipeSize = 64 << 10

func newPipe() *pipe {
	p := &pipe{}
	p.cond = sync.NewCond(&p.mu)
	return p
}

func (p *pipe) Read(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.buf) == 0 && !p.ended && !p.readClosed {
		p.cond.Wait()
	}
	if p.readClosed {
		return 0, os.ErrClosed
	}
	if len(p.buf) == 0 {
		return 0, io.EOF
	}
	n := copy(b, p.buf)
	p.buf = p.buf[n:]
	p.cond.Broadcast()
	return n, nil
}

func (p *pipe) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := 0
	for {
		if p.ended {
			return n, os.ErrClosed
		}
		if p.readClosed {
			return n, io.ErrClosedPipe
		}
		if room := pipeSize - len(p.buf); room > 0 && len(b) > 0 {
			k := min(room, len(b))
			p.buf = append(p.buf, b[:k]...)
			b, n = b[k:], n+k
			p.cond.Broadcast()
		}
		if len(b) == 0 {
			return n, nil
		}
		p.cond.Wait()
	}
}

// Close ends the writing side.
func (p *pipe) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended = true
	p.cond.Broadcast()
	return nil
}

// closeRead ends the reading side.
func (p *pipe) closeRead() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.readClosed = true
	p.cond.Broadcast()
}

// unread is how many bytes of what was written to a pipe have not been taken.
// ok is false where that cannot be told.
func unread(w io.Writer) (n int, ok bool) {
	switch w := w.(type) {
	case *pipe:
		w.mu.Lock()
		defer w.mu.Unlock()
		return len(w.buf), true
	case *os.File:
		return unreadFile(w)
	}
	return 0, false
}
