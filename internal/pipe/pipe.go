// Package pipe connects processes by pipes. In addition to package os, it reports whether a write had to wait, how
// many bytes are unread, and when everything written has been read.
package pipe

import (
	"errors"
	"io"
	"os"
	"sync"
	"syscall"
	"time"
)

// Set contains the three standard pipes of a process: the ends for the process, and the ends for the program that
// starts it. They are never pseudo-terminals, because those change bytes and mix stdout with stderr.
type Set struct {
	Stdin, Stdout, Stderr           *os.File // the process's ends
	ToStdin, FromStdout, FromStderr *os.File // the starter's ends
}

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

// CloseTheirs closes the process's ends in this program. Call it after starting the process, which then has copies of
// these ends.
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

// Writer is the writing end of a pipe.
type Writer struct{ *os.File }

// File is the source of a Reader: a pipe or a TCP connection.
type File interface {
	io.ReadCloser
	syscall.Conn
	SetReadDeadline(t time.Time) error
}

// Reader reads from a pipe. Drained reports when everything written to the pipe so far has been read.
type Reader struct {
	f     File
	mu    sync.Mutex
	asked []chan struct{} // channels from Drained, closed once nothing is left to read
}

func NewReader(f File) *Reader { return &Reader{f: f} }

// CloseRead closes the underlying File.
func (r *Reader) CloseRead() error { return r.f.Close() }

// Read implements io.Reader.
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
		// Only the method ask sets a deadline, to interrupt this read.
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			return n, err
		}
	}
}

// Drained returns a channel that is closed when the pipe's current content has been read and the reader has come back
// for more. ok is false if f has no read deadlines, so that this cannot be known.
func (r *Reader) Drained() (done <-chan struct{}, ok bool) {
	c := make(chan struct{})
	return c, r.ask(c)
}

// ask registers channels for Read to close, and interrupts a waiting Read so that it checks whether the pipe is
// empty. It returns false if it cannot interrupt Read.
func (r *Reader) ask(asked ...chan struct{}) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.f.SetReadDeadline(time.Unix(1, 0)); err != nil {
		return false
	}
	r.asked = append(r.asked, asked...)
	return true
}

// take returns the channels registered by ask, and removes the deadline so that Read waits again.
func (r *Reader) take() []chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.asked) == 0 {
		return nil
	}
	_ = r.f.SetReadDeadline(time.Time{}) // no error, because a deadline could be set before
	asked := r.asked
	r.asked = nil
	return asked
}
