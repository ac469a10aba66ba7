package invariants

import (
	"cmp"
	"slices"
	"strings"

	"github.com/acp-test/acp-test/internal/lists"
	"github.com/acp-test/acp-test/rules"
	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/wire"
)

// work is the state of a version 2 session, as the session reports it. An idle state ends a turn. The agent answers a
// prompt when it adds the prompt to the conversation, not at the end of the turn.
type work struct {
	state     string // "" until the agent reports a state
	stateSeq  int
	active    bool // the session was busy since its last idle state
	cancel    int  // Seq of the first cancel since the last idle state, or 0
	cancelled int  // Seq of the latest idle state with stop reason cancelled
	prompts   []*turn
	over      int                // how many of the oldest prompts have ended or failed
	keys      map[string]*turn   // prompts with an idempotency key, by key
	said      map[string]message // first version of each message, by id
	items     map[itemID]*item
	reported  bool            // the agent has listed background work
	behind    map[itemID]bool // background work in the latest list
	whole     bool            // this connection created the session
	replay    *replay         // the unanswered resume, or nil
}

// message is a message of a session. live says that the agent showed the message outside a replay.
type message struct {
	first      int
	live, user bool // user: a message of the user other than a slash command
}

// itemID identifies a tool call or a terminal of the agent, for use in findings.
type itemID struct{ kind, id string }

func callID(id string) itemID     { return itemID{"tool call", id} }
func terminalID(id string) itemID { return itemID{"terminal", id} }

func (k itemID) String() string { return k.kind + " " + k.id }

// item is a tool call or a terminal of the agent.
type item struct {
	first, ended int
	turn         int  // how many prompts the session had when the agent first showed the item
	announced    bool // an update described the item; false if only pieces of it came
	offered      bool // some update offered to cancel the item
	cancellable  bool // the latest update with capabilities offered to cancel it
}

// replay is a resume that the agent has not answered.
type replay struct {
	seq     int
	history bool
	busy    bool // work ran when the resume came, so updates may be live
	told    bool // a state update came during the replay
	state   int  // Seq of the latest state during the replay that did not end running work
	shown   []string
}

// foldWork updates the work of a session with an entry.
func (w *world) foldWork(s *session, ev *event) {
	if isContent(ev.topic) && ev.topic != userChunk {
		if t := s.working(); t != nil {
			t.spoke = true
		}
	}
	switch {
	case ev.Source == transcript.Editor && ev.Kind == transcript.Request:
		w.foldDemand(s, ev)
	case ev.Source == transcript.Agent && ev.request != nil:
		w.foldResponse(s, ev)
	case ev.topic == cancelTold:
		s.cancelling(ev)
		for _, r := range ev.conn.open {
			r.late = r.late || r.session == s
		}
	case ev.topic == stateUpdate:
		s.enter(ev)
	case ev.topic == replayDone:
		w.marks = true
	case isMessage(ev.topic):
		w.foldMessage(s, ev)
	case ev.topic == toolUpdate, ev.topic == toolPiece:
		status := ev.update.Get("status").Str()
		s.foldItem(callID(ev.update.Get("toolCallId").Str()), ev, ev.topic == toolUpdate,
			status == "completed" || status == "failed" || status == "cancelled")
	case ev.topic == terminalUpdate, ev.topic == terminalPiece:
		s.foldItem(terminalID(ev.update.Get("terminalId").Str()), ev, ev.topic == terminalUpdate,
			ev.update.Get("exitStatus").Kind() == wire.Object)
	}
}

// foldDemand updates the work of a session with a request of the editor.
func (w *world) foldDemand(s *session, ev *event) {
	switch ev.verb {
	case prompt:
		r, key := ev.conn.open[ev.Seq], ev.params.Get("idempotencyKey").Str()
		t := &turn{request: r, session: s, started: ev.Seq, concurrent: s.active || s.busy(), text: readPrompt(ev.params),
			heads: heads(ev.params)}
		s.restored = nil
		if first := s.keys[key]; first != nil && !first.failed {
			if r != nil {
				r.turn, r.first = nil, first
			}
			return
		}
		if key != "" {
			rules.Remember(s.keys, rememberedSessions, key, t)
		}
		w.liken(t)
		s.prompts = append(s.prompts, t)
		if r != nil {
			r.turn = t
		}
	case resumeSession:
		s.closed = 0
		for _, t := range s.unended() {
			t.mixed = true
		}
		w.forgetCut(s)
		s.replay = &replay{seq: ev.Seq, history: ev.params.Get("replayFrom").Kind() == wire.Object, busy: s.busy()}
	case closeSession:
		if !s.child() { // a client cannot close a child
			s.cancelling(ev)
		}
	}
}

// busy reports whether the agent is still working on some prompt of the session.
func (s *session) busy() bool {
	return slices.ContainsFunc(s.prompts, func(t *turn) bool { return t.ended == 0 && !t.failed })
}

// unended returns the turns on which the agent is still working.
func (s *session) unended() []*turn {
	open := func(t *turn) bool { return t.ended == 0 && !t.failed }
	for s.over < len(s.prompts) && !open(s.prompts[s.over]) {
		s.over++
	}
	return lists.Where(s.prompts[s.over:], open)
}

// working returns the only turn that has not ended. It returns nil if there are several or none. It also returns nil
// during a replay, because a replay may show older work.
func (s *session) working() *turn {
	if s == nil || s.replay != nil {
		return nil
	}
	if open := s.unended(); len(open) == 1 {
		return open[0]
	}
	return nil
}

// endOfWork sets ev.stop to the stop reason if the entry ends a turn.
func (ev *event) endOfWork() {
	if s := ev.session; s != nil && s.active && ev.update.Get("state").Is("idle") {
		ev.stop = ev.update.Get("stopReason").Str()
	}
}

// stopped reports whether the editor cancelled the turn: with session/cancel, with $/cancel_request or, in version 2,
// by closing the session.
func (t *turn) stopped() bool {
	return t.cancel != nil || t.session.cancel > 0 || t.request != nil && t.request.back != nil
}

// cancelling handles a cancel or close. It marks the unanswered prompts as cancelled, and stores the cancel if the
// session is working.
func (s *session) cancelling(ev *event) {
	if s.active && s.cancel == 0 {
		s.cancel = ev.Seq
	}
	for _, t := range s.prompts {
		if t.answered == 0 && t.cancel == nil {
			t.cancel, t.crossed = ev.act(), s.cancel > 0 && s.cancel < ev.Seq
		}
	}
}

// forgetCut forgets the messages of a session if an earlier connection ended while the session was working: the last
// messages may not have arrived.
func (w *world) forgetCut(s *session) {
	for _, c := range w.conns {
		if before := c.sessions[s.id]; before != nil && before != s && before.busy() {
			delete(w.shown, s.id)
		}
	}
}

// moved reports whether the session had another folder on an earlier connection.
func (w *world) moved(s *session) bool {
	for _, c := range w.conns {
		if before := c.sessions[s.id]; before != nil && before != s && before.cwd != s.cwd {
			return true
		}
	}
	return false
}

// foldResponse updates the work of a session with a response of the agent.
func (w *world) foldResponse(s *session, ev *event) {
	ok := ev.succeeded()
	switch ev.verb {
	case newSession:
		if ok {
			s.whole = true
			w.shown[s.id] = map[string]message{}
			for id, m := range s.said { // messages that came before the answer
				w.shown[s.id][id] = m
			}
		}
	case resumeSession:
		s.replay = nil
	case closeSession, deleteSession:
		if ok && !s.child() {
			s.closed, s.active = ev.Seq, false
		}
	case prompt:
		if t := ev.turn; t != nil {
			t.answered, t.failed, t.message = ev.Seq, !ok, ev.result.Get("messageId").Str()
		}
	}
}

func (w *world) foldMessage(s *session, ev *event) {
	id := ev.update.Get("messageId").Str()
	if id == "" {
		return
	}
	r := s.replay
	if r != nil && r.history && !slices.Contains(r.shown, id) {
		r.shown = append(r.shown, id)
	}
	m := message{first: ev.Seq, live: r == nil || r.busy,
		user: ev.topic == userChunk && !strings.HasPrefix(ev.text(), "/")}
	if shown, whole := w.shown[s.id]; whole && m.live && !shown[id].live {
		rules.Remember(shown, rememberedSessions, id, m)
	}
	if _, known := s.said[id]; !known {
		rules.Remember(s.said, rememberedSessions, id, m)
	}
}

func (s *session) foldItem(id itemID, ev *event, announces, ends bool) {
	t := s.items[id]
	if t == nil {
		t = &item{first: ev.Seq, turn: len(s.prompts)}
		rules.Remember(s.items, rememberedSessions, id, t)
	}
	t.announced = t.announced || announces
	if can := ev.update.Get("capabilities"); can.Exists() {
		t.cancellable = can.Get("cancel").Kind() == wire.Object
		t.offered = t.offered || t.cancellable
	}
	if ends {
		t.ended = cmp.Or(t.ended, ev.Seq)
	}
}

// enter updates the work of a session with a state update.
func (s *session) enter(ev *event) {
	s.state, s.stateSeq = ev.update.Get("state").Str(), ev.Seq
	idle := s.state == "idle"
	if r := s.replay; r != nil {
		r.told = true
		if !s.active || !idle { // else the state ends the running work
			r.state = ev.Seq
		}
	}
	if list := ev.update.Get("background"); list.Kind() == wire.Array {
		s.reported = true
		clear(s.behind)
		for b := range list.Items() {
			s.behind[workOf(b)] = true
		}
	}
	if !idle {
		s.active = true
		return
	}
	if ev.update.Get("stopReason").Is("cancelled") {
		s.cancelled = ev.Seq
	}
	if s.active {
		s.endTurns(ev.Seq, ev.update.Get("stopReason").Str())
	}
	s.active, s.cancel = false, 0
}

// endTurns ends the turns of all answered prompts. If there are none and exactly one prompt is unanswered, its turn
// ends, because the idle state may come before the answer. Next to an answered prompt, an unanswered one is queued.
func (s *session) endTurns(seq int, stop string) {
	open := s.unended()
	for _, t := range open {
		if t.answered > 0 || len(open) == 1 {
			t.ended, t.stop, t.tools, s.last = seq, stop, nil, t
		}
	}
}

// workOf returns the id of an item in the list of background work. It returns the zero value for an unknown type.
func workOf(b wire.Value) itemID {
	switch b.Get("type").Str() {
	case "terminal":
		return terminalID(b.Get("terminalId").Str())
	case "tool_call":
		return callID(b.Get("toolCallId").Str())
	}
	return itemID{}
}

// ended reports whether an item has ended. It also returns true for an unknown item.
func (s *session) ended(id itemID) bool { t := s.items[id]; return t == nil || t.ended > 0 }
