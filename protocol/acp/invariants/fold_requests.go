package invariants

import (
	"cmp"

	"github.com/acp-test/acp-test/rules"
)

func (w *world) foldEditorRequest(ev *event) {
	c := ev.conn
	r := &request{
		seq: ev.Seq, at: ev.At, by: rules.OfClient, verb: ev.verb, method: ev.Method, id: ev.ID, conn: c,
		session: ev.session,
	}
	s := ev.session
	if s != nil {
		s.addressed = true
	}
	switch ev.verb {
	case prompt, loadSession, resumeSession, deleteSession, forkSession:
		s.disturb()
	case logout, authenticate:
		for _, other := range c.sessions {
			other.disturb()
		}
	}
	switch ev.verb {
	case initialize:
		if c.initAsked == 0 {
			c.initAsked = ev.Seq
			version, ok := ev.params.Get("protocolVersion").Int()
			c.offered = version
			r.valid = ok && version >= 0 && version <= 1<<16-1
			c.client = readClientCaps(ev.params.Get("clientCapabilities"))
		}
	case newSession, listSessions:
		r.cwd, r.roots, r.cursor = ev.params.Get("cwd").Str(), readRoots(ev.params), ev.params.Get("cursor").Str()
	case loadSession, resumeSession:
		if s == nil {
			break
		}
		s.named = cmp.Or(s.named, ev.Seq)
		s.cwd, s.roots = ev.params.Get("cwd").Str(), readRoots(ev.params)
		s.window, s.restored = r, nil
		if ev.verb == loadSession {
			s.setAside()
			for _, t := range s.open {
				t.mixed = true
			}
		} else {
			s.resumed = true
		}
	case prompt:
		if s == nil {
			break
		}
		t := &turn{request: r, session: s, started: ev.Seq, concurrent: len(s.open) > 0, text: readPrompt(ev.params)}
		r.turn = t
		for _, open := range s.open {
			open.joined = cmp.Or(open.joined, ev.Seq)
		}
		s.open = append(s.open, t)
		s.restored = nil
	case closeSession:
		a := &act{seq: ev.Seq, at: ev.At}
		c.lastAct = a
		if s != nil {
			for _, t := range s.open {
				if t.close == nil {
					t.close = a
				}
			}
		}
	case setMode:
		r.mode = ev.params.Get("modeId").Str()
	case setOption:
		r.option, r.value = ev.params.Get("configId").Str(), ev.params.Get("value").Text()
	}
	c.ask(r)
}

func (w *world) foldAgentRequest(ev *event) {
	r := &request{
		seq: ev.Seq, at: ev.At, by: rules.OfAgent, verb: ev.verb, method: ev.Method, id: ev.ID, conn: ev.conn,
		session: ev.session, turn: ev.turn,
	}
	if ev.turn != nil {
		ev.turn.acted = true
	}
	switch ev.verb {
	case permission:
		for o := range ev.params.Get("options").Items() {
			r.options = append(r.options, permit{o.Get("optionId").Str(), o.Get("kind").Str()})
		}
		if ev.session == nil {
			break
		}
		call := ev.params.Get("toolCall")
		t := ev.tool
		if t == nil {
			t = &tool{id: call.Get("toolCallId").Str(), by: byPermission, status: pending, turn: ev.turn, first: ev.Seq}
			ev.session.note(t)
		}
		if st := readStatus(call.Get("status")); st != unsaid && st != unknownStatus {
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
