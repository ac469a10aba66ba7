package mockclient

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/wire"
)

// Errors of writing to an agent.
var (
	// ErrExited is returned for a frame that was not sent because the agent
	// had exited.
	ErrExited = errors.New("the agent has exited")
	// ErrStdinClosed is returned for a frame that was not sent because the
	// agent's input had been closed before.
	ErrStdinClosed = errors.New("the agent's stdin is closed")
)

// Exit says how an agent ended.
type Exit struct {
	// Code is the exit status; -1 if a signal ended the agent or if nobody
	// could tell.
	Code int `json:"code"`
	// Signal is the name of the signal that ended the agent, such as
	// "SIGKILL"; "" if it exited.
	Signal string `json:"signal,omitempty"`
	// Error is why the end could not be told, or what an in-process agent
	// returned.
	Error string `json:"error,omitempty"`
}

// Process is a process of the agent's tree.
type Process struct {
	PID     int    `json:"pid"`
	Parent  int    `json:"parent"`
	Command string `json:"command"`
}

// Shutdown says how an agent was brought to its end.
type Shutdown struct {
	Exit Exit
	// Steps are the rungs of the ladder that were taken, in order:
	// "stdin-closed", "SIGTERM", "SIGKILL". It is empty if the agent had
	// exited before.
	Steps []string
	// Survivors are the processes that outlived the agent. They have been
	// killed.
	Survivors []Process
	Took      time.Duration
}

// process is what differs between the ways to run an agent.
type process interface {
	pid() int
	// signal sends to the agent alone, or to its process group.
	signal(s syscall.Signal, group bool) error
	// kill ends the whole tree, now.
	kill()
	descendants() []Process
	// ended is closed when the agent itself has ended, whatever it left behind.
	ended() <-chan struct{}
	// wait returns when the agent and all its descendants are gone.
	wait() (Exit, []Process)
}

// Agent is one running agent. All methods may be called from any goroutine.
// An Agent must be ended with Stop.
type Agent struct {
	t     *transcript.Transcript
	conn  int
	runID string
	grace time.Duration
	proc  process

	stdin  io.WriteCloser
	stdout *valve
	jobs   chan *job
	exited chan struct{}

	mu          sync.Mutex
	stdinClosed bool
	shape       Shape
	held        []heldFrame // coalesced, not yet written
	inbox       *queue
	pace        Pace
	onResponse  func(transcript.Entry)
	ends        []func() // what Stop waits for once the agent is gone
	exit        Exit
	survivors   []Process
	stopped     chan struct{}
	shutdown    Shutdown
}

func newAgent(t *transcript.Transcript, conn int, in io.WriteCloser, out io.Reader, grace time.Duration) *Agent {
	if grace <= 0 {
		grace = 2 * time.Second
	}
	return &Agent{
		t: t, conn: conn, grace: grace,
		stdin: in, stdout: newValve(out),
		jobs: make(chan *job), exited: make(chan struct{}), inbox: newQueue(),
	}
}

// run starts the goroutines of an agent whose process runs: one reads, one
// writes, one waits. stderr may be nil. abandon makes pending reads end.
func (a *Agent) run(p process, stderr io.Reader, maxLine int, abandon func()) {
	a.proc = p
	var readers sync.WaitGroup
	readers.Go(func() { a.read(maxLine) })
	if stderr != nil {
		readers.Go(func() { a.readStderr(stderr) })
	}
	go a.writeLoop()
	go func() {
		exit, survivors := p.wait()
		a.SetPace(Pace{})
		// Whatever is still in the pipes comes before the exit. All holders
		// of the other ends are dead, so that end of file is near; one that
		// could not be killed must not hold the run.
		a.stdout.open()
		timer := time.AfterFunc(a.grace, abandon)
		readers.Wait()
		if !timer.Stop() {
			a.remark("", Remark{Code: "pipe-open", Text: "a process that could not be killed still holds the agent's output; reading was given up"})
		}
		abandon()
		for _, s := range survivors {
			a.t.Event(a.conn, transcript.Process, transcript.Descendant, "", s)
		}
		a.mu.Lock()
		a.exit, a.survivors = exit, survivors
		a.stdinClosed = true
		a.mu.Unlock()
		a.stdin.Close()
		a.t.Event(a.conn, transcript.Process, transcript.Exited, "", exit)
		close(a.exited)
	}()
}

// PID is the agent's process id; 0 for an in-process agent.
func (a *Agent) PID() int { return a.proc.pid() }

// Conn is the number of this agent in its run.
func (a *Agent) Conn() int { return a.conn }

// Transcript is the log of the run.
func (a *Agent) Transcript() *transcript.Transcript { return a.t }

// Exited is closed when the agent and its descendants are gone and all they
// wrote is in the transcript.
func (a *Agent) Exited() <-chan struct{} { return a.exited }

// Exit says how the agent ended. ok is false while it runs.
func (a *Agent) Exit() (exit Exit, ok bool) {
	select {
	case <-a.exited:
		return a.exit, true
	default:
		return Exit{}, false
	}
}

// Descendants lists the living processes of the agent's tree without the agent
// itself; after the exit, those that outlived it.
func (a *Agent) Descendants() []Process {
	select {
	case <-a.exited:
		return a.survivors
	default:
		return a.proc.descendants()
	}
}

// Busy reports whether a thread of the agent's tree runs, or waits for a processor
// or a disk, so that there may be more to come. It is false on other systems than
// Linux, and after the exit.
func (a *Agent) Busy() bool {
	select {
	case <-a.exited:
		return false
	default:
	}
	return busy(a.PID())
}

// CloseStdin closes the agent's input, as an editor that quits does. Held
// frames are written first. A write that is blocked ends with an error.
func (a *Agent) CloseStdin() {
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	_ = a.Flush(ctx) // a blocked pipe takes nothing more, and is closed all the same
	a.mu.Lock()
	was := a.stdinClosed
	a.stdinClosed = true
	a.mu.Unlock()
	if was {
		return
	}
	a.t.Event(a.conn, transcript.Process, transcript.StdinClosed, "", struct{}{})
	a.stdin.Close()
}

// Signal sends a signal to the agent alone.
func (a *Agent) Signal(s syscall.Signal) error {
	if _, gone := a.Exit(); gone {
		return ErrExited
	}
	a.t.Event(a.conn, transcript.Process, transcript.Signalled, "", signalled{signalName(s), false})
	if err := a.proc.signal(s, false); err != nil {
		return fmt.Errorf("sending %s to the agent: %w", signalName(s), err)
	}
	return nil
}

type signalled struct {
	Signal string `json:"signal"`
	Group  bool   `json:"group,omitempty"`
}

// Kill ends the agent and its whole tree with SIGKILL, and does not wait.
func (a *Agent) Kill() {
	if _, gone := a.Exit(); gone {
		return
	}
	a.t.Event(a.conn, transcript.Process, transcript.Signalled, "", signalled{"SIGKILL", true})
	a.proc.kill()
}

// Stop ends the agent: it closes stdin, sends SIGTERM to the agent's process
// group if it still runs after the grace period, and SIGKILL to the whole tree
// after another one. When ctx ends, SIGKILL comes at once. Each step is an
// entry. Stop returns when nothing of the agent is left; further calls return
// the same.
func (a *Agent) Stop(ctx context.Context) Shutdown {
	a.mu.Lock()
	if a.stopped != nil {
		stopped := a.stopped
		a.mu.Unlock()
		<-stopped
		return a.shutdown
	}
	a.stopped = make(chan struct{})
	a.mu.Unlock()

	start := time.Now()
	var s Shutdown
	a.stdout.open()
	if !a.within(ctx, 0) {
		s.Steps = append(s.Steps, "stdin-closed")
		a.CloseStdin()
		if !a.within(ctx, a.grace) && ctx.Err() == nil {
			s.Steps = append(s.Steps, "SIGTERM")
			a.t.Event(a.conn, transcript.Process, transcript.Signalled, "", signalled{"SIGTERM", true})
			_ = a.proc.signal(syscall.SIGTERM, true)
			a.within(ctx, a.grace)
		}
		if !a.within(ctx, 0) {
			s.Steps = append(s.Steps, "SIGKILL")
			a.Kill()
		}
	}
	<-a.exited
	a.mu.Lock()
	ends := a.ends
	a.mu.Unlock()
	for _, end := range ends {
		end()
	}
	s.Exit, s.Survivors, s.Took = a.exit, a.survivors, time.Since(start)
	a.shutdown = s
	close(a.stopped)
	return s
}

// within reports whether the agent itself ends within d, or before ctx ends. What
// it left behind has a time of its own, which is no part of the agent's.
func (a *Agent) within(ctx context.Context, d time.Duration) bool {
	select {
	case <-a.proc.ended():
		return true
	default:
	}
	if d <= 0 {
		return false
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-a.proc.ended():
		return true
	case <-timer.C:
	case <-ctx.Done():
	}
	return false
}

// atEnd registers what Stop calls once the agent is gone.
func (a *Agent) atEnd(f func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ends = append(a.ends, f)
}

// read appends every line of the agent before anything is done about it.
func (a *Agent) read(maxLine int) {
	defer a.inbox.close()
	lines := wire.NewSplitter(a.stdout, maxLine)
	for {
		if d := a.readPace(); d > 0 {
			time.Sleep(d)
		}
		line, err := lines.Next()
		if err != nil {
			if !errors.Is(err, io.EOF) && !errors.Is(err, os.ErrDeadlineExceeded) && !errors.Is(err, os.ErrClosed) {
				a.remark("", Remark{Code: "read-failed", Text: "reading the agent's output: " + err.Error()})
			}
			return
		}
		size := 0
		if line.Size > len(line.Bytes) {
			size = line.Size
		}
		e := a.t.AppendFrame(a.conn, transcript.Agent, bytes.Clone(line.Bytes), size)
		if !line.Terminated {
			a.remark("", Remark{Code: "unterminated-line", Request: e.Seq, Text: "the agent's output ended in the middle of a line"})
		}
		a.dispatch(e)
	}
}

func (a *Agent) dispatch(e transcript.Entry) {
	switch e.Kind {
	case transcript.Response:
		a.mu.Lock()
		f := a.onResponse
		a.mu.Unlock()
		if f != nil {
			f(e)
		}
	case transcript.Request:
		a.inbox.put(e.Seq)
	case transcript.Notification:
		// No other notification asks anything of a client: updates are in the
		// transcript, and elicitation/complete may be ignored.
		if e.Method == "$/cancel_request" {
			a.inbox.put(e.Seq)
		}
	}
}

func (a *Agent) readStderr(r io.Reader) {
	buf := make([]byte, 32<<10)
	for {
		n, err := r.Read(buf)
		if n > 0 {
			a.t.Append(transcript.Entry{Conn: a.conn, Source: transcript.Stderr, Kind: transcript.Chunk, Raw: bytes.Clone(buf[:n])})
		}
		if err != nil {
			return
		}
	}
}

// PauseReading makes the editor a slow reader: from now on nothing more is
// taken from the agent's output, but for what the reader already holds.
// ResumeReading ends it. Nothing is lost in between.
func (a *Agent) PauseReading() { a.stdout.shut() }

// ResumeReading ends PauseReading.
func (a *Agent) ResumeReading() { a.stdout.open() }

// CatchUp waits until the editor has read all that the agent has written by now,
// so that what it did elsewhere, such as a file it left, does not overtake its
// messages. It returns at once on Windows, and where the agent has ended.
func (a *Agent) CatchUp(ctx context.Context) {
	done, ok := a.stdout.drained()
	if !ok {
		return
	}
	select {
	case <-done:
	case <-a.exited:
	case <-ctx.Done():
	}
}

// Stall is PauseReading for a time. It returns at once.
func (a *Agent) Stall(d time.Duration) {
	a.stdout.shut()
	time.AfterFunc(d, a.stdout.open)
}

// Format prints the agent by its connection and process.
func (a *Agent) Format(s fmt.State, _ rune) {
	fmt.Fprintf(s, "agent %d (pid %d)", a.conn, a.PID())
}
