package scenarios

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/acp-test/acp-test/mistake"
	"github.com/acp-test/acp-test/protocol/acp/acpframe"
	"github.com/acp-test/acp-test/scenarios/script"
	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/wire"
)

// pattern is a compiled description of one kind of entry with conditions on
// its fields.
type pattern struct {
	text   string // as written
	kind   string
	arg    script.Word // of turn, response, gate, exit, model, answer, sent, terminal
	hasArg bool
	fields []field
	// session is the name of the session it must belong to; "" the branch's,
	// "any" whatever.
	session string
}

type field struct {
	path     string
	operator string // = != ~ !~ ?
	value    script.Word
	regexp   *regexp.Regexp // if value is literal
}

// kinds of patterns with the argument they take ("" none, "?" optional) and
// what they mean, for help.
var patternKinds = []struct{ name, arg, help string }{
	{"agent_message", "", "a chunk of the agent's text; text is its text"},
	{"agent_thought", "", "a chunk of the agent's thoughts; text is its text"},
	{"user_message", "", "a chunk of the user's text"},
	{"tool_call", "", "the first report of a tool call"},
	{"tool_call_update", "", "a later report of a tool call"},
	{"plan", "", "a plan"},
	{"available_commands_update", "", "the agent's commands"},
	{"current_mode_update", "", "the session's mode"},
	{"config_option_update", "", "the session's options"},
	{"session_info_update", "", "title and time of the session"},
	{"usage_update", "", "tokens and cost"},
	{"update", "", "any session/update"},
	{"content", "", "any update that belongs to a turn: text, thought, tool call, plan"},
	{"permission", "", "a session/request_permission"},
	{"answer", "?", "the editor's answer to a permission: an option kind, cancelled, or error"},
	{"elicitation", "", "an elicitation/create"},
	{"request", "METHOD", "a request of the agent; METHOD may be a|b"},
	{"notification", "METHOD", "a notification of the agent"},
	{"turn", "?", "the end of a turn with one of the stop reasons given (a|b), any, or error"},
	{"response", "REF", "the response to the request a line named with as"},
	{"malformed", "", "a line of the agent that is no message"},
	{"sent", "METHOD", "a request or notification of the editor"},
	{"gate", "NAME", "the model holds its reply at this gate"},
	{"model", "EVENT", "request, done, aborted, fault or unmatched: what the model server saw"},
	{"exit", "?", "the agent's exit, with this status"},
	{"terminal", "EVENT", "started, output, exit or released: what happened to a terminal"},
	{"stderr", "", "something the agent wrote to stderr; text is what"},
	{"note", "", "a remark of the editor or the model server"},
}

// aliases are the full names of kinds that have a short one.
var kindAliases = map[string]string{
	"agent_message_chunk":        "agent_message",
	"agent_thought_chunk":        "agent_thought",
	"user_message_chunk":         "user_message",
	"session/request_permission": "permission",
	"elicitation/create":         "elicitation",
}

func kindInfo(name string) (arg string, ok bool) {
	for _, k := range patternKinds {
		if k.name == name {
			return k.arg, true
		}
	}
	return "", false
}

func kindNames() []string {
	var names []string
	for _, k := range patternKinds {
		names = append(names, k.name)
	}
	return names
}

// pattern reads a pattern from words[from:], up to a word of stop or the end,
// and returns the index behind it.
func (l *line) pattern(from int, stop ...string) (*pattern, int, *Mistake) {
	if from >= len(l.words) {
		return nil, 0, l.usage(len(l.Text)+1, "a pattern is missing")
	}
	first := l.words[from]
	name, ok := first.Literal()
	if !ok || first.Quoted {
		return nil, 0, l.mistake(first.Column, "a pattern begins with a kind of entry: acp-test help patterns", "%q is no pattern", first.Raw())
	}
	p := &pattern{kind: name}
	if full, ok := kindAliases[name]; ok {
		p.kind = full
	}
	arg, known := kindInfo(p.kind)
	switch {
	case known:
	case strings.Contains(name, "/"):
		p.kind, p.arg, p.hasArg = "method", first, true
	default:
		return nil, 0, l.mistake(first.Column, strings.TrimSpace(mistake.Nearest(name, kindNames())+" a pattern begins with a kind of entry: acp-test help patterns"), "%q is no pattern", name)
	}
	i := from + 1
	for ; i < len(l.words); i++ {
		w := l.words[i]
		if s, ok := w.Literal(); ok && !w.Quoted && slices.Contains(stop, s) {
			break
		}
		if i == from+1 && arg != "" && !isField(w) {
			p.arg, p.hasArg = w, true
			continue
		}
		f, m := l.field(w)
		if m != nil {
			return nil, 0, m
		}
		if f.path == "session" && f.operator == "=" {
			s, ok := f.value.Literal()
			if !ok || s != "any" && !l.p.sessions[s] {
				return nil, 0, l.mistake(w.Column, "", "session= takes the name of a session opened above, or any")
			}
			p.session = s
			continue
		}
		p.fields = append(p.fields, *f)
	}
	if arg != "" && arg != "?" && !p.hasArg {
		return nil, 0, l.mistake(first.Column, name+" "+arg, "%s needs %s", name, arg)
	}
	if m := l.checkArg(p); m != nil {
		return nil, 0, m
	}
	var text []string
	for _, w := range l.words[from:i] {
		text = append(text, w.Raw())
	}
	p.text = strings.Join(text, " ")
	return p, i, nil
}

var stopReasons = []string{"end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled"}

var modelEvents = map[string]transcript.Kind{
	"request": transcript.ModelRequest, "done": transcript.ModelDone, "aborted": transcript.ModelAborted,
	"fault": transcript.ModelFault, "unmatched": transcript.ModelUnmatched, "released": transcript.GateReleased,
}

var terminalEvents = map[string]transcript.Kind{
	"started": transcript.TermStarted, "output": transcript.TermOutput, "exit": transcript.TermExit, "released": transcript.TermReleased,
}

// checkArg finds mistakes in the argument of a pattern before the run.
func (l *line) checkArg(p *pattern) *Mistake {
	s, ok := p.arg.Literal()
	if !p.hasArg || !ok {
		return nil
	}
	switch p.kind {
	case "turn":
		for _, r := range strings.Split(s, "|") {
			if !slices.Contains(stopReasons, r) && r != "any" && r != "error" {
				return l.mistake(p.arg.Column, mistake.Nearest(r, append(stopReasons, "any", "error")), "%q is no stop reason", r)
			}
		}
	case "model":
		if _, ok := modelEvents[s]; !ok {
			return l.mistake(p.arg.Column, "request, done, aborted, fault, unmatched or released", "the model has no event %q", s)
		}
	case "terminal":
		if _, ok := terminalEvents[s]; !ok {
			return l.mistake(p.arg.Column, "started, output, exit or released", "a terminal has no event %q", s)
		}
	case "gate":
		l.p.scenario.gates = append(l.p.scenario.gates, gateUse{s, l.Number})
	case "response":
		if !l.p.names[s] {
			return l.mistake(p.arg.Column, "name a request with \"… as NAME\" first", "no line above is named %s", s)
		}
	}
	return nil
}

func isField(w script.Word) bool {
	if _, _, _, ok := w.Cut("!=", "!~", "=", "~"); ok {
		return true
	}
	s, ok := w.Literal()
	return ok && !w.Quoted && len(s) > 1 && strings.HasSuffix(s, "?")
}

func (l *line) field(w script.Word) (*field, *Mistake) {
	if key, op, value, ok := w.Cut("!=", "!~", "=", "~"); ok {
		f := &field{path: key, operator: op, value: value}
		if s, literal := value.Literal(); literal && strings.HasSuffix(op, "~") {
			re, err := regexp.Compile(s)
			if err != nil {
				return nil, l.mistake(value.Column, "", "bad regular expression: %v", err)
			}
			f.regexp = re
		}
		return f, nil
	}
	if s, ok := w.Literal(); ok && !w.Quoted && len(s) > 1 && strings.HasSuffix(s, "?") {
		return &field{path: strings.TrimSuffix(s, "?"), operator: "?"}, nil
	}
	return nil, l.mistake(w.Column, "a condition is path=value, path!=value, path~regexp or path?", "%q is no condition", w.Raw())
}

// bound is a pattern with its variables expanded, for one branch.
type bound struct {
	text    string
	kind    string
	arg     string
	ref     int // of response
	session string
	fields  []boundField
	prompt  int   // Seq of the prompt that is open where we look from; 0 if none
	over    []int // prompts whose turns have ended: a second answer to one ends no other
}

type boundField struct {
	path, operator, value string
	regexp                *regexp.Regexp
}

func (p *pattern) bind(b *branch) (*bound, error) {
	x := &bound{text: p.text, kind: p.kind}
	if p.hasArg {
		arg, err := b.expand(p.arg)
		if err != nil {
			return nil, err
		}
		x.arg = arg
	}
	if p.kind == "response" {
		e, ok := b.run.named(x.arg)
		if !ok {
			return nil, fmt.Errorf("%s has not happened", x.arg)
		}
		x.ref = e.Seq
	}
	switch p.session {
	case "any":
	case "":
		if s := b.current(); s != nil {
			x.session = s.id
		}
	default:
		s := b.run.session(p.session)
		if s == nil {
			return nil, b.run.notOpen(p.session)
		}
		x.session = s.id
	}
	for _, f := range p.fields {
		value, err := b.expand(f.value)
		if err != nil {
			return nil, err
		}
		bf := boundField{f.path, f.operator, value, f.regexp}
		if strings.HasSuffix(f.operator, "~") && bf.regexp == nil {
			if bf.regexp, err = regexp.Compile(value); err != nil {
				return nil, fmt.Errorf("%s~%s: %w", f.path, value, err)
			}
		}
		x.fields = append(x.fields, bf)
	}
	return x, nil
}

// match reports whether an entry is of the pattern's kind and session and
// fulfils all its conditions.
func (x *bound) match(e transcript.Entry) bool {
	if !x.matchKind(e) {
		return false
	}
	for _, f := range x.fields {
		if !f.match(e) {
			return false
		}
	}
	return true
}

func (x *bound) matchKind(e transcript.Entry) bool {
	own := x.session == "" || e.Session == "" || e.Session == x.session
	fromAgent := e.Source == transcript.Agent
	switch x.kind {
	case "method":
		return own && fromAgent && oneOf(e.Method, x.arg) && (e.Kind == transcript.Request || e.Kind == transcript.Notification)
	case "request":
		return own && fromAgent && e.Kind == transcript.Request && oneOf(e.Method, x.arg)
	case "notification":
		return own && fromAgent && e.Kind == transcript.Notification && oneOf(e.Method, x.arg)
	case "permission":
		return own && fromAgent && e.Kind == transcript.Request && e.Method == "session/request_permission"
	case "elicitation":
		return own && fromAgent && e.Kind == transcript.Request && e.Method == "elicitation/create"
	case "answer":
		return own && e.Source == transcript.Editor && e.Kind == transcript.Response && e.Method == "session/request_permission" && (x.arg == "" || answerKind(e) == x.arg)
	case "turn":
		return own && turnEnd(e) && !slices.Contains(x.over, e.Ref)
	case "response":
		return fromAgent && e.Kind == transcript.Response && e.Ref == x.ref
	case "malformed":
		return fromAgent && e.Kind == transcript.Malformed
	case "sent":
		return own && e.Source == transcript.Editor && (e.Kind == transcript.Request || e.Kind == transcript.Notification) && e.Method == x.arg
	case "gate":
		return e.Source == transcript.Model && e.Kind == transcript.Gate && e.JSON().Get("gate").Is(x.arg)
	case "model":
		return e.Source == transcript.Model && e.Kind == modelEvents[x.arg] && (x.session == "" || e.Session == "" || e.Session == x.session)
	case "exit":
		return e.Source == transcript.Process && e.Kind == transcript.Exited
	case "terminal":
		return e.Source == transcript.Terminal && e.Kind == terminalEvents[x.arg]
	case "stderr":
		return e.Source == transcript.Stderr
	case "note":
		return e.Source == transcript.Note && e.Kind == transcript.Remark
	}
	if !own || !fromAgent {
		return false
	}
	switch u := acpframe.Update(e); {
	case u == "":
		return false
	case x.kind == "update":
		return true
	case x.kind == "content":
		return contentUpdate(u)
	default:
		return u == x.kind || u == x.kind+"_chunk"
	}
}

// contentUpdate tells the updates that belong to a turn from those that report
// state and are legal at any time.
func contentUpdate(kind string) bool {
	switch kind {
	case "user_message_chunk", "agent_message_chunk", "agent_thought_chunk", "tool_call", "tool_call_update", "plan":
		return true
	}
	return false
}

func turnEnd(e transcript.Entry) bool {
	return e.Source == transcript.Agent && e.Kind == transcript.Response && e.Method == "session/prompt"
}

// stopReason is the stop reason of a turn's end, or "error".
func stopReason(e transcript.Entry) string {
	v := e.JSON()
	if v.Get("error").Exists() {
		return "error"
	}
	return v.Get("result").Get("stopReason").Text()
}

// answerKind is what the editor answered to a permission: the kind of option,
// which Remark entries do not tell, so the option's id stands for it, or
// cancelled, or error.
func answerKind(e transcript.Entry) string {
	v := e.JSON()
	if v.Get("error").Exists() {
		return "error"
	}
	outcome := v.Get("result").Get("outcome")
	if outcome.Get("outcome").Is("selected") {
		return outcome.Get("optionId").Str()
	}
	return outcome.Get("outcome").Str()
}

func (f *boundField) match(e transcript.Entry) bool {
	v, text, found := lookup(e, f.path)
	switch f.operator {
	case "?":
		// A null result is a success all the same, as the pages of the
		// specification show it; what is wrong with it is for SHAPE to say.
		return found && (f.path == "result" || !v.IsNull())
	case "=":
		return found && oneOf(text, f.value)
	case "!=":
		return !found || !oneOf(text, f.value)
	case "~":
		return found && f.regexp.MatchString(text)
	case "!~":
		return !found || !f.regexp.MatchString(text)
	}
	return false
}

func oneOf(text, values string) bool {
	return text == values || strings.Contains(values, "|") && slices.Contains(strings.Split(values, "|"), text)
}

// lookup finds the value at a path of an entry: first in the part of the
// message a reader means, then further out. "text" is the text of a chunk of a
// message or of stderr.
func lookup(e transcript.Entry, path string) (v wire.Value, text string, found bool) {
	switch {
	case path == "raw":
		return wire.Value{}, string(e.Raw), true
	case path == "problem" && e.Problem != "":
		return wire.Value{}, e.Problem, true
	case path == "text" && e.Source == transcript.Stderr:
		return wire.Value{}, string(e.Raw), true
	}
	root := e.JSON()
	var within []wire.Value
	switch e.Kind {
	case transcript.Request, transcript.Notification:
		params := root.Get("params")
		if u := params.Get("update"); u.Exists() {
			if path == "text" {
				path = "content.text"
			}
			within = append(within, u)
		}
		within = append(within, params, params.Get("toolCall"))
	case transcript.Response:
		within = append(within, root.Get("result"), root.Get("error"))
	}
	for _, in := range append(within, root) {
		if v := in.Path(path); v.Exists() {
			return v, v.Text(), true
		}
	}
	return wire.Value{}, "", false
}
