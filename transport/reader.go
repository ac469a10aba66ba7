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
// function is called for every line or request; nil means no delay. A function
// is never called by two goroutines at once.
type Pace struct {
	// Read returns the delay before the agent's next line is read.
	Read func() time.Duration
	// Answer returns the delay before a request of the agent is answered. It does
	// not apply to a permission request that has a delay of its own.
	Answer func() time.Duration
}

// SetPace sets the pace for future lines and requests. The output of an agent
// that has ended is read without delay.
func (a *Agent) SetPace(p Pace) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.pace = p
}

// AnswerDelay returns the delay before the next answer to a request.
func (a *Agent) AnswerDelay() time.Duration {
	return a.delay(func(p Pace) func() time.Duration { return p.Answer })
}

// delay calls one function of the pace and returns its result. It returns 0 if
// the function is nil.
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
// once, in order, including those that came before. It is called in the
// goroutine that reads, so it must not wait for another frame.
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

// Delivered waits until the receiver has had each frame that is in the transcript. The receiver must not call it.
func (a *Agent) Delivered() {
	a.receiving.Lock()
	defer a.receiving.Unlock()
}

// deliver appends a line of the agent to the transcript and passes it to the receiver.
func (a *Agent) deliver(line wire.Line) {
	a.receiving.Lock()
	defer a.receiving.Unlock()
	e := a.append(line)
	if a.receive == nil {
		a.early = append(a.early, e.Seq)
		return
	}
	a.receive(e)
}

// read reads the agent's lines. It appends each line to the transcript before
// passing it to the receiver.
func (a *Agent) read() {
	defer close(a.readAll)
	for {
		time.Sleep(a.delay(func(p Pace) func() time.Duration { return p.Read }))
		a.pass()
		line, err := a.transport.Receive()
		a.pass() // reading may have been paused during Receive
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
		a.deliver(line)
	}
}

// append appends a line of the agent to the transcript.
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

// Limits for the stderr output of an agent that is logged; the rest is read and
// dropped. The output is for users, and an agent must not be able to fill the
// disk.
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

// pass waits for as long as reading is paused.
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

// PauseReading makes the editor stop reading the agent's output until
// ResumeReading is called. Bytes that are already in the editor's buffer are
// still read. Nothing is lost.
func (a *Agent) PauseReading() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.paused == nil {
		a.paused = make(chan struct{})
	}
}

// ResumeReading makes the editor read the agent's output again.
func (a *Agent) ResumeReading() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.paused != nil {
		close(a.paused)
		a.paused = nil
	}
}

// Stall pauses reading for the duration d. It returns immediately.
func (a *Agent) Stall(d time.Duration) {
	a.PauseReading()
	time.AfterFunc(d, a.ResumeReading)
}

// CatchUp waits until the editor has read everything that the agent has written
// so far. Other effects of the agent, such as a file that it wrote, then cannot
// overtake its messages. CatchUp returns immediately if the agent has ended, or
// if the amount of unread output is unknown, as on Windows.
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
