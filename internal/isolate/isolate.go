// Package isolate starts an agent where it reaches no network but the ports it
// is given.
package isolate

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// Isolation starts an agent where nothing can be reached but the ports: in a
// user and a network namespace of its own, with a loopback interface of its
// own. Linux only; see Check.
type Isolation struct {
	// Helper is the command line that calls Main, such as
	// {"/path/acp-test", "isolate"}.
	Helper []string
	// Dir is a directory that only this user may enter, for a socket while the
	// agent starts. It needs a short name: the system allows about 90 bytes.
	Dir   string
	Ports []Port
}

// Port is a port of the agent's 127.0.0.1. Its listener belongs to this
// process: a connection to it comes out here without passing any network.
type Port struct {
	Number int
	// Serve gets the listener once the agent has one, and must not block.
	Serve func(net.Listener)
}

// ErrUnavailable is the cause when this machine has no namespaces to isolate
// an agent with.
var ErrUnavailable = errors.New("user and network namespaces are not available")

// Handover is where the helper of an isolated agent hands its listeners over.
type Handover struct {
	socket *net.UnixListener
	ports  []Port
}

// Open makes the socket for the agent of a connection. It returns the helper's
// program and words, which start the agent's.
func (i *Isolation) Open(conn int, path string, args []string) (*Handover, string, []string, error) {
	if len(i.Helper) == 0 {
		return nil, "", nil, errNoHelper
	}
	name := filepath.Join(i.Dir, "ports-"+strconv.Itoa(conn))
	socket, err := net.ListenUnix("unix", &net.UnixAddr{Name: name, Net: "unix"})
	if err != nil {
		return nil, "", nil, fmt.Errorf("isolating the agent: %w", err)
	}
	words := append(append([]string{}, i.Helper...), name, strconv.Itoa(len(i.Ports)))
	for _, p := range i.Ports {
		words = append(words, strconv.Itoa(p.Number))
	}
	return &Handover{socket, i.Ports}, i.Helper[0], append(append(words, path), args...), nil
}

var errNoHelper = errors.New("isolating the agent: the helper's command line is empty")

// Close removes the socket.
func (h *Handover) Close() { h.socket.Close() }

// Receive takes the listeners from the helper and gives each to its port.
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

// handed is what the helper is told: a socket, ports, and the program to
// become.
type handed struct {
	socket string
	ports  []int
	path   string
	args   []string
}

func parseHanded(words []string) (h handed, err error) {
	missing := errors.New("words are missing: SOCKET COUNT PORT… PATH NAME ARGS…")
	if len(words) < 2 {
		return h, missing
	}
	h.socket = words[0]
	n, err := strconv.Atoi(words[1])
	if err != nil || n < 0 || len(words) < 4+n {
		return h, missing
	}
	for _, w := range words[2 : 2+n] {
		port, err := strconv.Atoi(w)
		if err != nil {
			return h, fmt.Errorf("%q is no port", w)
		}
		h.ports = append(h.ports, port)
	}
	h.path, h.args = words[2+n], words[3+n:]
	return h, nil
}

func files(list []int) []*os.File {
	out := make([]*os.File, len(list))
	for i, fd := range list {
		out[i] = os.NewFile(uintptr(fd), "port")
	}
	return out
}
