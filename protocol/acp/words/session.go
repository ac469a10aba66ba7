package words

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/acp-test/acp-test/internal/printable"
	"github.com/acp-test/acp-test/mistake"
	"github.com/acp-test/acp-test/protocol/acp/acpframe"
	"github.com/acp-test/acp-test/scenarios"
	"github.com/acp-test/acp-test/scenarios/script"
	"github.com/acp-test/acp-test/transcript"
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
