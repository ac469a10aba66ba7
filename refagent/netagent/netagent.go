// Package netagent serves the reference agent over Streamable HTTP and WebSocket, both at one URL, as
// the RFD of that transport has them: each connection is an agent of its own.
package netagent

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/acp-test/acp-test/refagent"
)

// Path is where the agent is on its server.
const Path = "/acp"

// Headers of the transport.
const (
	connectionHeader = "Acp-Connection-Id"
	sessionHeader    = "Acp-Session-Id"
)

const (
	mostBody     = 16 << 20         // of a POST and of a message over a WebSocket
	mostBuffered = 64 << 20         // of a connection, until a reader takes it
	silence      = 15 * time.Second // after which a stream gets a comment
)

// Options of a server. Listen or Listener, and Agent, are needed.
type Options struct {
	Listen   string
	Listener net.Listener
	Out, Log io.Writer // Out is told the URL
	// Agent serves one connection: messages of the editor come as lines, each message of its own is
	// one write. It returns at the end of the input.
	Agent func(ctx context.Context, in io.Reader, out io.Writer) error
	// Tokens are those by which clients authenticate as bearers. Without any, all may connect.
	Tokens []string
}

// server is the handler of all requests.
type server struct {
	Options
	ctx  context.Context
	host string // the address that it listens at

	mu          sync.Mutex
	connections map[string]*connection
	agents      sync.WaitGroup
}

// Serve serves until ctx ends.
func Serve(ctx context.Context, o Options) error {
	o.Log = cmp.Or(o.Log, io.Discard)
	s := &server{Options: o, ctx: ctx, connections: map[string]*connection{}}
	err := refagent.Serve(ctx, "ACP", Path, o.Listen, o.Listener, o.Out, func(host string) http.Handler {
		s.host = host
		return s
	})
	if err == nil {
		s.agents.Wait()
	}
	return err
}

// message is what routing needs of a message.
type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		SessionID any `json:"sessionId"`
		Update    struct {
			Tag       string `json:"sessionUpdate"`
			SessionID string `json:"sessionId"`
		} `json:"update"`
	} `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  json.RawMessage `json:"error"`
}

func (m message) session() string {
	session, _ := m.Params.SessionID.(string)
	return session
}

// named reports whether the message has an id that a response can repeat.
func (m message) named() bool { return len(m.ID) > 0 && string(m.ID) != "null" }

// read takes a message apart. Whatever has no such form has none of its parts.
func read(line []byte) (m message, ok bool) {
	if json.Unmarshal(line, &m) == nil {
		return m, true
	}
	var loose struct { // params may be of any kind
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
	}
	if json.Unmarshal(line, &loose) == nil {
		return message{ID: loose.ID, Method: loose.Method}, true
	}
	return message{}, false
}

// ServeHTTP implements http.Handler.
func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.URL.Path != Path:
		refuse(w, http.StatusNotFound, "the agent is at "+Path)
	case !s.own(r):
		refuse(w, http.StatusForbidden, "requests of other sites are not served")
	case !s.admits(r):
		w.Header().Set("WWW-Authenticate", "Bearer")
		refuse(w, http.StatusUnauthorized, "a bearer token is needed")
	case r.Method == http.MethodGet && strings.EqualFold(r.Header.Get("Upgrade"), "websocket"):
		s.socket(w, r)
	case r.Method == http.MethodPost:
		s.post(w, r)
	case r.Method == http.MethodGet:
		s.get(w, r)
	case r.Method == http.MethodDelete:
		if c := s.connection(w, r); c != nil {
			s.forget(c)
			c.end()
			w.WriteHeader(http.StatusAccepted)
		}
	default:
		w.Header().Set("Allow", "POST, GET, DELETE")
		refuse(w, http.StatusMethodNotAllowed, "POST, GET and DELETE are served")
	}
}

func refuse(w http.ResponseWriter, status int, why string) { http.Error(w, why, status) }

// own reports whether a request comes of no page of another site, nor by a name that one gave to
// this machine.
func (s *server) own(r *http.Request) bool {
	host, _, err := net.SplitHostPort(r.Host)
	if err != nil {
		host = r.Host
	}
	if len(s.Tokens) > 0 {
		return true // whoever has a token may come by any name
	}
	at, _, _ := net.SplitHostPort(s.host)
	here := net.ParseIP(at).IsLoopback()
	if here && host != "localhost" && !net.ParseIP(strings.Trim(host, "[]")).IsLoopback() {
		return false
	}
	origin := r.Header.Get("Origin")
	_, of, _ := strings.Cut(origin, "://")
	return origin == "" || of == r.Host
}

// admits reports whether a request has a token, if one is needed.
func (s *server) admits(r *http.Request) bool {
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	return len(s.Tokens) == 0 || ok && slices.Contains(s.Tokens, token)
}

// connection returns the one that a request is of, which it may have to begin. Else it refuses.
func (s *server) connection(w http.ResponseWriter, r *http.Request) *connection {
	id := r.Header.Get(connectionHeader)
	if id == "" {
		refuse(w, http.StatusBadRequest, "the header "+connectionHeader+" is missing")
		return nil
	}
	s.mu.Lock()
	c := s.connections[id]
	s.mu.Unlock()
	if c == nil || c.owner != r.Header.Get("Authorization") {
		refuse(w, http.StatusNotFound, "there is no such connection")
		return nil
	}
	return c
}

func (s *server) forget(c *connection) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.connections, c.id)
}

// begin starts an agent for a connection, which is not yet one that requests can name.
func (s *server) begin(r *http.Request, id string, socket func(frame []byte)) *connection {
	c := newConnection(id, r.Header.Get("Authorization"))
	c.socket = socket
	s.agents.Go(func() {
		if err := s.Agent(s.ctx, c.in, c); err != nil && s.ctx.Err() == nil {
			fmt.Fprintf(s.Log, "connection %s: %v\n", c.id, err)
		}
		s.forget(c)
		c.finish()
	})
	return c
}

// post takes a message of the editor.
func (s *server) post(w http.ResponseWriter, r *http.Request) {
	kind, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";")
	if !strings.EqualFold(strings.TrimSpace(kind), "application/json") {
		refuse(w, http.StatusUnsupportedMediaType, "the body must be application/json")
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, mostBody))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		refuse(w, http.StatusRequestEntityTooLarge, "the body is too large")
		return
	case err != nil:
		return // half of a message is none
	}
	line := bytes.ReplaceAll(body, []byte("\n"), []byte(" "))
	if bytes.HasPrefix(bytes.TrimSpace(line), []byte("[")) {
		refuse(w, http.StatusNotImplemented, "batches are not served")
		return
	}
	m, _ := read(line)
	if m.Method == "initialize" && r.Header.Get(connectionHeader) == "" {
		s.initialize(w, r, m, line)
		return
	}
	if r.Header.Get(connectionHeader) == "" && m.named() && m.Method != "" {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32600,"message":"%s before initialize"}}`, m.ID, m.Method)
		return
	}
	c := s.connection(w, r)
	if c == nil {
		return
	}
	if session := c.scope(m); session != "" && r.Header.Get(sessionHeader) != session {
		refuse(w, http.StatusBadRequest, "the header "+sessionHeader+" must be "+session)
		return
	}
	c.deliver(m, line)
	w.WriteHeader(http.StatusAccepted)
}

// initialize begins a connection. One that the agent refuses is none.
func (s *server) initialize(w http.ResponseWriter, r *http.Request, m message, line []byte) {
	if !m.named() {
		refuse(w, http.StatusBadRequest, "initialize needs an id")
		return
	}
	c := s.begin(r, rand.Text(), nil)
	c.deliver(m, line)
	box := c.claim("")
	answer, ok := box.next(r.Context().Done(), nil)
	if !ok {
		c.end()
		refuse(w, http.StatusInternalServerError, "the agent gives no answer")
		return
	}
	box.took()
	box.release()
	if got, _ := read(answer); len(got.Error) > 0 {
		c.end()
	} else {
		s.mu.Lock()
		s.connections[c.id] = c
		s.mu.Unlock()
		w.Header().Set(connectionHeader, c.id)
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(answer)
}

// get is a stream of events, until the connection ends or the reader goes.
func (s *server) get(w http.ResponseWriter, r *http.Request) {
	accept := r.Header.Get("Accept")
	if !strings.Contains(accept, "text/event-stream") && !strings.Contains(accept, "*/*") {
		refuse(w, http.StatusNotAcceptable, "the answer is text/event-stream")
		return
	}
	c := s.connection(w, r)
	if c == nil {
		return
	}
	box := c.claim(r.Header.Get(sessionHeader))
	if box == nil {
		refuse(w, http.StatusConflict, "the stream has a reader")
		return
	}
	defer box.release()
	out := http.NewResponseController(w)
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-cache")
	w.WriteHeader(http.StatusOK)
	if out.Flush() != nil {
		return
	}
	quiet := time.NewTicker(silence)
	defer quiet.Stop()
	for {
		frame, ok := box.next(r.Context().Done(), quiet.C)
		switch {
		case !ok:
			return
		case frame == nil:
			frame = []byte(":\n\n")
		default:
			frame = fmt.Appendf(nil, "data: %s\n\n", frame)
		}
		if _, err := w.Write(frame); err != nil || out.Flush() != nil {
			return // a reader that comes gets what this one may not have
		}
		if frame[0] != ':' {
			box.took()
		}
	}
}
