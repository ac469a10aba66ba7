package transport

import (
	"context"
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
	proc Process
	gone chan struct{}
}

// StartPiped runs an agent as the connection conn of the run that t logs, and
// appends nothing but its start and the signals it is sent. Grace and MaxLine
// of the command mean nothing here. ctx bounds the start alone.
func StartPiped(ctx context.Context, t *transcript.Transcript, conn int, c Command) (*Piped, error) {
	p, files, err := c.start(ctx, conn, func(e started) { t.Event(conn, transcript.Process, transcript.Started, "", e) })
	if err != nil {
		return nil, err
	}
	return &Piped{Stdin: files.ToStdin, Stdout: files.FromStdout, Stderr: files.FromStderr,
		t: t, conn: conn, proc: p, gone: make(chan struct{})}, nil
}

// Signal sends a signal to the agent's process group, as a terminal would.
func (p *Piped) Signal(s syscall.Signal) error {
	if done(p.gone) {
		return ErrExited
	}
	return signal(p.t, p.conn, p.proc, s, true)
}

// Kill ends the agent and its whole tree with SIGKILL, and does not wait.
func (p *Piped) Kill() {
	if !done(p.gone) {
		p.proc.Kill()
	}
}

// Wait returns when the agent and all its descendants are gone, with those that
// outlived it and had to be killed. Call it once.
func (p *Piped) Wait() (Exit, []ProcessInfo) {
	defer close(p.gone)
	return p.proc.Wait()
}

// Exited appends the end of the agent to the transcript. It is apart from Wait
// because what is still in the pipes comes before it.
func (p *Piped) Exited(e Exit, survivors []ProcessInfo) {
	for _, s := range survivors {
		p.t.Event(p.conn, transcript.Process, transcript.Descendant, "", s)
	}
	p.t.Event(p.conn, transcript.Process, transcript.Exited, "", e)
}

// StdinClosed notes that the caller has closed the agent's input.
func (p *Piped) StdinClosed() {
	p.t.Event(p.conn, transcript.Process, transcript.StdinClosed, "", struct{}{})
}
