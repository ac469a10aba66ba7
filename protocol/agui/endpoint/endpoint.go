// Package endpoint connects to an AG-UI agent over HTTP. Each frame of the client is a POST. Everything in the
// response becomes entries of the transcript, byte for byte.
package endpoint

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/acp-test/acp-test/protocol/agui/aguiframe"
	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/transport"
	"github.com/acp-test/acp-test/wire"
)

// Post is one request of the client.
type Post struct {
	// Ref is the Seq of the post's entry.
	Ref  int
	Body []byte
	// Method is the HTTP method; "" stands for POST. Type and Accept are the media types in the headers; "" stands for
	// the usual type, and "-" omits the header. Header has additional headers.
	Method, Type, Accept string
	Header               map[string]string
	// Patience is how long the body may stay open after the end of the run; 0 means no limit.
	Patience time.Duration
}

// Endpoint is a connection to an agent. It implements transport.Reaching.
type Endpoint struct {
	// Accept is the Accept header of posts that have none of their own; "" stands for EventStream.
	Accept string
	// Header has additional headers for each post.
	Header map[string]string

	given  transport.Address
	client *http.Client

	items chan item
	last  item          // the item that Receive returned last
	over  chan struct{} // closed when no more items will come
	dead  chan struct{} // closed by Close

	mu      sync.Mutex
	url     string // "" until the URL is known
	closed  bool
	streams map[int]context.CancelCauseFunc
	running sync.WaitGroup
	once    sync.Once
}

// item is one piece of received data: an event of a stream, or the head or the end of an answer.
type item struct {
	piece
	ref  int
	kind transcript.Kind // "" for an event
}

// Reasons for which a client closes a connection.
var (
	errHangUp = errors.New("the client hung up")
	errGone   = errors.New("the server has ended")
)

// Attach implements transport.Reaching. It does nothing.
func (e *Endpoint) Attach(*transport.Agent) {}

// Do sends a post without waiting for the answer. Receive returns the parts of the answer.
func (e *Endpoint) Do(p Post) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return errors.New("the connection has ended")
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	e.streams[p.Ref] = cancel
	at := e.url
	e.running.Go(func() {
		end := e.exchange(ctx, at, p)
		cancel(nil)
		raw, _ := json.Marshal(end) // cannot fail: the members are texts and numbers
		e.put(item{piece: piece{data: raw}, ref: p.Ref, kind: transcript.Ended})
		e.mu.Lock()
		delete(e.streams, p.Ref)
		e.mu.Unlock()
	})
	return nil
}

// HangUp closes the connection of a post, as a front end does when the user stops the run. It returns false if no such
// connection is open.
func (e *Endpoint) HangUp(ref int) bool {
	e.mu.Lock()
	cancel := e.streams[ref]
	e.mu.Unlock()
	if cancel != nil {
		cancel(errHangUp)
	}
	return cancel != nil
}

// put passes an item to Receive, and waits until Receive takes it.
func (e *Endpoint) put(it item) {
	select {
	case e.items <- it:
	case <-e.dead:
	}
}

// Send returns an error. This transport has no lines; use Do.
func (e *Endpoint) Send([]byte) (waited bool, err error) {
	return false, errors.New("an AG-UI endpoint takes posts, not lines")
}

// Receive waits for the next item on any stream.
func (e *Endpoint) Receive() (wire.Line, error) {
	select {
	case e.last = <-e.items:
		return wire.Line{Bytes: e.last.data, Size: e.last.size, Terminated: true}, nil
	case <-e.over:
		return wire.Line{}, io.EOF
	case <-e.dead:
		return wire.Line{}, io.EOF
	}
}

// Append appends the entry for the item that Receive returned last.
func (e *Endpoint) Append(t *transcript.Transcript, conn int, _ wire.Line) transcript.Entry {
	it := e.last
	if it.kind == "" {
		return it.add(t, conn, it.ref)
	}
	return t.Append(transcript.Entry{Conn: conn, Source: transcript.Agent, Kind: it.kind, Method: aguiframe.Run,
		Session: t.At(it.ref).Session, ID: t.At(it.ref).ID, Ref: it.ref, Raw: it.data})
}

// CloseSend closes all open connections. Receive still returns the items received before, and then io.EOF.
func (e *Endpoint) CloseSend() error {
	e.end()
	e.cancel(errHangUp)
	return nil
}

// Gone must be called when the server has exited. It gives the streams one second to end by themselves, and then
// closes them.
func (e *Endpoint) Gone() {
	e.end()
	timer := time.AfterFunc(time.Second, func() { e.cancel(errGone) })
	<-e.over
	timer.Stop()
}

func (e *Endpoint) cancel(why error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, cancel := range e.streams {
		cancel(why)
	}
}

// end makes Do reject further posts.
func (e *Endpoint) end() {
	e.mu.Lock()
	e.closed = true
	e.mu.Unlock()
	e.once.Do(func() {
		go func() {
			e.running.Wait()
			e.client.CloseIdleConnections()
			close(e.over)
		}()
	})
}

// Close ends a waiting Receive.
func (e *Endpoint) Close() error {
	e.mu.Lock()
	select {
	case <-e.dead:
	default:
		close(e.dead)
	}
	e.mu.Unlock()
	return e.CloseSend()
}

// Unread returns false: for a network connection, the number of unread bytes is not known.
func (e *Endpoint) Unread() (n int, ok bool) { return 0, false }

// Drained returns false: for a network connection, this is not known.
func (e *Endpoint) Drained() (done <-chan struct{}, ok bool) { return nil, false }

// Import appends the events and the end of a captured stream to a transcript. kind is the stream's media type.
func Import(t *transcript.Transcript, kind string, stream []byte) {
	s := sourceOf(kind, bytes.NewReader(stream))
	end := End{End: Unseen}
	for {
		p, err := next(s)
		if err != nil {
			break // the captured bytes end here
		}
		end.heard(p.data)
		p.add(t, 0, 0)
	}
	if end.Framing = *s.Shows(); end.Events > 0 {
		t.Event(0, transcript.Agent, transcript.Ended, "", end)
	}
}

// At returns an Endpoint for a URL, which may begin with $PRINTED if the agent prints its address.
func At(url string) *Endpoint {
	return &Endpoint{given: transport.Address(url), items: make(chan item), over: make(chan struct{}),
		dead: make(chan struct{}), streams: map[int]context.CancelCauseFunc{}, client: transport.Client(nil)}
}

// Ready waits until the URL is known and a server listens at it; see transport.Address.
func (e *Endpoint) Ready(ctx context.Context, t *transcript.Transcript, conn int, ours bool) error {
	e.mu.Lock()
	known := e.url != ""
	e.mu.Unlock()
	if known {
		return nil
	}
	at, err := e.given.Find(ctx, t, conn, ours)
	if err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.url = at.String()
	return nil
}
