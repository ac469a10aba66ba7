//go:build unix

package process

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/acp-test/acp-test/internal/lists"
)

// The harness and its keeper speak JSON Lines on one socket, the keeper's fd 3. The harness sends orders, the keeper
// reports. End of file means to the keeper that the harness has died.

type order struct {
	// Charge names what the keeper must clear away, and Spawn the agent to start.
	// The agent's standard files come before them, with an empty line.
	Charge *charge        `json:",omitempty"`
	Spawn  *spawn         `json:",omitempty"`
	Signal syscall.Signal `json:",omitempty"`
	Group  bool           `json:",omitempty"`
	Kill   bool           `json:",omitempty"`
	List   bool           `json:",omitempty"`
	Ready  bool           `json:",omitempty"` // asks for a report
	Rest   bool           `json:",omitempty"` // ends the charge
	Quit   bool           `json:",omitempty"`
}

// charge names the processes and files that a keeper clears away if its harness
// dies.
type charge struct {
	Run    string
	Conn   int    // -1: a directory and no agent
	Remove string `json:",omitempty"`
	Trim   string `json:",omitempty"`
}

type report struct {
	Kind      string // started, failed, exited, survivors, gone, list, signalled, ready
	PID       int    `json:",omitempty"`
	Error     string `json:",omitempty"`
	Exit      *Exit  `json:",omitempty"`
	Processes []Info
}

// Limits for a keeper's answers. A keeper has no other work, so one that takes
// longer has been stopped.
const (
	answering = time.Second
	starting  = 20 * time.Second
)

// post is the connection to a keeper's process. A keeper guards one agent or
// directory at a time.
type post struct {
	keeper []string
	cmd    *exec.Cmd
	conn   *net.UnixConn
	in     *bufio.Reader

	sending sync.Mutex
}

// resting holds the keepers that wait for their next agent, by their command
// lines. They end with this process, or earlier by EndKeepers.
var resting sync.Map // of string to chan *post

func restingAs(keeper []string) chan *post {
	const most = 8 // a process costs memory
	posts, _ := resting.LoadOrStore(strings.Join(keeper, "\x00"), make(chan *post, most))
	return posts.(chan *post)
}

// hire returns a resting keeper, or starts one.
func hire(keeper []string) (*post, error) {
	if len(keeper) == 0 {
		return nil, errors.New("the keeper's command line is empty")
	}
	for {
		select {
		case p := <-restingAs(keeper):
			if p.ready() {
				return p, nil
			}
			p.dismiss()
		default:
			return newPost(keeper)
		}
	}
}

// release ends the charge of a keeper. If fit is false, it also ends the keeper's
// process.
func (p *post) release(fit bool) {
	if fit && p.send(order{Rest: true}) == nil {
		select {
		case restingAs(p.keeper) <- p:
			return
		default: // enough of them rest
		}
	}
	p.dismiss()
}

// EndKeepers ends the keepers without an agent, and waits for their ends.
func EndKeepers() {
	resting.Range(func(_, posts any) bool {
		for {
			select {
			case p := <-posts.(chan *post):
				p.dismiss()
			default:
				return true
			}
		}
	})
}

// ready reports whether a resting keeper still answers. It drops the keeper's
// late reports.
func (p *post) ready() bool {
	if p.send(order{Ready: true}) != nil {
		return false
	}
	for {
		if r, err := p.read(answering); err != nil || r.Kind == "ready" {
			return err == nil
		}
	}
}

// newPost starts a keeper.
func newPost(keeper []string) (*post, error) {
	ours, theirs, err := socketPair()
	if err != nil {
		return nil, fmt.Errorf("starting the keeper: %w", err)
	}
	defer theirs.Close()
	cmd := exec.Command(keeper[0], keeper[1:]...)
	cmd.Env = []string{} // no variable of this process may change its behaviour
	cmd.ExtraFiles = []*os.File{theirs}
	cmd.SysProcAttr = keeperAttr()
	if err := StartChild(cmd, cmd.Start); err != nil {
		ours.Close()
		return nil, fmt.Errorf("starting the keeper: %w", err)
	}
	return &post{keeper: keeper, cmd: cmd, conn: ours, in: bufio.NewReader(ours)}, nil
}

// socketPair returns the two ends of a local connection, which no other process
// inherits by accident.
func socketPair() (ours *net.UnixConn, theirs *os.File, err error) {
	syscall.ForkLock.RLock()
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err == nil {
		syscall.CloseOnExec(fds[0])
		syscall.CloseOnExec(fds[1])
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return nil, nil, err
	}
	theirs = os.NewFile(uintptr(fds[1]), "keeper")
	if ours, err = unixConn(os.NewFile(uintptr(fds[0]), "keeper")); err != nil {
		theirs.Close()
	}
	return ours, theirs, err
}

// unixConn converts a socket to a connection, and closes the socket.
func unixConn(socket *os.File) (*net.UnixConn, error) {
	defer socket.Close()
	c, err := net.FileConn(socket)
	if err != nil {
		return nil, err
	}
	return c.(*net.UnixConn), nil
}

func (p *post) pid() int { return p.cmd.Process.Pid }

// send sends an order with files.
func (p *post) send(o order, files ...*os.File) error {
	line, err := json.Marshal(o)
	if err != nil {
		return err
	}
	p.sending.Lock()
	defer p.sending.Unlock()
	_ = p.conn.SetWriteDeadline(time.Now().Add(answering))
	if len(files) > 0 {
		rights := unix.UnixRights(lists.Map(files, func(f *os.File) int { return int(f.Fd()) })...)
		if _, _, err := p.conn.WriteMsgUnix([]byte("\n"), rights, nil); err != nil {
			return err
		}
	}
	_, err = p.conn.Write(append(line, '\n'))
	return err
}

// read reads a report that comes within a time.
func (p *post) read(within time.Duration) (report, error) {
	_ = p.conn.SetReadDeadline(time.Now().Add(within))
	return readReport(p.in)
}

func readReport(in *bufio.Reader) (report, error) {
	line, err := in.ReadBytes('\n')
	if err != nil {
		return report{}, err
	}
	var r report
	if err := json.Unmarshal(line, &r); err != nil {
		return report{}, fmt.Errorf("a report of the keeper: %w", err)
	}
	return r, nil
}

// dismiss ends the keeper without removing anything.
func (p *post) dismiss() {
	_ = p.send(order{Quit: true})
	_ = p.conn.CloseWrite()
	stubborn := time.AfterFunc(answering, func() { _ = p.cmd.Process.Kill() })
	_ = p.cmd.Wait() // its status adds nothing to the reports
	stubborn.Stop()
	EndChild(p.cmd)
	p.clearGroup()
	p.conn.Close()
}

// clearGroup removes the control group of a killed keeper, which could not remove it.
func (p *post) clearGroup() {
	g := openGroup(p.pid())
	g.killAll()
	g.remove()
}

// guard tells a keeper to remove a directory, which need not exist yet.
func guard(keeper []string, runID, dir string) (*post, error) {
	p, err := hire(keeper)
	if err != nil {
		return nil, err
	}
	_ = p.send(order{Charge: &charge{Run: runID, Conn: -1, Remove: dir}})
	if first, err := p.read(starting); err != nil || first.Kind != "started" {
		p.dismiss()
		return nil, fmt.Errorf("the keeper %q did not start: %s %v", keeper, first.Error, err)
	}
	return p, nil
}
