// Package process starts an agent as a process and owns everything that it starts: its
// tree is listed, signalled and killed, also when this process is killed, if
// there is a keeper.
package process

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/acp-test/acp-test/internal/isolate"
	"github.com/acp-test/acp-test/internal/lists"
	"github.com/acp-test/acp-test/internal/pipe"
)

// ErrExited is the error of what needs a process that has ended.
var ErrExited = errors.New("the agent has exited")

// ErrKeeper is the error of a request that a keeper does not answer.
var ErrKeeper = errors.New("the keeper of the agent's processes does not answer: something has stopped it")

// Exit says how an agent ended.
type Exit struct {
	// Code is the exit status; -1 if a signal ended the agent or if nobody
	// could tell.
	Code int `json:"code"`
	// Signal is the name of the signal that ended the agent, such as
	// "SIGKILL"; "" if it exited.
	Signal string `json:"signal,omitempty"`
	// Error is why the end could not be told, or what an in-process agent
	// returned.
	Error string `json:"error,omitempty"`
	// Closed says that the agent is no process: its connection ended.
	Closed bool `json:"closed,omitempty"`
	// Keeper says what became of the keeper, if it did not live to see the end:
	// it "died", or "was stopped". Nobody but the agent or
	// the system does that to it.
	Keeper string `json:"keeper,omitempty"`
}

// Failure says how a process ended that did not end well: "was ended by SIGKILL", "ended with status 1"; else "".
func (e Exit) Failure() string {
	switch {
	case e.Signal != "":
		return "was ended by " + e.Signal
	case e.Code != 0:
		return fmt.Sprintf("ended with status %d", e.Code)
	}
	return ""
}

// Info is a process of the agent's tree.
type Info struct {
	PID     int    `json:"pid"`
	Parent  int    `json:"parent"`
	Command string `json:"command"`
	// Left says that it could not be killed, and lives.
	Left bool `json:"left,omitempty"`
}

// Process is an agent that runs.
type Process interface {
	PID() int // 0 if it runs inside this process
	// Signal sends to the agent alone, or to its process group.
	Signal(s syscall.Signal, group bool) error
	// Kill ends the whole tree, now, and does not wait.
	Kill()
	// Descendants lists the living processes of the tree without the agent.
	Descendants() []Info
	// Ended is closed when the agent itself has ended, whatever it left behind.
	Ended() <-chan struct{}
	// Wait returns when the agent and all its descendants are gone, with those
	// that outlived it and were killed, or when it has done all it can to kill
	// them, with those that are left. Call it once.
	Wait() (Exit, []Info)
}

// Spec says what to start.
type Spec struct {
	Path string   // a name is looked up in the PATH of this process
	Args []string // without the program's name
	// Env is the whole environment, to which what attributes the process to
	// its run is added.
	Env []string
	Dir string
	// RunID and Conn attribute the process to a run and a connection of it.
	RunID string
	Conn  int
	// Linger is how long descendants may outlive the agent before they count
	// as survivors.
	Linger time.Duration
	// Keeper is the command line that calls KeeperMain; nil means none.
	Keeper []string
	// RemoveOnExit and TrimOnExit are a directory that the keeper removes and
	// a file that it ends with a whole line, if this process dies.
	RemoveOnExit, TrimOnExit string
	// Isolation starts the agent without a network, and with a view of its own if that
	// has one; nil leaves it what this machine has.
	Isolation *isolate.Isolation
}

// Start starts a process with pipes of its own. started is called as soon as
// it runs, with the path of the program, before an isolated agent gets its
// ports. ctx bounds the start alone.
func Start(ctx context.Context, c Spec, started func(pid int, path string)) (Process, *pipe.Set, error) {
	path, err := exec.LookPath(c.Path)
	if err != nil {
		return nil, nil, err
	}
	if path, err = filepath.Abs(path); err != nil {
		return nil, nil, err
	}
	s := spawn{
		Path: path, Args: append([]string{c.Path}, c.Args...), Dir: c.Dir, RunID: c.RunID, Conn: c.Conn, Linger: c.Linger,
		Env: Attributed(c.Env, c.RunID, c.Conn),
	}
	files, err := pipe.NewSet()
	if err != nil {
		return nil, nil, err
	}
	fail := func(err error) (Process, *pipe.Set, error) {
		files.CloseTheirs()
		files.CloseOurs()
		return nil, nil, err
	}
	var handover *isolate.Handover
	if c.Isolation != nil {
		if handover, s.Path, s.Args, err = c.Isolation.Open(s.Conn, s.Path, s.Args); err != nil {
			return fail(err)
		}
		defer handover.Close()
		s.Isolate, s.View = true, c.Isolation.View != nil
		if s.View && c.Keeper == nil {
			return fail(errors.New("isolating the agent: a view of its own takes a keeper"))
		}
	}
	var p Process
	if c.Keeper != nil {
		p, err = startKept(ctx, c.Keeper, c.RemoveOnExit, c.TrimOnExit, s, files)
	} else {
		p, err = startBare(s, files)
	}
	files.CloseTheirs()
	if handover != nil && err != nil {
		if why := isolate.Check(c.Isolation.Helper); why != nil {
			err = why
		}
	}
	if err != nil {
		return fail(err)
	}
	started(p.PID(), path)
	if handover != nil {
		if err := handover.Receive(ctx); err != nil {
			// Whatever the helper became, it is no agent to speak to.
			p.Kill()
			files.CloseOurs()
			p.Wait()
			return nil, nil, err
		}
	}
	return standing{p}, files, nil
}

// spawn is one process to start, in the form the keeper is told.
type spawn struct {
	Path   string
	Args   []string // with the program's name
	Env    []string
	Dir    string
	RunID  string
	Conn   int
	Linger time.Duration
	// Isolate starts it in namespaces of its own, View in such of files and processes as
	// well.
	Isolate, View bool
}

// Variables that attribute a process to a run, to one agent of it, and to the
// editor's own terminals.
const (
	envRun      = "ACP_TEST_RUN"
	envConn     = "ACP_TEST_CONN"
	envTerminal = "ACP_TEST_TERMINAL"
)

// Attributed is env with what attributes a process to a connection of a run.
func Attributed(env []string, run string, conn int) []string {
	kept := lists.Where(env, func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		return name != envRun && name != envConn && name != envTerminal
	})
	return append(kept, envRun+"="+run, envConn+"="+strconv.Itoa(conn))
}

// TerminalVariable is what attributes a process to one terminal of an editor,
// beside Attributed, for KillCarriers.
func TerminalVariable(name string) string { return envTerminal + "=" + name }

// NewRunID makes up a name that no other run has.
func NewRunID() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// standing lets a process of the system stand still with its group.
type standing struct{ Process }

// Hold makes the agent stand still until GoOn.
func (s standing) Hold() error {
	if stopSignal == 0 {
		return errors.New("a process cannot be made to stand still on this system")
	}
	return s.Signal(stopSignal, true)
}

// GoOn ends Hold.
func (s standing) GoOn() error { return s.Signal(goOnSignal, true) }
