package remote

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"

	"github.com/acp-test/acp-test/internal/loopback"
	"github.com/acp-test/acp-test/internal/sse"
	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/transport"
	"github.com/acp-test/acp-test/wire"
)

// Recorder is a proxy, over HTTP and WebSockets, between editors and an agent that is a server. It records each
// message in the transcript, byte for byte, before it passes the message on. It also records other events on the
// network. Connections of editors are numbered from 0.
type Recorder struct {
	log      *transcript.Transcript
	at       *url.URL
	client   *http.Client
	proxy    *httputil.ReverseProxy
	open     sync.WaitGroup
	sessions taps // readers of the streams of sessions

	mu    sync.Mutex
	begun int            // number of connections so far
	known map[string]int // numbers of the connections, by connection id
}

// NewRecorder returns a proxy for the agent at an HTTP URL, which may also serve WebSockets. The proxy accepts only
// requests for the path / and for the path of the URL. An agent on this machine gets the Host header that the editor
// sent.
func NewRecorder(at *url.URL, log *transcript.Transcript) *Recorder {
	t := &Recorder{log: log, at: at, client: transport.Client(dial), known: map[string]int{}}
	t.client.Jar = nil // editors send their own cookies
	t.proxy = &httputil.ReverseProxy{Transport: t.client.Transport, FlushInterval: -1, ModifyResponse: t.answer,
		ErrorHandler: t.failed, Rewrite: func(r *httputil.ProxyRequest) {
			t.aim(r.Out)
			r.Out.Header.Set("Accept-Encoding", "identity") // a compressed body could not be recorded
		}}
	return t
}

// aim changes the URL of a request to the URL of the agent.
func (t *Recorder) aim(r *http.Request) {
	if r.URL.Path == "/" {
		r.URL.Path, r.URL.RawPath, r.URL.RawQuery = t.at.Path, t.at.RawPath, t.at.RawQuery
	}
	if r.URL.Scheme, r.URL.Host = t.at.Scheme, t.at.Host; !loopback.Local(t.at.Host) {
		r.Host = t.at.Host
	}
}

// passage is a request that the proxy passes on to the agent.
type passage struct {
	conn int
	exchange
	session string
	tap     *tap
}

type passageKey struct{}

// ServeHTTP implements http.Handler.
func (t *Recorder) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	t.open.Add(1)
	defer t.open.Done()
	if at := strings.TrimSuffix(r.URL.Path, "/"); at != "" && at != strings.TrimSuffix(t.at.Path, "/") {
		why := fmt.Sprintf("acp-test records only the agent: send requests to / or %s, not %s", t.at.Path, r.URL.Path)
		http.Error(w, why, http.StatusNotFound)
		return
	}
	if strings.EqualFold(r.Header.Get("Upgrade"), "websocket") {
		t.socket(w, r)
		return
	}
	p := &passage{exchange: exchange{Method: r.Method}, session: r.Header.Get(SessionID)}
	t.mu.Lock()
	p.conn = t.known[r.Header.Get(ConnectionID)]
	t.mu.Unlock()
	if r.Method == http.MethodPost {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxMessage))
		if err != nil {
			http.Error(w, err.Error(), http.StatusRequestEntityTooLarge)
			return
		}
		v, _ := wire.Parse(body) // a malformed message is passed on unchanged
		f := wire.Classify(v)
		if p.Message = f.Method; p.Message == "" {
			p.Message = f.Kind.String()
		}
		if f.Method == "initialize" && r.Header.Get(ConnectionID) == "" {
			p.conn = t.begin()
		}
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		t.log.AppendFrame(p.conn, transcript.Editor, body, 0)
	}
	ctx := tapped(context.WithValue(r.Context(), passageKey{}, p), &p.tap, make(chan struct{}))
	t.proxy.ServeHTTP(w, r.WithContext(ctx))
}

// begin returns the number of a new connection.
func (t *Recorder) begin() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.begun++
	return t.begun - 1
}

// Wait waits until all requests that the proxy has accepted have ended.
func (t *Recorder) Wait() { t.open.Wait() }

// answer records the status, the headers and the body of a response. If the body is an event stream, each event is
// recorded when it passes.
func (t *Recorder) answer(r *http.Response) error {
	p := r.Request.Context().Value(passageKey{}).(*passage)
	if id := r.Header.Get(ConnectionID); id != "" && p.Message == "initialize" {
		t.mu.Lock()
		t.known[id] = p.conn
		t.mu.Unlock()
	}
	p.Status, p.Proto, p.Headers = r.StatusCode, r.Proto, numbered(r.Header, p.conn)
	kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if kind != eventStream || r.StatusCode != http.StatusOK {
		var read bytes.Buffer
		rest := r.Body
		r.Body = struct {
			io.Reader
			io.Closer
		}{io.TeeReader(rest, &read), rest}
		message, text := bodyOf(r)
		p.Body = text
		e := note(t.log, p.conn, transcript.Exchanged, p.session, 0, p.exchange)
		if message != nil {
			t.log.AppendReceived(p.conn, e.Seq, message, 0)
		}
		r.Body = struct {
			io.Reader
			io.Closer
		}{io.MultiReader(&read, rest), rest}
		return nil
	}
	form := "connection"
	if p.session != "" {
		form = "session"
		t.sessions.watch(p.tap, true)
	}
	opening := note(t.log, p.conn, transcript.Opened, p.session, 0, opened{Form: form, Status: p.Status, Proto: p.Proto,
		Headers: p.Headers, Since: r.Request.Header.Get("Last-Event-ID")})
	in := &events{}
	body := &sse.Passing{Body: r.Body, In: in, Ended: func(err error) {
		t.sessions.watch(p.tap, false)
		e := ending(r.Request.Context(), err, false)
		e.Framing = in.Shows()
		note(t.log, p.conn, transcript.Closed, p.session, opening.Seq, e)
	}}
	in.Reader, in.heard = sse.NewReader(body.Feed()), func(e sse.Event) {
		if p.session == "" { // events that the agent wrote earlier to the streams of sessions pass first
			wait, cancel := context.WithTimeout(r.Request.Context(), time.Second)
			defer cancel()
			t.sessions.drained(wait)
		}
		t.log.AppendReceived(p.conn, opening.Seq, bytes.TrimSpace(e.Data), e.Size)
	}
	r.Body = body
	return nil
}

// numbered returns the headers to record. The connection id is replaced with the number of the connection, because
// anyone who knows the id can use the connection.
func numbered(h http.Header, conn int) map[string]string {
	all := told(h)
	if name := strings.ToLower(ConnectionID); all[name] != "" {
		all[name] = strconv.Itoa(conn)
	}
	return all
}

// events reads the events of a stream that the proxy passes on.
type events struct {
	*sse.Reader
	heard func(sse.Event)
}

// Step reads the next event for sse.Passing.
func (s *events) Step() error {
	e, complete, err := s.Reader.Step()
	if complete && err == nil {
		s.heard(e)
	}
	return err
}

// failed records a request that the agent did not answer, and answers the editor with an error.
func (t *Recorder) failed(w http.ResponseWriter, r *http.Request, err error) {
	p := r.Context().Value(passageKey{}).(*passage)
	p.Problem = problem(err)
	note(t.log, p.conn, transcript.Exchanged, p.session, 0, p.exchange)
	http.Error(w, "the agent cannot be reached: "+p.Problem, http.StatusBadGateway)
}

// ofTheSocket has the headers that belong to one WebSocket and must not be copied to the other.
var ofTheSocket = []string{"Connection", "Upgrade", "Sec-Websocket-Key", "Sec-Websocket-Version",
	"Sec-Websocket-Extensions", "Sec-Websocket-Protocol", "Sec-Websocket-Accept"}

// own returns the headers without those in ofTheSocket.
func own(h http.Header) http.Header {
	h = h.Clone()
	maps.DeleteFunc(h, func(name string, _ []string) bool { return slices.Contains(ofTheSocket, name) })
	return h
}

// socket opens a WebSocket to the agent and connects it with the editor's WebSocket. Each of the two has its own
// compression, pings and fragments.
func (t *Recorder) socket(w http.ResponseWriter, r *http.Request) {
	to := r.Clone(r.Context())
	t.aim(to)
	offered := strings.Fields(strings.ReplaceAll(r.Header.Get("Sec-WebSocket-Protocol"), ",", " "))
	conn := t.begin()
	agent, answer, err := websocket.Dial(r.Context(), to.URL.String(),
		&websocket.DialOptions{HTTPClient: t.client, HTTPHeader: own(r.Header), Host: to.Host, Subprotocols: offered})
	if err != nil {
		x := exchange{Method: http.MethodGet, Message: "upgrade", Problem: problem(err), Status: http.StatusBadGateway}
		if answer != nil {
			x.Status, x.Proto, x.Headers = answer.StatusCode, answer.Proto, told(answer.Header)
			_, x.Body = bodyOf(answer)
			maps.Copy(w.Header(), own(answer.Header))
			w.Header().Del("Content-Length")
		}
		note(t.log, conn, transcript.Exchanged, "", 0, x)
		w.WriteHeader(x.Status)
		_, _ = io.WriteString(w, x.Body)
		return
	}
	defer func() { _ = agent.CloseNow() }()
	maps.Copy(w.Header(), own(answer.Header))
	accept := &websocket.AcceptOptions{InsecureSkipVerify: true} // the agent has checked the origin
	if agent.Subprotocol() != "" {
		accept.Subprotocols = []string{agent.Subprotocol()}
	}
	editor, err := websocket.Accept(w, r, accept)
	if err != nil {
		return
	}
	defer func() { _ = editor.CloseNow() }()
	opening := note(t.log, conn, transcript.Opened, "", 0, opened{Form: "websocket", Status: answer.StatusCode,
		Proto: answer.Proto, Headers: numbered(answer.Header, conn)})
	life, hangUp := context.WithCancel(r.Context())
	defer hangUp()
	over := make(chan struct{})
	go func() {
		defer close(over)
		_ = passed(life, editor, agent, func(data []byte, _ bool) {
			t.log.AppendFrame(conn, transcript.Editor, data, 0)
		})
		hangUp()
	}()
	why := passed(life, agent, editor, func(data []byte, binary bool) {
		if binary {
			t.log.Append(transcript.Entry{Conn: conn, Source: transcript.Agent, Kind: transcript.Malformed,
				Stream: opening.Seq, Problem: inBinary, Raw: data})
			return
		}
		t.log.AppendReceived(conn, opening.Seq, data, 0)
	})
	note(t.log, conn, transcript.Closed, "", opening.Seq, ending(life, why, true))
	hangUp()
	<-over
}

// passed passes messages on until from is closed. Then it closes to in the same way, and returns the reason.
func passed(ctx context.Context, from, to *websocket.Conn, heard func(data []byte, binary bool)) error {
	from.SetReadLimit(maxMessage)
	for {
		kind, data, err := from.Read(ctx)
		if err == nil {
			heard(data, kind == websocket.MessageBinary)
			err = to.Write(ctx, kind, data)
		}
		var frame websocket.CloseError
		switch {
		case err == nil:
			continue
		case !errors.As(err, &frame): // without a close frame from one side, the other side gets none either
		case frame.Code == websocket.StatusNoStatusRcvd:
			_ = to.Close(websocket.StatusNormalClosure, "")
		default:
			_ = to.Close(frame.Code, frame.Reason)
		}
		return err
	}
}
