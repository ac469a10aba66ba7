package netagent

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// The kinds of trouble: failures of the network, which an agent plans through Fail.
const (
	unavailable = "unavailable" // the POST gets 503 and does not reach the agent
	expired     = "expired"     // the POST gets 401 and does not reach the agent
	lost        = "lost"        // the POST breaks off and does not reach the agent
	unanswered  = "unanswered"  // the POST reaches the agent, but its response breaks off
	cut         = "cut"         // a session's stream or the WebSocket breaks off within the next event, which is lost
	ended       = "ended"       // a session's stream or the WebSocket ends after the next event
	restart     = "restart"     // the server forgets all connections and ends their streams, at once
	late        = "late"        // events of sessions wait until the connection's stream has brought a message
	forms       = "forms"       // streams of sessions that are opened have events in all forms, in turn
)

var (
	ofPosts   = []string{unavailable, expired, lost, unanswered}
	ofEvents  = []string{cut, ended}
	ofSockets = []string{cut, ended, restart}
)

// trouble is a planned failure.
type trouble struct {
	kind string
	at   string // method of the POST that it hits; "" means any
	left int    // how many times it still happens
	n    int    // how many times it has happened
	did  func(what any)
}

// met describes how a trouble happened.
type met struct {
	Trouble string `json:"trouble"`
	// Message is the method of the POST that was hit.
	Message string `json:"message,omitempty"`
	Status  int    `json:"status,omitempty"`
	// Stopped says that the agent did not get the POST.
	Stopped bool `json:"stopped,omitempty"`
}

// network holds the planned troubles, also those that have happened.
type network struct {
	mu      sync.Mutex
	planned []*trouble
}

// Fail plans a failure of the network that happens times times, to POSTs with the method at if at is not "". It calls
// did whenever the failure happens. A failure is planned once: a client that connects again does not meet it again. But
// each cut happens, so that no client ever gets the message that is cut. Fail returns an error if the connection is a
// WebSocket, which does not have all kinds.
func (c *connection) Fail(kind, at string, times int, did func(what any)) error {
	if c.socket != nil && !slices.Contains(ofSockets, kind) {
		return fmt.Errorf("over a WebSocket there is no trouble %s, only %s", kind, strings.Join(ofSockets, ", "))
	}
	t := &trouble{kind: kind, at: at, left: times, did: did}
	n := &c.server.network
	n.mu.Lock()
	for _, p := range n.planned {
		if p.kind == kind && p.at == at && kind != cut {
			p.did = did // the latest connection reports it
			n.mu.Unlock()
			return nil
		}
	}
	n.planned = append(n.planned, t)
	if kind == restart {
		t.n = 1
	}
	n.mu.Unlock()
	if kind == restart {
		did(met{Trouble: restart})
		c.server.restart()
		c.lose()
	}
	return nil
}

// Failed reports whether the network has failed for any connection, and whether that has ended this one.
func (c *connection) Failed() (any, this bool) {
	select {
	case <-c.lost:
		this = true
	default:
	}
	n := &c.server.network
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.ContainsFunc(n.planned, func(t *trouble) bool { return t.n > 0 }), this
}

// next returns the planned trouble of one of the kinds that hits a message, and counts it. It returns nil if there is
// none.
func (n *network) next(kinds []string, method string) *trouble {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, t := range n.planned {
		if t.left > 0 && slices.Contains(kinds, t.kind) && (t.at == "" || t.at == method) {
			t.left--
			t.n++
			one := *t
			return &one
		}
	}
	return nil
}

// has reports whether a trouble of this kind is planned and still happens.
func (n *network) has(kind string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.ContainsFunc(n.planned, func(t *trouble) bool { return t.kind == kind && t.left > 0 })
}

// meets makes a planned trouble happen to a POST. stopped says that the agent does not get the POST. The caller must
// call after at its end.
func (n *network) meets(w http.ResponseWriter, m message) (stopped bool, after func()) {
	t := n.next(ofPosts, m.Method)
	switch {
	case t == nil:
		return false, func() {}
	case t.stops(w, m):
		return true, func() {}
	}
	return false, func() { panic(http.ErrAbortHandler) } // the response is lost
}

// stops makes a trouble happen to a POST. It returns false if the POST nevertheless reaches the agent. The header
// Retry-After grows with each refusal, so a client that obeys it never sends many POSTs.
func (t *trouble) stops(w http.ResponseWriter, m message) bool {
	did := met{Trouble: t.kind, Message: m.Method, Stopped: true}
	switch t.kind {
	case unavailable:
		did.Status = http.StatusServiceUnavailable
		w.Header().Set("Retry-After", strconv.Itoa(t.n))
	case expired:
		did.Status = http.StatusUnauthorized
		w.Header().Set("WWW-Authenticate", "Bearer")
	case unanswered:
		did.Stopped = false
	}
	t.did(did)
	switch {
	case did.Status > 0:
		refuse(w, did.Status, "the network is in trouble: "+t.kind)
	case did.Stopped:
		panic(http.ErrAbortHandler)
	}
	return did.Stopped
}

// restart makes the server forget all connections, and ends their streams.
func (s *server) restart() {
	s.mu.Lock()
	all := s.connections
	s.connections = map[string]*connection{}
	s.mu.Unlock()
	for _, c := range all {
		c.lose()
	}
}

// lose ends a connection because of trouble. The agent's input ends.
func (c *connection) lose() {
	c.gone.Do(func() { close(c.lost) })
	c.end()
}

// breaks ends a stream after an event that has met trouble. A cut event is lost: it is not sent again.
func (b *box) breaks(t *trouble) {
	t.did(met{Trouble: t.kind})
	if t.kind == ended {
		return
	}
	b.c.mu.Lock()
	b.past = b.past[:max(0, len(b.past)-1)]
	b.c.mu.Unlock()
	panic(http.ErrAbortHandler)
}

// shout sends a message over the WebSocket, unless it meets trouble.
func (c *connection) shout(m message, line []byte) {
	if _, lost := c.Failed(); lost {
		return
	}
	t := c.server.network.next(ofEvents, "")
	if t == nil || t.kind == ended {
		c.socket(m, line)
	}
	if t == nil {
		return
	}
	t.did(met{Trouble: t.kind})
	if wire := *c.wire.Load(); t.kind == cut {
		// The frame says that one more byte follows.
		head := binary.BigEndian.AppendUint64([]byte{0x81, 127}, uint64(len(line)+1))
		_, _ = wire.Write(append(head, line...))
		wire.Close()
	}
	c.lose()
}

// postpone keeps a message back if its session's stream is late. The caller holds mu.
func (c *connection) postpone(stream string, f frame) bool {
	if stream != "" && c.server.network.has(late) {
		c.waiting = append(c.waiting, postponed{stream, f})
		return true
	}
	return false
}

// catchUp sends the messages that were kept back, after one on the connection's stream. The caller holds mu.
func (c *connection) catchUp() {
	waiting := c.waiting
	if c.waiting = nil; len(waiting) > 0 {
		c.server.network.next([]string{late}, "")
	}
	for _, p := range waiting {
		c.send(p.stream, p.frame)
	}
}

// postponed is a message that is kept back.
type postponed struct {
	stream string
	frame  frame
}

// byteOrderMark may begin a stream of events, which is then to be ignored.
const byteOrderMark = "\uFEFF"

// inForm returns a message as an event. The messages have all the forms of events in turn.
func inForm(f *frame) []byte {
	var lines bytes.Buffer
	_ = json.Indent(&lines, f.data, "", " ")
	all := []string{
		"data: " + strings.ReplaceAll(lines.String(), "\n", "\ndata: ") + "\n\n",
		fmt.Sprintf("data: %s\r\n\r\n", f.data),
		fmt.Sprintf("data: %s\r\r:\n", f.data), // a reader may wait for the byte behind the last CR
		fmt.Sprintf(": a comment\nretry: 3000\n\ndata: %s\n\n", f.data),
		fmt.Sprintf("event: message\ndata: %s\n\n", f.data),
		fmt.Sprintf("data:%s\n\n", f.data),
		fmt.Sprintf("data:\n\ndata: %s\n\n", f.data),
	}
	return []byte(all[f.seq%len(all)])
}
