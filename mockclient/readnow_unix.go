//go:build unix

package mockclient

import (
	"errors"
	"io"
	"os"
	"syscall"
)

// readNow reads what is in a pipe without waiting; some is false if there is
// nothing.
func readNow(f *os.File, p []byte) (n int, some bool, err error) {
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
