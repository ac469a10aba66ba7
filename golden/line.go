package golden

import (
	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/wire"
)

// line builds the text of one message from the members of its objects. What
// has been shown is taken; what is left over at the end is shown too.
type line struct {
	b []byte
	m *mask
	// exact shows the kinds of chunks by their full names.
	exact bool
	// options tells how the options of a permission request are called.
	options func(id string) string
	// about is the tool call of the permission request that is answered.
	about string
	// prompt tells the answer to one of several open prompts; 0 else.
	prompt int
	// session is named at the end of the line.
	session string
	// joined is the text of a message that came in several chunks.
	joined *string
	// merged is shown for the update of a tool call.
	merged wire.Value
}

func (l *line) String() string { return string(l.b) }

// word appends a word as it is, after a space.
func (l *line) word(s string) {
	if len(l.b) > 0 {
		l.b = append(l.b, ' ')
	}
	l.b = append(l.b, s...)
}

func (l *line) text(s string) { l.word(quote(l.m.text(s))) }

func (l *line) key(key string) {
	l.word(key)
	l.b = append(l.b, '=')
}

// pair appends key=value.
func (l *line) pair(key string, v wire.Value) {
	l.key(key)
	l.b = compact(l.b, l.m, key, v)
}

// object is an object being shown, with what was taken from it.
type object struct {
	v     wire.Value
	taken map[string]bool
}

func open(v wire.Value) object { return object{v, map[string]bool{}} }

// take gives a member once: what was taken is shown already.
func (o object) take(key string) wire.Value {
	if o.taken[key] {
		return wire.Value{}
	}
	o.taken[key] = true
	return o.v.Get(key)
}

// bare shows a string of a fixed vocabulary as a word, without its key.
func (l *line) bare(o object, key string, vocabulary ...string) {
	v := o.take(key)
	for _, w := range vocabulary {
		if v.Is(w) {
			l.word(w)
			return
		}
	}
	l.known(key, v)
}

// known shows a member that has no form of its own, if it is there.
func (l *line) known(key string, v wire.Value) {
	if v.Exists() && !l.m.hides(key) {
		l.pair(key, v)
	}
}

// string shows a string without its key, in the form that form gives.
func (l *line) string(o object, key string, form func(string) string) {
	v := o.take(key)
	if v.Kind() == wire.String {
		l.word(form(v.Str()))
		return
	}
	l.known(key, v)
}

func (l *line) quoted(o object, key string) {
	l.string(o, key, func(s string) string { return quote(l.m.text(s)) })
}

func (l *line) path(o object, key string) {
	l.string(o, key, func(s string) string { return pathText(l.m.text(s)) })
}

func (l *line) id(o object, key string, class idClass) {
	l.string(o, key, func(s string) string { return l.m.id(class, s) })
}

// size shows a string by size and hash only.
func (l *line) size(o object, key string) {
	l.string(o, key, func(s string) string { return digest(l.m.text(s)) })
}

// keys shows the named members in this order, each if it is there.
func (l *line) keys(o object, keys ...string) {
	for _, key := range keys {
		l.known(key, o.take(key))
	}
}

// rest shows what was not taken: unknown members, and all but the last of
// members with the same key.
func (l *line) rest(o object) {
	switch o.v.Kind() {
	case wire.Object:
	case wire.Missing:
		return
	default:
		l.pair("+value", o.v)
		return
	}
	last := map[string]int{}
	members := sortedMembers(o.v)
	for i, m := range members {
		last[m.key] = i
	}
	for i, m := range members {
		if o.taken[m.key] && last[m.key] == i || l.m.hides(m.key) {
			continue
		}
		l.b = append(l.b, " +"...)
		l.b = append(l.b, quoteUnlessWord(m.key)...)
		l.b = append(l.b, '=')
		l.b = compact(l.b, l.m, m.key, m.value)
	}
}

// envelope shows members of the message that JSON-RPC does not have.
func (l *line) envelope(v wire.Value) {
	o := open(v)
	for _, key := range []string{"jsonrpc", "id", "method", "params", "result", "error"} {
		o.taken[key] = true
	}
	l.rest(o)
}

func arrow(s transcript.Source) string {
	if s == transcript.Editor {
		return "-->"
	}
	return "<--"
}

// frame is the text of one frame. shown says that the request a response
// answers is the line above, so that the response need not name it.
func (l *line) frame(e transcript.Entry, shown bool) string {
	l.word(arrow(e.Source))
	v := e.JSON()
	switch e.Kind {
	case transcript.Request, transcript.Notification:
		l.ask(e, v.Get("params"))
	case transcript.Response:
		l.answer(e, v, shown)
	default:
		l.malformed(e)
		return l.String()
	}
	l.envelope(v)
	if l.session != "" {
		l.word("of " + l.m.id(sessionID, l.session))
	}
	return l.String()
}

func (l *line) malformed(e transcript.Entry) {
	l.word("malformed")
	size := ""
	if e.Size > 0 {
		size = " (" + thousands(e.Size) + " bytes on the wire)"
	}
	l.text(string(e.Raw))
	l.b = append(l.b, size...)
	if e.Problem != "" {
		l.b = append(l.b, ": "...)
		l.b = append(l.b, oneLine(l.m.text(e.Problem))...)
	}
}
