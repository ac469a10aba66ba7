package golden

import (
	"strconv"
	"strings"

	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/wire"
)

// shortMethod is a method as it is shown.
func shortMethod(method string) string {
	if method == "session/request_permission" {
		return "request_permission"
	}
	if strings.ContainsAny(method, " \t\n\r\"") || method == "" {
		return quote(method)
	}
	return method
}

// ownSession takes the session of an agent's frame: the section says which one
// it is, so it is shown only if it is missing or no string. A line that stands
// alone names it at its end, where it does not hide what happened.
func (l *line) ownSession(o object) {
	s := o.take("sessionId")
	if s.Kind() != wire.String && o.v.Kind() == wire.Object {
		l.pair("sessionId", s)
	}
	if l.m.plain && s.Kind() == wire.String {
		l.session = s.Str()
	}
}

// ask shows a request or notification.
func (l *line) ask(e transcript.Entry, params wire.Value) {
	if e.Method == "session/update" && e.Source == transcript.Agent {
		l.update(params)
		return
	}
	l.word(shortMethod(e.Method))
	o := open(params)
	if !params.Exists() {
		return
	}
	switch e.Method {
	case "session/prompt":
		l.id(o, "sessionId", sessionID)
		l.list("prompt", o.take("prompt"), l.block)
	case "session/cancel", "session/close", "session/delete":
		l.id(o, "sessionId", sessionID)
	case "session/new", "session/load", "session/resume", "session/fork", "session/list":
		l.id(o, "sessionId", sessionID)
		l.keys(o, "cwd", "additionalDirectories", "mcpServers", "cursor")
	case "session/set_mode":
		l.id(o, "sessionId", sessionID)
		l.string(o, "modeId", quoteUnlessWord)
	case "session/set_config_option":
		l.id(o, "sessionId", sessionID)
		l.string(o, "configId", quoteUnlessWord)
		l.keys(o, "value", "type")
	case "session/request_permission":
		l.ownSession(o)
		if call := o.v.Get("toolCall"); call.Kind() == wire.Object {
			o.take("toolCall")
			t := open(call)
			l.tool(t)
			l.rest(t)
		}
		l.separated(o, "options", " ", l.option)
	case "fs/write_text_file":
		l.ownSession(o)
		l.path(o, "path")
		l.size(o, "content")
	case "fs/read_text_file":
		l.ownSession(o)
		l.path(o, "path")
		l.keys(o, "line", "limit")
	case "terminal/create":
		l.ownSession(o)
		l.quoted(o, "command")
		l.keys(o, "args", "cwd", "env", "outputByteLimit")
	case "terminal/output", "terminal/wait_for_exit", "terminal/kill", "terminal/release":
		l.ownSession(o)
		l.id(o, "terminalId", terminalID)
	case "elicitation/create":
		if o.v.Get("sessionId").Exists() {
			l.ownSession(o)
		}
		l.bare(o, "mode", modes...)
		l.quoted(o, "message")
		if o.v.Get("toolCallId").Exists() {
			l.id(o, "toolCallId", callID)
		}
		l.keys(o, "requestId", "elicitationId", "url", "requestedSchema")
	case "elicitation/complete":
		l.keys(o, "elicitationId")
	case "$/cancel_request":
		l.cancelled(o)
	case "initialize":
		l.keys(o, "protocolVersion")
		l.implementation(o, "clientInfo")
		l.keys(o, "clientCapabilities")
	case "authenticate":
		l.keys(o, "methodId")
	default:
		l.unknownMethod(o)
		return
	}
	l.keys(o, "_meta")
	l.rest(o)
}

// unknownMethod shows the params of a method that is not in the table, whose
// session is known all the same.
func (l *line) unknownMethod(o object) {
	if o.v.Get("sessionId").Kind() == wire.String {
		l.id(o, "sessionId", sessionID)
	}
	if o.v.Kind() != wire.Object {
		l.pair("params", o.v)
		return
	}
	for _, m := range sortedMembers(o.v) {
		if !o.taken[m.key] {
			o.taken[m.key] = true
			l.key(quoteUnlessWord(m.key))
			l.b = compact(l.b, l.m, m.key, m.value)
		}
	}
}

// cancelled shows which request $/cancel_request means. Ids differ from run to
// run; whose it is was put into options by the caller.
func (l *line) cancelled(o object) {
	id := o.take("requestId")
	if l.options != nil {
		if name := l.options(string(id.Raw())); name != "" {
			l.word(name)
			return
		}
	}
	l.known("requestId", id)
}

// option shows a PermissionOption by its kind; its name only if it says more
// than the kind does. The id is opaque: answers name the option by its kind.
func (l *line) option(v wire.Value) {
	o := open(v)
	id, kind, name := o.take("optionId"), o.take("kind"), o.take("name")
	label := ""
	if l.options != nil && id.Kind() == wire.String {
		label = l.options(id.Str())
	}
	switch {
	case label != "":
		l.word(label)
	case kind.Kind() == wire.String:
		l.word(quoteUnlessWord(kind.Str()))
		l.known("optionId", id)
	default:
		l.known("optionId", id)
		l.known("kind", kind)
	}
	plainName := strings.ReplaceAll(strings.ToLower(name.Str()), " ", "_")
	if name.Kind() != wire.String {
		l.known("name", name)
	} else if !kind.Is(plainName) {
		l.text(name.Str())
	}
	l.keys(o, "_meta")
	l.rest(o)
}

// implementation shows an Implementation as name/title/version.
func (l *line) implementation(o object, key string) {
	v := o.take(key)
	if v.Kind() != wire.Object {
		l.known(key, v)
		return
	}
	l.key(key)
	l.b = compact(l.b, l.m, key, v)
}

// answer shows a response. In a response to a request shown just above, the
// method is not repeated.
func (l *line) answer(e transcript.Entry, v wire.Value, shown bool) {
	if e.Ref == 0 {
		l.word("response to no request")
		l.pair("id", v.Get("id"))
	}
	if l.prompt > 0 {
		l.word("prompt#" + strconv.Itoa(l.prompt))
	}
	if failure := v.Get("error"); failure.Exists() {
		if !shown && e.Method != "" {
			l.word(shortMethod(e.Method))
		}
		l.failure(failure)
		return
	}
	o := open(v.Get("result"))
	if o.v.Kind() != wire.Object {
		l.methodThen(e, shown, "ok")
		if !o.v.IsNull() {
			l.pair("result", o.v)
		} else {
			l.word("null")
		}
		return
	}
	switch e.Method {
	case "session/prompt":
		if o.v.Get("stopReason").Kind() != wire.String {
			l.methodThen(e, shown, "ok")
		}
		l.bare(o, "stopReason", stopReasons...)
	case "session/request_permission":
		l.outcome(e, o, shown)
	case "session/new", "session/load", "session/resume", "session/fork":
		l.methodThen(e, shown, "ok")
		l.id(o, "sessionId", sessionID)
		l.keys(o, "modes")
		if o.v.Get("configOptions").Kind() == wire.Array {
			l.word("configOptions")
		}
		l.several(o, "configOptions", l.configOption)
	case "session/set_config_option":
		l.methodThen(e, shown, "ok")
		l.several(o, "configOptions", l.configOption)
	case "fs/read_text_file":
		l.methodThen(e, shown, "ok")
		l.size(o, "content")
	case "terminal/create":
		l.methodThen(e, shown, "ok")
		l.id(o, "terminalId", terminalID)
	case "terminal/output":
		l.methodThen(e, shown, "ok")
		l.quoted(o, "output")
		l.keys(o, "truncated", "exitStatus")
	case "terminal/wait_for_exit":
		l.methodThen(e, shown, "ok")
		l.keys(o, "exitCode", "signal")
	case "elicitation/create":
		if !shown {
			l.word("elicitation/create")
		}
		l.bare(o, "action", actions...)
		l.keys(o, "content")
	case "initialize":
		l.methodThen(e, shown, "ok")
		l.keys(o, "protocolVersion")
		l.implementation(o, "agentInfo")
		l.keys(o, "agentCapabilities", "authMethods")
	case "session/list":
		l.methodThen(e, shown, "ok")
		l.keys(o, "sessions", "nextCursor")
	case "session/close", "session/delete", "session/set_mode", "session/cancel", "fs/write_text_file",
		"terminal/kill", "terminal/release", "authenticate", "logout":
		l.methodThen(e, shown, "ok")
	default:
		l.methodThen(e, shown, "ok")
		l.unknownMethod(o)
		return
	}
	l.keys(o, "_meta")
	l.rest(o)
}

// outcome shows the answer to a permission request.
func (l *line) outcome(e transcript.Entry, o object, shown bool) {
	if !shown {
		l.word(shortMethod(e.Method))
		if l.about != "" {
			l.word(l.m.id(callID, l.about))
		}
	}
	v := o.take("outcome")
	if v.Kind() != wire.Object {
		l.known("outcome", v)
		return
	}
	in := open(v)
	l.bare(in, "outcome", "selected", "cancelled")
	l.string(in, "optionId", func(id string) string {
		if l.options != nil {
			if label := l.options(id); label != "" {
				return label
			}
		}
		return "option=" + quote(l.m.text(id))
	})
	l.keys(in, "_meta")
	l.rest(in)
}

func (l *line) failure(v wire.Value) {
	l.word("error")
	o := open(v)
	if v.Kind() != wire.Object {
		l.rest(o)
		return
	}
	if code := o.take("code"); code.Kind() == wire.Number {
		l.word(string(code.Raw()))
	} else {
		l.known("code", code)
	}
	l.quoted(o, "message")
	l.keys(o, "data")
	l.rest(o)
}

func (l *line) methodThen(e transcript.Entry, shown bool, word string) {
	if !shown && e.Method != "" {
		l.word(shortMethod(e.Method))
	}
	l.word(word)
}
