package transcript

import "github.com/acp-test/acp-test/wire"

// links remembers requests, so that a response can be matched with its request.
// It keeps answered requests for a while, to match a second answer too. A request
// that reuses an id replaces the earlier one.
type links struct {
	requests map[link]asked
	answered []answered // ring of the last answered ones
	next     int
	names    map[string]string // session ids, by their raw JSON text
}

const (
	remembered = 4096    // answered requests kept for late second answers
	knownNames = 1 << 14 // session ids kept, so that an agent that invents them cannot fill our memory
	nameLength = 256     // bytes of the longest name kept
)

type link struct {
	conn int
	from Source
	id   wire.ID
}

type asked struct {
	seq     int
	method  string
	session string
}

type answered struct {
	link
	seq int
}

// fill sets the fields that come from a frame and from the request it answers:
// ID, Method, Session and Ref.
func (l *links) fill(e *Entry, f wire.Frame, c Classifier) {
	e.ID = f.ID
	switch e.Kind {
	case Request, Notification:
		e.Method = f.Method
	case Response:
		q, ok := l.requests[answers(*e)]
		if !ok {
			return
		}
		e.Method, e.Session, e.Ref = q.method, q.session, q.seq
	default:
		return
	}
	if s := c.Session(e.Method, f); s.Kind() == wire.String {
		e.Session = l.name(s)
	}
}

// answers returns the key of the request that this response answers.
func answers(e Entry) link {
	asker := Editor
	if e.Source == Editor {
		asker = Agent
	}
	return link{e.Conn, asker, e.ID}
}

// note remembers a request with its Seq. For a response, it marks the request
// as answered.
func (l *links) note(e Entry) {
	switch {
	case !e.Frame():
	case e.Kind == Request:
		if l.requests == nil {
			l.requests = map[link]asked{}
		}
		l.requests[link{e.Conn, e.Source, e.ID}] = asked{e.Seq, e.Method, e.Session}
	case e.Kind == Response && e.Ref > 0:
		l.retire(answered{answers(e), e.Ref})
	}
}

func (l *links) retire(a answered) {
	if len(l.answered) < remembered {
		l.answered = append(l.answered, a)
		return
	}
	old := l.answered[l.next]
	if l.requests[old.link].seq == old.seq { // else the id is in use again
		delete(l.requests, old.link)
	}
	l.answered[l.next] = a
	l.next = (l.next + 1) % remembered
}

// name decodes a JSON string, once for each distinct text.
func (l *links) name(v wire.Value) string {
	raw := v.Raw()
	if s, ok := l.names[string(raw)]; ok {
		return s
	}
	s := v.Str()
	if len(l.names) < knownNames && len(raw) <= nameLength {
		if l.names == nil {
			l.names = map[string]string{}
		}
		l.names[string(raw)] = s
	}
	return s
}
