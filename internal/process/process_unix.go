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

// Descendants lists the processes that can be found without a subreaper: the
// descendants of the agent and the processes that carry the run's environment.
func (b *bare) Descendants() []Info {
	return lists.Where(processes(b.PID(), b.PID(), b.s.RunID, b.s.Conn), func(p Info) bool { return p.PID != b.PID() })
}

// sweepRun kills the processes that carry the environment of one connection, and
// returns those it could not kill.
func sweepRun(run string, conn int) []Info {
	empty := 0
	return killUntil(func() []Info {
		found := processes(-1, 0, run, conn)
		if len(found) > 0 {
			empty = 0
		}
		return found
	}, func() bool { empty++; return empty > 1 }) // one look may miss a process that is being forked
}

// killingTime is the maximum time that killUntil takes. A process left after
// that waits for a device, or forks faster than it can be found.
const killingTime = 5 * time.Second

// killUntil kills the processes that list returns until there are none and done
// returns true, and returns those left after killingTime. It first stops the
// processes, so that none can start another while its neighbours are killed. It
// kills them once a new look finds no more, or after several looks.
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
		time.Sleep(2 * time.Millisecond) // until the kernel has removed them
	}
	for i := range left {
		left[i].Left = true
	}
	return left
}

// Lead makes a command, before its start, the leader of a process group. The
// whole group is killed when the command's context ends.
func Lead(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error {
		KillLed(cmd)
		return nil
	}
}

// KillLed kills all remaining processes in the process group of a command.
func KillLed(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }

// stopSignal and goOnSignal pause and continue a process.
const stopSignal, goOnSignal = syscall.SIGSTOP, syscall.SIGCONT

// stat is the kernel's record of a process.
type stat struct {
	parent  int
	dead    bool
	state   byte
	flags   uint64
	started uint64 // in ticks since the system began
}

// topBelow returns the ancestor of a process (or the process itself) that is a
// child of root; 0 if the process does not descend from root.
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
