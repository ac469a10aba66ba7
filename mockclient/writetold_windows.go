package mockclient

import (
	"os"
	"time"
)

// writeFileTold is writeTold where a pipe does not say that it is full: what
// took longer than a millisecond has waited.
func writeFileTold(f *os.File, b []byte) (waited bool, err error) {
	start := time.Now()
	_, err = f.Write(b)
	return time.Since(start) > time.Millisecond, err
}
