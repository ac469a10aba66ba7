// Package pipe reports facts about a process's pipes that the os package does
// not: whether a write had to wait, how much is unread, and when everything was
// read.
package pipe

import (
	"errors"
	"io"
	"os"
	"sync"
	"syscall"
	"time"
)

// Set is the three pipes of a process, with the process's ends and the starter's
// ends. It never uses a pseudo-terminal, which would change bytes and mix stdout
// with stderr.
type Set struct {
	Stdin, Stdout, Stderr           *os.File // the process's ends
	ToStdin, FromStdout, FromStderr *os.File // the starter's ends
}

// NewSet creates the pipes.
func NewSet() (*Set, error) {
	s := &Set{}
	for _, ends := range [][2]**os.File{{&s.Stdin, &s.ToStdin}, {&s.FromStdout, &s.Stdout}, {&s.FromStderr, &s.Stderr}} {
		var err error
		if *ends[0], *ends[1], err = os.Pipe(); err != nil {
			s.CloseTheirs()
			s.CloseOurs()
			return nil, err
		}
	}
	return s, nil
}

// CloseTheirs closes the process's ends. Call it after starting the process, which has copies of its own.
func (s *Set) CloseTheirs() { closeAll(s.Stdin, s.Stdout, s.Stderr) }

// CloseOurs closes the starter's ends.
func (s *Set) CloseOurs() { closeAll(s.ToStdin, s.FromStdout, s.FromStderr) }

func closeAll(files ...*os.File) {
	for _, f := range files {
		if f != nil {
			f.Close()
		}
	}
}

// Writer writes to a pipe.
type Writer struct{ *os.File }

// File is the source of a Reader: a pipe, or a connection over TCP.
type File interface {
	io.ReadCloser
	syscall.Conn
	SetReadDeadline(t time.Time) error
}

// Reader reads from a pipe. On request it reports when everything written to the
// pipe so far has been read.
type Reader struct {
	f     File
	mu    sync.Mutex
	asked []chan struct{} // by Drained, closed when nothing is left to read
}

// NewReader returns a Reader of f.
func NewReader(f File) *Reader { return &Reader{f: f} }

// CloseRead closes the File.
func (r *Reader) CloseRead() error { return r.f.Close() }

// Read reads as the File does.
func (r *Reader) Read(p []byte) (int, error) {
	for {
		if asked := r.take(); asked != nil {
			if n, some, err := readNow(r.f, p); some || err != nil {
				r.ask(asked...)
				return n, err
			}
			for _, c := range asked {
				close(c)
			}
		}
		n, err := r.f.Read(p)
		// Only ask sets a deadline, to interrupt this read.
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			return n, err
		}
	}
}

// Drained returns a channel that is closed when the pipe's current content has
// been read and the reader has come back for more. ok is false if that cannot be
// known.
func (r *Reader) Drained() (done <-chan struct{}, ok bool) {
	c := make(chan struct{})
	return c, r.ask(c)
}

// ask wakes a waiting Read to make it check whether the pipe is empty.
func (r *Reader) ask(asked ...chan struct{}) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.f.SetReadDeadline(time.Unix(1, 0)); err != nil {
		return false
	}
	r.asked = append(r.asked, asked...)
	return true
}

// take returns the pending requests, and lets Read wait again.
func (r *Reader) take() []chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.asked) == 0 {
		return nil
	}
	_ = r.f.SetReadDeadline(time.Time{}) // it could be set before
	asked := r.asked
	r.asked = nil
	return asked
}
