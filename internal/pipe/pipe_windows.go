package pipe

import (
	"os"
	"time"
)

// Send writes all of b. A pipe does not say here that it is full: what took
// longer than a millisecond has waited.
func (w Writer) Send(b []byte) (waited bool, err error) {
	start := time.Now()
	_, err = w.Write(b)
	return time.Since(start) > time.Millisecond, err
}

// readNow is not reached: pipes have no deadlines here, so that nobody asks.
func readNow(*os.File, []byte) (n int, some bool, err error) { return 0, false, nil }
