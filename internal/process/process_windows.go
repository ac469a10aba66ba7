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

// Missing on Windows: the keeper, process groups, the list of descendants, and
// every signal except a kill. An agent's children may outlive it.

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

// EndKeepers does nothing here, because there are no keepers.
func EndKeepers() {}

// Keeps reports whether this system supports keepers.
const Keeps = false

// KeeperMain is not available on Windows.
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

// Dying returns false, because that is unknown here.
func (p Info) Dying() bool { return false }

// Stopped returns false, because that is unknown here.
func Stopped(int) bool { return false }

// Busy returns false, because that is unknown here.
func Busy(int) bool { return false }

// Lead does nothing here: there are no process groups.
func Lead(*exec.Cmd) {}

// KillLed does nothing here.
func KillLed(*exec.Cmd) {}

// KillCarriers does nothing here, because it cannot read environments.
func KillCarriers(string) {}

// Starved returns 0, because that is unknown here.
func Starved() time.Duration { return 0 }

// stopSignal and goOnSignal are placeholders: Windows has no such signals.
const stopSignal, goOnSignal = syscall.Signal(0), syscall.Signal(0)
