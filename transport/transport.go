// Package transport connects the client under a test to an agent, whatever the
// protocol. A Transport carries frames; an Agent logs them and owns the agent's
// process if there is one.
package transport

import (
	"errors"
	"io"
	"os"

	"github.com/acp-test/acp-test/internal/pipe"
	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/wire"
)

// Transport carries the frames of one connection. It does not look into them.
//
// One goroutine calls Send and another Receive; CloseSend and Close may be
// called from any goroutine, and more than once.
type Transport interface {
	// Send sends bytes to the agent: a frame with its newline, several of them,
	// or a piece. waited says that the agent made it wait.
	Send(b []byte) (waited bool, err error)
	// Receive waits for the agent's next frame. Its bytes are good until the next
	// call. After the last frame it returns io.EOF.
	Receive() (wire.Line, error)
	// CloseSend ends the sending side, and a Send that waits.
	CloseSend() error
	// Close ends a Receive that waits.
	Close() error
	// Unread returns how many sent bytes the agent has not read; ok is false if
	// that is unknown.
	Unread() (n int, ok bool)
	// Drained returns a channel that is closed when all that the agent has sent
	// by now has been received; ok is false if that cannot be known.
	Drained() (done <-chan struct{}, ok bool)
}

// Appender is a Transport that knows more of a line than its bytes, such as the
// request it answers. It therefore appends the line to the transcript itself,
// right after receiving it.
type Appender interface {
	Append(t *transcript.Transcript, conn int, line wire.Line) transcript.Entry
}

// Reaching is the Transport to an agent that is a server.
type Reaching interface {
	Transport
	Appender
	// Attach is called once, before anything is sent, so that the transport can
	// log network events in the agent's transcript.
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

// Pipes returns the transport to an agent that reads lines from the other end of
// in and writes lines to the other end of out. maxLine is as in Command.
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
