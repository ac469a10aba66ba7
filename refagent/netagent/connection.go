package netagent

import (
	"bytes"
	"cmp"
	"encoding/json"
	"io"
	"slices"
	"strconv"
	"sync"
	"time"
)

// connection is an agent and the connection of its editor.
type connection struct {
	*Options
	id    string
	owner string // the authorization by which it began
	in    *io.PipeReader
	to    *io.PipeWriter
	part  []byte // the agent's incomplete last line

	mu     sync.Mutex
	over   bool               // the agent has ended
	boxes  map[string]*box    // by session, "" is the connection's box; nil over a WebSocket
	calls  map[string]call    // requests of the editor, by their ids
	asked  map[string]string  // sessions of requests of the agent, by their ids
	known  map[string]bool    // sessions that it has opened
	child  map[string]string  // the parent session on whose stream a subagent's messages go
	bytes  int                // bytes of messages that wait for readers
	seq    int                // number of the agent's latest message
	left   *sync.Cond         // signalled when a message or a reader has left
	first  string             // the session that spoke first
	held   []frame            // messages that an answer may overtake
	heldBy string             // the stream of the held messages
	socket func(frame []byte) // sends a message over the WebSocket, if there is one
	done   chan struct{}      // closed when the agent has ended
	half   []byte             // the received part of a body that broke off
	latest []byte             // the last message of the editor
}

// call is a request of the editor.
type call struct{ method, session string }

func newConnection(o *Options, id, owner string) *connection {
	c := &connection{Options: o, id: id, owner: owner, boxes: map[string]*box{}, calls: map[string]call{},
		asked: map[string]string{}, known: map[string]bool{}, child: map[string]string{}, done: make(chan struct{})}
	c.in, c.to = io.Pipe()
	c.left = sync.NewCond(&c.mu)
	return c
}

// scope returns the session that the header of a message must name, "" if none.
func (c *connection) scope(m message) string {
	if m.Method != "" {
		return m.session()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.asked[string(m.ID)]
}

// deliver passes a message to the agent. An agent that has ended ignores it.
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

// finish ends all streams after their remaining messages, when the agent has
// ended.
func (c *connection) finish() {
	c.in.Close()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.over = true
	c.left.Broadcast()
	close(c.done)
	for _, b := range c.boxes {
		b.wake()
	}
}

// Write takes the agent's output, one message a line.
func (c *connection) Write(b []byte) (int, error) {
	c.part = append(c.part, b...)
	for {
		line, rest, whole := bytes.Cut(c.part, []byte("\n"))
		if !whole {
			return len(b), nil
		}
		if c.part = bytes.Clone(rest); c.socket != nil {
			c.socket(line)
			continue
		}
		c.mu.Lock()
		c.route(bytes.Clone(line))
		c.mu.Unlock()
	}
}

// ofConnection are requests that name a session but are answered on the
// connection's stream.
var ofConnection = map[string]bool{"session/load": true, "session/resume": true, "session/fork": true,
	"session/delete": true, "session/close": true}

// knows reports whether the connection has opened a session.
func (c *connection) knows(session string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.known[session]
}

// answered waits until a request of the editor has been answered.
func (c *connection) answered(m message) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for !c.over && c.calls[string(m.ID)].method != "" {
		c.left.Wait()
	}
}

// route puts a message into the box of its stream.
func (c *connection) route(line []byte) {
	m, _ := read(line)
	c.seq++
	f := frame{seq: c.seq, data: line}
	stream := c.stream(m)
	if m.Method == "session/update" && c.does("answer-early") {
		c.send("", c.held...)
		c.held = []frame{f}
		c.heldBy = stream
		return
	}
	c.send(stream, f)
	if len(c.held) > 0 {
		held := c.held
		c.held = nil
		c.send(c.heldBy, held...)
	}
	if stream != "" && c.does("everything-twice") {
		c.send("", f)
	}
}

// stream returns the session on whose stream a message of the agent goes, "" for
// the connection's stream.
func (c *connection) stream(m message) string {
	if m.Method == "$/cancel_request" {
		return ""
	}
	if m.Method == "" {
		return c.streamOf(m)
	}
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
	if stream == "" {
		return ""
	}
	if c.first == "" {
		c.first = stream
	}
	switch {
	case !m.named() && c.does("updates-on-connection"), m.named() && c.does("requests-on-connection"):
		return ""
	case c.does("sessions-mixed"):
		return c.first
	}
	return stream
}

// streamOf returns the session on whose stream an answer goes, "" for the
// connection's stream.
func (c *connection) streamOf(m message) string {
	of := c.calls[string(m.ID)]
	delete(c.calls, string(m.ID))
	c.left.Broadcast()
	var result struct {
		SessionID string `json:"sessionId"`
	}
	_ = json.Unmarshal(m.Result, &result)
	if len(m.Error) == 0 && (result.SessionID != "" || opens[of.method]) {
		c.known[cmp.Or(result.SessionID, of.session)] = true
	}
	if of.session != "" && !ofConnection[of.method] {
		if c.does("answers-on-connection") {
			return ""
		}
		return of.session
	}
	if b := c.boxes[of.session]; b != nil && len(m.Error) == 0 && ends[of.method] {
		b.over = true // set before the editor learns of it and may reopen the session
		b.wake()
	}
	if opens[of.method] && len(m.Error) == 0 && c.does("load-answered-by-session") {
		return of.session
	}
	return ""
}

// opens are the requests that open an existing session.
var opens = map[string]bool{"session/load": true, "session/resume": true}

// ends are the requests that end a session and its stream.
var ends = map[string]bool{"session/close": true, "session/delete": true}

// frame is a message in a box, with its number among all messages of the
// connection.
type frame struct {
	seq   int
	data  []byte
	again bool // an earlier reader may have received it
}

// box returns the box of a session's stream. The caller holds the lock.
func (c *connection) box(session string) *box {
	b := c.boxes[session]
	if b == nil || b.over && len(b.frames) == 0 {
		b = &box{c: c, some: make(chan struct{}, 1)}
		c.boxes[session] = b
	}
	return b
}

// send puts messages into a box.
func (c *connection) send(session string, frames ...frame) {
	for _, f := range frames {
		c.box(session).put(f)
	}
}

// box holds the messages of a stream until its reader has them, and for a while
// after that. The lock of the connection guards it.
type box struct {
	c      *connection
	frames []frame
	past   []frame       // sent messages, the latest last
	also   []*box        // of readers in addition to the first
	reader chan struct{} // closed when another reader takes the stream; nil if there is no reader
	over   bool          // the session has ended
	slow   bool          // its reader does not take the waiting messages
	some   chan struct{}
}

// put adds a message. If too much is unread, the editor loses its connection.
func (b *box) put(f frame) {
	if b.reader == nil && b.c.does("unread-lost") {
		return
	}
	b.frames = append(b.frames, f)
	for _, o := range b.also {
		o.frames = append(o.frames, f)
		o.wake()
	}
	b.c.bytes += len(f.data)
	if b.wake(); b.c.bytes > mostBuffered {
		b.c.to.Close()
	}
	if b.slow {
		return
	}
	// Wait until this message has left, so that no later one overtakes it on another stream, unless the reader is slow.
	limit := time.Now().Add(time.Second)
	timer := time.AfterFunc(time.Second, b.c.left.Broadcast)
	defer timer.Stop()
	for b.reader != nil && len(b.frames) > 0 && b.frames[0].seq <= f.seq {
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

// claim makes the caller the reader of a stream, after the event since. b is nil
// if the stream has a reader; known is false if the event is unknown. A caller
// that resumes a stream replaces its reader, whose connection may be lost
// unnoticed.
func (c *connection) claim(session, since string, shared bool) (b *box, known bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	b = c.box(session)
	resumed := since != "" && !c.does("cursors-none")
	if resumed && !b.rewind(since) && !c.does("cursor-unknown-live") {
		return nil, false
	}
	switch {
	case b.reader == nil:
	case resumed || c.does("second-reader-takes-over"):
		close(b.reader)
	case shared && c.does("second-reader-doubled"):
		o := &box{c: c, reader: make(chan struct{}), some: make(chan struct{}, 1)}
		b.also = append(b.also, o)
		return o, true
	default:
		return nil, true
	}
	b.reader = make(chan struct{})
	b.wake()
	return b, true
}

// rewind makes the stream send the messages after an event again. It returns
// false if that event is unknown.
func (b *box) rewind(since string) bool {
	// The reader may already have the next message, although took has not moved it to past yet.
	sent := slices.Concat(b.past, b.frames[:min(1, len(b.frames))])
	last := slices.IndexFunc(sent, func(f frame) bool { return strconv.Itoa(f.seq) == since })
	if last < 0 {
		return false
	}
	behind := last + 1
	if b.c.does("cursor-included") {
		behind--
	}
	for i := behind; i < len(b.past); i++ {
		sent[i].again = true
		b.c.bytes += len(sent[i].data)
	}
	for _, f := range sent[len(b.past):max(len(b.past), behind)] {
		b.c.bytes -= len(f.data)
	}
	frames := slices.Concat(sent[behind:], b.frames[len(sent)-len(b.past):])
	if b.c.does("cursor-gap") && len(frames) > 0 {
		frames = frames[1:]
	}
	b.frames, b.past = frames, sent[:behind]
	return true
}

// release lets another reader take the stream, unless one already has.
func (b *box) release(reader chan struct{}) {
	b.c.mu.Lock()
	defer b.c.mu.Unlock()
	if b.reader == reader {
		b.reader = nil
	}
	b.c.left.Broadcast()
}

// next waits for a message and returns it without removing it; f is nil after a
// tick of quiet. ok is false if no message will come.
func (b *box) next(gone <-chan struct{}, quiet <-chan time.Time) (f *frame, ok bool) {
	for {
		b.c.mu.Lock()
		over := b.c.over || b.over
		if len(b.frames) > 0 {
			one := b.frames[0]
			f = &one
		}
		b.c.mu.Unlock()
		select {
		case <-gone: // another reader has taken the stream
			return nil, false
		default:
		}
		if f != nil || over {
			return f, f != nil
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

// mostPast is the maximum number of sent messages that a stream keeps to send again.
const mostPast = 1000

// took removes the message that the reader has read, unless another reader has
// taken the stream.
func (b *box) took(reader chan struct{}) {
	b.c.mu.Lock()
	defer b.c.mu.Unlock()
	if b.reader != reader {
		return
	}
	b.c.bytes -= len(b.frames[0].data)
	b.past = append(b.past, b.frames[0])
	b.past = b.past[max(0, len(b.past)-mostPast):]
	b.frames = b.frames[1:]
	b.slow = b.slow && len(b.frames) > 0
	b.c.left.Broadcast()
}
