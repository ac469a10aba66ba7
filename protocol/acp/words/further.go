package words

import (
	"github.com/acp-test/acp-test/fakellm"
	"github.com/acp-test/acp-test/scenarios"
	"github.com/acp-test/acp-test/transcript"
)

// traced is a trace context. Editors put one into the _meta of a prompt, and agents ignore it.
const traced = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

// further sends one more prompt in the session that idle returns, and returns the request. ok is false if there is no
// such session.
func further(b *scenarios.Branch, p fakellm.Prompt) (transcript.Entry, bool) {
	id := idle(b.Transcript())
	editor, err := live(b, scenarios.Implied("a plain turn after the last line"))
	if id == "" || err != nil {
		return transcript.Entry{}, false
	}
	p.Session = id
	b.Model().Begin(p)
	call := editor.Call("session/prompt", map[string]any{"sessionId": id,
		"prompt": []any{map[string]any{"type": "text", "text": p.Text}},
		"_meta":  map[string]any{"traceparent": traced}})
	return call.Entry, call.Entry.Seq > 0
}

// openings has what idle knows about the sessions of one connection.
type openings struct {
	order []string // sessions in the order of opening and prompting, the latest last
	open  map[string]bool
	asked map[int]string // session of each unanswered request, by Seq
	out   bool           // a logout was sent
}

// idle returns the id of a session in which no request is open. It looks only at the last connection, and there at the
// session that was opened or prompted last. The result is "" if that session is closed, if any request of the
// connection has no answer yet, or after a logout.
func idle(t *transcript.Transcript) string {
	conn, s := -1, openings{}
	for e := range t.All() {
		if e.Source != transcript.Editor && e.Source != transcript.Agent {
			continue
		}
		if e.Conn != conn {
			conn, s = e.Conn, openings{open: map[string]bool{}, asked: map[int]string{}}
		}
		switch {
		case e.Source == transcript.Editor && e.Kind == transcript.Request:
			s.request(e)
		case e.Source == transcript.Agent && e.Kind == transcript.Notification && e.Ref > 0:
			delete(s.asked, e.Ref) // the work of a version 2 prompt has ended
		case e.Source == transcript.Agent && e.Kind == transcript.Response:
			s.answer(e)
		}
	}
	if s.out || len(s.asked) > 0 || len(s.order) == 0 {
		return ""
	}
	if id := s.order[len(s.order)-1]; s.open[id] {
		return id
	}
	return ""
}

func (s *openings) request(e transcript.Entry) {
	id := e.JSON().Path("params.sessionId").Str()
	s.asked[e.Seq] = id
	switch e.Method {
	case "session/prompt":
		s.order = append(s.order, id)
	case "session/close", "session/delete":
		delete(s.open, id)
	case "logout", "auth/logout":
		s.out = true
	}
}

func (s *openings) answer(e transcript.Entry) {
	id := s.asked[e.Ref]
	if e.Method == "session/prompt" && e.JSON().Path("result.messageId").Exists() {
		return // version 2: the work of the prompt goes on
	}
	delete(s.asked, e.Ref)
	if !e.JSON().Get("result").Exists() {
		return
	}
	switch e.Method {
	case "session/new":
		id = e.JSON().Path("result.sessionId").Str()
	case "session/load", "session/resume":
	default:
		return
	}
	s.order = append(s.order, id)
	s.open[id] = true
}
