package replay

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/acp-test/acp-test/internal/logs"
	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/wire"
)

// Read reads a recording: a transcript of this program, or any log that package logs can read. If a log does not name
// the senders, Read infers them from methods and ids. each has the same meaning as for transcript.Salvage; it may be
// nil.
func Read(p Protocol, r io.Reader, each func(transcript.Entry)) (t *transcript.Transcript, err error) {
	in := bufio.NewReaderSize(r, 256<<10)
	head, err := in.Peek(4096)
	if err != nil && err != io.EOF {
		return nil, fmt.Errorf("reading the recording: %w", err)
	}
	if bytes.HasPrefix(head, []byte(`{"acp-test":`)) {
		return transcript.Salvage(in, p, each)
	}
	text, err := io.ReadAll(in)
	if err != nil {
		return nil, fmt.Errorf("reading the recording: %w", err)
	}
	if t, err = imported(p, text); err != nil || each == nil {
		return t, err
	}
	for e := range t.Shown() {
		each(e)
	}
	return t, nil
}

// imported converts another program's log to a transcript.
func imported(p Protocol, text []byte) (*transcript.Transcript, error) {
	i, err := newImporter(p, header(text)) // called first, because the large text can be freed once it has been read
	if err != nil {
		return nil, err
	}
	log, err := logs.Read(text, dialect(p))
	if err != nil {
		return nil, errNoFrames
	}
	i.guess.lacking = len(log.Left) > 0
	for _, m := range log.Messages {
		if m.Timed {
			i.at(m.At)
		}
		if !i.frame(m.Process, sides[m.From], m.Raw) {
			log.Left = append(log.Left, logs.Left{Line: m.Line, Err: errNobody})
		}
	}
	if !log.Plain() {
		i.t.Imported(log.String())
	}
	for _, left := range log.Left {
		i.t.Skip(transcript.FormatError{Line: left.Line, Err: left.Err})
	}
	return i.t, nil
}

var sides = map[logs.Side]transcript.Source{logs.Editor: transcript.Editor, logs.Agent: transcript.Agent}

// dialect describes JSON-RPC logs with the methods of a protocol.
func dialect(p Protocol) logs.Dialect {
	return logs.Dialect{
		Message: func(v wire.Value) bool { return v.Get("jsonrpc").Exists() },
		Bare: func(v wire.Value) bool {
			id, called := v.Get("id").Exists(), v.Get("method").Kind() == wire.String
			if v.Get("_type").Exists() {
				return false // a line of Zed's log that is not a message
			}
			return called && (id || v.Get("params").Exists()) || id && (v.Get("result").Exists() || v.Get("error").Exists())
		},
		Complete: completed,
		Sender: func(v wire.Value) logs.Side {
			switch p.Side(v.Get("method").Str()) {
			case transcript.Editor:
				return logs.Editor
			case transcript.Agent:
				return logs.Agent
			}
			return logs.Unknown
		},
	}
}

// completed restores a logged message: it adds the "jsonrpc" member that the log dropped, and removes members that
// the log added.
func completed(raw []byte) []byte {
	v, err := wire.Parse(raw)
	if err != nil {
		return raw
	}
	message := []byte(`{"jsonrpc":"2.0"`)
	for _, key := range []string{"id", "method", "params", "result", "error"} {
		if m := v.Get(key); m.Exists() {
			message = fmt.Appendf(message, `,%q:%s`, key, m.Raw())
		}
	}
	return append(message, '}')
}

// header returns the header of an imported transcript. If the log is an export of acp-devtools, the header has the
// names of its agent and session.
func header(text []byte) transcript.Header {
	h := transcript.Header{Tool: "imported"}
	if !bytes.Contains(text[:min(len(text), 4096)], []byte(`"agentCommand"`)) {
		return h
	}
	if v, err := wire.Parse(text); err == nil {
		s := v.Get("session")
		h.Agent, h.Scenario = s.Get("agentCommand").Str(), s.Get("name").Str()
		h.Tool = strings.TrimSpace(v.Path("tool.name").Str() + " " + v.Path("tool.version").Str())
	}
	return h
}

// importer makes a transcript of frames that another program logged.
type importer struct {
	t     *transcript.Transcript
	clock time.Time
	first float64 // the first time in the log, in ms
	timed bool
	guess guesser
}

func newImporter(p Protocol, h transcript.Header) (*importer, error) {
	i := &importer{clock: time.Unix(0, 0), guess: guesser{protocol: p, open: map[wire.ID][]transcript.Entry{}}}
	h.Protocol = p.Version()
	var err error
	i.t, err = transcript.New(h,
		transcript.Options{Classifier: p, Now: func() time.Time { return i.clock }})
	return i, err
}

func (i *importer) at(ms float64) {
	if !i.timed {
		i.first, i.timed = ms, true
	}
	if ms >= i.first {
		i.clock = time.Unix(0, 0).Add(time.Duration((ms - i.first) * float64(time.Millisecond)))
	}
}

// frame appends a frame, and reports whether its sender is known.
func (i *importer) frame(conn int, from transcript.Source, raw []byte) bool {
	if from == "" {
		from = i.guess.source(raw)
	}
	if from == "" {
		return false
	}
	e := i.t.AppendFrame(conn, from, bytes.Clone(raw), 0)
	i.guess.note(e)
	return true
}

var errNobody = errors.New("the request that this message answers is missing, so its sender is unknown")

var errNoFrames = errors.New("this is not a recording: no line is a JSON-RPC message")

// guesser infers the sender of a frame from its content: most methods belong to one side, and a response answers a
// request of the other side.
type guesser struct {
	protocol Protocol
	open     map[wire.ID][]transcript.Entry // requests without an answer
	lacking  bool                           // the log has messages that cannot be read
}

// source returns the sender of a frame. It returns "" if the log lacks messages and the frame answers none of the
// known requests.
func (g *guesser) source(raw []byte) transcript.Source {
	var doc wire.Doc
	f := wire.ClassifyLine(&doc, raw)
	switch f.Kind {
	case wire.Request, wire.Notification:
		if side := g.protocol.Side(f.Method); side != "" {
			return side
		}
		if f.Kind == wire.Request && !g.prompting() {
			return transcript.Editor // outside of turns and loads, an agent sends no requests
		}
		return transcript.Agent
	case wire.Response:
		asked, fits := g.open[f.ID], false
		from := transcript.Agent
		for _, e := range asked {
			if fit := g.protocol.Fits(e.Method, f.Result); fit || !fits {
				from, fits = other(e.Source), fit || fits
			}
		}
		if g.lacking && !fits {
			return ""
		}
		return from
	}
	return transcript.Agent // only agents print lines that are not messages
}

func (g *guesser) prompting() bool {
	for _, asked := range g.open {
		for _, e := range asked {
			if isPrompt(g.protocol, e) {
				return true
			}
		}
	}
	return false
}

func other(s transcript.Source) transcript.Source {
	if s == transcript.Agent {
		return transcript.Editor
	}
	return transcript.Agent
}

func (g *guesser) note(e transcript.Entry) {
	switch e.Kind {
	case transcript.Request:
		g.open[e.ID] = append(g.open[e.ID], e)
	case transcript.Response:
		g.open[e.ID] = slices.DeleteFunc(g.open[e.ID], func(q transcript.Entry) bool { return q.Seq == e.Ref })
	}
}
