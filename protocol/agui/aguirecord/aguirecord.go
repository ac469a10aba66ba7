// Package aguirecord reads recordings of AG-UI. These are transcripts of this program, logs with one JSON event per
// line, and captured streams: server-sent events or the binary form.
package aguirecord

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/acp-test/acp-test/internal/lazy"
	"github.com/acp-test/acp-test/internal/logs"
	"github.com/acp-test/acp-test/protocol/agui/aguiframe"
	"github.com/acp-test/acp-test/protocol/agui/aguiproto"
	"github.com/acp-test/acp-test/protocol/agui/endpoint"
	"github.com/acp-test/acp-test/replay"
	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/wire"
)

// Protocol is the description of AG-UI for recordings. It lacks the methods that only a replay needs, because AG-UI is
// not replayed; calling one of them panics.
type Protocol struct{ replay.Protocol }

// Frame implements transcript.Classifier.
func (Protocol) Frame(from transcript.Source, line []byte, v wire.Value, err error) wire.Frame {
	return aguiframe.Classifier{}.Frame(from, line, v, err)
}

// Session implements transcript.Classifier.
func (Protocol) Session(method string, f wire.Frame) wire.Value {
	return aguiframe.Classifier{}.Session(method, f)
}

// Facts implements replay.Protocol. It returns no facts, because no message names the agent.
func (Protocol) Facts(transcript.Entry) replay.Facts { return replay.Facts{} }

// Sight implements replay.Protocol.
func (Protocol) Sight(e transcript.Entry) (s replay.Sight) {
	if v := e.JSON(); e.Source == transcript.Agent && v.Get("type").Is("TOOL_CALL_START") {
		s.Call = v.Get("toolCallId").Str()
	} else if e.Source == transcript.Agent && strings.HasPrefix(v.Get("type").Str(), "TEXT_MESSAGE_C") {
		s.Text = v.Get("delta").Str()
	}
	return s
}

// HasText implements replay.Protocol.
func (Protocol) HasText(transcript.Entry) bool { return true }

// Version implements replay.Protocol.
func (Protocol) Version() string { return "ag-ui" }

// Cancels implements serve.Protocol. It returns false, because a front end cancels a run by closing the connection.
func (Protocol) Cancels(transcript.Entry) bool { return false }

// Opens implements serve.Protocol. Each run names its thread.
func (Protocol) Opens(e transcript.Entry, _ int) (session, dir string) { return e.Session, "" }

// Prompt implements serve.Protocol. The prompt of a run is the text of its last message, or "" if the user did not
// send that message.
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

// Plain implements serve.Protocol. It answers a run with a short message.
func (Protocol) Plain(e transcript.Entry, _ map[string]string) (frames [][]byte) {
	ids := fmt.Sprintf(`"threadId":%s,"runId":%s`, orText(e.JSON().Get("threadId")), orText(e.JSON().Get("runId")))
	return [][]byte{[]byte(`{"type":"RUN_STARTED",` + ids + `}`),
		fmt.Appendf(nil, `{"type":"TEXT_MESSAGE_START","messageId":"message-%d","role":"assistant"}`, e.Seq),
		fmt.Appendf(nil, `{"type":"TEXT_MESSAGE_CONTENT","messageId":"message-%d","delta":"Fine."}`, e.Seq),
		fmt.Appendf(nil, `{"type":"TEXT_MESSAGE_END","messageId":"message-%d"}`, e.Seq),
		[]byte(`{"type":"RUN_FINISHED",` + ids + `}`)}
}

// Owed implements serve.Protocol. It returns nothing, because the answer to a post ends when the script ends.
func (Protocol) Owed(transcript.Entry, map[string]string) [][]byte { return nil }

// Taken implements serve.Protocol.
func (Protocol) Taken(transcript.Entry) [][]byte { return nil }

// orText returns the JSON of a text value. For any other value it returns the JSON of "".
func orText(v wire.Value) []byte {
	if v.Kind() != wire.String {
		return []byte(`""`)
	}
	return v.Raw()
}

// Answer implements replay.Protocol. It never has an answer, because an agent of AG-UI sends no requests.
func (Protocol) Answer(string, transcript.Entry, transcript.Entry) (value string, ok, known bool) {
	return "", false, false
}

// errNoEvents is the error for a file that contains no event.
var errNoEvents = errors.New("the file is not a recording: it has no AG-UI event")

// Read reads a recording in any of the formats that the package comment lists.
func Read(r io.Reader) (*transcript.Transcript, error) {
	in := bufio.NewReaderSize(r, 64<<10)
	head, err := in.Peek(4096)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("reading the recording: %w", err)
	}
	if bytes.HasPrefix(head, []byte(`{"acp-test":`)) {
		return transcript.Salvage(in, aguiframe.Classifier{}, nil)
	}
	text, err := io.ReadAll(in)
	if err != nil {
		return nil, fmt.Errorf("reading the recording: %w", err)
	}
	clock := time.Unix(0, 0)
	t, err := transcript.New(transcript.Header{Tool: "imported", Protocol: "ag-ui"},
		transcript.Options{Classifier: aguiframe.Classifier{}, Now: func() time.Time { return clock }})
	if err != nil {
		return nil, err
	}
	switch plain := bytes.TrimLeft(text, " \r\n\t"); {
	case aguiproto.Begins(text):
		endpoint.Import(t, aguiproto.MediaType, text)
	case isStream(text):
		endpoint.Import(t, endpoint.EventStream, plain)
	default:
		imported(t, text, &clock)
	}
	if t.Len() == 0 {
		return nil, errNoEvents
	}
	return t, nil
}

// field matches the beginning of a line in an event stream.
var field = lazy.Regexp(`^(?:data|event|id|retry)?:`)

// isStream reports whether a text has only lines of an event stream.
func isStream(text []byte) bool {
	some := false
	for line := range bytes.Lines(text) {
		if line = bytes.TrimRight(line, "\r\n"); len(line) == 0 {
			continue
		}
		if !field().Match(line) {
			return false
		}
		some = true
	}
	return some
}

// imported reads the log of another program. The events after each input in the log become the answer to that input.
func imported(t *transcript.Transcript, text []byte, clock *time.Time) {
	log, err := logs.Read(text, dialect)
	if err != nil {
		return
	}
	ref, first := 0, 0.0
	for _, m := range log.Messages {
		if m.Timed {
			first = cmp.Or(first, m.At)
			*clock = time.Unix(0, 0).Add(time.Duration((max(m.At, first) - first) * float64(time.Millisecond)))
		}
		if v, err := wire.Parse(m.Raw); err == nil && isInput(v) {
			ref = t.AppendFrame(0, transcript.Editor, m.Raw, 0).Seq
		} else {
			t.AppendReply(0, ref, m.Raw, 0)
		}
	}
	if !log.Plain() {
		t.Imported(log.String())
	}
	for _, left := range log.Left {
		t.Skip(transcript.FormatError{Line: left.Line, Err: left.Err})
	}
}

// eventType matches the types of events.
var eventType = lazy.Regexp(`^[A-Z][A-Z_]+$`)

func isInput(v wire.Value) bool {
	return !v.Get("type").Exists() && v.Get("messages").Kind() == wire.Array && v.Get("threadId").Exists()
}

// dialect says how to recognise events and inputs in the log of another program.
var dialect = logs.Dialect{
	Message: func(v wire.Value) bool {
		return !v.Get("jsonrpc").Exists() && (isInput(v) || eventType().MatchString(v.Get("type").Str()))
	},
	Sender: func(v wire.Value) logs.Side {
		if isInput(v) {
			return logs.Editor
		}
		return logs.Agent
	},
}

// Looks reports whether a file looks like a recording of AG-UI. head is the beginning of the file. It must be an event
// stream, or a log that has events and no JSON-RPC, or an event in the binary form.
func Looks(head []byte) bool {
	if aguiproto.Begins(head) {
		return true
	}
	if bytes.Contains(head, []byte(`jsonrpc`)) {
		return false
	}
	line, _, _ := bytes.Cut(bytes.TrimLeft(head, " \r\n\t"), []byte("\n"))
	if field().Match(line) {
		return true
	}
	_, err := logs.Read(head, dialect)
	return err == nil
}
