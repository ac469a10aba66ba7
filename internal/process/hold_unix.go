//go:build unix

package process

import "syscall"

// stopSignal and goOnSignal make a process stand still and go on.
const stopSignal, goOnSignal = syscall.SIGSTOP, syscall.SIGCONT
