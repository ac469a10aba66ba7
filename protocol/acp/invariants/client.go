package invariants

import (
	"fmt"

	"github.com/acp-test/acp-test/rules"
	"github.com/acp-test/acp-test/wire"
)

// clientInitFirst checks that the client sends initialize first, then sets up a session, then sends prompts.
func clientInitFirst(w *watch) {
	v := w.version
	// The connection's first request, if it came before initialize.
	before := map[*conn]int{}
	w.On(func(ev *event) {
		c := ev.conn
		switch {
		case c.initAsked > 0:
			w.judge("initialize", c.initDone == 0, ev, ev.Method, []int{c.initAsked},
				"The client sent %s before initialize was answered.", ev.Method)
		case before[c] == 0:
			before[c] = ev.Seq
			w.judge("initialize", c.started, ev, "", nil, "The client sent %s before it sent initialize.", ev.Method)
		}
	}, span(authenticate, cancelTerminal, asked)...)
	// A recording that lacks the agent's start may begin after initialize. So requests before initialize are reported
	// in two cases only. Either initialize follows, or the agent refuses a session request with one of these codes. In
	// the second case the request must have id 0 or 1, with which editors begin to count.
	w.On(func(ev *event) {
		c := ev.conn
		if seq := before[c]; seq > 0 && c.initAsked == 0 {
			w.find("initialize", ev, "", []int{seq}, "The client sent a request before it sent initialize.")
		}
	}, asked(initialize))
	w.On(func(ev *event) {
		c := ev.conn
		if seq := before[c]; seq > 0 && seq == ev.Ref && c.initAsked == 0 && (ev.ID == "0" || ev.ID == "1") &&
			(ev.code() == -32002 || ev.code() == -32600) {
			w.find("initialize", ev, "", []int{seq},
				"The client sent %s as its first request, not initialize, and the agent refused it.", ev.request.method)
		}
	}, span(newSession, forkSession, answered)...)
	w.inSession(func(ev *event, s *session) {
		if ev.conn.initDone > 0 && !s.child() { // C-SUBAGENT judges prompts to child sessions
			w.judge("session", !s.ready(v), ev, "", []int{s.named},
				"The client prompted session %q, which is not open.", s.id)
		}
	}, asked(prompt))
}

// clientAnswer checks that the client answers the agent's requests.
func clientAnswer(w *watch) {
	w.On(func(*event) { w.Saw("twice", "unknown-id", "unanswered") }, editorAnswers()...)
	// If two requests share an id, it is unclear which of them an answer is for. ONE-RESPONSE reports this.
	shared := map[connID]bool{}
	w.On(func(ev *event) {
		if ev.conn.ids[rules.OfAgent][ev.ID] != nil {
			rules.Remember(shared, rememberedRequests, connID{ev.conn, ev.ID}, true)
		}
	}, agentRequests()...)
	w.On(func(ev *event) {
		w.Saw("twice", "unknown-id")
		switch {
		case shared[connID{ev.conn, ev.ID}]:
		case ev.Ref > 0:
			w.find("twice", ev, string(ev.ID), []int{ev.Ref}, "The client answered the agent's %s twice.", ev.Method)
		case ev.conn.initAsked > 0 && ev.ID != "null":
			w.find("unknown-id", ev, string(ev.ID), nil, "The client answered request %s, which the agent never made.", ev.ID)
		}
	}, editorAnswersNone)
	w.AtEnd(func(end rules.End) {
		w.unanswered(end, rules.OfAgent, func(r *request, a absence) {
			if w.Saw("unanswered"); r.conn.exited == 0 && !shared[connID{r.conn, r.id}] {
				w.Report("unanswered", r.conn.n, r.session.name(), fmt.Sprint(r.seq), []int{r.seq, a.at},
					"The agent's %s was not answered %s.", r.method, a.how)
			}
		})
	})
}

// connID is a request id on one connection.
type connID struct {
	conn *conn
	id   wire.ID
}

// clientIDs checks that a client's request ids are not null and not in use. It also checks that a client uses an
// idempotencyKey for one prompt only.
func clientIDs(w *watch) {
	sent := map[[2]string]string{}
	w.inSession(func(ev *event, s *session) {
		k, text := [2]string{s.id, ev.params.Get("idempotencyKey").Str()}, string(ev.params.Get("prompt").Raw())
		if before, again := sent[k]; again {
			w.judge("key-reused", before != text, ev, k[1], nil,
				"The client used idempotencyKey %q for two different prompts.", k[1])
		} else if k[1] != "" {
			rules.Remember(sent, rememberedSessions, k, text)
		}
	}, asked(prompt))
	w.On(func(ev *event) { w.idInUse(rules.OfClient, "null", "in-use", ev) }, editorRequests()...)
}

// idInUse checks the id of a request: the id must not be null, and no other open request of that side may have it.
func (w *watch) idInUse(by rules.Side, null, twice string, ev *event) {
	w.Saw(null, twice)
	if ev.ID == "null" {
		w.find(null, ev, ev.Method, nil, "The %s's %s has the id null, which JSON-RPC discourages.", by, ev.Method)
	} else if r := ev.conn.ids[by][ev.ID]; r != nil {
		w.find(twice, ev, string(ev.ID), []int{r.seq}, "The %s's %s has the id %s of its %s, which is still open.", by,
			ev.Method, ev.ID, r.method)
	}
}

// clientCwd checks that the directories in a client's requests are absolute.
func clientCwd(w *watch) {
	check := func(ev *event, point string, dir wire.Value, what string) {
		if text := dir.Str(); dir.Kind() == wire.String {
			w.judge(point, !isAbsolute([]byte(text)), ev, text, nil, "The %s of %s is %q, and must be absolute.", what,
				ev.Method,
				text)
		}
	}
	w.On(func(ev *event) {
		check(ev, "cwd", ev.params.Get("cwd"), "cwd")
		for dir := range ev.params.Get("additionalDirectories").Items() {
			check(ev, "directories", dir, "additional directory")
		}
	}, setUps(asked)...)
	w.On(func(ev *event) { check(ev, "filter", ev.params.Get("cwd"), "cwd filter") }, asked(listSessions))
}
