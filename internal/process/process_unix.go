//go:build unix

package process

import (
	"os/exec"
	"syscall"
	"time"

	"github.com/acp-test/acp-test/internal/isolate"
	"github.com/acp-test/acp-test/internal/lists"
	"golang.org/x/sys/unix"
)

func (s *spawn) attr() *syscall.SysProcAttr {
	attr := agentAttr()
	if s.Isolate {
		isolate.SetAttr(attr, s.View)
	}
	return attr
}

// SignalName returns the name of a signal, such as "SIGTERM".
func SignalName(s syscall.Signal) string {
	if name := unix.SignalName(s); name != "" {
		return name
	}
	return s.String()
}

func (b *bare) Signal(s syscall.Signal, group bool) error {
	if !group {
		return b.cmd.Process.Signal(s)
	}
	return syscall.Kill(-b.PID(), s)
}

func (b *bare) Kill() {
	_ = syscall.Kill(-b.PID(), syscall.SIGKILL)
	for _, p := range b.Descendants() {
		_ = syscall.Kill(p.PID, syscall.SIGKILL)
	}
	_ = b.cmd.Process.Kill()
}

// Descendants lists the processes that can be found without a subreaper: the agent's descendants, and the processes
// whose environment attributes them to the run.
func (b *bare) Descendants() []Info {
	return lists.Where(processes(b.PID(), b.PID(), b.s.RunID, b.s.Conn), func(p Info) bool { return p.PID != b.PID() })
}

// sweepRun kills the processes whose environment attributes them to one connection of a run. It returns those that it
// could not kill.
func sweepRun(run string, conn int) []Info {
	empty := 0
	return killUntil(func() []Info {
		found := processes(-1, 0, run, conn)
		if len(found) > 0 {
			empty = 0
		}
		return found
	}, func() bool { empty++; return empty > 1 }) // one search may miss a process that is being forked
}

// killingTime is the maximum time that killUntil takes. If a process is left after that, it waits for a device, or
// forks faster than killUntil can find it.
const killingTime = 5 * time.Second

// killUntil kills the processes that list returns, and repeats this until list returns none and done returns true.
// After killingTime it gives up and returns the processes that are left. Before killing processes, it stops them, so
// that they cannot start others meanwhile. It kills them once a new search finds no more processes, or after 20
// searches.
func killUntil(list func() []Info, done func() bool) (left []Info) {
	for deadline := time.Now().Add(killingTime); time.Now().Before(deadline); {
		left = list()
		if len(left) == 0 && done() {
			return nil
		}
		stopped := map[int]bool{}
		for range 20 {
			grew := false
			for _, p := range left {
				if !stopped[p.PID] {
					stopped[p.PID], grew = true, true
					_ = syscall.Kill(p.PID, syscall.SIGSTOP)
				}
			}
			if !grew {
				break
			}
			left = list()
		}
		for pid := range stopped {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		time.Sleep(2 * time.Millisecond) // until the kernel has removed the processes
	}
	for i := range left {
		left[i].Left = true
	}
	return left
}

// Lead makes a command the leader of a process group, which is killed when the command's context ends. It must be
// called before the command starts.
func Lead(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error {
		KillLed(cmd)
		return nil
	}
}

// KillLed kills all remaining processes in the process group of a command that Lead prepared.
func KillLed(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }

// stopSignal is the signal that pauses a process, goOnSignal the one that continues it.
const stopSignal, goOnSignal = syscall.SIGSTOP, syscall.SIGCONT

// stat contains the parts of a process's kernel record that this package uses.
type stat struct {
	parent  int
	dead    bool
	state   byte
	flags   uint64
	started uint64 // in clock ticks since the system started
}

// topBelow follows the parents of a process up to root. It returns the ancestor (or the process itself) that is a
// child of root, and 0 if the process does not descend from root.
func topBelow(all map[int]stat, pid, root int) int {
	for range all {
		p, ok := all[pid]
		if !ok {
			return 0
		}
		if p.parent == root {
			return pid
		}
		pid = p.parent
	}
	return 0
}
