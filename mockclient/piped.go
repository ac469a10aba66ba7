package mockclient

import (
	"context"
	"fmt"
	"os"
	"syscall"

	"github.com/acp-test/acp-test/transcript"
)

// Piped is an agent whose pipes are the caller's, for who passes bytes on
// instead of playing an editor. Its process tree is owned as that of an Agent
// is. The caller closes the pipes, and must call Wait.
type Piped struct {
	Stdin          *os.File // to write to
	Stdout, Stderr *os.File // to read from

	t    *transcript.Transcript
	conn int
	proc process
	gone chan struct{}
}

// StartPiped runs an agent as the connection conn of the run that t logs, and
// appends nothing but its start and the signals it is sent. Grace and MaxLine
// of the command mean nothing here. ctx bounds the start alone.
func StartPiped(ctx context.Context, t *transcript.Transcript, conn int, c Command) (*Piped, error) {
	p, files, err := launch(ctx, t, conn, &c)
	if err != nil {
		return nil, fmt.Errorf("starting agent %q: %w", c.Path, err)
	}
	return &Piped{Stdin: files.inW, Stdout: files.outR, Stderr: files.errR, t: t, conn: conn, proc: p, gone: make(chan struct{})}, nil
}

// PID is the agent's process id.
func (p *Piped) PID() int { return p.proc.pid() }

// Signal sends a signal to the agent's process group, as a terminal would.
func (p *Piped) Signal(s syscall.Signal) error {
	select {
	case <-p.gone:
		return ErrExited
	default:
	}
	p.t.Event(p.conn, transcript.Process, transcript.Signalled, "", signalled{signalName(s), true})
	if err := p.proc.signal(s, true); err != nil {
		return fmt.Errorf("sending %s to the agent: %w", signalName(s), err)
	}
	return nil
}

// Kill ends the agent and its whole tree with SIGKILL, and does not wait.
func (p *Piped) Kill() {
	select {
	case <-p.gone:
	default:
		p.proc.kill()
	}
}

// Wait returns when the agent and all its descendants are gone, with those that
// outlived it and had to be killed. Call it once.
func (p *Piped) Wait() (Exit, []Process) {
	defer close(p.gone)
	return p.proc.wait()
}

// Exited appends the end of the agent to the transcript. It is apart from Wait
// because what is still in the pipes comes before it.
func (p *Piped) Exited(e Exit, survivors []Process) {
	for _, s := range survivors {
		p.t.Event(p.conn, transcript.Process, transcript.Descendant, "", s)
	}
	p.t.Event(p.conn, transcript.Process, transcript.Exited, "", e)
}

// StdinClosed notes that the caller has closed the agent's input.
func (p *Piped) StdinClosed() {
	p.t.Event(p.conn, transcript.Process, transcript.StdinClosed, "", struct{}{})
}
