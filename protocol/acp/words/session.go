package words

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/acp-test/acp-test/internal/lists"
	"github.com/acp-test/acp-test/internal/printable"
	"github.com/acp-test/acp-test/mistake"
	"github.com/acp-test/acp-test/protocol/acp/acpframe"
	"github.com/acp-test/acp-test/scenarios"
	"github.com/acp-test/acp-test/scenarios/script"
	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/wire"
)

var sessionVerbs = []string{"new", "load", "resume", "list", "close", "delete", "fork"}

func compileSession(l *scenarios.Line) scenarios.Step {
	add := l.Every("add")
	opts := l.Options("cwd", "wait", "cursor", "id", "meta", "of", "servers")
	l.Inside(append(add, opts["cwd"])...)
	verb := l.One(0, "new, load, resume, list, close, delete or fork")
	a := &sessionAct{l: l, verb: verb, opts: opts, add: add, wait: true, meta: jsonWord(l, opts["meta"])}
	if w, ok := opts["wait"]; ok {
		if a.wait = w.Raw() == "yes"; !a.wait && w.Raw() != "no" {
			return l.Usage(w.Column, "wait= is yes or no")
		}
	}
	switch {
	case verb == "list":
		a.listWords()
		return a.list
	case !slices.Contains(sessionVerbs, verb):
		return l.Usage(l.Rest[0].Column, "unknown session command %q%s", verb, mistake.Meant(verb, sessionVerbs))
	}
	if w, ok := opts["servers"]; ok && (w.Raw() != "none" || !a.takesServers()) {
		return l.Usage(w.Column, "servers= takes none, for new, load, resume and fork")
	}
	a.name = l.One(1, "a name for the session")
	if !script.IsName(a.name) || a.name == "any" || slices.Contains(sessionVerbs, a.name) {
		return l.Usage(l.Rest[1].Column, "%q cannot name a session: use letters, digits and _", a.name)
	}
	l.AtMost(2)
	if of, ok := opts["of"]; ok != (verb == "fork") || ok && !l.HasSession(of.Raw()) {
		return l.Usage(l.Rest[0].Column, "session fork needs of=NAME, an open session; other commands take no of=")
	}
	if _, other := opts["id"]; verb != "new" && verb != "fork" && !other && !l.HasSession(a.name) {
		return l.Mistake(l.Rest[1].Column, "open it with session new "+a.name, "no session %s is open", a.name)
	}
	l.DeclareSession(a.name)
	return a.run
}

// listWords reads the words after "list": nothing, or "all" and the names of sessions.
func (a *sessionAct) listWords() {
	l := a.l
	if len(l.Rest) == 1 {
		return
	}
	if l.Rest[1].Raw() != "all" {
		l.Usage(l.Rest[1].Column, "session list takes only all, then names of sessions, not %q", l.Rest[1].Raw())
	}
	if w, ok := a.opts["cursor"]; ok {
		l.Usage(w.Column, "session list all takes no cursor=")
	}
	if w, ok := a.opts["wait"]; ok && !a.wait {
		l.Usage(w.Column, "session list all takes no wait=no: it waits for each page")
	}
	a.all = true
	for i := 2; i < len(l.Rest); i++ {
		name, ok := l.SessionName(i)
		if !ok {
			l.Mistake(l.Rest[i].Column, openIt, "no session %s is open", l.Rest[i].Raw())
		}
		a.names = append(a.names, name)
	}
}

// openIt is advice about a session that is not open.
const openIt = "open it with session new NAME"

type sessionAct struct {
	l          *scenarios.Line
	verb, name string
	opts       map[string]script.Word
	add        []script.Word
	wait       bool
	meta       json.RawMessage // nil: none
	all        bool            // list every page
	names      []string        // sessions that "list all" must find
}

// jsonWord returns a literal word as JSON, or nil if the word is missing.
func jsonWord(l *scenarios.Line, w script.Word) json.RawMessage {
	if !w.Exists() {
		return nil
	}
	text := json.RawMessage(w.Raw())
	if !json.Valid(text) {
		l.Usage(w.Column, "%s is not valid JSON", text)
	}
	return text
}

// dir returns a directory of a session as an absolute path. A relative path is relative to the workspace. A path that
// begins with ./ is returned unchanged.
func (a *sessionAct) dir(b *scenarios.Branch, w script.Word) (string, error) {
	s, err := b.Path(a.l, w)
	if err != nil || s == "" || filepath.IsAbs(s) || strings.HasPrefix(s, "./") {
		return s, err
	}
	return filepath.Join(b.Work(), s), nil
}

// subject returns the id of the session that the request is about: the line's option id or, without that option, the
// id of s. For a fork it is the id of the session in option of. about is false if the request opens a new session.
func (a *sessionAct) subject(b *scenarios.Branch, s *scenarios.Session) (id string, about bool, err error) {
	if w, ok := a.opts["id"]; ok {
		if id, err = b.Expand(w); err != nil {
			return id, true, err
		}
		if name, like := strings.CutPrefix(id, "like:"); like {
			if b.Named(name) == nil {
				return "", true, b.NotOpen(name)
			}
			id = unlike(b.Named(name).ID)
		}
		return id, true, nil
	}
	name := a.name
	if w, ok := a.opts["of"]; ok {
		name = w.Raw()
		s = b.Named(name)
	} else if a.verb == "new" {
		return "", false, nil
	}
	if s == nil {
		return "", false, b.NotOpen(name)
	}
	return s.ID, true, nil
}

var longRun = regexp.MustCompile(`[0-9A-Za-z]{8,}[^0-9A-Za-z]*$`)

// unlike returns an id that looks like id but that no session has. It changes the first character of the last run of
// letters and digits, if that run has at least eight. Otherwise it appends zeros, because agents may number their
// sessions.
func unlike(id string) string {
	at := longRun.FindStringIndex(id)
	if at == nil {
		return id + "00000"
	}
	first := id[at[0]]
	switch {
	case first >= '0' && first < '9', first >= 'a' && first < 'f', first >= 'A' && first < 'F':
		first++
	case first == '9':
		first = '1'
	case first >= 'a':
		first = 'a'
	default:
		first = 'A'
	}
	return id[:at[0]] + string(first) + id[at[0]+1:]
}

func (a *sessionAct) run(ctx context.Context, b *scenarios.Branch) error {
	if err := b.Begin(ctx); err != nil {
		return err
	}
	s := b.Named(a.name)
	params := map[string]any{}
	if a.meta != nil {
		params["_meta"] = a.meta
	}
	cwd, err := a.place(b, s, params)
	if err != nil {
		return err
	}
	if id, about, err := a.subject(b, s); err != nil {
		return a.l.Fault(err)
	} else if about {
		params["sessionId"] = id
	}
	if a.opens() || s == nil {
		s = b.NewSession(a.name, cwd)
		if id, ok := params["sessionId"].(string); ok && !a.opens() {
			s.ID = id
		}
	}
	if a.verb == "load" || a.verb == "resume" {
		b.Opened(s)
		b.Speak(s)
	}
	if err := login(ctx, b, a.l); err != nil {
		return err
	}
	if a.verb == "load" && of(b).version == v2 {
		params["replayFrom"] = map[string]any{"type": "start"}
	}
	method := of(b).method("session/" + a.verb)
	if a.opens() && !a.wait {
		return a.asks(ctx, b, s, method, params)
	}
	e, err := call(ctx, b, a.l, s, method, params, a.wait)
	if why := a.unkept(ctx, b, s, e); why != nil {
		return why
	}
	if err != nil || !a.opens() {
		return err
	}
	return a.opened(ctx, b, s, e)
}

// asks sends the request without waiting for the answer. The session counts as open when the agent has answered.
func (a *sessionAct) asks(
	ctx context.Context, b *scenarios.Branch, s *scenarios.Session, method string, params map[string]any,
) error {
	c, err := send(ctx, b, a.l, s, method, params)
	if err == nil {
		b.OpensBy(s, func() string { return toldSession(b, c.Entry.Seq) })
	}
	return err
}

// toldSession returns the session id in the agent's answer to a request, or "" before that answer.
func toldSession(b *scenarios.Branch, request int) string {
	for e := range b.Transcript().From(request) {
		if e.Source == transcript.Agent && e.Kind == transcript.Response && e.Ref == request {
			return e.JSON().Path("result.sessionId").Str()
		}
	}
	return ""
}

// opened gives the session the id in the answer e, and makes it the current session.
func (a *sessionAct) opened(ctx context.Context, b *scenarios.Branch, s *scenarios.Session, e transcript.Entry) error {
	if s.ID = e.JSON().Path("result.sessionId").Str(); s.ID == "" {
		return nil
	}
	b.Opened(s)
	b.Speak(s)
	of(b).change(func() { of(b).opening = e })
	if mode := b.StartMode(); mode != "" && a.l.Alias == "" {
		// An error is ignored: the agent then does not ask for permission, and the scenario is skipped.
		_, _ = call(ctx, b, a.l, s, "session/set_mode", map[string]any{"sessionId": s.ID, "modeId": mode}, true)
	}
	return b.Applies()
}

// place returns the directory of the session. If the request opens, loads or resumes a session, place also adds the
// directory, the MCP servers, the system prompt and the additional directories to params.
func (a *sessionAct) place(b *scenarios.Branch, s *scenarios.Session, params map[string]any) (cwd string, err error) {
	cwd = b.Work()
	if w, ok := a.opts["cwd"]; ok {
		if cwd, err = a.dir(b, w); err != nil {
			return "", err
		}
	} else if s != nil {
		cwd = s.Dir
	}
	if !a.takesServers() {
		return cwd, nil
	}
	servers := offered(b)
	if _, none := a.opts["servers"]; none {
		servers = []any{}
	}
	if err := untaken(b, servers); err != nil {
		return "", err
	}
	params["cwd"], params["mcpServers"] = cwd, servers
	of(b).change(func() {
		if of(b).system != nil {
			params["systemPrompt"] = of(b).system
		}
	})
	var dirs []string
	for _, w := range a.add {
		d, err := a.dir(b, w)
		if err != nil {
			return "", err
		}
		dirs = append(dirs, d)
	}
	if dirs != nil {
		params["additionalDirectories"] = dirs
	}
	return cwd, nil
}

// opens reports whether the request creates a session. The answer then has the id of that session.
func (a *sessionAct) opens() bool { return a.verb == "new" || a.verb == "fork" }

// takesServers reports whether the request gives the agent MCP servers.
func (a *sessionAct) takesServers() bool {
	return slices.Contains([]string{"new", "load", "resume", "fork"}, a.verb)
}

// list sends session/list once. With the word all, it repeats the request until the agent returns no cursor.
func (a *sessionAct) list(ctx context.Context, b *scenarios.Branch) error {
	if err := b.Begin(ctx); err != nil {
		return err
	}
	params := map[string]any{}
	if a.meta != nil {
		params["_meta"] = a.meta
	}
	if w, ok := a.opts["cwd"]; ok {
		d, err := a.dir(b, w)
		if err != nil {
			return err
		}
		params["cwd"] = d
	}
	if w, ok := a.opts["cursor"]; ok {
		c, err := b.Expand(w)
		if err != nil {
			return a.l.Fault(err)
		}
		params["cursor"] = c
	}
	if a.all {
		return a.pages(ctx, b, params)
	}
	_, err := call(ctx, b, a.l, nil, "session/list", params, a.wait)
	return err
}

// maxPages is the maximum number of pages that the method pages requests before it reports an endless list.
const maxPages = 1000

// pages follows the cursors of session/list to the end. No cursor and no session may occur twice, and the list must
// contain each session that the line names.
func (a *sessionAct) pages(ctx context.Context, b *scenarios.Branch, params map[string]any) error {
	cursors, sessions := map[string]int{}, map[string]int{}
	for page := 1; ; page++ {
		e, err := call(ctx, b, a.l, nil, "session/list", params, true)
		if err != nil {
			return err
		}
		for s := range e.JSON().Path("result.sessions").Items() {
			id := s.Get("sessionId").Str()
			if first := sessions[id]; first > 0 {
				return b.Back(a.l, true, "each session once", "session "+id+" came twice", first, e.Seq)
			}
			sessions[id] = e.Seq
		}
		next := e.JSON().Path("result.nextCursor")
		if !next.Exists() || next.Kind() == wire.Null {
			return a.listed(b, sessions, e)
		}
		cursor := next.Str()
		if first := cursors[cursor]; first > 0 {
			return b.Back(a.l, true, "a new cursor, or none on the last page",
				fmt.Sprintf("the cursor %q came twice: the list would never end", cursor), first, e.Seq)
		}
		if page == maxPages {
			return b.Back(a.l, true, "a last page", fmt.Sprintf("%d pages, each with a next cursor", maxPages), e.Seq)
		}
		cursors[cursor] = e.Seq
		params["cursor"] = cursor
	}
}

// listed returns a Miss if a session that the line names is on none of the pages.
func (a *sessionAct) listed(b *scenarios.Branch, sessions map[string]int, last transcript.Entry) error {
	for _, name := range a.names {
		s := b.Named(name)
		if s == nil {
			return a.l.Fault(b.NotOpen(name))
		}
		if sessions[s.ID] == 0 {
			return b.Back(a.l, true, "session "+name+" in the list", fmt.Sprintf("%d sessions without %s", len(sessions), s.ID),
				last.Seq)
		}
	}
	return nil
}

// inSession returns a step that calls act with a session, which it opens if necessary.
func inSession(l *scenarios.Line, name string,
	act func(ctx context.Context, b *scenarios.Branch, s *scenarios.Session) error) scenarios.Step {
	return func(ctx context.Context, b *scenarios.Branch) error {
		s, err := need(ctx, b, l, name)
		if err != nil {
			return err
		}
		return act(ctx, b, s)
	}
}

// need returns the session that a line acts in. It starts the agent and opens a session if necessary.
func need(ctx context.Context, b *scenarios.Branch, l *scenarios.Line, name string) (*scenarios.Session, error) {
	if err := b.Begin(ctx); err != nil {
		return nil, err
	}
	if name != "" {
		s := b.Named(name)
		if s == nil {
			return nil, l.Fault(b.NotOpen(name))
		}
		b.Speak(s)
		return s, nil
	}
	if s := b.Session(); s != nil {
		return s, nil
	}
	a := &sessionAct{l: scenarios.Implied("session new main"), verb: "new", name: "main", wait: true}
	if err := a.run(ctx, b); err != nil {
		return nil, scenarios.SetUp(err)
	}
	if s := b.Session(); s != nil {
		return s, nil
	}
	f := b.Failure(a.l, transcript.Outcome{})
	f.Expected, f.Observed = []string{"a session id in the answer to session/new"}, "none"
	return nil, scenarios.SetUp(&scenarios.Miss{Failure: f, Effect: true})
}

// untaken returns a Skipped error if a version 2 agent does not support the transport of one of the MCP servers.
// Version 1 agents always support stdio.
func untaken(b *scenarios.Branch, servers []any) error {
	c := of(b)
	if c.version != v2 {
		return nil
	}
	for _, s := range servers {
		kind, _ := s.(map[string]any)["type"].(string)
		if has, known := c.Advertises("mcpCapabilities." + kind); known && !has {
			return &scenarios.Skipped{Reason: fmt.Sprintf("the agent does not advertise session.mcp.%s", kind)}
		}
	}
	return nil
}

// unknownSession is the error code for a session that does not exist.
const unknownSession = -32002

// unkept returns a Skipped error if a version 2 agent keeps no sessions after its process has ended, which the
// protocol allows. The agent then does not know a session of an earlier process, and session/list does not show that
// session.
func (a *sessionAct) unkept(ctx context.Context, b *scenarios.Branch, s *scenarios.Session, e transcript.Entry) error {
	code, _ := e.JSON().Path("error.code").Int()
	if of(b).version != v2 || code != unknownSession || !spokenBefore(b, e.Conn, s.ID) {
		return nil
	}
	list, err := call(ctx, b, scenarios.Implied("session list"), nil, "session/list", map[string]any{}, true)
	if err != nil {
		return nil // the agent is judged by its answer to the load or resume
	}
	result := list.JSON().Get("result")
	if result.Get("nextCursor").Str() != "" || result.Get("sessions").Find("sessionId", s.ID).Exists() {
		return nil
	}
	return &scenarios.Skipped{Reason: "the agent keeps no sessions after its process has ended"}
}

// spokenBefore reports whether the agent sent messages about a session in an earlier process.
func spokenBefore(b *scenarios.Branch, conn int, id string) bool {
	return lists.Any(b.Transcript().All(), func(e transcript.Entry) bool {
		return e.Conn < conn && e.Source == transcript.Agent && e.Session == id
	})
}

// compileChild compiles a line that names the session of a subagent, so that later lines can refer to it.
func compileChild(l *scenarios.Line) scenarios.Step {
	n := 1
	if w, ok := l.Options("nth")["nth"]; ok {
		n = l.Int(w, 1, "nth= counts from 1")
	}
	name := l.One(0, "a name for the session")
	l.AtMost(1)
	l.DeclareSession(name)
	return func(_ context.Context, b *scenarios.Branch) error {
		seen := map[string]bool{}
		for e := range b.Transcript().All() {
			if acpframe.Update(e) != "subagent_update" {
				continue
			}
			id := e.JSON().Path("params.update.sessionId").Str()
			if seen[id] = true; len(seen) == n {
				s, spokenOf := b.NewSession(name, b.Work()), b.Session()
				s.ID = id
				b.Opened(s)
				b.Opened(spokenOf) // lines that name no session still use it
				return nil
			}
		}
		return b.NoSituation(l, printable.Plural(n, "announced subagent", "announced subagents"), fmt.Sprint(len(seen)))
	}
}
