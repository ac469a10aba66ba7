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

// What is longer is cut for a list; it is whole in the transcript, and a server gives it
// whole when it is asked for that one entry.
const (
	rawLimit  = 16 << 10
	lineLimit = 600
)

// Protocol is what the page needs to know of the protocol of a transcript.
type Protocol struct {
	Classifier transcript.Classifier
	Text       golden.Renderer
	// Kind returns what kind of update a notification is, "" for one without kinds. Nil: the
	// first word of its text tells, which takes longer.
	Kind func(e transcript.Entry) string
	// Fields returns what is known of the members of messages. Nil: nothing is.
	Fields func() Fields
}

// Fields says what may stand in the messages of a protocol, and what the specification demands of it.
type Fields struct {
	// Calls are the types of the parameters and of the result, by method.
	Calls map[string][]string `json:"calls"`
	// Whole are the types of messages that are values of one type as they are, by method.
	Whole map[string]string `json:"whole,omitempty"`
	// Types are the types by name, in the form that schema.js of the page tells.
	Types map[string]any `json:"types"`
	// Cite is where the specification defines a type, in front of its name.
	Cite string `json:"cite"`
	// Says are the numbers of Statements by what they speak of: TYPE, TYPE.MEMBER, or the name of a member or
	// method. A statement has an id, a level, a sentence and a citation.
	Says       map[string][]int `json:"says"`
	Statements [][4]string      `json:"statements"`
}

// line is the text of an entry for people.
func (p Protocol) line(e transcript.Entry) string {
	return wire.Clip(printable.Text(p.Text.Line(e)), lineLimit)
}

// raw is what an entry carried, as text, and whether that was cut.
func raw(e transcript.Entry) (text string, cut bool) {
	text = string(bytes.ToValidUTF8(e.Raw, []byte("\ufffd")))
	if len(text) > rawLimit {
		return wire.Clip(text, rawLimit), true
	}
	return text, false
}

// label is the word that tells what an entry is: the kind of an update, of another frame
// its method, else the kind of the entry.
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

// record is an entry without its text: what the page knows of every one of them, so that
// it filters and draws a million without asking.
type record struct {
	at                                           float64 // microseconds
	ref, size                                    uint32
	source, kind, method, label, session, origin uint16
}

// names are texts that many entries have in common. An entry has the number of one.
type names struct {
	list  []string
	index map[string]uint16
}

// number is the number of a name. What comes when all numbers are taken is nameless.
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

// record is what the page knows of an entry.
func (n *names) record(e transcript.Entry, p Protocol) record {
	size := cmp.Or(e.Size, len(e.Raw))
	return record{at: float64(e.At.Microseconds()), ref: uint32(e.Ref), size: uint32(min(size, math.MaxUint32)),
		source: n.number(string(e.Source)), kind: n.number(string(e.Kind)), method: n.number(e.Method),
		label: n.number(p.label(e)), session: n.number(e.Session), origin: uint16(min(e.Conn, math.MaxUint16))}
}
