// Package isolate starts an agent with no network but the given ports. Where the
// system allows it, the agent also sees only the files it needs and its own
// processes.
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

// Isolation starts an agent that can reach only the given ports: in its own user
// and network namespaces, with its own loopback interface. Linux only; see Check.
type Isolation struct {
	// Helper is the command line that calls Main, such as
	// {"/path/acp-test", "isolate"}.
	Helper []string
	// Dir is a directory that only this user may enter, for a socket during the
	// agent's start.
	Dir   string
	Ports []Port
	// View selects the files of this machine that the agent sees. With a View,
	// the agent also sees only processes that it has started; this needs a
	// keeper. Nil shows all files and processes.
	View *View
}

// Port is a port of the agent's 127.0.0.1. Its listener belongs to this process:
// a connection to it arrives here without passing any network.
type Port struct {
	Number int
	// Serve is called with the listener once it exists. It must not block.
	Serve func(net.Listener)
}

// ErrUnavailable says that this machine lacks the namespaces to isolate an agent.
var ErrUnavailable = errors.New("the namespaces that --isolate needs are not available")

// Handover receives the listeners from the helper of an isolated agent.
type Handover struct {
	dir    *os.File
	socket *net.UnixListener
	ports  []Port
}

// Open creates the socket for the agent of a connection. It returns the helper's
// program and arguments, which start the agent's program.
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

// socketIn returns the address of a socket through an open directory, because the
// socket's own path may be longer than the 107 bytes that the system allows.
func socketIn(dir *os.File, name string) *net.UnixAddr {
	return &net.UnixAddr{Name: fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), name), Net: "unix"}
}

// Close removes the socket.
func (h *Handover) Close() {
	h.socket.Close()
	h.dir.Close()
}

// Receive receives the listeners from the helper and passes each to its port.
func (h *Handover) Receive(ctx context.Context) error {
	const patience = 10 * time.Second // the helper only has to be started
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

// handed is the task that the helper gets, as JSON, in its last argument. If Path
// is empty, the helper only tests whether isolation works.
type handed struct {
	Socket string   `json:",omitempty"` // where the ports are handed over
	Ports  []int    `json:",omitempty"`
	View   *View    `json:",omitempty"`
	Path   string   `json:",omitempty"` // of the program to become, or to start
	Args   []string `json:",omitempty"`
}

// words returns the helper's command line.
func (h handed) words(helper []string) []string {
	text, _ := json.Marshal(h) // strings and numbers
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
