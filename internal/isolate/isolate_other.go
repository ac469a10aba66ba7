//go:build !linux

package isolate

import (
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"syscall"
)

// SetAttr changes nothing here.
func SetAttr(*syscall.SysProcAttr) {}

// Check says why this machine cannot isolate an agent: only Linux can.
// The error wraps ErrUnavailable.
func Check([]string) error {
	return fmt.Errorf("%w: they are a thing of Linux, and this is %s", ErrUnavailable, runtime.GOOS)
}

// Main is the body of the hidden command that Isolation.Helper names, where
// there is none.
func Main([]string) int { return 126 }

func receiveFiles(*net.UnixConn, int) ([]*os.File, error) {
	return nil, errors.ErrUnsupported
}
