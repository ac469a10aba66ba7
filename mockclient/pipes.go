package mockclient

import (
	"errors"
	"io"
	"os"
	"sync"
	"time"
)

// valve is a reader that can be shut: a shut valve hands nothing over. And it
// can be asked to say when all that had been written has been handed over.
type valve struct {
	r       io.Reader
	mu      sync.Mutex
	cond    *sync.Cond
	shutNow bool
	asked   []chan struct{} // by drained, closed when nothing is left to read
}

func newValve(r io.Reader) *valve {
	v := &valve{r: r}
	v.cond = sync.NewCond(&v.mu)
	return v
}

func (v *valve) Read(p []byte) (int, error) {
	v.pass()
	n, err := v.read(p)
	// The read may have begun before the valve was shut.
	v.pass()
	return n, err
}

func (v *valve) read(p []byte) (int, error) {
	for {
		if f, asked := v.take(); asked != nil {
			if n, some, err := readNow(f, p); some || err != nil {
				v.ask(f, asked...)
				return n, err
			}
			for _, c := range asked {
				close(c)
			}
		}
		n, err := v.r.Read(p)
		// The deadline has passed only while somebody asks.
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			return n, err
		}
	}
}

// drained is closed when all that is in the pipe now has been handed over and
// the reader has come back for more. ok is false where that cannot be told.
func (v *valve) drained() (done <-chan struct{}, ok bool) {
	f, ok := v.r.(*os.File)
	if !ok {
		return nil, false
	}
	c := make(chan struct{})
	return c, v.ask(f, c)
}

// ask makes a reader that waits look what there is.
func (v *valve) ask(f *os.File, asked ...chan struct{}) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	if err := f.SetReadDeadline(time.Unix(1, 0)); err != nil {
		return false
	}
	v.asked = append(v.asked, asked...)
	return true
}

// take is what is asked, and lets the reader wait again.
func (v *valve) take() (*os.File, []chan struct{}) {
	v.mu.Lock()
	defer v.mu.Unlock()
	f, ok := v.r.(*os.File)
	if !ok || len(v.asked) == 0 {
		return nil, nil
	}
	_ = f.SetReadDeadline(time.Time{}) // it could be set before
	asked := v.asked
	v.asked = nil
	return f, asked
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
	// resting is whether all that was taken has been handled; atRest are those
	// who wait for that.
	resting bool
	atRest  []chan struct{}
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
	for len(q.seqs) == 0 {
		q.resting = true
		for _, c := range q.atRest {
			close(c)
		}
		q.atRest = nil
		if q.closed {
			return 0, false
		}
		q.cond.Wait()
	}
	q.resting = false
	seq = q.seqs[0]
	q.seqs = q.seqs[1:]
	return seq, true
}

// rest is closed when nothing is left and what was taken last is handled.
func (q *queue) rest() <-chan struct{} {
	c := make(chan struct{})
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.resting && len(q.seqs) == 0 {
		close(c)
	} else {
		q.atRest = append(q.atRest, c)
	}
	return c
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
	n, _, err := p.write(b)
	return n, err
}

func (p *pipe) write(b []byte) (n int, waited bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		if p.ended {
			return n, waited, os.ErrClosed
		}
		if p.readClosed {
			return n, waited, io.ErrClosedPipe
		}
		if room := pipeSize - len(p.buf); room > 0 && len(b) > 0 {
			k := min(room, len(b))
			p.buf = append(p.buf, b[:k]...)
			b, n = b[k:], n+k
			p.cond.Broadcast()
		}
		if len(b) == 0 {
			return n, waited, nil
		}
		waited = true
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

// writeTold writes all of b and reports whether the pipe was full meanwhile. How
// long it took would not tell: the writer may have had to wait for a processor
// when the reader had all of it and had answered.
func writeTold(w io.Writer, b []byte) (waited bool, err error) {
	switch w := w.(type) {
	case *pipe:
		_, waited, err = w.write(b)
	case *os.File:
		waited, err = writeFileTold(w, b)
	default:
		_, err = w.Write(b)
	}
	return waited, err
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
