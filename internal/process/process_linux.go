package process

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// subreaper says that orphans among the descendants become the keeper's.
const subreaper = true

func becomeSubreaper() error { return unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) }

// agentAttr puts the agent into a process group of its own and lets it die with
// the thread that started it.
func agentAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// processes lists the living descendants of root and whatever carries the run
// in its environment: of one connection, without the editor's own terminals,
// or, if conn is negative, of the whole run with them. Neither root nor this
// process is listed. The agent's process group, which other systems need, says
// nothing more here.
func processes(root, _ int, run string, conn int) []Info {
	parents, dead := relations()
	var found []Info
	for pid, parent := range parents {
		if pid == root || pid == os.Getpid() || dead[pid] {
			continue
		}
		if descends(parents, pid, root) || carries(pid, run, conn) {
			found = append(found, Info{PID: pid, Parent: parent, Command: commandLine(pid)})
		}
	}
	return found
}

// relations are the parents of all processes, and which of these are dead.
func relations() (parents map[int]int, dead map[int]bool) {
	parents, dead = map[int]int{}, map[int]bool{}
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err != nil {
			continue
		}
		if parent, state, ok := readStat(dir); ok {
			parents[pid], dead[pid] = parent, state == 'Z' || state == 'X'
		}
	}
	return parents, dead
}

func readStat(dir string) (parent int, state byte, ok bool) {
	stat, err := os.ReadFile(dir + "/stat")
	if err != nil {
		return 0, 0, false
	}
	// The name is in parentheses and may hold anything, also parentheses.
	end := bytes.LastIndexByte(stat, ')')
	if end < 0 {
		return 0, 0, false
	}
	fields := bytes.Fields(stat[end+1:])
	if len(fields) < 2 {
		return 0, 0, false
	}
	parent, err = strconv.Atoi(string(fields[1]))
	return parent, fields[0][0], err == nil
}

func carries(pid int, run string, conn int) bool {
	env, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
	if err != nil || !bytes.Contains(env, []byte(run)) {
		return false
	}
	var sameRun, sameConn, terminal bool
	for kv := range bytes.SplitSeq(env, []byte{0}) {
		name, value, _ := bytes.Cut(kv, []byte{'='})
		switch string(name) {
		case envRun:
			sameRun = string(value) == run
		case envConn:
			sameConn = string(value) == strconv.Itoa(conn)
		case envTerminal:
			terminal = true
		}
	}
	return sameRun && (conn < 0 || sameConn && !terminal)
}

func commandLine(pid int) string {
	line, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline")
	if err != nil || len(line) == 0 {
		name, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/comm")
		return string(bytes.TrimSpace(name))
	}
	line = bytes.TrimRight(line, "\x00")
	const most = 500 // a command line is a name here, not evidence
	if len(line) > most {
		line = append(line[:most:most], "…"...)
	}
	return string(bytes.ReplaceAll(line, []byte{0}, []byte{' '}))
}

// KillCarriers kills every process that has this variable in its environment.
func KillCarriers(variable string) {
	for range 100 { // one may be forked while we look
		found := false
		dirs, _ := filepath.Glob("/proc/[0-9]*")
		for _, dir := range dirs {
			env, err := os.ReadFile(dir + "/environ")
			if err != nil || !bytes.Contains(append([]byte{0}, env...), []byte("\x00"+variable+"\x00")) {
				continue
			}
			if pid, err := strconv.Atoi(filepath.Base(dir)); err == nil && pid != os.Getpid() {
				found = true
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		}
		if !found {
			return
		}
	}
}

// Dying reports whether the process has been killed and is only not gone yet: it is
// on its way out, or the kernel has a SIGKILL for it. It is false on other systems
// than Linux.
func (p Info) Dying() bool {
	// The command may hold anything, also parentheses: what is read begins after
	// the last one, with the state; see proc_pid_stat(5).
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.PID))
	if err != nil {
		return true // it is gone
	}
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) > 6 {
		const exiting = 0x4 // PF_EXITING
		flags, _ := strconv.ParseUint(string(fields[6]), 10, 64)
		if state := string(fields[0]); state == "Z" || state == "X" || flags&exiting != 0 {
			return true
		}
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.PID))
	if err != nil {
		return true
	}
	for line := range bytes.Lines(status) {
		name, mask, _ := bytes.Cut(line, []byte(":"))
		if string(name) == "SigPnd" || string(name) == "ShdPnd" {
			pending, _ := strconv.ParseUint(string(bytes.TrimSpace(mask)), 16, 64)
			if pending&(1<<(unix.SIGKILL-1)) != 0 {
				return true
			}
		}
	}
	return false
}

// Stopped reports whether a signal has stopped a process.
func Stopped(pid int) bool {
	_, state, ok := readStat(fmt.Sprintf("/proc/%d", pid))
	return ok && state == 'T'
}

// Busy reports whether a thread of the process or of its descendants is on a
// processor, in line for one, or waits for a disk. It goes down the tree alone:
// who asks may ask often, where looking at all processes would keep them busy.
func Busy(pid int) bool {
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/[0-9]*", pid))
	for _, dir := range threads {
		if _, state, ok := readStat(dir); ok && (state == 'R' || state == 'D') {
			return true
		}
		children, _ := os.ReadFile(dir + "/children")
		for child := range bytes.FieldsSeq(children) {
			if pid, err := strconv.Atoi(string(child)); err == nil && Busy(pid) {
				return true
			}
		}
	}
	return false
}

// killOrphans kills the children of this process that it did not start, with their
// descendants, and takes note of their ends.
func killOrphans(children *family) []Info {
	self, empty := os.Getpid(), 0
	return killUntil(func() []Info {
		children.mu.Lock() // nobody starts a child meanwhile
		defer children.mu.Unlock()
		parents, dead := relations()
		var found []Info
		for pid, parent := range parents {
			switch top := topBelow(parents, pid, self); {
			case top == 0 || children.known[top]:
			case dead[pid] && parent == self:
				_, _ = unix.Wait4(pid, nil, unix.WNOHANG, nil)
			case !dead[pid]:
				found = append(found, Info{PID: pid, Parent: parent, Command: commandLine(pid)})
			}
		}
		if len(found) > 0 {
			empty = 0
		}
		return found
	}, func() bool { empty++; return empty > 1 })
}

// topBelow is the ancestor of a process that is a child of root, or the process
// itself; 0 if it does not descend from root.
func topBelow(parents map[int]int, pid, root int) int {
	for range parents {
		parent, ok := parents[pid]
		if !ok {
			return 0
		}
		if parent == root {
			return pid
		}
		pid = parent
	}
	return 0
}

// force does what the keeper was told to do: it stops all that is below the keeper,
// so that nothing can stop that again, and lets it go on; one that still does
// nothing is killed, with all that it kept.
func (k *kept) force() []Info {
	keeper := k.cmd.Process.Pid
	below := func() []Info { return processes(keeper, k.agent, k.run, k.conn) }
	for range 20 {
		for _, p := range below() {
			_ = syscall.Kill(p.PID, syscall.SIGSTOP)
		}
	}
	_ = syscall.Kill(keeper, syscall.SIGCONT)
	select {
	case <-k.done:
		return nil
	case <-time.After(answering):
	}
	_ = k.cmd.Process.Kill()
	<-k.done // the end of its reports
	return nil
}
