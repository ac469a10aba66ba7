package canonical

import (
	"strings"

	"github.com/acp-test/acp-test/golden"
	"github.com/acp-test/acp-test/wire"
)

// chunkName returns the name under which a kind of chunk is shown. It omits the suffix _chunk, because chunks are
// joined. If l.exact is set, chunks are not joined and the suffix stays.
func (l *line) chunkName(kind string) string {
	if l.exact {
		return kind
	}
	return strings.TrimSuffix(kind, "_chunk")
}

// planEntry shows an entry of a plan.
func (l *line) planEntry(v wire.Value) {
	e := golden.Open(v)
	l.Quoted(e, "content")
	l.Bare(e, "priority", "high", "medium", "low")
	l.Bare(e, "status", statuses...)
	l.Keys(e, "_meta")
	l.Rest(e)
}

// command shows a slash command.
func (l *line) command(v wire.Value) {
	c := golden.Open(v)
	l.Formed(c, "name", golden.QuoteUnlessWord)
	l.Quoted(c, "description")
	if input := c.Value.Get("input"); input.Kind() == wire.Object && input.Len() == 1 &&
		input.Get("hint").Kind() == wire.String {
		c.Take("input")
		l.Pair("hint", input.Get("hint"))
	}
	l.Keys(c, "input", "_meta")
	l.Rest(c)
}

// update shows the params of session/update. The section already names the session, so a valid session id is omitted.
func (l *line) update(params wire.Value) {
	p := golden.Open(params)
	l.ownSession(p)
	u := golden.Open(p.Take("update"))
	if l.merged.Exists() {
		u = golden.Open(l.merged)
	}
	kind := u.Take("sessionUpdate")
	if kind.Kind() != wire.String {
		l.Word("session/update")
		l.Known("sessionUpdate", kind)
		l.Rest(u)
		l.Keys(p, "_meta")
		l.Rest(p)
		return
	}
	name := kind.Str()
	if isChunk(name) {
		name = l.chunkName(name)
	}
	l.Word(golden.QuoteUnlessWord(name))
	switch kind.Str() {
	case "user_message_chunk", "agent_message_chunk", "agent_thought_chunk":
		l.ID(u, "messageId", messageID)
		l.block(u.Take("content"))
	case "tool_call", "tool_call_update":
		l.tool(u)
	case "plan":
		l.Several(u, "entries", l.planEntry)
	case "available_commands_update":
		l.Several(u, "availableCommands", l.command)
	case "current_mode_update":
		l.Formed(u, "currentModeId", golden.QuoteUnlessWord)
	case "config_option_update":
		l.Several(u, "configOptions", l.configOption)
	case "session_info_update":
		l.Quoted(u, "title")
		if at := u.Take("updatedAt"); at.Exists() {
			l.Pair("updatedAt", at)
		}
	case "subagent_update":
		l.ID(u, "sessionId", sessionID)
		l.Quoted(u, "title")
		if s := u.Value.Get("state"); s.Kind() == wire.Object {
			u.Take("state")
			state := golden.Open(s)
			l.Formed(state, "state", golden.QuoteUnlessWord)
			l.Formed(state, "stopReason", golden.QuoteUnlessWord)
			l.Keys(state, "error", "usage", "_meta")
			l.Rest(state)
		}
		l.Keys(u, "description", "capabilities", "state", "cwd", "additionalDirectories")
	case "session_message", "session_message_chunk":
		l.ID(u, "messageId", messageID)
		for _, end := range []string{"sender", "recipient"} {
			if u.Value.Get(end + "SessionId").Exists() {
				l.Word(end)
				l.ID(u, end+"SessionId", sessionID)
				l.ID(u, end+"MessageId", messageID)
			}
		}
		if c := u.Value.Get("content"); c.Kind() == wire.Object {
			l.block(u.Take("content"))
		} else {
			l.Several(u, "content", l.block)
		}
	case "usage_update":
		l.Keys(u, "used", "size", "cost")
	}
	l.Keys(u, "_meta")
	l.Rest(u)
	l.Keys(p, "_meta")
	l.Rest(p)
}

// configOption shows a SessionConfigOption: its id, value and type.
func (l *line) configOption(v wire.Value) {
	o := golden.Open(v)
	l.Formed(o, "id", golden.QuoteUnlessWord)
	l.Append("=", "currentValue", o.Take("currentValue"))
	l.Bare(o, "type", "select", "boolean")
	l.Quoted(o, "name")
	l.Keys(o, "category", "description", "options", "_meta")
	l.Rest(o)
}

func isChunk(kind string) bool {
	switch kind {
	case "user_message_chunk", "agent_message_chunk", "agent_thought_chunk":
		return true
	}
	return false
}

// isState reports whether an update is about the state of the session instead of an event of the conversation. Such an
// update may come at any time.
func isState(kind string) bool {
	switch kind {
	case "available_commands_update", "current_mode_update", "config_option_update", "session_info_update", "usage_update":
		return true
	}
	return false
}
