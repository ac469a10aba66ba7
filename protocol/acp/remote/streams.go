package remote

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"mime"
	"net/http"
	"slices"
	"time"

	"github.com/acp-test/acp-test/internal/lists"
	"github.com/acp-test/acp-test/internal/sse"
	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/wire"
)

// stream is an open event stream.
type stream struct {
	session string
	seq     int
	body    *fragile
	in      *sse.Reader
	tap     *tap
	last    string // id of the latest event
	bare    bool   // a message came without an id of its own, so that a resumed stream may lack it
	life    context.Context
	hangUp  context.CancelFunc
	done    bool   // the session has ended, so the stream is not reopened
	later   []item // updates to deliver after the answer that opens the session; see news
	events  int
	over    chan struct{}
	freed   chan struct{} // closed when the stream no longer uses its connection
}

// drained waits until everything received on the stream has been read, or until ctx ends.
func (s *stream) drained(ctx context.Context) {
	s.tap.drained(ctx)
	select {
	case <-s.freed: // the HTTP client reads the connection until another request needs it
	case <-s.tap.closed:
	default:
		return
	}
	s.ends(ctx)
}

// ends waits until the stream has ended.
func (s *stream) ends(ctx context.Context) {
	select {
	case <-s.over:
	case <-ctx.Done():
	}
}

// opened opens a stream and starts to read it. The stream is nil if connect returns nil.
func (h *overHTTP) opened(session, since string) (*stream, error) {
	s, err := h.connect(session, since)
	if s != nil {
		h.c.receive(func() { h.pump(s) })
	}
	return s, err
}

// connect opens a stream. It returns nil if the stream is already open, if the connection is ending, or if the server
// refuses the stream of a session.
func (h *overHTTP) connect(session, since string) (*stream, error) {
	h.opening.Lock()
	defer h.opening.Unlock()
	h.mu.Lock()
	open := h.streams[session] != nil
	h.mu.Unlock()
	if open || h.c.ending() {
		return nil, nil
	}
	s := &stream{session: session, last: since, over: make(chan struct{}), freed: make(chan struct{})}
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
		h.refused[session], h.conflict = true, answer.StatusCode == http.StatusConflict
		h.mu.Unlock()
		if session != "" {
			return nil, nil
		}
		return nil, fmt.Errorf("GET %s (connection stream): the server answered %s, type %q, instead of 200 and %s",
			r.URL.Redacted(), answer.Status, kind, eventStream)
	}
	s.body = &fragile{ReadCloser: answer.Body, h: h, last: &s.last}
	s.in = sse.NewReader(s.body)
	s.seq = h.c.entry(transcript.Opened, session, 0, opened{Form: form, Status: answer.StatusCode, Proto: answer.Proto,
		Headers: told(answer.Header), Since: since}).Seq
	h.mu.Lock()
	h.streams[session] = s
	delete(h.refused, session)
	h.mu.Unlock()
	h.c.watch(s.tap, true)
	return s, nil
}

// pump receives the messages of a stream until the stream ends. Then the stream is reopened, unless the connection is
// ending.
func (h *overHTTP) pump(s *stream) {
	for {
		e, err := s.in.Next()
		if err != nil {
			h.close(s, err)
			return
		}
		h.mu.Lock()
		s.events++
		s.last = e.ID
		h.cursors = h.cursors || e.ID != ""
		s.bare = s.bare || len(e.Data) > 0 && !e.Own
		h.mu.Unlock()
		if len(e.Data) == 0 {
			continue // a keep-alive without a message
		}
		h.received(s, item{data: e.Data, size: e.Size, stream: s.seq})
	}
}

// received passes a message to the reader, in an order that fits the messages on other streams.
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
	// Two streams have no common order. But messages that the agent wrote earlier to the streams of sessions have
	// arrived.
	h.mu.Lock()
	others := lists.Having(maps.Values(h.streams), func(other *stream) bool { return other != s })
	wanted := slices.Collect(maps.Keys(h.refused))
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
		if s, _ := h.connect(session, ""); s != nil { // an error is in the log and comes again
			fresh = append(fresh, s)
		}
	}
	h.mu.Lock()
	history := h.opens[f.ID]
	h.mu.Unlock()
	for i, s := range fresh {
		if s.session == history && history != "" {
			h.c.receive(func() { h.pump(s) })
			h.settled(s)
			fresh = slices.Delete(fresh, i, i+1)
			break
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

// settled waits until the server has sent the history on a stream that it refused before session/load. Nothing marks
// the end of the history. So the wait ends when no event has come for 100 ms.
func (h *overHTTP) settled(s *stream) {
	for last := -1; ; {
		h.mu.Lock()
		events := s.events
		h.mu.Unlock()
		if events == last {
			return
		}
		last = events
		select {
		case <-s.over:
			return
		case <-h.c.ctx.Done():
			return
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// news has the updates that agents send after they have opened a session. They may arrive before the answer that opens
// the session, because that answer comes on another stream. They are delivered after the answer, as on stdio.
var news = []string{"available_commands_update", "usage_update", "session_info_update", "current_mode_update",
	"config_option_update"}

// flush delivers the updates of a session that were held back; see news.
func (h *overHTTP) flush(s *stream) {
	h.mu.Lock()
	later := s.later
	s.later = nil
	h.mu.Unlock()
	for _, it := range later {
		h.c.put(it)
	}
}

// leave ends the stream of a session if a message is the answer to the close or deletion of that session.
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

// close records the end of a stream, and reopens the stream if necessary.
func (h *overHTTP) close(s *stream, err error) {
	s.body.Close()
	defer s.hangUp()
	e := ending(s.life, err, false)
	e.Trouble, e.Framing, e.Cursors = s.body.met, s.in.Shows(), s.last != "" && !s.bare
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
	if h.c.ending() || s.events == 0 && s.body.met == "" || done {
		if s.session == "" {
			h.c.stop(nil)
		}
		return
	}
	if !h.again(s) && s.session == "" {
		h.c.stop(nil) // without this stream, the editor gets no answers
	}
}
