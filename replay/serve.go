package replay

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/wire"
)

// Server is the agent for one editor. In, Out, Log and one of Script and
// Recording are needed.
type Server struct {
	In  io.Reader
	Out io.Writer
	Err io.Writer // stderr of the agent
	Log *transcript.Transcript
	// Script is an agent-side scenario, Recording a session whose agent is
	// played.
	Script    *Script
	Recording *transcript.Transcript
	// Terminated hears of SIGTERM.
	Terminated <-chan os.Signal
	// Child starts a process that outlives this one, for the act fork.
	Child func() error
	// Die ends this process by SIGKILL, for the act die.
	Die func()
}

// Serve plays until the editor closes its side, the script exits or ctx ends.
// It returns the exit status for the process.
func (s *Server) Serve(ctx context.Context) int {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	c := &conn{Server: s, ctx: ctx, cancelled: map[string]chan struct{}{}, waiting: map[int]chan transcript.Entry{}, exit: make(chan int, 16), arrived: make(chan struct{})}
	s.Log.Event(0, transcript.Process, transcript.Started, "", map[string]any{"pid": os.Getpid()})
	var p part
	if s.Script != nil {
		p = newScripted(c)
	} else {
		p = newScenes(c)
	}
	eof := make(chan struct{})
	go func() {
		defer close(eof)
		c.read(p)
	}()
	code := c.until(p, eof)
	cancel()
	c.mu.Lock()
	c.over = true // an act that is still on its way writes nothing more
	c.mu.Unlock()
	s.Log.Event(0, transcript.Process, transcript.Exited, "", map[string]any{"code": code})
	return code
}

// part is what an agent does about the frames of the editor. received runs in
// the reading goroutine and must hand off what takes time.
type part interface {
	connected()
	received(e transcript.Entry)
	ended() // at the end of the input
	// stays reports whether the agent lives on after the end of its input, or
	// after SIGTERM.
	stays(signal bool) bool
}

// conn is the connection with the editor.
type conn struct {
	*Server
	ctx  context.Context
	exit chan int

	mu        sync.Mutex
	over      bool
	closed    bool
	cancelled map[string]chan struct{}      // closed by session/cancel; by session
	waiting   map[int]chan transcript.Entry // for answers, by Seq of our request
	early     map[int]transcript.Entry      // answers that came before anybody waited
	arrived   chan struct{}                 // closed and renewed with each frame
	nextID    int
}

// drain is how long acts may go on after the editor has gone.
const drain = 300 * time.Millisecond

func (c *conn) until(p part, eof <-chan struct{}) int {
	p.connected()
	term := c.Terminated
	for {
		select {
		case code := <-c.exit:
			return code
		case <-eof:
			eof = nil
			p.ended()
			if !p.stays(false) {
				select { // what is about to exit by itself shall
				case code := <-c.exit:
					return code
				case <-time.After(drain):
				}
				return 0
			}
		case <-term:
			if !p.stays(true) {
				return 143
			}
		case <-c.ctx.Done():
			return 1
		}
	}
}

// read logs every line of the editor before anything is done about it.
func (c *conn) read(p part) {
	lines := wire.NewSplitter(c.In, 0)
	for {
		line, err := lines.Next()
		if err != nil {
			c.Log.Event(0, transcript.Process, transcript.StdinClosed, "", struct{}{})
			return
		}
		size := 0
		if line.Size > len(line.Bytes) {
			size = line.Size
		}
		e := c.Log.AppendFrame(0, transcript.Editor, bytes.Clone(line.Bytes), size)
		c.note(e)
		p.received(e)
	}
}

// note lets go of who waits for a frame.
func (c *conn) note(e transcript.Entry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case e.Kind == transcript.Response && e.Ref > 0:
		if w := c.waiting[e.Ref]; w != nil {
			delete(c.waiting, e.Ref)
			w <- e
		} else {
			if c.early == nil {
				c.early = map[int]transcript.Entry{}
			}
			c.early[e.Ref] = e
		}
	case e.Method == "session/cancel":
		close(c.cancel(e.Session))
		delete(c.cancelled, e.Session) // the next turn has a cancel of its own
	}
	close(c.arrived)
	c.arrived = make(chan struct{})
}

// cancel is closed by the next session/cancel of a session. The caller holds
// mu.
func (c *conn) cancel(session string) chan struct{} {
	ch := c.cancelled[session]
	if ch == nil {
		ch = make(chan struct{})
		c.cancelled[session] = ch
	}
	return ch
}

func (c *conn) cancelOf(session string) <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.cancel(session)
}

// frame is closed by the next frame of the editor.
func (c *conn) frame() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.arrived
}

// answer is the answer to a request of ours, by its Seq.
func (c *conn) answer(ctx context.Context, seq int) (transcript.Entry, bool) {
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
		if c.early == nil {
			c.early = map[int]transcript.Entry{}
		}
		c.early[seq] = e // for who asks again
		c.mu.Unlock()
		return e, true
	case <-ctx.Done():
		return transcript.Entry{}, false
	}
}

// sink is how frames are written: at once, joined, or in pieces.
type sink struct {
	c     *conn
	join  *bytes.Buffer
	split int
}

// send logs a line and writes it.
func (s sink) send(line []byte) transcript.Entry {
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

// bytes writes bytes that are no line of their own.
func (s sink) bytes(b []byte) {
	s.c.mu.Lock()
	defer s.c.mu.Unlock()
	if !s.c.over && !s.c.closed {
		s.c.Log.Event(0, transcript.Note, transcript.Remark, "", map[string]any{"code": "bytes", "text": fmt.Sprintf("%d bytes that are no line: %.80q", len(b), b)})
		s.put(b)
	}
}

// put writes; an editor that does not read any more is its own problem.
func (s sink) put(b []byte) {
	if s.join != nil {
		s.join.Write(b)
		return
	}
	if s.split <= 0 {
		_, _ = s.c.Out.Write(b)
		return
	}
	for len(b) > 0 {
		n := min(s.split, len(b))
		_, _ = s.c.Out.Write(b[:n])
		b = b[n:]
	}
}

// flush writes what was joined, with one call.
func (s sink) flush() {
	s.c.mu.Lock()
	defer s.c.mu.Unlock()
	if !s.c.over && !s.c.closed {
		_, _ = s.c.Out.Write(s.join.Bytes())
	}
}

// close closes the output.
func (c *conn) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	closeIf(c.Out)
}

// newID makes the id of a request of ours.
func (c *conn) newID() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.nextID++
	return fmt.Sprintf(`"agent-%d"`, c.nextID)
}

func resultOf(id wire.ID, result string) []byte {
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"result":%s}`, id, result)
}

func errorOf(id wire.ID, code, message string) []byte {
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"error":{"code":%s,"message":%s}}`, id, code, quoted(message))
}

func updateOf(session, update string) []byte {
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":%s,"update":%s}}`, quoted(session), update)
}
