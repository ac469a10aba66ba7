package mockclient

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
)

// What is missing here: the keeper, process groups, the list of descendants,
// and every signal but a kill. An agent's children may outlive it.

func keeperAttr() *syscall.SysProcAttr { return nil }

// KeeperMain is not available on Windows.
func KeeperMain([]string) int {
	fmt.Fprintln(os.Stderr, "keeper: not available on Windows")
	return 2
}

func sweepRun(string, int) {}

func removeDir(dir string) {
	if dir != "" {
		_ = os.RemoveAll(dir)
	}
}

func signalName(s syscall.Signal) string {
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

func startBare(s spawn, files *pipes) (process, error) {
	b := &bare{done: make(chan struct{})}
	b.cmd = &exec.Cmd{Path: s.Path, Args: s.Args, Env: s.Env, Dir: s.Dir, Stdin: files.inR, Stdout: files.outW, Stderr: files.errW}
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

func (b *bare) pid() int { return b.cmd.Process.Pid }

func (b *bare) signal(s syscall.Signal, _ bool) error {
	if s == syscall.SIGKILL {
		return b.cmd.Process.Kill()
	}
	return errors.New("signals are not available on Windows")
}

func (b *bare) kill()                  { _ = b.cmd.Process.Kill() }
func (b *bare) descendants() []Process { return nil }
func (b *bare) ended() <-chan struct{} { return b.done }

func (b *bare) wait() (Exit, []Process) {
	<-b.done
	return b.exit, nil
}

func unreadFile(*os.File) (int, bool) { return 0, false }

// Dying cannot be told here.
func (p Process) Dying() bool { return false }

// busy cannot be told here.
func busy(int) bool { return false }
