//go:build unix

package refagent

import (
	"os"
	"os/exec"
	"syscall"
)

// inOwnGroup starts a command in its own process group and kills that group as a
// whole.
func inOwnGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}

// endGroup kills the rest of a command's group after the command ended.
func endGroup(cmd *exec.Cmd) {
	if cmd.Process != nil && cmd.SysProcAttr.Setpgid {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // ESRCH: nothing is left
	}
}

func exitOf(p *os.ProcessState) exitStatus {
	if ws, ok := p.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		name := ws.Signal().String()
		return exitStatus{Signal: &name}
	}
	code := p.ExitCode()
	return exitStatus{ExitCode: &code}
}
