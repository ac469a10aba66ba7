package canary

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/acp-test/acp-test/internal/loopback"
	"github.com/acp-test/acp-test/mockclient"
)

// Server is a canary behind HTTP on the loopback interface.
type Server struct {
	token string
	way   string // type of its entry in session/new: "http" or "sse"
	http  *http.Server
	url   string
	doing sync.WaitGroup

	mu        sync.Mutex
	sightings []Sighting
}

// Kinds of canaries over HTTP. Web is the usual one, over streamable HTTP. The address of an Unusual one has a query,
// and its answers are JSON of several lines instead of streams of events. Events has the transport of the first version
// of MCP: the client reads one stream of events, and posts to the address that the stream names.
const (
	Web     = "http"
	Unusual = "odd-http"
	Events  = "sse"
)

// Number is a header whose value differs for each session.
const Number = "X-Canary-Number"

// Apart returns s with the header Number of number n.
func Apart(s mockclient.HTTPServer, n int) mockclient.HTTPServer {
	s.Headers = append(slices.Clone(s.Headers), mockclient.EnvVariable{Name: Number, Value: strconv.Itoa(n)})
	return s
}

// Start starts a canary over HTTP, of the given kind and with the given token.
func Start(token, kind string) (*Server, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("starting the canary: %w", err)
	}
	s := &Server{token: token, way: "http", url: "http://" + listener.Addr().String() + "/mcp"}
	var handler http.Handler
	switch kind {
	case Unusual:
		query := url.Values{"song": {"la & " + token}}.Encode()
		s.url += "?" + query
		handler = indented(s.streamable(true), query)
	case Events:
		s.way, handler = "sse", s.events()
	default:
		handler = s.streamable(false)
	}
	mux := http.NewServeMux()
	mux.Handle("/mcp", handler)
	s.http = &http.Server{Handler: loopback.Guard(mux), ReadHeaderTimeout: 10 * time.Second}
	s.Serve(listener)
	return s, nil
}

// streamable serves streamable HTTP, with answers in JSON or as streams of events.
func (s *Server) streamable(json bool) http.Handler {
	server := newServer(s.token, 0, false, func(_ context.Context, r mcp.Request) bool {
		extra := r.GetExtra()
		return extra != nil && extra.Header.Get(Header) == s.token
	}, s.see)
	return mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server },
		&mcp.StreamableHTTPOptions{JSONResponse: json})
}

// events serves the transport of the first version of MCP. The token has arrived if the latest request had it.
func (s *Server) events() http.Handler {
	var given atomic.Bool
	server := newServer(s.token, 0, false, func(context.Context, mcp.Request) bool { return given.Load() }, s.see)
	handler := mcp.NewSSEHandler(func(*http.Request) *mcp.Server { return server }, nil)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		given.Store(r.Header.Get(Header) == s.token)
		handler.ServeHTTP(w, r)
	})
}

// indented passes requests on, and indents the answers. The token of a request to an address without the query does
// not arrive, because the agent did not use the address that it was given.
func indented(handler http.Handler, query string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Encode() != query {
			r.Header.Del(Header)
		}
		if r.Method == http.MethodPost {
			lines := &indenter{ResponseWriter: w, status: http.StatusOK}
			defer lines.flush()
			w = lines
		}
		handler.ServeHTTP(w, r)
	})
}

// indenter holds an answer in JSON back until flush, which writes it with line breaks and indentation.
type indenter struct {
	http.ResponseWriter
	status int
	body   bytes.Buffer
}

func (i *indenter) held() bool {
	return strings.HasPrefix(i.Header().Get("Content-Type"), "application/json")
}

func (i *indenter) WriteHeader(status int) {
	if i.status = status; !i.held() {
		i.ResponseWriter.WriteHeader(status)
	}
}

func (i *indenter) Write(p []byte) (int, error) {
	if !i.held() {
		return i.ResponseWriter.Write(p)
	}
	return i.body.Write(p)
}

func (i *indenter) Unwrap() http.ResponseWriter { return i.ResponseWriter }

func (i *indenter) flush() {
	if !i.held() {
		return
	}
	var lines bytes.Buffer
	if json.Indent(&lines, i.body.Bytes(), "", "  ") != nil {
		lines = i.body
	}
	i.Header().Del("Content-Length")
	i.ResponseWriter.WriteHeader(i.status)
	_, _ = i.ResponseWriter.Write(lines.Bytes()) // it fails only if the client has gone
}

// Serve accepts connections from an additional listener until Close, which also closes the listener.
func (s *Server) Serve(l net.Listener) {
	s.doing.Go(func() { _ = s.http.Serve(l) }) // Serve's error only says that the server was closed
}

func (s *Server) see(sighting Sighting) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sightings = append(s.sightings, sighting)
}

// Entry returns the entry in session/new for this server.
func (s *Server) Entry(name string) mockclient.HTTPServer {
	return mockclient.HTTPServer{
		Type: s.way, Name: name, URL: s.url, Headers: []mockclient.EnvVariable{{Name: Header, Value: s.token}},
	}
}

// Sightings returns a copy of the sightings so far.
func (s *Server) Sightings() []Sighting {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Sighting{}, s.sightings...)
}

// Close stops the server and ends open connections.
func (s *Server) Close() error {
	err := s.http.Close()
	s.doing.Wait()
	return err
}
