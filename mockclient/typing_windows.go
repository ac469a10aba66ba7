package mockclient

import (
	"context"
	"errors"
	"os/exec"
)

// TypeInto returns an error, because real terminals are not supported on Windows.
func TypeInto(context.Context, *exec.Cmd, func(), ...string) (string, int, error) {
	return "", 0, errors.ErrUnsupported
}
