package liberties

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/acp-test/acp-test/refagent"
)

type (
	message = refagent.Message
	object  = map[string]any
)

// messageLiberties are about the form of messages.
func messageLiberties() []Liberty {
	return slices.Concat(
		of("chunks",
			liberty("chunks-by-word", "sends its text word by word", "MSG-002", pieces(words)),
			liberty("chunks-by-token", "sends its text in pieces of three characters", "MSG-002", pieces(tokens)),
			liberty("chunks-at-once", "sends each of its texts in one chunk, when it is complete", "PROMPT-015 MSG-002",
				kept(math.MaxInt)).takes("agent_message"),
			liberty("chunks-held", "sends its text in pieces of seven characters, and holds the rest back",
				"PROMPT-015 MSG-002", kept(7)).takes("agent_message"),
		),
		of("json",
			liberty("json-spaced", "writes a space after each colon and comma of JSON", "STDIO-003", spelled(spaced)),
			liberty("json-escaped", "writes all but ASCII as escapes of JSON", "STDIO-004", spelled(escaped)),
		),
		of("message ids",
			liberty("message-ids-absent", "gives messages no ids", "MSG-005", changeUpdate(func(u object, _ string) {
				delete(u, "messageId")
			})),
			liberty("message-ids-null", "sends null for the ids of messages", "MSG-003 MSG-005",
				changeUpdate(func(u object, tag string) {
					if strings.HasSuffix(tag, "_chunk") {
						u["messageId"] = nil
					}
				})),
			liberty("message-ids-long", "has message ids that look like nothing else", "MSG-003",
				changeUpdate(func(u object, _ string) {
					if id, ok := u["messageId"].(string); ok {
						u["messageId"] = "01J8Z3K7Q2-" + id + "/ä"
					}
				})),
		),
		of("request ids",
			liberty("ids-strings", "numbers its requests with strings", "RPC-007", requestID(func(n int64) any {
				return fmt.Sprintf("agent-%d", n)
			})),
			liberty("ids-long", "has request ids of 1 KiB", "RPC-007", requestID(func(n int64) any {
				return strings.Repeat("x", 1000) + fmt.Sprintf("%024d", n)
			})),
			liberty("ids-large", "has the largest integers as request ids", "RPC-007", requestID(func(n int64) any {
				return math.MaxInt64 - n
			})),
			liberty("ids-negative", "counts its requests downwards from zero", "RPC-007", requestID(func(n int64) any {
				return 1 - n
			})),
			liberty("ids-like-ours", "numbers its requests with strings of digits", "RPC-007 RPC-018",
				requestID(func(n int64) any { return strconv.FormatInt(n, 10) })),
		),
		of("session ids",
			liberty("session-ids-paths", "has session ids that look like paths", "SESSION-002 SESSION-004", sessionIDs(
				func(id string) string { return "sessions/2026/" + id + ".json" },
				func(id string) string { return strings.TrimSuffix(strings.TrimPrefix(id, "sessions/2026/"), ".json") })),
			liberty("session-ids-long", "has session ids of 300 characters", "SESSION-002 SESSION-004", sessionIDs(
				func(id string) string { return strings.Repeat("0", 263) + id },
				func(id string) string { return strings.TrimLeft(id, "0") })),
		),
		of("",
			liberty("meta-everywhere", "adds _meta to everything that may have it", "EXT-007", out(meta)),
			liberty("null-fields", "sends null for what it could leave out", "TOOL-007 INIT-012", out(nulls)),
			liberty("own-notifications", "sends notifications of its own between others", "EXT-002 EXT-005",
				ownNotifications),
			liberty("results-with-meta", "answers with _meta where a result is empty", "EXT-007", out(func(m message) {
				if r, ok := m["result"].(object); ok && len(r) == 0 {
					r["_meta"] = object{"example.org/took": 1}
				}
			})),
			liberty("blocks-annotated", "annotates its content blocks", "CONTENT-006", changeUpdate(
				func(u object, tag string) {
					if c, ok := u["content"].(object); ok && strings.HasPrefix(tag, "agent_") {
						c["annotations"] = object{"audience": []any{"user"}, "priority": 0.5}
					}
				})),
		),
	)
}

// out changes each message of the agent.
func out(change func(m message)) func(h *habits) {
	return func(h *habits) {
		h.Out = append(h.Out, func(m message) []message {
			change(m)
			return []message{m}
		})
	}
}

func updateOf(m message) (u object, tag string) {
	if m["method"] != "session/update" {
		return nil, ""
	}
	u = m.Object("params", "update")
	tag, _ = u["sessionUpdate"].(string)
	return u, tag
}

func sessionOf(m message) string {
	id, _ := m.Object("params")["sessionId"].(string)
	return id
}

func changeUpdate(change func(u object, tag string)) func(h *habits) {
	return out(func(m message) {
		if u, tag := updateOf(m); u != nil {
			change(u, tag)
		}
	})
}

func onlyUpdate(kind string, change func(u object)) func(h *habits) {
	return changeUpdate(func(u object, tag string) {
		if tag == kind {
			change(u)
		}
	})
}

// dropping leaves out the updates of a kind.
func dropping(kind string) func(h *habits) {
	return func(h *habits) {
		h.Out = append(h.Out, func(m message) []message {
			if _, tag := updateOf(m); tag == kind {
				return nil
			}
			return []message{m}
		})
	}
}

func update(session string, u object) message {
	return message{"jsonrpc": "2.0", "method": "session/update", "params": object{"sessionId": session, "update": u}}
}

func requestID(id func(n int64) any) func(h *habits) {
	return func(h *habits) { h.RequestID = id }
}

// agentText is the text of a chunk of the agent's own words.
func agentText(m message) (content object, text string, ok bool) {
	u, tag := updateOf(m)
	if tag != "agent_message_chunk" && tag != "agent_thought_chunk" {
		return nil, "", false
	}
	content, _ = u["content"].(object)
	text, ok = content["text"].(string)
	return content, text, ok
}

// pieces cuts chunks into smaller ones.
func pieces(cut func(text string) []string) func(h *habits) {
	return func(h *habits) {
		h.Out = append(h.Out, func(m message) []message {
			_, text, ok := agentText(m)
			if !ok || text == "" {
				return []message{m}
			}
			var list []message
			for _, piece := range cut(text) {
				c := m.Clone()
				content, _, _ := agentText(c)
				content["text"] = piece
				list = append(list, c)
			}
			return list
		})
	}
}

func words(text string) []string { return slices.DeleteFunc(strings.SplitAfter(text, " "), empty) }

func empty(s string) bool { return s == "" }

func tokens(text string) (list []string) {
	for len(text) > 0 {
		n := 0
		for range 3 {
			_, size := utf8.DecodeRuneInString(text[n:])
			n += size
		}
		list, text = append(list, text[:n]), text[n:]
	}
	return list
}

// kept joins chunks until there are more than so many characters or something else is
// said in the session.
func kept(most int) func(h *habits) {
	return func(h *habits) { keepTexts(h, most) }
}

func keepTexts(h *habits, most int) {
	kept := map[string]message{}
	open := map[string]string{} // prompts and loads: id → session
	flush := func(session string) []message {
		m, ok := kept[session]
		delete(kept, session)
		if !ok {
			return nil
		}
		return []message{m}
	}
	h.In = append(h.In, func(m message) []message {
		if id, asks := m["id"]; asks && m["method"] != nil && sessionOf(m) != "" {
			open[key(id)] = sessionOf(m)
		}
		return []message{m}
	})
	h.Out = append(h.Out, func(m message) []message {
		if id, has := m["id"]; has && m["method"] == nil {
			session := open[key(id)]
			delete(open, key(id))
			return append(flush(session), m)
		}
		content, text, ok := agentText(m)
		session := sessionOf(m)
		if !ok {
			return append(flush(session), m)
		}
		var out []message
		if before, has := kept[session]; has && sameMessage(before, m) {
			_, sofar, _ := agentText(before)
			text = sofar + text
		} else {
			out = flush(session)
		}
		rest := []rune(text)
		for ; len(rest) > most; rest = rest[most:] {
			c := m.Clone()
			piece, _, _ := agentText(c)
			piece["text"] = string(rest[:most])
			out = append(out, c)
		}
		content["text"] = string(rest)
		kept[session] = m
		return out
	})
}

// spelled writes the same JSON in another way.
func spelled(spell func(frame []byte) []byte) func(h *habits) {
	return func(h *habits) { h.Spell = spell }
}

func spaced(frame []byte) (out []byte) {
	quoted, escape := false, false
	for _, b := range frame {
		out = append(out, b)
		switch {
		case escape:
			escape = false
		case b == '\\':
			escape = true
		case b == '"':
			quoted = !quoted
		case !quoted && (b == ':' || b == ','):
			out = append(out, ' ')
		}
	}
	return out
}

func escaped(frame []byte) (out []byte) {
	for _, unit := range utf16.Encode([]rune(string(frame))) {
		if unit < utf8.RuneSelf {
			out = append(out, byte(unit))
			continue
		}
		out = fmt.Appendf(out, `\u%04x`, unit)
	}
	return out
}

func sameMessage(a, b message) bool {
	x, tag := updateOf(a)
	y, other := updateOf(b)
	return tag == other && x["messageId"] == y["messageId"]
}

func key(id any) string {
	raw, _ := json.Marshal(id)
	return string(raw)
}

// sessionIDs gives sessions other ids, there and back again.
func sessionIDs(to, from func(id string) string) func(h *habits) {
	return func(h *habits) {
		h.Out = append(h.Out, func(m message) []message {
			renamed(map[string]any(m), to)
			return []message{m}
		})
		h.In = append(h.In, func(m message) []message {
			if p := m.Object("params"); p != nil {
				renamed(p, from)
			}
			return []message{m}
		})
	}
}

func renamed(v any, to func(id string) string) {
	switch v := v.(type) {
	case object:
		for k, inner := range v {
			if id, ok := inner.(string); ok && k == "sessionId" {
				v[k] = to(id)
				continue
			}
			if k != "content" && k != "rawInput" && k != "rawOutput" && k != "_meta" {
				renamed(inner, to)
			}
		}
	case []any:
		for _, inner := range v {
			renamed(inner, to)
		}
	}
}

// meta adds _meta to a message's params or result and to the objects in them that
// are the protocol's own.
func meta(m message) {
	for _, part := range []string{"params", "result"} {
		if o := m.Object(part); o != nil {
			marked(o)
		}
	}
}

// opaque are the members that are not the protocol's to describe.
var opaque = []string{"_meta", "rawInput", "rawOutput", "requestedSchema", "outcome", "annotations",
	"sessionCapabilities"}

func marked(o object) {
	for _, k := range slices.Sorted(maps.Keys(o)) {
		if slices.Contains(opaque, k) {
			continue
		}
		switch inner := o[k].(type) {
		case object:
			marked(inner)
		case []any:
			for _, one := range inner {
				if one, ok := one.(object); ok {
					marked(one)
				}
			}
		}
	}
	if _, has := o["_meta"]; !has {
		o["_meta"] = object{"example.org/trace": "0af7651916cd43dd"}
	}
}

// nulls puts null where a field may be absent.
func nulls(m message) {
	fill := func(o object, keys ...string) {
		for _, k := range keys {
			if _, has := o[k]; !has && o != nil {
				o[k] = nil
			}
		}
	}
	u, tag := updateOf(m)
	switch {
	case tag == "tool_call_update":
		fill(u, "title", "kind", "status", "content", "locations", "_meta")
	case tag == "tool_call", strings.HasSuffix(tag, "_chunk"):
		fill(u, "_meta")
	case tag == "session_info_update":
		fill(u, "_meta")
	case m["method"] == "session/request_permission":
		fill(m.Object("params", "toolCall"), "title", "kind", "status", "content", "locations", "_meta")
		fill(m.Object("params"), "_meta")
	case m["method"] == "fs/read_text_file":
		fill(m.Object("params"), "line", "limit", "_meta")
	case m["method"] == "terminal/create":
		fill(m.Object("params"), "cwd", "outputByteLimit", "_meta")
	}
	for _, one := range list(u["locations"]) {
		fill(one, "line")
	}
	if r := m.Object("result"); r != nil {
		if _, setup := r["sessionId"]; setup {
			fill(r, "modes", "configOptions", "_meta")
		}
		for _, s := range list(r["sessions"]) {
			fill(s, "title", "updatedAt", "_meta")
		}
		if _, listed := r["sessions"]; listed {
			fill(r, "nextCursor")
		}
	}
}

func list(v any) (objects []object) {
	all, _ := v.([]any)
	for _, one := range all {
		if o, ok := one.(object); ok {
			objects = append(objects, o)
		}
	}
	return objects
}

// ownNotifications adds a notification after every third message.
func ownNotifications(h *habits) {
	n := 0
	h.Out = append(h.Out, func(m message) []message {
		if n++; n%3 != 0 {
			return []message{m}
		}
		return []message{m, {"jsonrpc": "2.0", "method": "_example.org/progress", "params": object{"step": n}}}
	})
}
