// Package endpoint reaches an AG-UI agent over HTTP: each frame of the client is a POST,
// and what answers it comes as entries of the transcript, byte for byte, whatever it is.
package endpoint

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/acp-test/acp-test/protocol/agui/aguiframe"
	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/wire"
)

// EventStream is the media type of a stream of server-sent events.
const EventStream = "text/event-stream"

// Ways in which an answer ends.
const (
	Closed      = "closed"      // the server closed the body
	Cut         = "cut"         // the connection broke
	HungUp      = "hung up"     // the client closed the connection
	LeftOpen    = "left open"   // nothing followed the end of the run, and the client closed the connection
	Refused     = "refused"     // the status is not 200
	NoStream    = "no stream"   // the status is 200, and the body no event stream
	Unreachable = "unreachable" // there was no answer
)

// Head is what an answer begins with: the Raw of a transcript.Response.
type Head struct {
	Status int    `json:"status"`
	Proto  string `json:"proto"`
	// Type is the media type without its parameters, in small letters.
	Type string `json:"type,omitempty"`
	// Headers are by their names in small letters.
	Headers map[string]string `json:"headers"`
	// Body is the beginning of a body that is no event stream.
	Body string `json:"body,omitempty"`
}

// End is how an answer ended: the Raw of a transcript.Ended.
type End struct {
	End string `json:"end"`
	// Status is that of an answer that is no stream.
	Status int `json:"status,omitempty"`
	// Problem says why, where the protocol of the connection does.
	Problem string `json:"problem,omitempty"`
	// Last is the type of the last event that ended a run, with nothing behind it but
	// events of no run; "" if no run had ended. Outcome is that of a RUN_FINISHED.
	Last    string `json:"last,omitempty"`
	Outcome string `json:"outcome,omitempty"`
	Framing
}

// EndOf returns how an answer ended, as scenarios call it; "" if an entry is no end.
func EndOf(e transcript.Entry) string {
	if e.Kind != transcript.Ended {
		return ""
	}
	v := e.JSON()
	switch end := v.Get("end").Str(); {
	case v.Get("last").Is("RUN_ERROR"):
		return "error"
	case v.Get("last").Is("RUN_FINISHED"):
		if outcome := v.Get("outcome").Str(); outcome == "interrupt" || outcome == "cancelled" {
			return outcome
		}
		return "finished"
	case end == Closed || end == Cut:
		return "truncated"
	case end == HungUp:
		return "hung-up"
	case end == Refused:
		return "refused"
	case end == NoStream:
		return "no-stream"
	}
	return "unreachable"
}

// Post is one request of the client.
type Post struct {
	// Ref is the Seq of its entry.
	Ref  int
	Body []byte
	// Method is "POST" unless it is set; Type and Accept are the media types that
	// go with it, "" the usual ones and "-" none. Header is beside these.
	Method, Type, Accept string
	Header               map[string]string
	// Patience is how long the body may stay open after the end of the run.
	Patience time.Duration
}

// Endpoint is where an agent is reached. It is a transport.Reaching.
type Endpoint struct {
	given  string
	client *http.Client

	items chan item
	last  item          // the one that was received last
	over  chan struct{} // closed when nothing more is to be received
	dead  chan struct{} // closed by Close

	mu      sync.Mutex
	url     string // "" until it is known
	closed  bool
	streams map[int]context.CancelCauseFunc
	running sync.WaitGroup
	once    sync.Once
}

// item is what is received: a piece of a stream, or one of the entries around them.
type item struct {
	piece
	ref  int
	kind transcript.Kind // "" is an event
}

// Why a client closes a connection.
var (
	errHangUp = errors.New("the client hung up")
	errGone   = errors.New("the server has ended")
)

// At returns the endpoint at a URL, which may begin with $PRINTED.
func At(url string) *Endpoint {
	return &Endpoint{
		given: url, items: make(chan item), over: make(chan struct{}), dead: make(chan struct{}),
		streams: map[int]context.CancelCauseFunc{},
		client: &http.Client{
			Transport: &http.Transport{
				DisableCompression: true, TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12},
				ResponseHeaderTimeout: time.Minute, MaxResponseHeaderBytes: 1 << 20,
			},
			// A client that follows one may post a whole conversation to another host.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
}

var printedURL = regexp.MustCompile(`https?://[A-Za-z0-9.:\[\]_-]+(?:/[^\s"'<>\x1b]*)?[\s"'<>\x1b]`)

// Ready waits until the URL is known and somebody listens there, as long as the server
// may be starting: one that is not ours, ours says false, has to listen already. t is the
// transcript in which the server's output is.
func (e *Endpoint) Ready(ctx context.Context, t *transcript.Transcript, conn int, ours bool) error {
	e.mu.Lock()
	known := e.url != ""
	e.mu.Unlock()
	if known {
		return nil
	}
	at, err := e.printed(ctx, t, conn)
	if err != nil {
		return err
	}
	u, err := url.Parse(at)
	if err != nil || u.Host == "" {
		return fmt.Errorf("%q is no URL of an agent", at)
	}
	if err := e.listening(ctx, t, u, ours); err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.url = at
	return nil
}

// printed is the URL, with what the server prints in the place of $PRINTED.
func (e *Endpoint) printed(ctx context.Context, t *transcript.Transcript, conn int) (string, error) {
	if !strings.Contains(e.given, "$PRINTED") {
		return e.given, nil
	}
	var found string
	o := t.Await(ctx, 0, transcript.Expect("a URL that the server prints", func() transcript.Fold {
		var text []byte
		return func(entry transcript.Entry) (transcript.Verdict, string) {
			if entry.Source == transcript.Stderr && entry.Conn == conn && len(text) < 1<<20 {
				text = append(text, entry.Raw...)
				if at := printedURL.Find(text); at != nil {
					found = string(at[:len(at)-1])
					return transcript.Met, ""
				}
			}
			return transcript.Unmet, "it has printed no URL"
		}
	}))
	if !o.Met() {
		return "", fmt.Errorf("the server printed no URL: %s", cmp.Or(o.Reason, "it does not say where it listens"))
	}
	rest := strings.TrimPrefix(e.given, "$PRINTED")
	if rest != "" {
		found = strings.TrimSuffix(found, "/")
	}
	return strings.Replace(found, "//0.0.0.0:", "//127.0.0.1:", 1) + rest, nil
}

// listening waits until a connection can be made. Nobody tells when that is so: it
// can only be tried.
func (e *Endpoint) listening(ctx context.Context, t *transcript.Transcript, u *url.URL, ours bool) error {
	host := net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), map[string]string{"https": "443"}[u.Scheme], "80"))
	gone := transcript.First("its end", func(entry transcript.Entry) bool {
		return entry.Source == transcript.Process && entry.Kind == transcript.Exited
	})
	for {
		c, err := (&net.Dialer{}).DialContext(ctx, "tcp", host)
		if err == nil {
			return c.Close()
		}
		if !ours {
			return fmt.Errorf("nobody listens at %s: %w", u.Redacted(), err)
		}
		pause, stop := context.WithTimeout(ctx, 10*time.Millisecond)
		o := t.Await(pause, 0, gone)
		stop()
		if o.Met() || ctx.Err() != nil {
			return fmt.Errorf("nobody listens at %s: %w", u.Redacted(), err)
		}
	}
}

// Do posts, and does not wait: all that comes of it is received.
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
		raw, _ := json.Marshal(end) // texts and numbers have a form
		e.put(item{piece: piece{data: raw}, ref: p.Ref, kind: transcript.Ended})
		e.mu.Lock()
		delete(e.streams, p.Ref)
		e.mu.Unlock()
	})
	return nil
}

// HangUp closes the connection of a post, as a client does that is told to stop.
func (e *Endpoint) HangUp(ref int) bool {
	e.mu.Lock()
	cancel := e.streams[ref]
	e.mu.Unlock()
	if cancel != nil {
		cancel(errHangUp)
	}
	return cancel != nil
}

// put hands an item to the reader, as soon as it is ready for it.
func (e *Endpoint) put(it item) {
	select {
	case e.items <- it:
	case <-e.dead:
	}
}

// exchange is one request and its answer.
func (e *Endpoint) exchange(ctx context.Context, at string, p Post) End {
	r, err := http.NewRequestWithContext(ctx, cmp.Or(p.Method, http.MethodPost), at, bytes.NewReader(p.Body))
	if err != nil {
		return End{End: Unreachable, Problem: err.Error()}
	}
	set := func(name, value, usual string) {
		if value = cmp.Or(value, usual); value != "-" {
			r.Header.Set(name, value)
		}
	}
	set("Content-Type", p.Type, "application/json")
	set("Accept", p.Accept, EventStream)
	for name, value := range p.Header {
		r.Header.Set(name, value)
	}
	answer, err := e.client.Do(r)
	if err != nil {
		return ended(ctx, Unreachable, err)
	}
	defer answer.Body.Close()
	head := headOf(answer)
	streams := answer.StatusCode == http.StatusOK && head.Type == EventStream
	if !streams {
		// A body without an end must not be waited for.
		timer := time.AfterFunc(5*time.Second, func() { answer.Body.Close() })
		body, _ := io.ReadAll(io.LimitReader(answer.Body, 64<<10))
		timer.Stop()
		head.Body = strings.ToValidUTF8(string(body), string(utf8.RuneError))
	}
	raw, _ := json.Marshal(head) // texts and numbers have a form
	e.put(item{piece: piece{data: raw}, ref: p.Ref, kind: transcript.Response})
	switch {
	case streams:
		return e.stream(ctx, answer.Body, p)
	case answer.StatusCode != http.StatusOK:
		return End{End: Refused, Status: head.Status}
	}
	return End{End: NoStream, Status: head.Status}
}

func headOf(r *http.Response) Head {
	h := Head{Status: r.StatusCode, Proto: r.Proto, Headers: map[string]string{}}
	for name, values := range r.Header {
		h.Headers[strings.ToLower(name)] = strings.ToValidUTF8(strings.Join(values, ", "), string(utf8.RuneError))
	}
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err == nil {
		h.Type = kind
	}
	return h
}

// stream reads the events of an answer.
func (e *Endpoint) stream(ctx context.Context, body io.ReadCloser, p Post) (end End) {
	s := newSSE(body)
	var open *time.Timer // runs once the run has ended
	late := make(chan struct{})
	defer func() {
		end.Framing = s.framing
		if open != nil {
			open.Stop()
		}
	}()
	for {
		piece, err := s.next()
		if err != nil {
			select {
			case <-late:
				end.End = LeftOpen
				return end
			default:
			}
			last, outcome := end.Last, end.Outcome
			// A server may close the body because the client has hung up.
			if end = (End{End: Closed}); !errors.Is(err, io.EOF) || ctx.Err() != nil {
				end = ended(ctx, Cut, err)
			}
			end.Last, end.Outcome = last, outcome
			return end
		}
		if last, outcome, of := runEvent(piece.data); of {
			end.Last, end.Outcome = last, outcome
		}
		e.put(item{piece: piece, ref: p.Ref})
		switch {
		case end.Last == "" && open != nil:
			open.Stop()
			open = nil
		case end.Last != "" && open == nil && p.Patience > 0:
			open = time.AfterFunc(p.Patience, func() {
				close(late)
				body.Close()
			})
		}
	}
}

// runEvent tells whether an event begins or ends a run: last is "" if it begins one.
func runEvent(data []byte) (last, outcome string, of bool) {
	if !bytes.Contains(data, []byte("RUN_")) {
		return "", "", false
	}
	v, err := wire.Parse(data)
	if err != nil {
		return "", "", false
	}
	switch kind := v.Get("type").Str(); kind {
	case "RUN_STARTED":
		return "", "", true
	case "RUN_FINISHED":
		return kind, v.Path("outcome.type").Str(), true
	case "RUN_ERROR":
		return kind, "", true
	}
	return "", "", false
}

// ended is the end that an error makes, unless the client made it.
func ended(ctx context.Context, how string, err error) End {
	if errors.Is(context.Cause(ctx), errHangUp) {
		return End{End: HungUp}
	}
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err // the rest of it says what was asked
	}
	return End{End: how, Problem: err.Error()}
}

// Send is for transports of lines: what is posted goes through Do.
func (e *Endpoint) Send([]byte) (waited bool, err error) {
	return false, errors.New("a run is posted, not written")
}

// Receive waits for what comes next, of any stream.
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

// Append makes the entry of what was received last.
func (e *Endpoint) Append(t *transcript.Transcript, conn int, _ wire.Line) transcript.Entry {
	it := e.last
	if it.kind == "" {
		return t.AppendReply(conn, it.ref, it.data, it.size)
	}
	return t.Append(transcript.Entry{Conn: conn, Source: transcript.Agent, Kind: it.kind, Method: aguiframe.Run,
		Session: t.At(it.ref).Session, ID: t.At(it.ref).ID, Ref: it.ref, Raw: it.data})
}

// CloseSend hangs up what is open; Receive ends when all of it has been received.
func (e *Endpoint) CloseSend() error {
	e.end()
	e.cancel(errHangUp)
	return nil
}

// Gone leaves the streams of a server that has ended a moment to end by themselves.
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

// end takes no more posts.
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

// Close ends a Receive that waits.
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

// Unread cannot be told of a connection.
func (e *Endpoint) Unread() (n int, ok bool) { return 0, false }

// Drained cannot be told of a connection.
func (e *Endpoint) Drained() (done <-chan struct{}, ok bool) { return nil, false }

// Import appends the events of a captured stream, and its end, to a transcript.
func Import(t *transcript.Transcript, stream []byte) {
	s := newSSE(bytes.NewReader(stream))
	end := End{End: Closed}
	for {
		p, err := s.next()
		if err != nil {
			break // the bytes are here: it is their end
		}
		if last, outcome, of := runEvent(p.data); of {
			end.Last, end.Outcome = last, outcome
		}
		t.AppendReply(0, 0, p.data, p.size)
	}
	if end.Framing = s.framing; end.Events > 0 {
		t.Event(0, transcript.Agent, transcript.Ended, "", end)
	}
}
