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
func SetAttr(*syscall.SysProcAttr, bool) {}

// Check says why this machine cannot isolate an agent: only Linux can.
// The error wraps ErrUnavailable.
func Check([]string) error {
	return fmt.Errorf("%w: they are a thing of Linux, and this is %s", ErrUnavailable, runtime.GOOS)
}

// CheckView says the same.
func CheckView(helper []string) error { return Check(helper) }

// Main is the body of the hidden command that Isolation.Helper names, where
// there is none.
func Main([]string) int { return 126 }

// Inside finds nothing where there are no namespaces.
func Inside(int, int) int { return 0 }

func receiveFiles(*net.UnixConn, int) ([]*os.File, error) {
	return nil, errors.ErrUnsupported
}
