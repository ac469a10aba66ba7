package invariants

import (
	"cmp"
	"slices"

	"github.com/acp-test/acp-test/protocol/acp/schema"
	"github.com/acp-test/acp-test/rules"
	"github.com/acp-test/acp-test/wire"
)

func (w *world) foldAnswerOfAgent(ev *event) {
	c, r := ev.conn, ev.request
	switch ev.verb {
	case initialize:
		w.foldGreeting(ev)
	case authenticate, logout:
		if ev.succeeded() {
			c.authed, c.loggedOut = ev.verb == authenticate, 0
			if ev.verb == logout {
				c.loggedOut = ev.Seq
			}
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
		// An extension of the protocol may also create sessions.
		if s := c.session(ev.result.Get("sessionId").Str()); s != nil && !s.known() {
			s.created = ev.Seq
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

// foldGreeting stores what the first successful answer to initialize says: capabilities and login methods.
func (w *world) foldGreeting(ev *event) {
	if c := ev.conn; ev.succeeded() && c.initDone == 0 {
		c.initDone = ev.Seq
		c.caps[rules.OfAgent] = schema.Advertised(ev.result, w.version.agentCaps)
		c.methods = readAuthMethods(ev.result.Get("authMethods"), w.version.loginID)
	}
}

// foldSessionAnswer updates a session with the answer to a request about it.
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
				s.cwd, s.roots = r.hadCwd, r.hadRoots
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
		if r.session != nil && !r.session.child() && ev.succeeded() {
			r.session.closed = ev.Seq
		}
	}
}

// disturb marks the open turns of a session: they may end without a cancel.
func (s *session) disturb() {
	if s == nil {
		return
	}
	for _, t := range slices.Concat(s.open, s.unended()) {
		t.disturbed = true
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
	if t == nil || w.version.states {
		return
	}
	s := t.session
	s.open = slices.DeleteFunc(slices.Clone(s.open), func(open *turn) bool { return open == t })
	t.ended, t.stop = ev.Seq, ev.stop
	t.messages = s.messages
	if t.leavesHistory(t.stop) {
		rules.Remember(w.lives, rememberedSessions, s.id, w.lives[s.id]+1)
	}
	t.tools, t.text, t.heads = nil, "", nil // only an open turn needs them
	s.last = t
	if s.window == nil {
		s.past = nil
	}
}

// leavesHistory reports whether a replay must show a turn that ended with a stop reason. A replay may omit commands,
// and turns that were refused, cancelled or failed.
func (t *turn) leavesHistory(stop string) bool {
	switch stop {
	case "end_turn", "max_tokens", "max_turn_requests":
		return t.spoke && !t.command()
	}
	return false
}

func (w *world) foldAnswerOfEditor(ev *event) {
	c, r := ev.conn, ev.request
	c.answeredAt, c.heard = ev.At, max(c.heard, ev.Ref)
	r.turn.hear(ev)
	switch ev.verb {
	case createTerminal:
		if id := ev.result.Get("terminalId"); id.Kind() == wire.String {
			c.note(&terminal{id: id.Str(), session: r.session, turn: r.turn, created: ev.Seq})
		}
	case waitForExit:
		c.exitOf(r.terminal, ev.succeeded())
	case terminalOutput:
		c.exitOf(r.terminal, isSet(ev.result.Get("exitStatus")))
	case permission:
		t := r.tool
		if t == nil {
			break
		}
		if t.asked == r {
			t.asked = nil
		}
		if t.denial = denial(ev); t.denial != granted {
			t.denied, t.allowed = ev.Seq, 0
		} else {
			t.denied, t.allowed = 0, ev.Seq
		}
	}
}

// exitOf marks the terminal with the given id as exited if ended is true; otherwise it does nothing.
func (c *conn) exitOf(id string, ended bool) {
	if t := c.terminals[id]; t != nil && ended {
		t.exited = true
	}
}

// hear stores the first answer of the editor to a request that was open when the turn was cancelled. For a permission
// request, only the answer cancelled counts. Any other answer is the editor's mistake and proves nothing against the
// agent.
func (t *turn) hear(ev *event) {
	r := ev.request
	a, _ := t.stopper()
	if a == nil || t.heard != nil || r.seq > a.seq || r.back != nil || !r.awaited(t) ||
		r.verb == permission && !ev.outcome("cancelled") {
		return
	}
	t.heard, t.heardAt = r, ev.Seq
}

// answer is the editor's answer to a permission request: granted, or the way in which it forbids the tool call.
type answer uint8

const (
	granted answer = iota
	rejectedOnce
	rejectedAlways
	dismissed // cancelled
	failedAnswer
)

func (a answer) String() string {
	return [...]string{"granted", "reject_once", "reject_always", "cancelled", "an error"}[a]
}

// denial returns how the answer to a permission request forbids the tool call. It returns granted if the call may run.
func denial(ev *event) answer {
	if ev.err.Exists() {
		return failedAnswer
	}
	if ev.outcome("cancelled") {
		return dismissed
	}
	o, _ := ev.chosen()
	switch o.kind {
	case "reject_once":
		return rejectedOnce
	case "reject_always":
		return rejectedAlways
	}
	return granted
}

// outcome reports whether the answer to a permission request has the given outcome, such as "cancelled".
func (ev *event) outcome(is string) bool { return ev.result.Path("outcome.outcome").Is(is) }

// chosen returns the offered option that the answer to a permission request selects. ok is false if it selects none.
func (ev *event) chosen() (permit, bool) {
	id := ev.result.Path("outcome.optionId").Str()
	i := slices.IndexFunc(ev.request.options, func(o permit) bool { return o.id == id })
	if i < 0 {
		return permit{}, false
	}
	return ev.request.options[i], true
}

// allows reports whether the answer to a permission request selects an offered option other than a rejection. An
// answer with an option that was never offered allows nothing, so the agent must not go on with the tool call.
func allows(ev *event) bool {
	_, offered := ev.chosen()
	return offered && denial(ev) == granted
}
