package second

import (
	"slices"
	"strings"

	"github.com/acp-test/acp-test/protocol/acp/acpframe"
	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/wire"
)

// conn returns a connection, a new one where there is none.
func (w *world) conn(e transcript.Entry) *conn {
	c := w.conns[e.Conn]
	if c == nil {
		c = &conn{n: e.Conn, open: map[int]*request{}, ids: map[wire.ID]int{}, shared: map[wire.ID]bool{},
			sessions: map[string]*session{}}
		w.conns[e.Conn] = c
	}
	return c
}

// ended folds the end of the agent, or of its input.
func (w *world) ended(e transcript.Entry) {
	if c := w.conn(e); c.gone == 0 {
		c.gone = e.Seq
	}
}

func (w *world) read(e transcript.Entry) *event {
	c := w.conn(e)
	ev := &event{Entry: e, v: e.JSON(), conn: c}
	ev.params, ev.result, ev.err = ev.v.Get("params"), ev.v.Get("result"), ev.v.Get("error")
	if ev.kind = acpframe.Update(e); ev.kind != "" {
		ev.u = ev.params.Get("update")
	}
	if e.Kind == transcript.Response {
		ev.asked = c.open[e.Ref]
	}
	if e.Session != "" {
		ev.session = c.sessions[e.Session]
		if ev.session == nil && len(c.sessions) < most {
			ev.session = &session{id: e.Session, conn: e.Conn, first: e.Seq, messages: map[string]*message{},
				tools: map[string]*item{}, terminals: map[string]*item{}, listed: map[string]bool{}, lived: w.lived}
			c.sessions[e.Session] = ev.session
			w.order = append(w.order, ev.session)
		}
	}
	return ev
}

func (w *world) fold(ev *event) {
	switch {
	case ev.Kind == transcript.Request:
		w.request(ev)
	case ev.Kind == transcript.Response && ev.asked != nil:
		delete(ev.conn.open, ev.Ref)
		if ev.editor() {
			delete(ev.conn.ids, ev.ID)
			ev.conn.heard = max(ev.conn.heard, ev.Ref)
			return
		}
		w.answer(ev)
	case ev.editor() && ev.Method == "session/cancel" && ev.session != nil:
		ev.session.cancelling(ev.Seq)
		for _, r := range ev.conn.open {
			r.late = r.late || r.session == ev.session
		}
	case ev.agent() && ev.Method == "$/cancel_request":
		for _, r := range ev.conn.unanswered() {
			if string(r.id) == string(ev.params.Get("requestId").Raw()) {
				r.back = ev.Seq
			}
		}
	case ev.kind != "" && ev.session != nil:
		w.update(ev.session, ev)
	}
}

func (s *session) cancelling(seq int) {
	if s.active && s.cancel == 0 {
		s.cancel = seq
	}
	for _, p := range s.prompts {
		if p.answered == 0 && p.cancelled == 0 {
			p.cancelled, p.crossed = seq, s.cancel > 0 && s.cancel < seq
		}
	}
}

func (w *world) request(ev *event) {
	r := &request{seq: ev.Seq, at: ev.At, id: ev.ID, ofClient: ev.editor(), method: ev.Method, session: ev.session,
		version: -1, terminal: ev.params.Path("capabilities.auth.terminal").Kind() == wire.Object,
		elicits: ev.params.Path("capabilities.elicitation").Kind() == wire.Object}
	if n, ok := ev.params.Get("protocolVersion").Int(); ok && n >= 0 && n < 1<<16 {
		r.version = n
	}
	if len(ev.conn.open) < most {
		ev.conn.open[ev.Seq] = r
	}
	s := ev.session
	switch {
	case ev.agent() || ev.conn.asked > 0:
	case ev.Method == "initialize":
		ev.conn.asked = ev.Seq
	case ev.conn.early == 0:
		ev.conn.early = ev.Seq
	}
	if ev.agent() {
		ev.conn.shared[ev.ID] = ev.conn.shared[ev.ID] || ev.conn.ids[ev.ID] > 0
		ev.conn.ids[ev.ID] = ev.Seq
		for o := range ev.params.Get("options").Items() {
			r.options = append(r.options, o.Get("optionId").Str())
		}
		return
	}
	if s == nil {
		return
	}
	s.asked = true
	switch ev.Method {
	case "session/prompt":
		r.prompt = &prompt{seq: ev.Seq, beside: s.active || slices.ContainsFunc(s.prompts,
			func(p *prompt) bool { return !p.ended && !p.failed })}
		s.prompts = append(s.prompts, r.prompt)
	case "session/resume":
		s.opened, s.closed = ev.Seq, 0
		w.forgetCut(s)
		s.resume = &replay{seq: ev.Seq, history: ev.params.Get("replayFrom").Kind() == wire.Object,
			busy: slices.ContainsFunc(s.prompts, func(p *prompt) bool { return !p.ended && !p.failed })}
	case "session/close":
		s.cancelling(ev.Seq)
	}
}

// forgetCut forgets what a session showed on an earlier connection that ended in the middle
// of its work: the last of what it did may not have come through.
func (w *world) forgetCut(s *session) {
	for n, c := range w.conns {
		before := c.sessions[s.id]
		if n == s.conn || before == nil {
			continue
		}
		if slices.ContainsFunc(before.prompts, func(p *prompt) bool { return !p.ended && !p.failed }) {
			delete(w.lived, s.id)
		}
	}
}

func (w *world) answer(ev *event) {
	c, s, r := ev.conn, ev.session, ev.asked
	ok := ev.result.Exists()
	switch r.method {
	case "initialize":
		if chosen, whole := ev.result.Get("protocolVersion").Int(); whole {
			c.version = chosen
		}
		c.elicits = r.elicits
		c.offers = map[string]bool{}
		for _, path := range optional {
			c.offers[path] = ev.result.Path("capabilities.session."+path).Kind() == wire.Object
		}
		c.methods = map[string]string{}
		for m := range ev.result.Get("authMethods").Items() {
			c.methods[m.Get("methodId").Str()] = m.Get("type").Str()
		}
	case "session/fork": // its history was shown in another one
		if ok && s != nil {
			s.opened, s.closed = ev.Seq, 0
		}
	case "session/new":
		if ok && s != nil {
			s.opened, s.closed, s.whole = ev.Seq, 0, true
			w.lived[s.id] = map[string]message{}
			for id, m := range s.messages { // what came before the answer
				w.lived[s.id][id] = *m
			}
		}
	case "session/resume":
		if s != nil {
			s.resume = nil
		}
	case "session/close", "session/delete":
		if ok && s != nil {
			s.closed, s.active = ev.Seq, false
		}
	case "session/prompt":
		if r.prompt != nil {
			r.prompt.answered, r.prompt.failed, r.prompt.id = ev.Seq, !ok, ev.result.Get("messageId").Str()
		}
	}
}

// update folds a session/update.
func (w *world) update(s *session, ev *event) {
	switch ev.kind {
	case "state_update":
		s.enter(ev)
		return
	case "user_message", "user_message_chunk", "agent_message", "agent_message_chunk", "agent_thought",
		"agent_thought_chunk":
		w.message(s, ev)
	case "tool_call_update", "tool_call_content_chunk":
		id := ev.u.Get("toolCallId").Str()
		t := s.item(s.tools, id, ev.Seq)
		t.announced = t.announced || ev.kind == "tool_call_update"
		t.offer(ev.u)
		if status := ev.u.Get("status"); final(status.Str()) && t.ended == 0 {
			t.ended = ev.Seq
		}
	case "terminal_update", "terminal_output_chunk":
		t := s.item(s.terminals, ev.u.Get("terminalId").Str(), ev.Seq)
		t.announced = t.announced || ev.kind == "terminal_update"
		t.offer(ev.u)
		if ev.u.Get("exitStatus").Kind() == wire.Object {
			t.ended = ev.Seq
		}
	}
}

// offer folds what an update says of cancelling the item.
func (t *item) offer(u wire.Value) {
	if can := u.Get("capabilities"); can.Exists() {
		t.cancellable = can.Get("cancel").Kind() == wire.Object
		t.offered = t.offered || t.cancellable
	}
}

func final(status string) bool {
	return status == "completed" || status == "failed" || status == "cancelled"
}

func (s *session) item(all map[string]*item, id string, seq int) *item {
	t := all[id]
	if t == nil {
		t = &item{first: seq, turn: len(s.prompts)}
		if len(all) < most {
			all[id] = t
		}
	}
	return t
}

func (w *world) message(s *session, ev *event) {
	id := ev.u.Get("messageId").Str()
	if id == "" {
		return
	}
	if s.resume != nil {
		if s.resume.history && !slices.Contains(s.resume.messages, id) {
			s.resume.messages = append(s.resume.messages, id)
		}
	}
	m := message{first: ev.Seq, live: s.resume == nil || s.resume.busy, user: strings.HasPrefix(ev.kind, "user_")}
	if shown, whole := w.lived[s.id]; whole && m.live && !shown[id].live && len(shown) < most {
		shown[id] = m
	}
	if s.messages[id] == nil && len(s.messages) < most {
		s.messages[id] = &m
	}
}

// enter folds a state.
func (s *session) enter(ev *event) {
	s.state, s.stateSeq = ev.u.Get("state").Str(), ev.Seq
	if s.resume != nil {
		s.resume.told = true
		if !s.active || s.state != "idle" { // else it ends the work that ran
			s.resume.state = ev.Seq
		}
	}
	if list := ev.u.Get("background"); list.Kind() == wire.Array {
		s.reported = true
		clear(s.listed)
		for b := range list.Items() {
			s.listed[key(b)] = true
		}
	}
	if s.state != "idle" {
		s.active = true
		return
	}
	if ev.u.Get("stopReason").Is("cancelled") {
		s.cancelled = ev.Seq
	}
	if s.active {
		for _, p := range s.prompts {
			p.ended = p.ended || p.answered > 0 || s.oneOpen()
		}
	}
	s.active, s.cancel = false, 0
}

// oneOpen reports whether there is one prompt without an answer: its work may be faster.
func (s *session) oneOpen() bool {
	n := 0
	for _, p := range s.prompts {
		if p.answered == 0 {
			n++
		}
	}
	return n == 1
}

// key names an item of background work.
func key(b wire.Value) string {
	switch b.Get("type").Str() {
	case "terminal":
		return "terminal " + b.Get("terminalId").Str()
	case "tool_call":
		return "tool call " + b.Get("toolCallId").Str()
	}
	return ""
}
