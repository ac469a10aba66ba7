package process

import (
	"errors"
	"os/exec"
	"runtime"
	"slices"
	"syscall"
	"time"

	"github.com/acp-test/acp-test/internal/lists"
	"github.com/acp-test/acp-test/internal/pipe"
)

// bare is an agent that was started without a keeper.
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
		// Pdeathsig kills the agent when the thread that forked it ends, so keep that thread.
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

// ExitOf returns how a command ended, given the error of its Wait.
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

func (b *bare) Ended() <-chan struct{} { return b.done }

func (b *bare) Wait() (Exit, []Info) {
	<-b.done
	var survivors []Info
	for deadline := time.Now().Add(b.s.Linger); ; {
		survivors = b.Descendants()
		if len(survivors) == 0 || time.Now().After(deadline) {
			break
		}
		time.Sleep(10 * time.Millisecond) // nothing reports the end of an orphan, so poll
	}
	return b.exit, outlived(survivors, sweepRun(b.s.RunID, b.s.Conn))
}

// outlived returns the survivors. Those that could not be killed are replaced by their entries in left, which are
// marked.
func outlived(survivors, left []Info) []Info {
	all := lists.Where(survivors, func(s Info) bool {
		return !slices.ContainsFunc(left, func(l Info) bool { return l.PID == s.PID })
	})
	return append(all, left...)
}
