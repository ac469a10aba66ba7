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

// work is the state that a version 2 session reports. An idle state ends a turn. The agent answers a prompt when the
// prompt becomes part of the conversation.
type work struct {
	state     string // "": not told yet
	stateSeq  int
	active    bool // it was busy since the last idle state
	cancel    int  // Seq of the cancel that is not settled
	cancelled int  // Seq of the latest idle state with cancelled
	prompts   []*turn
	over      int                // so many of those, the oldest, are over
	keys      map[string]*turn   // those with an idempotency key
	said      map[string]message // the first that was seen of each message, by id
	items     map[itemID]*item
	reported  bool            // background work was reported
	behind    map[itemID]bool // background work
	whole     bool            // this connection has it from its beginning
	replay    *replay         // the resume that is not answered
}

// message is a message of a session. live says that it was shown outside a replay.
type message struct {
	first      int
	live, user bool // user: of the user, and no command, which is no part of the conversation
}

// itemID names a tool call or a terminal of the agent in messages of findings.
type itemID struct{ kind, id string }

func callID(id string) itemID     { return itemID{"tool call", id} }
func terminalID(id string) itemID { return itemID{"terminal", id} }

func (k itemID) String() string { return k.kind + " " + k.id }

// item is a tool call or a terminal of the agent.
type item struct {
	first, ended int
	turn         int  // how many prompts the session had
	announced    bool // it is known by more than its id
	offered      bool // an update said that it can be cancelled
	cancellable  bool // the latest that said anything of it did
}

// replay is a resume without an answer.
type replay struct {
	seq     int
	history bool
	busy    bool // work ran in it: what it shows may be live
	told    bool // a state came in it
	state   int  // Seq of the latest one that did not end the work that ran
	shown   []string
}

// foldWork changes the work of a session by an entry.
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

// foldDemand changes the work of a session by a request of the editor.
func (w *world) foldDemand(s *session, ev *event) {
	switch ev.verb {
	case prompt:
		r, key := ev.conn.open[ev.Seq], ev.params.Get("idempotencyKey").Str()
		t := &turn{request: r, session: s, started: ev.Seq, concurrent: s.active || s.busy(), text: readPrompt(ev.params)}
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
		if !s.child() { // which a client cannot close
			s.cancelling(ev)
		}
	}
}

// busy reports whether the session has a prompt whose work is not over.
func (s *session) busy() bool {
	return slices.ContainsFunc(s.prompts, func(t *turn) bool { return t.ended == 0 && !t.failed })
}

// unended returns the turns whose work is not over.
func (s *session) unended() []*turn {
	open := func(t *turn) bool { return t.ended == 0 && !t.failed }
	for s.over < len(s.prompts) && !open(s.prompts[s.over]) {
		s.over++
	}
	return lists.Where(s.prompts[s.over:], open)
}

// working returns the only turn whose work is not over. It returns nil if there are several, or if a replay shows
// older work.
func (s *session) working() *turn {
	if s == nil || s.replay != nil {
		return nil
	}
	if open := s.unended(); len(open) == 1 {
		return open[0]
	}
	return nil
}

// endOfWork sets the stop reason of an entry that ends a turn.
func (ev *event) endOfWork() {
	if s := ev.session; s != nil && s.active && ev.update.Get("state").Is("idle") {
		ev.stop = ev.update.Get("stopReason").Str()
	}
}

// stopped reports whether a turn was cancelled.
func (t *turn) stopped() bool { return t.cancel != nil || t.session.cancel > 0 }

// cancelling marks the open prompts as cancelled.
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

// forgetCut forgets the messages of a session whose earlier connection ended during its work: the last of them may
// not have arrived.
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

// foldResponse changes the work of a session by an answer of the agent.
func (w *world) foldResponse(s *session, ev *event) {
	ok := ev.succeeded()
	switch ev.verb {
	case newSession:
		if ok {
			s.whole = true
			w.shown[s.id] = map[string]message{}
			for id, m := range s.said { // what came before the answer
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

// enter changes the work of a session by a state update.
func (s *session) enter(ev *event) {
	s.state, s.stateSeq = ev.update.Get("state").Str(), ev.Seq
	idle := s.state == "idle"
	if r := s.replay; r != nil {
		r.told = true
		if !s.active || !idle { // else it ends the work that ran
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

// endTurns ends the turns of all answered prompts. It also ends the turn of a single unanswered prompt, because the
// idle state may come before the answer.
func (s *session) endTurns(seq int, stop string) {
	waiting := lists.Count(s.prompts, func(t *turn) bool { return t.answered == 0 })
	for _, t := range s.prompts {
		if t.ended == 0 && (t.answered > 0 || waiting == 1) {
			t.ended, t.stop, t.tools, s.last = seq, stop, nil, t
		}
	}
}

// workOf returns the id of an item of background work, the zero value for an unknown type.
func workOf(b wire.Value) itemID {
	switch b.Get("type").Str() {
	case "terminal":
		return terminalID(b.Get("terminalId").Str())
	case "tool_call":
		return callID(b.Get("toolCallId").Str())
	}
	return itemID{}
}

// ended reports whether an item is unknown or has ended.
func (s *session) ended(id itemID) bool { t := s.items[id]; return t == nil || t.ended > 0 }
