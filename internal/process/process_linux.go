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

// subreaper says that orphans among the keeper's descendants become its children.
const subreaper = true

func becomeSubreaper() error { return unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) }

// keeperAttr puts a keeper into its own session. When acp-test dies, a keeper
// that an agent has stopped then continues.
func keeperAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGCONT}
}

// agentAttr puts the agent into its own process group and makes it die with the
// thread that started it.
func agentAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// processes lists the living descendants of root and all processes that carry the
// run in their environment. It lists the processes of one connection, without the
// editor's own terminals; if conn is negative, those of the whole run, with the
// terminals. It lists neither root nor this process. It ignores the agent's
// process group, which only other systems need.
func processes(root, _ int, run string, conn int) []Info {
	all := running()
	self := all[os.Getpid()]
	var found []Info
	for pid, p := range all {
		if pid == root || pid == os.Getpid() || p.dead {
			continue
		}
		// A process older than this one cannot belong to a connection that this process opened.
		if topBelow(all, pid, root) != 0 || (conn < 0 || p.started >= self.started) && carries(pid, run, conn) {
			found = append(found, Info{PID: pid, Parent: p.parent, Command: commandLine(pid)})
		}
	}
	return found
}

// running returns all processes by their ids.
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

// slurp reads a file of /proc with as few system calls as possible, because ending
// an agent takes hundreds of reads. os.ReadFile makes five more calls for each.
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

// readStat reads a process's record, described in proc_pid_stat(5).
func readStat(dir string) (p stat, ok bool) {
	text, err := slurp(dir + "/stat")
	// The name is in parentheses and may hold anything, also parentheses.
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
	const most = 500 // the command line only names the process
	if len(line) > most {
		line = append(line[:most:most], "…"...)
	}
	return string(bytes.ReplaceAll(line, []byte{0}, []byte{' '}))
}

// KillCarriers kills every process that has this variable in its environment.
func KillCarriers(variable string) {
	for range 100 { // a process may fork during a look
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

// Dying reports whether the process has been killed but is not gone yet: it is
// exiting, or the kernel has a SIGKILL for it. It is false on systems other than
// Linux.
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

// statusOf returns the value of a line of a process's status, described in
// proc_pid_status(5).
func statusOf(pid int, name string) (value string, ok bool) {
	text, _ := slurp(fmt.Sprintf("/proc/%d/status", pid))
	_, rest, ok := bytes.Cut(text, []byte("\n"+name+":"))
	line, _, _ := bytes.Cut(rest, []byte("\n"))
	return string(bytes.TrimSpace(line)), ok
}

// Stopped reports whether a signal has stopped a process.
func Stopped(pid int) bool {
	p, ok := readStat(fmt.Sprintf("/proc/%d", pid))
	return ok && p.state == 'T'
}

// Busy reports whether a thread of the process or of its descendants runs, waits
// for a processor, or waits for a disk. It looks only at this tree, because
// frequent looks at all processes would be too much work.
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

// killOrphans kills the children of this process that it did not start, with
// their descendants, and waits for their ends.
func killOrphans() []Info {
	self, empty := os.Getpid(), 0
	return killUntil(func() []Info {
		children.mu.Lock() // no child may start meanwhile
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

// force does the keeper's work. It stops all processes below the keeper, so that
// they cannot stop it again, and continues the keeper. It kills a keeper that
// still does nothing, with all its processes.
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
	<-k.done // the end of its reports
	return nil
}
