package invariants

import (
	"maps"
	"slices"
	"strings"

	"github.com/acp-test/acp-test/internal/lists"
	"github.com/acp-test/acp-test/rules"
	"github.com/acp-test/acp-test/transcript"
)

// mcpServers checks that MCP servers get the values that the editor gave for them. It also checks that the servers'
// tools and results reach the model. The log must have the model's side and entries of kind transcript.Served.
func mcpServers(of *watch) {
	w := &serverWatch{watch: of, asks: map[int][]*transportUse{}, over: map[string]*transportUse{},
		named: map[string]string{}, first: map[string][]string{}, refused: map[*turn]bool{}, strict: map[string]bool{},
		calls: map[string]*serverCall{}, none: map[string]string{}, wished: map[*turn]int{},
		only: map[*turn]string{}, questions: map[int]*serverCall{}, numbers: map[int]string{},
		owners: map[string]string{}}
	w.On(w.given, setUps(asked)...)
	w.On(w.made, setUps(answered)...)
	w.On(w.served, servedEvent)
	w.On(func(ev *event) {
		switch {
		case ev.Kind == transcript.ModelAnswer:
			w.called(ev)
		case ev.Kind == transcript.ModelRequest && ev.converses():
			w.asked(ev)
		}
	}, modelEvent)
	w.On(w.asksUser, asked(permission))
	w.On(w.hearsUser, answered(permission))
	w.On(w.dropsQuestion, agentTakesBack)
	w.onEnd(w.turnEnded)
	w.On(func(ev *event) {
		denied := ev.verb == permission && !allows(ev)
		if ev.turn != nil && (ev.err.Exists() || denied) {
			rules.Remember(w.refused, rememberedRequests, ev.turn, true)
		}
		if denied && denial(ev) == rejectedAlways {
			rules.Remember(w.strict, rememberedSessions, ev.Session, true)
		}
	}, editorAnswers()...)
	w.On(func(ev *event) {
		rules.Remember(w.strict, rememberedSessions, ev.Session, true)
	}, asked(setMode), asked(setOption))
	w.On(w.looked, workspaceEvent)
}

type serverWatch struct {
	*watch
	asks  map[int][]*transportUse  // by Seq of the request that gives the servers
	over  map[string]*transportUse // by "stdio", "http" and "twin", which is another server over stdio
	named map[string]string        // key in over of each server, by its name; "" if several servers have the name
	calls map[string]*serverCall   // by the text of the call
	none  map[string]string        // point to report if a session that was opened without servers has their tools
	first map[string][]string      // tools in the first model request of each session
	// refused has the turns in which the editor gave an error or rejected something. strict has the sessions whose
	// mode or options were changed, or whose user rejected something for always.
	refused map[*turn]bool
	strict  map[string]bool
	wished  map[*turn]int    // how many calls the model made in each turn
	only    map[*turn]string // text of the only call of the model's latest reply in each turn
	// numbers has the value of a server's header canaryNumber in each request that gives servers, by its Seq. owners has
	// the id of the session that was opened with each value.
	numbers map[int]string
	owners  map[string]string
	// questions has the calls that permission requests are about, by Seq of the request.
	questions map[int]*serverCall
}

// canaryNumber is a header to which the editor gives another value for each session.
const canaryNumber = "X-Canary-Number"

// transportUse is the use of the MCP servers over one transport, or of the twin servers.
type transportUse struct {
	sessions map[string]bool // sessions that were given a server over this transport
	given    int             // number of such servers in all requests
	ours     bool            // one of them is the stand-in server, which logs its events
	ended    bool            // a server was made to exit, and an agent need not start it again
	greeted  int             // Seq of the first initialized event of a server
	listed   int             // how many times an agent listed the tools
	since    int             // Seq of the latest listing
	tools    []string        // names of the tools, in the order of the list
	turns    int             // turns that began after greeted
	waited   int             // turns that ended before greeted, of sessions that were given the server
}

// serverBy describes an MCP server by its key in serverWatch.over.
func serverBy(over string) string {
	if over == "twin" {
		return "the twin MCP server over stdio"
	}
	return "the MCP server over " + over
}

// given stores the servers in a request that opens a session.
func (w *serverWatch) given(ev *event) {
	for s := range ev.params.Get("mcpServers").Items() {
		over := pick(s.Get("url").Exists(), "http", "stdio")
		if strings.HasSuffix(s.Get("name").Str(), "_twin") {
			over = "twin"
		}
		if w.over[over] == nil {
			w.over[over] = &transportUse{sessions: map[string]bool{}}
		}
		w.over[over].given++
		name := s.Get("name").Str()
		w.over[over].ours = w.over[over].ours || strings.HasPrefix(name, "canary")
		if before, again := w.named[name]; again && before != over {
			w.named[name] = "" // sessions have servers of that name over both transports
		} else {
			rules.Remember(w.named, rememberedSessions, name, over)
		}
		rules.Remember(w.asks, rememberedRequests, ev.Seq, append(w.asks[ev.Seq], w.over[over]))
		for h := range s.Get("headers").Items() {
			if h.Get("name").Is(canaryNumber) {
				rules.Remember(w.numbers, rememberedRequests, ev.Seq, h.Get("value").Str())
			}
		}
	}
}

// made records that a session was opened with the servers of its request.
func (w *serverWatch) made(ev *event) {
	if n := w.numbers[ev.Ref]; n != "" && ev.session != nil && ev.succeeded() {
		rules.Remember(w.owners, rememberedSessions, n, ev.session.id)
	}
	delete(w.numbers, ev.Ref)
	for _, u := range w.asks[ev.Ref] {
		if ev.session != nil && ev.succeeded() {
			rules.Remember(u.sessions, rememberedSessions, ev.session.id, true)
		}
	}
	if ev.session != nil && ev.succeeded() && len(w.asks[ev.Ref]) == 0 {
		had := w.none[ev.session.id] == "kept"
		for _, u := range w.over {
			had = had || u.sessions[ev.session.id]
			delete(u.sessions, ev.session.id)
		}
		rules.Remember(w.none, rememberedSessions, ev.session.id, pick(had, "kept", "other-session"))
	} else if ev.session != nil && ev.succeeded() {
		delete(w.none, ev.session.id)
	}
	delete(w.asks, ev.Ref)
}

// served judges and stores an event of an MCP server.
func (w *serverWatch) served(ev *event) {
	u := w.over[ev.body.Get("over").Str()]
	if u == nil {
		return
	}
	point, what := "env", "without the arguments and variables"
	if ev.body.Get("over").Is("http") {
		point, what = "headers", "without the headers"
	}
	given, _ := ev.body.Get("token").Bool()
	w.judge(point, !given, ev, "", nil, "The agent used an MCP server %s that the editor gave for it.", what)
	stray := ev.body.Get("stray").Str()
	w.judge(point, stray != "", ev, stray, nil,
		"The agent started an MCP server with the variable %s, which the editor gave for another server.", stray)
	switch ev.body.Get("what").Str() {
	case "initialized":
		if u.greeted == 0 {
			u.greeted = ev.Seq
		}
	case "listed":
		u.listed++
		u.since, u.tools = ev.Seq, nil
		for tool := range ev.body.Get("tools").Items() {
			u.tools = append(u.tools, tool.Str())
		}
	case "called":
		w.reached(ev)
	case "left":
		if s := w.calls[ev.body.Get("text").Str()]; s != nil {
			s.open = 0
		}
	}
}

// asked checks that a model request offers the servers' tools, and stores the results in the request.
func (w *serverWatch) asked(ev *event) {
	if len(w.over) == 0 {
		return
	}
	a, ok := ev.askedOfModel()
	t := w.state.turnOf(ev)
	if !ok || t == nil || t.session.id != ev.Session {
		return
	}
	if w.first[ev.Session] == nil {
		rules.Remember(w.first, rememberedSessions, ev.Session, a.Offered)
	}
	for _, over := range slices.Sorted(maps.Keys(w.over)) {
		u := w.over[over]
		if point := w.none[ev.Session]; point != "" {
			given := lists.First(u.tools, func(tool string) bool { return offers(a.Offered, tool) })
			w.judge(point, given != "", ev, ev.Session, []int{u.since}, "The session was last opened without MCP servers, "+
				"but its model request offers %q, a tool of a server that %s.", given,
				pick(point == "kept", "the session had before", "another session was given"))
		}
		if !u.sessions[ev.Session] || u.listed < u.given || u.since >= t.started || !w.offersAtOnce(u.tools) {
			continue
		}
		lacks := lists.Where(u.tools, func(tool string) bool { return !offers(a.Offered, tool) })
		point := pick(len(lacks) < len(u.tools), "part-offered", "not-offered")
		w.judge(point, len(lacks) > 0 && len(a.Offered) > 0, ev, ev.Session, []int{u.since},
			"The agent asked %s for its tools, but the model request lacks %s.", serverBy(over),
			strings.Join(lacks, " and "))
	}
	if !a.Partial {
		w.results(ev, a)
	}
}

// offersAtOnce reports whether the first model request of some session offered one of the tools. If none did, the
// agent may offer a tool only after its model has searched for tools.
func (w *serverWatch) offersAtOnce(tools []string) bool {
	for _, names := range w.first {
		if slices.ContainsFunc(tools, func(tool string) bool { return offers(names, tool) }) {
			return true
		}
	}
	return false
}

// offers reports whether one of the names that a model request offers contains the name of a server's tool.
func offers(names []string, tool string) bool {
	return slices.ContainsFunc(names, func(name string) bool { return strings.Contains(name, tool) })
}

// turnEnded records which calls were cancelled. It also checks that the agent asks each connected server for its tools
// by the end of the second turn.
func (w *serverWatch) turnEnded(ev *event) {
	if ev.turn == nil {
		return
	}
	for _, s := range w.calls {
		if s.of == ev.turn {
			s.cancelled = ev.turn.stopped()
			s.failed = slices.ContainsFunc(ev.turn.tools, func(k *tool) bool { return k.status == failed })
			s.completed = lists.Count(ev.turn.tools, func(k *tool) bool { return k.status == completed })
		}
		s.stopped = s.stopped || s.seen == 0 && ev.turn.stopped()
	}
	for _, over := range slices.Sorted(maps.Keys(w.over)) {
		u := w.over[over]
		if ev.stop == "" || !u.sessions[ev.Session] { // a refused prompt need not wait for the servers
			continue
		}
		if u.greeted == 0 {
			w.unstarted(ev, over)
			continue
		}
		if u.greeted > ev.turn.started {
			continue
		}
		u.turns++
		w.judge("not-listed", u.listed == 0 && u.turns > 1, ev, ev.Session, []int{u.greeted},
			"The agent connected to %s, but has not asked for its tools in two turns.", serverBy(over))
	}
}

// unstarted checks, at the end of a turn, that the agent has connected to a server over the given transport. It must
// have connected to another server of the session.
func (w *serverWatch) unstarted(ev *event, over string) {
	u := w.over[over]
	if !u.ours {
		return
	}
	u.waited++
	for _, other := range w.over {
		if other.greeted > 0 && other.sessions[ev.Session] {
			w.judge("not-started", u.waited > 1, ev, ev.Session, []int{other.greeted}, "The agent connected to another MCP "+
				"server of the session, but not to %s in two turns.", serverBy(over))
		}
	}
}

// looked checks the calls that servers got in a turn. The entry comes after all server events of that turn.
func (w *serverWatch) looked(ev *event) {
	seq, _ := ev.body.Get("turn").Int()
	for _, text := range slices.Sorted(maps.Keys(w.calls)) {
		s := w.calls[text]
		switch {
		case s.of == nil:
		case s.of.started == int(seq):
			w.calledIn(ev, s, text)
		case s.of.started < int(seq) && s.of.session.id == ev.Session && s.cancelled:
			w.judge("works-on", s.open > 0, ev, text, []int{s.open}, "The user cancelled a turn in which an MCP server "+
				"worked on a call. After another turn the agent has not told the server.")
		}
	}
	over := func(t *turn) bool { return t.started == int(seq) }
	maps.DeleteFunc(w.refused, func(t *turn, _ bool) bool { return over(t) })
	maps.DeleteFunc(w.wished, func(t *turn, _ int) bool { return over(t) })
	maps.DeleteFunc(w.only, func(t *turn, _ string) bool { return over(t) })
}
