package transport

import (
	"io"
	"os"
	"sync"
)

// memory is a pipe within this process that behaves like the kernel's. It buffers
// 64 KiB, and a writer blocks when it is full. After the read end is closed,
// writes fail. After the write end is closed, the reader gets the rest.
type memory struct {
	mu         sync.Mutex
	cond       *sync.Cond
	buf        []byte
	readClosed bool
	ended      bool
	held       bool            // reads wait even if bytes are available
	asked      []chan struct{} // by Drained, closed when a reader finds nothing
	waiting    int             // reads that found nothing
}

const memorySize = 64 << 10

// newMemory returns an empty pipe.
func newMemory() *memory {
	m := &memory{}
	m.cond = sync.NewCond(&m.mu)
	return m
}

// Read reads the available bytes, or waits for some.
func (m *memory) Read(b []byte) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for (len(m.buf) == 0 || m.held) && !m.ended && !m.readClosed {
		m.waiting++
		m.drained()
		m.cond.Wait()
		m.waiting--
	}
	if m.readClosed {
		return 0, os.ErrClosed
	}
	if len(m.buf) == 0 {
		m.drained()
		return 0, io.EOF
	}
	n := copy(b, m.buf)
	m.buf = m.buf[n:]
	m.cond.Broadcast()
	return n, nil
}

// Write writes all of b.
func (m *memory) Write(b []byte) (int, error) {
	n, _, err := m.write(b)
	return n, err
}

// Send writes all of b and reports whether the pipe was full meanwhile.
func (m *memory) Send(b []byte) (waited bool, err error) {
	_, waited, err = m.write(b)
	return waited, err
}

func (m *memory) write(b []byte) (n int, waited bool, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for {
		if m.ended {
			return n, waited, os.ErrClosed
		}
		if m.readClosed {
			return n, waited, io.ErrClosedPipe
		}
		if room := memorySize - len(m.buf); room > 0 && len(b) > 0 {
			k := min(room, len(b))
			m.buf = append(m.buf, b[:k]...)
			b, n = b[k:], n+k
			m.cond.Broadcast()
		}
		if len(b) == 0 {
			return n, waited, nil
		}
		waited = true
		m.cond.Wait()
	}
}

// Unread returns how many bytes were written but not read.
func (m *memory) Unread() (n int, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.buf), true
}

// Drained returns a channel that is closed when the pipe's current content has
// been read and the reader has come back for more, or when the pipe is closed.
func (m *memory) Drained() (done <-chan struct{}, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := make(chan struct{})
	m.asked = append(m.asked, c)
	m.drained()
	return c, true
}

// drained signals the waiters once a reader waits for bytes that have not come.
func (m *memory) drained() {
	if len(m.buf) > 0 || m.waiting == 0 && !m.ended && !m.readClosed {
		return
	}
	for _, c := range m.asked {
		close(c)
	}
	m.asked = nil
}

// Close ends the writing side.
func (m *memory) Close() error { return m.change(func() { m.ended = true }) }

// CloseRead ends the reading side.
func (m *memory) CloseRead() error { return m.change(func() { m.readClosed, m.buf = true, nil }) }

// change changes the state of the pipe and wakes those who wait for a change.
func (m *memory) change(do func()) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	do()
	m.drained()
	m.cond.Broadcast()
	return nil
}
