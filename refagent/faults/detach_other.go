//go:build !unix

package faults

import "os/exec"

// inOwnSession does nothing here: there are no process sessions, and children
// outlive a command anyway.
func inOwnSession(*exec.Cmd) {}
