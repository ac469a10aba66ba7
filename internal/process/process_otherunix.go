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

// These systems have no subreapers and no Pdeathsig. The keeper finds the agent's descendants and process group with
// ps. It cannot find a descendant that has left the group and whose parent has died.

const subreaper = false

func becomeSubreaper() error { return nil }

func killOrphans() []Info { return nil }

// force ends a keeper that does not answer, and the processes for which it was responsible. It returns those that it
// could not kill.
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

// processes lists the living descendants of root and the agent's process group. The group keeps its number after the
// agent has ended. The run and the connection are ignored, because these systems do not show the environments of
// processes.
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

// KillCarriers does nothing, because these systems do not show the environments of processes. Descendants of a
// terminal that have left its process group are therefore not killed.
func KillCarriers(string) {}

// Dying always returns false, because this system does not report it.
func (p Info) Dying() bool { return false }

// Stopped always returns false, because this system does not report it.
func Stopped(int) bool { return false }

// Starved always returns 0, because this system does not report it.
func Starved() time.Duration { return 0 }

// Busy always returns false, because this system does not report it.
func Busy(int) bool { return false }
