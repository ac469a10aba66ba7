package netagent

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"
)

// brokeOff records an incomplete message. It serves the fault that executes such a message twice.
func (c *connection) brokeOff(half []byte) {
	c.mu.Lock()
	c.half = half
	latest := c.latest
	c.mu.Unlock()
	c.again(latest)
}

// again delivers a message a second time if an incomplete copy of it was received before or after it.
func (c *connection) again(line []byte) {
	c.mu.Lock()
	c.latest = line
	twice := len(c.half) > 0 && bytes.HasPrefix(line, c.half)
	if twice {
		c.half = nil
	}
	c.mu.Unlock()
	if twice {
		c.deliver(message{}, line)
	}
}

// typed reports whether the Content-Type of a request is JSON.
func (s *server) typed(r *http.Request) bool {
	said := r.Header.Get("Content-Type")
	kind, _, _ := strings.Cut(said, ";")
	kind = strings.TrimSpace(kind)
	switch {
	case kind == jsonType:
		return true
	case strings.EqualFold(kind, jsonType):
		return !s.does("type-spelled")
	}
	return s.does("type-any")
}

// post handles a POST with a message from the editor.
func (s *server) post(w http.ResponseWriter, r *http.Request) {
	if !s.typed(r) {
		refuse(w, http.StatusUnsupportedMediaType, "the body must be "+jsonType)
		return
	}
	most := int64(mostBody)
	if r.ContentLength > most && s.does("body-any") {
		most = r.ContentLength
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, most))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		refuse(w, http.StatusRequestEntityTooLarge, "the body is too large")
		return
	case err != nil:
		if c := s.connection(w, r); c != nil && s.does("broken-off-run-twice") {
			c.brokeOff(body)
		}
		return // an incomplete body is not a message
	}
	line := bytes.ReplaceAll(body, []byte("\n"), []byte(" "))
	id := r.Header.Get(connectionHeader)
	m, sound := read(line)
	stopped, after := s.network.meets(w, m)
	defer after()
	switch {
	case stopped:
	case bytes.HasPrefix(bytes.TrimSpace(line), []byte("[")):
		s.batch(w, r, line)
	case m.Method == "initialize" && (id == "" || s.does("initialize-again-begins")):
		s.initialize(w, r, m, line)
	case !sound && id != "" && s.does("bad-json-refused"):
		refuse(w, http.StatusBadRequest, "the body is not valid JSON")
	case id == "" && m.named() && m.Method != "":
		problem(w, http.StatusBadRequest, m.ID, m.Method+" before initialize")
	default:
		if c := s.connection(w, r); c != nil {
			s.message(w, r, c, m, sound, line)
		}
	}
}

// problem sends a response with a JSON-RPC error and an HTTP status.
func problem(w http.ResponseWriter, status int, id json.RawMessage, why string) {
	w.Header().Set("Content-Type", jsonType)
	w.WriteHeader(status)
	fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32600,"message":%q}}`, id, why)
}

// batch handles a POST with an array of messages.
func (s *server) batch(w http.ResponseWriter, r *http.Request, line []byte) {
	c := s.connection(w, r)
	if c == nil {
		return
	}
	var each []json.RawMessage
	switch {
	case s.does("batch-run"):
		_ = json.Unmarshal(line, &each)
		for _, one := range each {
			m, _ := read(one)
			c.deliver(m, one)
		}
		w.WriteHeader(http.StatusAccepted)
	case s.does("batch-invalid"):
		problem(w, http.StatusBadRequest, json.RawMessage("null"), "batches are not served")
	default:
		refuse(w, http.StatusNotImplemented, "batches are not served")
	}
}

// message passes a message for an existing connection to the connection's agent. sound is false if the message could
// not be parsed.
func (s *server) message(w http.ResponseWriter, r *http.Request, c *connection, m message, sound bool, line []byte) {
	given := r.Header.Get(sessionHeader)
	switch session := c.scope(m); {
	case session == "" || given == session:
	case given == "" && s.does("session-header-optional"):
	case given != "" && s.does("session-header-any"):
	default:
		refuse(w, http.StatusBadRequest, "the header "+sessionHeader+" must be "+session)
		return
	}
	if m.Method == "initialize" && s.does("initialize-again-ends") || !sound && s.does("bad-json-ends") {
		s.forget(c)
		c.end()
		refuse(w, http.StatusBadRequest, "the connection has ended")
		return
	}
	if slices.ContainsFunc(s.Ways, ofHalves) && halfClosed(r) {
		if s.does("half-closed-dropped") {
			panic(http.ErrAbortHandler)
		} else if s.does("half-closed-ends") {
			s.forget(c)
			c.end()
		}
	}
	c.deliver(m, line)
	c.again(line)
	if m.Method == "session/prompt" && s.does("accepted-late") {
		c.answered(m)
	}
	status := http.StatusAccepted
	if s.does("accepted-ok") {
		status = http.StatusOK
	}
	w.WriteHeader(status)
}

// ofHalves reports whether a way of the server is about requests whose client has closed the sending side.
func ofHalves(way string) bool { return strings.HasPrefix(way, "half-closed-") }

// halfClosed reports whether the client of a request that is the last on its connection has closed the sending side.
func halfClosed(r *http.Request) bool {
	if !r.Close {
		return false
	}
	select {
	case <-r.Context().Done():
		return true
	case <-time.After(200 * time.Millisecond):
		return false
	}
}

// initialize starts a connection. If the agent refuses initialize, it ends the connection again.
func (s *server) initialize(w http.ResponseWriter, r *http.Request, m message, line []byte) {
	if !m.named() {
		if s.does("initialize-without-id") {
			w.Header().Set(connectionHeader, rand.Text())
			w.WriteHeader(http.StatusAccepted)
			return
		}
		refuse(w, http.StatusBadRequest, "initialize needs an id")
		return
	}
	id := rand.Text()
	switch {
	case s.does("connection-id-same"):
		id = "connection"
	case s.does("connection-id-long"):
		id = strings.Repeat(id, 8)
	}
	c := s.begin(r, id, nil)
	c.deliver(m, line)
	box, _ := c.claim("", "", false)
	var answer *frame
	var got message
	for sound := false; !sound; box.took(box.reader) { // skip lines that are not messages: they have no stream
		var ok bool
		if answer, ok = box.next(r.Context().Done(), nil); !ok {
			c.end()
			refuse(w, http.StatusInternalServerError, "the agent gives no answer")
			return
		}
		got, sound = read(answer.data)
	}
	box.release(box.reader)
	status := http.StatusOK
	if refused := len(got.Error) > 0; !refused || s.does("initialize-refused-begins") {
		s.mu.Lock()
		s.connections[c.id] = c
		s.mu.Unlock()
		if !s.does("connection-id-missing") {
			w.Header().Set(connectionHeader, c.id)
		}
	} else if c.end(); s.does("initialize-refused-bad") {
		status = http.StatusBadRequest
	}
	kind := jsonType
	if s.does("types-with-charset") {
		kind += "; charset=utf-8"
	}
	w.Header().Set("Content-Type", kind)
	w.WriteHeader(status)
	_, _ = w.Write(answer.data)
}
