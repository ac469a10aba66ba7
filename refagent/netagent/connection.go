package netagent

import (
	"bytes"
	"io"
	"sync"
	"time"
)

// connection is an agent with its editor.
type connection struct {
	id    string
	owner string // the authorization by which it began
	in    *io.PipeReader
	to    *io.PipeWriter

	mu     sync.Mutex
	over   bool               // the agent has ended
	boxes  map[string]*box    // by session, "" is that of the connection; nil if there is a socket
	calls  map[string]call    // requests of the editor, by their ids
	asked  map[string]string  // sessions of requests of the agent, by their ids
	child  map[string]string  // by whose stream a subagent speaks: an editor knows of it from there
	bytes  int                // that wait for readers
	seq    int                // of messages of the agent
	left   *sync.Cond         // for who waits until a message or a reader has left
	socket func(frame []byte) // where to, if by a WebSocket
	done   chan struct{}      // closed when the agent has ended
}

// call is a request of the editor.
type call struct{ method, session string }

func newConnection(id, owner string) *connection {
	c := &connection{id: id, owner: owner, boxes: map[string]*box{}, calls: map[string]call{},
		asked: map[string]string{}, child: map[string]string{}, done: make(chan struct{})}
	c.in, c.to = io.Pipe()
	c.left = sync.NewCond(&c.mu)
	return c
}

// scope returns the session whose header a message needs, "" if none.
func (c *connection) scope(m message) string {
	if m.Method != "" {
		return m.session()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.asked[string(m.ID)]
}

// deliver hands a message to the agent. One that has ended takes none.
func (c *connection) deliver(m message, line []byte) {
	c.mu.Lock()
	switch {
	case m.Method != "" && m.named() && c.socket == nil:
		c.calls[string(m.ID)] = call{m.Method, m.session()}
	case m.Method == "":
		delete(c.asked, string(m.ID))
	}
	c.mu.Unlock()
	_, _ = c.to.Write(append(line, '\n'))
}

// end ends the agent's input.
func (c *connection) end() { c.to.Close() }

// finish ends all streams behind what is in them: the agent has ended.
func (c *connection) finish() {
	c.in.Close()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.over = true
	close(c.done)
	for _, b := range c.boxes {
		b.wake()
	}
}

// Write takes a message of the agent.
func (c *connection) Write(frame []byte) (int, error) {
	line := bytes.TrimRight(frame, "\n")
	if c.socket != nil {
		c.socket(line)
		return len(frame), nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.route(bytes.Clone(line))
	return len(frame), nil
}

// ofConnection are requests with a session that has no stream before they are answered.
var ofConnection = map[string]bool{"session/load": true, "session/resume": true, "session/fork": true,
	"session/delete": true, "session/close": true}

// route puts a message into the box of its stream.
func (c *connection) route(line []byte) {
	m, _ := read(line)
	c.seq++
	f := frame{seq: c.seq, data: line}
	switch {
	case m.Method == "$/cancel_request":
		c.box("").put(f)
	case m.Method != "":
		if m.named() && m.session() != "" {
			c.asked[string(m.ID)] = m.session()
		}
		stream := m.session()
		if parent, ok := c.child[stream]; ok {
			stream = parent
		}
		if u := m.Params.Update; u.Tag == "subagent_update" && u.SessionID != "" {
			c.child[u.SessionID] = stream
		}
		c.box(stream).put(f)
	default:
		of := c.calls[string(m.ID)]
		delete(c.calls, string(m.ID))
		if of.session != "" && !ofConnection[of.method] {
			c.box(of.session).put(f)
			return
		}
		if b := c.boxes[of.session]; b != nil && len(m.Error) == 0 && ends[of.method] {
			b.over = true // before the editor knows, and may open the session again
			b.wake()
		}
		c.box("").put(f)
	}
}

// ends are the requests after which a session has no stream.
var ends = map[string]bool{"session/close": true, "session/delete": true}

// frame is a message in a box, and its place among all of the connection.
type frame struct {
	seq  int
	data []byte
}

// box returns the messages of a stream, whose lock the caller holds.
func (c *connection) box(session string) *box {
	b := c.boxes[session]
	if b == nil || b.over && len(b.frames) == 0 {
		b = &box{c: c, some: make(chan struct{}, 1)}
		c.boxes[session] = b
	}
	return b
}

// box holds what goes by a stream until its reader has it. The lock of the connection guards it.
type box struct {
	c      *connection
	frames []frame
	read   bool
	over   bool // the session has ended
	slow   bool // its reader does not take what there is
	some   chan struct{}
}

// put adds a message. An editor that leaves too much unread loses its connection.
func (b *box) put(f frame) {
	b.frames = append(b.frames, f)
	b.c.bytes += len(f.data)
	if b.wake(); b.c.bytes > mostBuffered {
		b.c.to.Close()
	}
	if b.slow {
		return
	}
	// The next message does not leave before this one has, by whatever stream, unless the reader is slow.
	limit := time.Now().Add(time.Second)
	timer := time.AfterFunc(time.Second, b.c.left.Broadcast)
	defer timer.Stop()
	for b.read && len(b.frames) > 0 && b.frames[0].seq <= f.seq {
		if b.slow = !time.Now().Before(limit); b.slow {
			return
		}
		b.c.left.Wait()
	}
}

func (b *box) wake() {
	select {
	case b.some <- struct{}{}:
	default:
	}
}

// claim makes the caller the reader of a stream; nil if there is one.
func (c *connection) claim(session string) *box {
	c.mu.Lock()
	defer c.mu.Unlock()
	b := c.box(session)
	if b.read {
		return nil
	}
	b.read = true
	b.wake()
	return b
}

func (b *box) release() {
	b.c.mu.Lock()
	defer b.c.mu.Unlock()
	b.read = false
	b.c.left.Broadcast()
}

// next waits for a message and leaves it where it is; nil is a tick of quiet. ok is false once there
// will be none.
func (b *box) next(gone <-chan struct{}, quiet <-chan time.Time) (data []byte, ok bool) {
	for {
		b.c.mu.Lock()
		over := b.c.over || b.over
		if len(b.frames) > 0 {
			data = b.frames[0].data
		}
		b.c.mu.Unlock()
		if data != nil || over {
			return data, data != nil
		}
		select {
		case <-b.some:
		case <-quiet:
			return nil, true
		case <-gone:
			return nil, false
		}
	}
}

// took removes the message that was read.
func (b *box) took() {
	b.c.mu.Lock()
	defer b.c.mu.Unlock()
	b.c.bytes -= len(b.frames[0].data)
	b.frames = b.frames[1:]
	b.slow = b.slow && len(b.frames) > 0
	b.c.left.Broadcast()
}
