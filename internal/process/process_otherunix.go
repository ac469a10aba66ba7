//go:build unix && !linux

package process

import (
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Missing on these systems: subreapers and Pdeathsig. The keeper finds the
// agent's children and process groups through ps. It loses a descendant that left
// the group and whose parent died.

const subreaper = false

func becomeSubreaper() error { return nil }

func killOrphans() []Info { return nil }

// force ends a keeper that does not answer, and the processes that it kept.
func (k *kept) force() []Info {
	_ = syscall.Kill(k.post.pid(), syscall.SIGCONT)
	left := killUntil(func() []Info { return processes(k.post.pid(), k.agent, k.run, k.conn) },
		func() bool { return true })
	_ = k.post.cmd.Process.Kill()
	<-k.done
	return left
}

func keeperAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

func agentAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// processes lists the living descendants of root and the process group of the
// agent, which keeps its number when the agent is gone. It cannot read
// environments here.
func processes(root, agent int, _ string, _ int) []Info {
	ps := exec.Command("ps", "-axo", "pid=,ppid=,pgid=,state=,command=")
	ps.Env = []string{}
	out, err := ps.Output()
	if err != nil {
		return nil
	}
	type proc struct {
		Info
		group int
	}
	all, parents := map[int]proc{}, map[int]stat{}
	for line := range strings.Lines(string(out)) {
		f := strings.Fields(line)
		if len(f) < 5 || strings.HasPrefix(f[3], "Z") {
			continue
		}
		pid, _ := strconv.Atoi(f[0])
		parent, _ := strconv.Atoi(f[1])
		group, _ := strconv.Atoi(f[2])
		if pid != ps.Process.Pid {
			parents[pid] = stat{parent: parent}
			all[pid] = proc{Info{PID: pid, Parent: parent, Command: strings.Join(f[4:], " ")}, group}
		}
	}
	groups := map[int]bool{}
	if agent > 0 {
		groups[agent] = true
	}
	for pid, p := range all {
		if pid != os.Getpid() && p.Parent == root {
			groups[p.group] = true
		}
	}
	var found []Info
	for pid, p := range all {
		if pid == root || pid == os.Getpid() {
			continue
		}
		if topBelow(parents, pid, root) != 0 || groups[p.group] {
			found = append(found, p.Info)
		}
	}
	return found
}

// KillCarriers does nothing here, because it cannot read environments: a
// terminal's descendants that left its process group are lost.
func KillCarriers(string) {}

// Dying returns false, because that is unknown here.
func (p Info) Dying() bool { return false }

// Stopped returns false, because that is unknown here.
func Stopped(int) bool { return false }

// Starved returns 0, because that is unknown here.
func Starved() time.Duration { return 0 }

// Busy returns false, because that is unknown here.
func Busy(int) bool { return false }
