package rules

import (
	"fmt"
	"time"

	"github.com/acp-test/acp-test/wire"
)

// clientGate judges that the client uses only what the agent advertised.
func clientGate() Rule {
	const (
		method = iota
		directories
		servers
		content
	)
	return Rule{
		ID: "C-GATE", Side: OfClient,
		Sentence: "The client uses optional methods, directories, MCP transports and content only if the agent advertised them.",
		Points: []Point{
			method:      {"method", Fail, []string{"LOAD-001", "RESUME-001", "LIST-001", "CLOSE-001", "DELETE-001", "AUTH-010"}, "a method the agent did not advertise"},
			directories: {"directories", Fail, []string{"DIRS-001"}, "additional directories the agent did not advertise"},
			servers:     {"mcp-servers", Fail, []string{"SESSION-014"}, "an MCP transport the agent did not advertise"},
			content:     {"content", Fail, []string{"PROMPT-002"}, "prompt content the agent did not advertise"},
		},
		start: func(w *watch) {
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
					w.saw(method)
					if !has(ev.conn.agent) {
						f := w.find(method, ev, ev.Method, []int{ev.conn.initDone}, "The client sent %s, which the agent did not advertise.", ev.Method)
						if id, ok := gateOf[v]; ok {
							w.only(f, id)
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
					w.saw(directories)
					if !c.dirs {
						w.find(directories, ev, "", []int{ev.conn.initDone}, "The client sent additionalDirectories, which the agent did not advertise.")
					}
				}
				for server := range ev.params.Get("mcpServers").Items() {
					kind := server.Get("type")
					if !kind.Is("http") && !kind.Is("sse") {
						continue
					}
					w.saw(servers)
					if kind.Is("http") && !c.http || kind.Is("sse") && !c.sse {
						w.find(servers, ev, kind.Str(), []int{ev.conn.initDone}, "The client sent an MCP server of type %s, which the agent did not advertise.", kind.Str())
					}
				}
			}, asked(newSession), asked(loadSession), asked(resumeSession))
			w.on(func(ev *event) {
				if ev.conn.initDone == 0 {
					return
				}
				c := ev.conn.agent
				for block := range ev.params.Get("prompt").Items() {
					w.saw(content)
					kind := block.Get("type")
					if kind.Is("image") && !c.image || kind.Is("audio") && !c.audio || kind.Is("resource") && !c.embedded {
						w.find(content, ev, kind.Str(), []int{ev.conn.initDone}, "The prompt holds a block of type %s, which the agent did not advertise.", kind.Str())
					}
				}
			}, asked(prompt))
		},
	}
}

// clientInitFirst judges the order of initialize, set-up and prompts.
func clientInitFirst() Rule {
	const (
		first = iota
		setup
	)
	return Rule{
		ID: "C-INIT-FIRST", Side: OfClient,
		Sentence: "initialize comes first, and a session is set up before it is prompted.",
		Points: []Point{
			first: {"initialize", Fail, []string{"INIT-001", "SESSION-001"}, "a request came before initialize was answered"},
			setup: {"session", Fail, []string{"PROMPT-001"}, "a prompt names a session that is not set up"},
		},
		start: func(w *watch) {
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
				w.saw(first)
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
				w.saw(setup)
				if !s.ready() {
					w.find(setup, ev, "", []int{s.named}, "The client prompted session %q, which was not set up.", clip(s.id))
				}
			}, asked(prompt))
		},
	}
}

// clientAnswer judges that the client answers what the agent asks.
func clientAnswer() Rule {
	const (
		twice = iota
		unknown
		missing
	)
	return Rule{
		ID: "C-ANSWER", Side: OfClient,
		Sentence: "Each request of the agent is answered once, while the agent lives.",
		Points: []Point{
			twice:   {"twice", Fail, []string{"PERM-015", "TERM-017"}, "a request of the agent was answered twice"},
			unknown: {"unknown-id", Fail, []string{"PERM-015"}, "an answer names no request of the agent"},
			missing: {"unanswered", Fail, []string{"PERM-015", "TERM-017"}, "a request of the agent was never answered"},
		},
		start: func(w *watch) {
			w.on(func(*event) { w.saw(twice); w.saw(unknown); w.saw(missing) }, editorAnswers()...)
			w.on(func(ev *event) {
				switch {
				case ev.Ref > 0:
					w.find(twice, ev, string(ev.ID), []int{ev.Ref}, "The agent's %s was answered a second time.", ev.Method)
				case ev.conn.initAsked > 0 && ev.ID != "null":
					w.find(unknown, ev, string(ev.ID), nil, "The client answered request %s, which the agent never made.", ev.ID)
				}
			}, editorAnswersNone)
			w.finish(func(end End) {
				w.unanswered(end, OfAgent, func(r *request, waited time.Duration) {
					if r.conn.exited == 0 {
						w.report(missing, r.conn.n, r.session.name(), fmt.Sprint(r.seq), []int{r.seq}, "The agent's %s was not answered within %s.", r.method, waited.Round(time.Second))
					}
				})
			})
		},
	}
}

// clientCwd judges the directories that the client names.
func clientCwd() Rule {
	const (
		cwd = iota
		root
		filter
	)
	return Rule{
		ID: "C-CWD", Side: OfClient,
		Sentence: "The directories that the client names are absolute.",
		Points: []Point{
			cwd:    {"cwd", Fail, []string{"SESSION-005"}, "the cwd of a session is not absolute"},
			root:   {"directories", Fail, []string{"DIRS-002"}, "an additional directory is not absolute"},
			filter: {"filter", Fail, []string{"LIST-016"}, "the cwd filter of a list is not absolute"},
		},
		start: func(w *watch) {
			check := func(ev *event, point int, v wire.Value, what string) {
				if v.Kind() != wire.String {
					return
				}
				w.saw(point)
				if text := v.Str(); !isAbsolute([]byte(text)) {
					w.find(point, ev, text, nil, "The %s of %s is %q, and must be absolute.", what, ev.Method, clip(text))
				}
			}
			w.on(func(ev *event) {
				check(ev, cwd, ev.params.Get("cwd"), "cwd")
				for dir := range ev.params.Get("additionalDirectories").Items() {
					check(ev, root, dir, "additional directory")
				}
			}, asked(newSession), asked(loadSession), asked(resumeSession), asked(forkSession))
			w.on(func(ev *event) { check(ev, filter, ev.params.Get("cwd"), "cwd filter") }, asked(listSessions))
		},
	}
}
