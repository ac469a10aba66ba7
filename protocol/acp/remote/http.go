package remote

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/acp-test/acp-test/internal/sse"
	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/wire"
)

const (
	eventStream = "text/event-stream"
	jsonType    = "application/json"
)

// exchange is the detail of an entry of the kind exchange.
type exchange struct {
	Method string `json:"method"`
	// Message is what the body of a POST is: the method of a request or notification, or "response".
	Message string            `json:"message,omitempty"`
	Status  int               `json:"status,omitempty"`
	Proto   string            `json:"proto,omitempty"`
	Headers map[string]string `json:"headers,omitempty"`
	// Body is the beginning of a body that is no message.
	Body string `json:"body,omitempty"`
	// Connection is the id that the answer gave to a connection of a script's own.
	Connection string `json:"connection,omitempty"`
	// Raw: a script made the request, beside the editor's connection.
	Raw bool `json:"raw,omitempty"`
	// Problem says why there was no answer.
	Problem string `json:"problem,omitempty"`
}

// opened is the detail of an entry of the kind stream.
type opened struct {
	Form    string            `json:"form"` // "connection", "session" or "websocket"
	Status  int               `json:"status"`
	Proto   string            `json:"proto,omitempty"`
	Headers map[string]string `json:"headers,omitempty"`
	// Since is the id of the last event of the stream before it.
	Since string `json:"since,omitempty"`
}

// ended is the detail of an entry of the kind stream-end.
type ended struct {
	End     string `json:"end"` // "closed" by the server, "cut", or "hung up" by the editor
	Problem string `json:"problem,omitempty"`
	// Code and Reason are those of a WebSocket's close frame.
	Code   int    `json:"code,omitempty"`
	Reason string `json:"reason,omitempty"`
	*sse.Framing
}

// overHTTP is the binding of Streamable HTTP: a POST for each message, a stream of events for the
// connection and one for each session.
type overHTTP struct {
	c  *Conn
	at string

	opening sync.Mutex // held while a stream is opened

	mu         sync.Mutex
	connection string             // its id; "" before the answer to initialize
	version    string             // that was agreed
	streams    map[string]*stream // by session, "" is that of the connection
	asked      map[wire.ID]string // the sessions of requests of the agent
	refused    map[string]bool    // sessions whose stream was refused, as it may be before session/load
	closing    map[wire.ID]string // sessions that requests without an answer end
	opens      map[wire.ID]string // sessions that requests without an answer open
}

// stream is an open stream of events.
type stream struct {
	session string
	seq     int
	body    io.ReadCloser
	in      *sse.Reader
	tap     *tap
	last    string // the id of its latest event
	life    context.Context
	hangUp  context.CancelFunc
	done    bool   // the session has ended, and the stream with it
	later   []item // news of a session that is being opened
	events  int
	over    chan struct{}
	freed   chan struct{} // closed when the stream has left its connection
}

// drained waits until what has come by the stream has been received.
func (s *stream) drained(ctx context.Context) {
	s.tap.drained(ctx)
	select {
	case <-s.freed: // the client itself reads the connection, until another request needs it
	case <-s.tap.closed:
	default:
		return
	}
	select {
	case <-s.over:
	case <-ctx.Done():
	}
}

func newHTTP(c *Conn, at *url.URL) *overHTTP {
	return &overHTTP{c: c, at: at.String(), streams: map[string]*stream{}, asked: map[wire.ID]string{},
		refused: map[string]bool{}, closing: map[wire.ID]string{}, opens: map[wire.ID]string{}}
}

// request makes a request of the connection.
func (h *overHTTP) request(ctx context.Context, method, session string, body []byte) (*http.Request, error) {
	r, err := http.NewRequestWithContext(ctx, method, h.at, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header = h.c.header.Clone()
	h.mu.Lock()
	defer h.mu.Unlock()
	for name, value := range map[string]string{ConnectionID: h.connection, SessionID: session,
		ProtocolVersion: h.version} {
		if value != "" {
			r.Header.Set(name, value)
		}
	}
	return r, nil
}

// send implements binding.
func (h *overHTTP) send(line []byte) error {
	v, _ := wire.Parse(line) // what is malformed is posted as it is
	f := wire.Classify(v)
	session := f.Params.Get("sessionId").Str()
	x := exchange{Method: http.MethodPost, Message: cmp.Or(f.Method, f.Kind.String())}
	h.mu.Lock()
	first := h.connection == ""
	switch {
	case f.Kind == wire.Response:
		session = h.asked[f.ID]
		delete(h.asked, f.ID)
	case f.Method == "session/close" || f.Method == "session/delete":
		h.closing[f.ID] = session
	case f.Method == "session/load" || f.Method == "session/resume":
		h.opens[f.ID] = session
	}
	h.mu.Unlock()
	if session != "" && !first {
		if _, err := h.opened(session, ""); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(h.c.ctx, postPatience)
	defer cancel()
	r, err := h.request(ctx, http.MethodPost, session, line)
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", jsonType)
	r.Header.Set("Accept", jsonType+", "+eventStream)
	answer, err := h.c.client.Do(r)
	if err != nil {
		x.Problem = problem(err)
		h.c.entry(transcript.Exchanged, session, 0, x)
		return fmt.Errorf("POST %s (%s): %s", r.URL.Redacted(), x.Message, x.Problem)
	}
	defer answer.Body.Close()
	message, text := bodyOf(answer)
	x.Status, x.Proto, x.Headers, x.Body = answer.StatusCode, answer.Proto, told(answer.Header), text
	seq := h.c.entry(transcript.Exchanged, session, 0, x).Seq
	if first && answer.StatusCode < http.StatusBadRequest {
		if err := h.greeted(answer, f, message); err != nil {
			return err
		}
	}
	if message != nil {
		h.c.put(item{data: message, stream: seq})
		return nil
	}
	switch answer.StatusCode {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusGone,
		http.StatusMethodNotAllowed:
		return fmt.Errorf("POST %s (%s): the server answers %s", r.URL.Redacted(), x.Message, answer.Status)
	}
	return nil
}

// bodyOf returns the body of an answer to a POST: a message, or the text that it begins with.
func bodyOf(answer *http.Response) (message []byte, text string) {
	kind, _, _ := mime.ParseMediaType(answer.Header.Get("Content-Type"))
	most := int64(4 << 10)
	if kind == jsonType {
		most = maxMessage
	}
	if kind == eventStream || kind != jsonType && answer.StatusCode < http.StatusBadRequest {
		// A body without an end must not be waited for.
		timer := time.AfterFunc(5*time.Second, func() { answer.Body.Close() })
		defer timer.Stop()
	}
	body, _ := io.ReadAll(io.LimitReader(answer.Body, most))
	if v, err := wire.Parse(body); err == nil && kind == jsonType && wire.Classify(v).Kind != wire.Malformed {
		return bytes.TrimSpace(body), ""
	}
	return nil, strings.ToValidUTF8(string(body[:min(len(body), 4<<10)]), string(utf8.RuneError))
}

// greeted begins the connection with what answers initialize.
func (h *overHTTP) greeted(answer *http.Response, asked wire.Frame, message []byte) error {
	at := answer.Request.URL.Redacted()
	if asked.Method != "initialize" {
		return nil
	}
	v, _ := wire.Parse(message)
	switch id := answer.Header.Get(ConnectionID); {
	case answer.StatusCode >= http.StatusMultipleChoices:
		return fmt.Errorf("%s answers initialize with %s, to %q: give the URL of the agent itself", at, answer.Status,
			answer.Header.Get("Location"))
	case message == nil:
		return fmt.Errorf("%s answers initialize with %s, type %q, and no JSON-RPC: is that an ACP agent?", at, answer.Status,
			answer.Header.Get("Content-Type"))
	case v.Get("error").Exists():
		return nil // there may be another try
	case id == "":
		return fmt.Errorf("%s answers initialize without the header %s: nothing can follow", at, ConnectionID)
	default:
		h.mu.Lock()
		h.connection, h.version = id, v.Path("result.protocolVersion").Text()
		h.mu.Unlock()
	}
	_, err := h.opened("", "")
	return err
}

// opened opens a stream and lets it be read.
func (h *overHTTP) opened(session, since string) (*stream, error) {
	s, err := h.connect(session, since)
	if s != nil {
		h.c.receive(func() { h.pump(s) })
	}
	return s, err
}

// connect opens a stream. It returns nil if it is open, or refused to a session.
func (h *overHTTP) connect(session, since string) (*stream, error) {
	h.opening.Lock()
	defer h.opening.Unlock()
	h.mu.Lock()
	open := h.streams[session] != nil
	h.mu.Unlock()
	if open || h.c.ending() {
		return nil, nil
	}
	s := &stream{session: session, over: make(chan struct{}), freed: make(chan struct{})}
	life, hangUp := context.WithCancel(h.c.ctx)
	s.life, s.hangUp = life, hangUp
	r, err := h.request(tapped(life, &s.tap, s.freed), http.MethodGet, session, nil)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Accept", eventStream)
	if since != "" {
		r.Header.Set("Last-Event-ID", since)
	}
	form := "connection"
	if session != "" {
		form = "session"
	}
	answer, err := h.c.client.Do(r)
	if err != nil {
		hangUp()
		h.c.entry(transcript.Exchanged, session, 0, exchange{Method: http.MethodGet, Problem: problem(err)})
		return nil, fmt.Errorf("GET %s (the stream of the %s): %s", r.URL.Redacted(), form, problem(err))
	}
	kind, _, _ := mime.ParseMediaType(answer.Header.Get("Content-Type"))
	if answer.StatusCode != http.StatusOK || kind != eventStream {
		message, text := bodyOf(answer)
		answer.Body.Close()
		hangUp()
		h.c.entry(transcript.Exchanged, session, 0, exchange{Method: http.MethodGet, Status: answer.StatusCode,
			Proto: answer.Proto, Headers: told(answer.Header), Body: cmp.Or(text, string(message))})
		h.mu.Lock()
		h.refused[session] = true
		h.mu.Unlock()
		if session != "" {
			return nil, nil
		}
		return nil, fmt.Errorf("GET %s (the stream of the connection): the server answers %s, type %q, instead of 200 and %s",
			r.URL.Redacted(), answer.Status, kind, eventStream)
	}
	s.body, s.in = answer.Body, sse.NewReader(answer.Body)
	s.seq = h.c.entry(transcript.Opened, session, 0, opened{Form: form, Status: answer.StatusCode, Proto: answer.Proto,
		Headers: told(answer.Header), Since: since}).Seq
	h.mu.Lock()
	h.streams[session] = s
	delete(h.refused, session)
	h.mu.Unlock()
	h.c.watch(s.tap, true)
	return s, nil
}

// pump receives the messages of a stream until it ends, and opens it again unless the connection ends.
func (h *overHTTP) pump(s *stream) {
	for {
		e, err := s.in.Next()
		if err != nil {
			h.close(s, err)
			return
		}
		s.events++
		s.last = e.ID
		if len(e.Data) == 0 {
			continue // a keep-alive, which has no message
		}
		h.received(s, item{data: e.Data, size: e.Size, stream: s.seq})
	}
}

// received looks at a message on its way to the reader.
func (h *overHTTP) received(s *stream, it item) {
	v, _ := wire.Parse(it.data)
	f := wire.Classify(v)
	defer h.leave(f)
	if s.session != "" {
		if f.Kind == wire.Request {
			h.mu.Lock()
			h.asked[f.ID] = cmp.Or(f.Params.Get("sessionId").Str(), s.session)
			h.mu.Unlock()
		}
		h.mu.Lock()
		later := slices.Contains(slices.Collect(maps.Values(h.opens)), s.session) &&
			slices.Contains(news, f.Params.Path("update.sessionUpdate").Str())
		if later {
			s.later = append(s.later, it)
		}
		h.mu.Unlock()
		if !later {
			h.flush(s)
			h.c.put(it)
		}
		return
	}
	// Nothing orders two streams, but what the agent wrote to a session's before this has come.
	h.mu.Lock()
	var others []*stream
	var wanted []string
	for _, other := range h.streams {
		if other != s {
			others = append(others, other)
		}
	}
	for session := range h.refused {
		wanted = append(wanted, session)
	}
	h.mu.Unlock()
	for _, other := range others {
		other.drained(h.c.ctx)
	}
	if f.Kind != wire.Response {
		h.c.put(it)
		return
	}
	if session := f.Result.Get("sessionId").Str(); session != "" {
		wanted = append(wanted, session)
	}
	var fresh []*stream
	for _, session := range wanted {
		if s, _ := h.connect(session, ""); s != nil { // an error is in the log, and comes again
			fresh = append(fresh, s)
		}
	}
	h.c.put(it)
	h.mu.Lock()
	loaded := h.streams[h.opens[f.ID]]
	delete(h.opens, f.ID)
	h.mu.Unlock()
	if loaded != nil {
		h.flush(loaded)
	}
	for _, s := range fresh {
		h.c.receive(func() { h.pump(s) })
	}
}

// news are the updates that agents send when a session has been opened. Its answer comes by another
// stream, so nothing says which was first: they are taken to follow it, as on stdio.
var news = []string{"available_commands_update", "usage_update", "session_info_update", "current_mode_update",
	"config_option_update"}

// flush hands the news of a session to the reader.
func (h *overHTTP) flush(s *stream) {
	h.mu.Lock()
	later := s.later
	s.later = nil
	h.mu.Unlock()
	for _, it := range later {
		h.c.put(it)
	}
}

// leave ends the stream of a session that has ended, as a message says.
func (h *overHTTP) leave(f wire.Frame) {
	if f.Kind != wire.Response {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	session := h.closing[f.ID]
	delete(h.closing, f.ID)
	if s := h.streams[session]; s != nil && session != "" && f.Result.Exists() {
		s.done = true
		delete(h.streams, session)
		s.hangUp()
	}
}

// close notes the end of a stream.
func (h *overHTTP) close(s *stream, err error) {
	s.body.Close()
	defer s.hangUp()
	e := ending(s.life, err, false)
	e.Framing = s.in.Shows()
	h.c.entry(transcript.Closed, s.session, s.seq, e)
	h.c.watch(s.tap, false)
	h.flush(s)
	h.mu.Lock()
	if h.streams[s.session] == s {
		delete(h.streams, s.session)
	}
	done := s.done || slices.Contains(slices.Collect(maps.Values(h.closing)), s.session)
	h.mu.Unlock()
	close(s.over)
	if h.c.ending() || s.events == 0 || done {
		if s.session == "" {
			h.c.stop(nil)
		}
		return
	}
	if again, _ := h.opened(s.session, s.last); again == nil && s.session == "" {
		h.c.stop(nil) // without it, nothing can be answered
	}
}

// end implements binding: it deletes the connection.
func (h *overHTTP) end() {
	h.mu.Lock()
	known := h.connection != ""
	h.mu.Unlock()
	if !known {
		return
	}
	ctx, cancel := context.WithTimeout(h.c.ctx, endPatience)
	defer cancel()
	r, err := h.request(ctx, http.MethodDelete, "", nil)
	if err != nil {
		return
	}
	x := exchange{Method: http.MethodDelete}
	answer, err := h.c.client.Do(r)
	if err != nil {
		x.Problem = problem(err)
		h.c.entry(transcript.Exchanged, "", 0, x)
		return
	}
	x.Status, x.Proto, x.Headers = answer.StatusCode, answer.Proto, told(answer.Header)
	answer.Body.Close()
	h.c.entry(transcript.Exchanged, "", 0, x)
	h.mu.Lock()
	open := slices.Collect(maps.Values(h.streams))
	h.mu.Unlock()
	for _, s := range open {
		select {
		case <-s.over:
		case <-ctx.Done():
		}
	}
}
