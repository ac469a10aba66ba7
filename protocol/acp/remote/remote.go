// Package remote connects to an ACP agent that is a server, over Streamable HTTP or a WebSocket, as the RFD for this
// transport describes. The transcript records which stream each message used and what happened on the network. The
// messages are the same as those of an agent on stdio.
package remote

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"

	"github.com/acp-test/acp-test/internal/pipe"
	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/transport"
	"github.com/acp-test/acp-test/wire"
)

// These are the headers of the transport.
const (
	ConnectionID    = "Acp-Connection-Id"
	SessionID       = "Acp-Session-Id"
	ProtocolVersion = "Acp-Protocol-Version"
)

const (
	// The maximum times for a server to start, to answer a request, and to end.
	startPatience   = time.Minute
	upgradePatience = 10 * time.Second
	postPatience    = time.Minute
	endPatience     = 2 * time.Second
	// maxMessage is the size of the longest message that is accepted, in bytes.
	maxMessage = 64 << 20
)

// Conn is a connection to an agent. It is a transport.Reaching.
type Conn struct {
	given  transport.Address
	header http.Header
	client *http.Client
	agent  *transport.Agent
	taps

	items chan item
	rests chan struct{} // takes a value while the reader waits
	last  item
	over  chan struct{} // closed when nothing more is to be received
	dead  chan struct{} // closed by Close
	ctx   context.Context
	abort context.CancelFunc

	finding sync.Mutex // guards at
	at      *url.URL   // where the agent listens; nil until that is known

	part    []byte // a message whose end has not been sent
	sending sync.Mutex
	running sync.WaitGroup // what receives

	mu    sync.Mutex
	way   binding // nil until the URL is known
	ended bool    // nothing more is sent
	gone  bool    // the server is no more
	final bool    // nothing more begins to receive
	why   error   // why nothing more is to be received; nil is the end
	once  sync.Once
	held  map[int]*held // what a script has opened, by the Seq of its entry
}

// binding is one of the two ways to connect to an agent.
type binding interface {
	// send sends a message.
	send(line []byte) error
	// end tells the agent that the editor will send no more messages.
	end()
}

// item is a received message.
type item struct {
	data    []byte
	size    int // if not all of it was kept
	stream  int
	problem string // why it is no message, whatever is in it
}

// At returns a connection to the agent at a URL, which may begin with $PRINTED. The headers are sent with each
// request.
func At(url string, headers map[string]string) *Conn {
	c := &Conn{given: transport.Address(url), header: http.Header{}, items: make(chan item),
		rests: make(chan struct{}), over: make(chan struct{}), dead: make(chan struct{})}
	c.ctx, c.abort = context.WithCancel(context.Background())
	c.client = transport.Client(dial)
	for name, value := range headers {
		c.header.Set(name, value)
	}
	return c
}

// Attach implements transport.Reaching.
func (c *Conn) Attach(a *transport.Agent) { c.agent = a }

// find waits until the agent listens, and returns its URL.
func (c *Conn) find() (*url.URL, error) {
	c.finding.Lock()
	defer c.finding.Unlock()
	if c.at != nil {
		return c.at, nil
	}
	ctx, cancel := context.WithTimeout(c.ctx, startPatience)
	defer cancel()
	at, err := c.given.Find(ctx, c.agent.Transcript(), c.agent.Conn(), c.agent.HasProcess())
	if err == nil && !strings.Contains(" http https ws wss ", " "+at.Scheme+" ") {
		err = fmt.Errorf("%s: the URL of an agent begins with http, https, ws or wss", at.Redacted())
	}
	if err != nil {
		return nil, err
	}
	c.at = at
	return at, nil
}

// reach begins the connection, with the binding for the scheme of the URL.
func (c *Conn) reach() (binding, error) {
	c.mu.Lock()
	way, over := c.way, c.gone || c.ended
	c.mu.Unlock()
	switch {
	case way != nil:
		return way, nil
	case over:
		return nil, transport.ErrExited
	}
	at, err := c.find()
	if err != nil {
		return nil, err
	}
	if strings.HasPrefix(at.Scheme, "http") {
		way = newHTTP(c, at)
	} else if way, err = newSocket(c, at); err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.way = way
	return way, nil
}

// Send sends each complete message after the agent has accepted the previous one.
func (c *Conn) Send(b []byte) (waited bool, err error) {
	c.sending.Lock()
	defer c.sending.Unlock()
	c.part = append(c.part, b...)
	for {
		line, rest, whole := bytes.Cut(c.part, []byte("\n"))
		if !whole {
			return false, nil
		}
		c.part = bytes.Clone(rest)
		if len(bytes.TrimSpace(line)) == 0 {
			continue // as an agent on stdio ignores it
		}
		way, err := c.reach()
		if err == nil {
			err = way.send(line)
		}
		if err != nil {
			c.stop(err)
			return false, err
		}
	}
}

// put passes a message to the reader. It waits until the reader is ready.
func (c *Conn) put(it item) {
	select {
	case c.items <- it:
	case <-c.dead:
	}
}

// Receive waits for the next message on any stream.
func (c *Conn) Receive() (wire.Line, error) {
	for open := true; open; {
		select {
		case c.last = <-c.items:
			return wire.Line{Bytes: c.last.data, Size: c.last.size, Terminated: true}, nil
		case c.rests <- struct{}{}:
		case <-c.over:
			open = false
		case <-c.dead:
			open = false
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.why != nil {
		return wire.Line{}, c.why
	}
	return wire.Line{}, io.EOF
}

// Append implements transport.Appender.
func (c *Conn) Append(t *transcript.Transcript, conn int, _ wire.Line) transcript.Entry {
	it := c.last
	if it.problem != "" {
		return t.Append(transcript.Entry{Conn: conn, Source: transcript.Agent, Kind: transcript.Malformed,
			Stream: it.stream, Problem: it.problem, Raw: it.data, Size: it.size})
	}
	return t.AppendReceived(conn, it.stream, it.data, it.size)
}

// stop ends the connection. After the last message, Receive returns why, or io.EOF if why is nil.
func (c *Conn) stop(why error) {
	c.once.Do(func() {
		c.mu.Lock()
		c.why, c.ended, c.final = why, true, true
		c.mu.Unlock()
		go func() {
			if why != nil {
				c.abort()
			}
			c.running.Wait()
			c.client.CloseIdleConnections()
			close(c.over)
		}()
	})
}

// receive runs f, which receives messages, in a goroutine. It does nothing if the connection has ended.
func (c *Conn) receive(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.final {
		c.running.Go(f)
	}
}

// ending reports whether the editor will send no more messages. Streams may then end without being opened again.
func (c *Conn) ending() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ended || c.gone
}

// CloseSend tells the agent that the connection is over. Messages that the agent has sent are still received.
func (c *Conn) CloseSend() error {
	c.mu.Lock()
	way, was := c.way, c.ended || c.gone
	c.ended = true
	c.mu.Unlock()
	if way != nil && !was {
		way.end()
	}
	c.stop(nil)
	return nil
}

// Gone gives the streams of a server that has exited one second to end by themselves.
func (c *Conn) Gone() {
	c.mu.Lock()
	c.gone = true
	c.mu.Unlock()
	c.stop(nil)
	timer := time.AfterFunc(time.Second, c.abort)
	<-c.over
	timer.Stop()
}

// Close ends a waiting Receive.
func (c *Conn) Close() error {
	c.mu.Lock()
	select {
	case <-c.dead:
	default:
		close(c.dead)
	}
	c.ended = true
	c.mu.Unlock()
	c.abort()
	c.stop(nil)
	return nil
}

// Unread returns false, because the number is not known for a network connection.
func (c *Conn) Unread() (n int, ok bool) { return 0, false }

// Drained implements transport.Transport.
func (c *Conn) Drained() (done <-chan struct{}, ok bool) {
	all := make(chan struct{})
	go func() {
		defer close(all)
		c.taps.drained(c.ctx)
		select { // the last of it is in the transcript when the reader is back
		case <-c.rests:
		case <-c.over:
		case <-c.dead:
		}
	}()
	return all, true
}

// tap is a TCP connection that can tell when everything received on it has been read.
type tap struct {
	net.Conn
	in     *pipe.Reader
	closed chan struct{}
	once   sync.Once
}

// dial opens a TCP connection with a tap.
func dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	t := &tap{Conn: conn, closed: make(chan struct{})}
	if file, ok := conn.(pipe.File); ok {
		t.in = pipe.NewReader(file)
	}
	return t, nil
}

func (t *tap) Read(p []byte) (int, error) {
	if t.in == nil {
		return t.Conn.Read(p)
	}
	return t.in.Read(p)
}

func (t *tap) Close() error {
	t.once.Do(func() { close(t.closed) })
	return t.Conn.Close()
}

// drained waits until everything received on the connection has been read, or ctx ends.
func (t *tap) drained(ctx context.Context) {
	if t == nil || t.in == nil {
		return
	}
	done, ok := t.in.Drained()
	if !ok {
		return
	}
	select {
	case <-done:
	case <-t.closed:
	case <-ctx.Done():
	}
}

// tapped returns a context for a request. It sets found to the request's connection, and closes freed when the answer
// has been read.
func tapped(ctx context.Context, found **tap, freed chan struct{}) context.Context {
	var once sync.Once
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(info httptrace.GotConnInfo) {
			conn := info.Conn
			if over, ok := conn.(interface{ NetConn() net.Conn }); ok { // TLS
				conn = over.NetConn()
			}
			*found, _ = conn.(*tap)
		},
		PutIdleConn: func(error) { once.Do(func() { close(freed) }) },
	})
}

// taps are the taps of the open streams.
type taps struct {
	guard sync.Mutex
	open  map[*tap]bool
}

// watch adds a tap to the open ones, or removes it.
func (s *taps) watch(t *tap, on bool) {
	if t == nil {
		return
	}
	s.guard.Lock()
	defer s.guard.Unlock()
	if delete(s.open, t); on {
		if s.open == nil {
			s.open = map[*tap]bool{}
		}
		s.open[t] = true
	}
}

// drained waits until everything received on the streams has been read, or ctx ends.
func (s *taps) drained(ctx context.Context) {
	s.guard.Lock()
	open := slices.Collect(maps.Keys(s.open))
	s.guard.Unlock()
	for _, t := range open {
		t.drained(ctx)
	}
}

// problem returns an error's text without the URL, which may be a secret.
func problem(err error) string {
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err
	}
	return err.Error()
}

// told returns the headers that an entry records, all of them without secrets.
func told(h http.Header) map[string]string {
	all := map[string]string{}
	for name, values := range h {
		name = strings.ToLower(name)
		if strings.HasPrefix(name, "acp-") || strings.HasPrefix(name, "access-control-") ||
			strings.Contains(" content-type retry-after allow location www-authenticate sec-websocket-extensions "+
				"sec-websocket-protocol ", " "+name+" ") {
			all[name] = strings.ToValidUTF8(strings.Join(values, ", "), "\uFFFD")
		}
	}
	return all
}

// ending returns how a stream or WebSocket ended. life ends when the client hangs up.
func ending(life context.Context, err error, socket bool) ended {
	var frame websocket.CloseError
	switch {
	case errors.As(err, &frame):
		return ended{End: "closed", Code: int(frame.Code), Reason: frame.Reason}
	case life.Err() != nil:
		return ended{End: "hung up"}
	case errors.Is(err, io.EOF) && socket:
		return ended{End: "cut", Problem: "the connection ended without a close frame"}
	case errors.Is(err, io.EOF):
		return ended{End: "closed"}
	}
	return ended{End: "cut", Problem: problem(err)}
}
