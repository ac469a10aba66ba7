package golden

import (
	"slices"
	"strings"

	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/wire"
)

// Line builds the text of one message from the members of its objects. Showing
// a member marks it as taken. Rest then shows the remaining members.
type Line struct {
	b    []byte
	mask *Mask
}

// NewLine returns an empty line. The mask m replaces values in its text.
func NewLine(m *Mask) *Line { return &Line{mask: m} }

// String returns the line built so far.
func (l *Line) String() string { return string(l.b) }

// Word appends a word unchanged, after a space.
func (l *Line) Word(s string) {
	if len(l.b) > 0 {
		l.b = append(l.b, ' ')
	}
	l.b = append(l.b, s...)
}

// Text appends a text in quotes, after a space.
func (l *Line) Text(s string) { l.Word(Quote(l.mask.Text(s))) }

func (l *Line) key(key string) {
	l.Word(key)
	l.b = append(l.b, '=')
}

// Pair appends key=value, after a space.
func (l *Line) Pair(key string, v wire.Value) {
	l.key(key)
	l.b = compact(l.b, l.mask, key, v)
}

// Object is a value that a Line shows. It remembers the keys of the members
// that were taken.
type Object struct {
	Value wire.Value
	taken *[]string
}

// Open returns an Object for a value, usually a JSON object, without taken
// members.
func Open(v wire.Value) Object {
	taken := make([]string, 0, 8)
	return Object{v, &taken}
}

// Take returns a member and marks it as taken. If the member was already taken,
// it returns a missing value, so that no member is shown twice.
func (o Object) Take(key string) wire.Value {
	v := o.Value.Get(key)
	if !v.Exists() || o.took(key) {
		return wire.Value{}
	}
	*o.taken = append(*o.taken, key)
	return v
}

func (o Object) took(key string) bool { return slices.Contains(*o.taken, key) }

// Bare shows a string without its key if vocabulary contains it. It shows any
// other value as key=value.
func (l *Line) Bare(o Object, key string, vocabulary ...string) {
	v := o.Take(key)
	if i := slices.IndexFunc(vocabulary, v.Is); i >= 0 {
		l.Word(vocabulary[i])
		return
	}
	l.Known(key, v)
}

// Known shows a member as key=value. It shows nothing if the member is missing
// or the mask hides it.
func (l *Line) Known(key string, v wire.Value) {
	if v.Exists() && !l.mask.Hides(key) {
		l.Pair(key, v)
	}
}

// Formed shows a string without its key, formatted by form. It shows any other
// value as key=value.
func (l *Line) Formed(o Object, key string, form func(string) string) {
	if v := o.Take(key); v.Kind() == wire.String {
		l.Word(form(v.Str()))
	} else {
		l.Known(key, v)
	}
}

// Quoted shows a string in quotes, without its key.
func (l *Line) Quoted(o Object, key string) {
	l.Formed(o, key, func(s string) string { return Quote(l.mask.Text(s)) })
}

// Path shows a path without its key.
func (l *Line) Path(o Object, key string) {
	l.Formed(o, key, func(s string) string { return PathText(l.mask.Text(s)) })
}

// ID shows an id without its key, as a label with the name of its class.
func (l *Line) ID(o Object, key string, class IDClass) {
	l.Formed(o, key, func(s string) string { return l.mask.ID(class, s) })
}

// Size shows only the size and hash of a string.
func (l *Line) Size(o Object, key string) {
	l.Formed(o, key, func(s string) string { return Digest(l.mask.Text(s)) })
}

// Keys shows the named members in this order, if they exist.
func (l *Line) Keys(o Object, keys ...string) {
	for _, key := range keys {
		l.Known(key, o.Take(key))
	}
}

// Rest shows the members that are not taken. These are unknown members. Of
// duplicate keys, it also shows all members but the last.
func (l *Line) Rest(o Object) {
	switch kind := o.Value.Kind(); {
	case kind == wire.Missing, kind == wire.Object && len(*o.taken) == o.Value.Len(): // all members were taken
		return
	case kind != wire.Object:
		l.Pair("+value", o.Value)
		return
	}
	members := sortedMembers(o.Value)
	for i, m := range members {
		last := i+1 == len(members) || members[i+1].key != m.key
		if last && o.took(m.key) || l.mask.Hides(m.key) {
			continue
		}
		l.b = append(l.b, " +"+QuoteUnlessWord(m.key)+"="...)
		l.b = compact(l.b, l.mask, m.key, m.value)
	}
}

// Envelope shows the members of a message that are not part of JSON-RPC.
func (l *Line) Envelope(v wire.Value) {
	o := Open(v)
	for _, key := range []string{"jsonrpc", "id", "method", "params", "result", "error"} {
		o.Take(key)
	}
	l.Rest(o)
}

// Arrow returns the arrow for the sender of a frame: --> for the editor, <--
// for any other.
func Arrow(s transcript.Source) string {
	if s == transcript.Editor {
		return "-->"
	}
	return "<--"
}

// Malformed shows a line that is not a frame: its text, its full size if the log
// cut it, and its problem.
func (l *Line) Malformed(e transcript.Entry) {
	l.Word("malformed")
	l.Text(string(e.Raw))
	if e.Size > 0 {
		l.Word("(" + thousands(e.Size) + " bytes on the wire)")
	}
	if e.Problem != "" {
		l.b = append(l.b, ": "+oneLine(l.mask.Text(e.Problem))...)
	}
}

// List shows each item of an array with show. It puts brackets around the items
// unless there is exactly one. It shows any other value as key=value.
func (l *Line) List(key string, v wire.Value, show func(wire.Value)) {
	if v.Kind() != wire.Array {
		l.Known(key, v)
		return
	}
	if v.Len() == 1 {
		for item := range v.Items() {
			show(item)
		}
		return
	}
	l.Bracketed(v, ", ", show)
}

// Bracketed shows the items of an array with show, in brackets and with a separator between them.
func (l *Line) Bracketed(v wire.Value, separator string, show func(wire.Value)) {
	l.Word("[")
	before := l.b
	first := true
	for item := range v.Items() {
		if !first {
			before = append(before, separator...)
		}
		first = false
		l.b = nil
		show(item)
		before = append(before, l.b...)
	}
	l.b = append(before, ']')
}

// Several shows an array in brackets, even if it has only one item.
func (l *Line) Several(o Object, key string, show func(wire.Value)) {
	l.Separated(o, key, ", ", show)
}

// Separated is like Several, with a given separator instead of a comma.
func (l *Line) Separated(o Object, key, separator string, show func(wire.Value)) {
	v := o.Take(key)
	if v.Kind() != wire.Array {
		l.Known(key, v)
		return
	}
	l.Bracketed(v, separator, func(item wire.Value) {
		if item.Kind() != wire.Object {
			l.Item(key, item)
			return
		}
		show(item)
	})
}

// Event returns a one-line description, for users, of an entry that is not a
// frame.
func Event(e transcript.Entry) string {
	l := NewLine(PlainMask())
	switch {
	case e.Kind == transcript.Written:
		l.Word("--> written")
		l.Details(e.JSON())
		if e.Problem != "" {
			l.Word(oneLine(e.Problem))
		}
	case e.Source == transcript.Process:
		l.Process(e)
	case e.Source == transcript.Stderr:
		l.Word("stderr")
		l.Text(strings.TrimRight(string(e.Raw), "\r\n"))
	default:
		kind := string(e.Kind)
		if !strings.HasPrefix(kind, string(e.Source)) {
			kind = string(e.Source) + " " + kind
		}
		l.Word(oneLine(kind))
		if e.Session != "" {
			l.Word(PathText(e.Session))
		}
		l.Details(e.JSON())
	}
	return l.String()
}

// Process appends a description of an event of the agent's process, and returns
// the line.
func (l *Line) Process(e transcript.Entry) string {
	switch e.Kind {
	case transcript.StdinClosed:
		l.Word("--> end of input")
	case transcript.Signalled:
		l.Word("--> signal")
	case transcript.Exited:
		l.Word("<-- exit")
	default:
		l.Word("process " + oneLine(string(e.Kind)))
	}
	l.Details(e.JSON())
	return l.String()
}

// Item appends a value after a space, formatted as the value of a key.
func (l *Line) Item(key string, v wire.Value) { l.Word(string(compact(nil, l.mask, key, v))) }

// Details shows the members of an event's object as key=value.
func (l *Line) Details(v wire.Value) {
	for key, value := range v.Members() {
		l.Member(key, value)
	}
}

// Members shows the members of an object that are not taken as key=value,
// sorted by key. It marks them as taken.
func (l *Line) Members(o Object) {
	before := Object{taken: new(slices.Clone(*o.taken))} // the copy stays short, so that looking up many members is fast
	last := ""
	for i, m := range sortedMembers(o.Value) {
		if !before.took(m.key) && (i == 0 || m.key != last) {
			*o.taken = append(*o.taken, m.key)
			l.Member(m.key, m.value)
		}
		last = m.key
	}
}

// Member appends key=value, with the key in quotes if it needs them.
func (l *Line) Member(key string, v wire.Value) {
	l.key(QuoteUnlessWord(key))
	l.Append("", key, v)
}

// Append appends text without a space before it, and then a value, formatted as
// the value of a key.
func (l *Line) Append(text, key string, v wire.Value) {
	l.b = compact(append(l.b, text...), l.mask, key, v)
}

func oneLine(s string) string {
	return strings.NewReplacer("\n", `\n`, "\r", `\r`).Replace(s)
}
