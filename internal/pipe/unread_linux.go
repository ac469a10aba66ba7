package pipe

import "golang.org/x/sys/unix"

// Unread returns the number of bytes in the pipe that have been written but not read. ok is false if the number is
// unknown, as on systems other than Linux.
//
// TIOCINQ is Linux's name for FIONREAD. It works on both ends of a pipe.
func (w Writer) Unread() (n int, ok bool) {
	conn, err := w.SyscallConn()
	if err != nil {
		return 0, false
	}
	var asked error
	err = conn.Control(func(fd uintptr) { n, asked = unix.IoctlGetInt(int(fd), unix.TIOCINQ) })
	return n, err == nil && asked == nil
}
