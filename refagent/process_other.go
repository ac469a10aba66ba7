//go:build !unix

package refagent

import (
	"os"
	"os/exec"
)

// inOwnGroup does nothing, because this system has no process groups. A cancel kills only the command itself, and its
// children may keep running.
func inOwnGroup(*exec.Cmd) {}

func endGroup(*exec.Cmd) {}

func exitOf(p *os.ProcessState) exitStatus {
	code := p.ExitCode()
	return exitStatus{ExitCode: &code}
}
