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

// What is missing here: the keeper, process groups, the list of descendants,
// and every signal but a kill. An agent's children may outlive it.

// post is the process of a keeper, which there is not.
type post struct{}

func guard([]string, string, string) (*post, error) { return &post{}, nil }
func (*post) release(bool)                          {}

func startKept(_ context.Context, _ []string, _, _ string, s spawn, files *pipe.Set) (Process, error) {
	return startBare(s, files)
}

const subreaper = false

func becomeSubreaper() error { return errors.ErrUnsupported }

// Keeps says that there are no keepers on this system.
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

// SignalName is the name of a signal, such as "SIGTERM".
func SignalName(s syscall.Signal) string {
	switch s {
	case syscall.SIGTERM:
		return "SIGTERM"
	case syscall.SIGKILL:
		return "SIGKILL"
	}
	return s.String()
}

type bare struct {
	cmd  *exec.Cmd
	done chan struct{}
	exit Exit
}

func startBare(s spawn, files *pipe.Set) (Process, error) {
	b := &bare{done: make(chan struct{})}
	b.cmd = &exec.Cmd{Path: s.Path, Args: s.Args, Env: s.Env, Dir: s.Dir,
		Stdin: files.Stdin, Stdout: files.Stdout, Stderr: files.Stderr}
	if err := b.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		defer close(b.done)
		err := b.cmd.Wait()
		b.exit = Exit{Code: b.cmd.ProcessState.ExitCode()}
		if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
			b.exit.Error = err.Error()
		}
	}()
	return b, nil
}

func (b *bare) PID() int { return b.cmd.Process.Pid }

func (b *bare) Signal(s syscall.Signal, _ bool) error {
	if s == syscall.SIGKILL {
		return b.cmd.Process.Kill()
	}
	return errors.New("signals are not available on Windows")
}

func (b *bare) Kill()                  { _ = b.cmd.Process.Kill() }
func (b *bare) Descendants() []Info    { return nil }
func (b *bare) Ended() <-chan struct{} { return b.done }

func (b *bare) Wait() (Exit, []Info) {
	<-b.done
	return b.exit, nil
}

// Dying cannot be told here.
func (p Info) Dying() bool { return false }

// Stopped cannot be told here.
func Stopped(int) bool { return false }

// Busy cannot be told here.
func Busy(int) bool { return false }

// Lead does nothing here: there are no process groups.
func Lead(*exec.Cmd) {}

// KillLed does nothing here.
func KillLed(*exec.Cmd) {}

// KillCarriers cannot look into environments here.
func KillCarriers(string) {}

// Starved cannot be told here.
func Starved() time.Duration { return 0 }

// stopSignal and goOnSignal do not exist.
const stopSignal, goOnSignal = syscall.Signal(0), syscall.Signal(0)
