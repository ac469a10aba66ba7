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
	// ErrExited means that a frame was not sent because the agent had exited.
	ErrExited = process.ErrExited
	// ErrStdinClosed means that a frame was not sent because the agent's input was already closed.
	ErrStdinClosed = errors.New("the agent's stdin is closed")
	// ErrNoProcess means that a call needs a process of the agent, but the agent has none on this machine.
	ErrNoProcess = errors.New("the agent has no process here")
)

// Exit describes how an agent ended.
type Exit = process.Exit

// Process is the process of an agent. It can be signalled and killed.
type Process = process.Process

// ProcessInfo describes a process in an agent's process tree.
type ProcessInfo = process.Info

// Shutdown describes how an agent was stopped.
type Shutdown struct {
	Exit Exit
	// Steps lists the steps that Stop took, in order. For a process with a pipe they are "stdin-closed", "SIGTERM" and
	// "SIGKILL". For a server they are "terminated", "SIGTERM" (to its group) and "SIGKILL". For an agent without a
	// process they are "stdin-closed" and "closed". Steps is empty if the agent had already exited.
	Steps []string
	// Survivors lists the processes that outlived the agent. Stop has killed them.
	Survivors []ProcessInfo
	Took      time.Duration
}

// Options are the settings of an agent. The zero value is for an agent without a process.
type Options struct {
	// Process is the agent's running process; nil if it has none on this machine.
	Process Process
	// Logs are the outputs of the process in addition to its frames, such as stderr.
	Logs []io.ReadCloser
	// Server means that the process accepts any connection and does not end with its input. Stop therefore sends SIGTERM
	// immediately.
	Server bool
	// RunID identifies the run to which the processes belong. If it is "", New generates one.
	RunID string
	// Grace is the timeout of each step of Stop; 0 means 2 s.
	Grace time.Duration
	// Through wraps the transport, to insert something between the agent and the editor. nil leaves the transport
	// unchanged.
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
	ended  <-chan struct{} // closed when the agent's own process has ended
	exited chan struct{}   // closed when the agent and all its descendants have ended

	deaf atomic.Bool // the agent's output is no longer read

	mu          sync.Mutex
	stdinClosed bool
	shape       Shape
	held        []heldFrame // frames of a coalescing shape that are not written yet
	pace        Pace
	paused      chan struct{} // closed by ResumeReading; nil while reading is not paused
	ends        []func()      // functions that Stop calls after the agent has ended
	exit        Exit
	survivors   []ProcessInfo
	stopped     chan struct{}
	shutdown    Shutdown

	receiving sync.Mutex // locked while a frame is appended and passed to the receiver
	receive   func(transcript.Entry)
	early     []int // Seqs of frames that came before there was a receiver
	readAll   chan struct{}
}

// defaultGrace is the default timeout of each step of Stop.
const defaultGrace = 2 * time.Second

// New returns an agent with a transport. It is connection conn of the run with transcript t.
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

// waitForEnd waits for the end of the agent, and logs it after all of the agent's output.
func (a *Agent) waitForEnd(readers *sync.WaitGroup) {
	exit, survivors := Exit{Code: -1, Closed: true}, []ProcessInfo(nil)
	if a.o.Process != nil {
		exit, survivors = a.o.Process.Wait()
	} else {
		<-a.readAll
	}
	a.SetPace(Pace{})
	// Read the remaining output before logging the exit. The processes that hold the other ends are dead, so the end of
	// the file comes soon. The timer is needed because a process that could not be killed must not block the run.
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

// PID returns the agent's process id, or 0 if the agent has no process of its own.
func (a *Agent) PID() int {
	if a.o.Process == nil {
		return 0
	}
	return a.o.Process.PID()
}

// HasProcess reports whether the agent has a process that can be signalled and killed.
func (a *Agent) HasProcess() bool { return a.o.Process != nil }

// Conn returns the number of this agent's connection in its run.
func (a *Agent) Conn() int { return a.conn }

// RunID returns the id of the run to which the agent's processes belong.
func (a *Agent) RunID() string { return a.o.RunID }

// Transport returns the agent's transport, including any wrapper.
func (a *Agent) Transport() Transport { return a.transport }

// Transcript returns the log of the run.
func (a *Agent) Transcript() *transcript.Transcript { return a.t }

// Exited returns a channel that is closed when the agent and its descendants are
// gone and all their output is in the transcript.
func (a *Agent) Exited() <-chan struct{} { return a.exited }

// Exit returns how the agent ended. ok is false while it is running.
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

// within waits for a channel to be closed, until d has passed or ctx ends, and reports whether the channel is closed.
// Time in which processes of this machine waited for a processor does not count, up to three times d.
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

// Descendants lists the running processes of the agent's tree, without the agent itself. After the agent's exit, it
// lists those that outlived the agent. It returns nil for an agent without a process.
func (a *Agent) Descendants() []ProcessInfo {
	if _, gone := a.Exit(); gone {
		return a.survivors
	}
	if a.o.Process == nil {
		return nil
	}
	return a.o.Process.Descendants()
}

// Footprint returns the total resources that the agent's processes use. ok is false if that is unknown, because the
// agent has no process on this machine or the system is not Linux.
func (a *Agent) Footprint() (sum process.Footprint, ok bool) {
	pids := append(lists.Map(a.Descendants(), func(d ProcessInfo) int { return d.PID }), a.PID())
	return process.FootprintOf(slices.DeleteFunc(pids, func(pid int) bool { return pid == 0 }))
}

// Busy reports whether a thread of the agent's process tree is running or is waiting for a processor or a disk. More
// output may then come. It is false without a process, after the exit, and on systems other than Linux.
func (a *Agent) Busy() bool {
	if _, gone := a.Exit(); gone || a.o.Process == nil {
		return false
	}
	return process.Busy(a.PID())
}

// CloseStdin closes the agent's input, as an editor that quits does. It first writes frames that are held back. A
// blocked write then returns an error.
func (a *Agent) CloseStdin() { a.closeStdin(closing{Act: true}) }

// closing has the details of a stdin-closed entry. Act means that stdin was closed before the end of the run, when
// the agent may have been working.
type closing struct {
	Act bool `json:"act,omitempty"`
}

func (a *Agent) closeStdin(why closing) {
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	_ = a.Flush(ctx) // ignore the error: a blocked pipe is closed in any case
	a.mu.Lock()
	was := a.stdinClosed
	a.stdinClosed = true
	a.mu.Unlock()
	if !was {
		a.t.Event(a.conn, transcript.Process, transcript.StdinClosed, "", why)
		a.transport.CloseSend()
	}
}

// Signal sends a signal to the agent's own process, but not to its descendants.
func (a *Agent) Signal(s syscall.Signal) error {
	if _, gone := a.Exit(); gone {
		return ErrExited
	}
	if a.o.Process == nil {
		return ErrNoProcess
	}
	return signal(a.t, a.conn, a.o.Process, s, false)
}

// signal logs a signal and sends it.
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
	// Server means that the signal is the normal way to stop a server, like the end of input for other agents.
	Server bool `json:"server,omitempty"`
}

// Kill sends SIGKILL to the agent and its whole process tree, without waiting. For an agent without a process, it
// closes the connection.
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

// Cut kills an agent that sends too much, like Kill. It also stops reading the agent's output.
func (a *Agent) Cut() {
	a.deaf.Store(true)
	a.Kill()
}

// WasCut reports whether Cut was called. The editor then answers no more
// requests.
func (a *Agent) WasCut() bool { return a.deaf.Load() }

// Stop ends the agent in steps. It first closes stdin. If the agent still runs after the grace period, Stop sends
// SIGTERM to the agent's process group. After another grace period, it sends SIGKILL to the whole tree. When ctx
// ends, it sends SIGKILL immediately. For an agent without a process, Stop closes the connection instead of sending
// signals. Each step is logged. Stop returns when no process of the agent is left. Later calls return the same
// result.
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

// AtEnd makes Stop call f after the agent has ended, before Stop returns.
func (a *Agent) AtEnd(f func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ends = append(a.ends, f)
}

// note is a note about the agent's connection: the details of a transcript.Noted entry.
type note struct {
	Code    string `json:"code"`
	Text    string `json:"text"`
	Request int    `json:"request,omitempty"`
}

func (a *Agent) note(n note) { a.t.Event(a.conn, transcript.Note, transcript.Noted, "", n) }

// Format implements fmt.Formatter and prints only the agent's connection and process id.
func (a *Agent) Format(s fmt.State, _ rune) {
	fmt.Fprintf(s, "agent %d (pid %d)", a.conn, a.PID())
}
