package invariants

import (
	"cmp"
	"slices"
	"strings"

	"github.com/acp-test/acp-test/rules"
	"github.com/acp-test/acp-test/wire"
)

func (w *world) foldAnswerOfAgent(ev *event) {
	c, r := ev.conn, ev.request
	switch ev.verb {
	case initialize:
		if ev.succeeded() && c.initDone == 0 {
			c.initDone = ev.Seq
			c.agent = readAgentCaps(ev.result.Get("agentCapabilities"))
			c.methods = readAuthMethods(ev.result.Get("authMethods"))
		}
	case authenticate:
		if ev.succeeded() {
			c.authed, c.loggedOut = true, false
		}
	case logout:
		if ev.succeeded() {
			c.authed, c.loggedOut = false, true
		}
	case newSession, forkSession, loadSession, resumeSession, deleteSession, closeSession:
		w.foldSessionAnswer(ev)
	case listSessions:
		for item := range ev.result.Get("sessions").Items() {
			if s := c.session(item.Get("sessionId").Str()); s != nil {
				s.listed = true
			}
		}
	case otherOfEditor:
		// An extension may create sessions, too.
		if id := ev.result.Get("sessionId"); id.Kind() == wire.String {
			if s := c.session(id.Str()); s != nil && !s.known() {
				s.created = ev.Seq
			}
		}
	case prompt:
		w.endTurn(ev)
	case setMode:
		if s := r.session; s != nil && ev.succeeded() && s.modes != nil {
			s.modes.current = r.mode
		}
	case setOption:
		if r.session != nil && ev.hasOptions {
			r.session.options = ev.options
		}
	}
}

// foldSessionAnswer remembers what became of a session.
func (w *world) foldSessionAnswer(ev *event) {
	c, r := ev.conn, ev.request
	switch ev.verb {
	case newSession, forkSession:
		c.demanded = c.demanded || ev.code() == -32000
		if s := ev.session; s != nil && ev.succeeded() {
			s.created = cmp.Or(s.created, ev.Seq)
			s.closed, s.deleted = 0, false
			s.cwd, s.roots = r.cwd, r.roots
			s.setUp(ev)
		}
	case loadSession, resumeSession:
		s := r.session
		if s == nil {
			break
		}
		if s.window == r {
			s.window = nil
			if ev.succeeded() {
				s.forget()
			} else {
				s.recall()
			}
		}
		if ev.succeeded() {
			s.restored, s.restSeq, s.closed, s.deleted = r, ev.Seq, 0, false
			s.setUp(ev)
		}
	case deleteSession:
		if ev.succeeded() {
			delete(w.lives, r.session.name())
			if r.session != nil {
				r.session.deleted = true
			}
		}
	case closeSession:
		if r.session != nil && ev.succeeded() {
			r.session.closed = ev.Seq
		}
	}
}

// disturb notes that the open turns may end without having been cancelled.
func (s *session) disturb() {
	if s != nil {
		for _, t := range s.open {
			t.disturbed = true
		}
	}
}

func (c *conn) takeBack(by rules.Side, ev *event, a *act) {
	if r := c.ids[by][idOf(ev.params.Get("requestId"))]; r != nil && r.back == nil {
		r.back = a
	}
}

func (s *session) setUp(ev *event) {
	if ev.modes != nil {
		s.modes = ev.modes
	}
	if ev.hasOptions {
		s.options = ev.options
	}
}

func (w *world) endTurn(ev *event) {
	t := ev.turn
	if t == nil {
		return
	}
	s := t.session
	for i, open := range s.open {
		if open == t {
			s.open = append(s.open[:i:i], s.open[i+1:]...)
			break
		}
	}
	t.ended, t.stop = ev.Seq, ev.stop
	t.messages = s.messages
	if t.leavesHistory(t.stop) && (len(w.lives) < rememberedSessions || w.lives[s.id].turns > 0) {
		before := w.lives[s.id]
		w.lives[s.id] = life{before.turns + 1}
	}
	t.tools, t.text = nil, "" // only an open turn needs them
	s.last = t
	if s.window == nil {
		s.past = nil
	}
}

// leavesHistory reports whether a replay must show the turn that ended for a reason: not a command,
// nor one that was refused, cancelled or failed, which may all be left out.
func (t *turn) leavesHistory(stop string) bool {
	switch stop {
	case "end_turn", "max_tokens", "max_turn_requests":
		return t.spoke && !strings.HasPrefix(t.text, "/")
	}
	return false
}

func (w *world) foldAnswerOfEditor(ev *event) {
	c, r := ev.conn, ev.request
	c.answeredAt = ev.At
	r.turn.hear(ev)
	switch ev.verb {
	case createTerminal:
		if id := ev.result.Get("terminalId"); id.Kind() == wire.String {
			c.note(&terminal{id: id.Str(), session: r.session, turn: r.turn, created: ev.Seq})
		}
	case waitForExit:
		if t := c.terminals[r.terminal]; t != nil && ev.succeeded() {
			t.exited = true
		}
	case terminalOutput:
		if st := ev.result.Get("exitStatus"); st.Exists() && !st.IsNull() {
			if t := c.terminals[r.terminal]; t != nil {
				t.exited = true
			}
		}
	case permission:
		t := r.tool
		if t == nil {
			break
		}
		if t.asked == r {
			t.asked = nil
		}
		if how := denial(ev); how != "" {
			t.denied, t.denial, t.allowed = ev.Seq, how, 0
		} else {
			t.denied, t.denial, t.allowed = 0, "", ev.Seq
		}
	}
}

// hear notes the answer of the editor to a request that was open when the turn was
// cancelled. An answer to a permission that is not cancelled is a mistake of the editor,
// which proves nothing against the agent.
func (t *turn) hear(ev *event) {
	r := ev.request
	a, _ := t.stopper()
	if a == nil || t.heard != nil || r.seq > a.seq || r.back != nil || !r.awaited(t) ||
		r.verb == permission && !ev.result.Get("outcome").Get("outcome").Is("cancelled") {
		return
	}
	t.heard, t.heardAt = r, ev.Seq
}

// denial says how a permission's answer forbids the tool call, "" if it does
// not.
func denial(ev *event) string {
	if ev.err.Exists() {
		return "an error"
	}
	outcome := ev.result.Get("outcome")
	if outcome.Get("outcome").Is("cancelled") {
		return "cancelled"
	}
	chosen := outcome.Get("optionId").Str()
	for _, o := range ev.request.options {
		if o.id == chosen && (o.kind == "reject_once" || o.kind == "reject_always") {
			return o.kind
		}
	}
	return ""
}

// granted says whether a permission's answer chose an option that was offered
// and is no rejection. What an agent makes of a choice it never offered is its
// own affair, but to go on with the tool call.
func granted(ev *event) bool {
	chosen := ev.result.Path("outcome.optionId").Str()
	return denial(ev) == "" && slices.ContainsFunc(ev.request.options, func(o permit) bool { return o.id == chosen })
}
