// Package aguirecord says what recordings of AG-UI are: transcripts of this program,
// lines of JSON with one event each, and captured streams in either form.
package aguirecord

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/acp-test/acp-test/protocol/agui/aguiframe"
	"github.com/acp-test/acp-test/protocol/agui/aguiproto"
	"github.com/acp-test/acp-test/protocol/agui/endpoint"
	"github.com/acp-test/acp-test/replay"
	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/wire"
)

// Protocol is what judges of recordings ask. Nothing of AG-UI is replayed: what only a
// replay asks, it has not.
type Protocol struct{ replay.Protocol }

// Frame implements transcript.Classifier.
func (Protocol) Frame(from transcript.Source, line []byte, v wire.Value, err error) wire.Frame {
	return aguiframe.Classifier{}.Frame(from, line, v, err)
}

// Session implements transcript.Classifier.
func (Protocol) Session(method string, f wire.Frame) wire.Value {
	return aguiframe.Classifier{}.Session(method, f)
}

// Facts implements replay.Protocol: no frame says who the agent is.
func (Protocol) Facts(transcript.Entry) replay.Facts { return replay.Facts{} }

// HasText implements replay.Protocol.
func (Protocol) HasText(transcript.Entry) bool { return true }

// Version implements replay.Protocol.
func (Protocol) Version() string { return "ag-ui" }

// Cancels implements serve.Protocol: a front end hangs up.
func (Protocol) Cancels(transcript.Entry) bool { return false }

// Opens implements serve.Protocol: each run is of a thread.
func (Protocol) Opens(e transcript.Entry, _ int) (session, dir string) { return e.Session, "" }

// Prompt implements serve.Protocol: the text of a run is that of its last message, if the
// user said it.
func (Protocol) Prompt(e transcript.Entry) (text string, ok bool) {
	if e.Source != transcript.Editor || e.Method != aguiframe.Run {
		return "", false
	}
	for m := range e.JSON().Get("messages").Items() {
		if text = ""; m.Get("role").Is("user") {
			text = m.Get("content").Str()
		}
	}
	return text, true
}

// Plain implements serve.Protocol: a short message.
func (Protocol) Plain(e transcript.Entry, _ map[string]string) (frames [][]byte) {
	ids := fmt.Sprintf(`"threadId":%s,"runId":%s`, orText(e.JSON().Get("threadId")), orText(e.JSON().Get("runId")))
	return [][]byte{[]byte(`{"type":"RUN_STARTED",` + ids + `}`),
		fmt.Appendf(nil, `{"type":"TEXT_MESSAGE_START","messageId":"message-%d","role":"assistant"}`, e.Seq),
		fmt.Appendf(nil, `{"type":"TEXT_MESSAGE_CONTENT","messageId":"message-%d","delta":"Fine."}`, e.Seq),
		fmt.Appendf(nil, `{"type":"TEXT_MESSAGE_END","messageId":"message-%d"}`, e.Seq),
		[]byte(`{"type":"RUN_FINISHED",` + ids + `}`)}
}

// Owed implements serve.Protocol: the answer to a post ends with its script.
func (Protocol) Owed(transcript.Entry, map[string]string) [][]byte { return nil }

// Taken implements serve.Protocol.
func (Protocol) Taken(transcript.Entry) [][]byte { return nil }

// orText is the JSON of a text, and an empty one in place of anything else.
func orText(v wire.Value) []byte {
	if v.Kind() != wire.String {
		return []byte(`""`)
	}
	return v.Raw()
}

// Answer implements replay.Protocol: an endpoint asks for nothing that has an answer.
func (Protocol) Answer(string, transcript.Entry, transcript.Entry) (value string, ok, known bool) {
	return "", false, false
}

// errNoEvents is of a file without an event.
var errNoEvents = errors.New("this is no recording: it has no event of AG-UI")

// Read reads a recording in any of the forms.
func Read(r io.Reader) (*transcript.Transcript, error) {
	in := bufio.NewReaderSize(r, 64<<10)
	head, err := in.Peek(4096)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("reading the recording: %w", err)
	}
	if bytes.HasPrefix(head, []byte(`{"acp-test":`)) {
		return transcript.Salvage(in, aguiframe.Classifier{}, nil)
	}
	t, err := transcript.New(transcript.Header{Tool: "imported", Protocol: "ag-ui"},
		transcript.Options{Classifier: aguiframe.Classifier{}})
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(in)
	if err != nil {
		return nil, fmt.Errorf("reading the recording: %w", err)
	}
	switch plain := bytes.TrimLeft(text, " \r\n\t"); {
	case aguiproto.Begins(text):
		endpoint.Import(t, aguiproto.MediaType, text)
	case len(plain) > 0 && plain[0] == '{':
		lines(t, plain)
	default:
		endpoint.Import(t, endpoint.EventStream, plain)
	}
	if t.Len() == 0 {
		return nil, errNoEvents
	}
	return t, nil
}

// lines reads one event or input a line. An input begins the answer to it.
func lines(t *transcript.Transcript, text []byte) {
	ref, n := 0, 0
	for line := range bytes.Lines(text) {
		n++
		line = bytes.TrimSpace(line)
		if len(line) == 0 {
			continue
		}
		v, err := wire.Parse(line)
		if err == nil && v.Kind() != wire.Object {
			err = errors.New("an event is a JSON object")
		}
		switch {
		case err != nil:
			t.Skip(transcript.FormatError{Line: n, Err: err})
		case !v.Get("type").Exists() && v.Get("messages").Exists():
			ref = t.AppendFrame(0, transcript.Editor, bytes.Clone(line), 0).Seq
		default:
			t.AppendReply(0, ref, bytes.Clone(line), 0)
		}
	}
}

// Looks reports whether a file begins as a recording of AG-UI does: with data: or another
// field of a stream, with an event, or with the length of one in the binary form.
func Looks(head []byte) bool {
	if aguiproto.Begins(head) {
		return true
	}
	line, _, _ := bytes.Cut(bytes.TrimLeft(head, " \r\n\t\ufeff"), []byte("\n"))
	for _, field := range []string{"data:", "event:", "id:", "retry:", ":"} {
		if bytes.HasPrefix(line, []byte(field)) {
			return true
		}
	}
	v, err := wire.Parse(bytes.TrimSpace(line))
	return err == nil && (v.Get("type").Kind() == wire.String && !v.Get("jsonrpc").Exists() && !v.Get("dir").Exists() ||
		v.Get("threadId").Exists() && v.Get("runId").Exists())
}
