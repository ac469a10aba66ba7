package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/acp-test/acp-test/internal/pipe"
)

// On Windows there are no keepers, no process groups, no list of descendants, and no signals except a kill. An
// agent's children may therefore outlive the agent.

// post replaces the connection to a keeper, because Windows has no keepers.
type post struct{}

func guard([]string, string, string) (*post, error) { return &post{}, nil }
func (*post) release(bool)                          {}

func startKept(_ context.Context, _ []string, _, _ string, s spawn, files *pipe.Set) (Process, error) {
	return startBare(s, files)
}

func (*spawn) attr() *syscall.SysProcAttr { return nil }

func sweepRun(string, int) []Info { return nil }

const subreaper = false

func becomeSubreaper() error { return errors.ErrUnsupported }

// EndKeepers does nothing, because Windows has no keepers.
func EndKeepers() {}

// Keeps reports whether this system supports keepers.
const Keeps = false

// KeeperMain prints an error and returns 2, because Windows has no keepers.
func KeeperMain([]string) int {
	fmt.Fprintln(os.Stderr, "keeper: not available on Windows")
	return 2
}

func killOrphans() []Info { return nil }

func removeDir(dir string) {
	if dir != "" {
		_ = os.RemoveAll(dir)
	}
}

// SignalName returns the name of a signal, such as "SIGTERM".
func SignalName(s syscall.Signal) string {
	switch s {
	case syscall.SIGTERM:
		return "SIGTERM"
	case syscall.SIGKILL:
		return "SIGKILL"
	}
	return s.String()
}

func (b *bare) Signal(s syscall.Signal, _ bool) error {
	if s == syscall.SIGKILL {
		return b.cmd.Process.Kill()
	}
	return errors.New("signals are not available on Windows")
}

func (b *bare) Kill()               { _ = b.cmd.Process.Kill() }
func (b *bare) Descendants() []Info { return nil }

// Dying always returns false, because this system does not report it.
func (p Info) Dying() bool { return false }

// Stopped always returns false, because this system does not report it.
func Stopped(int) bool { return false }

// Busy always returns false, because this system does not report it.
func Busy(int) bool { return false }

// Lead does nothing, because Windows has no process groups.
func Lead(*exec.Cmd) {}

// KillLed does nothing, because Windows has no process groups.
func KillLed(*exec.Cmd) {}

// KillCarriers does nothing, because this program cannot read the environments of processes on Windows.
func KillCarriers(string) {}

// Starved always returns 0, because this system does not report it.
func Starved() time.Duration { return 0 }

// stopSignal and goOnSignal are placeholders: Windows has no such signals.
const stopSignal, goOnSignal = syscall.Signal(0), syscall.Signal(0)
