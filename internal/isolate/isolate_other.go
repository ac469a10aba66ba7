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

// SetAttr does nothing on this system.
func SetAttr(*syscall.SysProcAttr, bool) {}

// Check returns an error that wraps ErrUnavailable, because only Linux can isolate an agent.
func Check([]string) error {
	return fmt.Errorf("%w: only Linux has them, and this is %s", ErrUnavailable, runtime.GOOS)
}

// CheckView returns the same as Check.
func CheckView(helper []string) error { return Check(helper) }

// Main returns an error status, because this system has no helper.
func Main([]string) int { return 126 }

// Inside returns 0, because this system has no namespaces.
func Inside(int, int) int { return 0 }

func receiveFiles(*net.UnixConn, int) ([]*os.File, error) {
	return nil, errors.ErrUnsupported
}
