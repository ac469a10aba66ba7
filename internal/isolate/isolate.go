// Package isolate starts an agent without network access, except to given ports. Optionally, the agent also sees only
// the files it needs and its own processes. It works only on Linux.
package isolate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"github.com/acp-test/acp-test/internal/lists"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// Isolation describes how to start an agent that can reach only the given ports. The agent runs in user and network
// namespaces of its own, with its own loopback interface. Linux only; see Check.
type Isolation struct {
	// Helper is the command line of a program that calls Main, such as {"/path/acp-test", "isolate"}.
	Helper []string
	// Dir is a directory that only this user may enter. A socket is created there while the agent starts.
	Dir   string
	Ports []Port
	// View selects the files of this machine that the agent sees. With a View, the agent also sees only processes
	// that it has started. A View requires a keeper. If View is nil, the agent sees all files and processes.
	View *View
}

// Port is a port on the agent's 127.0.0.1. Its listener belongs to this process, so a connection of the agent to the
// port arrives here directly.
type Port struct {
	Number int
	// Serve is called with the port's listener once the listener exists. It must not block.
	Serve func(net.Listener)
}

// ErrUnavailable means that this machine lacks the namespaces to isolate an agent.
var ErrUnavailable = errors.New("the namespaces that --isolate needs are not available")

// Handover receives the listeners from the helper of an isolated agent.
type Handover struct {
	dir    *os.File
	socket *net.UnixListener
	ports  []Port
}

// Open creates the socket over which the helper hands over the listeners. conn is the number of the agent's
// connection. path and args are the agent's program and arguments. Open returns the program and arguments of the
// helper, which must be started in the agent's place and then starts the agent.
func (i *Isolation) Open(conn int, path string, args []string) (*Handover, string, []string, error) {
	if len(i.Helper) == 0 {
		return nil, "", nil, errNoHelper
	}
	dir, err := os.Open(i.Dir)
	if err != nil {
		return nil, "", nil, fmt.Errorf("isolating the agent: %w", err)
	}
	name := "ports-" + strconv.Itoa(conn)
	socket, err := net.ListenUnix("unix", socketIn(dir, name))
	if err != nil {
		dir.Close()
		return nil, "", nil, fmt.Errorf("isolating the agent: %w", err)
	}
	name = filepath.Join(i.Dir, name)
	h := handed{Socket: name, View: i.View, Path: path, Args: args,
		Ports: lists.Map(i.Ports, func(p Port) int { return p.Number })}
	return &Handover{dir, socket, i.Ports}, i.Helper[0], h.words(i.Helper), nil
}

var errNoHelper = errors.New("isolating the agent: the helper's command line is empty")

// socketIn returns the address of a socket in an open directory. The address goes through /proc, because the socket's
// path may be longer than the 107 bytes that the system allows.
func socketIn(dir *os.File, name string) *net.UnixAddr {
	return &net.UnixAddr{Name: fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), name), Net: "unix"}
}

// Close removes the socket.
func (h *Handover) Close() {
	h.socket.Close()
	h.dir.Close()
}

// Receive waits for the listeners from the helper and passes each to the Serve of its port.
func (h *Handover) Receive(ctx context.Context) error {
	const patience = 10 * time.Second // the helper needs only the time to start
	deadline := time.Now().Add(patience)
	if d, ok := ctx.Deadline(); ok && d.Before(deadline) {
		deadline = d
	}
	_ = h.socket.SetDeadline(deadline)
	stop := context.AfterFunc(ctx, func() { _ = h.socket.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	c, err := h.socket.AcceptUnix()
	if err != nil {
		return fmt.Errorf("isolating the agent: its helper does not answer: %w", err)
	}
	defer c.Close()
	_ = c.SetDeadline(deadline)
	files, err := receiveFiles(c, len(h.ports))
	defer func() {
		for _, f := range files {
			f.Close()
		}
	}()
	if err != nil {
		return fmt.Errorf("isolating the agent: %w", err)
	}
	for i, p := range h.ports {
		l, err := net.FileListener(files[i])
		if err != nil {
			return fmt.Errorf("isolating the agent: port %d: %w", p.Number, err)
		}
		p.Serve(l)
	}
	return nil
}

// handed is the helper's task. The helper receives it as JSON in its last argument. If Path is empty, the helper only
// tests whether isolation works.
type handed struct {
	Socket string   `json:",omitempty"` // socket over which the listeners are handed over
	Ports  []int    `json:",omitempty"`
	View   *View    `json:",omitempty"`
	Path   string   `json:",omitempty"` // program that the helper becomes or starts
	Args   []string `json:",omitempty"`
}

// words returns the helper's complete command line.
func (h handed) words(helper []string) []string {
	text, _ := json.Marshal(h) // no error is possible for strings and numbers
	return append(append([]string{}, helper...), string(text))
}

func parseHanded(words []string) (h handed, err error) {
	if len(words) != 1 {
		return h, fmt.Errorf("want one word, the program to start, got %d words", len(words))
	}
	return h, json.Unmarshal([]byte(words[0]), &h)
}

func files(list []int) []*os.File {
	out := make([]*os.File, len(list))
	for i, fd := range list {
		out[i] = os.NewFile(uintptr(fd), "port")
	}
	return out
}
