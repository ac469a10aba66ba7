package replay

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/wire"
)

// Forms of recordings that Read takes.
const (
	Ours        = "acp-test"     // a transcript of this program
	JSONLines   = "JSON lines"   // frames, one a line, maybe in an envelope with direction and time
	ACPDevtools = "acp-devtools" // the JSON export of that program
)

// Read reads a recording in any known form, and says which it is. acpx writes
// JSON lines: its event log has frames alone, its flows wrap them. Zed's log of ACP
// messages is a JSON array of what they carry. Without directions they are told from the
// methods and the ids. each is as for transcript.Salvage; nil is none.
func Read(p Protocol, r io.Reader, each func(transcript.Entry)) (t *transcript.Transcript, form string, err error) {
	in := bufio.NewReaderSize(r, 256<<10)
	head, err := in.Peek(4096)
	if err != nil && err != io.EOF {
		return nil, "", fmt.Errorf("reading the recording: %w", err)
	}
	if bytes.HasPrefix(head, []byte(`{"acp-test":`)) {
		t, err = transcript.Salvage(in, p, each)
		return t, Ours, err
	}
	defer func() {
		if t != nil && each != nil {
			for e := range t.Shown() {
				each(e)
			}
		}
	}()
	text, err := io.ReadAll(in)
	if err != nil {
		return nil, "", fmt.Errorf("reading the recording: %w", err)
	}
	v, err := wire.Parse(bytes.TrimSpace(text))
	switch {
	case err == nil && v.Get("messages").Kind() == wire.Array && v.Get("session").Exists():
		t, err := devtools(p, v)
		return t, ACPDevtools, err
	case err == nil && v.Kind() == wire.Array:
		t, err := importAll(p, func(yield func(wire.Value) error) error {
			for item := range v.Items() {
				if err := yield(item); err != nil {
					return err
				}
			}
			return nil
		})
		return t, JSONLines, err
	}
	t, err = readLines(p, text)
	return t, JSONLines, err
}

// readLines reads frames, one a line. It skips lines that are none, but not the first.
func readLines(p Protocol, text []byte) (*transcript.Transcript, error) {
	var skipped []transcript.FormatError
	t, err := importAll(p, func(yield func(wire.Value) error) error {
		n := 0
		for line := range bytes.Lines(text) {
			n++
			line = bytes.TrimSpace(line)
			if len(line) == 0 {
				continue
			}
			v, err := wire.Parse(line)
			if err == nil {
				err = yield(v)
			}
			if err != nil && n == 1 {
				return fmt.Errorf("this is no recording: line 1: %w", err)
			} else if err != nil {
				skipped = append(skipped, transcript.FormatError{Line: n, Err: err})
			}
		}
		return nil
	})
	if t != nil {
		t.Skip(skipped...)
	}
	return t, err
}

// importer makes a transcript of frames that come with what another program
// noted about them.
type importer struct {
	t      *transcript.Transcript
	clock  time.Time
	first  float64 // the first time seen, in ms
	timed  bool
	guess  guesser
	frames int
}

func newImporter(p Protocol, h transcript.Header) (*importer, error) {
	i := &importer{clock: time.Unix(0, 0), guess: guesser{protocol: p}}
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

func (i *importer) frame(conn int, from transcript.Source, raw []byte) {
	if from == "" {
		from = i.guess.source(raw)
	}
	i.frames++
	e := i.t.AppendFrame(conn, from, bytes.Clone(raw), 0)
	i.guess.note(e)
}

var errNoFrames = errors.New("this is no recording: no line holds a JSON-RPC message")

func importAll(p Protocol, each func(yield func(wire.Value) error) error) (*transcript.Transcript, error) {
	i, err := newImporter(p, transcript.Header{Tool: "imported"})
	if err != nil {
		return nil, err
	}
	if err := each(i.line); err != nil {
		return nil, fmt.Errorf("reading the recording: %w", err)
	}
	if i.frames == 0 {
		return nil, errNoFrames
	}
	return i.t, nil
}

// line takes a frame, or an envelope around one. An object without either is
// something else the other program noted, and is left out.
func (i *importer) line(v wire.Value) error {
	if v.Kind() != wire.Object {
		return errors.New("a JSON object is expected")
	}
	if v.Get("jsonrpc").Exists() {
		i.frame(0, "", v.Raw())
		return nil
	}
	if from, raw, ok := ofZed(v); ok {
		i.frame(0, from, raw)
		return nil
	}
	for _, key := range []string{"t", "ts", "timestamp", "time", "at"} {
		if ms, ok := v.Get(key).Float(); ok {
			i.at(ms)
		} else if when, err := time.Parse(time.RFC3339Nano, v.Get(key).Str()); err == nil {
			i.at(float64(when.UnixMicro()) / 1000)
		}
	}
	conn := 0
	if n, ok := v.Get("proc").Int(); ok && n > 0 {
		conn = int(n) - 1
	}
	var from transcript.Source
	for _, key := range []string{"dir", "direction", "from", "source"} {
		if s := v.Get(key).Str(); s != "" {
			var ok bool
			if from, ok = direction(s); !ok {
				return nil
			}
		}
	}
	for _, key := range []string{"frame", "message", "msg", "payload", "raw", "data"} {
		switch f := v.Get(key); f.Kind() {
		case wire.Object:
			i.frame(conn, from, f.Raw())
			return nil
		case wire.String:
			i.frame(conn, from, []byte(strings.TrimRight(f.Str(), "\r\n")))
			return nil
		}
	}
	return nil
}

// direction reads what other programs call the two ways.
func direction(s string) (transcript.Source, bool) {
	switch strings.ToLower(strings.NewReplacer("-", "", "_", "", " ", "").Replace(s)) {
	case "c2a", "clienttoagent", "editortoagent", "e2a", "client", "editor", "outbound", "out", "send", "sent", "stdin",
		"outgoing", ">", "→":
		return transcript.Editor, true
	case "a2c", "agenttoclient", "agenttoeditor", "a2e", "agent", "inbound", "in", "recv", "received", "stdout",
		"incoming", "<", "←":
		return transcript.Agent, true
	}
	return "", false
}

func devtools(p Protocol, v wire.Value) (*transcript.Transcript, error) {
	s := v.Get("session")
	i, err := newImporter(p, transcript.Header{
		Tool:  strings.TrimSpace(v.Path("tool.name").Str() + " " + v.Path("tool.version").Str()),
		Agent: s.Get("agentCommand").Str(), Scenario: s.Get("name").Str(),
	})
	if err != nil {
		return nil, err
	}
	n := 0
	for m := range v.Get("messages").Items() {
		n++
		from, ok := direction(m.Get("direction").Str())
		if !ok {
			return nil, fmt.Errorf("message %d has the direction %q, which is neither editor-to-agent nor agent-to-editor", n,
				m.Get("direction").Text())
		}
		if ms, ok := m.Get("timestamp").Float(); ok {
			i.at(ms)
		}
		i.frame(0, from, []byte(strings.TrimRight(m.Get("raw").Str(), "\r\n")))
	}
	if i.frames == 0 {
		return nil, errNoFrames
	}
	return i.t, nil
}
