package transcript

import "github.com/acp-test/acp-test/wire"

// links remembers requests, so that a response can be matched to its request.
// It keeps answered requests for some time, to match a second response too. A
// request that reuses an id replaces the earlier request.
type links struct {
	requests map[link]asked
	answered []answered // ring buffer of the most recently answered requests
	next     int
	names    map[string]string // raw JSON text of a session id -> session id
}

const (
	remembered = 4096    // maximum number of answered requests that are kept for second responses
	knownNames = 1 << 14 // maximum number of session ids that are kept, in case an agent invents many
	nameLength = 256     // maximum size of a kept session id in bytes
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

// fill sets the fields that come from a frame or from the request that it
// answers: ID, Method, Session and Ref.
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

// note remembers a request with its Seq. If e is a response, note marks its
// request as answered.
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
	if l.requests[old.link].seq == old.seq { // otherwise a later request reuses the id
		delete(l.requests, old.link)
	}
	l.answered[l.next] = a
	l.next = (l.next + 1) % remembered
}

// name decodes a JSON string. It decodes equal texts only once.
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
