//go:build unix

package process

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/acp-test/acp-test/internal/confined"
	"github.com/acp-test/acp-test/internal/isolate"
)

// Keeps says that there are keepers on this system.
const Keeps = true

// KeeperMain is the body of the hidden command that Spec.Keeper names. It
// runs one agent and outlives its harness just long enough to kill everything
// the agent started and to remove the run's directory. It returns the exit
// status of the keeper. It takes over the process: its standard files, its
// signals, its children; call it first thing in main.
func KeeperMain(args []string) int {
	k := &keeper{gone: make(chan struct{}), agentExit: make(chan Exit, 1), out: os.NewFile(4, "reports")}
	var err error
	if k.args, err = parseKeeperArgs(args); err != nil {
		fmt.Fprintln(os.Stderr, "keeper:", err)
		return 2
	}
	// An agent dies with the thread that started it (Pdeathsig), so that
	// thread must live as long as the keeper does.
	runtime.LockOSThread()
	syscall.CloseOnExec(3)
	syscall.CloseOnExec(4)
	// Signals to the group are for others. They are caught and dropped, not
	// ignored: what is ignored stays ignored in the agent.
	dropped := make(chan os.Signal, 1)
	signal.Notify(dropped, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1,
		syscall.SIGUSR2, syscall.SIGPIPE)
	if err := becomeSubreaper(); err != nil {
		k.report(report{Kind: "failed", Error: "becoming the subreaper: " + err.Error()})
		return 1
	}
	defer func() { k.group.remove() }()
	orders := bufio.NewReader(os.NewFile(3, "orders"))
	if k.args.conn < 0 {
		return k.guard(orders)
	}
	first, err := readOrder(orders)
	if err != nil || first.Spawn == nil {
		k.clear()
		return 0
	}
	if err := k.spawn(first.Spawn); err != nil {
		k.report(report{Kind: "failed", Error: err.Error()})
	} else {
		go k.reap()
		go k.tend(first.Spawn.Linger)
	}
	for {
		o, err := readOrder(orders)
		if err != nil { // the harness is dead
			k.clear()
			return 0
		}
		if o.Quit {
			return 0
		}
		k.obey(o)
	}
}

type keeper struct {
	args  keeperArgs
	child int // what was started
	group *group
	agent int // the same, unless that is the first process of a namespace
	// heard is closed when the first process of the agent's namespace has told all.
	heard     chan struct{}
	exited    atomic.Bool // the agent is reaped
	agentExit chan Exit
	gone      chan struct{} // no child is left, nor will there be one

	reporting sync.Mutex
	out       *os.File
}

func readOrder(in *bufio.Reader) (o order, err error) {
	line, err := in.ReadBytes('\n')
	if err != nil {
		return o, err
	}
	return o, json.Unmarshal(line, &o)
}

func (k *keeper) report(r report) {
	line, err := json.Marshal(r)
	if err != nil {
		return
	}
	k.reporting.Lock()
	defer k.reporting.Unlock()
	_, _ = k.out.Write(append(line, '\n')) // a dead harness is noticed elsewhere
}

// spawn starts the agent with the standard files of the keeper, and gives up
// its own copies: an agent's end of file must not wait for the keeper.
func (k *keeper) spawn(s *spawn) error {
	files := []uintptr{0, 1, 2}
	var tells, told *os.File
	if s.View {
		var err error
		if told, tells, err = os.Pipe(); err != nil {
			return err
		}
		files = append(files, tells.Fd())
	}
	attr := &syscall.ProcAttr{Dir: s.Dir, Env: s.Env, Files: files, Sys: s.attr()}
	k.group = newGroup(os.Getpid())
	k.group.holds(attr.Sys)
	pid, err := syscall.ForkExec(s.Path, s.Args, attr)
	if err != nil && k.group != nil { // it may not be given to the group
		k.group.remove()
		k.group, attr.Sys = nil, s.attr()
		pid, err = syscall.ForkExec(s.Path, s.Args, attr)
	}
	if tells != nil {
		tells.Close()
	}
	if err != nil {
		return err
	}
	k.child, k.agent, k.heard = pid, pid, make(chan struct{})
	if null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0); err == nil {
		for fd := range 3 {
			_ = unix.Dup2(int(null.Fd()), fd)
		}
		null.Close()
	}
	if told == nil {
		close(k.heard)
	} else {
		in := bufio.NewReader(told)
		var inside int
		if _, err := fmt.Fscanln(in, &inside); err == nil {
			k.agent = cmp.Or(isolate.Inside(pid, inside), pid) // it may be gone
		}
		go k.hear(told, in)
	}
	k.report(report{Kind: "started", PID: k.agent})
	return nil
}

// hear waits for what the first process of the agent's namespace tells of its end.
func (k *keeper) hear(told *os.File, in io.Reader) {
	defer close(k.heard)
	defer told.Close()
	var status uint32
	if _, err := fmt.Fscanln(in, &status); err == nil {
		k.ended(unix.WaitStatus(status))
	}
}

// ended takes note of the end of the agent, or of what was to start it.
func (k *keeper) ended(status unix.WaitStatus) {
	if k.exited.Swap(true) {
		return
	}
	exit := Exit{Code: status.ExitStatus()}
	if status.Signaled() {
		exit = Exit{Code: -1, Signal: SignalName(status.Signal())}
	}
	k.agentExit <- exit
}

// reap collects the agent and every orphan the subreaper gets.
func (k *keeper) reap() {
	defer close(k.gone)
	for {
		var ws unix.WaitStatus
		pid, err := unix.Wait4(-1, &ws, 0, nil)
		if err == unix.EINTR {
			continue
		}
		if err != nil { // ECHILD: the agent is reaped, and all that was left to us
			return
		}
		if pid == k.child {
			<-k.heard
			k.ended(ws)
		}
	}
}

// tend waits for the agent's end, gives its descendants a moment, names those
// that stay, and kills them.
func (k *keeper) tend(linger time.Duration) {
	exit := <-k.agentExit
	k.report(report{Kind: "exited", Exit: &exit})
	if !k.allGone(linger) {
		if survivors := k.remaining(); len(survivors) > 0 {
			k.report(report{Kind: "survivors", Processes: survivors})
		}
	}
	k.report(report{Kind: "gone", Processes: k.killAll(func() []Info { return k.tree(true) })})
}

// remaining lists what outlived the agent. One look can miss a process that starts the
// next one and ends, over and over, so there are several as long as a child is left.
func (k *keeper) remaining() []Info {
	for range 50 {
		if left := k.living(); len(left) > 0 || k.allGone(0) {
			return left
		}
	}
	return nil
}

// allGone reports whether everything ends by itself within linger.
func (k *keeper) allGone(linger time.Duration) bool {
	timeout := time.After(linger)
	if subreaper {
		select {
		case <-k.gone:
			return true
		case <-timeout:
			return false
		}
	}
	for len(k.living()) > 0 { // orphans are not ours to wait for, only to look for
		select {
		case <-timeout:
			return false
		case <-time.After(10 * time.Millisecond):
		}
	}
	return true
}

func (k *keeper) obey(o order) {
	switch {
	case o.Signal != 0:
		pid := k.agent
		if o.Group {
			pid = -pid
		}
		r := report{Kind: "signalled"}
		err := error(syscall.ESRCH)
		if o.Group || !k.exited.Load() { // the pid of a reaped agent may be another's
			err = syscall.Kill(pid, o.Signal)
		}
		if err != nil {
			r.Error = err.Error()
		}
		k.report(r)
	case o.Kill:
		k.killAll(func() []Info { return k.tree(true) })
	case o.List:
		k.report(report{Kind: "list", Processes: k.living()})
	}
}

// living lists what belongs to this agent, without the agent.
func (k *keeper) living() []Info { return k.tree(false) }

// tree lists what belongs to this agent. The first process of its namespace counts as
// the agent.
func (k *keeper) tree(withAgent bool) []Info {
	var found []Info
	for _, p := range processes(os.Getpid(), k.agent, k.args.run, k.args.conn) {
		if p.PID != k.agent && p.PID != k.child || withAgent {
			found = append(found, p)
		}
	}
	return found
}

// killAll kills what list names until nothing is left, and returns what is left all
// the same. A list can miss a process
// whose parent vanishes while /proc is read; that the keeper has no child left,
// and so no descendant, only the kernel can say.
func (k *keeper) killAll(list func() []Info) []Info {
	k.group.killAll()
	return killUntil(list, func() bool {
		if k.child == 0 {
			return true
		}
		select {
		case <-k.gone:
			return true
		default:
			return false
		}
	})
}

// clear runs when the harness has died: nothing of the run stays.
func (k *keeper) clear() {
	// At once, before anything is looked up: an agent that stops the keeper now leaves
	// nobody who continues it.
	if k.agent > 0 && !k.exited.Load() {
		_ = syscall.Kill(-k.agent, syscall.SIGSTOP)
	}
	k.killAll(func() []Info { return processes(os.Getpid(), k.agent, k.args.run, -1) })
	removeDir(k.args.remove)
	trimFile(k.args.trim)
}

// guard keeps a directory and no agent.
func (k *keeper) guard(orders *bufio.Reader) int {
	k.report(report{Kind: "started"})
	if o, err := readOrder(orders); err == nil && o.Quit {
		return 0
	}
	k.clear()
	return 0
}

// removeDir removes a directory, also where an agent made parts of it
// read-only, as the Go module cache is.
func removeDir(dir string) {
	if dir == "" || !filepath.IsAbs(dir) || filepath.Dir(dir) == dir {
		return
	}
	for range 50 {
		if err := confined.RemoveAll(dir); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
			return
		}
		_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if d != nil && d.IsDir() {
				_ = os.Chmod(path, 0o700)
			}
			return nil
		})
		time.Sleep(10 * time.Millisecond) // something may still be dying
	}
}
