package remote

import (
	"bytes"
	"cmp"
	"context"
	"errors"
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

// exchange is the content of an entry about an HTTP request and its response.
type exchange struct {
	Method string `json:"method"`
	// Message is what a POST contained: the method of a request or notification, or "response".
	Message string            `json:"message,omitempty"`
	Status  int               `json:"status,omitempty"`
	Proto   string            `json:"proto,omitempty"`
	Headers map[string]string `json:"headers,omitempty"`
	// Body is the beginning of the response body, if the body is not a message.
	Body string `json:"body,omitempty"`
	// Connection is the connection id in the answer to a script's own request.
	Connection string `json:"connection,omitempty"`
	// Trouble is the simulated network failure that hit the exchange.
	Trouble Trouble `json:"trouble,omitempty"`
	// Raw says that a script made the request itself, outside the editor's connection.
	Raw bool `json:"raw,omitempty"`
	// Problem says why there was no response.
	Problem string `json:"problem,omitempty"`
}

// opened is the content of an entry about the start of a stream.
type opened struct {
	Form    string            `json:"form"` // "connection", "session" or "websocket"
	Status  int               `json:"status"`
	Proto   string            `json:"proto,omitempty"`
	Headers map[string]string `json:"headers,omitempty"`
	// Since is the id of the last event on the previous stream, which this stream continues.
	Since string `json:"since,omitempty"`
}

// ended is the content of an entry about the end of a stream.
type ended struct {
	End     string  `json:"end"` // "closed" by the server, "cut", or "hung up" by the editor
	Trouble Trouble `json:"trouble,omitempty"`
	Problem string  `json:"problem,omitempty"`
	Cursors bool    `json:"cursors,omitempty"` // each message had an id, so that a stream that breaks can be resumed
	// Code and Reason come from the close frame of a WebSocket.
	Code   int    `json:"code,omitempty"`
	Reason string `json:"reason,omitempty"`
	*sse.Framing
}

// overHTTP is the binding for Streamable HTTP. It sends each message in a POST. It receives messages on event streams:
// one for the connection and one for each session.
type overHTTP struct {
	c  *Conn
	at string

	opening sync.Mutex // held while a stream is opened

	mu         sync.Mutex
	connection string             // connection id; "" before the answer to initialize
	version    string             // negotiated protocol version
	streams    map[string]*stream // open streams by session; "" for that of the connection
	asked      map[wire.ID]string // session of each open request of the agent
	refused    map[string]bool    // sessions whose stream was refused, which may happen before session/load
	closing    map[wire.ID]string // sessions that open session/close and session/delete requests end
	opens      map[wire.ID]string // sessions that open session/load and session/resume requests open
	troubles   []Trouble          // simulated failures that have not happened yet
	cursors    bool               // some event has had an id
	conflict   bool               // the server refused the latest stream because it has a reader already
}

func newHTTP(c *Conn, at *url.URL) *overHTTP {
	return &overHTTP{c: c, at: at.String(), streams: map[string]*stream{}, asked: map[wire.ID]string{},
		refused: map[string]bool{}, closing: map[wire.ID]string{}, opens: map[wire.ID]string{}}
}

// request returns an HTTP request on the editor's connection.
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
	v, _ := wire.Parse(line) // a malformed line is posted unchanged
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
	answer, err := h.post(ctx, session, line, x)
	if err != nil {
		x.Problem = problem(err)
		if errors.Is(err, errUnanswered) {
			x.Trouble = Unanswered
			h.c.entry(transcript.Exchanged, session, 0, x)
			return nil // the effect of the message, if any, shows on the streams
		}
		h.c.entry(transcript.Exchanged, session, 0, x)
		return fmt.Errorf("POST %s (%s): %s", h.c.at.Redacted(), x.Message, x.Problem)
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
		return fmt.Errorf("POST %s (%s): the server answered %s", h.c.at.Redacted(), x.Message, answer.Status)
	}
	return nil
}

// bodyOf returns the body of the response to a POST. If the body is not a message, it returns the beginning of the
// text.
func bodyOf(answer *http.Response) (message []byte, text string) {
	kind, _, _ := mime.ParseMediaType(answer.Header.Get("Content-Type"))
	most := int64(4 << 10)
	if kind == jsonType {
		most = maxMessage
	}
	if kind == eventStream || kind != jsonType && answer.StatusCode < http.StatusBadRequest {
		// The body may never end.
		timer := time.AfterFunc(5*time.Second, func() { answer.Body.Close() })
		defer timer.Stop()
	}
	body, _ := io.ReadAll(io.LimitReader(answer.Body, most))
	if v, err := wire.Parse(body); err == nil && kind == jsonType && wire.Classify(v).Kind != wire.Malformed {
		return bytes.TrimSpace(body), ""
	}
	return nil, strings.ToValidUTF8(string(body[:min(len(body), 4<<10)]), string(utf8.RuneError))
}

// greeted begins the connection if the answer is the response to initialize. Other answers are ignored.
func (h *overHTTP) greeted(answer *http.Response, asked wire.Frame, message []byte) error {
	at := answer.Request.URL.Redacted()
	if asked.Method != "initialize" {
		return nil
	}
	v, _ := wire.Parse(message)
	switch id := answer.Header.Get(ConnectionID); {
	case answer.StatusCode >= http.StatusMultipleChoices:
		return fmt.Errorf("%s answered initialize with %s (Location: %q): give the URL of the agent itself", at,
			answer.Status, answer.Header.Get("Location"))
	case message == nil:
		return fmt.Errorf("%s answered initialize with %s, type %q, and no JSON-RPC: is that an ACP agent?", at,
			answer.Status, answer.Header.Get("Content-Type"))
	case v.Get("error").Exists():
		return nil // the editor may try again
	case id == "":
		return fmt.Errorf("%s answered initialize without the header %s, which later requests need", at, ConnectionID)
	default:
		h.mu.Lock()
		h.connection, h.version = id, v.Path("result.protocolVersion").Text()
		h.mu.Unlock()
	}
	_, err := h.opened("", "")
	return err
}

// end implements binding. It sends a DELETE for the connection.
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
		s.ends(ctx)
	}
}
