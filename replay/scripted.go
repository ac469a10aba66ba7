package replay

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/acp-test/acp-test/scenarios"
	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/wire"
)

// Script is an agent-side scenario to be played.
type Script struct {
	*scenarios.AgentScript
}

// named is the kind of the note that gives a request of the agent its name.
const named transcript.Kind = "named"

type namedNote struct {
	Name string `json:"name"`
	Seq  int    `json:"seq"`
}

// scripted plays a script.
type scripted struct {
	c      *conn
	script *Script

	mu       sync.Mutex
	count    map[int]int // events per handler, by its line
	sessions int
	last     string            // the newest session
	work     map[string]string // cwd by session
	names    map[string]int    // Seq of named requests
	ignores  map[string]bool
}

func newScripted(c *conn) *scripted {
	return &scripted{c: c, script: c.Script, count: map[int]int{}, work: map[string]string{}, names: map[string]int{}, ignores: map[string]bool{}}
}

func (p *scripted) stays(signal bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if signal {
		return p.ignores["term"]
	}
	return p.ignores["eof"]
}

func (p *scripted) connected() { p.event("connect", transcript.Entry{}) }
func (p *scripted) ended()     { p.event("eof", transcript.Entry{}) }

// event runs the handler for an event, if there is one.
func (p *scripted) event(name string, e transcript.Entry) bool {
	h := p.find(name, e)
	if h == nil {
		return false
	}
	s := &scene{scripted: p, request: e, session: e.Session, sink: sink{c: p.c}, ctx: p.c.ctx}
	if s.session == "" {
		p.mu.Lock()
		s.session = p.last
		p.mu.Unlock()
	}
	s.cancelled = p.c.cancelOf(s.session)
	go s.play(h)
	return true
}

func (p *scripted) find(event string, e transcript.Entry) *scenarios.AgentHandler {
	p.mu.Lock()
	defer p.mu.Unlock()
	var found *scenarios.AgentHandler
	for i := range p.script.Handlers {
		h := &p.script.Handlers[i]
		if h.Event != event || h.Text != nil && !h.Text.MatchString(promptText(e)) {
			continue
		}
		p.count[h.Line]++
		if found == nil && (h.Nth == 0 || h.Nth == p.count[h.Line]) {
			found = h
		}
	}
	return found
}

func (p *scripted) received(e transcript.Entry) {
	if e.Kind != transcript.Request && e.Kind != transcript.Notification {
		return
	}
	v := e.JSON().Get("params")
	p.mu.Lock()
	switch e.Method {
	case "session/new":
		p.sessions++
		p.last = fmt.Sprintf("session-%d", p.sessions)
		p.work[p.last] = v.Get("cwd").Str()
	case "session/load", "session/resume":
		p.last = e.Session
		p.work[p.last] = v.Get("cwd").Str()
	}
	if e.Method == "session/new" {
		e.Session = p.last
	}
	p.mu.Unlock()
	if p.event(e.Method, e) || e.Kind == transcript.Notification {
		return
	}
	if e.Method == "session/prompt" {
		sink{c: p.c}.send(updateOf(e.Session, `{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"Done."}}`))
	}
	sink{c: p.c}.send(p.plain(e))
}

// plain is the answer of a plain agent.
func (p *scripted) plain(e transcript.Entry) []byte {
	switch e.Method {
	case "initialize":
		return resultOf(e.ID, p.initialized())
	case "session/new":
		return resultOf(e.ID, `{"sessionId":`+quoted(e.Session)+`}`)
	case "session/prompt":
		return resultOf(e.ID, `{"stopReason":"end_turn"}`)
	case "session/list":
		return resultOf(e.ID, `{"sessions":[]}`)
	case "authenticate", "logout", "session/load", "session/resume", "session/close", "session/delete", "session/set_mode":
		return resultOf(e.ID, `{}`)
	}
	return errorOf(e.ID, "-32601", "method not found: "+e.Method)
}

func (p *scripted) initialized() string {
	root := map[string]any{}
	for path, value := range p.script.Capabilities {
		at := root
		keys := strings.Split(path, ".")
		for _, k := range keys[:len(keys)-1] {
			next, ok := at[k].(map[string]any)
			if !ok {
				next = map[string]any{}
				at[k] = next
			}
			at = next
		}
		at[keys[len(keys)-1]] = raw(value)
	}
	text, err := marshal(map[string]any{"protocolVersion": 1, "agentCapabilities": root, "agentInfo": map[string]any{"name": "acp-test-scripted", "version": "1"}, "authMethods": []any{}})
	if err != nil {
		return `{"protocolVersion":1}`
	}
	return string(text)
}

// scene is one run of a handler.
type scene struct {
	*scripted
	ctx       context.Context
	request   transcript.Entry // what is handled; zero for connect and eof
	session   string
	cancelled <-chan struct{}
	sink      sink
	index     int // $I
	answered  bool
}

func (s *scene) play(h *scenarios.AgentHandler) {
	err := s.acts(h.Acts)
	var end exited
	switch {
	case errors.As(err, &end), s.ctx.Err() != nil:
		return
	case err != nil:
		s.c.Log.Event(0, transcript.Note, transcript.Remark, s.session, map[string]any{"code": "script", "text": err.Error()})
	}
	// An open request is left open on purpose only where the handler waits.
	if !s.answered && s.request.Kind == transcript.Request && err == nil {
		if s.request.Method == "session/prompt" && hasAct(h.Acts, "await") {
			return
		}
		s.sink.send(s.plain(s.request))
	}
}

func hasAct(acts []scenarios.AgentAct, name string) bool {
	for _, a := range acts {
		if a.Name == name || hasAct(a.Body, name) {
			return true
		}
	}
	return false
}

// exited ends all handlers: the script has ended the process.
type exited struct{}

func (exited) Error() string { return "the script has ended" }

func (s *scene) acts(acts []scenarios.AgentAct) error {
	for i := range acts {
		if err := s.act(&acts[i]); err != nil {
			var end exited
			if errors.As(err, &end) {
				return err
			}
			return fmt.Errorf("line %d, %s: %w", acts[i].Line, acts[i].Name, err)
		}
		if s.ctx.Err() != nil {
			return exited{}
		}
	}
	return nil
}

// words are the arguments of an act with the variables replaced.
func (s *scene) words(a *scenarios.AgentAct) (words []string, options map[string]string, err error) {
	for _, w := range a.Words {
		text, err := s.expand(w)
		if err != nil {
			return nil, nil, err
		}
		words = append(words, text)
	}
	options = map[string]string{}
	for k, w := range a.Options {
		if options[k], err = s.expand(w); err != nil {
			return nil, nil, err
		}
	}
	return words, options, nil
}

// inText is a variable within quotes, where JSON stands.
var inText = regexp.MustCompile(`\$([A-Za-z_][A-Za-z0-9_]*)((?:\.[A-Za-z0-9_]+)*)`)

// expand replaces the variables of a word, those within quotes too; what is no
// variable there stays as it is.
func (s *scene) expand(w scenarios.AgentWord) (string, error) {
	text, err := w.Expand(s.variable)
	if err != nil {
		return "", err
	}
	return inText.ReplaceAllStringFunc(text, func(m string) string {
		parts := inText.FindStringSubmatch(m)
		if slices.Contains([]string{"SESSION", "WORK", "I", "ID"}, parts[1]) {
			value, _ := s.variable(parts[1])
			return value + parts[2]
		}
		if value, err := s.variable(m[1:]); err == nil {
			return value
		}
		return m
	}), nil
}

func (s *scene) variable(name string) (string, error) {
	switch name {
	case "SESSION":
		return s.session, nil
	case "WORK":
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.work[s.session], nil
	case "I":
		return strconv.Itoa(s.index), nil
	case "ID":
		return string(s.request.ID), nil
	}
	head, path, _ := strings.Cut(name, ".")
	s.mu.Lock()
	seq, ok := s.scripted.names[head]
	s.mu.Unlock()
	if !ok {
		return "", fmt.Errorf("unknown variable $%s", name)
	}
	e, ok := s.c.answer(s.ctx, seq)
	if !ok {
		return "", exited{}
	}
	v := e.JSON().Get("result").Path(path)
	return v.Text(), nil
}

func (s *scene) act(a *scenarios.AgentAct) error {
	words, o, err := s.words(a)
	if err != nil {
		return err
	}
	switch a.Name {
	case "text", "thought", "user":
		kind := map[string]string{"text": "agent_message_chunk", "thought": "agent_thought_chunk", "user": "user_message_chunk"}[a.Name]
		s.update(`{"sessionUpdate":"` + kind + `"` + member("messageId", o["id"]) + `,"content":{"type":"text","text":` + quoted(words[0]) + `}}`)
	case "large":
		n, err := strconv.Atoi(words[0])
		if err != nil || n < 0 || n > 1<<30 {
			return fmt.Errorf("%q is no number of bytes", words[0])
		}
		s.update(`{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"` + strings.Repeat("é", n/2) + `"}}`)
	case "update":
		session := s.session
		if o["session"] != "" {
			session = o["session"]
		}
		s.sink.send(updateOf(session, words[0]))
	case "tool":
		s.update(`{"sessionUpdate":"tool_call","toolCallId":` + quoted(words[0]) + `,"title":` + quoted(words[1]) + member("kind", o["kind"]) + member("status", o["status"]) + `}`)
	case "tool-update":
		content := ""
		if o["text"] != "" {
			content = `,"content":[{"type":"content","content":{"type":"text","text":` + quoted(o["text"]) + `}}]`
		}
		s.update(`{"sessionUpdate":"tool_call_update","toolCallId":` + quoted(words[0]) + member("status", o["status"]) + member("title", o["title"]) + content + `}`)
	case "permission":
		options, err := permissionOptions(words[1:])
		if err != nil {
			return err
		}
		s.ask(a.As, "session/request_permission", `{"sessionId":`+quoted(s.session)+`,"toolCall":{"toolCallId":`+quoted(words[0])+member("title", o["title"])+`},"options":[`+options+`]}`, o["id"])
	case "request":
		s.ask(a.As, words[0], words[1], o["id"])
	case "notify":
		s.sink.send(fmt.Appendf(nil, `{"jsonrpc":"2.0","method":%s,"params":%s}`, quoted(words[0]), words[1]))
	case "await":
		return s.await(words[0], o["within"])
	case "result":
		s.reply(resultOf(s.request.ID, words[0]))
	case "error":
		s.reply(errorOf(s.request.ID, words[0], words[1]))
	case "end":
		s.reply(resultOf(s.request.ID, `{"stopReason":`+quoted(words[0])+`}`))
	case "send":
		s.sink.send([]byte(words[0]))
	case "write":
		text, err := strconv.Unquote(`"` + strings.ReplaceAll(words[0], `"`, `\"`) + `"`)
		if err != nil {
			return fmt.Errorf("%q has a bad escape", words[0])
		}
		s.sink.bytes([]byte(text))
	case "stderr":
		return s.stderr(words[0], o["bytes"])
	case "pause":
		d, err := time.ParseDuration(words[0])
		if err != nil {
			return err
		}
		select {
		case <-time.After(d):
		case <-s.ctx.Done():
			return exited{}
		}
	case "repeat":
		n, err := strconv.Atoi(words[0])
		if err != nil {
			return fmt.Errorf("%q is no number", words[0])
		}
		for i := range n {
			s.index = i + 1
			if err := s.acts(a.Body); err != nil {
				return err
			}
		}
	case "join":
		inner := *s
		inner.sink.join = &bytes.Buffer{}
		err := inner.acts(a.Body)
		s.answered = inner.answered
		inner.sink.flush()
		return err
	case "split":
		n, err := strconv.Atoi(words[0])
		if err != nil || n < 1 {
			return fmt.Errorf("%q is no number of bytes", words[0])
		}
		inner := *s
		inner.sink.split = n
		err = inner.acts(a.Body)
		s.answered = inner.answered
		return err
	case "go":
		inner := *s
		go inner.play(&scenarios.AgentHandler{Acts: a.Body})
	case "exit":
		code, err := strconv.Atoi(words[0])
		if err != nil {
			return err
		}
		s.c.exit <- code
		return exited{}
	case "die":
		s.c.Die()
		return exited{}
	case "close":
		s.c.close()
	case "fork":
		return s.c.Child()
	case "ignore":
		s.mu.Lock()
		s.ignores[words[0]] = true
		s.mu.Unlock()
	}
	return nil
}

func member(key, value string) string {
	if value == "" {
		return ""
	}
	return `,"` + key + `":` + quoted(value)
}

func permissionOptions(words []string) (string, error) {
	var out []string
	for _, w := range words {
		if w == "-" {
			continue
		}
		kind, id, ok := strings.Cut(w, ":")
		if !ok {
			return "", fmt.Errorf("%q is no option: KIND:ID is expected", w)
		}
		out = append(out, `{"optionId":`+quoted(id)+`,"name":`+quoted(strings.ReplaceAll(kind, "_", " "))+`,"kind":`+quoted(kind)+`}`)
	}
	return strings.Join(out, ","), nil
}

func (s *scene) update(update string) { s.sink.send(updateOf(s.session, update)) }

func (s *scene) reply(line []byte) {
	s.answered = true
	s.sink.send(line)
}

// ask sends a request and remembers it by its name.
func (s *scene) ask(name, method, params, id string) {
	if id == "" {
		id = s.c.newID()
	}
	e := s.sink.send(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"method":%s,"params":%s}`, id, quoted(method), params))
	s.mu.Lock()
	s.scripted.names[name] = e.Seq
	s.mu.Unlock()
	s.c.Log.Event(0, transcript.Note, named, s.session, namedNote{name, e.Seq})
}

// await waits for an answer, a cancel, or a frame with a method that comes from
// now on. A wait that ends without it is no mistake: the checks tell.
func (s *scene) await(what, within string) error {
	ctx, cancel := s.ctx, context.CancelFunc(func() {})
	if within != "" {
		d, err := time.ParseDuration(within)
		if err != nil {
			return err
		}
		ctx, cancel = context.WithTimeout(ctx, d)
	}
	defer cancel()
	if what == "cancel" {
		select {
		case <-s.cancelled:
		case <-ctx.Done():
		}
		return nil
	}
	s.mu.Lock()
	seq, ok := s.scripted.names[what]
	s.mu.Unlock()
	if ok {
		s.c.answer(ctx, seq)
		return nil
	}
	from := s.c.Log.Len() + 1
	for {
		next := s.c.frame()
		for e := range s.c.Log.From(from) {
			if e.Source == transcript.Editor && e.Method == what {
				return nil
			}
			from = e.Seq + 1
		}
		select {
		case <-next:
		case <-ctx.Done():
			return nil
		}
	}
}

func (s *scene) stderr(text, size string) error {
	n := len(text)
	if size != "" {
		var err error
		if n, err = strconv.Atoi(size); err != nil {
			return err
		}
	}
	line := text + "\n"
	for written := 0; written < n && s.ctx.Err() == nil; written += len(line) {
		if _, err := s.c.Err.Write([]byte(line)); err != nil {
			return nil // an editor that closed it
		}
	}
	return nil
}

// raw is a value of a script as JSON: itself if it is JSON, else a string.
func raw(value string) any {
	if v, err := wire.Parse([]byte(value)); err == nil {
		return rawJSON(v.Raw())
	}
	return value
}
