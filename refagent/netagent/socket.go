package netagent

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/coder/websocket"
)

// accept accepts a WebSocket.
func (s *server) accept(w http.ResponseWriter, r *http.Request, id string) (*websocket.Conn, error) {
	o := &websocket.AcceptOptions{InsecureSkipVerify: true} // the method own has checked the origin
	offered := r.Header.Get("Sec-WebSocket-Protocol")
	switch {
	case offered != "" && s.does("subprotocol-echoed"):
		o.Subprotocols = strings.Split(offered, ", ")
	case offered != "" && s.does("subprotocol-own"):
		o.Subprotocols = []string{"acp.v1"}
	}
	switch {
	case strings.Contains(r.Header.Get("Sec-WebSocket-Extensions"), "permessage-deflate") &&
		s.does("socket-compression-claimed"):
		w.Header().Set("Sec-WebSocket-Extensions", "permessage-deflate")
	case s.does("socket-compressed"):
		o.CompressionMode = websocket.CompressionContextTakeover
		o.CompressionThreshold = 1
	}
	if !s.does("socket-without-id") {
		w.Header().Set(connectionHeader, id)
	}
	return websocket.Accept(w, r, o)
}

// hijacked is the response to an upgrade. It keeps the connection to the client.
type hijacked struct {
	http.ResponseWriter
	conn net.Conn
}

// Hijack implements http.Hijacker.
func (h *hijacked) Hijack() (c net.Conn, rw *bufio.ReadWriter, err error) {
	c, rw, err = http.NewResponseController(h.ResponseWriter).Hijack()
	h.conn = c
	return c, rw, err
}

// socket serves a connection over a WebSocket until it ends.
func (s *server) socket(w http.ResponseWriter, r *http.Request) {
	if s.network.next([]string{restart}, "") != nil {
		w.Header().Set("Retry-After", "1")
		refuse(w, http.StatusServiceUnavailable, "the server restarts")
		return
	}
	id := rand.Text()
	wire := &hijacked{ResponseWriter: w}
	ws, err := s.accept(wire, r, id)
	if err != nil {
		return
	}
	defer func() { _ = ws.CloseNow() }()
	if ws.SetReadLimit(mostBody); s.does("socket-frame-any") {
		ws.SetReadLimit(-1)
	}
	c := s.begin(r, id, s.writer(ws))
	c.wire.Store(&wire.conn)
	go func() {
		code := websocket.StatusNormalClosure
		select {
		case <-c.lost:
			code = websocket.StatusGoingAway
		case <-c.done:
		case <-s.torn:
			_ = ws.CloseNow()
			return
		}
		_ = ws.Close(code, "")
	}()
	if s.does("socket-pings") {
		go s.ping(c, ws)
	}
	in := &frames{server: s, c: c, ws: ws}
	for {
		kind, data, err := s.next(ws)
		switch {
		case err != nil:
			in.broke(data, err)
			return
		case kind == websocket.MessageText, s.does("socket-binary-run"):
			if !in.take(bytes.ReplaceAll(data, []byte("\n"), []byte(" "))) {
				c.end()
				return
			}
		}
	}
}

// next reads a message. If that fails, data has what came of it.
func (s *server) next(ws *websocket.Conn) (kind websocket.MessageType, data []byte, err error) {
	kind, in, err := ws.Reader(s.ctx)
	if err != nil {
		return kind, nil, err
	}
	data, err = s.whole(in)
	return kind, data, err
}

// whole reads a message that comes in pieces.
func (s *server) whole(in io.Reader) (data []byte, err error) {
	for piece := make([]byte, 32<<10); err == nil; {
		var n int
		n, err = in.Read(piece)
		got := piece[:n]
		if !utf8.Valid(got) && s.does("socket-characters-split") {
			got = bytes.ToValidUTF8(got, []byte("\uFFFD"))
		}
		data = append(data, got...)
	}
	if err == io.EOF {
		err = nil
	}
	return data, err
}

// broke ends the connection of a WebSocket that has ended. data is what came of a last message.
func (f *frames) broke(data []byte, err error) {
	if len(data) > 0 && f.does("socket-cut-run") {
		f.take(bytes.TrimSpace(data))
		return // the turn goes on
	}
	f.c.unread("")
	f.c.end()
	if websocket.CloseStatus(err) < 0 && f.does("socket-lost-ends-all") {
		f.tearing.Do(func() { close(f.torn) })
	}
}

// writer returns the function that sends a message over the WebSocket.
func (s *server) writer(ws *websocket.Conn) func(m message, frame []byte) {
	var joined []byte
	return func(m message, frame []byte) {
		kind := websocket.MessageText
		switch {
		case m.Method == "session/update" && s.does("socket-lines-joined"):
			joined = append(append(joined, frame...), '\n')
			return
		case s.does("socket-binary-sent"):
			kind = websocket.MessageBinary
		case s.does("socket-fragments"):
			s.fragments(ws, frame)
			return
		}
		_ = ws.Write(s.ctx, kind, append(joined, frame...))
		if joined = nil; m.Method == "" && s.does("socket-answers-twice") {
			_ = ws.Write(s.ctx, kind, frame)
		}
	}
}

// fragments sends one message in several WebSocket frames.
func (s *server) fragments(ws *websocket.Conn, frame []byte) {
	out, err := ws.Writer(s.ctx, websocket.MessageText)
	if err != nil {
		return
	}
	half := len(frame) / 2
	_, _ = out.Write(frame[:half])
	_, _ = out.Write(frame[half:])
	_ = out.Close()
}

// ping keeps sending pings to the editor until the connection ends.
func (s *server) ping(c *connection, ws *websocket.Conn) {
	for {
		ctx, cancel := context.WithTimeout(s.ctx, time.Second)
		_ = ws.Ping(ctx)
		cancel()
		select {
		case <-c.done:
			return
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// frames handles the editor's WebSocket messages.
type frames struct {
	*server
	c     *connection
	ws    *websocket.Conn
	begun bool
	spent bool        // an initialize has failed
	ready atomic.Bool // initialize has reached the agent
}

// refuse closes the WebSocket because of a forbidden message. why is the reason that the editor gets. It returns
// false.
func (f *frames) refuse(why string) bool {
	code := websocket.StatusProtocolError
	if f.does("socket-closes-by-policy") {
		code = websocket.StatusPolicyViolation
	}
	_ = f.ws.Close(code, why)
	return false
}

// take handles a WebSocket message, which it usually passes to the agent. It returns false if it has closed the
// WebSocket.
func (f *frames) take(line []byte) bool {
	m, ok := read(line)
	batch := bytes.HasPrefix(bytes.TrimSpace(line), []byte("["))
	switch {
	case batch && f.does("socket-batch-run"):
		var each []json.RawMessage
		_ = json.Unmarshal(line, &each)
		for _, one := range each {
			f.c.deliver(message{}, one)
		}
		return true
	case !ok && !batch && f.does("socket-bad-json-ends"):
		return f.refuse("That is not valid JSON")
	case !f.begun && ok:
		if taken, open := f.first(m); !taken {
			return open
		}
		if m.Method == "initialize" && !m.named() {
			line = bytes.Replace(line, []byte("null"), []byte(`"null"`), 1)
		}
		if f.begun && f.does("socket-not-pipelined") {
			time.AfterFunc(200*time.Millisecond, func() {
				f.ready.Store(true)
				f.c.deliver(m, line)
			})
			return true
		}
	case m.named() && !f.ready.Load() && f.does("socket-not-pipelined"):
		return f.error(m, "Initialize is not answered yet")
	}
	f.c.deliver(m, line)
	return true
}

// first checks a message that arrives before initialize has succeeded. taken is true if the agent gets the message.
// open is true if the WebSocket stays open.
func (f *frames) first(m message) (taken, open bool) {
	if m.Method != "initialize" {
		switch {
		case m.named() && f.does("socket-first-answered"):
			return false, f.error(m, "First message must be initialize")
		case !f.does("socket-first-run"):
			return false, f.refuse("First message must be initialize")
		}
		f.initialize()
		return true, true
	}
	switch {
	case !m.named() && f.does("socket-null-id-answered"):
		return false, f.error(message{ID: []byte("null")}, "Initialize needs an id")
	case !m.named() && !f.does("socket-null-id-begins"):
		return false, f.refuse("Initialize needs an id")
	case f.spent && f.does("socket-refused-once"):
		return false, f.error(m, "Initialize has failed")
	}
	_, number := m.Params.Version.(float64)
	f.spent, f.begun = !number, number
	return true, true
}

// initialize sends the agent an initialize request in place of an editor that sent none.
func (f *frames) initialize() {
	f.begun = true
	f.c.deliver(message{}, []byte(`{"jsonrpc":"2.0","id":"own","method":"initialize","params":{"protocolVersion":1}}`))
}

// error responds to a message with an error and leaves the WebSocket open. It returns true.
func (f *frames) error(m message, why string) bool {
	_ = f.ws.Write(f.ctx, websocket.MessageText,
		fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32600,"message":%q}}`, m.ID, why))
	return true
}
