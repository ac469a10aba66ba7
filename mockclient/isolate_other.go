//go:build !linux

package mockclient

import (
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
)

// CanIsolate says why this machine cannot isolate an agent: only Linux can.
// The error wraps ErrNoIsolation.
func CanIsolate([]string) error {
	return fmt.Errorf("%w: they are a thing of Linux, and this is %s", ErrNoIsolation, runtime.GOOS)
}

// IsolateMain is the body of the hidden command that Isolation.Helper names,
// where there is none.
func IsolateMain([]string) int { return 126 }

func receiveFiles(*net.UnixConn, int) ([]*os.File, error) {
	return nil, errors.ErrUnsupported
}
