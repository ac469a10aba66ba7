package transport

import (
	"bytes"
	"io"
	"maps"
	"sync"
	"syscall"

	"github.com/acp-test/acp-test/internal/process"
	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/wire"
)

// Lend returns an agent whose process also serves other connections, before and
// after this one. It is connection conn of the run with transcript t. find is
// called with the first frame. It returns a process that was just started or
// has answered the same frame before. It also returns the number of the
// process's earlier connections. When the connection ends, back gets the
// process, unless find failed. fit is false if this connection left something
// open, so that the next one would find the process in another state. through
// is as in Command.
func Lend(t *transcript.Transcript, conn int, find func(first []byte) (s *Shared, before int, err error),
	back func(s *Shared, fit bool), through func(Transport) Transport) *Agent {
	l := &lease{t: t, conn: conn, find: find, back: back, bound: make(chan struct{}), want: make(chan struct{}),
		lines: make(chan wire.Line), again: make(chan wire.Line, 1), over: make(chan struct{}), ended: make(chan struct{}),
		last: make(chan struct{}), stderr: newMemory(), open: map[party]string{}, spoke: map[string]bool{}}
	return New(t, conn, l, Options{Process: l, Logs: []io.ReadCloser{readCloser{l.stderr}}, Through: through})
}

type readCloser struct{ m *memory }

func (r readCloser) Read(b []byte) (int, error) { return r.m.Read(b) }
func (r readCloser) Close() error               { return r.m.CloseRead() }

// party identifies an open request by its sender and id.
type party struct {
	from transcript.Source
	id   wire.ID
}

// lease is a connection to a shared process. It implements Transport and
// Process.
type lease struct {
	t    *transcript.Transcript
	conn int
	find func(first []byte) (*Shared, int, error)
	back func(s *Shared, fit bool)

	bound chan struct{} // closed when the process was found
	want  chan struct{} // receives when the reader is ready for a line
	lines chan wire.Line
	again chan wire.Line // the stored answer to the first frame
	over  chan struct{}  // closed when the connection ends
	ended chan struct{}  // closed when the process was returned or has ended
	last  chan struct{}  // closed when the process has written its last line
	once  sync.Once
	left  sync.Once

	stderr    *memory
	shared    *Shared
	former    map[string]bool // sessions of earlier connections of the process
	exit      Exit
	survivors []ProcessInfo

	mu     sync.Mutex
	open   map[party]string // the methods of unanswered requests
	spoke  map[string]bool  // the sessions in this connection's frames
	garble bool             // a line that is not a frame was sent or received
}

// wanted waits until the reader is ready for a line. It returns false if the
// connection ends first.
func (l *lease) wanted() bool {
	select {
	case <-l.want:
		return true
	case <-l.over:
		return false
	}
}

// note tracks open requests and sessions, and reports whether the frame belongs
// to this connection. It returns false for a late frame of the agent in a
// session of an earlier connection.
func (l *lease) note(from transcript.Source, line []byte) bool {
	f := l.shared.frame(from, line)
	l.mu.Lock()
	defer l.mu.Unlock()
	method, asked := f.Method, party{transcript.Agent, f.ID} // a response belongs to a request of the other side
	if from == transcript.Agent {
		asked.from = transcript.Editor
	}
	if f.Kind == wire.Response {
		method = l.open[asked]
	}
	session := l.shared.classifier.Session(method, f).Str()
	if f.Kind == wire.Notification && from == transcript.Agent && l.former[session] && !l.spoke[session] {
		return false
	}
	if session != "" {
		l.spoke[session] = true
	}
	switch f.Kind {
	case wire.Request:
		l.open[party{from, f.ID}] = method
	case wire.Response:
		if from == transcript.Agent {
			l.shared.answered(f, line)
		}
		delete(l.open, asked)
	case wire.Notification:
	default:
		l.garble = true
	}
	return true
}

// bind finds a process for the first frame. done reports whether the process
// has answered this frame before.
func (l *lease) bind(first []byte) (done bool, err error) {
	s, before, err := l.find(bytes.TrimRight(first, "\n"))
	if err != nil {
		return false, err
	}
	l.shared = s
	answer := s.Greeted()
	if answer == nil {
		s.mu.Lock()
		s.asked = s.frame(transcript.Editor, first).ID
		s.mu.Unlock()
	} else {
		l.again <- wire.Line{Bytes: answer, Terminated: true}
	}
	about := s.started
	about.Served = before
	l.t.Event(l.conn, transcript.Process, transcript.Started, "", about)
	s.mu.Lock()
	l.former = s.former
	if s.now = l; s.spoken {
		close(l.last)
	}
	s.mu.Unlock()
	close(l.bound)
	go func() {
		select {
		case <-s.exited:
			l.leave(s.exit, s.survivors)
		case <-l.over:
		}
	}()
	return answer != nil, nil
}

// taken reports whether a process was found for this connection.
func (l *lease) taken() bool { return done(l.bound) }

func (l *lease) Send(b []byte) (waited bool, err error) {
	if !l.taken() {
		done, err := l.bind(b)
		if err != nil {
			l.end(false)
		}
		if done || err != nil {
			return false, err
		}
	}
	for line := range bytes.Lines(b) {
		l.note(transcript.Editor, line)
	}
	return l.shared.transport.Send(b)
}

func (l *lease) Receive() (wire.Line, error) {
	select {
	case <-l.over:
		return wire.Line{}, io.EOF
	case <-l.bound:
	}
	select {
	case line := <-l.again: // the stored answer
		return line, nil
	default:
	}
	select {
	case l.want <- struct{}{}:
	case <-l.last:
		return wire.Line{}, io.EOF
	case <-l.over:
		return wire.Line{}, io.EOF
	}
	select {
	case line := <-l.lines:
		return line, nil
	case <-l.last:
	case <-l.over:
	}
	return wire.Line{}, io.EOF
}

// CloseSend ends the connection and returns the process. If the process has
// already ended, its remaining output is still read.
func (l *lease) CloseSend() error {
	if !l.taken() || !done(l.shared.process.Ended()) {
		l.end(true)
	}
	return nil
}

// Close ends the connection and makes the process unfit for another one.
func (l *lease) Close() error {
	l.end(false)
	return nil
}

func (l *lease) end(fit bool) {
	l.once.Do(func() {
		if l.taken() {
			s := l.shared
			s.mu.Lock()
			s.now = nil
			s.mu.Unlock()
			l.mu.Lock()
			fit = fit && len(l.open) == 0 && !l.garble
			former := maps.Clone(l.former)
			maps.Copy(former, l.spoke)
			l.mu.Unlock()
			s.mu.Lock()
			s.former = former
			s.mu.Unlock()
			defer func() { l.back(s, fit && s.Fit()) }()
		}
		close(l.over)
		l.stderr.Close()
		l.leave(Exit{Code: -1, Closed: true}, nil)
	})
}

// leave records how the process ended, as far as this connection knows.
func (l *lease) leave(exit Exit, left []ProcessInfo) {
	l.left.Do(func() {
		l.exit, l.survivors = exit, left
		close(l.ended)
	})
}

func (l *lease) Unread() (n int, ok bool) {
	if !l.taken() {
		return 0, false
	}
	return l.shared.transport.Unread()
}

// Drained returns the result of the shared transport's Drained. It is exact,
// because the shared process is read only when a reader is waiting.
func (l *lease) Drained() (done <-chan struct{}, ok bool) {
	if !l.taken() {
		return nil, false
	}
	return l.shared.transport.Drained()
}

func (l *lease) PID() int {
	if !l.taken() {
		return 0
	}
	return l.shared.process.PID()
}

// Signal returns ErrNoProcess, because other connections use the process too.
func (l *lease) Signal(syscall.Signal, bool) error { return ErrNoProcess }

// Kill sends SIGKILL to the process, which also ends the connection.
func (l *lease) Kill() {
	if l.taken() {
		l.shared.process.Kill()
		return
	}
	l.end(false)
}

func (l *lease) Descendants() []ProcessInfo {
	if !l.taken() {
		return nil
	}
	return l.shared.process.Descendants()
}

func (l *lease) Ended() <-chan struct{} { return l.ended }

func (l *lease) Wait() (Exit, []process.Info) {
	<-l.ended
	return l.exit, l.survivors
}
