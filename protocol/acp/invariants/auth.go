package invariants

import "strings"

// authMethods judges the list of ways to log in; its shape is for SHAPE.
func authMethods() *rule {
	r := ofAgent("AUTH-METHODS",
		"Auth methods have ids of their own, and those of type terminal come only to clients that can run them.")
	duplicate := r.Warn("duplicate-id", "two auth methods have the same id", "AUTH-002")
	terminal := r.Fail("terminal", "an auth method needs a terminal that the client did not advertise", "AUTH-003")
	command := r.Fail("command", "an auth method of type terminal names a command", "EXT-001", "AUTH-017")
	return r.watching(func(w *watch) {
		w.on(func(ev *event) {
			if n, ok := ev.result.Get("protocolVersion").Int(); ok && n != 1 {
				return // they have the shape of that version
			}
			ids := map[string]bool{}
			for m := range ev.result.Get("authMethods").Items() {
				w.Saw(duplicate, terminal)
				id := m.Get("id").Str()
				if ids[id] {
					w.find(duplicate, ev, id, nil, "Two auth methods have the id %q.", id)
				}
				ids[id] = true
				if !m.Get("type").Is("terminal") {
					continue
				}
				w.Saw(command)
				if !ev.conn.client.authTerminal {
					w.find(terminal, ev, id, []int{ev.Ref},
						"The auth method %q is of type terminal, but the client did not advertise auth.terminal.", id)
				}
				if m.Get("command").Exists() {
					w.find(command, ev, id, nil,
						"The auth method %q names a command; it may only add args and env to the agent's own.", id)
				}
			}
		}, answered(initialize))
	})
}

// authCode judges that code -32000 means that authentication is missing, and
// that a missing authentication is told with it.
func authCode() *rule {
	r := ofAgent("AUTH-CODE",
		"Error -32000 means that authentication is missing, and a missing authentication is told with it.")
	noMethods := r.Warn("no-methods",
		"a request failed with -32000 although the agent offers no way to authenticate", "RPC-015")
	again := r.Warn("after-authenticate",
		"a request failed with -32000 although authenticate had succeeded", "AUTH-007", "RPC-015")
	open := r.Warn("after-logout",
		"a session was created after logout by an agent that demands authentication", "AUTH-012")
	disguised := r.Lint("disguised", "a missing login was told with -32603", "AUTH-008")
	return r.watching(func(w *watch) {
		w.on(func(ev *event) {
			c := ev.conn
			if c.initDone == 0 {
				return
			}
			if len(c.methods) == 0 {
				w.Saw(noMethods)
			}
			if c.authed {
				w.Saw(again)
			}
			if c.loggedOut && c.demanded && ev.verb == newSession {
				w.Saw(open)
				if ev.succeeded() {
					w.find(open, ev, "", []int{ev.Ref}, "The agent demands authentication, but created a session after logout.")
				}
			}
			if !ev.err.Exists() {
				return
			}
			w.Saw(disguised)
			message := ev.err.Get("message").Str()
			switch code := ev.code(); {
			case code == -32000 && c.authed:
				w.find(again, ev, ev.Method, []int{ev.Ref}, "%s failed with -32000 %q although authenticate had succeeded.",
					ev.Method, message)
			case code == -32000 && len(c.methods) == 0:
				w.find(noMethods, ev, ev.Method, []int{c.initDone, ev.Ref},
					"%s failed with -32000 %q, which asks for authentication, but the agent offers no auth methods.", ev.Method,
					message)
			case code == -32603 && speaksOfLogin(message+" "+string(ev.err.Get("data").Raw())):
				w.find(disguised, ev, ev.Method, []int{ev.Ref},
					"%s failed with -32603 %q; -32000 tells clients that authentication is missing.", ev.Method, message)
			}
		}, answered(newSession), answered(loadSession), answered(resumeSession), answered(prompt), answered(listSessions),
			answered(setMode), answered(setOption))
	})
}

func speaksOfLogin(text string) bool {
	text = strings.ToLower(text)
	for _, word := range []string{"login", "log in", "signin", "sign in", "auth", "api key", "unauthoriz", "unauthoris"} {
		if strings.Contains(text, word) {
			return true
		}
	}
	for rest := text; ; {
		at := strings.Index(rest, "401")
		if at < 0 {
			return false
		}
		before := at > 0 && isDigit(rest[at-1])
		after := at+3 < len(rest) && isDigit(rest[at+3])
		if !before && !after {
			return true
		}
		rest = rest[at+3:]
	}
}

func isDigit(b byte) bool { return '0' <= b && b <= '9' }
