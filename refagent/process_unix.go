//go:build unix

package refagent

import (
	"os"
	"os/exec"
	"syscall"
)

// inOwnGroup makes a command start in its own process group. A cancel kills the whole group.
func inOwnGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}

// endGroup kills the remaining processes of a command's group after the command has ended.
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
