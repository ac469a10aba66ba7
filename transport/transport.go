// Package transport connects the client in a test to an agent, for any
// protocol. A Transport carries frames. An Agent logs them, and manages the
// agent's process if there is one.
package transport

import (
	"errors"
	"io"
	"os"

	"github.com/acp-test/acp-test/internal/pipe"
	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/wire"
)

// Transport carries the frames of one connection. It does not interpret them.
//
// Send is called by one goroutine, and Receive by another. CloseSend and Close
// may be called from any goroutine, and more than once.
type Transport interface {
	// Send sends bytes to the agent: a frame with its newline, several frames, or
	// a part of one. waited reports whether it had to wait for the agent.
	Send(b []byte) (waited bool, err error)
	// Receive waits for the agent's next frame. Its bytes are valid until the next
	// call. After the last frame, Receive returns io.EOF.
	Receive() (wire.Line, error)
	// CloseSend closes the sending side. A blocked Send then returns.
	CloseSend() error
	// Close closes the receiving side. A blocked Receive then returns.
	Close() error
	// Unread returns how many of the sent bytes the agent has not read. ok is
	// false if that is unknown.
	Unread() (n int, ok bool)
	// Drained returns a channel that is closed when everything that the agent has
	// sent so far has been received. ok is false if that cannot be determined.
	Drained() (done <-chan struct{}, ok bool)
}

// Appender is a Transport that knows more about a line than its bytes, such as
// the request that the line answers. It therefore appends each line to the
// transcript itself, immediately after receiving it.
type Appender interface {
	Append(t *transcript.Transcript, conn int, line wire.Line) transcript.Entry
}

// Reaching is the Transport to an agent that is a server.
type Reaching interface {
	Transport
	Appender
	// Attach is called once, before anything is sent. The transport can then log
	// network events in the agent's transcript.
	Attach(a *Agent)
	// Gone tells the transport that the server has ended. The transport then sends
	// nothing more, but still receives the frames that the server has sent.
	Gone()
}

// pipes is the transport to an agent that reads lines from one pipe and writes
// lines to another.
type pipes struct {
	in interface {
		Send(b []byte) (waited bool, err error)
		Unread() (n int, ok bool)
		Close() error
	}
	out interface {
		io.Reader
		Drained() (done <-chan struct{}, ok bool)
		CloseRead() error
	}
	lines *wire.Splitter
}

// Pipes returns the transport to an agent that reads lines from the other end
// of in and writes lines to the other end of out. maxLine is as for
// Command.MaxLine.
func Pipes(in, out *os.File, maxLine int) Transport {
	p := &pipes{in: pipe.Writer{File: in}, out: pipe.NewReader(out)}
	p.lines = wire.NewSplitter(p.out, maxLine)
	return p
}

func (p *pipes) Send(b []byte) (waited bool, err error)   { return p.in.Send(b) }
func (p *pipes) CloseSend() error                         { return p.in.Close() }
func (p *pipes) Close() error                             { return p.out.CloseRead() }
func (p *pipes) Unread() (n int, ok bool)                 { return p.in.Unread() }
func (p *pipes) Drained() (done <-chan struct{}, ok bool) { return p.out.Drained() }

func (p *pipes) Receive() (wire.Line, error) {
	line, err := p.lines.Next()
	if errors.Is(err, os.ErrClosed) {
		err = io.EOF // this side has closed the pipe
	}
	return line, err
}
