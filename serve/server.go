// Package serve runs an agent for an editor under test. It reads the editor's frames and reacts to them according to
// a script or another Agent.
package serve

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/wire"
)

// Server runs an agent for one editor. In, Out, Log, Protocol, and either Script or Agent are required.
type Server struct {
	In  io.Reader
	Out io.Writer
	Err io.Writer // the agent's stderr
	Log *transcript.Transcript
	// Protocol is the agent's default behaviour, which a script can override.
	Protocol Protocol
	// Script determines the agent's behaviour. If it is nil, Agent does.
	Script *Script
	Agent  Agent
	// Terminated receives a value when the process gets SIGTERM.
	Terminated <-chan os.Signal
	// Child starts a process that outlives this process. The act fork calls it.
	Child func() error
	// Die ends this process with SIGKILL. The act die calls it.
	Die func()
}

// Protocol is the default behaviour of an agent, for events without a handler.
type Protocol interface {
	// Cancels reports whether a frame from the editor cancels the turn of the frame's session.
	Cancels(e transcript.Entry) bool
	// Opens returns the id of the session that a request from the editor opens, and the session's directory. The
	// number n makes the id of a new session. For other frames, Opens returns "".
	Opens(e transcript.Entry, n int) (session, dir string)
	// Prompt returns the text of a prompt. ok is false if the frame is not a prompt.
	Prompt(e transcript.Entry) (text string, ok bool)
	// Plain returns the frames with which an agent with default behaviour and these capabilities responds to a
	// request.
	Plain(e transcript.Entry, capabilities map[string]string) [][]byte
	// Taken returns the frames with which the agent acknowledges a prompt, or nil if the protocol has no
	// acknowledgement.
	Taken(e transcript.Entry) [][]byte
	// Owed returns the frames that complete a request whose script ended without responding. They begin with the
	// frames of Taken.
	Owed(e transcript.Entry, capabilities map[string]string) [][]byte
}

// Agent handles the frames from the editor. Connected is called first. Received runs in the goroutine that reads and
// must not block.
type Agent interface {
	Connected(c *Conn)
	Received(e transcript.Entry)
	Ended() // called at the end of the input
	// Stays reports whether the agent keeps running after the end of its input or, if signal is set, after SIGTERM.
	Stays(signal bool) bool
}

// Serve runs until the editor closes its side, the script exits or ctx ends. It returns the exit status for the
// process.
func (s *Server) Serve(ctx context.Context) int {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	c := newConn(ctx, s)
	s.Log.Event(0, transcript.Process, transcript.Started, "", map[string]any{"pid": os.Getpid()})
	a := s.Agent
	if s.Script != nil {
		a = newScripted(c, s.Script)
	}
	a.Connected(c)
	eof := make(chan struct{})
	go func() {
		defer close(eof)
		c.read(a)
	}()
	code := c.until(a, eof)
	cancel()
	c.mu.Lock()
	c.over = true // acts that still run write nothing more
	c.mu.Unlock()
	s.Log.Event(0, transcript.Process, transcript.Exited, "", map[string]any{"code": code})
	return code
}

// Conn is the connection to the editor.
type Conn struct {
	*Server
	ctx  context.Context
	exit chan int

	mu        sync.Mutex
	over      bool
	closed    bool
	cancelled map[string]chan struct{}      // by session: closed when its turn is cancelled
	waiting   map[int]chan transcript.Entry // by Seq of the agent's request: channel for the response
	early     map[int]transcript.Entry      // responses that arrived before Answer was called
	arrived   chan struct{}                 // closed and replaced with each frame
	nextID    int
}

func newConn(ctx context.Context, s *Server) *Conn {
	return &Conn{Server: s, ctx: ctx, cancelled: map[string]chan struct{}{}, waiting: map[int]chan transcript.Entry{},
		early: map[int]transcript.Entry{}, exit: make(chan int, 16), arrived: make(chan struct{})}
}

// drain is the time for which acts may continue after the editor has closed its side.
const drain = 300 * time.Millisecond

func (c *Conn) until(a Agent, eof <-chan struct{}) int {
	for {
		select {
		case code := <-c.exit:
			return code
		case <-eof:
			eof = nil
			a.Ended()
			if !a.Stays(false) {
				select { // allow a handler that is about to exit to do so
				case code := <-c.exit:
					return code
				case <-time.After(drain):
				}
				return 0
			}
		case <-c.Terminated:
			if !a.Stays(true) {
				return 143
			}
		case <-c.ctx.Done():
			return 1
		}
	}
}

// read logs each line from the editor and then passes it to the agent.
func (c *Conn) read(a Agent) {
	lines := wire.NewSplitter(c.In, 0)
	for {
		line, err := lines.Next()
		if err != nil {
			c.Log.Event(0, transcript.Process, transcript.StdinClosed, "", struct{}{})
			return
		}
		if line.Size <= len(line.Bytes) {
			line.Size = 0
		}
		e := c.Log.AppendFrame(0, transcript.Editor, bytes.Clone(line.Bytes), line.Size)
		c.note(e)
		a.Received(e)
	}
}

// note wakes the goroutines that wait for a frame.
func (c *Conn) note(e transcript.Entry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case e.Kind == transcript.Response && e.Ref > 0:
		if w := c.waiting[e.Ref]; w != nil {
			delete(c.waiting, e.Ref)
			w <- e
		} else {
			c.early[e.Ref] = e
		}
	case c.Protocol.Cancels(e):
		close(c.cancel(e.Session))
		delete(c.cancelled, e.Session) // the next turn needs a new channel
	}
	close(c.arrived)
	c.arrived = make(chan struct{})
}

// cancel returns the channel that is closed when the current turn of a session is cancelled. The caller holds mu.
func (c *Conn) cancel(session string) chan struct{} {
	ch := c.cancelled[session]
	if ch == nil {
		ch = make(chan struct{})
		c.cancelled[session] = ch
	}
	return ch
}

// Cancelled returns a channel that is closed when the current turn of a session is cancelled.
func (c *Conn) Cancelled(session string) <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.cancel(session)
}

// frame returns a channel that is closed when the next frame from the editor arrives.
func (c *Conn) frame() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.arrived
}

// Answer waits for the response to the agent's request with the given Seq. It returns false if ctx ends first.
func (c *Conn) Answer(ctx context.Context, seq int) (transcript.Entry, bool) {
	c.mu.Lock()
	if e, ok := c.early[seq]; ok {
		c.mu.Unlock()
		return e, true
	}
	w := c.waiting[seq]
	if w == nil {
		w = make(chan transcript.Entry, 1)
		c.waiting[seq] = w
	}
	c.mu.Unlock()
	select {
	case e := <-w:
		c.mu.Lock()
		c.early[seq] = e // for later calls of Answer
		c.mu.Unlock()
		return e, true
	case <-ctx.Done():
		return transcript.Entry{}, false
	}
}

// Context returns a context that ends with the connection.
func (c *Conn) Context() context.Context { return c.ctx }

// Send logs a frame and writes it. It returns the zero Entry if the output is closed.
func (c *Conn) Send(line []byte) transcript.Entry { return sink{c: c}.send(line) }

// sink determines how frames are written: at once, joined into one write, or split into pieces.
type sink struct {
	c     *Conn
	to    *Answer // response to a post, if the agent is a server
	join  *bytes.Buffer
	split int
}

// send logs a line and writes it.
func (s sink) send(line []byte) transcript.Entry {
	if s.to != nil {
		return s.to.sends(s, line)
	}
	c := s.c
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over || c.closed {
		return transcript.Entry{}
	}
	e := c.Log.AppendFrame(0, transcript.Agent, bytes.Clone(line), 0)
	s.put(append(bytes.Clone(line), '\n'))
	return e
}

// bytes writes bytes, which need not be a complete line.
func (s sink) bytes(b []byte) {
	if s.to != nil {
		s.to.raw(s, b)
		return
	}
	s.c.mu.Lock()
	defer s.c.mu.Unlock()
	switch line := bytes.TrimRight(b, "\r\n"); {
	case s.c.over || s.c.closed:
	case len(line) == len(b)-2 && json.Valid(line) && line[0] == '{': // a frame that ends with CRLF
		s.c.Log.AppendFrame(0, transcript.Agent, bytes.Clone(line), 0)
		s.put(b)
	default:
		s.c.Log.Event(0, transcript.Note, transcript.Noted, "",
			map[string]any{"code": "bytes", "text": fmt.Sprintf("%d bytes that are not a line: %.80q", len(b), b)})
		s.put(b)
	}
}

// put writes b, or adds it to the joined frames. If s.split is set, it writes pieces of that size.
func (s sink) put(b []byte) {
	if s.join != nil {
		s.join.Write(b)
		return
	}
	for len(b) > 0 && (s.to != nil || !s.c.closed) {
		n := len(b)
		if s.split > 0 {
			n = min(s.split, n)
		}
		if s.to != nil {
			s.to.write(b[:n])
		} else {
			s.c.write(b[:n])
		}
		b = b[n:]
	}
}

// write writes b to the output. If the editor no longer reads, write logs this once and the output counts as closed.
// The caller holds mu.
func (c *Conn) write(b []byte) {
	if _, err := c.Out.Write(b); err != nil {
		c.closed = true
		c.Log.Event(0, transcript.Note, Unread, "", map[string]any{"text": "the editor reads no more: " + err.Error()})
	}
}

// flush writes the joined frames in a single write.
func (s sink) flush() {
	if s.to != nil {
		s.to.mu.Lock()
		defer s.to.mu.Unlock()
		s.to.write(s.join.Bytes())
		return
	}
	s.c.mu.Lock()
	defer s.c.mu.Unlock()
	if !s.c.over && !s.c.closed {
		s.c.write(s.join.Bytes())
	}
}

// close closes the agent's output and logs this.
func (c *Conn) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	c.Log.Event(0, transcript.Note, Shut, "", map[string]any{"text": "the agent closed its output"})
	if out, ok := c.Out.(io.Closer); ok {
		out.Close()
	}
}

// newID returns a new id for a request from the agent.
func (c *Conn) newID() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.nextID++
	return fmt.Sprintf(`"agent-%d"`, c.nextID)
}

// Result returns the response to a request with a result, which is JSON.
func Result(id wire.ID, result string) []byte {
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"result":%s}`, id, result)
}

// Error returns the response to a request that failed. code is the JSON-RPC code in decimal, such as "-32602".
func Error(id wire.ID, code, message string) []byte {
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"error":{"code":%s,"message":%s}}`, id, code, Quote(message))
}

func Quote(s string) string { return string(wire.AppendString(nil, s)) }
