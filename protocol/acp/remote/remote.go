// Package remote connects to an ACP agent that is a server, over Streamable HTTP or a WebSocket, as the RFD about this
// transport describes. The transcript records on which stream each message came, and what happened on the network. The
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
	// maxMessage is the maximum size of a message, in bytes.
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
	rests chan struct{} // receives a value whenever the reader waits for a message
	last  item
	over  chan struct{} // closed when no more messages will come
	dead  chan struct{} // closed by Close
	ctx   context.Context
	abort context.CancelFunc

	finding sync.Mutex // guards at
	at      *url.URL   // where the agent listens; nil while unknown

	part    []byte // a message whose end has not come yet
	sending sync.Mutex
	running sync.WaitGroup // goroutines that receive messages

	mu    sync.Mutex
	way   binding // nil until the URL is known
	ended bool    // the editor sends no more messages
	gone  bool    // the server has exited
	final bool    // no new goroutine may receive messages
	why   error   // error that ended the connection, or nil
	once  sync.Once
	held  map[int]*held // streams and WebSockets that a script has opened, by Seq of their entry
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
	size    int // size of the message if data has only a part of it, else 0
	stream  int
	problem string // why this is not a valid message, whatever data has
}

// At returns a connection to the agent at a URL, which may begin with $PRINTED if the agent prints its address. The
// headers are sent with each request.
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

// reach opens the connection if it is not open yet. The scheme of the URL selects the binding.
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

// Send sends each complete message in the bytes given so far. It sends a message when the agent has accepted the
// previous one. An incomplete message waits for more bytes.
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
			continue // an agent on stdio ignores empty lines too
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

// put passes a message to Receive, and waits until Receive takes it.
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

// stop ends the connection. When all messages are read, Receive returns why, or io.EOF if why is nil.
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

// receive runs f in a goroutine that receives messages. It does nothing if the connection has ended.
func (c *Conn) receive(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.final {
		c.running.Go(f)
	}
}

// ending reports whether the editor will send no more messages. A stream that ends then need not be reopened.
func (c *Conn) ending() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ended || c.gone
}

// CloseSend tells the agent that the connection ends. Messages that the agent has already sent are still received.
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

// Gone must be called when the server has exited. It gives the streams one second to end by themselves.
func (c *Conn) Gone() {
	c.mu.Lock()
	c.gone = true
	c.mu.Unlock()
	c.stop(nil)
	timer := time.AfterFunc(time.Second, c.abort)
	<-c.over
	timer.Stop()
}

// Close ends the connection at once, and a waiting Receive with it.
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

// Unread returns false: for a network connection, the number of unread bytes is not known.
func (c *Conn) Unread() (n int, ok bool) { return 0, false }

// Drained implements transport.Transport.
func (c *Conn) Drained() (done <-chan struct{}, ok bool) {
	all := make(chan struct{})
	go func() {
		defer close(all)
		c.taps.drained(c.ctx)
		select { // when the reader waits again, its last message is in the transcript
		case <-c.rests:
		case <-c.over:
		case <-c.dead:
		}
	}()
	return all, true
}

// tap is a TCP connection that reports when everything received on it has been read.
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

// drained waits until everything received on the connection has been read, or until ctx ends.
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

// tapped returns a context for a request. The request sets found to its connection. It closes freed when the response
// has been read completely.
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

// taps has the connections of the open streams.
type taps struct {
	guard sync.Mutex
	open  map[*tap]bool
}

// watch adds the connection of a stream if on is true; otherwise it removes the connection.
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

// drained waits until everything received on the streams has been read, or until ctx ends.
func (s *taps) drained(ctx context.Context) {
	s.guard.Lock()
	open := slices.Collect(maps.Keys(s.open))
	s.guard.Unlock()
	for _, t := range open {
		t.drained(ctx)
	}
}

// problem returns the text of an error without the URL, which may be a secret.
func problem(err error) string {
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err
	}
	return err.Error()
}

// told returns the headers that an entry records. None of them is secret.
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

// ending returns how a stream or WebSocket ended. life is the context that the client cancels when it hangs up. socket
// says that err comes from a WebSocket.
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
