// Package serve is the agent for an editor under test. It reads the editor's frames and answers them by a script or
// another Agent.
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

// Server is the agent for one editor. In, Out, Log, Protocol and either Script or Agent are required.
type Server struct {
	In  io.Reader
	Out io.Writer
	Err io.Writer // stderr of the agent
	Log *transcript.Transcript
	// Protocol is the agent's default behavior, which a script can replace.
	Protocol Protocol
	// Script is played; if it is nil, Agent is.
	Script *Script
	Agent  Agent
	// Terminated receives SIGTERM.
	Terminated <-chan os.Signal
	// Child starts a process that outlives this one, for the act fork.
	Child func() error
	// Die ends this process by SIGKILL, for the act die.
	Die func()
}

// Protocol is the default behavior of an agent for events without a handler.
type Protocol interface {
	// Cancels reports whether a frame of the editor cancels the turn of its
	// session.
	Cancels(e transcript.Entry) bool
	// Opens returns the session that a request of the editor opens, and its directory. n is the number of the session,
	// for the id of a new one. Opens returns "" for other frames.
	Opens(e transcript.Entry, n int) (session, dir string)
	// Prompt returns the text of a prompt, and whether the frame is one.
	Prompt(e transcript.Entry) (text string, ok bool)
	// Plain returns the frames with which a plain agent with these capabilities answers a request.
	Plain(e transcript.Entry, capabilities map[string]string) [][]byte
	// Taken returns the frames with which the agent acknowledges a prompt, nil if the protocol has none.
	Taken(e transcript.Entry) [][]byte
	// Owed returns the frames that complete a request if the script ended without an answer to it. They begin with
	// those of Taken.
	Owed(e transcript.Entry, capabilities map[string]string) [][]byte
}

// Agent handles the frames of the editor. Connected is called first. Received runs in the reading goroutine and must
// not block.
type Agent interface {
	Connected(c *Conn)
	Received(e transcript.Entry)
	Ended() // at the end of the input
	// Stays reports whether the agent keeps running after the end of its input or, with signal set, after SIGTERM.
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
	c.over = true // a running act writes nothing more
	c.mu.Unlock()
	s.Log.Event(0, transcript.Process, transcript.Exited, "", map[string]any{"code": code})
	return code
}

// Conn is the connection with the editor.
type Conn struct {
	*Server
	ctx  context.Context
	exit chan int

	mu        sync.Mutex
	over      bool
	closed    bool
	cancelled map[string]chan struct{}      // closed by session/cancel; by session
	waiting   map[int]chan transcript.Entry // for answers, by Seq of our request
	early     map[int]transcript.Entry      // answers that came before Answer was called
	arrived   chan struct{}                 // closed and renewed with each frame
	nextID    int
}

func newConn(ctx context.Context, s *Server) *Conn {
	return &Conn{Server: s, ctx: ctx, cancelled: map[string]chan struct{}{}, waiting: map[int]chan transcript.Entry{},
		early: map[int]transcript.Entry{}, exit: make(chan int, 16), arrived: make(chan struct{})}
}

// drain is how long acts may continue after the editor is gone.
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
				select { // let a handler that is about to exit do so
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

// read logs every line of the editor before the agent handles it.
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

// note wakes the goroutines that wait for this frame.
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
		delete(c.cancelled, e.Session) // the next turn gets a new channel
	}
	close(c.arrived)
	c.arrived = make(chan struct{})
}

// cancel returns the channel that is closed when the turn of a session is cancelled. The caller holds mu.
func (c *Conn) cancel(session string) chan struct{} {
	ch := c.cancelled[session]
	if ch == nil {
		ch = make(chan struct{})
		c.cancelled[session] = ch
	}
	return ch
}

// Cancelled returns a channel that is closed when the turn of a session is
// cancelled.
func (c *Conn) Cancelled(session string) <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.cancel(session)
}

// frame returns a channel that is closed by the next frame of the editor.
func (c *Conn) frame() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.arrived
}

// Answer waits for the answer to a request of the agent, by the request's Seq. It returns false if ctx ends first.
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
		c.early[seq] = e // for a later call of Answer
		c.mu.Unlock()
		return e, true
	case <-ctx.Done():
		return transcript.Entry{}, false
	}
}

// Context ends with the connection.
func (c *Conn) Context() context.Context { return c.ctx }

// Send logs a frame and writes it. It returns the zero Entry if the output is closed.
func (c *Conn) Send(line []byte) transcript.Entry { return sink{c: c}.send(line) }

// sink is how frames are written: at once, joined, or in pieces.
type sink struct {
	c     *Conn
	to    *Answer // the answer to a post, if the agent is a server
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

// bytes writes bytes that need not be a line.
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

// put writes b, in pieces if the sink splits.
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

// write writes b; the caller holds mu. If the editor no longer reads, write logs that once and drops all later bytes.
func (c *Conn) write(b []byte) {
	if _, err := c.Out.Write(b); err != nil {
		c.closed = true
		c.Log.Event(0, transcript.Note, Unread, "", map[string]any{"text": "the editor reads no more: " + err.Error()})
	}
}

// flush writes the joined frames in one call.
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

// close closes the output.
func (c *Conn) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	c.Log.Event(0, transcript.Note, Shut, "", map[string]any{"text": "the agent closed its output"})
	if out, ok := c.Out.(io.Closer); ok {
		out.Close()
	}
}

// newID returns the id for a request of the agent.
func (c *Conn) newID() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.nextID++
	return fmt.Sprintf(`"agent-%d"`, c.nextID)
}

// Result returns the frame that answers a request.
func Result(id wire.ID, result string) []byte {
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"result":%s}`, id, result)
}

// Error returns the response to a request with an error. code is the JSON-RPC code in decimal, such as "-32602".
func Error(id wire.ID, code, message string) []byte {
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"error":{"code":%s,"message":%s}}`, id, code, Quote(message))
}

// Quote returns a text as a JSON string.
func Quote(s string) string { return string(wire.AppendString(nil, s)) }
