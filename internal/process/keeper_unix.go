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
	"net"
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
	"github.com/acp-test/acp-test/internal/lists"
)

// Keeps reports whether this system supports keepers.
const Keeps = true

// KeeperMain runs the hidden command of Spec.Keeper. It runs one agent after the
// other. If its harness dies, it lives just long enough to kill everything the
// agent started and to remove the run's directory. It returns the exit status of
// the keeper. It takes over the process, its signals and its children; call it
// first thing in main.
func KeeperMain([]string) int {
	conn, err := unixConn(os.NewFile(3, "orders"))
	if err != nil {
		fmt.Fprintln(os.Stderr, "keeper: only acp-test itself may start the keeper:", err)
		return 2
	}
	// An agent dies with the thread that started it (Pdeathsig), so that
	// thread must live as long as the keeper does.
	runtime.LockOSThread()
	// Signals to the process group are not meant for the keeper. It catches and
	// drops them; if it ignored them, the agent would inherit that.
	dropped := make(chan os.Signal, 1)
	signal.Notify(dropped, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1,
		syscall.SIGUSR2, syscall.SIGPIPE)
	out := &reporter{to: conn}
	if err := becomeSubreaper(); err != nil {
		out.report(report{Kind: "failed", Error: "becoming the subreaper: " + err.Error()})
		return 1
	}
	var k *keeper // nil before the first charge
	orders := &orders{conn: conn}
	orders.in = bufio.NewReader(orders)
	for {
		o, err := orders.next()
		if err != nil || o.Quit || o.Rest {
			if err != nil { // the harness is dead
				k.clear()
			}
			k.leave()
			k = nil
		}
		switch {
		case err != nil, o.Quit:
			return 0
		case o.Ready:
			out.report(report{Kind: "ready"})
		case o.Charge != nil:
			k = &keeper{charge: *o.Charge, reporter: out, gone: make(chan struct{}), agentExit: make(chan Exit, 1)}
			k.begin(o.Spawn, orders.files)
			orders.files = nil
		case k != nil:
			k.obey(o)
		}
	}
}

// orders reads orders and receives the files that come with them.
type orders struct {
	conn  *net.UnixConn
	in    *bufio.Reader // reads from this
	files []int
}

func (o *orders) Read(b []byte) (int, error) {
	rights := make([]byte, unix.CmsgSpace(3*4))
	n, size, _, _, err := o.conn.ReadMsgUnix(b, rights)
	if size > 0 {
		messages, _ := unix.ParseSocketControlMessage(rights[:size])
		for i := range messages {
			files, _ := unix.ParseUnixRights(&messages[i])
			o.files = append(o.files, files...)
		}
	}
	return max(n, 0), err // n is -1 if the harness died with unread data
}

func (o *orders) next() (next order, err error) {
	line := []byte("\n")
	for len(line) == 1 && err == nil { // files came with an empty one
		line, err = o.in.ReadBytes('\n')
	}
	if err != nil {
		return next, err
	}
	return next, json.Unmarshal(line, &next)
}

// reporter writes the reports of a keeper.
type reporter struct {
	mu sync.Mutex
	to io.Writer
}

func (r *reporter) report(what report) {
	line, err := json.Marshal(what)
	if err != nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	_, _ = r.to.Write(append(line, '\n')) // a dead harness is noticed elsewhere
}

// keeper keeps one agent, or only a directory.
type keeper struct {
	charge
	*reporter
	child int // pid of the started process
	group *group
	agent int // pid of the agent; differs from child if that is a namespace's first process
	// heard is closed when the first process of the agent's namespace has sent
	// all its reports.
	heard     chan struct{}
	exited    atomic.Bool // the agent is reaped
	agentExit chan Exit
	gone      chan struct{} // closed when no child is left and none can come
}

func (k *keeper) begin(s *spawn, files []int) {
	if s == nil {
		k.report(report{Kind: "started"})
		return
	}
	if err := k.spawn(s, files); err != nil {
		k.report(report{Kind: "failed", Error: err.Error()})
		return
	}
	go k.reap()
	go k.tend(s.Linger)
}

// leave removes the group that the keeper created for its agent.
func (k *keeper) leave() {
	if k != nil {
		k.group.remove()
	}
}

// spawn starts the agent with its standard files, and closes the keeper's copies,
// so that the agent's end of file does not wait for the keeper.
func (k *keeper) spawn(s *spawn, standard []int) error {
	files := lists.Map(standard, func(fd int) uintptr { return uintptr(fd) })
	defer func() {
		for _, fd := range standard {
			unix.Close(fd)
		}
	}()
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
	if err != nil && k.group != nil { // the kernel may not allow the group
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
	if told == nil {
		close(k.heard)
	} else {
		in := bufio.NewReader(told)
		var inside int
		if _, err := fmt.Fscanln(in, &inside); err == nil {
			k.agent = cmp.Or(isolate.Inside(pid, inside), pid) // the agent may be gone
		}
		go k.hear(told, in)
	}
	k.report(report{Kind: "started", PID: k.agent})
	return nil
}

// hear reads the reports of the first process of the agent's namespace about the
// agent's end.
func (k *keeper) hear(told *os.File, in io.Reader) {
	defer close(k.heard)
	defer told.Close()
	var status uint32
	if _, err := fmt.Fscanln(in, &status); err == nil {
		k.ended(unix.WaitStatus(status))
	}
}

// ended records how the agent ended, or how the process ended that should have started the agent.
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

// reap waits for the agent and for every orphan that the subreaper gets.
func (k *keeper) reap() {
	defer close(k.gone)
	for {
		var ws unix.WaitStatus
		pid, err := unix.Wait4(-1, &ws, 0, nil)
		if err == unix.EINTR {
			continue
		}
		if err != nil { // ECHILD: the agent and all orphans are reaped
			return
		}
		if pid == k.child {
			<-k.heard
			k.ended(ws)
		}
	}
}

// tend waits for the agent's end, gives its descendants the time linger to end,
// reports those that stay, and kills them.
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

// remaining lists the processes that outlived the agent. One look can miss a
// process that repeatedly starts a successor and ends, so it looks several times
// while a child is left.
func (k *keeper) remaining() []Info {
	for range 50 {
		if left := k.living(); len(left) > 0 || k.allGone(0) {
			return left
		}
	}
	return nil
}

// allGone reports whether all processes end by themselves within linger.
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
	for len(k.living()) > 0 { // without a subreaper, orphans can only be polled
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
		if o.Group || !k.exited.Load() { // a reaped agent's pid may belong to another process
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

// living lists the processes of this agent, without the agent itself.
func (k *keeper) living() []Info { return k.tree(false) }

// tree lists the processes of this agent. The first process of its namespace
// counts as the agent.
func (k *keeper) tree(withAgent bool) []Info {
	found := lists.Where(processes(os.Getpid(), k.agent, k.Run, k.Conn), func(p Info) bool {
		return p.PID != k.agent && p.PID != k.child || withAgent
	})
	return found
}

// killAll kills the processes that list returns until none is left, and returns
// those it could not kill. list can miss a process whose parent ends while
// /proc is read. So killAll also asks the kernel whether the keeper has a child
// left.
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

// clear kills the processes and removes the files of the run after the harness has died.
func (k *keeper) clear() {
	if k == nil {
		return
	}
	// Stop the agent first, before any search: if the agent stopped the keeper now,
	// nobody would continue the keeper.
	if k.agent > 0 && !k.exited.Load() {
		_ = syscall.Kill(-k.agent, syscall.SIGSTOP)
	}
	k.killAll(func() []Info { return processes(os.Getpid(), k.agent, k.Run, -1) })
	removeDir(k.Remove)
	trimFile(k.Trim)
}

// removeDir removes a directory, even if an agent made parts of it read-only, as
// the Go module cache is.
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
