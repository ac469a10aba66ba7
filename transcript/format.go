package transcript

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/acp-test/acp-test/internal/lists"
	"github.com/acp-test/acp-test/wire"
)

// Format is the version of the file format that this package writes. A reader
// accepts any version up to its own. Since version 2, a file may contain the
// data for a replay: the model's replies, and the files of the workspace. Since
// version 3, a model-chunk entry may contain several chunks that were sent
// together.
//
// The first line is a header object; its key "acp-test" has the version. Each
// following line is one entry:
//
//	{"seq":7,"ms":12.345,"from":"agent","kind":"response","id":2,
//	 "method":"session/prompt","session":"s1","ref":5,"msg":{…}}
//
// conn, id, method, session, ref, stream, problem, size and redacted are
// omitted if empty. The bytes of the entry are unchanged under "msg" if they
// are a JSON value on one line. Otherwise they are under "text" if they are
// UTF-8, else under "raw64". An entry with none of the three keys has no bytes.
const Format = 3

type headerLine struct {
	Format   int       `json:"acp-test"`
	Tool     string    `json:"tool,omitempty"`
	Agent    string    `json:"agent,omitempty"`
	Scenario string    `json:"scenario,omitempty"`
	Protocol string    `json:"protocol,omitempty"`
	Seed     int64     `json:"seed"`
	Started  time.Time `json:"started"`
}

func appendHeader(b []byte, h Header) []byte {
	line, err := json.Marshal(headerLine(h))
	if err != nil { // possible only for a year outside of 0 to 9999
		h.Started = time.Time{}
		line, _ = json.Marshal(headerLine(h))
	}
	return append(append(b, line...), '\n')
}

func appendEntry(b []byte, e Entry) []byte {
	b = append(b, `{"seq":`...)
	b = strconv.AppendInt(b, int64(e.Seq), 10)
	b = append(b, `,"ms":`...)
	us := e.At.Microseconds()
	b = strconv.AppendInt(b, us/1000, 10)
	if us %= 1000; us > 0 {
		b = append(b, '.', byte('0'+us/100), byte('0'+us/10%10), byte('0'+us%10))
	}
	b = appendInt(b, `,"conn":`, e.Conn)
	b = appendString(b, "from", string(e.Source))
	b = appendString(b, "kind", string(e.Kind))
	if e.ID != "" {
		b = append(b, `,"id":`...)
		b = append(b, e.ID...)
	}
	b = appendString(b, "method", e.Method)
	b = appendString(b, "session", e.Session)
	b = appendInt(b, `,"ref":`, e.Ref)
	b = appendInt(b, `,"stream":`, e.Stream)
	b = appendString(b, "problem", e.Problem)
	b = appendInt(b, `,"size":`, e.Size)
	for i, p := range e.Redacted {
		if i == 0 {
			b = append(b, `,"redacted":[`...)
		} else {
			b = append(b, ',')
		}
		b = wire.AppendString(b, p)
		if i == len(e.Redacted)-1 {
			b = append(b, ']')
		}
	}
	if len(e.Raw) > 0 {
		b = appendRaw(b, e)
	}
	return append(b, '}', '\n')
}

func appendRaw(b []byte, e Entry) []byte {
	if e.embeds() {
		b = append(b, `,"msg":`...)
		return append(b, e.Raw...)
	}
	if utf8.Valid(e.Raw) {
		before := len(b)
		b = append(b, `,"text":`...)
		b = wire.AppendString(b, string(e.Raw))
		if len(b)-before <= 1024+3*len(e.Raw)/2 {
			return b
		}
		b = b[:before] // mostly escapes, which would be longer than base64 and equally unreadable
	}
	b = append(b, `,"raw64":"`...)
	b = base64.StdEncoding.AppendEncode(b, e.Raw)
	return append(b, '"')
}

func appendInt(b []byte, key string, n int) []byte {
	if n == 0 {
		return b
	}
	return strconv.AppendInt(append(b, key...), int64(n), 10)
}

func appendString(b []byte, key, s string) []byte {
	if s == "" {
		return b
	}
	b = append(b, ',', '"')
	b = append(b, key...)
	b = append(b, '"', ':')
	for i := range len(s) {
		if c := s[i]; c < ' ' || c == '"' || c == '\\' || c >= utf8.RuneSelf {
			return wire.AppendString(b, s)
		}
	}
	b = append(b, '"')
	b = append(b, s...)
	return append(b, '"')
}

// embeds reports whether Raw can be part of a line unchanged, so that reading
// it gives the same bytes. Raw must be JSON on one line, without surrounding
// white space.
func (e Entry) embeds() bool {
	if !e.sound || e.Raw[0] <= ' ' || e.Raw[len(e.Raw)-1] <= ' ' || bytes.IndexByte(e.Raw, '\n') >= 0 {
		return false
	}
	if len(e.Raw) < 2*deep || bytes.Count(e.Raw, []byte("["))+bytes.Count(e.Raw, []byte("{")) < deep {
		return true
	}
	// In the line, Raw is nested one level deeper, which the parser may reject.
	_, err := wire.Parse(append(append([]byte("["), e.Raw...), ']'))
	return err == nil
}

// deep is a nesting depth that is clearly within the parser's limit.
const deep = 9_000

// decoder decodes entries one after the other and reuses its memory.
type decoder struct {
	classes Classifier
	doc     wire.Doc
	head    []byte
	names   map[string]string // raw JSON -> decoded string, for methods, sessions and other strings that recur
}

// name decodes a string that many entries share. Equal strings are allocated
// only once.
func (d *decoder) name(v wire.Value) string {
	const most = 1000 // a limit, because each entry may have a different name
	raw := v.Raw()
	if s, ok := d.names[string(raw)]; ok {
		return s
	}
	s := v.Str()
	if d.names == nil {
		d.names = map[string]string{}
	}
	if len(d.names) < most {
		d.names[string(raw)] = s
	}
	return s
}

func (d *decoder) entry(line []byte) (Entry, error) {
	err := d.doc.Parse(line)
	if err != nil {
		return Entry{}, err
	}
	v := d.doc.Root()
	if v.Kind() != wire.Object {
		return Entry{}, errors.New("an entry must be a JSON object")
	}
	e := Entry{classes: d.classes}
	embedded := false
	for key, m := range v.Members() {
		if key == "msg" {
			e.Raw, embedded = bytes.Clone(m.Raw()), true
		} else if err := d.member(&e, key, m); err != nil {
			return Entry{}, err
		}
	}
	if e.Source == "" || e.Kind == "" {
		return Entry{}, errors.New(`an entry needs "from" and "kind"`)
	}
	e.sound = embedded && e.Source != Stderr && e.Size == 0 || isJSON(e)
	return e, nil
}

// member decodes one member of an entry, except for the bytes of the message.
func (d *decoder) member(e *Entry, key string, m wire.Value) (err error) {
	switch key {
	case "seq":
		e.Seq = asInt(m)
	case "ms":
		if ms, ok := m.Float(); ok && ms > 0 && ms < 1e12 {
			e.At = time.Duration(ms*1000+0.5) * time.Microsecond
		}
	case "conn":
		e.Conn = asInt(m)
	case "stream":
		e.Stream = asInt(m)
	case "from":
		e.Source = Source(d.name(m))
	case "kind":
		e.Kind = Kind(d.name(m))
	case "id":
		e.ID = wire.ID(m.Raw())
	case "method":
		e.Method = d.name(m)
	case "session":
		e.Session = d.name(m)
	case "ref":
		e.Ref = asInt(m)
	case "problem":
		e.Problem = m.Str()
	case "size":
		e.Size = asInt(m)
	case "redacted":
		e.Redacted = lists.Collect(m.Items(), wire.Value.Str)
	case "text":
		e.Raw = []byte(m.Str())
	case "raw64":
		if e.Raw, err = base64.StdEncoding.DecodeString(m.Str()); err != nil {
			return fmt.Errorf("raw64: %w", err)
		}
	}
	return nil
}

// again decodes a line that appendEntry wrote. It need not check "msg", which
// is known to be JSON; the rest of the line is short.
func (d *decoder) again(line []byte) (Entry, error) {
	const key = `,"msg":` // inside of a string, the quotes would be escaped
	head, raw, ok := bytes.Cut(line, []byte(key))
	if raw, ends := bytes.CutSuffix(raw, []byte("}")); ok && ends {
		d.head = append(append(d.head[:0], head...), '}')
		if e, err := d.entry(d.head); err == nil { // an error means that the key was part of an id
			e.Raw, e.sound = bytes.Clone(raw), true
			return e, nil
		}
	}
	return d.entry(line)
}

func asInt(v wire.Value) int {
	n, _ := v.Int()
	return int(n)
}
