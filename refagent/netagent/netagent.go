// Package netagent serves the reference agent over Streamable HTTP and WebSocket, both at the same URL. It implements
// ACP's RFD for that transport. Each connection has its own agent.
package netagent

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
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

// Path is the URL path of the agent on its server.
const Path = "/acp"

// Headers of the transport.
const (
	connectionHeader = "Acp-Connection-Id"
	sessionHeader    = "Acp-Session-Id"
)

const (
	jsonType    = "application/json"
	eventStream = "text/event-stream"
)

const (
	mostBody     = 16 << 20         // maximum bytes of a POST or of a WebSocket message
	mostBuffered = 64 << 20         // maximum bytes of a connection that wait for readers
	silence      = 15 * time.Second // time after which a quiet stream gets a comment
)

// Options configures a server. Agent is required, and so is Listen or Listener.
type Options struct {
	Listen   string
	Listener net.Listener
	Out, Log io.Writer // Out receives the URL
	// Agent serves one connection. Each message is a line. It returns at the end of the input.
	Agent func(ctx context.Context, in io.Reader, out io.Writer) error
	// Tokens lists the valid bearer tokens. Without tokens, any client may connect.
	Tokens []string
	// Ways lists the names of the network faults and liberties that the server has.
	Ways []string
	// Did is called with the name of a fault or liberty whenever it takes effect. It may be nil.
	Did func(way string)
}

// does reports whether the server has a fault or liberty. It must be called only at a place where the fault or
// liberty takes effect, because it calls Did.
func (o *Options) does(way string) bool {
	if !slices.Contains(o.Ways, way) {
		return false
	}
	if o.Did != nil {
		o.Did(way)
	}
	return true
}

// server is the HTTP handler of all requests.
type server struct {
	Options
	ctx  context.Context
	host string // address at which the server listens

	mu          sync.Mutex
	connections map[string]*connection
	deleted     map[string]bool // ids of connections that clients have deleted
	network     network
	agents      sync.WaitGroup

	torn    chan struct{} // closed when all WebSockets end, by the fault of one that broke off
	tearing sync.Once
}

// Serve runs a server until ctx ends.
func Serve(ctx context.Context, o Options) error {
	o.Log = cmp.Or(o.Log, io.Discard)
	s := &server{Options: o, ctx: ctx, connections: map[string]*connection{},
		deleted: map[string]bool{}, torn: make(chan struct{})}
	err := refagent.Serve(ctx, "ACP", Path, o.Listen, o.Listener, o.Out, func(host string) http.Handler {
		s.host = host
		return s
	})
	if err == nil {
		s.agents.Wait()
	}
	return err
}

// message contains the members of a message that routing needs.
type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		SessionID any `json:"sessionId"`
		Version   any `json:"protocolVersion"`
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

// named reports whether the message has an id that a response can use, which is an id other than null.
func (m message) named() bool { return len(m.ID) > 0 && string(m.ID) != "null" }

// read parses a message. ok is false if the line is not a JSON object or its method is not a string.
func read(line []byte) (m message, ok bool) {
	if json.Unmarshal(line, &m) == nil {
		return m, true
	}
	var loose struct { // params may have any type
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
	if r.Header.Get("Origin") != "" && s.does("cors-credentials") {
		w.Header().Set("Access-Control-Allow-Origin", r.Header.Get("Origin"))
		w.Header().Set("Access-Control-Allow-Credentials", "true")
	}
	switch {
	case r.URL.Path != Path:
		refuse(w, http.StatusNotFound, "the agent is at "+Path)
	case !s.own(r):
		status := http.StatusForbidden
		if s.does("foreign-unauthorized") {
			status = http.StatusUnauthorized
		}
		refuse(w, status, "requests of other sites are not served")
	case !s.admits(r):
		w.Header().Set("WWW-Authenticate", "Bearer")
		if s.does("token-after-connection") {
			w.Header().Set(connectionHeader, rand.Text())
		}
		refuse(w, http.StatusUnauthorized, "a bearer token is needed")
	case r.Method == http.MethodGet && strings.EqualFold(r.Header.Get("Upgrade"), "websocket"):
		s.socket(w, r)
	case r.Method == http.MethodPost:
		s.post(w, r)
	case r.Method == http.MethodGet:
		s.get(w, r)
	case r.Method == http.MethodDelete:
		s.remove(w, r)
	case s.does("methods-any"):
		w.WriteHeader(http.StatusOK)
	default:
		w.Header().Set("Allow", "POST, GET, DELETE")
		refuse(w, http.StatusMethodNotAllowed, "POST, GET and DELETE are served")
	}
}

func refuse(w http.ResponseWriter, status int, why string) { http.Error(w, why, status) }

// own returns false for requests from a web page of another site and for requests to a foreign host name that
// resolves to this machine. If there are tokens, it returns true for every request.
func (s *server) own(r *http.Request) bool {
	host, _, err := net.SplitHostPort(r.Host)
	if err != nil {
		host = r.Host
	}
	if len(s.Tokens) > 0 {
		return true // the token decides, not the host name
	}
	at, _, _ := net.SplitHostPort(s.host)
	here := net.ParseIP(at).IsLoopback()
	if here && host != "localhost" && !net.ParseIP(strings.Trim(host, "[]")).IsLoopback() {
		return s.does("host-any")
	}
	origin := r.Header.Get("Origin")
	_, of, _ := strings.Cut(origin, "://")
	apart := origin == "" && r.Header.Get("Sec-Fetch-Site") != "cross-site"
	return apart || of == r.Host || s.does("origin-any")
}

// admits reports whether a request has a valid token. Without tokens, it returns true.
func (s *server) admits(r *http.Request) bool {
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if len(s.Tokens) == 0 || ok && slices.Contains(s.Tokens, token) {
		return true
	}
	return ok && s.does("token-any") || r.Method != http.MethodPost && s.does("token-for-post-alone")
}

// connection returns the connection whose id is in the request's header. If there is none, it refuses the request and
// returns nil.
func (s *server) connection(w http.ResponseWriter, r *http.Request) *connection {
	id := r.Header.Get(connectionHeader)
	s.mu.Lock()
	c := s.connections[id]
	if c == nil && id != "" && len(s.connections) > 0 && s.does("connection-unknown-any") {
		for _, c = range s.connections {
			break
		}
	}
	s.mu.Unlock()
	switch {
	case c != nil && (c.owner == r.Header.Get("Authorization") || s.does("connection-of-anyone")):
		return c
	case id == "":
		refuse(w, http.StatusBadRequest, "the header "+connectionHeader+" is missing")
	case s.does("connection-unknown-bad"):
		refuse(w, http.StatusBadRequest, "there is no such connection")
	default:
		refuse(w, http.StatusNotFound, "there is no such connection")
	}
	return nil
}

// remove handles DELETE: it ends a connection.
func (s *server) remove(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	again := s.deleted[r.Header.Get(connectionHeader)]
	s.mu.Unlock()
	if again && s.does("delete-repeated") {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	c := s.connection(w, r)
	if c == nil {
		return
	}
	if !s.does("delete-undone") {
		s.forget(c)
		s.mu.Lock()
		s.deleted[c.id] = true
		s.mu.Unlock()
		if !s.does("delete-leaves-streams") {
			c.end()
		}
	}
	if s.does("delete-refused") {
		w.WriteHeader(http.StatusForbidden)
		return
	}
	w.WriteHeader(http.StatusAccepted)
}

func (s *server) forget(c *connection) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.connections, c.id)
}

// begin starts an agent for a new connection. The connection is not registered yet, so other requests cannot use it.
func (s *server) begin(r *http.Request, id string, socket func(m message, frame []byte)) *connection {
	c := newConnection(&s.Options, id, r.Header.Get("Authorization"))
	c.server, c.socket = s, socket
	s.agents.Go(func() {
		defer context.AfterFunc(s.ctx, c.end)()
		if err := s.Agent(s.ctx, c.in, c); err != nil && s.ctx.Err() == nil {
			fmt.Fprintf(s.Log, "connection %s: %v\n", c.id, err)
		}
		s.forget(c)
		c.finish()
	})
	return c
}
