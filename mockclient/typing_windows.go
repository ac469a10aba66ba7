package mockclient

import (
	"context"
	"errors"
	"os/exec"
)

// TypeInto returns an error, because real terminals are not supported on Windows.
func TypeInto(context.Context, *exec.Cmd, ...string) (string, error) {
	return "", errors.ErrUnsupported
}
