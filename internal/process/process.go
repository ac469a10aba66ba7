// Package process starts an agent as a process and owns everything that it
// starts. It lists, signals and kills the process tree; with a keeper, the tree
// is killed even if this process is killed.
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

// ErrExited is the error of calls for a process that has ended.
var ErrExited = errors.New("the agent has exited")

// ErrKeeper is the error of a request that a keeper does not answer.
var ErrKeeper = errors.New("the keeper of the agent's processes does not answer: something has stopped it")

// Exit says how an agent ended.
type Exit struct {
	// Code is the exit status; -1 if a signal ended the agent or if the status is
	// unknown.
	Code int `json:"code"`
	// Signal is the name of the signal that ended the agent, such as
	// "SIGKILL"; "" if it exited.
	Signal string `json:"signal,omitempty"`
	// Error is why the exit is unknown, or the error that an in-process agent
	// returned.
	Error string `json:"error,omitempty"`
	// Closed says that the agent is not a process and its connection ended.
	Closed bool `json:"closed,omitempty"`
	// Keeper says why the keeper did not see the end: the keeper "died" or "was
	// stopped"; "" if it saw the end. Only the agent or the system does that.
	Keeper string `json:"keeper,omitempty"`
}

// Failure returns how a process failed: "was ended by SIGKILL", "ended with
// status 1"; "" if it did not fail.
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
	// Left says that the process could not be killed and still lives.
	Left bool `json:"left,omitempty"`
}

// Process is a running agent.
type Process interface {
	PID() int // 0 if it runs inside this process
	// Signal sends a signal to the agent only or, if group is true, to its
	// process group.
	Signal(s syscall.Signal, group bool) error
	// Kill kills the whole tree without waiting.
	Kill()
	// Descendants lists the living processes of the tree without the agent.
	Descendants() []Info
	// Ended returns a channel that is closed when the agent itself has ended,
	// even if descendants live.
	Ended() <-chan struct{}
	// Wait waits until the agent and all its descendants are gone, and returns
	// those that outlived it and were killed. If it cannot kill all, it returns
	// those that are left too. Call it once.
	Wait() (Exit, []Info)
}

// Spec says which program to start, and how.
type Spec struct {
	Path string   // a name is looked up in the PATH of this process
	Args []string // without the program's name
	// Env is the whole environment. The variables that attribute the process to
	// its run are added.
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
	// RemoveOnExit is a directory that the keeper removes, and TrimOnExit a file
	// whose incomplete last line it removes, if this process dies.
	RemoveOnExit, TrimOnExit string
	// Isolation starts the agent without a network, and with its own view if that
	// is set; nil leaves it all of this machine.
	Isolation *isolate.Isolation
}

// Start starts a process with its own pipes. It calls started as soon as the
// process runs, with the path of the program, before an isolated agent gets its
// ports. ctx bounds only the start.
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
			return fail(errors.New("isolating the agent: a view of its own requires a keeper"))
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
			// The helper failed, so no agent can answer on these pipes.
			p.Kill()
			files.CloseOurs()
			p.Wait()
			return nil, nil, err
		}
	}
	return standing{p}, files, nil
}

// spawn is one process to start, in the form for the keeper.
type spawn struct {
	Path   string
	Args   []string // with the program's name
	Env    []string
	Dir    string
	RunID  string
	Conn   int
	Linger time.Duration
	// Isolate starts the process in its own namespaces; View adds namespaces for
	// files and processes.
	Isolate, View bool
}

// Variables that attribute a process to a run, to one agent of the run, and to
// the editor's own terminals.
const (
	envRun      = "ACP_TEST_RUN"
	envConn     = "ACP_TEST_CONN"
	envTerminal = "ACP_TEST_TERMINAL"
)

// Attributed returns env with the variables that attribute a process to a
// connection of a run.
func Attributed(env []string, run string, conn int) []string {
	kept := lists.Where(env, func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		return name != envRun && name != envConn && name != envTerminal
	})
	return append(kept, envRun+"="+run, envConn+"="+strconv.Itoa(conn))
}

// TerminalVariable returns the variable that, in addition to Attributed,
// attributes a process to one terminal of an editor, for KillCarriers.
func TerminalVariable(name string) string { return envTerminal + "=" + name }

// NewRunID returns a unique name for a run.
func NewRunID() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// standing is a Process that can be paused with its group.
type standing struct{ Process }

// Hold pauses the agent until GoOn.
func (s standing) Hold() error {
	if stopSignal == 0 {
		return errors.New("acp-test cannot pause a process on this system")
	}
	return s.Signal(stopSignal, true)
}

// GoOn ends Hold.
func (s standing) GoOn() error { return s.Signal(goOnSignal, true) }
