package process

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// subreaper is true because orphans among the keeper's descendants become the keeper's children on Linux.
const subreaper = true

func becomeSubreaper() error { return unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) }

// keeperAttr returns attributes that put a keeper into a session of its own. If acp-test dies, the kernel sends
// SIGCONT, so that a keeper that an agent has stopped continues.
func keeperAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGCONT}
}

// agentAttr returns attributes that put the agent into its own process group. If the thread that started the agent
// ends, the kernel kills the agent.
func agentAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// processes lists the living descendants of root, and all processes whose environment attributes them to a connection
// of the run. The editor's terminals are not included. If conn is negative, all connections and the terminals are
// included. Neither root nor this process is included. The agent's pid is ignored; only other systems need it.
func processes(root, _ int, run string, conn int) []Info {
	all := running()
	self := all[os.Getpid()]
	var found []Info
	for pid, p := range all {
		if pid == root || pid == os.Getpid() || p.dead {
			continue
		}
		// A process that started before this process cannot belong to a connection of this process.
		if topBelow(all, pid, root) != 0 || (conn < 0 || p.started >= self.started) && carries(pid, run, conn) {
			found = append(found, Info{PID: pid, Parent: p.parent, Command: commandLine(pid)})
		}
	}
	return found
}

// running returns all processes of this machine by pid.
func running() map[int]stat {
	all := map[int]stat{}
	proc, err := os.Open("/proc")
	if err != nil {
		return all
	}
	defer proc.Close()
	names, _ := proc.Readdirnames(-1)
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			if p, ok := readStat("/proc/" + name); ok {
				all[pid] = p
			}
		}
	}
	return all
}

// slurp reads a file of /proc with as few system calls as possible, because ending an agent takes hundreds of such
// reads. os.ReadFile would make five more system calls per file.
func slurp(path string) (text []byte, err error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	for n := 1; n > 0; {
		text = slices.Grow(text, 1<<10)
		if n, err = unix.Read(fd, text[len(text):cap(text)]); err != nil {
			return nil, err
		}
		text = text[:len(text)+n]
	}
	return text, nil
}

// readStat reads the stat file of a process or thread, described in proc_pid_stat(5).
func readStat(dir string) (p stat, ok bool) {
	text, err := slurp(dir + "/stat")
	// The name is in parentheses and may contain any characters, including parentheses.
	fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
	if err != nil || len(fields) < 20 {
		return p, false
	}
	p.state = fields[0][0]
	p.dead = p.state == 'Z' || p.state == 'X'
	p.parent, err = strconv.Atoi(string(fields[1]))
	p.flags, _ = strconv.ParseUint(string(fields[6]), 10, 64)
	p.started, _ = strconv.ParseUint(string(fields[19]), 10, 64)
	return p, err == nil
}

func carries(pid int, run string, conn int) bool {
	env, err := slurp("/proc/" + strconv.Itoa(pid) + "/environ")
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
	const most = 500 // enough to recognise the process
	if len(line) > most {
		line = append(line[:most:most], "…"...)
	}
	return string(bytes.ReplaceAll(line, []byte{0}, []byte{' '}))
}

// KillCarriers kills every process that has this variable (NAME=VALUE) in its environment, except this process.
func KillCarriers(variable string) {
	for range 100 { // a process may fork during a search
		found := false
		for pid := range running() {
			env, err := slurp(fmt.Sprintf("/proc/%d/environ", pid))
			if err == nil && pid != os.Getpid() && bytes.Contains(append([]byte{0}, env...), []byte("\x00"+variable+"\x00")) {
				found = true
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		}
		if !found {
			return
		}
	}
}

// Dying reports whether the process is about to end: it is exiting, or a SIGKILL is pending for it. It also returns
// true if the process is gone. On systems other than Linux, it always returns false.
func (p Info) Dying() bool {
	const exiting = 0x4 // PF_EXITING
	s, ok := readStat(fmt.Sprintf("/proc/%d", p.PID))
	if !ok || s.dead || s.flags&exiting != 0 {
		return true // the process is gone or almost gone
	}
	for _, name := range []string{"SigPnd", "ShdPnd"} {
		mask, ok := statusOf(p.PID, name)
		if pending, _ := strconv.ParseUint(mask, 16, 64); !ok || pending&(1<<(unix.SIGKILL-1)) != 0 {
			return true
		}
	}
	return false
}

// statusOf returns the value of a line in a process's status file, described in proc_pid_status(5).
func statusOf(pid int, name string) (value string, ok bool) {
	text, _ := slurp(fmt.Sprintf("/proc/%d/status", pid))
	_, rest, ok := bytes.Cut(text, []byte("\n"+name+":"))
	line, _, _ := bytes.Cut(rest, []byte("\n"))
	return string(bytes.TrimSpace(line)), ok
}

// Stopped reports whether a process is stopped by a signal.
func Stopped(pid int) bool {
	p, ok := readStat(fmt.Sprintf("/proc/%d", pid))
	return ok && p.state == 'T'
}

// Busy reports whether a thread of the process or of its descendants runs, is waiting for a processor, or is waiting
// for a disk. It reads only this process tree, because reading all processes often would be too slow.
func Busy(pid int) bool {
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/[0-9]*", pid))
	for _, dir := range threads {
		if p, ok := readStat(dir); ok && (p.state == 'R' || p.state == 'D') {
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

// killOrphans kills the children that this process did not start, and their descendants. It waits until they have
// ended, and returns those that it could not kill.
func killOrphans() []Info {
	self, empty := os.Getpid(), 0
	return killUntil(func() []Info {
		children.mu.Lock() // no child may start during the search
		defer children.mu.Unlock()
		all := running()
		var found []Info
		for pid, p := range all {
			switch top := topBelow(all, pid, self); {
			case top == 0 || children.known[top]:
			case p.dead && p.parent == self:
				_, _ = unix.Wait4(pid, nil, unix.WNOHANG, nil)
			case !p.dead:
				found = append(found, Info{PID: pid, Parent: p.parent, Command: commandLine(pid)})
			}
		}
		if len(found) > 0 {
			empty = 0
		}
		return found
	}, func() bool { empty++; return empty > 1 })
}

// force is for a keeper that does not answer. It stops all processes below the keeper, so that they cannot stop the
// keeper again, and continues the keeper. If the keeper still does nothing, force kills the keeper and these
// processes. It returns the processes that it could not kill.
func (k *kept) force() []Info {
	keeper := k.post.pid()
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
	_ = k.post.cmd.Process.Kill()
	<-k.done // until its reports end
	return nil
}
