//go:build unix

package main

import (
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

// passedOn returns the signals that a proxy forwards to the agent.
func passedOn() []os.Signal {
	return []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2}
}

// endBy ends this process by the signal that ended the agent. If the signal does not end it, endBy returns the status
// that a shell would report.
func endBy(name string) error {
	s := unix.SignalNum(name)
	if s == 0 {
		return status(1)
	}
	signal.Reset(s)
	_ = syscall.Kill(os.Getpid(), s)
	return status(128 + int(s))
}
