//go:build unix

package faults

import (
	"os/exec"
	"syscall"
)

// inOwnSession makes a command the leader of a process session. A cancel then kills only the leader and not its
// children.
func inOwnSession(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Cancel = func() error { return cmd.Process.Kill() }
}
