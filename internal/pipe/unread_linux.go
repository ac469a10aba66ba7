package pipe

import "golang.org/x/sys/unix"

// Unread returns how many bytes written to a pipe have not been read. ok is false
// if that is unknown, as on systems other than Linux.
//
// FIONREAD has the name TIOCINQ here; it works on either end of a pipe.
func (w Writer) Unread() (n int, ok bool) {
	conn, err := w.SyscallConn()
	if err != nil {
		return 0, false
	}
	var asked error
	err = conn.Control(func(fd uintptr) { n, asked = unix.IoctlGetInt(int(fd), unix.TIOCINQ) })
	return n, err == nil && asked == nil
}
