//go:build !unix

package refagent

import (
	"os"
	"os/exec"
)

// inOwnGroup does nothing here. Without process groups only the command itself is
// killed; its children may stay.
func inOwnGroup(*exec.Cmd) {}

func endGroup(*exec.Cmd) {}

func exitOf(p *os.ProcessState) exitStatus {
	code := p.ExitCode()
	return exitStatus{ExitCode: &code}
}
