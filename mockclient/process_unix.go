//go:build unix

package mockclient

import (
	"errors"
	"os/exec"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

func keeperAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

func signalName(s syscall.Signal) string {
	if name := unix.SignalName(s); name != "" {
		return name
	}
	return s.String()
}

// bare is an agent without a keeper.
type bare struct {
	s    spawn
	cmd  *exec.Cmd
	done chan struct{}
	exit Exit
}

func startBare(s spawn, files *pipes) (process, error) {
	b := &bare{s: s, done: make(chan struct{})}
	b.cmd = &exec.Cmd{Path: s.Path, Args: s.Args, Env: s.Env, Dir: s.Dir,
		Stdin: files.inR, Stdout: files.outW, Stderr: files.errW, SysProcAttr: s.attr()}
	began := make(chan error, 1)
	go func() {
		// Pdeathsig follows the thread that forked.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(b.done)
		err := b.cmd.Start()
		began <- err
		if err == nil {
			b.exit = exitOf(b.cmd.Wait(), b.cmd)
		}
	}()
	if err := <-began; err != nil {
		return nil, err
	}
	return b, nil
}

func exitOf(err error, cmd *exec.Cmd) Exit {
	if ws, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return Exit{Code: -1, Signal: signalName(ws.Signal())}
	}
	e := Exit{Code: cmd.ProcessState.ExitCode()}
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		e.Error = err.Error()
	}
	return e
}

func (b *bare) pid() int { return b.cmd.Process.Pid }

func (b *bare) signal(s syscall.Signal, group bool) error {
	if !group {
		return b.cmd.Process.Signal(s)
	}
	return syscall.Kill(-b.pid(), s)
}

func (b *bare) kill() {
	_ = syscall.Kill(-b.pid(), syscall.SIGKILL)
	for _, p := range b.descendants() {
		_ = syscall.Kill(p.PID, syscall.SIGKILL)
	}
	_ = b.cmd.Process.Kill()
}

// descendants finds what it can without a subreaper: the children of the agent
// and whatever carries the run's environment.
func (b *bare) descendants() []Process {
	var found []Process
	for _, p := range processes(b.pid(), b.pid(), b.s.RunID, b.s.Conn) {
		if p.PID != b.pid() {
			found = append(found, p)
		}
	}
	return found
}

func (b *bare) ended() <-chan struct{} { return b.done }

func (b *bare) wait() (Exit, []Process) {
	<-b.done
	var survivors []Process
	for deadline := time.Now().Add(b.s.Linger); ; {
		survivors = b.descendants()
		if len(survivors) == 0 || time.Now().After(deadline) {
			break
		}
		time.Sleep(10 * time.Millisecond) // no parent, no notification: orphans can only be looked for
	}
	sweepRun(b.s.RunID, b.s.Conn)
	return b.exit, survivors
}

// sweepRun kills what carries the environment of one connection.
func sweepRun(run string, conn int) {
	empty := 0
	killUntil(func() []Process {
		found := processes(-1, 0, run, conn)
		if len(found) > 0 {
			empty = 0
		}
		return found
	}, func() bool { empty++; return empty > 1 }) // one look may miss what is being forked
}

// killUntil kills what list names until it names nothing and done agrees. What
// cannot be killed within some seconds (it waits for a device) is left to the
// kernel.
func killUntil(list func() []Process, done func() bool) {
	for deadline := time.Now().Add(5 * time.Second); time.Now().Before(deadline); {
		found := list()
		if len(found) == 0 && done() {
			return
		}
		for _, p := range found {
			_ = syscall.Kill(p.PID, syscall.SIGKILL)
		}
		time.Sleep(2 * time.Millisecond) // until the kernel has taken them away
	}
}
