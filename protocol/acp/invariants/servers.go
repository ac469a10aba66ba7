package invariants

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/acp-test/acp-test/fakellm"
	"github.com/acp-test/acp-test/internal/lists"
	"github.com/acp-test/acp-test/protocol/hearing"
	"github.com/acp-test/acp-test/rules"
	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/wire"
)

// mcpServers checks that MCP servers get the values that the editor gave for them. It also checks that the servers'
// tools and results reach the model. The log must have the model's side and entries of kind transcript.Served.
func mcpServers(of *watch) {
	w := &serverWatch{watch: of, asks: map[int][]*transportUse{}, over: map[string]*transportUse{},
		named: map[string]string{}, first: map[string][]string{}, refused: map[*turn]bool{}, strict: map[string]bool{},
		calls: map[string]*serverCall{}, none: map[string]string{}, wished: map[*turn]int{}}
	w.On(w.given, setUps(asked)...)
	w.On(w.made, setUps(answered)...)
	w.On(w.served, servedEvent)
	w.On(func(ev *event) {
		switch {
		case ev.Kind == transcript.ModelAnswer:
			w.called(ev)
		case ev.Kind == transcript.ModelRequest && ev.body.Get("lane").Is("main"):
			w.asked(ev)
		}
	}, modelEvent)
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
	wished  map[*turn]int // how many calls the model made in each turn
}

// transportUse is the use of the MCP servers over one transport, or of the twin servers.
type transportUse struct {
	sessions map[string]bool // sessions that were given a server over this transport
	given    int             // number of such servers in all requests
	ours     bool            // one of them is the stand-in server, which logs its events
	greeted  int             // Seq of the first initialized event of a server
	listed   int             // how many times an agent listed the tools
	since    int             // Seq of the latest listing
	tools    []string        // names of the tools, in the order of the list
	turns    int             // turns that began after greeted
	waited   int             // turns that ended before greeted, of sessions that were given the server
}

// serverCall is all that is known about the calls of a server's tool with one text. The text identifies the call.
type serverCall struct {
	asked, seen int    // how many times the model asked for the call, and a server got it
	result      string // result that the model got
	at          int    // Seq of the model request with that result
	said        string // the server's latest answer
	args        any    // arguments that the model gave in its latest call, decoded; nil if unknown
	error       int    // Seq of a call that the server answered with an error
	open        int    // Seq of a call that the server answers only after the agent gave up; 0 once it has
	over        string // key in serverWatch.over of the server that the model named last
	of          *turn  // turn in which the model last asked for the call
	stopped     bool   // a turn was cancelled before a server got the call
	cancelled   bool   // the turn of the call was cancelled
	failed      bool   // a call of the turn failed, so the server's answer may not have reached the agent
	completed   int    // calls of the turn that completed
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
	}
}

// made records that a session was opened with the servers of its request.
func (w *serverWatch) made(ev *event) {
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

// reached judges a tool call that has arrived at a server.
func (w *serverWatch) reached(ev *event) {
	text, said := ev.body.Get("text").Str(), ev.body.Get("said").Str()
	s := w.calls[text]
	if s == nil {
		return
	}
	s.seen++
	if open, _ := ev.body.Get("open").Bool(); open {
		s.open = ev.Seq
	}
	if failed, _ := ev.body.Get("failed").Bool(); failed {
		s.error = ev.Seq
	}
	w.judge("twice", s.seen > s.asked, ev, text, nil,
		"The MCP server got %d calls with %q, but the model made %d.", s.seen, clip(text), s.asked)
	w.judge("other-server", s.asked == 1 && s.over != "" && !ev.body.Get("over").Is(s.over), ev, text, nil,
		"The model called %s with %q, but %s got the call.", serverBy(s.over), clip(text),
		serverBy(ev.body.Get("over").Str()))
	if got := ev.body.Get("args"); s.asked == 1 && s.args != nil && len(ev.Redacted) == 0 {
		is := any(map[string]any{"text": text})
		if got.Exists() && json.Unmarshal(got.Raw(), &is) != nil {
			return
		}
		w.judge("arguments", !reflect.DeepEqual(is, s.args), ev, text, nil,
			"The model called the tool with %s, but the MCP server got %s.", clip(fmt.Sprint(s.args)),
			clip(fmt.Sprint(is)))
	}
	s.said = said
	if s.asked == 1 && s.at > 0 && said != "" && !s.stopped && len(ev.Redacted) == 0 && (!s.failed || w.mixedUp(s)) {
		w.judge("result", !holds(s.result, said), ev, text, []int{s.at},
			"The MCP server answered %q, but the result of that call in the model request is %q (without white space).",
			clip(said), clip(s.result))
		also := ev.body.Get("also").Str()
		w.judge("result", also != "" && holds(s.result, said) && !holds(s.result, also), ev, text, []int{s.at},
			"The MCP server answered in two texts. The result of that call in the model request lacks the second: %q.",
			clip(also))
	}
}

// mixedUp reports whether the result of s contains the server's answer to another call.
func (w *serverWatch) mixedUp(s *serverCall) bool {
	for _, other := range w.calls {
		if other != s && other.said != "" && holds(s.result, other.said) {
			return true
		}
	}
	return false
}

// called counts the calls of a server's tool in a model reply.
func (w *serverWatch) called(ev *event) {
	if t := w.state.turnOf(ev); t != nil {
		rules.Remember(w.wished, rememberedRequests, t, w.wished[t]+len(called(ev.body.Get("steps"))))
	}
	for step := range ev.body.Get("steps").Items() {
		if !strings.HasPrefix(step.Str(), `tool: "mcp"`) {
			continue
		}
		text := member(step.Str(), "text")
		if text == "" {
			continue
		}
		if w.calls[text] == nil {
			rules.Remember(w.calls, rememberedRequests, text, &serverCall{})
		}
		if s := w.calls[text]; s != nil {
			s.asked++
			s.of = w.state.turnOf(ev)
			s.over = w.named[member(step.Str(), "server")]
			s.args = argsOf(step.Str())
		}
	}
}

// member returns the string value of the first member called name in a step of a script, or "".
func member(step, name string) (text string) {
	_, after, _ := strings.Cut(step, `"`+name+`": `)
	if json.NewDecoder(strings.NewReader(after)).Decode(&text) != nil {
		return ""
	}
	return text
}

// argsOf returns the decoded arguments for the server's tool in a step of a script, or nil if they are not JSON.
func argsOf(step string) any {
	_, args, _ := strings.Cut(step, "\nargs: ")
	args, _, _ = strings.Cut(args, "\n")
	var of struct{ Args any }
	if json.Unmarshal([]byte(args), &of) != nil {
		return nil
	}
	return of.Args
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

// results stores the results that the model got for calls of servers' tools.
func (w *serverWatch) results(ev *event, a fakellm.Asked) {
	calls := map[string]string{}
	for _, p := range a.Conversation() {
		switch {
		case p.Calls && p.Call != "":
			if args, err := wire.Parse([]byte(p.Text)); err == nil {
				calls[p.Call] = args.Get("text").Str()
			}
		case p.Who == "result":
			if s := w.calls[calls[p.Call]]; s != nil && s.at == 0 {
				s.result, s.at = hearing.Loose(p.Text), ev.Seq
			}
		}
	}
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
}

// calledIn checks that a server got a call of the turn that has just ended, and that the editor was told if the call
// failed. The editor's calls must be as many as the model's, so that each stands for one.
func (w *serverWatch) calledIn(ev *event, s *serverCall, text string) {
	w.judge("completed", s.error > 0 && s.completed == w.wished[s.of] && s.of.alone(), ev, text, []int{s.error},
		"The MCP server answered the call with %q with an error, but the agent reported each call of the turn as "+
			"completed.", clip(text))
	u := w.over[s.over]
	if s.at == 0 || u == nil || u.listed == 0 {
		return
	}
	lost := s.seen == 0 && !s.stopped && !w.refused[s.of] && !w.strict[ev.Session] && s.of.alone()
	w.judge("not-called", lost, ev, text, []int{s.at}, "The model called a tool of %s with %q and "+
		"got a result, but the server got no call. The result is %q (without white space).", serverBy(s.over),
		clip(text), clip(s.result))
}
