package invariants

import (
	"maps"
	"strings"
	"time"

	"github.com/acp-test/acp-test/internal/lazy"
	"github.com/acp-test/acp-test/internal/lists"
	"github.com/acp-test/acp-test/protocol/acp/schema"
	"github.com/acp-test/acp-test/rules"
	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/wire"
)

// authMethods checks the ids, types and members of the agent's login methods. SHAPE checks the shape of the list.
func authMethods(w *watch) {
	v := w.version
	w.On(func(ev *event) {
		if n, ok := ev.result.Get("protocolVersion").Int(); ok && int(n) != v.number {
			return // the login methods have the shape of the other version
		}
		ids := rules.Seen{}
		for m := range ev.result.Get("authMethods").Items() {
			id := m.Get(v.loginID).Str()
			w.judge("duplicate-id", ids.Again(id), ev, id, nil, "Two auth methods have the id %q.", id)
			inTerminal := m.Get("type").Is("terminal")
			w.judge("terminal", inTerminal && !ev.conn.has(rules.OfClient, v.terminalLogin), ev, id, []int{ev.Ref},
				"The auth method %q is of type terminal, but the client did not advertise auth.terminal.", id)
			if inTerminal {
				w.judge("env", !texts(m.Get("env")), ev, id, nil,
					"The env of the auth method %q must be an object of strings.", id)
				w.judge("command", m.Get("command").Exists(), ev, id, nil,
					"The auth method %q names a command; it may only add args and env to the agent's command.", id)
			}
		}
	}, answered(initialize))
}

// texts reports whether a value is absent, null or an object of strings.
func texts(v wire.Value) bool {
	for _, value := range v.Members() {
		if value.Kind() != wire.String {
			return false
		}
	}
	return !v.Exists() || v.IsNull() || v.Kind() == wire.Object
}

// terminalLogin reports whether a problem is about a member of a login in a terminal that AUTH-METHODS reports. A
// method whose env has the wrong shape fits only the form of other methods.
func terminalLogin(ev *event, p schema.Problem) bool {
	method, member := p.Path, ""
	at := strings.LastIndexByte(p.Path, '.')
	if last := p.Path[at+1:]; at > 0 && (last == "command" || last == "env") {
		method, member = p.Path[:at], last
	}
	m := ev.JSON().Path(method)
	return strings.HasPrefix(p.Type, "AuthMethod") && m.Get("type").Is("terminal") &&
		(member == "command" || !texts(m.Get("env")))
}

// authCode checks that an agent uses code -32000 if, and only if, authentication is missing.
func authCode(w *watch) {
	fresh := w.logins()
	w.blamesLogin()
	w.asksInWords()
	w.On(func(ev *event) {
		c := ev.conn
		if c.initDone == 0 {
			return
		}
		if len(c.methods) == 0 {
			w.Saw("no-methods")
		}
		if c.authed {
			w.Saw("after-authenticate", "new-after-authenticate")
		}
		if c.loggedOut > 0 && c.demanded && ev.verb == newSession {
			logsIn := func(r *request) bool { return r.verb == authenticate }
			crossed := ev.Ref < c.loggedOut || lists.Any(maps.Values(c.open), logsIn)
			w.judge("after-logout", ev.succeeded() && !crossed, ev, "", []int{ev.Ref},
				"The agent demands authentication, but created a session after logout.")
		}
		if !ev.err.Exists() {
			return
		}
		if ev.verb != prompt {
			w.disguised(ev, 0)
		}
		message := ev.err.Get("message").Str()
		switch code := ev.code(); {
		case code == -32000 && c.authed:
			w.find(pick(fresh(ev), "new-after-authenticate", "after-authenticate"), ev, ev.Method, []int{ev.Ref},
				"%s failed with -32000 %q although authenticate had succeeded.", ev.Method, message)
		case code == -32000 && len(c.methods) == 0:
			w.find("no-methods", ev, ev.Method, []int{c.initDone, ev.Ref},
				"%s failed with -32000 %q, which asks for authentication, but the agent offers no auth methods.", ev.Method,
				message)
		}
	}, answered(newSession), answered(loadSession), answered(resumeSession), answered(prompt), answered(listSessions),
		answered(setMode), answered(setOption))
}

// blamesLogin checks that a turn does not ask for a login after the model server was overloaded or broken.
func (w *watch) blamesLogin() {
	refused := map[*turn]int64{} // the last HTTP status of the model server in a turn
	w.On(func(ev *event) {
		if t := w.state.turnOf(ev); t != nil && ev.Kind == transcript.ModelDone {
			refused[t], _ = ev.body.Get("status").Int()
		}
	}, modelEvent)
	w.onEnd(func(ev *event) {
		status := refused[ev.turn]
		c := ev.conn // other points judge an agent without login methods, and one that is logged in
		delete(refused, ev.turn)
		if ev.err.Exists() && c.initDone != 0 {
			w.disguised(ev, status)
		}
		judged := ev.err.Exists() && !c.authed && len(c.methods) > 0
		if ev.turn.concurrent && judged {
			w.judge("at-work", ev.code() == -32000, ev, "", []int{ev.Ref}, "A prompt to the busy session "+
				"failed with -32000 %q, which asks the user to log in.", ev.err.Get("message").Str())
			return
		}
		if !judged || status != 429 && status < 500 {
			return
		}
		w.judge("other-cause", ev.code() == -32000, ev, "", []int{ev.Ref}, "The model server returned status %d, but "+
			"the turn failed with -32000 %q, which asks the user to log in.", status, ev.err.Get("message").Str())
	})
}

// asksInWords checks that an agent that demands authentication answers no prompt after a logout with a message of its
// own. It judges logs with the model's side only.
func (w *watch) asksInWords() {
	modelled, asked := false, map[*turn]bool{}
	w.On(func(ev *event) {
		if modelled = true; ev.Kind == transcript.ModelRequest {
			rules.Remember(asked, rememberedRequests, w.state.turnOf(ev), true)
		}
	}, modelEvent)
	w.onEnd(func(ev *event) {
		t := ev.turn
		if t == nil {
			return
		}
		own := modelled && !asked[t] && t.spoke && !t.command() && ev.stop == "end_turn"
		delete(asked, t)
		if at := ev.conn.loggedOut; at > 0 && at < t.started && ev.conn.demanded {
			w.judge("disguised", own, ev, ev.Method, []int{t.started}, "The agent demands authentication, but answered a "+
				"prompt after logout with a message of its own; -32000 tells clients that authentication is missing.")
		}
	})
}

// disguised reports an error of code -32603 whose text speaks of a missing login; its code should be -32000. status is
// the model server's last HTTP status, or 0. An error after a status other than 401 and 403 is ignored, because it may
// quote the server's message.
func (w *watch) disguised(ev *event, status int64) {
	message, asks := ev.err.Get("message").Str(), status == 0 || status == 401 || status == 403
	said := message + " " + string(ev.err.Get("data").Raw())
	w.judge("disguised", asks && ev.code() == -32603 && loginWords().MatchString(said), ev, ev.Method, []int{ev.Ref},
		"%s failed with -32603 %q; -32000 tells clients that authentication is missing.", ev.Method, message)
}

// loginWords matches the text of errors that speak of a missing login.
var loginWords = lazy.Regexp(`(?i)login|log in|signin|sign in|auth|api key|(^|[^0-9])401([^0-9]|$)`)

// logins follows the logins of each connection. The function that it returns reports whether an answer belongs to a
// session/new that was sent soon after a login, and nothing since then can have ended the login.
func (w *watch) logins() func(*event) bool {
	const lasts = 10 * time.Minute // a login may end some time
	type login struct {
		seq int
		at  time.Duration
	}
	since := map[*conn]login{}
	w.On(func(ev *event) {
		if ev.succeeded() {
			since[ev.conn] = login{ev.Seq, ev.At}
		}
	}, answered(authenticate))
	w.On(func(ev *event) { delete(since, ev.conn) }, asked(logout))
	w.On(func(ev *event) {
		if status, _ := ev.body.Get("status").Int(); status == 401 || status == 403 {
			clear(since)
		}
	}, modelEvent)
	w.On(func(ev *event) {
		if ev.code() == -32000 {
			delete(since, ev.conn)
		}
	}, answered(prompt))
	return func(ev *event) bool {
		l := since[ev.conn]
		return ev.verb == newSession && l.seq > 0 && ev.Ref > l.seq && ev.At-l.at < lasts
	}
}
