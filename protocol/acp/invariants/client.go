package invariants

import (
	"fmt"
	"time"

	"github.com/acp-test/acp-test/rules"
	"github.com/acp-test/acp-test/wire"
)

// clientGate judges that the client uses only what the agent advertised.
func clientGate() *rule {
	r := ofClient("C-GATE",
		"The client uses optional methods, directories, MCP transports and content only if the agent advertised them.")
	method := r.Fail("method",
		"a method the agent did not advertise", "LOAD-001", "RESUME-001", "LIST-001", "CLOSE-001", "DELETE-001", "AUTH-010")
	directories := r.Fail("directories", "additional directories the agent did not advertise", "DIRS-001")
	servers := r.Fail("mcp-servers", "an MCP transport the agent did not advertise", "SESSION-014")
	content := r.Fail("content", "prompt content the agent did not advertise", "PROMPT-002")
	served := r.Lint("served", "a request was carried out that the client had not advertised", "RPC-023")
	return r.watching(func(w *watch) {
		for v, has := range map[verb]func(clientCaps) bool{
			readFile:       func(c clientCaps) bool { return c.read },
			writeFile:      func(c clientCaps) bool { return c.write },
			createTerminal: func(c clientCaps) bool { return c.terminal },
		} {
			w.on(func(ev *event) {
				w.Saw(served)
				if ev.conn.initDone > 0 && !has(ev.conn.client) && ev.succeeded() {
					w.find(served, ev, ev.request.method, []int{ev.Ref}, "The client carried out %s, which it had not advertised.",
						ev.request.method)
				}
			}, answered(v))
		}
		gateOf := map[verb]string{
			loadSession: "LOAD-001", resumeSession: "RESUME-001", listSessions: "LIST-001",
			closeSession: "CLOSE-001", deleteSession: "DELETE-001", logout: "AUTH-010",
		}
		for v, has := range map[verb]func(agentCaps) bool{
			loadSession:   func(c agentCaps) bool { return c.load },
			resumeSession: func(c agentCaps) bool { return c.resume },
			listSessions:  func(c agentCaps) bool { return c.list },
			closeSession:  func(c agentCaps) bool { return c.close },
			deleteSession: func(c agentCaps) bool { return c.remove },
			forkSession:   func(c agentCaps) bool { return c.fork },
			logout:        func(c agentCaps) bool { return c.out },
		} {
			w.on(func(ev *event) {
				if ev.conn.initDone == 0 {
					return
				}
				w.Saw(method)
				if !has(ev.conn.agent) {
					f := w.find(method, ev, ev.Method, []int{ev.conn.initDone},
						"The client sent %s, which the agent did not advertise.", ev.Method)
					if id, ok := gateOf[v]; ok {
						w.Narrow(f, id)
					}
				}
			}, asked(v))
		}
		w.on(func(ev *event) {
			if ev.conn.initDone == 0 {
				return
			}
			c := ev.conn.agent
			if ev.params.Get("additionalDirectories").Len() > 0 {
				w.Saw(directories)
				if !c.dirs {
					w.find(directories, ev, "", []int{ev.conn.initDone},
						"The client sent additionalDirectories, which the agent did not advertise.")
				}
			}
			for server := range ev.params.Get("mcpServers").Items() {
				kind := server.Get("type")
				if !kind.Is("http") && !kind.Is("sse") {
					continue
				}
				w.Saw(servers)
				if kind.Is("http") && !c.http || kind.Is("sse") && !c.sse {
					w.find(servers, ev, kind.Str(), []int{ev.conn.initDone},
						"The client sent an MCP server of type %s, which the agent did not advertise.", kind.Str())
				}
			}
		}, asked(newSession), asked(loadSession), asked(resumeSession))
		w.on(func(ev *event) {
			if ev.conn.initDone == 0 {
				return
			}
			c := ev.conn.agent
			for block := range ev.params.Get("prompt").Items() {
				w.Saw(content)
				kind := block.Get("type")
				if kind.Is("image") && !c.image || kind.Is("audio") && !c.audio || kind.Is("resource") && !c.embedded {
					w.find(content, ev, kind.Str(), []int{ev.conn.initDone},
						"The prompt holds a block of type %s, which the agent did not advertise.", kind.Str())
				}
			}
		}, asked(prompt))
	})
}

// clientInitFirst judges the order of initialize, set-up and prompts.
func clientInitFirst() *rule {
	r := ofClient("C-INIT-FIRST", "initialize comes first, and a session is set up before it is prompted.")
	first := r.Fail("initialize", "a request came before initialize was answered", "INIT-001", "SESSION-001")
	setup := r.Fail("session", "a prompt names a session that is not set up", "PROMPT-001")
	return r.watching(func(w *watch) {
		// A recording may begin after initialize: what comes before it
		// counts only once it is seen.
		before := map[*conn]int{}
		w.on(func(ev *event) {
			c := ev.conn
			if ev.verb == initialize {
				if seq := before[c]; seq > 0 && c.initAsked == 0 {
					w.find(first, ev, "", []int{seq}, "The client sent a request before it sent initialize.")
				}
				return
			}
			if ev.verb == otherOfEditor {
				return
			}
			w.Saw(first)
			switch {
			case c.initAsked == 0 && before[c] == 0:
				before[c] = ev.Seq
			case c.initAsked > 0 && c.initDone == 0:
				w.find(first, ev, ev.Method, []int{c.initAsked}, "The client sent %s before initialize was answered.", ev.Method)
			}
		}, editorRequests()...)
		w.on(func(ev *event) {
			s := ev.session
			if s == nil || ev.conn.initDone == 0 {
				return
			}
			w.Saw(setup)
			if !s.ready() {
				w.find(setup, ev, "", []int{s.named}, "The client prompted session %q, which was not set up.", s.id)
			}
		}, asked(prompt))
	})
}

// clientAnswer judges that the client answers what the agent asks.
func clientAnswer() *rule {
	r := ofClient("C-ANSWER", "Each request of the agent is answered once, while the agent lives.")
	twice := r.Fail("twice", "a request of the agent was answered twice", "PERM-015", "TERM-017")
	unknown := r.Fail("unknown-id", "an answer names no request of the agent", "PERM-015")
	missing := r.Fail("unanswered", "a request of the agent was never answered", "PERM-015", "TERM-017")
	return r.watching(func(w *watch) {
		w.on(func(*event) { w.Saw(twice); w.Saw(unknown); w.Saw(missing) }, editorAnswers()...)
		// Nobody can tell which of them is answered: ONE-RESPONSE is about that.
		shared := map[*conn]map[wire.ID]bool{}
		w.on(func(ev *event) {
			if ev.conn.ids[rules.OfAgent][ev.ID] != nil && len(shared[ev.conn]) < rememberedRequests {
				if shared[ev.conn] == nil {
					shared[ev.conn] = map[wire.ID]bool{}
				}
				shared[ev.conn][ev.ID] = true
			}
		}, agentRequests()...)
		w.on(func(ev *event) {
			switch {
			case shared[ev.conn][ev.ID]:
			case ev.Ref > 0:
				w.find(twice, ev, string(ev.ID), []int{ev.Ref}, "The agent's %s was answered a second time.", ev.Method)
			case ev.conn.initAsked > 0 && ev.ID != "null":
				w.find(unknown, ev, string(ev.ID), nil, "The client answered request %s, which the agent never made.", ev.ID)
			}
		}, editorAnswersNone)
		w.finish(func(end rules.End) {
			w.unanswered(end, rules.OfAgent, func(r *request, waited time.Duration) {
				if r.conn.exited == 0 && !shared[r.conn][r.id] {
					w.Report(missing, r.conn.n, r.session.name(), fmt.Sprint(r.seq), []int{r.seq},
						"The agent's %s was not answered within %s.", r.method, waited.Round(time.Second))
				}
			})
		})
	})
}

// clientCwd judges the directories that the client names.
func clientCwd() *rule {
	r := ofClient("C-CWD", "The directories that the client names are absolute.")
	cwd := r.Fail("cwd", "the cwd of a session is not absolute", "SESSION-005")
	root := r.Fail("directories", "an additional directory is not absolute", "DIRS-002")
	filter := r.Fail("filter", "the cwd filter of a list is not absolute", "LIST-016")
	return r.watching(func(w *watch) {
		check := func(ev *event, point int, v wire.Value, what string) {
			if v.Kind() != wire.String {
				return
			}
			w.Saw(point)
			if text := v.Str(); !isAbsolute([]byte(text)) {
				w.find(point, ev, text, nil, "The %s of %s is %q, and must be absolute.", what, ev.Method, text)
			}
		}
		w.on(func(ev *event) {
			check(ev, cwd, ev.params.Get("cwd"), "cwd")
			for dir := range ev.params.Get("additionalDirectories").Items() {
				check(ev, root, dir, "additional directory")
			}
		}, asked(newSession), asked(loadSession), asked(resumeSession), asked(forkSession))
		w.on(func(ev *event) { check(ev, filter, ev.params.Get("cwd"), "cwd filter") }, asked(listSessions))
	})
}
