package remote

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/coder/websocket"

	"github.com/acp-test/acp-test/transcript"
)

// socket is the binding for WebSockets. Each message is one text frame.
type socket struct {
	c   *Conn
	ws  *websocket.Conn
	seq int
}

// upgraded opens a WebSocket. If this program started the server, upgraded retries for up to upgradePatience: the
// server may listen before it accepts WebSockets.
func (c *Conn) upgraded(ctx context.Context, at *url.URL, o *websocket.DialOptions) (*websocket.Conn, *http.Response,
	error) {
	for until := time.Now().Add(upgradePatience); ; {
		ws, answer, err := websocket.Dial(ctx, at.String(), o)
		if err == nil || answer == nil || !c.agent.HasProcess() || time.Now().After(until) {
			return ws, answer, err
		}
		switch answer.StatusCode {
		case http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusNotAcceptable, http.StatusUpgradeRequired,
			http.StatusServiceUnavailable:
		default:
			return ws, answer, err
		}
		select {
		case <-ctx.Done():
			return ws, answer, err
		case <-time.After(250 * time.Millisecond):
		}
	}
}

// newSocket opens a WebSocket at a URL.
func newSocket(c *Conn, at *url.URL) (*socket, error) {
	ctx, cancel := context.WithTimeout(c.ctx, postPatience)
	defer cancel()
	s := &socket{c: c}
	var t *tap
	ws, answer, err := c.upgraded(tapped(ctx, &t, make(chan struct{})), at,
		&websocket.DialOptions{HTTPClient: c.client, HTTPHeader: c.header.Clone()})
	if err != nil {
		x := exchange{Method: http.MethodGet, Message: "upgrade", Problem: problem(err)}
		if answer != nil {
			x.Status, x.Proto, x.Headers = answer.StatusCode, answer.Proto, told(answer.Header)
			_, x.Body = bodyOf(answer)
			err = fmt.Errorf("the server answered %s instead of 101", answer.Status)
		}
		c.entry(transcript.Exchanged, "", 0, x)
		return nil, fmt.Errorf("opening a WebSocket at %s: %s", at.Redacted(), problem(err))
	}
	ws.SetReadLimit(maxMessage)
	s.ws = ws
	s.seq = c.entry(transcript.Opened, "", 0, opened{Form: "websocket", Status: answer.StatusCode, Proto: answer.Proto,
		Headers: told(answer.Header)}).Seq
	c.watch(t, true)
	c.receive(func() {
		err := s.read()
		c.watch(t, false)
		c.stop(err)
	})
	return s, nil
}

// inBinary says what is wrong with a message in a binary frame.
const inBinary = "the message came in a binary frame, but must come in a text frame"

// read receives messages until the WebSocket ends. It returns an error if a message is too large.
func (s *socket) read() error {
	for {
		kind, data, err := s.ws.Read(s.c.ctx)
		if err != nil {
			s.c.entry(transcript.Closed, "", s.seq, ending(s.c.ctx, err, true))
			_ = s.ws.CloseNow()
			if errors.Is(err, websocket.ErrMessageTooBig) {
				return fmt.Errorf("the agent sent a message of more than %d bytes by the WebSocket", maxMessage)
			}
			return nil
		}
		it := item{data: data, stream: s.seq}
		if kind == websocket.MessageBinary {
			it.problem = inBinary
		}
		s.c.put(it)
	}
}

// send implements binding.
func (s *socket) send(line []byte) error {
	if err := s.ws.Write(s.c.ctx, websocket.MessageText, line); err != nil {
		return fmt.Errorf("writing to the WebSocket: %s", problem(err))
	}
	return nil
}

// end implements binding. It sends a ping, and closes the WebSocket after the answer, which proves that all earlier
// messages have arrived.
func (s *socket) end() {
	ctx, cancel := context.WithTimeout(s.c.ctx, endPatience)
	defer cancel()
	_ = s.ws.Ping(ctx) // if the connection is lost, no ping is needed
	_ = s.ws.Close(websocket.StatusNormalClosure, "")
}
