package scenarios

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"github.com/acp-test/acp-test/fakellm"
	"github.com/acp-test/acp-test/mockclient"
	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/wire"
)

func actCommands() []*Command {
	return []*Command{
		{
			Name: "start", Group: "acts", Summary: "start the agent",
			Detail:  "Other acts start it when they need it.",
			Compile: plain(func(ctx context.Context, b *branch, _ *line) error { return b.run.begin(ctx) }),
		}, {
			Name: "initialize", Group: "acts", Args: "[version=N]", Captures: true,
			Summary: "send initialize and wait for the answer",
			Detail:  "An error answer is a failure, unless the line has a name: then the script judges it.",
			Compile: compileInitialize,
		}, {
			Name: "authenticate", Group: "acts", Args: "METHOD", Captures: true,
			Summary: "send authenticate and wait for the answer", Compile: compileCall("authenticate", "methodId"),
		}, {
			Name: "logout", Group: "acts", Captures: true,
			Summary: "send logout and wait for the answer", Compile: compileCall("logout", ""),
		}, {
			Name: "session", Group: "acts", Args: "new|load|resume|close|delete NAME [cwd=DIR] [add=DIR]… [meta=JSON] [wait=no] | list [cwd=DIR] [cursor=TEXT]", Captures: true,
			Summary: "open, list or end a session and wait for the answer",
			Detail: "NAME is the script's name for the session. load and resume use the id the name\n" +
				"already has. cwd is relative to the workspace. An error answer is a failure,\n" +
				"unless the line has a name: then the script judges it. wait=no only sends.",
			Compile: compileSession,
		}, {
			Name: "prompt", Group: "acts", Args: "[NAME] TEXT [attach=FILE]… [meta=JSON]", Captures: true,
			Summary: "send a prompt, and do not wait for the end of the turn",
			Detail: "Starts the agent, initializes it and opens a session with defaults unless the\n" +
				"script did. attach= adds a file of the workspace: as an image or audio block by\n" +
				"its extension, embedded if the agent takes embedded context, else as a link. meta= is _meta.\n" +
				"Each prompt's text must be unique in the scenario: the model's turns are found by it.",
			Compile: compilePrompt,
		}, {
			Name: "cancel", Group: "acts", Args: "[NAME]", Captures: true,
			Summary: "send session/cancel",
			Detail:  "Open permission requests of the session are answered cancelled, unless permit says\notherwise.",
			Compile: func(l *line) (func(context.Context, *branch) error, error) {
				if m := l.atMost(1); m != nil {
					return nil, m
				}
				name, m := l.optionalSession()
				if m != nil {
					return nil, m
				}
				return func(ctx context.Context, b *branch) error {
					s, err := b.need(ctx, name)
					if err != nil {
						return err
					}
					return b.notify(l, s, "session/cancel", map[string]any{"sessionId": s.id})
				}, nil
			},
		}, {
			Name: "cancel-request", Group: "acts", Args: "REF", Captures: true,
			Summary: "send $/cancel_request for a request a line above named",
			Compile: compileCancelRequest,
		}, {
			Name: "answer", Group: "acts", Args: "REF CHOICE | REF result=JSON | REF error=CODE", Captures: true,
			Summary: "answer a request of the agent that is held",
			Detail: "REF is the name of the line that awaited it. CHOICE is an option kind or\n" +
				"cancelled for a permission. Answering twice, or with what was not offered\n" +
				"(id=OPTION), breaks the protocol on purpose.",
			Compile: compileAnswer,
		}, {
			Name: "set-mode", Group: "acts", Args: "[NAME] MODE", Captures: true,
			Summary: "send session/set_mode and wait for the answer",
			Compile: compileSet("session/set_mode", "modeId", ""),
		}, {
			Name: "set-option", Group: "acts", Args: "[NAME] ID VALUE", Captures: true,
			Summary: "send session/set_config_option and wait for the answer",
			Detail:  "true and false are sent as booleans.",
			Compile: compileSet("session/set_config_option", "configId", "value"),
		}, {
			Name: "request", Group: "acts", Args: "METHOD [JSON]", Captures: true,
			Summary: "send any request, and do not wait",
			Detail:  "Name it (as R) and await response R. Variables in JSON are expanded.",
			Compile: compileRaw(true),
		}, {
			Name: "notify", Group: "acts", Args: "METHOD [JSON]", Captures: true,
			Summary: "send any notification", Compile: compileRaw(false),
		}, {
			Name: "release", Group: "acts", Args: "GATE",
			Summary: "release a gate of the model",
			Detail:  "A gate that is not reached yet will not hold.",
			Compile: compileRelease,
		}, {
			Name: "write", Group: "acts", Args: "FILE @SOURCE|TEXT",
			Summary: "write a file into the workspace, as the user would", Compile: compileFile(writeFile),
		},
	}
}

// plain compiles a command without arguments.
func plain(run func(context.Context, *branch, *line) error) func(*line) (func(context.Context, *branch) error, error) {
	return func(l *line) (func(context.Context, *branch) error, error) {
		if m := l.atMost(0); m != nil {
			return nil, m
		}
		return func(ctx context.Context, b *branch) error { return run(ctx, b, l) }, nil
	}
}

// notify sends a notification and sets the cursor to it.
func (b *branch) notify(l *line, s *session, method string, params any) error {
	e, err := b.run.editor.Notify(method, params)
	if err != nil && e.Seq == 0 {
		return b.run.unsent(l, err)
	}
	b.acted(s, e)
	b.run.name(l.as, e)
	return nil
}

// call sends a request and waits for the answer unless told otherwise. An
// error answer ends the script, unless the line has a name and so judges it
// itself.
func (b *branch) call(ctx context.Context, l *line, s *session, method string, params any, wait bool) (transcript.Entry, error) {
	c := b.run.editor.Call(method, params)
	if c.Entry.Seq == 0 {
		_, err := c.Wait(ctx)
		return transcript.Entry{}, b.run.unsent(l, err)
	}
	b.acted(s, c.Entry)
	b.run.name(l.as, c.Entry)
	if !wait {
		return transcript.Entry{}, nil
	}
	return b.answer(ctx, l, c, l.as == "")
}

// answer waits for the answer to a request.
func (b *branch) answer(ctx context.Context, l *line, c *mockclient.Call, must bool) (transcript.Entry, error) {
	r := b.run
	wait, cancel := r.patience(ctx, c.Entry.Method)
	defer cancel()
	e, err := c.Wait(wait)
	r.settle(e)
	var rpc *mockclient.RPCError
	switch {
	case err == nil, errors.As(err, &rpc) && !must:
		return e, nil
	case ctx.Err() != nil:
		return e, context.Cause(ctx)
	}
	o := transcript.Outcome{Verdict: transcript.Unmeetable, Entry: e}
	if rpc == nil && wait.Err() == nil {
		r.expectExit()
	}
	if wait.Err() != nil {
		o.Verdict, o.Cause = transcript.Unmet, context.Cause(wait)
	}
	f := r.failure(l, o)
	f.Expected = []string{"an answer to " + c.Entry.Method}
	switch {
	case rpc != nil:
		f.Expected = []string{"a result of " + c.Entry.Method}
		f.Observed = brief(e)
		f.Entries = []int{e.Seq}
		if rpc.Code == -32000 {
			f.Advice = "the agent asks for authentication: give it a key with --env or --pass-env, or authenticate in the script"
		}
	case wait.Err() != nil:
		f.Observed = "nothing"
	default:
		f.Observed = "the agent exited"
		f.Reason = err.Error()
	}
	m := &miss{failure: f, effect: true}
	if rpc != nil && rpc.Code == -32000 {
		m.verdict = Inconclusive
	}
	if c.Entry.Method == "initialize" && rpc == nil {
		f.Advice = agentAdvice(f, r)
		r.started = f
	}
	return e, m
}

func compileInitialize(l *line) (func(context.Context, *branch) error, error) {
	opts, m := l.options("version")
	if m != nil {
		return nil, m
	}
	if m := l.atMost(0); m != nil {
		return nil, m
	}
	version := json.RawMessage("1")
	if w, ok := opts["version"]; ok {
		version = json.RawMessage(w.raw())
		if !json.Valid(version) {
			return nil, l.usage(w.column, "version= takes a JSON value")
		}
	}
	return func(ctx context.Context, b *branch) error {
		if err := b.run.launchAgent(ctx); err != nil {
			return err
		}
		return b.initialize(ctx, l, version)
	}, nil
}

// initialize sends initialize and remembers what the agent says of itself.
func (b *branch) initialize(ctx context.Context, l *line, version json.RawMessage) error {
	e, err := b.call(ctx, l, nil, "initialize", map[string]any{
		"protocolVersion":    version,
		"clientCapabilities": b.run.client,
		"clientInfo":         map[string]any{"name": "acp-test", "title": "acp-test", "version": "1"},
	}, true)
	if err != nil {
		return err
	}
	r := b.run
	r.mu.Lock()
	r.ready, r.init = true, slices.Clone(e.JSON().Get("result").Raw())
	r.mu.Unlock()
	return r.applies()
}

// compileCall compiles a request with at most one parameter.
func compileCall(method, param string) func(*line) (func(context.Context, *branch) error, error) {
	return func(l *line) (func(context.Context, *branch) error, error) {
		n := 0
		if param != "" {
			n = 1
			if _, m := l.need(0, param); m != nil {
				return nil, m
			}
		}
		if m := l.atMost(n); m != nil {
			return nil, m
		}
		return func(ctx context.Context, b *branch) error {
			if err := b.run.begin(ctx); err != nil {
				return err
			}
			params := map[string]any{}
			if n == 1 {
				v, err := b.expand(l.words[0])
				if err != nil {
					return l.runtime(err)
				}
				params[param] = v
			}
			_, err := b.call(ctx, l, nil, method, params, true)
			return err
		}, nil
	}
}

func compileSession(l *line) (func(context.Context, *branch) error, error) {
	var add []word
	var rest []word
	for _, w := range l.words {
		if key, _, value, ok := w.cut("="); ok && key == "add" {
			add = append(add, value)
			continue
		}
		rest = append(rest, w)
	}
	l.words = rest
	opts, m := l.options("cwd", "wait", "cursor", "id", "meta")
	if m != nil {
		return nil, m
	}
	verb, m := l.one(0, "new, load, resume, list, close or delete")
	if m != nil {
		return nil, m
	}
	wait := true
	if w, ok := opts["wait"]; ok {
		if w.raw() != "no" && w.raw() != "yes" {
			return nil, l.usage(w.column, "wait= is yes or no")
		}
		wait = w.raw() == "yes"
	}
	meta, m := l.json(opts["meta"])
	if m != nil {
		return nil, m
	}
	a := &sessionAct{l: l, verb: verb, opts: opts, add: add, wait: wait, meta: meta}
	switch verb {
	case "list":
		if m := l.atMost(1); m != nil {
			return nil, m
		}
		return a.list, nil
	case "new", "load", "resume", "close", "delete":
	default:
		return nil, l.usage(l.words[0].column, "%q is nothing to do with a session %s", verb, nearest(verb, []string{"new", "load", "resume", "list", "close", "delete"}))
	}
	if a.name, m = l.one(1, "a name for the session"); m != nil {
		return nil, m
	}
	if !isName(a.name) || slices.Contains([]string{"new", "load", "resume", "list", "close", "delete", "any"}, a.name) {
		return nil, l.usage(l.words[1].column, "%q cannot name a session: use letters, digits and _", a.name)
	}
	if m := l.atMost(2); m != nil {
		return nil, m
	}
	if _, other := opts["id"]; verb != "new" && !other && !l.p.sessions[a.name] {
		return nil, l.mistake(l.words[1].column, "open it with session new "+a.name, "no session %s is open", a.name)
	}
	l.p.sessions[a.name] = true
	return a.run, nil
}

type sessionAct struct {
	l          *line
	verb, name string
	opts       map[string]word
	add        []word
	wait       bool
	meta       json.RawMessage // nil: none
}

// json is a literal word that has to be JSON; nil if it is not there.
func (l *line) json(w word) (json.RawMessage, *Mistake) {
	if w.parts == nil {
		return nil, nil
	}
	if text := w.raw(); json.Valid([]byte(text)) {
		return json.RawMessage(text), nil
	}
	return nil, l.usage(w.column, "%s is no JSON", w.raw())
}

// dir is a directory of a session: absolute, by default below the workspace.
func (b *branch) dir(w word) (string, error) {
	s, err := b.expand(w)
	if err != nil {
		return "", err
	}
	if s == "" || filepath.IsAbs(s) || strings.HasPrefix(s, "./") {
		return s, nil
	}
	return filepath.Join(b.run.box.work, s), nil
}

func (a *sessionAct) run(ctx context.Context, b *branch) error {
	r := b.run
	if err := r.begin(ctx); err != nil {
		return err
	}
	s := r.session(a.name)
	params := map[string]any{}
	if a.meta != nil {
		params["_meta"] = a.meta
	}
	cwd := r.box.work
	if w, ok := a.opts["cwd"]; ok {
		var err error
		if cwd, err = b.dir(w); err != nil {
			return a.l.runtime(err)
		}
	} else if s != nil {
		cwd = s.cwd
	}
	if a.verb == "new" || a.verb == "load" || a.verb == "resume" {
		params["cwd"] = cwd
		params["mcpServers"] = r.mcpServers()
		var dirs []string
		for _, w := range a.add {
			d, err := b.dir(w)
			if err != nil {
				return a.l.runtime(err)
			}
			dirs = append(dirs, d)
		}
		if dirs != nil {
			params["additionalDirectories"] = dirs
		}
	}
	if w, ok := a.opts["id"]; ok {
		id, err := b.expand(w)
		if err != nil {
			return a.l.runtime(err)
		}
		params["sessionId"] = id
	} else if a.verb != "new" {
		if s == nil {
			return a.l.runtime(fmt.Errorf("session %s is not open", a.name))
		}
		params["sessionId"] = s.id
	}
	if a.verb == "new" || s == nil {
		s = &session{name: a.name, cwd: cwd, cursor: b.at()}
		if id, ok := params["sessionId"].(string); ok {
			s.id = id
		}
	}
	if a.verb == "load" || a.verb == "resume" {
		r.opened(s)
		b.speak(s)
	}
	e, err := b.call(ctx, a.l, s, "session/"+a.verb, params, a.wait)
	if err != nil {
		return err
	}
	if a.verb == "new" && a.wait {
		if s.id = e.JSON().Path("result.sessionId").Str(); s.id != "" {
			r.opened(s)
			b.speak(s)
			r.setup.session = e
			return r.applies()
		}
	}
	return nil
}

func (a *sessionAct) list(ctx context.Context, b *branch) error {
	if err := b.run.begin(ctx); err != nil {
		return err
	}
	params := map[string]any{}
	if a.meta != nil {
		params["_meta"] = a.meta
	}
	if w, ok := a.opts["cwd"]; ok {
		d, err := b.dir(w)
		if err != nil {
			return a.l.runtime(err)
		}
		params["cwd"] = d
	}
	if w, ok := a.opts["cursor"]; ok {
		c, err := b.expand(w)
		if err != nil {
			return a.l.runtime(err)
		}
		params["cursor"] = c
	}
	_, err := b.call(ctx, a.l, nil, "session/list", params, a.wait)
	return err
}

// opened makes a session the one opened last.
func (r *run) opened(s *session) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sessions = append(slices.DeleteFunc(r.sessions, func(o *session) bool { return o == s }), s)
}

// optionalSession takes a session's name, if there is a word.
func (l *line) optionalSession() (string, *Mistake) {
	if len(l.words) == 0 {
		return "", nil
	}
	name, ok := l.session(0)
	if !ok {
		return "", l.mistake(l.words[0].column, "open it with session new NAME", "no session %s is open", l.words[0].raw())
	}
	return name, nil
}

// need is the session an act is about. It starts what is not started.
func (b *branch) need(ctx context.Context, name string) (*session, error) {
	if err := b.run.begin(ctx); err != nil {
		return nil, err
	}
	if name != "" {
		s := b.run.session(name)
		if s == nil {
			return nil, fmt.Errorf("session %s is not open", name)
		}
		b.speak(s)
		return s, nil
	}
	if s := b.current(); s != nil {
		return s, nil
	}
	a := &sessionAct{l: &line{p: &parser{}, text: "session new main"}, verb: "new", name: "main", wait: true}
	if err := a.run(ctx, b); err != nil {
		return nil, err
	}
	if s := b.current(); s != nil {
		return s, nil
	}
	f := b.run.failure(a.l, transcript.Outcome{})
	f.Expected, f.Observed = []string{"a session id in the answer to session/new"}, "none"
	return nil, &miss{failure: f, effect: true}
}

func compilePrompt(l *line) (func(context.Context, *branch) error, error) {
	var files []word
	var rest []word
	var extra word
	for _, w := range l.words {
		switch key, _, value, ok := w.cut("="); {
		case ok && key == "attach" && !strings.HasPrefix(w.raw(), "'"):
			files = append(files, value)
		case ok && key == "meta":
			extra = value
		default:
			rest = append(rest, w)
		}
	}
	l.words = rest
	meta, m := l.json(extra)
	if m != nil {
		return nil, m
	}
	name := ""
	if len(l.words) == 2 {
		var ok bool
		if name, ok = l.session(0); !ok {
			return nil, l.mistake(l.words[0].column, "open it with session new NAME, or quote the text", "no session %s is open", l.words[0].raw())
		}
		l.words = l.words[1:]
	}
	if m := l.atMost(1); m != nil {
		m.Hint = "quote the text: prompt 'Do this.'"
		return nil, m
	}
	w, m := l.need(0, "the text")
	if m != nil {
		return nil, m
	}
	text, err := l.p.source(l, w)
	if err != nil {
		return nil, err
	}
	for _, p := range l.p.scenario.prompts {
		if p.text == text.raw() {
			return nil, l.mistake(w.column, fmt.Sprintf("the first is on line %d", p.line), "two prompts have the same text; the model's turns are found by it")
		}
	}
	l.p.scenario.prompts = append(l.p.scenario.prompts, promptDecl{name, text.raw(), l.number})
	index := len(l.p.scenario.prompts)
	return func(ctx context.Context, b *branch) error {
		s, err := b.need(ctx, name)
		if err != nil {
			return err
		}
		words, err := b.expand(text)
		if err != nil {
			return l.runtime(err)
		}
		blocks := []any{map[string]any{"type": "text", "text": words}}
		for _, f := range files {
			block, err := b.attachment(f)
			if err != nil {
				return l.runtime(err)
			}
			blocks = append(blocks, block)
		}
		if b.run.model != nil {
			b.run.model.Begin(fakellm.Prompt{Session: s.id, Name: s.name, Index: index, Text: words})
		}
		params := map[string]any{"sessionId": s.id, "prompt": blocks}
		if meta != nil {
			params["_meta"] = meta
		}
		c := b.run.editor.Call("session/prompt", params)
		if c.Entry.Seq == 0 {
			_, err := c.Wait(ctx)
			return b.run.unsent(l, err)
		}
		s.prompts = append(s.prompts, c.Entry.Seq)
		b.acted(s, c.Entry)
		b.run.name(l.as, c.Entry)
		return nil
	}, nil
}

// source is the text of a word, which may be @FILE for a file of the archive.
func (p *parser) source(l *line, w word) (word, error) {
	s, ok := w.literal()
	if !ok || w.quoted || !strings.HasPrefix(s, "@") {
		return w, nil
	}
	data, ok := p.scenario.archived(s[1:])
	if !ok {
		return word{}, l.mistake(w.column, "add it below as -- "+s[1:]+" --", "the archive holds no file %q", s[1:])
	}
	return word{parts: []part{{text: string(data)}}, column: w.column, quoted: true}, nil
}

// attachment is a file of the workspace as a content block.
func (b *branch) attachment(w word) (any, error) {
	name, err := b.expand(w)
	if err != nil {
		return nil, err
	}
	path := b.run.inWork(name)
	kind, _, _ := strings.Cut(mime.TypeByExtension(filepath.Ext(name)), ";")
	uri := (&url.URL{Scheme: "file", Path: filepath.ToSlash(path)}).String()
	caps := b.run.capability("promptCapabilities")
	switch {
	case strings.HasPrefix(kind, "image/"), strings.HasPrefix(kind, "audio/"):
		data, err := readFile(path)
		if err != nil {
			return nil, err
		}
		what, _, _ := strings.Cut(kind, "/")
		block := map[string]any{"type": what, "mimeType": kind, "data": base64.StdEncoding.EncodeToString(data)}
		if what == "image" {
			block["uri"] = uri
		}
		return block, nil
	case on(caps.Get("embeddedContext")):
		data, err := readFile(path)
		if err != nil {
			return nil, err
		}
		resource := map[string]any{"uri": uri, "text": string(data)}
		if kind != "" {
			resource["mimeType"] = kind
		}
		return map[string]any{"type": "resource", "resource": resource}, nil
	}
	return map[string]any{"type": "resource_link", "uri": uri, "name": filepath.Base(name)}, nil
}

func on(v wire.Value) bool {
	b, ok := v.Bool()
	return ok && b || v.Kind() == wire.Object
}

func compileCancelRequest(l *line) (func(context.Context, *branch) error, error) {
	ref, m := l.ref(0)
	if m != nil {
		return nil, m
	}
	return func(_ context.Context, b *branch) error {
		e, ok := b.run.names[ref]
		if !ok {
			return l.runtime(fmt.Errorf("%s has not happened", ref))
		}
		return b.notify(l, b.current(), "$/cancel_request", map[string]any{"requestId": json.RawMessage(e.ID)})
	}, nil
}

// ref is the word at i as the name of a line above.
func (l *line) ref(i int) (string, *Mistake) {
	s, m := l.one(i, "the name of a line above")
	if m != nil {
		return "", m
	}
	if !l.p.names[s] {
		return "", l.mistake(l.words[i].column, "end a line above with \"as "+s+"\"", "no line above is named %s", s)
	}
	return s, nil
}

func compileAnswer(l *line) (func(context.Context, *branch) error, error) {
	opts, m := l.options("result", "error", "id")
	if m != nil {
		return nil, m
	}
	ref, m := l.ref(0)
	if m != nil {
		return nil, m
	}
	if m := l.atMost(2); m != nil {
		return nil, m
	}
	if len(opts)+len(l.words) != 2 {
		return nil, l.usage(l.name.column, "one answer is needed: a choice, id=, result= or error=")
	}
	return func(_ context.Context, b *branch) error {
		r := b.run
		e, ok := r.names[ref]
		if !ok {
			return l.runtime(fmt.Errorf("%s has not happened", ref))
		}
		result, rpc, err := b.answerOf(l, opts, e)
		if err != nil {
			return err
		}
		sent, err := r.editor.Answer(e.Seq, result, rpc)
		if err != nil && sent.Seq == 0 {
			return r.unsent(l, err)
		}
		r.mu.Lock()
		r.lawless[sent.Seq] = true
		r.lawless[e.Seq] = true
		r.mu.Unlock()
		b.acted(b.current(), sent)
		r.name(l.as, sent)
		return nil
	}, nil
}

// answerOf is the answer a line gives to a request of the agent.
func (b *branch) answerOf(l *line, opts map[string]word, e transcript.Entry) (any, *mockclient.RPCError, error) {
	selected := func(id string) any {
		return map[string]any{"outcome": map[string]any{"outcome": "selected", "optionId": id}}
	}
	for key, w := range opts {
		text, err := b.expand(w)
		if err != nil {
			return nil, nil, l.runtime(err)
		}
		switch key {
		case "id":
			return selected(text), nil, nil
		case "result":
			if !json.Valid([]byte(text)) {
				return nil, nil, l.runtime(fmt.Errorf("result=%s is no JSON", text))
			}
			return json.RawMessage(text), nil, nil
		case "error":
			var code int64
			if _, err := fmt.Sscan(text, &code); err != nil {
				return nil, nil, l.runtime(fmt.Errorf("error=%s is no code", text))
			}
			return nil, &mockclient.RPCError{Code: code, Message: "Refused by the scenario"}, nil
		}
	}
	choice, err := b.expand(l.words[1])
	if err != nil {
		return nil, nil, l.runtime(err)
	}
	if choice == "cancelled" {
		return map[string]any{"outcome": map[string]any{"outcome": "cancelled"}}, nil, nil
	}
	for o := range e.JSON().Path("params.options").Items() {
		if o.Get("kind").Is(choice) {
			return selected(o.Get("optionId").Str()), nil, nil
		}
	}
	f := b.run.failure(l, transcript.Outcome{})
	f.Expected, f.Observed = []string{"a permission that offers " + choice}, golden1(e)
	return nil, nil, &miss{failure: f, verdict: Inconclusive}
}

func compileSet(method, key, value string) func(*line) (func(context.Context, *branch) error, error) {
	n := 1
	if value != "" {
		n = 2
	}
	return func(l *line) (func(context.Context, *branch) error, error) {
		name := ""
		if len(l.words) == n+1 {
			var ok bool
			if name, ok = l.session(0); !ok {
				return nil, l.mistake(l.words[0].column, "open it with session new NAME", "no session %s is open", l.words[0].raw())
			}
			l.words = l.words[1:]
		}
		if _, m := l.need(n-1, "a value"); m != nil {
			return nil, m
		}
		if m := l.atMost(n); m != nil {
			return nil, m
		}
		return func(ctx context.Context, b *branch) error {
			s, err := b.need(ctx, name)
			if err != nil {
				return err
			}
			params := map[string]any{"sessionId": s.id}
			for i, k := range []string{key, value}[:n] {
				text, err := b.expand(l.words[i])
				if err != nil {
					return l.runtime(err)
				}
				params[k] = text
				if k == "value" && (text == "true" || text == "false") {
					params[k], params["type"] = text == "true", "boolean"
				}
			}
			if l.as != "" { // the script judges the answer: it may ask for what is not on offer
				defer func(from int) { b.run.excuse(from, method) }(b.run.t.Len())
			}
			_, err = b.call(ctx, l, s, method, params, true)
			return err
		}, nil
	}
}

func compileRaw(request bool) func(*line) (func(context.Context, *branch) error, error) {
	return func(l *line) (func(context.Context, *branch) error, error) {
		if _, m := l.need(0, "a method"); m != nil {
			return nil, m
		}
		if m := l.atMost(2); m != nil {
			m.Hint = `quote the JSON: request _x/y '{"a": 1}'`
			return nil, m
		}
		return func(ctx context.Context, b *branch) error {
			r := b.run
			if err := r.beginFor(ctx, l.words[0].raw()); err != nil {
				return err
			}
			method, err := b.expand(l.words[0])
			if err != nil {
				return l.runtime(err)
			}
			var params any
			if len(l.words) > 1 {
				text, err := expandText(l.p.file, l.words[1].raw(), b.variable)
				if err != nil {
					return l.runtime(err)
				}
				if !json.Valid([]byte(text)) {
					return l.runtime(fmt.Errorf("%s is no JSON", text))
				}
				params = json.RawMessage(text)
			}
			// Whatever the script writes by hand may break the protocol on
			// purpose, so rules for clients do not judge it.
			defer func(from int) { r.excuse(from, method) }(r.t.Len())
			if !request {
				return b.notify(l, b.current(), method, params)
			}
			_, err = b.call(ctx, l, b.current(), method, params, false)
			return err
		}, nil
	}
}

// excuse marks the frames of a method that were written since an entry.
func (r *run) excuse(from int, method string) {
	for e := range r.t.From(from + 1) {
		if e.Source == transcript.Editor && e.Method == method {
			r.mu.Lock()
			r.lawless[e.Seq] = true
			r.mu.Unlock()
		}
	}
}

func compileRelease(l *line) (func(context.Context, *branch) error, error) {
	gate, m := l.one(0, "the name of a gate")
	if m != nil {
		return nil, m
	}
	l.p.scenario.gates = append(l.p.scenario.gates, gateUse{gate, l.number})
	if m := l.atMost(1); m != nil {
		return nil, m
	}
	return func(ctx context.Context, b *branch) error {
		if err := b.run.begin(ctx); err != nil {
			return err
		}
		e, err := b.run.model.Release(gate)
		if err != nil {
			return l.runtime(err)
		}
		b.acted(b.current(), e)
		return nil
	}, nil
}

// compileFile compiles "FILE @SOURCE|TEXT": do gets both with their variables
// expanded.
func compileFile(do func(b *branch, l *line, name, text string) error) func(*line) (func(context.Context, *branch) error, error) {
	return func(l *line) (func(context.Context, *branch) error, error) {
		if _, m := l.need(1, "the text"); m != nil {
			return nil, m
		}
		if m := l.atMost(2); m != nil {
			return nil, m
		}
		source, err := l.p.source(l, l.words[1])
		if err != nil {
			return nil, err
		}
		return func(_ context.Context, b *branch) error {
			name, err := b.expand(l.words[0])
			if err != nil {
				return l.runtime(err)
			}
			text, err := b.expand(source)
			if err != nil {
				return l.runtime(err)
			}
			return do(b, l, name, text)
		}, nil
	}
}

func writeFile(b *branch, l *line, name, text string) error {
	b.run.did(l)
	return writeFiles(b.run.box.work, map[string][]byte{filepath.ToSlash(name): []byte(text)})
}
