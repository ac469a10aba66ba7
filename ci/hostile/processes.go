//go:build linux

package main

import (
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strconv"
	"syscall"
	"time"
)

// start starts a process of this program without waiting for it.
func start(attr *syscall.SysProcAttr, env []string, words ...string) {
	c := exec.Command("/proc/self/exe", words...)
	c.Args[0], c.SysProcAttr, c.Env = "hostile", attr, env
	_ = c.Start()
}

// leave returns a mode's action that starts n processes of this program and does not end them.
func leave(n int, attr *syscall.SysProcAttr, env []string, words ...string) func(*agent) {
	return func(*agent) {
		for range n {
			start(attr, env, words...)
		}
	}
}

// daemon returns attributes that put a process into its own session.
func daemon() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// helpers returns the functions that the agent's other processes run, by name.
func helpers() map[string]func([]string) {
	return map[string]func([]string){
		"sleep": func([]string) { signal.Ignore(syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT); forever() },
		// chain starts n successors and ends.
		"chain": func(words []string) {
			n, _ := strconv.Atoi(words[0])
			leave(n, daemon(), []string{}, "chain", words[0])(nil)
		},
		"stopper": func([]string) { // keeps stopping its parent with SIGSTOP
			for {
				_ = syscall.Kill(os.Getppid(), syscall.SIGSTOP)
				time.Sleep(time.Millisecond)
			}
		},
		"holder": func([]string) { forever() },
		"editor": editor,
		"ruin": func(words []string) {
			for {
				_ = os.RemoveAll(words[0])
			}
		},
	}
}

func processes() []mode {
	session := daemon()
	stop := func(who string, s syscall.Signal) func(*agent) {
		return func(*agent) {
			keeper, harness := parents()
			pid := map[string]int{"keeper": keeper, "harness": harness, "self": os.Getpid()}[who]
			_ = syscall.Kill(pid, s)
			time.Sleep(100 * time.Millisecond)
		}
	}
	group := func(name string, do func(*agent)) []mode { return at([]stage{inTurn, atEnd}, name, do) }
	return slices.Concat(
		group("child", leave(1, nil, os.Environ(), "sleep")),
		group("children-200", leave(200, nil, os.Environ(), "sleep")),
		group("daemon", leave(1, session, os.Environ(), "sleep")),
		group("daemon-without-environment", leave(1, session, []string{}, "sleep")),
		group("chain", leave(1, session, []string{}, "chain", "1")),
		group("chains-20", leave(20, session, []string{}, "chain", "1")),
		group("keeper-stopped", stop("keeper", syscall.SIGSTOP)),
		group("keeper-killed", stop("keeper", syscall.SIGKILL)),
		group("keeper-stopped-with-child", func(a *agent) {
			leave(1, session, []string{}, "sleep")(a)
			stop("keeper", syscall.SIGSTOP)(a)
		}),
		group("keeper-killed-with-child", func(a *agent) {
			leave(1, session, []string{}, "sleep")(a)
			stop("keeper", syscall.SIGKILL)(a)
		}),
		group("stopped", stop("self", syscall.SIGSTOP)),
		at([]stage{inTurn}, "killed", stop("self", syscall.SIGKILL)),
		at([]stage{inTurn}, "segv", stop("self", syscall.SIGSEGV)),
		at([]stage{atStart}, "ignores-signals", func(a *agent) {
			signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
			forever()
		}),
		group("keeper-is-stopped-again", leave(1, nil, os.Environ(), "stopper")),
		group("pipe-held", func(a *agent) {
			c := exec.Command("/proc/self/exe", "holder")
			c.Stdout, c.Stderr, c.SysProcAttr, c.Env = os.Stdout, os.Stderr, session, []string{}
			_ = c.Start()
		}),
		at([]stage{inTurn}, "vfork-storm", func(a *agent) {
			for range 4 {
				go func() {
					for {
						_ = exec.Command("/proc/self/exe", "none").Run()
					}
				}()
			}
			forever()
		}),
	)
}
