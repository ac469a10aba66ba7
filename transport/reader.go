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

// Pace is how long an editor takes where editors take time. Each function is
// asked for every line read and every request answered; nil takes none. A
// function is called by one goroutine at a time.
type Pace struct {
	// Read is waited before the next line of the agent is taken.
	Read func() time.Duration
	// Answer is waited before a request of the agent is answered. A
	// permission with a delay of its own keeps that.
	Answer func() time.Duration
}

// SetPace sets the pace from now on. An agent that has ended is read at once.
func (a *Agent) SetPace(p Pace) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.pace = p
}

// AnswerDelay is how long the pace says to wait before a request is answered.
func (a *Agent) AnswerDelay() time.Duration {
	return a.delay(func(p Pace) func() time.Duration { return p.Answer })
}

// delay asks one function of the pace.
func (a *Agent) delay(of func(Pace) func() time.Duration) time.Duration {
	a.mu.Lock()
	f := of(a.pace)
	a.mu.Unlock()
	if f == nil {
		return 0
	}
	return f()
}

// Receive makes f the receiver of the agent's frames, those that have come
// already first, in order, each once. f runs in the goroutine that reads and
// must not wait for another frame. There is one receiver.
func (a *Agent) Receive(f func(transcript.Entry)) {
	a.receiving.Lock()
	defer a.receiving.Unlock()
	a.receive = f
	for _, seq := range a.early {
		f(a.t.At(seq))
	}
	a.early = nil
}

// AllReceived is closed when the receiver has had the agent's last frame.
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

// read appends every line of the agent before anything is done about it.
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

// append makes the entry of a line.
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

// What an agent may write to stderr before the rest is read and not kept: it is for
// people, and no log of an agent may fill the disk.
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

// PauseReading makes the editor a slow reader: from now on nothing more is
// taken from the agent's output, except for the bytes that the reader already holds.
// ResumeReading ends it. Nothing is lost in between.
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

// Stall is PauseReading for a time. It returns at once.
func (a *Agent) Stall(d time.Duration) {
	a.PauseReading()
	time.AfterFunc(d, a.ResumeReading)
}

// CatchUp waits until the editor has read all that the agent has written by now,
// so that what it did elsewhere, such as a file it left, does not overtake its
// messages. It returns at once where that cannot be told, as on Windows, and
// where the agent has ended.
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
