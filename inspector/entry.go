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

// Longer texts are cut in lists. The transcript has the whole text, and a server returns it for a single entry.
const (
	rawLimit  = 16 << 10
	lineLimit = 600
)

// Protocol has the facts about a transcript's protocol that the page needs.
type Protocol struct {
	Classifier transcript.Classifier
	Text       golden.Renderer
	// Kind returns the kind of update of a notification, "" if it has none. If it is nil, the first word of the
	// entry's text is used, which takes longer.
	Kind func(e transcript.Entry) string
	// Fields returns the descriptions of the members of messages; nil if there are none.
	Fields func() Fields
}

// Fields describes the members that a protocol's messages may have, and the specification's requirements on them.
type Fields struct {
	// Calls are the types of the parameters and of the result, by method.
	Calls map[string][]string `json:"calls"`
	// Whole are the types of messages that consist of a value of one type, by method.
	Whole map[string]string `json:"whole,omitempty"`
	// Types are the types by name, in the form that the page's schema.js describes.
	Types map[string]any `json:"types"`
	// Cite is the prefix of a link to the definition of a type in the specification, before the type's name.
	Cite string `json:"cite"`
	// Says are indexes of Statements by their subject: TYPE, TYPE.MEMBER, or the name of a member or method. A
	// statement has an id, a level, a sentence and a citation.
	Says       map[string][]int `json:"says"`
	Statements [][4]string      `json:"statements"`
}

// line returns the text of an entry for people.
func (p Protocol) line(e transcript.Entry) string {
	return wire.Clip(printable.Text(p.Text.Line(e)), lineLimit)
}

// raw returns the content of an entry as text, and whether it was cut.
func raw(e transcript.Entry) (text string, cut bool) {
	text = string(bytes.ToValidUTF8(e.Raw, []byte("\ufffd")))
	if len(text) > rawLimit {
		return wire.Clip(text, rawLimit), true
	}
	return text, false
}

// label returns the word that names an entry: the kind of an update, else the frame's method, else the kind of the
// entry.
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

// record is an entry without its text. The page has the record of every entry. So it can filter and draw a million
// entries without requests.
type record struct {
	at                                           float64 // microseconds
	ref, size                                    uint32
	source, kind, method, label, session, origin uint16
}

// names are texts that many entries share. Entries refer to them by number.
type names struct {
	list  []string
	index map[string]uint16
}

// number returns the number of a name. When all numbers are used, further names get the number of "".
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

// record returns the record of an entry.
func (n *names) record(e transcript.Entry, p Protocol) record {
	size := cmp.Or(e.Size, len(e.Raw))
	return record{at: float64(e.At.Microseconds()), ref: uint32(e.Ref), size: uint32(min(size, math.MaxUint32)),
		source: n.number(string(e.Source)), kind: n.number(string(e.Kind)), method: n.number(e.Method),
		label: n.number(p.label(e)), session: n.number(e.Session), origin: uint16(min(e.Conn, math.MaxUint16))}
}
