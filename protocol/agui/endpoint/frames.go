package endpoint

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/acp-test/acp-test/protocol/agui/aguiproto"
)

// keptOfFrame is how many bytes are kept of a frame that is too long.
const keptOfFrame = 4 << 10

// frames reads a stream in the binary form, in bounded memory.
type frames struct {
	in      *bufio.Reader
	framing Framing
	skip    int64 // what is to come of a frame that is too long
}

func newFrames(in io.Reader) *frames { return &frames{in: bufio.NewReaderSize(in, 32<<10)} }

func (f *frames) within() bool { return false }

func (f *frames) shows() *Framing { return &f.framing }

// step reads a frame, or a part of one that is too long.
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
			f.framing.Tail = fmt.Sprintf("the body ends within the length of a frame: it has %d bytes, and %d came",
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
		if errors.Is(err, io.EOF) { // a connection that broke is told elsewhere
			f.framing.Tail = fmt.Sprintf("the body ends within a frame: its length is %d bytes, and %d came", length, got)
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

// tooLong begins to pass over a frame.
func (f *frames) tooLong(length int64, prefix string) piece {
	begin, _ := f.in.Peek(min(f.in.Buffered(), keptOfFrame))
	p := piece{data: bytes.Clone(begin), size: aguiproto.Prefix + int(length), problem: fmt.Sprintf(
		"the length of the frame is %d bytes, more than the %d that any event may have", length, MaxEvent)}
	if prefix == "data" {
		p.problem += `: it is the text "data", so the body may be server-sent events`
	}
	f.framing.Events++
	f.skip = aguiproto.Prefix + length
	return p
}
