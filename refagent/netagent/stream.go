package netagent

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// stream returns the box of the stream that a GET requests, and a channel that is closed when another reader takes
// over. If the request is invalid, it sends an error and returns nil.
func (s *server) stream(w http.ResponseWriter, r *http.Request) (b *box, reader chan struct{}) {
	accept := r.Header.Get("Accept")
	if !strings.Contains(accept, eventStream) && !strings.Contains(accept, "*/*") && !s.does("accept-any") {
		refuse(w, http.StatusNotAcceptable, "the answer is "+eventStream)
		return nil, nil
	}
	c := s.connection(w, r)
	if c == nil {
		return nil, nil
	}
	session := r.Header.Get(sessionHeader)
	if session != "" && !c.knows(session) {
		of := s.owner(session)
		switch {
		case of != nil && s.does("sessions-open-to-all"):
			c = of
		case s.does("unknown-session-missing"):
			refuse(w, http.StatusNotFound, "there is no such session")
			return nil, nil
		case s.does("unknown-session-forbidden"):
			refuse(w, http.StatusForbidden, "the session does not belong to this connection")
			return nil, nil
		}
	}
	b, known := c.claim(session, r.Header.Get("Last-Event-ID"), true)
	switch {
	case !known:
		refuse(w, http.StatusConflict, "the stream has no such event")
		return nil, nil
	case b == nil:
		refuse(w, http.StatusConflict, "the stream already has a reader")
		return nil, nil
	}
	return b, b.reader
}

// owner returns the connection that has opened a session, or nil if there is none.
func (s *server) owner(session string) *connection {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.connections {
		if c.knows(session) {
			return c
		}
	}
	return nil
}

// get serves a stream of events until the connection ends or the client disconnects.
func (s *server) get(w http.ResponseWriter, r *http.Request) {
	box, reader := s.stream(w, r)
	if box == nil {
		return
	}
	if session := r.Header.Get(sessionHeader); session != "" {
		defer box.c.unread(session)
	}
	defer box.release(reader)
	out := http.NewResponseController(w)
	kind := eventStream
	if s.does("types-with-charset") {
		kind += "; charset=utf-8"
	}
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Cache-Control", "no-cache")
	w.WriteHeader(http.StatusOK)
	if out.Flush() != nil {
		return
	}
	formed := r.Header.Get(sessionHeader) != "" && s.network.has(forms)
	if formed {
		_, _ = io.WriteString(w, byteOrderMark)
	}
	quiet := time.NewTicker(silence)
	defer quiet.Stop()
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		select {
		case <-r.Context().Done():
		case <-reader:
		case <-box.c.lost:
		}
	}()
	for {
		f, ok := box.next(gone, quiet.C)
		switch {
		case !ok:
			return
		case f == nil:
			_, err := w.Write([]byte(":\n\n"))
			if err != nil || out.Flush() != nil {
				return
			}
			continue
		}
		event, t := s.troubled(r, f, formed)
		if _, err := w.Write(event); err != nil || out.Flush() != nil {
			return // the next reader gets messages that this one may have missed
		}
		if box.took(reader); t != nil {
			box.breaks(t)
			return
		}
	}
}

// troubled returns a message as an event, or as what trouble leaves of it, and the trouble that the event meets.
func (s *server) troubled(r *http.Request, f *frame, formed bool) (event []byte, t *trouble) {
	if event = s.event(f); formed {
		event = inForm(f)
	}
	if r.Header.Get(sessionHeader) != "" {
		t = s.network.next(ofEvents, "")
	}
	if t != nil && t.kind == cut {
		event = event[:len(event)-1] // the event is not complete without the blank line
	}
	return event, t
}

// event returns a message as a server-sent event.
func (s *server) event(f *frame) []byte {
	var out bytes.Buffer
	if s.does("comments") {
		out.WriteString(": still here\nretry: 3000\n\n")
	}
	if s.does("events-named") {
		out.WriteString("event: message\n")
	}
	id := f.seq
	if f.again && s.does("cursor-renumbered") {
		id += 1000
	}
	if !s.does("cursors-none") {
		fmt.Fprintf(&out, "id: %d\n", id)
	}
	data := f.data
	switch {
	case s.does("event-halved"):
		half := len(data) / 2
		data = fmt.Appendf(nil, "%s\n\ndata: %s", data[:half], data[half:])
	case s.does("event-in-lines"):
		var lines bytes.Buffer
		_ = json.Indent(&lines, data, "", " ")
		data = bytes.ReplaceAll(lines.Bytes(), []byte("\n"), []byte("\ndata: "))
	case s.does("event-without-space"):
		return append(fmt.Appendf(out.Bytes(), "data:%s", data), "\n\n"...)
	}
	fmt.Fprintf(&out, "data: %s\n\n", data)
	if s.does("lines-crlf") {
		return bytes.ReplaceAll(out.Bytes(), []byte("\n"), []byte("\r\n"))
	}
	return out.Bytes()
}
