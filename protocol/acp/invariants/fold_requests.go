package invariants

import (
	"cmp"

	"github.com/acp-test/acp-test/protocol/acp/schema"
	"github.com/acp-test/acp-test/rules"
	"github.com/acp-test/acp-test/wire"
)

func (w *world) foldEditorRequest(ev *event) {
	c := ev.conn
	r, s := ev.asRequest(rules.OfClient), ev.session
	if s != nil {
		s.addressed = true
	}
	c.disturb(ev)
	switch ev.verb {
	case initialize:
		if n, ok := ev.params.Get("protocolVersion").Int(); ok && n >= 0 && n < 1<<16 {
			r.offered = n
		}
		c.initAsked = cmp.Or(c.initAsked, ev.Seq)
		if c.initDone == 0 {
			c.caps[rules.OfClient] = schema.Advertised(ev.params, w.version.clientCaps)
		}
	case newSession, listSessions:
		r.cwd, r.roots, r.cursor = ev.params.Get("cwd").Str(), readRoots(ev.params), ev.params.Get("cursor").Str()
	case loadSession, resumeSession:
		s.restore(ev, r)
	case prompt:
		if s != nil && !w.version.states {
			s.begin(ev, r)
			w.liken(r.turn)
		}
	case closeSession:
		c.lastAct = ev.act()
		for _, t := range s.turns() {
			t.close = cmp.Or(t.close, c.lastAct)
		}
	case setMode:
		r.mode = ev.params.Get("modeId").Str()
	case setOption:
		r.option, r.value = ev.params.Get("configId").Str(), ev.params.Get("value").Text()
	}
	c.ask(r)
}

// begin starts a turn for the prompt r.
func (s *session) begin(ev *event, r *request) {
	r.turn = &turn{request: r, session: s, started: ev.Seq, concurrent: len(s.open) > 0, text: readPrompt(ev.params),
		heads: heads(ev.params)}
	for _, open := range s.open {
		open.joined = cmp.Or(open.joined, ev.Seq)
	}
	s.open, s.restored = append(s.open, r.turn), nil
}

// restore starts the load or resume that r requests.
func (s *session) restore(ev *event, r *request) {
	if s == nil {
		return
	}
	s.named = cmp.Or(s.named, ev.Seq)
	r.hadCwd, r.hadRoots = s.cwd, s.roots
	s.cwd, s.roots = ev.params.Get("cwd").Str(), readRoots(ev.params)
	s.window, s.restored = r, nil
	if s.resumed = s.resumed || ev.verb == resumeSession; !s.showsHistory(ev) {
		return
	}
	s.setAside()
	for _, c := range ev.conn.sessions {
		if c.child() && c.within(s) {
			c.setAside() // the load may replay the child too
		}
	}
	for _, t := range s.open {
		t.mixed = true
	}
}

// showsHistory reports whether a load or resume asks for the history. A resume does not count while the session works,
// because updates of that work could be mistaken for history.
func (s *session) showsHistory(ev *event) bool {
	return ev.verb == loadSession || ev.params.Get("replayFrom").Kind() == wire.Object && !s.busy()
}

// disturb marks the turns that a request, such as another prompt or a logout, may end without a cancel.
func (c *conn) disturb(ev *event) {
	switch ev.verb {
	case prompt, loadSession, resumeSession, deleteSession, forkSession:
		ev.session.disturb()
	case logout, authenticate:
		for _, other := range c.sessions {
			other.disturb()
		}
	}
}

// asRequest returns the entry as a request by the given side.
func (ev *event) asRequest(by rules.Side) *request {
	return &request{seq: ev.Seq, at: ev.At, by: by, verb: ev.verb, method: ev.Method, id: ev.ID, conn: ev.conn,
		session: ev.session, offered: -1}
}

func (w *world) foldAgentRequest(ev *event) {
	r := ev.asRequest(rules.OfAgent)
	if r.turn = ev.turn; ev.turn != nil {
		ev.turn.acted = true
	}
	switch ev.verb {
	case permission:
		for o := range ev.params.Get("options").Items() {
			r.options = append(r.options, permit{o.Get("optionId").Str(), o.Get("kind").Str()})
		}
		call := ev.params.Path(w.version.call)
		if ev.session == nil || !call.Exists() {
			break
		}
		t := ev.tool
		if t == nil {
			t = &tool{id: call.Get("toolCallId").Str(), by: byPermission, status: pending, turn: ev.turn, first: ev.Seq}
			ev.session.note(t)
		}
		if st := w.version.readStatus(call.Get("status")); st != unsaid && st != unknownStatus {
			t.status = st
		}
		t.seq, t.asked = ev.Seq, r
		r.tool = t
	case createTerminal:
		r.limit = -1
		if n, ok := ev.params.Get("outputByteLimit").Int(); ok {
			r.limit = n
		}
	case terminalOutput, waitForExit, killTerminal, releaseTerminal:
		r.terminal = ev.params.Get("terminalId").Str()
		if t := ev.conn.terminals[r.terminal]; t != nil {
			switch {
			case ev.verb == killTerminal:
				t.killed = true
			case ev.verb == releaseTerminal && t.released == 0:
				t.released = ev.Seq
			}
		}
	case elicit:
		r.mode, r.asks = ev.params.Get("mode").Str(), ev.params.Get("elicitationId").Str()
	}
	ev.conn.ask(r)
}
