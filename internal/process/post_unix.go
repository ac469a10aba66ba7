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

// order is a message from the harness to its keeper; a report is a message in the other direction. Both are JSON
// Lines on one socket, which is the keeper's file descriptor 3. If the keeper reads end of file, the harness has
// died.

type order struct {
	// Charge names the processes and files that the keeper must clear away, and Spawn the agent to start. The agent's
	// standard files are sent before the order, together with an empty line.
	Charge *charge        `json:",omitempty"`
	Spawn  *spawn         `json:",omitempty"`
	Signal syscall.Signal `json:",omitempty"`
	Group  bool           `json:",omitempty"`
	Kill   bool           `json:",omitempty"`
	List   bool           `json:",omitempty"`
	Ready  bool           `json:",omitempty"` // asks for a report of the kind "ready"
	Rest   bool           `json:",omitempty"` // the keeper is no longer responsible for its charge
	Quit   bool           `json:",omitempty"`
}

// charge names the processes and files that a keeper must kill and remove if the harness dies.
type charge struct {
	Run    string
	Conn   int    // -1: only a directory, no agent
	Remove string `json:",omitempty"`
	Trim   string `json:",omitempty"`
}

type report struct {
	Kind      string // one of started, failed, exited, survivors, gone, list, signalled, ready
	PID       int    `json:",omitempty"`
	Error     string `json:",omitempty"`
	Exit      *Exit  `json:",omitempty"`
	Processes []Info
}

// Timeouts for a keeper's answers. A keeper has no other work, so if it takes longer, something has stopped it.
const (
	answering = time.Second
	starting  = 20 * time.Second
)

// post is the connection to the process of a keeper. A keeper is responsible for one agent or directory at a time.
type post struct {
	keeper []string
	cmd    *exec.Cmd
	conn   *net.UnixConn
	in     *bufio.Reader

	sending sync.Mutex
}

// resting contains the keepers that wait for their next agent, by command line. They end when this process ends, or
// when EndKeepers is called.
var resting sync.Map // maps string to chan *post

func restingAs(keeper []string) chan *post {
	const most = 8 // limited, because each process uses memory
	posts, _ := resting.LoadOrStore(strings.Join(keeper, "\x00"), make(chan *post, most))
	return posts.(chan *post)
}

// hire returns a keeper that waits for its next agent, or starts a new one.
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

// release ends the keeper's responsibility for its charge. If fit is true, the keeper waits for its next agent.
// Otherwise, or if enough keepers wait already, release ends the keeper's process.
func (p *post) release(fit bool) {
	if fit && p.send(order{Rest: true}) == nil {
		select {
		case restingAs(p.keeper) <- p:
			return
		default: // enough keepers wait already
		}
	}
	p.dismiss()
}

// EndKeepers ends the keepers that wait for an agent, and waits until their processes have ended.
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

// ready reports whether a keeper that waits for an agent still answers. It drops late reports of the keeper.
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

func newPost(keeper []string) (*post, error) {
	ours, theirs, err := socketPair()
	if err != nil {
		return nil, fmt.Errorf("starting the keeper: %w", err)
	}
	defer theirs.Close()
	cmd := exec.Command(keeper[0], keeper[1:]...)
	cmd.Env = []string{} // this process's variables must not change its behaviour
	cmd.ExtraFiles = []*os.File{theirs}
	cmd.SysProcAttr = keeperAttr()
	if err := StartChild(cmd, cmd.Start); err != nil {
		ours.Close()
		return nil, fmt.Errorf("starting the keeper: %w", err)
	}
	return &post{keeper: keeper, cmd: cmd, conn: ours, in: bufio.NewReader(ours)}, nil
}

// socketPair returns the two ends of a local connection. They are closed on exec, so that no other process inherits
// them.
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

// send sends an order. The files, if any, are sent before it.
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

// read reads the next report. It fails if the report does not arrive within the given time.
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

// dismiss ends the keeper's process. The keeper removes nothing.
func (p *post) dismiss() {
	_ = p.send(order{Quit: true})
	_ = p.conn.CloseWrite()
	stubborn := time.AfterFunc(answering, func() { _ = p.cmd.Process.Kill() })
	_ = p.cmd.Wait() // the status adds nothing to the reports
	stubborn.Stop()
	EndChild(p.cmd)
	p.clearGroup()
	p.conn.Close()
}

// clearGroup kills and removes the keeper's control group. It is for a keeper that was killed and could not do this.
func (p *post) clearGroup() {
	g := openGroup(p.pid())
	g.killAll()
	g.remove()
}

// guard makes a keeper responsible for a directory: the keeper removes it if this process dies. The directory need
// not exist yet.
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
