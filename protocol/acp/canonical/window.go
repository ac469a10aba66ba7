package canonical

import (
	"iter"

	"github.com/acp-test/acp-test/transcript"
)

// A transcript may have any length, so its text is built from independent parts. A part has settled when no later
// entry can belong to it. This is so at the end of a turn, if no earlier request waits for an answer and no other
// session or process is active. A first pass over the transcript, the survey, collects facts that only later entries
// show.

// survey has the facts that the first pass collects about a transcript.
type survey struct {
	opened   map[int]string   // session that a session/new or session/fork opened, by Seq of the request
	answered map[int]int      // Seq of the last answer that is shown below its request, by Seq of the request
	stray    int              // Seq of the last answer of the editor to no request; its place in the order is not known
	sessions map[string]*span // by session id
	conns    map[int]*span
	messages map[string]bool // version 2: ids of messages that came in chunks; the same message may also come whole
}

// span has the first and the last Seq of a session or connection.
type span struct{ first, last int }

// around reports whether the span begins at or before the entry seq and ends after it.
func (s *span) around(seq int) bool { return s.first <= seq && seq < s.last }

func newSurvey() *survey {
	return &survey{opened: map[int]string{}, answered: map[int]int{}, sessions: map[string]*span{}, conns: map[int]*span{},
		messages: map[string]bool{}}
}

func surveyOf(entries iter.Seq[transcript.Entry], v2 bool) *survey {
	s := newSurvey()
	for e := range entries {
		s.see(e, v2)
	}
	return s
}

// see adds the next entry to the survey.
func (s *survey) see(e transcript.Entry, v2 bool) {
	if !shown(e) {
		return
	}
	from := e.Seq
	if e.Source == transcript.Agent && e.Kind == transcript.Response && e.Session != "" && creates(e.Method) {
		s.opened[e.Ref] = e.Session
		from = e.Ref // the session begins with this request, although the request does not name it
	}
	if e.Kind == transcript.Response && e.Ref > 0 &&
		(e.Source == transcript.Editor || v2 && e.Method == "session/prompt") {
		s.answered[e.Ref] = e.Seq
	}
	if e.Kind == transcript.Response && e.Ref == 0 && e.Source == transcript.Editor {
		s.stray = e.Seq
	}
	if v2 && e.Method == "session/update" {
		if u := e.JSON().Path("params.update"); isChunk(u.Get("sessionUpdate").Str()) {
			s.messages[u.Get("messageId").Str()] = true
		}
	}
	if e.Session != "" {
		extend(s.sessions, e.Session, from, e.Seq)
	}
	extend(s.conns, e.Conn, e.Seq, e.Seq)
}

func extend[K comparable](spans map[K]*span, key K, from, to int) {
	if s := spans[key]; s != nil {
		s.first, s.last = min(s.first, from), to
		return
	}
	spans[key] = &span{from, to}
}

// settled reports whether no later entry can move into the part that ends with entry e.
func (r *reader) settled(e transcript.Entry) bool {
	if r.o.Exact || r.until > e.Seq {
		return r.until <= e.Seq
	}
	last := &r.items[len(r.items)-1]
	if !last.boundary || last.kind == "" && e.Method != "session/prompt" || r.v2 && len(r.begun) > 0 ||
		len(r.o.Unordered) > 0 || r.o.MergeCalls {
		return false
	}
	its := r.survey.sessions[last.entry.Session]
	if its == nil {
		return false // the answer to a prompt that names no session
	}
	for _, s := range r.survey.sessions {
		// The sections of sessions come in the order in which the sessions began.
		if s != its && (s.around(e.Seq) || s.last < e.Seq && s.first > its.first) {
			return false
		}
	}
	for n, s := range r.survey.conns {
		if n != e.Conn && s.around(e.Seq) {
			return false
		}
	}
	return true
}

// forget drops the items that the method part has returned.
func (r *reader) forget() {
	r.items = make([]item, 0, len(r.items))
	r.learned, r.labels = nil, map[int]map[string]string{}
	clear(r.requests)
	for key, c := range r.recent {
		if c.ended { // later effects do not belong to an ended call
			c.raws = nil
			delete(r.recent, key)
		}
	}
}
