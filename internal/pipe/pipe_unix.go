//go:build unix

package pipe

import (
	"errors"
	"io"
	"os"
	"syscall"
)

// Send writes all of b and reports whether it had to wait because the pipe was full. The duration of the write does
// not show this, because the writer may also have to wait for a processor.
func (w Writer) Send(b []byte) (waited bool, err error) {
	raw, err := w.SyscallConn()
	if err != nil {
		return false, err
	}
	var failed error
	err = raw.Write(func(fd uintptr) bool {
		for len(b) > 0 {
			switch n, err := syscall.Write(int(fd), b); err {
			case nil:
				b = b[n:]
			case syscall.EINTR:
			case syscall.EAGAIN:
				waited = true
				return false // wait until there is room
			default:
				failed = err
				return true
			}
		}
		return true
	})
	if err == nil && failed != nil {
		err = os.NewSyscallError("write", failed)
	}
	return waited, err
}

// readNow reads the bytes that are in a pipe now, without waiting. some is false if there are none.
func readNow(f syscall.Conn, p []byte) (n int, some bool, err error) {
	raw, err := f.SyscallConn()
	if err != nil {
		return 0, false, err
	}
	var failed error
	err = raw.Read(func(fd uintptr) bool {
		for {
			n, failed = syscall.Read(int(fd), p)
			if failed != syscall.EINTR {
				return true
			}
		}
	})
	switch {
	case err != nil:
		return 0, false, err
	case errors.Is(failed, syscall.EAGAIN):
		return 0, false, nil
	case failed != nil:
		return 0, false, failed
	case n == 0 && len(p) > 0:
		return 0, true, io.EOF
	}
	return n, true, nil
}
