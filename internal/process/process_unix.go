//go:build unix

package process

import (
	"errors"
	"os/exec"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/acp-test/acp-test/internal/isolate"
	"github.com/acp-test/acp-test/internal/pipe"
)

func (s *spawn) attr() *syscall.SysProcAttr {
	attr := agentAttr()
	if s.Isolate {
		isolate.SetAttr(attr)
	}
	return attr
}

func keeperAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// SignalName is the name of a signal, such as "SIGTERM".
func SignalName(s syscall.Signal) string {
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

func startBare(s spawn, files *pipe.Set) (Process, error) {
	b := &bare{s: s, done: make(chan struct{})}
	b.cmd = &exec.Cmd{Path: s.Path, Args: s.Args, Env: s.Env, Dir: s.Dir,
		Stdin: files.Stdin, Stdout: files.Stdout, Stderr: files.Stderr, SysProcAttr: s.attr()}
	began := make(chan error, 1)
	go func() {
		// Pdeathsig follows the thread that forked.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(b.done)
		err := b.cmd.Start()
		began <- err
		if err == nil {
			b.exit = ExitOf(b.cmd.Wait(), b.cmd)
		}
	}()
	if err := <-began; err != nil {
		return nil, err
	}
	return b, nil
}

// ExitOf is how a command ended for which Wait returned err.
func ExitOf(err error, cmd *exec.Cmd) Exit {
	if ws, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return Exit{Code: -1, Signal: SignalName(ws.Signal())}
	}
	e := Exit{Code: cmd.ProcessState.ExitCode()}
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		e.Error = err.Error()
	}
	return e
}

func (b *bare) PID() int { return b.cmd.Process.Pid }

func (b *bare) Signal(s syscall.Signal, group bool) error {
	if !group {
		return b.cmd.Process.Signal(s)
	}
	return syscall.Kill(-b.PID(), s)
}

func (b *bare) Kill() {
	_ = syscall.Kill(-b.PID(), syscall.SIGKILL)
	for _, p := range b.Descendants() {
		_ = syscall.Kill(p.PID, syscall.SIGKILL)
	}
	_ = b.cmd.Process.Kill()
}

// descendants finds what it can without a subreaper: the children of the agent
// and whatever carries the run's environment.
func (b *bare) Descendants() []Info {
	var found []Info
	for _, p := range processes(b.PID(), b.PID(), b.s.RunID, b.s.Conn) {
		if p.PID != b.PID() {
			found = append(found, p)
		}
	}
	return found
}

func (b *bare) Ended() <-chan struct{} { return b.done }

func (b *bare) Wait() (Exit, []Info) {
	<-b.done
	var survivors []Info
	for deadline := time.Now().Add(b.s.Linger); ; {
		survivors = b.Descendants()
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
	killUntil(func() []Info {
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
func killUntil(list func() []Info, done func() bool) {
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

// descends reports whether a process is below root, by the parents of all.
func descends(parents map[int]int, pid, root int) bool {
	for range len(parents) {
		parent, ok := parents[pid]
		if !ok || parent == root {
			return ok
		}
		pid = parent
	}
	return false
}
