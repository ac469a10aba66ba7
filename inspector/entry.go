package inspector

import (
	"bytes"
	"cmp"
	"math"
	"strings"

	"github.com/acp-test/acp-test/golden"
	"github.com/acp-test/acp-test/internal/printable"
	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/wire"
)

// Limits, in bytes, of an entry's content and of its text in lists. Longer ones are cut. The server returns the
// complete content when the page asks for a single entry.
const (
	rawLimit  = 16 << 10
	lineLimit = 600
)

// Protocol contains what the page must know about the protocol of a transcript.
type Protocol struct {
	Classifier transcript.Classifier
	Text       golden.Renderer
	// Kind returns the kind of update that a notification contains, or "" if it contains none. If Kind is nil, the
	// first word of the entry's text is used instead, which is slower.
	Kind func(e transcript.Entry) string
	// Fields returns the descriptions of the members of messages. It is nil if there are no descriptions.
	Fields func() Fields
}

// Fields describes the members that a protocol's messages may have, and the specification's requirements on them.
type Fields struct {
	// Calls lists the names of the types of a method's parameters and result, by method.
	Calls map[string][]string `json:"calls"`
	// Whole lists the types of messages that are a single value, by method.
	Whole map[string]string `json:"whole,omitempty"`
	// Types contains the types, by name. The page's schema.js documents the form.
	Types map[string]any `json:"types"`
	// Cite is the URL of a type's definition in the specification, without the type's name at its end.
	Cite string `json:"cite"`
	// Says maps a subject to indexes in Statements. A subject is TYPE, TYPE.MEMBER, or the name of a member or
	// method. A statement consists of an id, a level, a sentence and a citation.
	Says       map[string][]int `json:"says"`
	Statements [][4]string      `json:"statements"`
}

// line returns the text that describes an entry to people, cut at lineLimit.
func (p Protocol) line(e transcript.Entry) string {
	return wire.Clip(printable.Text(p.Text.Line(e)), lineLimit)
}

// raw returns the content of an entry as text, and whether the text was cut at rawLimit.
func raw(e transcript.Entry) (text string, cut bool) {
	text = string(bytes.ToValidUTF8(e.Raw, []byte("\ufffd")))
	if len(text) > rawLimit {
		return wire.Clip(text, rawLimit), true
	}
	return text, false
}

// label returns the word that names an entry in the page: the kind of update, else the frame's method, else the kind
// of the entry.
func (p Protocol) label(e transcript.Entry) string {
	word := ""
	switch {
	case e.Kind == transcript.Notification && p.Kind != nil:
		word = p.Kind(e)
	case e.Kind == transcript.Notification:
		_, rest, _ := strings.Cut(p.Text.Line(e), " ")
		word, _, _ = strings.Cut(rest, " ")
	}
	return cmp.Or(word, e.Method, string(e.Kind))
}

// record is an entry without its text. The page loads the records of all entries. It can then filter and draw a
// million entries without requests to the server.
type record struct {
	at                                           float64 // microseconds since the start
	ref, size                                    uint32
	source, kind, method, label, session, origin uint16
}

// names contains texts that many entries share. Records refer to a text by its index.
type names struct {
	list  []string
	index map[string]uint16
}

// number returns the index of a name, and adds the name if it is new. When all 65536 indexes are used, new names get
// the index of "".
func (n *names) number(s string) uint16 {
	if i, ok := n.index[s]; ok {
		return i
	}
	if n.index == nil {
		n.list, n.index = []string{""}, map[string]uint16{"": 0}
		return n.number(s)
	}
	if len(n.list) > math.MaxUint16 {
		return 0
	}
	i := uint16(len(n.list))
	s = strings.Clone(wire.Clip(s, 200))
	n.list, n.index[s] = append(n.list, s), i
	return i
}

func (n *names) record(e transcript.Entry, p Protocol) record {
	size := cmp.Or(e.Size, len(e.Raw))
	return record{at: float64(e.At.Microseconds()), ref: uint32(e.Ref), size: uint32(min(size, math.MaxUint32)),
		source: n.number(string(e.Source)), kind: n.number(string(e.Kind)), method: n.number(e.Method),
		label: n.number(p.label(e)), session: n.number(e.Session), origin: uint16(min(e.Conn, math.MaxUint16))}
}
