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

// Shared is an agent's process that serves several connections, one after the
// other. Each connection begins with the same first frame. The process gets that
// frame once, and every connection gets its answer. It must be ended with Stop.
type Shared struct {
	classifier transcript.Classifier
	process    Process
	transport  Transport
	stderr     io.ReadCloser
	grace      time.Duration
	started    started

	exited    chan struct{} // closed when the process and its descendants are gone
	exit      Exit
	survivors []ProcessInfo
	silent    chan struct{} // closed when its output has ended, and so has stderr

	mu      sync.Mutex
	now     *lease // nil between two connections
	asked   wire.ID
	answer  []byte          // to the first frame
	stray   bool            // the process sent a request between two connections
	former  map[string]bool // sessions of ended connections
	spoken  bool            // its output has ended
	stopped sync.Once
}

// StartShared starts a process for Lend to connect to. ctx bounds only the start.
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

// lent returns the current connection of the process, nil if it has none.
func (s *Shared) lent() *lease {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now
}

// read passes each line to the current connection once that connection's reader
// is done with the line before. So a slow reader slows down the process too.
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

// unclaimed handles a line that came when there was no connection. If it is a request,
// it will get no answer, so the process is no longer fit for other connections.
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

// Greeted returns the answer to the first frame; nil if there is none yet, or if
// it is an error.
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

// Stop ends the process. It closes its input, sends SIGTERM to its group after
// the grace period and SIGKILL to the whole tree after another one, or at once
// when ctx ends. It returns the processes that outlived the agent and were
// killed.
func (s *Shared) Stop(ctx context.Context) []ProcessInfo {
	s.stopped.Do(func() {
		s.transport.CloseSend()
		ended := s.process.Ended()
		if !within(ctx, ended, s.grace) && ctx.Err() == nil {
			_ = s.process.Signal(syscall.SIGTERM, true) // ignore the error: the process may be gone
			within(ctx, ended, s.grace)
		}
		if !done(ended) {
			s.process.Kill()
		}
	})
	<-s.exited
	return s.survivors
}

// answered keeps the answer to the first frame.
func (s *Shared) answered(f wire.Frame, line []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.answer == nil && f.ID == s.asked && f.Result.Exists() {
		s.answer = bytes.Clone(line)
	}
}
