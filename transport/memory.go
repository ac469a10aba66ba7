package transport

import (
	"io"
	"os"
	"sync"
)

// memory is a pipe within this process that behaves like a pipe of the kernel.
// It buffers 64 KiB; a writer blocks while the buffer is full. After the read
// end is closed, writes fail. After the write end is closed, reads return the
// rest.
type memory struct {
	mu         sync.Mutex
	cond       *sync.Cond
	buf        []byte
	readClosed bool
	ended      bool
	held       bool            // reads wait even if bytes are available
	asked      []chan struct{} // channels of Drained, closed when a read finds no bytes
	waiting    int             // number of reads that are waiting for bytes
}

const memorySize = 64 << 10

// newMemory returns an empty pipe.
func newMemory() *memory {
	m := &memory{}
	m.cond = sync.NewCond(&m.mu)
	return m
}

// Read reads the available bytes. If there are none, it waits.
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

// Write writes all of b. It waits while the pipe is full.
func (m *memory) Write(b []byte) (int, error) {
	n, _, err := m.write(b)
	return n, err
}

// Send writes all of b. waited reports whether the pipe was full in between.
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

// Unread returns the number of bytes that were written but not read.
func (m *memory) Unread() (n int, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.buf), true
}

// Drained returns a channel that is closed when the current content of the pipe
// has been read and the reader waits for more, or when the pipe is closed.
func (m *memory) Drained() (done <-chan struct{}, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := make(chan struct{})
	m.asked = append(m.asked, c)
	m.drained()
	return c, true
}

// drained closes the channels of Drained if the pipe is empty and a reader is
// waiting, or the pipe is closed.
func (m *memory) drained() {
	if len(m.buf) > 0 || m.waiting == 0 && !m.ended && !m.readClosed {
		return
	}
	for _, c := range m.asked {
		close(c)
	}
	m.asked = nil
}

// Close closes the write end.
func (m *memory) Close() error { return m.change(func() { m.ended = true }) }

// CloseRead closes the read end.
func (m *memory) CloseRead() error { return m.change(func() { m.readClosed, m.buf = true, nil }) }

// change changes the state of the pipe and wakes all blocked readers and
// writers.
func (m *memory) change(do func()) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	do()
	m.drained()
	m.cond.Broadcast()
	return nil
}
