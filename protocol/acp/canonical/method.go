package canonical

import (
	"strconv"
	"strings"

	"github.com/acp-test/acp-test/golden"
	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/wire"
)

// shortMethod is a method as it is shown.
func shortMethod(method string) string {
	if method == "session/request_permission" {
		return "request_permission"
	}
	if strings.ContainsAny(method, " \t\n\r\"") || method == "" {
		return golden.Quote(method)
	}
	return method
}

// ownSession takes the session of an agent's frame: the section says which one
// it is, so it is shown only if it is missing or no string. A line that stands
// alone names it at its end, where it does not hide what happened.
func (l *line) ownSession(o golden.Object) {
	s := o.Take("sessionId")
	if s.Kind() != wire.String && o.Value.Kind() == wire.Object {
		l.Pair("sessionId", s)
	}
	if l.mask.Plain() && s.Kind() == wire.String {
		l.session = s.Str()
	}
}

// ask shows a request or notification.
func (l *line) ask(e transcript.Entry, params wire.Value) {
	if e.Method == "session/update" && e.Source == transcript.Agent {
		l.update(params)
		return
	}
	l.Word(shortMethod(e.Method))
	o := golden.Open(params)
	if !params.Exists() {
		return
	}
	switch e.Method {
	case "session/prompt":
		l.ID(o, "sessionId", sessionID)
		l.List("prompt", o.Take("prompt"), l.block)
	case "session/cancel", "session/close", "session/delete":
		l.ID(o, "sessionId", sessionID)
	case "session/new", "session/load", "session/resume", "session/fork", "session/list":
		l.ID(o, "sessionId", sessionID)
		l.Keys(o, "cwd", "additionalDirectories", "mcpServers", "cursor")
	case "session/set_mode":
		l.ID(o, "sessionId", sessionID)
		l.Formed(o, "modeId", golden.QuoteUnlessWord)
	case "session/set_config_option":
		l.ID(o, "sessionId", sessionID)
		l.Formed(o, "configId", golden.QuoteUnlessWord)
		l.Keys(o, "value", "type")
	case "session/request_permission":
		l.ownSession(o)
		if call := o.Value.Get("toolCall"); call.Kind() == wire.Object {
			o.Take("toolCall")
			t := golden.Open(call)
			l.tool(t)
			l.Rest(t)
		}
		l.Separated(o, "options", " ", l.option)
	case "fs/write_text_file":
		l.ownSession(o)
		l.Path(o, "path")
		l.Size(o, "content")
	case "fs/read_text_file":
		l.ownSession(o)
		l.Path(o, "path")
		l.Keys(o, "line", "limit")
	case "terminal/create":
		l.ownSession(o)
		l.Quoted(o, "command")
		l.Keys(o, "args", "cwd", "env", "outputByteLimit")
	case "terminal/output", "terminal/wait_for_exit", "terminal/kill", "terminal/release":
		l.ownSession(o)
		l.ID(o, "terminalId", terminalID)
	case "elicitation/create":
		if o.Value.Get("sessionId").Exists() {
			l.ownSession(o)
		}
		l.Bare(o, "mode", modes...)
		l.Quoted(o, "message")
		if o.Value.Get("toolCallId").Exists() {
			l.ID(o, "toolCallId", callID)
		}
		l.Keys(o, "requestId", "elicitationId", "url", "requestedSchema")
	case "elicitation/complete":
		l.Keys(o, "elicitationId")
	case "$/cancel_request":
		l.cancelled(o)
	case "initialize":
		l.Keys(o, "protocolVersion")
		l.implementation(o, "clientInfo")
		l.Keys(o, "clientCapabilities")
	case "authenticate":
		l.Keys(o, "methodId")
	default:
		l.unknownMethod(o)
		return
	}
	l.Keys(o, "_meta")
	l.Rest(o)
}

// unknownMethod shows the params of a method that is not in the table, whose
// session is known all the same.
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

// cancelled shows which request $/cancel_request means. Ids differ from run to
// run; whose it is was put into options by the caller.
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

// option shows a PermissionOption by its kind; its name only if it says more
// than the kind does. The id is opaque: answers name the option by its kind.
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

// answer shows a response. In a response to a request shown just above, the
// method is not repeated.
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
	case "session/new", "session/load", "session/resume", "session/fork":
		l.methodThen(e, shown, "ok")
		l.ID(o, "sessionId", sessionID)
		l.Keys(o, "modes")
		if o.Value.Get("configOptions").Kind() == wire.Array {
			l.Word("configOptions")
		}
		l.Several(o, "configOptions", l.configOption)
	case "session/set_config_option":
		l.methodThen(e, shown, "ok")
		l.Several(o, "configOptions", l.configOption)
	case "fs/read_text_file":
		l.methodThen(e, shown, "ok")
		l.Size(o, "content")
	case "terminal/create":
		l.methodThen(e, shown, "ok")
		l.ID(o, "terminalId", terminalID)
	case "terminal/output":
		l.methodThen(e, shown, "ok")
		l.Quoted(o, "output")
		l.Keys(o, "truncated", "exitStatus")
	case "terminal/wait_for_exit":
		l.methodThen(e, shown, "ok")
		l.Keys(o, "exitCode", "signal")
	case "elicitation/create":
		if !shown {
			l.Word("elicitation/create")
		}
		l.Bare(o, "action", actions...)
		l.Keys(o, "content")
	case "initialize":
		l.methodThen(e, shown, "ok")
		l.Keys(o, "protocolVersion")
		l.implementation(o, "agentInfo")
		l.Keys(o, "agentCapabilities", "authMethods")
	case "session/list":
		l.methodThen(e, shown, "ok")
		l.Keys(o, "sessions", "nextCursor")
	case "session/close", "session/delete", "session/set_mode", "session/cancel", "fs/write_text_file",
		"terminal/kill", "terminal/release", "authenticate", "logout":
		l.methodThen(e, shown, "ok")
	default:
		l.methodThen(e, shown, "ok")
		l.unknownMethod(o)
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
