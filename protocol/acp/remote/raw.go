package remote

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net"
	"net/http"
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/coder/websocket"

	"github.com/acp-test/acp-test/internal/sse"
	"github.com/acp-test/acp-test/transcript"
)

// Raw is an HTTP request that a script makes itself, outside the editor's connection.
type Raw struct {
	// Method is an HTTP method, or Upgrade for a WebSocket.
	Method string
	// Header overrides the headers of the profile. An empty value removes a header.
	Header map[string]string
	Body   []byte
	How    How
}

// How says how a request of a script uses its connection.
type How string

// These are the special ways. The zero value is the usual one.
const (
	Half   How = "half"   // the sending side is closed behind the request
	Split  How = "pieces" // the body comes in two chunks, the first of which ends within a character
	Unread How = "unread" // the stream or WebSocket that opens is never read
)

// Ways lists the special ways.
var Ways = []How{Half, Split, Unread}

// Upgrade is the Method of a Raw that opens a WebSocket.
const Upgrade = "UPGRADE"

// Connection returns the id of the editor's connection over HTTP, or "" if there is none.
func (c *Conn) Connection() string {
	c.mu.Lock()
	h, ok := c.way.(*overHTTP)
	c.mu.Unlock()
	if !ok {
		return ""
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.connection
}

// Do sends a request of a script, and returns an entry with the beginning of the response. If the request opens a
// stream or a WebSocket, Do keeps reading it until the connection ends. Each message on it then becomes an entry of
// kind Event, whose Ref is the returned entry.
func (c *Conn) Do(ctx context.Context, raw Raw) (transcript.Entry, error) {
	at, err := c.find()
	if err != nil {
		return transcript.Entry{}, err
	}
	life, hangUp := context.WithCancel(c.ctx)
	stop := context.AfterFunc(ctx, hangUp) // ctx limits the wait for the response only
	defer stop()
	if raw.Method == Upgrade {
		return c.upgrade(life, hangUp, at, raw)
	}
	u := *at
	u.Scheme = strings.Replace(u.Scheme, "ws", "http", 1)
	var conn net.Conn
	r, err := http.NewRequestWithContext(wired(life, &conn, raw), raw.Method, u.String(), bytes.NewReader(raw.Body))
	if err != nil {
		hangUp()
		return transcript.Entry{}, err
	}
	do := (&http.Client{Transport: c.client.Transport, CheckRedirect: c.client.CheckRedirect}).Do
	switch raw.How {
	case Half:
		do = halfway
	case Split:
		r.Body, r.ContentLength, r.GetBody = inChunks(raw.Body), -1, nil
	}
	c.dress(r, raw)
	x := exchange{Method: raw.Method, Raw: true}
	answer, err := do(r)
	if err != nil {
		x.Problem = problem(err)
		hangUp()
		return c.entry(transcript.Exchanged, "", 0, x), nil
	}
	x.Status, x.Proto, x.Headers = answer.StatusCode, answer.Proto, told(answer.Header)
	x.Connection = answer.Header.Get(ConnectionID)
	kind, _, _ := mime.ParseMediaType(answer.Header.Get("Content-Type"))
	if answer.StatusCode != http.StatusOK || kind != eventStream {
		message, text := bodyOf(answer)
		answer.Body.Close()
		hangUp()
		if x.Body = text; message != nil {
			x.Body = strings.ToValidUTF8(string(message), string(utf8.RuneError))
		}
		return c.entry(transcript.Exchanged, "", 0, x), nil
	}
	e := c.entry(transcript.Exchanged, "", 0, x)
	c.keep(e.Seq, &held{hangUp: hangUp, wire: conn})
	if raw.How == Unread {
		return e, nil
	}
	c.receive(func() {
		defer answer.Body.Close()
		in := sse.NewReader(answer.Body)
		for {
			got, err := in.Next()
			if err != nil {
				c.entry(transcript.Closed, "", e.Seq, ending(life, err, raw.Method == Upgrade))
				return
			}
			c.event(e.Seq, got.Data, got.ID)
		}
	})
	return e, nil
}

// dress sets the headers of the profile and those of the script's request.
func (c *Conn) dress(r *http.Request, raw Raw) {
	r.Header = c.header.Clone()
	for name, value := range raw.Header {
		switch {
		case value == "":
			r.Header.Del(name)
		case strings.EqualFold(name, "Host"):
			r.Host = value
		default:
			r.Header.Set(name, value)
		}
	}
}

// held is a stream or WebSocket that a script has opened.
type held struct {
	hangUp func()
	ws     *websocket.Conn // nil for a stream
	wire   net.Conn        // the connection below it
}

func (c *Conn) keep(ref int, h *held) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.held == nil {
		c.held = map[int]*held{}
	}
	c.held[ref] = h
}

// upgrade opens a WebSocket.
func (c *Conn) upgrade(life context.Context, hangUp func(), at *url.URL, raw Raw) (transcript.Entry, error) {
	header := c.header.Clone()
	o := &websocket.DialOptions{HTTPClient: &http.Client{Transport: c.client.Transport}, HTTPHeader: header,
		CompressionMode: websocket.CompressionContextTakeover}
	for name, value := range raw.Header {
		switch {
		case strings.EqualFold(name, "Host"):
			o.Host = value
		case strings.EqualFold(name, "Sec-WebSocket-Protocol"):
			o.Subprotocols = []string{value}
		case value != "":
			header.Set(name, value)
		}
	}
	var conn net.Conn
	ws, answer, err := c.upgraded(wired(life, &conn, raw), at, o)
	x := exchange{Method: raw.Method, Raw: true}
	if answer != nil {
		x.Status, x.Proto, x.Headers = answer.StatusCode, answer.Proto, told(answer.Header)
	}
	if err != nil {
		hangUp()
		if x.Problem = problem(err); answer != nil {
			x.Problem = ""
			_, x.Body = bodyOf(answer)
		}
		return c.entry(transcript.Exchanged, "", 0, x), nil
	}
	ws.SetReadLimit(maxMessage)
	e := c.entry(transcript.Exchanged, "", 0, x)
	c.keep(e.Seq, &held{hangUp: hangUp, ws: ws, wire: conn})
	if raw.How == Unread {
		context.AfterFunc(life, func() { _ = ws.CloseNow() })
		return e, nil
	}
	c.receive(func() {
		for {
			_, data, err := ws.Read(life)
			if err != nil {
				c.entry(transcript.Closed, "", e.Seq, ending(life, err, raw.Method == Upgrade))
				_ = ws.CloseNow()
				return
			}
			c.event(e.Seq, data, "")
		}
	})
	return e, nil
}

// holding returns the stream or WebSocket that an entry opened, or nil if it opened none.
func (c *Conn) holding(ref int) *held {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.held[ref]
}

// errNotHeld is the error for a line that opened nothing.
var errNotHeld = errors.New("the line did not open a stream or WebSocket")

// HangUp closes a stream or WebSocket that a script has opened, without a close frame.
func (c *Conn) HangUp(ref int) error {
	h := c.holding(ref)
	if h == nil {
		return errNotHeld
	}
	if h.hangUp(); h.ws != nil {
		return h.ws.CloseNow()
	}
	return nil
}

// Event is the kind of an entry for a message on a stream or WebSocket that a script has opened.
const Event transcript.Kind = "event"

// event appends a message to the transcript. If the event has an id, it is added to the message as the member cursor.
func (c *Conn) event(ref int, data []byte, id string) {
	if data = bytes.TrimSpace(data); !json.Valid(data) || id != "" && !bytes.HasPrefix(data, []byte("{")) {
		c.entry(Event, "", ref, map[string]string{"text": string(data), "cursor": id})
		return
	}
	if id != "" {
		data = bytes.Replace(fmt.Appendf(nil, `{"cursor":%q,%s`, id, data[1:]), []byte(",}"), []byte("}"), 1)
	}
	c.agent.Transcript().Append(transcript.Entry{Conn: c.agent.Conn(), Source: transcript.Network, Kind: Event,
		Ref: ref, Raw: data})
}

// entry appends a network entry to the transcript.
func (c *Conn) entry(kind transcript.Kind, session string, ref int, details any) transcript.Entry {
	return note(c.agent.Transcript(), c.agent.Conn(), kind, session, ref, details)
}

func note(t *transcript.Transcript, conn int, kind transcript.Kind, session string, ref int, details any,
) transcript.Entry {
	raw, err := json.Marshal(details)
	if err != nil {
		raw = fmt.Appendf(nil, `{"error":%q}`, err.Error())
	}
	return t.Append(transcript.Entry{Conn: conn, Source: transcript.Network, Kind: kind, Session: session, Ref: ref,
		Raw: raw})
}
