package transport

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/wire"
)

// Pace is how long an editor takes to read a line and to answer a request. Each
// function is called for every line or request; nil means no time. A function is
// called by one goroutine at a time.
type Pace struct {
	// Read returns the time to wait before the agent's next line is read.
	Read func() time.Duration
	// Answer returns the time to wait before a request of the agent is answered.
	// It does not apply to a permission with its own delay.
	Answer func() time.Duration
}

// SetPace sets the pace from now on. The output of an agent that has ended is
// read at once.
func (a *Agent) SetPace(p Pace) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.pace = p
}

// AnswerDelay returns how long to wait before a request is answered.
func (a *Agent) AnswerDelay() time.Duration {
	return a.delay(func(p Pace) func() time.Duration { return p.Answer })
}

// delay returns the time from one function of the pace.
func (a *Agent) delay(of func(Pace) func() time.Duration) time.Duration {
	a.mu.Lock()
	f := of(a.pace)
	a.mu.Unlock()
	if f == nil {
		return 0
	}
	return f()
}

// Receive makes f the only receiver of the agent's frames. f gets each frame
// once, in order, beginning with those already there. It runs in the goroutine
// that reads and must not wait for another frame.
func (a *Agent) Receive(f func(transcript.Entry)) {
	a.receiving.Lock()
	defer a.receiving.Unlock()
	a.receive = f
	for _, seq := range a.early {
		f(a.t.At(seq))
	}
	a.early = nil
}

// AllReceived returns a channel that is closed when the receiver has had the
// agent's last frame.
func (a *Agent) AllReceived() <-chan struct{} { return a.readAll }

func (a *Agent) deliver(e transcript.Entry) {
	a.receiving.Lock()
	defer a.receiving.Unlock()
	if a.receive == nil {
		a.early = append(a.early, e.Seq)
		return
	}
	a.receive(e)
}

// read appends every line of the agent before anyone acts on it.
func (a *Agent) read() {
	defer close(a.readAll)
	for {
		time.Sleep(a.delay(func(p Pace) func() time.Duration { return p.Read }))
		a.pass()
		line, err := a.transport.Receive()
		a.pass() // the wait may have begun before it was paused
		if a.deaf.Load() {
			a.transport.Close()
			return
		}
		if err != nil {
			if !errors.Is(err, io.EOF) && !errors.Is(err, os.ErrDeadlineExceeded) {
				a.note(note{Code: "read-failed", Text: "reading the agent's output: " + err.Error()})
			}
			return
		}
		a.deliver(a.append(line))
	}
}

// append appends the entry of a line.
func (a *Agent) append(line wire.Line) transcript.Entry {
	if own, ok := a.transport.(Appender); ok {
		return own.Append(a.t, a.conn, line)
	}
	if line.Size <= len(line.Bytes) {
		line.Size = 0
	}
	e := a.t.AppendFrame(a.conn, transcript.Agent, bytes.Clone(line.Bytes), line.Size)
	if !line.Terminated {
		a.note(note{Code: "unterminated-line", Request: e.Seq, Text: "the agent's output ended in the middle of a line"})
	}
	return e
}

// Limits of the stderr output that is kept of an agent; the rest is read and
// dropped. It is for people, and no log of an agent may fill the disk.
const (
	stderrBytes  = 64 << 20
	stderrChunks = 100_000
)

func (a *Agent) readLog(log io.Reader) {
	buf := make([]byte, 32<<10)
	size, chunks := 0, 0
	for {
		n, err := log.Read(buf)
		if n > 0 && size <= stderrBytes && chunks <= stderrChunks {
			size, chunks = size+n, chunks+1
			if size > stderrBytes || chunks > stderrChunks {
				a.note(note{Code: "stderr-cut", Text: fmt.Sprintf("the agent wrote more than %d MiB or %d pieces to stderr; "+
					"the rest is not kept", stderrBytes>>20, stderrChunks)})
			} else {
				a.t.Append(transcript.Entry{Conn: a.conn, Source: transcript.Stderr, Kind: transcript.Chunk,
					Raw: bytes.Clone(buf[:n])})
			}
		}
		if err != nil {
			return
		}
	}
}

// pass waits while reading is paused.
func (a *Agent) pass() {
	for {
		a.mu.Lock()
		paused := a.paused
		a.mu.Unlock()
		if paused == nil {
			return
		}
		<-paused
	}
}

// PauseReading makes the editor a slow reader: it reads nothing more of the
// agent's output, except bytes already in its buffer, until ResumeReading.
// Nothing is lost.
func (a *Agent) PauseReading() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.paused == nil {
		a.paused = make(chan struct{})
	}
}

// ResumeReading ends PauseReading.
func (a *Agent) ResumeReading() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.paused != nil {
		close(a.paused)
		a.paused = nil
	}
}

// Stall pauses reading for a time. It returns at once.
func (a *Agent) Stall(d time.Duration) {
	a.PauseReading()
	time.AfterFunc(d, a.ResumeReading)
}

// CatchUp waits until the editor has read all that the agent has written by now,
// so that the agent's other effects, such as a file it wrote, do not overtake its
// messages. It returns at once if the agent has ended, or if that cannot be
// known, as on Windows.
func (a *Agent) CatchUp(ctx context.Context) {
	done, ok := a.transport.Drained()
	if !ok {
		return
	}
	select {
	case <-done:
	case <-a.exited:
	case <-ctx.Done():
	}
}
