package endpoint

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/acp-test/acp-test/internal/sse"
	"github.com/acp-test/acp-test/protocol/agui/aguiproto"
	"github.com/acp-test/acp-test/transcript"
)

// piece is one received event. data is the content of the event. size is the length of the event on the wire if data
// has only a part of it, else 0. problem says why the bytes are not an event; it is "" if they are one, or may be one.
type piece struct {
	data    []byte
	size    int
	problem string
}

// source reads a stream step by step.
type source interface {
	// step reads on, and returns an event if one is complete. If the stream has ended, it returns an error. The error
	// may come with the last event or after it.
	step() (p piece, complete bool, err error)
	// Within reports whether the stream is in the middle of an event.
	Within() bool
	Shows() *Framing
}

// next returns the next event of a stream. After the last event it returns io.EOF, or the error that ended the stream.
func next(s source) (piece, error) {
	for {
		p, complete, err := s.step()
		switch {
		case complete:
			return p, nil // the next step returns the error again
		case err != nil:
			return piece{}, err
		}
	}
}

// sourceOf returns the source that reads a stream of the media type kind.
func sourceOf(kind string, body io.Reader) source {
	if kind == aguiproto.MediaType {
		return &frames{in: bufio.NewReaderSize(body, 32<<10)}
	}
	return events{sse.NewReader(body)}
}

// add appends a piece to a transcript, as a part of the answer to the post with the Seq ref.
func (p piece) add(t *transcript.Transcript, conn, ref int) transcript.Entry {
	if p.problem == "" {
		return t.AppendReply(conn, ref, p.data, p.size)
	}
	e := transcript.Entry{Conn: conn, Source: transcript.Agent, Kind: transcript.Malformed, Ref: ref, Raw: p.data,
		Size: p.size, Problem: p.problem}
	if ref > 0 {
		e.Session = t.At(ref).Session
	}
	return t.Append(e)
}

// Framing describes a stream apart from the content of its events.
type Framing = sse.Framing

// MaxEvent is the maximum size of an event that is kept, in bytes.
const MaxEvent = sse.MaxEvent

// events reads a stream of server-sent events.
type events struct{ *sse.Reader }

func (s events) step() (piece, bool, error) {
	e, complete, err := s.Step()
	return piece{data: e.Data, size: e.Size}, complete, err
}

// keptOfFrame is how many bytes of a frame are kept if the frame is too long.
const keptOfFrame = 4 << 10

// frames reads a stream in the binary form. It keeps at most one frame in memory.
type frames struct {
	in      *bufio.Reader
	framing Framing
	skip    int64 // bytes left to skip of a frame that is too long
}

func (f *frames) Within() bool { return false }

func (f *frames) Shows() *Framing { return &f.framing }

// step reads a frame, or a part of a frame that is too long.
func (f *frames) step() (piece, bool, error) {
	if f.skip > 0 {
		n, err := f.in.Discard(int(min(f.skip, 32<<10)))
		f.framing.Bytes += n
		f.skip -= int64(n)
		return piece{}, false, err
	}
	prefix, err := f.in.Peek(aguiproto.Prefix)
	if err != nil {
		n, _ := f.in.Discard(len(prefix))
		f.framing.Bytes += n
		if n > 0 && errors.Is(err, io.EOF) {
			f.framing.Tail = fmt.Sprintf("the body ends within the length of a frame: %d bytes expected, %d received",
				aguiproto.Prefix, n)
		}
		return piece{}, false, err
	}
	length := aguiproto.Length([aguiproto.Prefix]byte(prefix))
	if length > MaxEvent {
		return f.tooLong(length, string(prefix)), true, nil
	}
	n, _ := f.in.Discard(aguiproto.Prefix)
	f.framing.Bytes += n
	var whole bytes.Buffer
	got, err := io.CopyN(&whole, f.in, length)
	f.framing.Bytes += int(got)
	if err != nil {
		if errors.Is(err, io.EOF) { // the caller reports a broken connection
			f.framing.Tail = fmt.Sprintf("the body ends within a frame: %d bytes expected, %d received", length, got)
		}
		return piece{}, false, err
	}
	f.framing.Events++
	data, err := aguiproto.Decode(whole.Bytes())
	if err != nil {
		return piece{data: whole.Bytes(), problem: err.Error()}, true, nil
	}
	return piece{data: data}, true, nil
}

// tooLong returns the piece for a frame that is too long. The next steps skip the frame.
func (f *frames) tooLong(length int64, prefix string) piece {
	begin, _ := f.in.Peek(min(f.in.Buffered(), keptOfFrame))
	p := piece{data: bytes.Clone(begin), size: aguiproto.Prefix + int(length), problem: fmt.Sprintf(
		"the frame's length is %d bytes, but an event may have at most %d", length, MaxEvent)}
	if prefix == "data" {
		p.problem += `; these four bytes are the text "data", so the body may be server-sent events`
	}
	f.framing.Events++
	f.skip = aguiproto.Prefix + length
	return p
}
