package transport

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"sync"
	"syscall"
	"time"

	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/wire"
)

// Shared is an agent process that serves several connections, one after the
// other. Each connection begins with the same frame. The process gets that
// frame only once; later connections get the stored answer. The caller must
// call Stop.
type Shared struct {
	classifier transcript.Classifier
	process    Process
	transport  Transport
	stderr     io.ReadCloser
	grace      time.Duration
	started    started

	exited    chan struct{} // closed when the process and its descendants have ended
	exit      Exit
	survivors []ProcessInfo
	silent    chan struct{} // closed when stdout and stderr have ended

	mu      sync.Mutex
	now     *lease // current connection; nil between two connections
	asked   wire.ID
	answer  []byte          // answer to the first frame
	stray   bool            // the process sent a request between two connections
	former  map[string]bool // sessions of ended connections
	spoken  bool            // the output of the process has ended
	stopped sync.Once
}

// StartShared starts a process for use with Lend. ctx limits only the start.
func StartShared(ctx context.Context, c Command, classifier transcript.Classifier) (*Shared, error) {
	s := &Shared{classifier: classifier, exited: make(chan struct{}), silent: make(chan struct{}),
		former: map[string]bool{}}
	p, files, err := c.start(ctx, 0, func(e started) { s.started = e })
	if err != nil {
		return nil, err
	}
	s.process, s.stderr, s.grace = p, files.FromStderr, cmp.Or(max(c.Grace, 0), defaultGrace)
	s.transport = Pipes(files.ToStdin, files.FromStdout, c.MaxLine)
	var readers sync.WaitGroup
	readers.Go(s.read)
	readers.Go(s.readStderr)
	go func() {
		readers.Wait()
		close(s.silent)
	}()
	go func() {
		s.exit, s.survivors = p.Wait()
		close(s.exited)
		timer := time.AfterFunc(s.grace, s.close)
		<-s.silent
		timer.Stop()
		s.close()
	}()
	return s, nil
}

func (s *Shared) close() {
	s.transport.CloseSend()
	s.transport.Close()
	s.stderr.Close()
}

// lent returns the current connection of the process, or nil if it has none.
func (s *Shared) lent() *lease {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now
}

// read passes each line of the process to the current connection. It waits
// until that connection's reader has handled the previous line, so a slow
// reader also slows down the process.
func (s *Shared) read() {
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.spoken = true
		if s.now != nil {
			close(s.now.last)
		}
	}()
	var ready *lease
	for {
		if l := s.lent(); l != nil && l != ready && l.wanted() {
			ready = l
		}
		line, err := s.transport.Receive()
		if err != nil {
			return
		}
		line.Bytes = bytes.Clone(line.Bytes)
		l := s.lent()
		if l == nil || l != ready && !l.wanted() {
			s.unclaimed(line)
			continue
		}
		if ready = l; !l.note(transcript.Agent, line.Bytes) {
			continue
		}
		ready = nil
		select {
		case l.lines <- line:
		case <-l.over:
			s.unclaimed(line)
		}
	}
}

// unclaimed handles a line that came while there was no connection. If the line
// is a request, it gets no answer, and the process is no longer fit for other
// connections.
func (s *Shared) unclaimed(line wire.Line) {
	if s.frame(transcript.Agent, line.Bytes).Kind == wire.Request {
		s.mu.Lock()
		s.stray = true
		s.mu.Unlock()
	}
}

func (s *Shared) frame(from transcript.Source, line []byte) wire.Frame {
	v, err := wire.Parse(line)
	return s.classifier.Frame(from, line, v, err)
}

func (s *Shared) readStderr() {
	buf := make([]byte, 32<<10)
	for {
		n, err := s.stderr.Read(buf)
		if l := s.lent(); l != nil && n > 0 {
			_, _ = l.stderr.Write(buf[:n]) // ignore the error: the connection may have ended
		}
		if err != nil {
			if l := s.lent(); l != nil {
				l.stderr.Close()
			}
			return
		}
	}
}

// Greeted returns the stored answer to the first frame. It returns nil if there
// is none yet, or if the answer was an error.
func (s *Shared) Greeted() []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.answer
}

// Fit reports whether the process runs and can serve another connection.
func (s *Shared) Fit() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !done(s.process.Ended()) && !done(s.silent) && s.answer != nil && !s.stray
}

// Stop ends the process in steps. It first closes the input. After the grace
// period it sends SIGTERM to the process group, and after another one SIGKILL
// to the whole tree. When ctx ends, it sends SIGKILL immediately. It returns
// the processes that outlived the agent, which it has killed.
func (s *Shared) Stop(ctx context.Context) []ProcessInfo {
	s.stopped.Do(func() {
		s.transport.CloseSend()
		ended := s.process.Ended()
		if !within(ctx, ended, s.grace) && ctx.Err() == nil {
			_ = s.process.Signal(syscall.SIGTERM, true) // ignore the error: the process may have ended
			within(ctx, ended, s.grace)
		}
		if !done(ended) {
			s.process.Kill()
		}
	})
	<-s.exited
	return s.survivors
}

// answered stores the answer to the first frame. It ignores other lines.
func (s *Shared) answered(f wire.Frame, line []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.answer == nil && f.ID == s.asked && f.Result.Exists() {
		s.answer = bytes.Clone(line)
	}
}
