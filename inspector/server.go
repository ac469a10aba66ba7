package inspector

import (
	"context"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/acp-test/acp-test/internal/confined"
)

// Action is an operation that the page can request. It receives the body of the page's request and returns a value,
// which is sent to the page as JSON. The page shows an error to the user.
type Action func(ctx context.Context, body json.RawMessage) (any, error)

// Server shows sources in a browser. All fields but Actions and Title are required.
type Server struct {
	Sources []Source
	// Protocol returns the protocol of a transcript, given the protocol version in the transcript's header.
	Protocol func(version string) Protocol
	// Judge returns the result of a transcript that does not belong to a run, in the form of results.json.
	Judge func(name string, file io.Reader) (any, error)
	// Canonical returns the canonical text of a transcript. It leaves out whatever differs from run to run.
	Canonical func(file io.Reader) (string, error)
	// Token is the first part of each path. The server refuses requests without the token.
	Token string
	// Actions are the operations that the page can request, by name.
	Actions map[string]Action
	// Title is the title of the page.
	Title string

	mu     sync.Mutex
	roots  map[string]*confined.Root
	traces map[string]*trace
}

// Limits of the server: the time for which one request may read new parts of a file, the intervals between checks of
// files and folders, and the maximum size of answers.
const (
	budget      = 200 * time.Millisecond
	fileEvery   = 40 * time.Millisecond
	treeEvery   = 25 // in multiples of fileEvery
	mostRows    = 2000
	mostFile    = 4 << 20
	mostJudged  = 64 << 20
	mostColumn  = 1 << 16
	mostReports = 1000
)

// Close closes all files.
func (s *Server) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.traces {
		t.close()
	}
	for _, r := range s.roots {
		r.Close() // opened only for reading
	}
}

// ServeHTTP answers a request if it has the token, comes from a page of this server, and uses a local address. This
// protects the server from other pages and from other host names for this machine.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	token, name, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	if !local(r) || subtle.ConstantTimeCompare([]byte(token), []byte(s.Token)) != 1 {
		http.Error(w, "this address lacks the token: use the address that acp-test ui printed", http.StatusForbidden)
		return
	}
	if err := s.answer(w, r, name); err != nil && r.Context().Err() == nil {
		status := http.StatusBadRequest
		if errors.Is(err, os.ErrNotExist) {
			status = http.StatusNotFound
		}
		http.Error(w, err.Error(), status)
	}
}

// local reports whether a request uses a local address of this server and does not come from another page.
func local(r *http.Request) bool {
	address, ok := r.Context().Value(http.LocalAddrContextKey).(interface{ String() string })
	if !ok {
		return false
	}
	_, port, _ := strings.Cut(address.String(), ":")
	if r.Host != "127.0.0.1:"+port && r.Host != "localhost:"+port {
		return false
	}
	origin := r.Header.Get("Origin")
	return origin == "http://"+r.Host || origin == "" && r.Method == http.MethodGet
}

func (s *Server) answer(w http.ResponseWriter, r *http.Request, name string) error {
	q := r.URL.Query()
	if action, ok := strings.CutPrefix(name, "do/"); ok {
		return s.act(w, r, action)
	}
	if r.Method != http.MethodGet {
		return fmt.Errorf("%s does not accept %s", name, r.Method)
	}
	switch name {
	case "":
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Content-Security-Policy", policy("'self'")+"; frame-ancestors 'none'")
		head(w, s.Title, policy("'self'"))
		fmt.Fprint(w, "<script type=\"application/json\" id=\"served\">{}</script>\n")
		foot(w)
		return nil
	case "runs":
		return reply(w, s.runs())
	case "events":
		return s.events(w, r, q)
	case "columns", "rows", "raw", "find", "judged", "canonical", "fields":
		t, err := s.trace(q.Get("source"), q.Get("file"))
		if err != nil {
			return err
		}
		t.grow(budget)
		return s.ofTrace(w, name, t, q)
	case "text":
		return s.text(w, q)
	}
	return fmt.Errorf("%q: %w", name, os.ErrNotExist)
}

// The media types of answers other than JSON.
const (
	octets    = "application/octet-stream"
	plainText = "text/plain; charset=utf-8"
)

func send(w http.ResponseWriter, kind string, data []byte) error {
	w.Header().Set("Content-Type", kind)
	_, err := w.Write(data)
	return err
}

func reply(w http.ResponseWriter, v any) error {
	w.Header().Set("Content-Type", "application/json")
	return json.NewEncoder(w).Encode(v)
}

func (s *Server) act(w http.ResponseWriter, r *http.Request, name string) error {
	do, ok := s.Actions[name]
	if !ok {
		return fmt.Errorf("action %q: %w", name, os.ErrNotExist)
	}
	if r.Method != http.MethodPost || r.Header.Get("Content-Type") != "application/json" {
		return errors.New("an action must be a POST of JSON")
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, mostFile))
	if err != nil {
		return err
	}
	answer, err := do(r.Context(), body)
	if err != nil {
		return err
	}
	return reply(w, answer)
}
