//go:build unix

package mockclient

import (
	"os"
	"syscall"
)

// writeFileTold is writeTold for the pipe to a process.
func writeFileTold(f *os.File, b []byte) (waited bool, err error) {
	raw, err := f.SyscallConn()
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
				return false // until there is room
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
