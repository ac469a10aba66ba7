package pipe

import (
	"syscall"
	"time"
)

// Send writes all of b. A pipe does not say here that it is full: what took
// longer than a millisecond has waited.
func (w Writer) Send(b []byte) (waited bool, err error) {
	start := time.Now()
	_, err = w.Write(b)
	return time.Since(start) > time.Millisecond, err
}

// readNow takes what is to be read for all read: pipes have no deadlines here, so that nobody
// asks about them, and a connection over TCP can only be read by waiting.
func readNow(syscall.Conn, []byte) (n int, some bool, err error) { return 0, false, nil }
