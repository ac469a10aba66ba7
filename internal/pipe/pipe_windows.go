package pipe

import (
	"syscall"
	"time"
)

// Send writes all of b. Here a pipe does not report that it is full, so a write
// of more than a millisecond counts as having waited.
func (w Writer) Send(b []byte) (waited bool, err error) {
	start := time.Now()
	_, err = w.Write(b)
	return time.Since(start) > time.Millisecond, err
}

// readNow reports that nothing is left. Pipes have no deadlines here, so ask
// cannot wake their readers, and a TCP connection can only be read by waiting.
func readNow(syscall.Conn, []byte) (n int, some bool, err error) { return 0, false, nil }
