package transport

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/acp-test/acp-test/internal/lists"
	"github.com/acp-test/acp-test/internal/process"
	"github.com/acp-test/acp-test/transcript"
)

// Errors of calls that need a running agent.
var (
	// ErrExited is returned for a frame that was not sent because the agent
	// had exited.
	ErrExited = process.ErrExited
	// ErrStdinClosed is returned for a frame that was not sent because the
	// agent's input was already closed.
	ErrStdinClosed = errors.New("the agent's stdin is closed")
	// ErrNoProcess is returned for calls that need a process of the agent.
	ErrNoProcess = errors.New("the agent has no process here")
)

// Exit says how an agent ended.
type Exit = process.Exit

// Process is an agent that runs as a process, to be signalled and killed.
type Process = process.Process

// ProcessInfo is a process of an agent's tree.
type ProcessInfo = process.Info

// Shutdown says how an agent was ended.
type Shutdown struct {
	Exit Exit
	// Steps are the steps of Stop that were taken, in order: "stdin-closed",
	// "SIGTERM", "SIGKILL"; for a server "terminated", "SIGTERM" to its group,
	// "SIGKILL"; for an agent without a process "stdin-closed", "closed". It is
	// empty if the agent had exited before.
	Steps []string
	// Survivors are the processes that outlived the agent. They have been
	// killed.
	Survivors []ProcessInfo
	Took      time.Duration
}

// Options of an agent. The zero value is an agent without a process.
type Options struct {
	// Process is the agent's running process; nil if it has none on this machine.
	Process Process
	// Logs are the lines that the process writes in addition to its frames.
	Logs []io.ReadCloser
	// Server says that the process serves any connection and does not end with
	// its input, so Stop sends SIGTERM at once.
	Server bool
	// RunID names the run that processes belong to. "" makes one up.
	RunID string
	// Grace is the time for each step of Stop; 0 means 2 s.
	Grace time.Duration
	// Through wraps the transport, to put something between it and the editor;
	// nil leaves it alone.
	Through func(Transport) Transport
}

// Agent is one running agent: its transport, its process if it has one, and the
// transcript of its frames. All methods may be called from any goroutine. An
// Agent must be ended with Stop.
type Agent struct {
	t         *transcript.Transcript
	conn      int
	transport Transport
	o         Options

	jobs   chan *job
	ended  <-chan struct{} // the agent itself has ended
	exited chan struct{}   // the agent and all its descendants have ended

	deaf atomic.Bool // the agent's output is not read any more

	mu          sync.Mutex
	stdinClosed bool
	shape       Shape
	held        []heldFrame // coalesced, not yet written
	pace        Pace
	paused      chan struct{} // closed by ResumeReading; nil while nothing is paused
	ends        []func()      // functions that Stop calls once the agent is gone
	exit        Exit
	survivors   []ProcessInfo
	stopped     chan struct{}
	shutdown    Shutdown

	receiving sync.Mutex // held while the receiver is called
	receive   func(transcript.Entry)
	early     []int // Seqs of frames that came before the receiver
	readAll   chan struct{}
}

// defaultGrace is the default time for each step of Stop.
const defaultGrace = 2 * time.Second

// New takes over a transport as connection conn of the run whose log is t.
func New(t *transcript.Transcript, conn int, transport Transport, o Options) *Agent {
	o.Grace, o.RunID = cmp.Or(max(o.Grace, 0), defaultGrace), cmp.Or(o.RunID, process.NewRunID())
	if o.Through != nil {
		transport = o.Through(transport)
	}
	a := &Agent{t: t, conn: conn, transport: transport, o: o,
		jobs: make(chan *job), exited: make(chan struct{}), readAll: make(chan struct{})}
	a.ended = a.readAll
	if o.Process != nil {
		a.ended = o.Process.Ended()
	}
	if server, ok := transport.(Reaching); ok {
		server.Attach(a)
	}
	var readers sync.WaitGroup
	readers.Go(a.read)
	for _, log := range o.Logs {
		readers.Go(func() { a.readLog(log) })
	}
	go a.writeLoop()
	go a.waitForEnd(&readers)
	return a
}

// waitForEnd logs the end of the agent, after all its output.
func (a *Agent) waitForEnd(readers *sync.WaitGroup) {
	exit, survivors := Exit{Code: -1, Closed: true}, []ProcessInfo(nil)
	if a.o.Process != nil {
		exit, survivors = a.o.Process.Wait()
	} else {
		<-a.readAll
	}
	a.SetPace(Pace{})
	// Read the remaining output before logging the exit. The processes that
	// hold the other ends are dead, so end of file comes soon. A process that
	// could not be killed must not block the run, hence the timer.
	a.ResumeReading()
	abandon := func() {
		a.transport.Close()
		for _, log := range a.o.Logs {
			log.Close()
		}
	}
	timer := time.AfterFunc(a.o.Grace, abandon)
	readers.Wait()
	if !timer.Stop() {
		a.note(note{Code: "pipe-open",
			Text: "acp-test stopped reading the agent's output, which a process that it could not kill keeps open"})
	}
	abandon()
	for _, s := range survivors {
		a.t.Event(a.conn, transcript.Process, transcript.Descendant, "", s)
	}
	a.mu.Lock()
	a.exit, a.survivors = exit, survivors
	a.stdinClosed = true
	a.mu.Unlock()
	a.transport.CloseSend()
	a.t.Event(a.conn, transcript.Process, transcript.Exited, "", exit)
	close(a.exited)
}

// PID returns the agent's process id; 0 for an agent without its own process.
func (a *Agent) PID() int {
	if a.o.Process == nil {
		return 0
	}
	return a.o.Process.PID()
}

// HasProcess reports whether the agent can be signalled and killed.
func (a *Agent) HasProcess() bool { return a.o.Process != nil }

// Conn returns the number of this agent in its run.
func (a *Agent) Conn() int { return a.conn }

// RunID returns the name of the run that the agent's processes belong to.
func (a *Agent) RunID() string { return a.o.RunID }

// Transport returns the transport that the agent was made with.
func (a *Agent) Transport() Transport { return a.transport }

// Transcript returns the log of the run.
func (a *Agent) Transcript() *transcript.Transcript { return a.t }

// Exited returns a channel that is closed when the agent and its descendants are
// gone and all their output is in the transcript.
func (a *Agent) Exited() <-chan struct{} { return a.exited }

// Exit returns how the agent ended. ok is false while it runs.
func (a *Agent) Exit() (exit Exit, ok bool) {
	if !done(a.exited) {
		return Exit{}, false
	}
	return a.exit, true
}

// done reports whether a channel is closed.
func done(ch <-chan struct{}) bool {
	select {
	case <-ch:
		return true
	default:
		return false
	}
}

// within reports whether a channel is closed within d, or before ctx ends. Time in which processes of this machine
// waited for a processor does not count, up to three times d.
func within(ctx context.Context, ch <-chan struct{}, d time.Duration) bool {
	began, before := time.Now(), process.Starved()
	for left := d; left > 0 && !done(ch); left = min(d+process.Starved()-before, 4*d) - time.Since(began) {
		select {
		case <-ch:
		case <-time.After(left):
		case <-ctx.Done():
			return done(ch)
		}
	}
	return done(ch)
}

// Descendants lists the living processes of the agent's tree except the agent
// itself; after the exit, those that outlived it. An agent without a process has
// none.
func (a *Agent) Descendants() []ProcessInfo {
	if _, gone := a.Exit(); gone {
		return a.survivors
	}
	if a.o.Process == nil {
		return nil
	}
	return a.o.Process.Descendants()
}

// Footprint returns the sum of the resources that the agent's processes hold. ok
// is false if it is unknown: the agent has no process here, or this is not Linux.
func (a *Agent) Footprint() (sum process.Footprint, ok bool) {
	pids := append(lists.Map(a.Descendants(), func(d ProcessInfo) int { return d.PID }), a.PID())
	return process.FootprintOf(slices.DeleteFunc(pids, func(pid int) bool { return pid == 0 }))
}

// Busy reports whether a thread of the agent's tree runs or waits for a processor
// or a disk, so that more output may come. It is false without a process, after
// the exit, and on systems other than Linux.
func (a *Agent) Busy() bool {
	if _, gone := a.Exit(); gone || a.o.Process == nil {
		return false
	}
	return process.Busy(a.PID())
}

// CloseStdin closes the agent's input, as an editor that quits does. It writes
// held frames first. A blocked write ends with an error.
func (a *Agent) CloseStdin() { a.closeStdin(closing{Act: true}) }

// closing has the details of an entry stdin-closed. Act says that stdin was closed
// before the end of the run, when the agent may have been working.
type closing struct {
	Act bool `json:"act,omitempty"`
}

func (a *Agent) closeStdin(why closing) {
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	_ = a.Flush(ctx) // ignore the error: a blocked pipe is closed anyway
	a.mu.Lock()
	was := a.stdinClosed
	a.stdinClosed = true
	a.mu.Unlock()
	if !was {
		a.t.Event(a.conn, transcript.Process, transcript.StdinClosed, "", why)
		a.transport.CloseSend()
	}
}

// Signal sends a signal to the agent's own process only.
func (a *Agent) Signal(s syscall.Signal) error {
	if _, gone := a.Exit(); gone {
		return ErrExited
	}
	if a.o.Process == nil {
		return ErrNoProcess
	}
	return signal(a.t, a.conn, a.o.Process, s, false)
}

// signal logs and sends a signal.
func signal(t *transcript.Transcript, conn int, p Process, s syscall.Signal, group bool) error {
	t.Event(conn, transcript.Process, transcript.Signalled, "", signalled{Signal: process.SignalName(s), Group: group})
	if err := p.Signal(s, group); err != nil {
		return fmt.Errorf("sending %s to the agent: %w", process.SignalName(s), err)
	}
	return nil
}

type signalled struct {
	Signal string `json:"signal"`
	Group  bool   `json:"group,omitempty"`
	// Server says that the signal is a server's normal end, as the end of input
	// is for other agents.
	Server bool `json:"server,omitempty"`
}

// Kill ends the agent and its whole tree with SIGKILL, without waiting. For an
// agent without a process it ends the connection.
func (a *Agent) Kill() {
	if _, gone := a.Exit(); gone {
		return
	}
	if a.o.Process == nil {
		a.ResumeReading()
		a.transport.Close()
		return
	}
	a.t.Event(a.conn, transcript.Process, transcript.Signalled, "", signalled{Signal: "SIGKILL", Group: true})
	a.o.Process.Kill()
}

// Cut is Kill for an agent that sends too much: it also stops reading from the
// agent.
func (a *Agent) Cut() {
	a.deaf.Store(true)
	a.Kill()
}

// WasCut reports whether Cut was called. The editor then answers no more
// requests.
func (a *Agent) WasCut() bool { return a.deaf.Load() }

// Stop ends the agent. It closes stdin, sends SIGTERM to the agent's process
// group if it still runs after the grace period, and SIGKILL to the whole tree
// after another one. When ctx ends, it sends SIGKILL at once. For an agent
// without a process it ends the connection instead of sending signals. Each step
// is an entry. Stop returns when nothing of the agent is left; further calls
// return the same.
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
	a.ResumeReading()
	if !done(a.ended) {
		s.Steps = append(s.Steps, "stdin-closed")
		a.closeStdin(closing{})
		if a.o.Server && a.o.Process != nil {
			s.Steps = []string{"terminated"}
			a.t.Event(a.conn, transcript.Process, transcript.Signalled, "", signalled{Signal: "SIGTERM", Server: true})
			_ = a.o.Process.Signal(syscall.SIGTERM, false)
		}
		ended := within(ctx, a.ended, a.o.Grace)
		if !ended && a.o.Process == nil {
			s.Steps = append(s.Steps, "closed")
			a.Kill()
		} else if !ended && ctx.Err() == nil {
			s.Steps = append(s.Steps, "SIGTERM")
			_ = signal(a.t, a.conn, a.o.Process, syscall.SIGTERM, true)
			within(ctx, a.ended, a.o.Grace)
		}
		if a.o.Process != nil && !done(a.ended) {
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

// AtEnd makes Stop call f once the agent is gone, before it returns.
func (a *Agent) AtEnd(f func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ends = append(a.ends, f)
}

// note is a note of the agent's reader: the details of a transcript.Noted.
type note struct {
	Code    string `json:"code"`
	Text    string `json:"text"`
	Request int    `json:"request,omitempty"`
}

func (a *Agent) note(n note) { a.t.Event(a.conn, transcript.Note, transcript.Noted, "", n) }

// Format prints the agent by its connection and process.
func (a *Agent) Format(s fmt.State, _ rune) {
	fmt.Fprintf(s, "agent %d (pid %d)", a.conn, a.PID())
}
