package netagent

import (
	"bytes"
	"cmp"
	"encoding/json"
	"io"
	"net"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// connection is one editor's connection, with the agent that serves it.
type connection struct {
	*Options
	server *server
	id     string
	owner  string // value of the Authorization header with which it began
	in     *io.PipeReader
	to     *io.PipeWriter
	part   []byte // incomplete last line of the agent's output

	mu     sync.Mutex
	over   bool                          // the agent has ended
	boxes  map[string]*box               // by session, "" for the connection's own stream; nil for a WebSocket
	calls  map[string]call               // open requests of the editor, by id
	asked  map[string]string             // sessions of the agent's open requests, by the request's id
	known  map[string]bool               // sessions that the connection has opened
	child  map[string]string             // by subagent's session: the parent session whose stream it uses
	bytes  int                           // total size of the messages that wait for readers
	seq    int                           // number of the agent's latest message
	left   *sync.Cond                    // signalled when a message was sent or a reader has left
	first  string                        // session that sent the first message
	held   []frame                       // messages that a response may overtake
	heldBy string                        // the session of the held messages' stream
	socket func(m message, frame []byte) // sends a message over the WebSocket; nil without one
	done   chan struct{}                 // closed when the agent has ended
	half   []byte                        // the part of an incomplete body that was received
	latest []byte                        // the editor's last message

	wire    atomic.Pointer[net.Conn] // carries the WebSocket; nil without one
	lost    chan struct{}            // closed when trouble has ended the connection
	gone    sync.Once                // closes lost
	waiting []postponed              // messages that are late
}

// call is an open request of the editor.
type call struct{ method, session string }

func newConnection(o *Options, id, owner string) *connection {
	c := &connection{Options: o, id: id, owner: owner, boxes: map[string]*box{}, calls: map[string]call{},
		asked: map[string]string{}, known: map[string]bool{}, child: map[string]string{}, done: make(chan struct{}),
		lost: make(chan struct{})}
	c.in, c.to = io.Pipe()
	c.left = sync.NewCond(&c.mu)
	return c
}

// scope returns the session that the session header of a message must contain, or "" if it needs none.
func (c *connection) scope(m message) string {
	if m.Method != "" {
		return m.session()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.asked[string(m.ID)]
}

// deliver passes a message to the agent. It does nothing if the agent has ended.
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

// end closes the agent's input.
func (c *connection) end() { c.to.Close() }

// finish is called when the agent has ended. It ends all streams after their remaining messages.
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

// Write receives the agent's output, which has one message per line.
func (c *connection) Write(b []byte) (int, error) {
	c.part = append(c.part, b...)
	for {
		line, rest, whole := bytes.Cut(c.part, []byte("\n"))
		if !whole {
			return len(b), nil
		}
		c.part = bytes.Clone(rest)
		m, _ := read(line)
		c.mu.Lock()
		if m.Method != "" && m.named() && m.session() != "" {
			c.asked[string(m.ID)] = m.session()
		}
		if c.socket == nil {
			c.route(m, bytes.Clone(line))
		}
		c.mu.Unlock()
		if c.socket != nil {
			c.shout(m, line)
		}
	}
}

// ofConnection lists the requests that are for a session but whose responses are sent on the connection's stream.
var ofConnection = map[string]bool{"session/load": true, "session/resume": true, "session/fork": true,
	"session/delete": true, "session/close": true}

// knows reports whether the connection has opened a session.
func (c *connection) knows(session string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.known[session]
}

// answered waits until the agent has responded to a request from the editor, or has ended.
func (c *connection) answered(m message) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for !c.over && c.calls[string(m.ID)].method != "" {
		c.left.Wait()
	}
}

// route puts a message from the agent into the box of its stream.
func (c *connection) route(m message, line []byte) {
	c.seq++
	f := frame{seq: c.seq, data: line}
	stream := c.stream(m)
	if c.postpone(stream, f) {
		return
	}
	if m.Method == "session/update" && c.does("answer-early") {
		c.send("", c.held...)
		c.held = []frame{f}
		c.heldBy = stream
		return
	}
	if c.send(stream, f); stream == "" {
		c.catchUp()
	}
	if len(c.held) > 0 {
		held := c.held
		c.held = nil
		c.send(c.heldBy, held...)
	}
	if stream != "" && c.does("everything-twice") {
		c.send("", f)
	}
}

// stream returns the session on whose stream a message from the agent is sent, or "" for the connection's stream.
func (c *connection) stream(m message) string {
	if m.Method == "$/cancel_request" {
		return ""
	}
	if m.Method == "" {
		return c.streamOf(m)
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

// streamOf returns the session on whose stream a response is sent, or "" for the connection's stream. It also records
// what the response changes: opened and ended sessions.
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
		b.over = true // before the editor knows of it and may reopen the session
		b.wake()
	}
	if opens[of.method] && len(m.Error) == 0 && c.does("load-answered-by-session") {
		return of.session
	}
	return ""
}

// opens lists the requests that open an existing session.
var opens = map[string]bool{"session/load": true, "session/resume": true}

// ends lists the requests that end a session and its stream.
var ends = map[string]bool{"session/close": true, "session/delete": true}

// frame is a message in a box, with its number among all messages of the connection.
type frame struct {
	seq   int
	data  []byte
	again bool // an earlier reader may already have received it
}

// box returns the box of a session's stream and creates it if necessary. The caller holds mu.
func (c *connection) box(session string) *box {
	b := c.boxes[session]
	if b == nil || b.over && len(b.frames) == 0 {
		b = &box{c: c, some: make(chan struct{}, 1)}
		c.boxes[session] = b
	}
	return b
}

// send puts messages into the box of a session's stream.
func (c *connection) send(session string, frames ...frame) {
	for _, f := range frames {
		c.box(session).put(f)
	}
}

// box contains the messages of a stream that its reader has not received yet, and the last sent messages, to send
// them again. The connection's mu guards it.
type box struct {
	c      *connection
	frames []frame
	past   []frame       // sent messages, the latest last
	also   []*box        // boxes of additional readers
	reader chan struct{} // closed when another reader takes over; nil without a reader
	over   bool          // the session has ended
	slow   bool          // the reader does not receive the waiting messages
	some   chan struct{}
}

// put adds a message to the box. If too many bytes wait for readers, it ends the connection.
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
	// Wait until this message has been sent, so that no later message on another stream overtakes it. Wait at most a
	// second, because the reader may be slow.
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

// claim makes the caller the reader of a stream. since is the id of the last event that the caller has received; ""
// means none. b is nil if the stream already has a reader. known is false if the event is unknown. A caller with a
// known event replaces the present reader, because that reader's connection may have been lost unnoticed.
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

// rewind makes the stream send the messages after an event again. since is the id of that event. rewind returns false
// if the event is unknown.
func (b *box) rewind(since string) bool {
	// The reader may have received the next message already, although took has not moved it to past yet.
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

// release ends the caller's claim on the stream, unless another reader has taken over.
func (b *box) release(reader chan struct{}) {
	b.c.mu.Lock()
	defer b.c.mu.Unlock()
	if b.reader == reader {
		b.reader = nil
	}
	b.c.left.Broadcast()
}

// next waits for a message and returns it, but does not remove it from the box. If quiet ticks first, f is nil. ok is
// false if no message will follow or another reader has taken over.
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
		case <-gone: // another reader has taken over
			return nil, false
		case <-b.c.lost:
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

// mostPast is the maximum number of sent messages that a stream keeps in order to send them again.
const mostPast = 1000

// took moves the message that next returned to the sent messages, unless another reader has taken over.
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
