package mockclient

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

// Isolation starts an agent where nothing can be reached but the doors: in a
// user and a network namespace of its own, with a loopback interface of its
// own. Linux only; see CanIsolate.
type Isolation struct {
	// Helper is the command line that calls IsolateMain, such as
	// {"/path/acp-test", "isolate"}.
	Helper []string
	// Dir is a directory that only this user may enter, for a socket while the
	// agent starts. It needs a short name: the system allows about 90 bytes.
	Dir   string
	Doors []Door
}

// Door is a port of the agent's 127.0.0.1. Its listener belongs to this
// process: a connection to it comes out here without passing any network.
type Door struct {
	Port int
	// Serve gets the listener once the agent has one, and must not block.
	Serve func(net.Listener)
}

// ErrNoIsolation is the cause when this machine has no namespaces to isolate
// an agent with.
var ErrNoIsolation = errors.New("user and network namespaces are not available")

// hall is where an isolated agent's helper hands its listeners over.
type hall struct {
	socket *net.UnixListener
	doors  []Door
}

// openHall makes the socket and turns the command into the helper's.
func openHall(i *Isolation, s *spawn) (*hall, error) {
	if len(i.Helper) == 0 {
		return nil, errors.New("isolating the agent: the helper's command line is empty")
	}
	name := filepath.Join(i.Dir, "doors-"+strconv.Itoa(s.Conn))
	socket, err := net.ListenUnix("unix", &net.UnixAddr{Name: name, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("isolating the agent: %w", err)
	}
	words := append(append([]string{}, i.Helper...), name, strconv.Itoa(len(i.Doors)))
	for _, d := range i.Doors {
		words = append(words, strconv.Itoa(d.Port))
	}
	s.Path, s.Args, s.Isolate = i.Helper[0], append(append(words, s.Path), s.Args...), true
	return &hall{socket, i.Doors}, nil
}

func (h *hall) close() { h.socket.Close() }

// receive takes the listeners and opens the doors.
func (h *hall) receive(ctx context.Context) error {
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
	files, err := receiveFiles(c, len(h.doors))
	defer closeAll(files...)
	if err != nil {
		return fmt.Errorf("isolating the agent: %w", err)
	}
	for i, d := range h.doors {
		l, err := net.FileListener(files[i])
		if err != nil {
			return fmt.Errorf("isolating the agent: port %d: %w", d.Port, err)
		}
		d.Serve(l)
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
	if len(words) < 2 {
		return h, errors.New("words are missing: SOCKET COUNT PORT… PATH NAME ARGS…")
	}
	h.socket = words[0]
	n, err := strconv.Atoi(words[1])
	if err != nil || n < 0 || len(words) < 4+n {
		return h, errors.New("words are missing: SOCKET COUNT PORT… PATH NAME ARGS…")
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
		out[i] = os.NewFile(uintptr(fd), "door")
	}
	return out
}
