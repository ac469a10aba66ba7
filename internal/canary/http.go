package canary

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/acp-test/acp-test/internal/loopback"
	"github.com/acp-test/acp-test/mockclient"
)

// Server is a canary behind streamable HTTP on the loopback interface.
type Server struct {
	token string
	http  *http.Server
	url   string
	doing sync.WaitGroup

	mu        sync.Mutex
	sightings []Sighting
}

// Start starts a canary over HTTP with the given token. The address of an odd one has a query, and its answers are JSON
// of several lines instead of streams of events.
func Start(token string, odd bool) (*Server, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("starting the canary: %w", err)
	}
	s := &Server{token: token, url: "http://" + listener.Addr().String() + "/mcp"}
	query := url.Values{}
	if odd {
		query.Set("song", "la & "+token)
		s.url += "?" + query.Encode()
	}
	arrived := func(_ context.Context, r mcp.Request) bool {
		extra := r.GetExtra()
		return extra != nil && extra.Header.Get(Header) == token
	}
	server := newServer(token, 0, false, arrived, s.see)
	handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server },
		&mcp.StreamableHTTPOptions{JSONResponse: odd})
	mux := http.NewServeMux()
	mux.HandleFunc("/mcp", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Encode() != query.Encode() {
			r.Header.Del(Header) // the agent did not use the address that it was given
		}
		if odd && r.Method == http.MethodPost {
			indented := &indenter{ResponseWriter: w, status: http.StatusOK}
			defer indented.flush()
			w = indented
		}
		handler.ServeHTTP(w, r)
	})
	s.http = &http.Server{Handler: loopback.Guard(mux), ReadHeaderTimeout: 10 * time.Second}
	s.Serve(listener)
	return s, nil
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
		Type: "http", Name: name, URL: s.url, Headers: []mockclient.EnvVariable{{Name: Header, Value: s.token}},
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
