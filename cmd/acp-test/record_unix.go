//go:build unix

package main

import (
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

// passedOn are the signals that a proxy passes on to the agent.
func passedOn() []os.Signal {
	return []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2}
}

// endBy ends this process as the agent ended: by a signal. It returns the
// status a shell would show where that signal does not end it.
func endBy(name string) error {
	s := unix.SignalNum(name)
	if s == 0 {
		return status(1)
	}
	signal.Reset(s)
	_ = syscall.Kill(os.Getpid(), s)
	return status(128 + int(s))
}
