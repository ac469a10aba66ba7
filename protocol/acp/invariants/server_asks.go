package invariants

import (
	"strings"

	"github.com/acp-test/acp-test/rules"
)

// judgeAsked reports a call that reached a server before the answer to its permission request, or after the user had
// rejected it. An entry of a server may come late, but never early.
func (w *serverWatch) judgeAsked(ev *event, s *serverCall, text string) {
	w.judge("early", s.asked == 1 && s.question > 0 && !w.strict[s.of.session.id], ev, text, []int{s.question},
		"The MCP server got the call with %q, but the permission request about it was not answered.", clip(text))
	w.judge("rejected", s.asked == 1 && s.denied > 0, ev, text, []int{s.denied},
		"The MCP server got the call with %q, but the user had rejected it.", clip(text))
}

// asksUser stores the server's call that a permission request is about.
func (w *serverWatch) asksUser(ev *event) {
	if s := w.calls[w.subject(ev)]; s != nil && s.of == ev.turn {
		s.question = ev.Seq
		rules.Remember(w.questions, rememberedRequests, ev.Seq, s)
	}
}

// hearsUser stores the user's answer to such a request. A later answer about the same call counts.
func (w *serverWatch) hearsUser(ev *event) {
	s := w.questions[ev.Ref]
	delete(w.questions, ev.Ref)
	if s == nil {
		return
	}
	if o, _ := ev.chosen(); o.kind == "allow_always" { // it may answer the other questions of the turn too
		for at, other := range w.questions {
			if other.of == s.of {
				other.question = 0
				delete(w.questions, at)
			}
		}
	}
	how := denial(ev)
	s.question, s.denied = 0, pick(how == rejectedOnce || how == rejectedAlways, ev.Seq, 0)
}

// dropsQuestion forgets a permission request that the agent takes back: it may have its answer from elsewhere.
func (w *serverWatch) dropsQuestion(ev *event) {
	if r := ev.conn.ids[rules.OfAgent][idOf(ev.params.Get("requestId"))]; r != nil && w.questions[r.seq] != nil {
		w.questions[r.seq].question = 0
		delete(w.questions, r.seq)
	}
}

// subject returns the text of the call that a permission request is about: the only call of the model's latest reply,
// or the one whose text the request has. It returns "" if it is not sure.
func (w *serverWatch) subject(ev *event) (of string) {
	const least = 6 // bytes
	if of = w.only[ev.turn]; of != "" || ev.turn == nil {
		return of
	}
	raw := string(ev.Raw)
	for text, s := range w.calls {
		if s.of != ev.turn {
			continue
		}
		head, _, _ := strings.Cut(strings.Map(func(r rune) rune { return pick(r > '~', '\n', r) }, text), "\n")
		if len(head) < least || !strings.Contains(raw, beginning(head)) {
			continue
		}
		if of != "" {
			return ""
		}
		of = text
	}
	return of
}
