package invariants

import (
	"fmt"

	"github.com/acp-test/acp-test/rules"
	"github.com/acp-test/acp-test/wire"
)

// clientInitFirst judges the order of initialize, set-up and prompts.
func clientInitFirst(v *version) *rule {
	r := v.ofClient("C-INIT-FIRST", "initialize comes first, and a session is set up before it is prompted.", 1, 2)
	first := r.Fail("initialize", "a request came before initialize was answered", "INIT-001", "SESSION-001")
	setup := r.Fail("session", "a prompt names a session that is not set up", "PROMPT-001")
	return r.Watching(func(w *watch) {
		// A recording may begin after initialize: what comes before it
		// counts only once it is seen.
		before := map[*conn]int{}
		w.On(func(ev *event) {
			c := ev.conn
			if seq := before[c]; seq > 0 && c.initAsked == 0 {
				w.find(first, ev, "", []int{seq}, "The client sent a request before it sent initialize.")
			}
		}, asked(initialize))
		w.On(func(ev *event) {
			c := ev.conn
			w.judge(first, c.initAsked > 0 && c.initDone == 0, ev, ev.Method, []int{c.initAsked},
				"The client sent %s before initialize was answered.", ev.Method)
			if c.initAsked == 0 && before[c] == 0 {
				before[c] = ev.Seq
			}
		}, span(authenticate, cancelTerminal, asked)...)
		// Editors number their requests from 0 or 1. With these codes an agent refuses a session
		// that comes before initialize.
		w.On(func(ev *event) {
			c := ev.conn
			if seq := before[c]; seq > 0 && seq == ev.Ref && c.initAsked == 0 && (ev.ID == "0" || ev.ID == "1") &&
				(ev.code() == -32002 || ev.code() == -32600) {
				w.find(first, ev, "", []int{seq},
					"The client sent %s as its first request, and the agent refused it: initialize never came.", ev.request.method)
			}
		}, span(newSession, forkSession, answered)...)
		w.inSession(func(ev *event, s *session) {
			if ev.conn.initDone > 0 && !s.child() { // C-SUBAGENT
				w.judge(setup, !s.ready(v), ev, "", []int{s.named}, "The client prompted session %q, which was not set up.", s.id)
			}
		}, asked(prompt))
	})
}

// clientAnswer judges that the client answers what the agent asks.
func clientAnswer(v *version) *rule {
	r := v.ofClient("C-ANSWER", "Each request of the agent is answered once, while the agent lives.", 1, 2)
	duties := pick(v.number == 1, []string{"PERM-015", "TERM-017"}, []string{"RPC-022"})
	twice := r.Fail("twice", "a request of the agent was answered twice", duties...)
	unknown := r.Fail("unknown-id", "an answer names no request of the agent", duties[0])
	missing := r.Fail("unanswered", "a request of the agent was never answered", duties...)
	return r.Watching(func(w *watch) {
		w.On(func(*event) { w.Saw(twice, unknown, missing) }, editorAnswers()...)
		// Nobody can tell which of them is answered: ONE-RESPONSE is about that.
		shared := map[connID]bool{}
		w.On(func(ev *event) {
			if ev.conn.ids[rules.OfAgent][ev.ID] != nil {
				rules.Remember(shared, rememberedRequests, connID{ev.conn, ev.ID}, true)
			}
		}, agentRequests()...)
		w.On(func(ev *event) {
			w.Saw(twice, unknown)
			switch {
			case shared[connID{ev.conn, ev.ID}]:
			case ev.Ref > 0:
				w.find(twice, ev, string(ev.ID), []int{ev.Ref}, "The agent's %s was answered a second time.", ev.Method)
			case ev.conn.initAsked > 0 && ev.ID != "null":
				w.find(unknown, ev, string(ev.ID), nil, "The client answered request %s, which the agent never made.", ev.ID)
			}
		}, editorAnswersNone)
		w.AtEnd(func(end rules.End) {
			w.unanswered(end, rules.OfAgent, func(r *request, a absence) {
				if w.Saw(missing); r.conn.exited == 0 && !shared[connID{r.conn, r.id}] {
					w.Report(missing, r.conn.n, r.session.name(), fmt.Sprint(r.seq), []int{r.seq, a.at},
						"The agent's %s was not answered %s.", r.method, a.how)
				}
			})
		})
	})
}

// connID is an id of JSON-RPC on one connection.
type connID struct {
	conn *conn
	id   wire.ID
}

// clientIDs judges the ids of a client's requests.
func clientIDs(v *version) *rule {
	r := v.ofClient("V2-CLIENT-IDS",
		"The ids of the client's requests are not null and not in use, and an idempotency key stands for one prompt.", 2)
	null := r.Fail("null", "a request has the id null", "V2-RPC-006")
	twice := r.Fail("in-use", "the id is that of a request that is open", "V2-RPC-006")
	key := r.Fail("key-reused", "an idempotency key stands for another prompt than before", "V2-IDEM-008")
	return r.Watching(func(w *watch) {
		sent := map[[2]string]string{}
		w.inSession(func(ev *event, s *session) {
			k, text := [2]string{s.id, ev.params.Get("idempotencyKey").Str()}, string(ev.params.Get("prompt").Raw())
			if before, again := sent[k]; again {
				w.judge(key, before != text, ev, k[1], nil, "The idempotencyKey %q stood for another prompt before.", k[1])
			} else if k[1] != "" {
				rules.Remember(sent, rememberedSessions, k, text)
			}
		}, asked(prompt))
		w.On(func(ev *event) { w.idInUse(rules.OfClient, null, twice, ev) }, editorRequests()...)
	})
}

// idInUse judges the id of a request of a side.
func (w *watch) idInUse(by rules.Side, null, twice int, ev *event) {
	w.Saw(null, twice)
	if ev.ID == "null" {
		w.find(null, ev, ev.Method, nil, "The %s's %s has the id null, which JSON-RPC discourages.", by, ev.Method)
	} else if r := ev.conn.ids[by][ev.ID]; r != nil {
		w.find(twice, ev, string(ev.ID), []int{r.seq}, "The %s's %s has the id %s of its %s, which was still open.", by,
			ev.Method, ev.ID, r.method)
	}
}

// clientCwd judges the directories that the client names.
func clientCwd(v *version) *rule {
	r := v.ofClient("C-CWD", "The directories that the client names are absolute.", 1, 2)
	cwd := r.Fail("cwd", "the cwd of a session is not absolute", "SESSION-005")
	root := r.Fail("directories", "an additional directory is not absolute", "DIRS-002")
	filter := r.Fail("filter", "the cwd filter of a list is not absolute", "LIST-016")
	return r.Watching(func(w *watch) {
		check := func(ev *event, point int, dir wire.Value, what string) {
			if text := dir.Str(); dir.Kind() == wire.String {
				w.judge(point, !isAbsolute([]byte(text)), ev, text, nil, "The %s of %s is %q, and must be absolute.", what,
					ev.Method,
					text)
			}
		}
		w.On(func(ev *event) {
			check(ev, cwd, ev.params.Get("cwd"), "cwd")
			for dir := range ev.params.Get("additionalDirectories").Items() {
				check(ev, root, dir, "additional directory")
			}
		}, setUps(asked)...)
		w.On(func(ev *event) { check(ev, filter, ev.params.Get("cwd"), "cwd filter") }, asked(listSessions))
	})
}
