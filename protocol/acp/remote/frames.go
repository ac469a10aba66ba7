package remote

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/coder/websocket"
)

// Form is how a script sends a message on a WebSocket of its own.
type Form string

// These are the forms.
const (
	Text   Form = "text"
	Binary Form = "binary"
	Torn   Form = "cut"    // half of the frame; then the connection breaks
	Pieces Form = "pieces" // three frames, the first of which ends within a character, and a ping between each two
)

// Forms lists the forms.
var Forms = []Form{Text, Binary, Torn, Pieces}

// Frame sends a message on a WebSocket that a script has opened.
func (c *Conn) Frame(ctx context.Context, ref int, text []byte, form Form) error {
	h := c.holding(ref)
	if h == nil || h.ws == nil {
		return errors.New("the line did not open a WebSocket")
	}
	stop := context.AfterFunc(ctx, func() { _ = h.wire.SetWriteDeadline(time.Now()) }) // the server may not read
	defer stop()
	// If the WebSocket is closed, an entry about its end says so.
	switch form {
	case Torn:
		whole := frame(last|textFrame, text)
		_, _ = h.wire.Write(whole[:len(whole)/2])
		_ = h.wire.Close()
	case Pieces:
		first := within(text)
		second := first + (len(text)-first)/2
		ping := frame(last|pingFrame, []byte("still there?"))
		_, _ = h.wire.Write(bytes.Join([][]byte{frame(textFrame, text[:first]), frame(0, text[first:second]),
			frame(last, text[second:])}, ping))
	case Binary:
		_ = h.ws.Write(ctx, websocket.MessageBinary, text)
	default:
		_ = h.ws.Write(ctx, websocket.MessageText, text)
	}
	return nil
}

// The parts of a frame's first byte: the opcode, and the bit of the last frame of a message.
const (
	textFrame = 1
	pingFrame = 9
	last      = 0x80
)

// frame returns a masked frame, as clients send it.
func frame(first byte, payload []byte) []byte {
	const masked = 0x80
	out := []byte{first}
	switch n := len(payload); {
	case n < 126:
		out = append(out, masked|byte(n))
	case n < 1<<16:
		out = binary.BigEndian.AppendUint16(append(out, masked|126), uint16(n))
	default:
		out = binary.BigEndian.AppendUint64(append(out, masked|127), uint64(n))
	}
	var key [4]byte
	_, _ = rand.Read(key[:])
	out = append(out, key[:]...)
	for i, b := range payload {
		out = append(out, b^key[i%4])
	}
	return out
}

// within returns an offset within the first character that has several bytes. If all characters have one byte, it
// returns the middle of the text.
func within(text []byte) int {
	i := bytes.IndexFunc(text, func(r rune) bool { return r >= utf8.RuneSelf })
	if i < 0 {
		return len(text) / 2
	}
	return i + 1
}

// inChunks returns a body that is sent in two chunks, the first of which ends within a character.
func inChunks(text []byte) io.ReadCloser {
	first := within(text)
	return io.NopCloser(io.MultiReader(bytes.NewReader(text[:first]), &apart{Reader: bytes.NewReader(text[first:])}))
}

// apart is a chunk that does not come with the one before it.
type apart struct {
	io.Reader
	once sync.Once
}

func (a *apart) Read(p []byte) (int, error) {
	a.once.Do(func() { time.Sleep(100 * time.Millisecond) }) // nothing shows when the server has read the first one
	return a.Reader.Read(p)
}

// HalfClose closes the sending side of a stream or WebSocket that a script has opened. The receiving side stays open.
func (c *Conn) HalfClose(ref int) error {
	h := c.holding(ref)
	if h == nil {
		return errNotHeld
	}
	return closeSending(h.wire)
}

// closeSending closes the sending side of a TCP or TLS connection.
func closeSending(conn net.Conn) error {
	if t, ok := conn.(*tap); ok {
		conn = t.Conn
	}
	half, ok := conn.(interface{ CloseWrite() error })
	if !ok {
		return errors.New("the sending side of this connection cannot be closed alone")
	}
	_ = half.CloseWrite() // a connection that has ended is closed as well
	return nil
}

// halfway sends a request on a connection of its own, closes the sending side, and reads the response.
func halfway(r *http.Request) (*http.Response, error) {
	port := cmp.Or(r.URL.Port(), map[string]string{"http": "80", "https": "443"}[r.URL.Scheme])
	conn, err := dial(r.Context(), "tcp", net.JoinHostPort(r.URL.Hostname(), port))
	if err != nil {
		return nil, err
	}
	plain := conn
	context.AfterFunc(r.Context(), func() { plain.Close() })
	if r.URL.Scheme == "https" {
		conn = tls.Client(conn, &tls.Config{ServerName: r.URL.Hostname()})
	}
	r.Close = true // the server expects no further request
	if err := r.Write(conn); err != nil {
		return nil, err
	}
	if err := closeSending(conn); err != nil {
		return nil, err
	}
	return http.ReadResponse(bufio.NewReader(conn), r)
}

// wired returns a context for a request, which sets conn to its connection.
func wired(ctx context.Context, conn *net.Conn, raw Raw) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(info httptrace.GotConnInfo) {
			if *conn = info.Conn; raw.How == Unread {
				narrow(info.Conn)
			}
		},
	})
}

// narrow limits the receive buffer of a connection that acp-test does not read.
func narrow(conn net.Conn) {
	if over, ok := conn.(interface{ NetConn() net.Conn }); ok { // TLS
		conn = over.NetConn()
	}
	if t, ok := conn.(*tap); ok {
		conn = t.Conn
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetReadBuffer(4 << 10)
	}
}
