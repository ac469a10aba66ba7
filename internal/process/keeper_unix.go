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

// KeeperMain is the main function of a keeper, the hidden command in Spec.Keeper. A keeper runs one agent after the
// other. If the harness, which is the process that started it, dies, the keeper kills everything that the agent
// started, removes the run's directory, and ends. KeeperMain returns the keeper's exit status. It takes over the
// signals and the children of the whole process, so main must call it before anything else.
func KeeperMain([]string) int {
	conn, err := unixConn(os.NewFile(3, "orders"))
	if err != nil {
		fmt.Fprintln(os.Stderr, "keeper: only acp-test itself may start the keeper:", err)
		return 2
	}
	// An agent dies with the thread that started it (Pdeathsig), so this thread must live as long as the keeper.
	runtime.LockOSThread()
	// Signals to the process group are not meant for the keeper. It catches and drops them. It must not ignore them
	// with signal.Ignore, because the agent would inherit that.
	dropped := make(chan os.Signal, 1)
	signal.Notify(dropped, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1,
		syscall.SIGUSR2, syscall.SIGPIPE)
	out := &reporter{to: conn}
	if err := becomeSubreaper(); err != nil {
		out.report(report{Kind: "failed", Error: "becoming the subreaper: " + err.Error()})
		return 1
	}
	var k *keeper // nil until the first charge
	orders := &orders{conn: conn}
	orders.in = bufio.NewReader(orders)
	for {
		o, err := orders.next()
		if err != nil || o.Quit || o.Rest {
			if err != nil { // the harness has died
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

// orders reads the harness's orders and receives the files that come with them.
type orders struct {
	conn  *net.UnixConn
	in    *bufio.Reader // reads from this orders
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
	return max(n, 0), err // n is -1 if the harness died and left unread data
}

func (o *orders) next() (next order, err error) {
	line := []byte("\n")
	for len(line) == 1 && err == nil { // an empty line only carries files
		line, err = o.in.ReadBytes('\n')
	}
	if err != nil {
		return next, err
	}
	return next, json.Unmarshal(line, &next)
}

// reporter writes a keeper's reports to the harness.
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
	_, _ = r.to.Write(append(line, '\n')) // Read notices a dead harness
}

// keeper is responsible for one agent, or only for a directory.
type keeper struct {
	charge
	*reporter
	child int // pid of the process that the keeper started
	group *group
	agent int // pid of the agent; differs from child if child is the first process of a namespace
	// heard is closed when the first process of the agent's namespace has sent its last report.
	heard     chan struct{}
	exited    atomic.Bool // the agent has been waited for
	agentExit chan Exit
	gone      chan struct{} // closed when no child is left and none can follow
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

// leave removes the control group that was created for the agent.
func (k *keeper) leave() {
	if k != nil {
		k.group.remove()
	}
}

// spawn starts the agent with its standard files. It closes the keeper's copies of these files; otherwise the agent's
// pipes would stay open after the agent has ended.
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
	if err != nil && k.group != nil { // maybe the kernel does not allow the group
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
			k.agent = cmp.Or(isolate.Inside(pid, inside), pid) // the agent may be gone already
		}
		go k.hear(told, in)
	}
	k.report(report{Kind: "started", PID: k.agent})
	return nil
}

// hear reads the report on the agent's end from the first process of the agent's namespace.
func (k *keeper) hear(told *os.File, in io.Reader) {
	defer close(k.heard)
	defer told.Close()
	var status uint32
	if _, err := fmt.Fscanln(in, &status); err == nil {
		k.ended(unix.WaitStatus(status))
	}
}

// ended records how the agent ended. If the process that should have started the agent failed to do so, ended records
// how that process ended.
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

// reap waits for the agent and for every orphan that becomes a child of this subreaper.
func (k *keeper) reap() {
	defer close(k.gone)
	for {
		var ws unix.WaitStatus
		pid, err := unix.Wait4(-1, &ws, 0, nil)
		if err == unix.EINTR {
			continue
		}
		if err != nil { // ECHILD: nothing is left to wait for
			return
		}
		if pid == k.child {
			<-k.heard
			k.ended(ws)
		}
	}
}

// tend waits for the agent's end. It then gives the agent's descendants the time linger to end by themselves, reports
// those that remain, and kills them.
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

// remaining lists the processes that outlived the agent. A single search can miss a process that repeatedly starts a
// successor and ends. Therefore it searches up to 50 times while a child is left.
func (k *keeper) remaining() []Info {
	for range 50 {
		if left := k.living(); len(left) > 0 || k.allGone(0) {
			return left
		}
	}
	return nil
}

// allGone waits at most for linger, and reports whether all processes have ended by themselves.
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
	for len(k.living()) > 0 { // without a subreaper, only polling finds orphans
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
		if o.Group || !k.exited.Load() { // another process may have the pid of a reaped agent
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

// tree lists the processes of this agent. withAgent includes the agent itself and, if there is one, the first process
// of its namespace.
func (k *keeper) tree(withAgent bool) []Info {
	found := lists.Where(processes(os.Getpid(), k.agent, k.Run, k.Conn), func(p Info) bool {
		return p.PID != k.agent && p.PID != k.child || withAgent
	})
	return found
}

// killAll kills the processes that list returns, and repeats this until none is left. It returns the processes that
// it could not kill. Because list can miss a process whose parent ends while /proc is read, killAll also waits until
// the kernel reports that the keeper has no child left.
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

// clear does the work after the harness's death: it kills the run's processes and removes the run's files.
func (k *keeper) clear() {
	if k == nil {
		return
	}
	// Stop the agent before anything else. The agent could otherwise stop the keeper, and nobody would continue the
	// keeper.
	if k.agent > 0 && !k.exited.Load() {
		_ = syscall.Kill(-k.agent, syscall.SIGSTOP)
	}
	k.killAll(func() []Info { return processes(os.Getpid(), k.agent, k.Run, -1) })
	removeDir(k.Remove)
	trimFile(k.Trim)
}

// removeDir removes a directory, even if parts of it are read-only, such as a Go module cache.
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
		time.Sleep(10 * time.Millisecond) // some process may still be dying
	}
}
