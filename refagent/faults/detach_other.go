//go:build !unix

package faults

import "os/exec"

// inOwnSession does nothing on this system: there are no process sessions, and a command's children outlive it
// anyway.
func inOwnSession(*exec.Cmd) {}
