// Package process starts an agent as a process and manages the agent's process tree: it can list, signal and kill the
// tree. With a keeper, the tree is killed even if this process is killed.
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

// ErrExited is returned by calls for a process that has ended.
var ErrExited = errors.New("the agent has exited")

// ErrKeeper is returned by a request that the keeper does not answer in time.
var ErrKeeper = errors.New("the keeper of the agent's processes does not answer: something has stopped it")

// Exit says how an agent ended.
type Exit struct {
	// Code is the exit status. It is -1 if a signal ended the agent or the status is unknown.
	Code int `json:"code"`
	// Signal is the name of the signal that ended the agent, such as
	// "SIGKILL"; "" if it exited.
	Signal string `json:"signal,omitempty"`
	// Error is the reason why the exit is unknown, or the error that an in-process agent returned; "" otherwise.
	Error string `json:"error,omitempty"`
	// Closed is true if the agent is not a process and its connection ended.
	Closed bool `json:"closed,omitempty"`
	// Keeper is the reason why the keeper did not observe the agent's end: the keeper "died" or "was stopped". Only
	// the agent or the system can cause this. "" means that the keeper observed the end.
	Keeper string `json:"keeper,omitempty"`
}

// Failure describes how a process failed, such as "was ended by SIGKILL" or "ended with status 1". It returns "" if
// the process succeeded.
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
	// Left is true if the process could not be killed and is still alive.
	Left bool `json:"left,omitempty"`
}

// Process is a running agent.
type Process interface {
	PID() int // 0 if the agent runs inside this process
	// Signal sends a signal to the agent only or, if group is true, to its
	// process group.
	Signal(s syscall.Signal, group bool) error
	// Kill kills the whole process tree. It does not wait for its end.
	Kill()
	// Descendants lists the living processes of the tree, except the agent.
	Descendants() []Info
	// Ended returns a channel that is closed when the agent itself has ended, even if descendants are still alive.
	Ended() <-chan struct{}
	// Wait waits until the agent has ended. It kills descendants that outlive the agent and returns them, including
	// those that could not be killed, which have Left set. It may be called only once.
	Wait() (Exit, []Info)
}

// Spec describes a process to start.
type Spec struct {
	Path string   // a name is searched in the PATH of this process
	Args []string // without the program's name
	// Env is the complete environment. Start adds the variables that attribute the process to its run.
	Env []string
	Dir string
	// RunID and Conn attribute the process to a run and to one of the run's connections.
	RunID string
	Conn  int
	// Linger is the time that descendants have, after the agent's end, to end by themselves. After that they count as
	// survivors.
	Linger time.Duration
	// Keeper is the command line of a program that calls KeeperMain; nil means that the process has no keeper.
	Keeper []string
	// If this process dies, the keeper removes the directory RemoveOnExit, and the incomplete last line of the file
	// TrimOnExit.
	RemoveOnExit, TrimOnExit string
	// Isolation, if not nil, starts the agent without a network and, if its View is set, with only those files. If
	// nil, the agent is not isolated.
	Isolation *isolate.Isolation
}

// Start starts a process with its own pipes. As soon as the process runs, Start calls started with the pid and the
// path of the program; an isolated agent does not have its ports yet. ctx applies only to the start.
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
			// The helper failed, so no agent will answer on these pipes.
			p.Kill()
			files.CloseOurs()
			p.Wait()
			return nil, nil, err
		}
	}
	return standing{p}, files, nil
}

// spawn describes a process to start, in the form that is sent to the keeper.
type spawn struct {
	Path   string
	Args   []string // the first is the program's name
	Env    []string
	Dir    string
	RunID  string
	Conn   int
	Linger time.Duration
	// Isolate starts the process in namespaces of its own. View adds namespaces for files and processes.
	Isolate, View bool
}

// Environment variables that attribute a process to a run, to one agent of the run, and to one of the editor's
// terminals.
const (
	envRun      = "ACP_TEST_RUN"
	envConn     = "ACP_TEST_CONN"
	envTerminal = "ACP_TEST_TERMINAL"
)

// Attributed returns env with the variables that attribute a process to a connection of a run. It replaces such
// variables in env.
func Attributed(env []string, run string, conn int) []string {
	kept := lists.Where(env, func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		return name != envRun && name != envConn && name != envTerminal
	})
	return append(kept, envRun+"="+run, envConn+"="+strconv.Itoa(conn))
}

// TerminalVariable returns the variable, as NAME=VALUE, that attributes a process to one of the editor's terminals.
// It is used in addition to those of Attributed. KillCarriers can find the process by it.
func TerminalVariable(name string) string { return envTerminal + "=" + name }

// NewRunID returns a random, unique id for a run.
func NewRunID() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// standing is a Process that can be paused together with its process group.
type standing struct{ Process }

// Hold pauses the agent's process group until GoOn. It returns an error on systems without such signals.
func (s standing) Hold() error {
	if stopSignal == 0 {
		return errors.New("acp-test cannot pause a process on this system")
	}
	return s.Signal(stopSignal, true)
}

// GoOn continues the agent's process group after Hold.
func (s standing) GoOn() error { return s.Signal(goOnSignal, true) }
