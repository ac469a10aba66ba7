package canonical

import (
	"strconv"
	"strings"
	"sync"

	"github.com/acp-test/acp-test/golden"
	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/wire"
)

// shortMethod returns a method in the form in which lines show it.
func shortMethod(method string) string {
	if method == "session/request_permission" {
		return "request_permission"
	}
	if strings.ContainsAny(method, " \t\n\r\"") || method == "" {
		return golden.Quote(method)
	}
	return method
}

// ownSession omits the session id of an agent's line, because the heading of the section names the session. A missing
// id, or one that is not a string, is shown. A line without a section shows its session at the end.
func (l *line) ownSession(o golden.Object) {
	s := o.Take("sessionId")
	if s.Kind() != wire.String && o.Value.Kind() == wire.Object {
		l.Pair("sessionId", s)
	}
	if l.mask.Plain() && s.Kind() == wire.String {
		l.session = s.Str()
	}
}

// piece writes one part of a message to a line.
type piece func(l *line, o golden.Object)

// form lists the parts of messages of some methods, in the order in which lines show them.
type form struct {
	methods string // method names, separated by blanks
	parts   []piece
}

func id(key string, class golden.IDClass) piece {
	return func(l *line, o golden.Object) { l.ID(o, key, class) }
}

func keys(names ...string) piece { return func(l *line, o golden.Object) { l.Keys(o, names...) } }

func word(key string) piece {
	return func(l *line, o golden.Object) { l.Formed(o, key, golden.QuoteUnlessWord) }
}

func quoted(key string) piece { return func(l *line, o golden.Object) { l.Quoted(o, key) } }

func path(key string) piece { return func(l *line, o golden.Object) { l.Path(o, key) } }

func size(key string) piece { return func(l *line, o golden.Object) { l.Size(o, key) } }

func software(key string) piece { return func(l *line, o golden.Object) { l.implementation(o, key) } }

func oneOf(key string, vocabulary []string) piece {
	return func(l *line, o golden.Object) { l.Bare(o, key, vocabulary...) }
}

func options(l *line, o golden.Object) { l.Several(o, "configOptions", l.configOption) }

// asked maps methods to the forms of their requests and notifications.
var asked = byMethod([]form{
	{"session/prompt", []piece{id("sessionId", sessionID), func(l *line, o golden.Object) {
		l.List("prompt", o.Take("prompt"), l.block)
	}}},
	{"session/cancel session/close session/delete", []piece{id("sessionId", sessionID)}},
	{"session/new session/load session/resume session/fork session/list", []piece{id("sessionId", sessionID),
		keys("cwd", "additionalDirectories", "mcpServers", "cursor")}},
	{"session/set_mode", []piece{id("sessionId", sessionID), word("modeId")}},
	{"session/set_config_option", []piece{id("sessionId", sessionID), word("configId"), keys("value", "type")}},
	{"session/request_permission", []piece{(*line).ownSession, (*line).permission}},
	{"fs/write_text_file", []piece{(*line).ownSession, path("path"), size("content")}},
	{"fs/read_text_file", []piece{(*line).ownSession, path("path"), keys("line", "limit")}},
	{"terminal/create", []piece{(*line).ownSession, quoted("command"), keys("args", "cwd", "env", "outputByteLimit")}},
	{"terminal/output terminal/wait_for_exit terminal/kill terminal/release", []piece{(*line).ownSession,
		id("terminalId", terminalID)}},
	{"elicitation/create", []piece{ifThere("sessionId", (*line).ownSession), oneOf("mode", modes), quoted("message"),
		ifThere("toolCallId", id("toolCallId", callID)), keys("requestId", "elicitationId", "url", "requestedSchema")}},
	{"elicitation/complete", []piece{keys("elicitationId")}},
	{"$/cancel_request", []piece{(*line).cancelled}},
	{"initialize", []piece{keys("protocolVersion"), software("clientInfo"), keys("clientCapabilities")}},
	{"authenticate", []piece{keys("methodId")}},
})

// answered maps methods to the forms of their successful results.
var answered = byMethod([]form{
	{"session/new session/load session/resume session/fork", []piece{id("sessionId", sessionID), keys("modes"),
		func(l *line, o golden.Object) {
			if o.Value.Get("configOptions").Kind() == wire.Array {
				l.Word("configOptions")
			}
		}, options}},
	{"session/set_config_option", []piece{options}},
	{"fs/read_text_file", []piece{size("content")}},
	{"terminal/create", []piece{id("terminalId", terminalID)}},
	{"terminal/output", []piece{quoted("output"), keys("truncated", "exitStatus")}},
	{"terminal/wait_for_exit", []piece{keys("exitCode", "signal")}},
	{"initialize", []piece{keys("protocolVersion"), software("agentInfo"), keys("agentCapabilities", "authMethods")}},
	{"session/list", []piece{keys("sessions", "nextCursor")}},
	{"session/close session/delete session/set_mode session/cancel fs/write_text_file terminal/kill terminal/release " +
		"authenticate logout", nil},
})

func byMethod(forms []form) func() map[string][]piece {
	return sync.OnceValue(func() map[string][]piece {
		all := map[string][]piece{}
		for _, f := range forms {
			for method := range strings.FieldsSeq(f.methods) {
				all[method] = f.parts
			}
		}
		return all
	})
}

// ifThere returns a piece that calls show only if the message has the member key.
func ifThere(key string, show piece) piece {
	return func(l *line, o golden.Object) {
		if o.Value.Get(key).Exists() {
			show(l, o)
		}
	}
}

// shows writes the parts of a message according to its form. If the method has no form, it writes all members.
func (l *line) shows(forms map[string][]piece, method string, o golden.Object) {
	parts, known := forms[method]
	if !known {
		l.unknownMethod(o)
		return
	}
	for _, show := range parts {
		show(l, o)
	}
	l.Keys(o, "_meta")
	l.Rest(o)
}

// ask shows a request or notification.
func (l *line) ask(e transcript.Entry, params wire.Value) {
	if e.Method == "session/update" && e.Source == transcript.Agent {
		l.update(params)
		return
	}
	l.Word(shortMethod(e.Method))
	if params.Exists() {
		l.shows(asked(), e.Method, golden.Open(params))
	}
}

// permission shows the tool call and the options of a permission request.
func (l *line) permission(o golden.Object) {
	if call := o.Value.Get("toolCall"); call.Kind() == wire.Object {
		o.Take("toolCall")
		t := golden.Open(call)
		l.tool(t)
		l.Rest(t)
	}
	l.Separated(o, "options", " ", l.option)
}

// unknownMethod shows the params of a method without a form. It still recognises a session id.
func (l *line) unknownMethod(o golden.Object) {
	if o.Value.Get("sessionId").Kind() == wire.String {
		l.ID(o, "sessionId", sessionID)
	}
	if o.Value.Kind() != wire.Object {
		l.Pair("params", o.Value)
		return
	}
	l.Members(o)
}

// cancelled shows the method of the request that $/cancel_request names, because the id differs from run to run. The
// caller has set l.options to a function that returns the method.
func (l *line) cancelled(o golden.Object) {
	id := o.Take("requestId")
	if l.options != nil {
		if name := l.options(string(id.Raw())); name != "" {
			l.Word(name)
			return
		}
	}
	l.Known("requestId", id)
}

// option shows a PermissionOption by its kind. It adds the name only if the name says more than the kind. The id is
// not shown, because answers refer to the option by its kind.
func (l *line) option(v wire.Value) {
	o := golden.Open(v)
	id, kind, name := o.Take("optionId"), o.Take("kind"), o.Take("name")
	label := ""
	if l.options != nil && id.Kind() == wire.String {
		label = l.options(id.Str())
	}
	switch {
	case label != "":
		l.Word(label)
	case kind.Kind() == wire.String:
		l.Word(golden.QuoteUnlessWord(kind.Str()))
		l.Known("optionId", id)
	default:
		l.Known("optionId", id)
		l.Known("kind", kind)
	}
	plainName := strings.ReplaceAll(strings.ToLower(name.Str()), " ", "_")
	if name.Kind() != wire.String {
		l.Known("name", name)
	} else if !kind.Is(plainName) {
		l.Text(name.Str())
	}
	l.Keys(o, "_meta")
	l.Rest(o)
}

// implementation shows an Implementation as name/title/version.
func (l *line) implementation(o golden.Object, key string) {
	v := o.Take(key)
	if v.Kind() != wire.Object {
		l.Known(key, v)
		return
	}
	l.Pair(key, v)
}

// answer shows a response. If shown is set, the line above is the request, so the response does not repeat the method.
func (l *line) answer(e transcript.Entry, v wire.Value, shown bool) {
	if e.Ref == 0 {
		l.Word("response to no request")
		l.Pair("id", v.Get("id"))
	}
	if l.prompt > 0 {
		l.Word("prompt#" + strconv.Itoa(l.prompt))
	}
	if failure := v.Get("error"); failure.Exists() {
		if !shown && e.Method != "" {
			l.Word(shortMethod(e.Method))
		}
		l.failure(failure)
		return
	}
	o := golden.Open(v.Get("result"))
	if o.Value.Kind() != wire.Object {
		l.methodThen(e, shown, "ok")
		if !o.Value.IsNull() {
			l.Pair("result", o.Value)
		} else {
			l.Word("null")
		}
		return
	}
	switch e.Method {
	case "session/prompt":
		if o.Value.Get("stopReason").Kind() != wire.String {
			l.methodThen(e, shown, "ok")
		}
		l.Bare(o, "stopReason", stopReasons...)
	case "session/request_permission":
		l.outcome(e, o, shown)
	case "elicitation/create":
		if !shown {
			l.Word("elicitation/create")
		}
		l.Bare(o, "action", actions...)
		l.Keys(o, "content")
	default:
		l.methodThen(e, shown, "ok")
		l.shows(answered(), e.Method, o)
		return
	}
	l.Keys(o, "_meta")
	l.Rest(o)
}

// outcome shows the answer to a permission request.
func (l *line) outcome(e transcript.Entry, o golden.Object, shown bool) {
	if !shown {
		l.Word(shortMethod(e.Method))
		if l.about != "" {
			l.Word(l.mask.ID(callID, l.about))
		}
	}
	v := o.Take("outcome")
	if v.Kind() != wire.Object {
		l.Known("outcome", v)
		return
	}
	in := golden.Open(v)
	l.Bare(in, "outcome", "selected", "cancelled")
	l.Formed(in, "optionId", func(id string) string {
		if l.options != nil {
			if label := l.options(id); label != "" {
				return label
			}
		}
		return "option=" + golden.Quote(l.mask.Text(id))
	})
	l.Keys(in, "_meta")
	l.Rest(in)
}

func (l *line) failure(v wire.Value) {
	l.Word("error")
	o := golden.Open(v)
	if v.Kind() != wire.Object {
		l.Rest(o)
		return
	}
	if code := o.Take("code"); code.Kind() == wire.Number {
		l.Word(string(code.Raw()))
	} else {
		l.Known("code", code)
	}
	l.Quoted(o, "message")
	l.Keys(o, "data")
	l.Rest(o)
}

func (l *line) methodThen(e transcript.Entry, shown bool, word string) {
	if !shown && e.Method != "" {
		l.Word(shortMethod(e.Method))
	}
	l.Word(word)
}

// line builds the text line of one message.
type line struct {
	*golden.Line
	mask *golden.Mask
	// exact shows the kinds of chunks by their full names.
	exact bool
	// options returns the label of an option of a permission request, by the option's id.
	options func(id string) string
	// about is the id of the tool call in the permission request that the line answers.
	about string
	// prompt is the number of the prompt that the line answers. It is 0 if only one prompt was open.
	prompt int
	// session is the session id that the line shows at its end, or "".
	session string
	// joined is the text of a message that came in several chunks.
	joined *string
	// merged is the merged update of a tool call, which the line shows instead of the entry.
	merged wire.Value
}

// frame returns the line for one frame. v is the parsed entry. If shown is set, the line above is the request that
// this response answers, so the response does not repeat the method.
func (l *line) frame(e transcript.Entry, v wire.Value, shown bool) string {
	l.Word(golden.Arrow(e.Source))
	switch e.Kind {
	case transcript.Request, transcript.Notification, transcript.Response:
	default: // the text may be long and is not parsed
		l.Malformed(e)
		return l.String()
	}
	if e.Kind == transcript.Response {
		l.answer(e, v, shown)
	} else {
		l.ask(e, v.Get("params"))
	}
	l.Envelope(v)
	if l.session != "" {
		l.Word("of " + l.mask.ID(sessionID, l.session))
	}
	return l.String()
}
