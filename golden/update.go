package golden

import (
	"strings"

	"github.com/acp-test/acp-test/wire"
)

// chunkName is the kind of a chunk as its message is called: a whole message
// is not a chunk any more.
func (l *line) chunkName(kind string) string {
	if l.exact {
		return kind
	}
	return strings.TrimSuffix(kind, "_chunk")
}

// update shows the params of session/update. The session is the section the
// line stands in; only what is wrong with it is shown here.
func (l *line) update(params wire.Value) {
	p := open(params)
	l.ownSession(p)
	u := open(p.take("update"))
	if l.merged.Exists() {
		u = open(l.merged)
	}
	kind := u.take("sessionUpdate")
	if kind.Kind() != wire.String {
		l.word("session/update")
		l.known("sessionUpdate", kind)
		l.rest(u)
		l.keys(p, "_meta")
		l.rest(p)
		return
	}
	name := kind.Str()
	if isChunk(name) {
		name = l.chunkName(name)
	}
	l.word(quoteUnlessWord(name))
	switch kind.Str() {
	case "user_message_chunk", "agent_message_chunk", "agent_thought_chunk":
		l.id(u, "messageId", messageID)
		l.block(u.take("content"))
	case "tool_call", "tool_call_update":
		l.tool(u)
	case "plan":
		l.several(u, "entries", func(v wire.Value) {
			e := open(v)
			l.quoted(e, "content")
			l.bare(e, "priority", "high", "medium", "low")
			l.bare(e, "status", statuses...)
			l.keys(e, "_meta")
			l.rest(e)
		})
	case "available_commands_update":
		l.several(u, "availableCommands", func(v wire.Value) {
			c := open(v)
			l.string(c, "name", quoteUnlessWord)
			l.quoted(c, "description")
			if input := c.v.Get("input"); input.Kind() == wire.Object && input.Len() == 1 && input.Get("hint").Kind() == wire.String {
				c.take("input")
				l.pair("hint", input.Get("hint"))
			}
			l.keys(c, "input", "_meta")
			l.rest(c)
		})
	case "current_mode_update":
		l.string(u, "currentModeId", quoteUnlessWord)
	case "config_option_update":
		l.several(u, "configOptions", l.configOption)
	case "session_info_update":
		l.quoted(u, "title")
		if at := u.take("updatedAt"); at.Exists() {
			l.pair("updatedAt", at)
		}
	case "usage_update":
		l.keys(u, "used", "size", "cost")
	}
	l.keys(u, "_meta")
	l.rest(u)
	l.keys(p, "_meta")
	l.rest(p)
}

// several shows an array in brackets, however many items it has.
func (l *line) several(o object, key string, show func(wire.Value)) {
	l.separated(o, key, ", ", show)
}

func (l *line) separated(o object, key, separator string, show func(wire.Value)) {
	v := o.take(key)
	if v.Kind() != wire.Array {
		l.known(key, v)
		return
	}
	l.bracketed(v, separator, func(item wire.Value) {
		if item.Kind() != wire.Object {
			l.word(string(compact(nil, l.m, key, item)))
			return
		}
		show(item)
	})
}

// configOption shows a SessionConfigOption: its id, its value, what it may be.
func (l *line) configOption(v wire.Value) {
	o := open(v)
	l.string(o, "id", quoteUnlessWord)
	l.b = append(l.b, '=')
	l.b = compact(l.b, l.m, "currentValue", o.take("currentValue"))
	l.bare(o, "type", "select", "boolean")
	l.quoted(o, "name")
	l.keys(o, "category", "description", "options", "_meta")
	l.rest(o)
}

func isChunk(kind string) bool {
	switch kind {
	case "user_message_chunk", "agent_message_chunk", "agent_thought_chunk":
		return true
	}
	return false
}

// isState reports whether an update says how a session is, rather than what
// happens in its conversation: it may come at any time.
func isState(kind string) bool {
	switch kind {
	case "available_commands_update", "current_mode_update", "config_option_update", "session_info_update", "usage_update":
		return true
	}
	return false
}
