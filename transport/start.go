package transport

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/acp-test/acp-test/internal/isolate"
	"github.com/acp-test/acp-test/internal/pipe"
	"github.com/acp-test/acp-test/internal/process"
	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/wire"
)

// Command describes how to start an agent as a process.
type Command struct {
	// Path is the program. A name is looked up in the PATH of this process; a
	// relative path is relative to this process's working directory.
	Path string
	Args []string // without the program's name
	// Env is the complete environment; the agent inherits no variables.
	// ACP_TEST_RUN and ACP_TEST_CONN are added to it.
	Env []string
	Dir string // working directory; "" means that of this process
	// Keeper is the command line of the keeper, such as {"acp-test", "keeper"}.
	// Without a keeper, descendants of the agent may survive in two cases: the
	// harness is killed, or they leave the process group and clear their
	// environment.
	Keeper []string
	// RemoveOnExit is a directory. The keeper removes it if this process dies
	// without calling Stop. After Stop, the caller must remove it.
	RemoveOnExit string
	// TrimOnExit is the absolute path of a file of lines. If this process dies
	// without calling Stop, the keeper removes an incomplete last line. This is
	// needed because the process may be killed in the middle of a write.
	TrimOnExit string
	// RunID identifies the run to which the processes belong. If it is "", one is
	// generated.
	RunID string
	// Grace is the timeout of each step of Stop; 0 means 2 s.
	Grace time.Duration
	// Linger is how long descendants may take to end by themselves after the agent
	// has ended; 0 means 1 s. Those that remain count as survivors and are killed.
	Linger time.Duration
	// Isolation starts the agent without any network except for the isolation's
	// ports. If it is nil, the agent can use this machine's network.
	Isolation *isolate.Isolation
	// MaxLine is the maximum size in bytes of a line that is read completely; 0
	// means 256 MiB.
	MaxLine int
	// Through is used only by Start. It wraps the transport, to insert something
	// between the agent and the editor. nil leaves the transport unchanged.
	Through func(Transport) Transport
}

// Start starts an agent as connection conn of the run with transcript t. ctx
// limits only the start.
func Start(ctx context.Context, t *transcript.Transcript, conn int, c Command) (*Agent, error) {
	p, files, err := c.start(ctx, conn, func(e started) { t.Event(conn, transcript.Process, transcript.Started, "", e) })
	if err != nil {
		return nil, err
	}
	return New(t, conn, Pipes(files.ToStdin, files.FromStdout, c.MaxLine), Options{Process: p,
		Logs: []io.ReadCloser{files.FromStderr}, RunID: c.RunID, Grace: c.Grace, Through: c.Through}), nil
}

// StartServer starts an agent like Start, but frames go over the transport via,
// such as HTTP. The agent's stdout and stderr are logged.
func StartServer(ctx context.Context, t *transcript.Transcript, conn int, c Command, via Reaching) (*Agent, error) {
	p, files, err := c.start(ctx, conn, func(e started) { t.Event(conn, transcript.Process, transcript.Started, "", e) })
	if err != nil {
		return nil, err
	}
	go func() {
		<-p.Ended()
		via.Gone()
		files.ToStdin.Close()
	}()
	return New(t, conn, via, Options{Process: p, Logs: []io.ReadCloser{files.FromStdout, files.FromStderr},
		Server: true, RunID: c.RunID, Grace: c.Grace}), nil
}

// start starts the process with its own pipes. It calls tell before the process
// can write anything. It also sets defaults in c.
func (c *Command) start(ctx context.Context, conn int, tell func(started)) (Process, *pipe.Set, error) {
	c.RunID, c.Linger = cmp.Or(c.RunID, process.NewRunID()), cmp.Or(max(c.Linger, 0), time.Second)
	p, files, err := process.Start(ctx, process.Spec{
		Path: c.Path, Args: c.Args, Env: c.Env, Dir: c.Dir, RunID: c.RunID, Conn: conn, Linger: c.Linger,
		Keeper: c.Keeper, RemoveOnExit: c.RemoveOnExit, TrimOnExit: c.TrimOnExit, Isolation: c.Isolation,
	}, func(pid int, path string) {
		tell(started{PID: pid, Path: path, Args: c.Args, Dir: c.Dir, Run: c.RunID, Keeper: c.Keeper != nil,
			Isolated: c.Isolation != nil})
	})
	if err != nil {
		return nil, nil, fmt.Errorf("starting agent %q: %w", c.Path, err)
	}
	return p, files, nil
}

type started struct {
	PID    int      `json:"pid,omitempty"`
	Path   string   `json:"path,omitempty"`
	Args   []string `json:"args,omitempty"`
	Dir    string   `json:"dir,omitempty"`
	Run    string   `json:"run,omitempty"`
	Keeper bool     `json:"keeper,omitempty"`
	// Isolated means that the process has no network except for its ports.
	Isolated bool `json:"isolated,omitempty"`
	// Served is the number of earlier connections of a shared process.
	Served int `json:"served,omitempty"`
}

// InProcess runs an agent within this process. serve reads the editor's frames
// from in and writes its own to out. It should return at the end of in or when
// ctx ends; its error becomes the agent's exit. The rest is as for Start,
// except that there is no process to kill: SIGTERM and SIGKILL end ctx and both
// pipes. If serve does not return within 5 s after that, its goroutine is
// abandoned.
func InProcess(
	t *transcript.Transcript, conn int, serve func(ctx context.Context, in io.Reader, out io.Writer) error,
) *Agent {
	l, ctx := newLocal(t, conn)
	go l.serve(ctx, serve)
	return New(t, conn, &pipes{in: l.in, out: l.out, lines: wire.NewSplitter(l.out, 0)}, Options{Process: l})
}

// InProcessServer runs an agent within this process whose frames go over a
// separate transport. serve should return when ctx ends. It is stopped in the
// same way as with InProcess.
func InProcessServer(
	t *transcript.Transcript, conn int, via Reaching, serve func(ctx context.Context) error,
) *Agent {
	l, ctx := newLocal(t, conn)
	l.server = true
	go func() {
		l.serve(ctx, func(ctx context.Context, _ io.Reader, _ io.Writer) error { return serve(ctx) })
		via.Gone()
	}()
	return New(t, conn, via, Options{Process: l, Server: true})
}

type local struct {
	cancel context.CancelFunc
	in     *memory
	out    *memory
	once   sync.Once
	signal atomic.Int32 // the signal that ended it, or 0
	server bool         // SIGTERM is the normal way to stop it
	done   chan struct{}
	lost   chan struct{} // closed when serve was killed and did not return
	exit   Exit
}

// newLocal returns an agent within this process and logs its start. The
// returned context ends when the agent must stop.
func newLocal(t *transcript.Transcript, conn int) (*local, context.Context) {
	ctx, cancel := context.WithCancel(context.Background())
	t.Event(conn, transcript.Process, transcript.Started, "", started{Path: "in-process"})
	return &local{cancel: cancel, in: newMemory(), out: newMemory(), done: make(chan struct{}),
		lost: make(chan struct{})}, ctx
}

func (l *local) serve(ctx context.Context, serve func(context.Context, io.Reader, io.Writer) error) {
	defer close(l.done)
	defer l.close()
	defer func() {
		if r := recover(); r != nil {
			l.exit = Exit{Code: 2, Error: fmt.Sprintf("panic: %v", r)}
		}
	}()
	// The wrappers hide all other methods, so that the agent cannot close our
	// pipes through a type assertion.
	err := serve(ctx, struct{ io.Reader }{l.in}, struct{ io.Writer }{l.out})
	if err != nil {
		l.exit = Exit{Code: 1, Error: err.Error()}
	}
}

func (l *local) close() {
	l.in.CloseRead()
	l.out.Close()
}

func (l *local) PID() int { return 0 }

func (l *local) Signal(s syscall.Signal, _ bool) error {
	if s != syscall.SIGTERM && s != syscall.SIGKILL && s != syscall.SIGINT {
		return fmt.Errorf("an in-process agent takes only SIGTERM, SIGKILL and SIGINT")
	}
	l.end(s)
	return nil
}

func (l *local) Kill() { l.end(syscall.SIGKILL) }

func (l *local) end(s syscall.Signal) {
	l.once.Do(func() {
		if !done(l.done) {
			l.signal.Store(int32(s))
		}
		l.cancel()
		l.close()
		time.AfterFunc(5*time.Second, func() { close(l.lost) })
	})
}

func (l *local) Descendants() []ProcessInfo { return nil }

func (l *local) Ended() <-chan struct{} { return l.done }

func (l *local) Wait() (Exit, []ProcessInfo) {
	select {
	case <-l.done:
	case <-l.lost:
		return Exit{Code: -1, Error: "the in-process agent did not return when it was killed"}, nil
	}
	l.cancel()
	if s := l.signal.Load(); s != 0 && !(l.server && s == int32(syscall.SIGTERM)) {
		return Exit{Code: -1, Signal: process.SignalName(syscall.Signal(s))}, nil
	}
	return l.exit, nil
}

// Piped is an agent whose pipes belong to the caller. It is for callers that
// forward bytes instead of playing an editor. Its process tree is managed like
// that of an Agent. The caller must close the pipes and call Wait.
type Piped struct {
	Stdin          *os.File // the caller writes to it
	Stdout, Stderr *os.File // the caller reads from them

	t    *transcript.Transcript
	conn int
	proc Process
	gone chan struct{}
}

// StartPiped starts an agent as connection conn of the run with transcript t.
// It logs only the start and the signals that are sent. It ignores Grace and
// MaxLine. ctx limits only the start.
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

// Kill sends SIGKILL to the agent and its whole process tree. It does not wait.
func (p *Piped) Kill() {
	if !done(p.gone) {
		p.proc.Kill()
	}
}

// Wait waits until the agent and all its descendants have ended. It returns how
// the agent ended, and the processes that outlived it and were killed. Call it
// once.
func (p *Piped) Wait() (Exit, []ProcessInfo) {
	defer close(p.gone)
	return p.proc.Wait()
}

// Exited appends the exit of the agent to the transcript. It is separate from
// Wait, because the rest of the agent's output must be appended first.
func (p *Piped) Exited(e Exit, survivors []ProcessInfo) {
	for _, s := range survivors {
		p.t.Event(p.conn, transcript.Process, transcript.Descendant, "", s)
	}
	p.t.Event(p.conn, transcript.Process, transcript.Exited, "", e)
}

// StdinClosed logs that the caller has closed the agent's input.
func (p *Piped) StdinClosed() {
	p.t.Event(p.conn, transcript.Process, transcript.StdinClosed, "", struct{}{})
}
