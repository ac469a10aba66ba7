//go:build unix

package mockclient_test

import "syscall"

// detached makes a child leave its session and process group.
func detached() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }
