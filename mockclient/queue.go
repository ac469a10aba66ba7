package mockclient

import "sync"

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
