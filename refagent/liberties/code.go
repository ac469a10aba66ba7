package liberties

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/acp-test/acp-test/refagent"
)

type (
	message = refagent.Message
	object  = map[string]any
)

// code returns the liberties for ACP that are implemented in code, because neither habits nor rules can express them.
func code() map[string]func(h *refagent.Habits) {
	changing := func(change func() refagent.Change) func(h *refagent.Habits) {
		return func(h *refagent.Habits) { h.Changes = append(h.Changes, change()) }
	}
	return map[string]func(h *refagent.Habits){
		"tool-told-once":    changing(toldOnce),
		"meta-everywhere":   changing(meta),
		"output-at-the-end": changing(outputLast),
		"json-spaced":       func(h *refagent.Habits) { h.Spell = spaced },
		"json-escaped":      func(h *refagent.Habits) { h.Spell = escaped },
	}
}

// choice is one option of a permission request.
type choice struct{ ID, Name, Kind string }

// choose replaces the reference agent's permission options by others of the same kinds. When the user chooses an
// option, it converts the choice back.
func choose(raw []byte) refagent.Change {
	var offered []choice
	if err := json.Unmarshal(raw, &offered); err != nil {
		panic(err) // cannot happen: a test reads all tables
	}
	own := func(kind string) string { return strings.ReplaceAll(kind, "_", "-") }
	return refagent.Change{
		Out: func(m message) []message {
			if m["method"] != "session/request_permission" {
				return []message{m}
			}
			all := objects(m.Object("params")["options"])
			options := []any{}
			for _, c := range offered {
				for _, o := range all {
					if o["optionId"] == own(c.Kind) {
						o := maps.Clone(o)
						o["optionId"], o["name"] = c.ID, c.Name
						options = append(options, o)
					}
				}
			}
			for _, o := range all {
				if kind, _ := o["kind"].(string); o["optionId"] != own(kind) {
					options = append(options, o) // the options of another question stay unchanged
				}
			}
			m.Object("params")["options"] = options
			return []message{m}
		},
		In: func(m message) []message {
			o := m.Object("result", "outcome")
			i := slices.IndexFunc(offered, func(c choice) bool { return o["optionId"] == c.ID })
			if o["outcome"] == "selected" && i >= 0 {
				o["optionId"] = own(offered[i].Kind)
			}
			return []message{m}
		},
	}
}

// told is a message about a tool call that toldOnce delays.
type told struct {
	session string
	call    any
	message message
}

// toldOnce merges all messages about a tool call into one. It sends the merged message when the call has ended, the
// user is asked about the call, the call has a terminal to show, or the turn ends.
func toldOnce() refagent.Change {
	var kept []told
	prompts := map[string]string{} // id of the prompt → session
	// release removes the messages about a call from kept and returns them, followed by the message behind. A nil
	// call means all calls of the session.
	release := func(session string, call any, behind message) (list []message) {
		kept = slices.DeleteFunc(kept, func(t told) bool {
			let := t.session == session && (call == nil || call == t.call)
			if let {
				list = append(list, t.message)
			}
			return let
		})
		return append(list, behind)
	}
	return refagent.Change{
		In: func(m message) []message {
			if m["method"] == "session/prompt" {
				prompts[fmt.Sprint(m["id"])] = sessionOf(m)
			}
			return []message{m}
		},
		Out: func(m message) []message {
			u, tag := m.Update()
			session := sessionOf(m)
			at := slices.IndexFunc(kept, func(t told) bool { return t.session == session && t.call == u["toolCallId"] })
			switch {
			case m["method"] == nil:
				if session, ok := prompts[fmt.Sprint(m["id"])]; ok {
					delete(prompts, fmt.Sprint(m["id"]))
					return release(session, nil, m)
				}
			case m["method"] == "elicitation/create" && m.Object("params")["toolCallId"] != nil:
				return release(session, m.Object("params")["toolCallId"], m)
			case m["method"] == "session/request_permission":
				return release(session, m.Object("params", "toolCall")["toolCallId"], m)
			case tag == "tool_call" && !ended(u):
				kept = append(kept, told{session, u["toolCallId"], m})
				return nil
			case strings.HasPrefix(tag, "tool_call") && at >= 0:
				sofar, _ := kept[at].message.Update()
				for name, v := range u {
					if name != "sessionUpdate" && v != nil {
						sofar[name] = v
					}
				}
				// Send a call with a terminal now, because the editor must show the terminal before it is released.
				terminal := slices.ContainsFunc(objects(sofar["content"]), func(c object) bool { return c["type"] == "terminal" })
				if whole := kept[at].message; ended(u) || terminal {
					kept = slices.Delete(kept, at, at+1)
					return []message{whole}
				}
				return nil
			}
			return []message{m}
		},
	}
}

func ended(u object) bool { return u["status"] == "completed" || u["status"] == "failed" }

func sessionOf(m message) string {
	id, _ := m.Object("params")["sessionId"].(string)
	return id
}

func objects(v any) (list []object) {
	all, _ := v.([]any)
	for _, one := range all {
		if o, ok := one.(object); ok {
			list = append(list, o)
		}
	}
	return list
}

// meta adds _meta to a message's params or result, and to the objects inside that the protocol defines.
func meta() refagent.Change {
	return refagent.Change{Out: func(m message) []message {
		for _, part := range []string{"params", "result"} {
			if o := m.Object(part); o != nil {
				mark(o)
			}
		}
		return []message{m}
	}}
}

// opaque lists members whose content the protocol does not define.
var opaque = []string{"_meta", "rawInput", "rawOutput", "requestedSchema", "outcome", "annotations",
	"sessionCapabilities"}

func mark(o object) {
	for k, v := range o {
		if slices.Contains(opaque, k) {
			continue
		}
		if inner, ok := v.(object); ok {
			mark(inner)
		}
		for _, one := range objects(v) {
			mark(one)
		}
	}
	if _, has := o["_meta"]; !has {
		o["_meta"] = object{"example.org/trace": "0af7651916cd43dd"}
	}
}

// outputLast sends a terminal's output in one piece, when the terminal's command ends.
func outputLast() refagent.Change {
	held := map[any]string{}
	return refagent.Change{Out: func(m message) []message {
		u, tag := m.Update()
		switch {
		case tag == "terminal_output_chunk":
			raw, _ := base64.StdEncoding.DecodeString(fmt.Sprint(u["data"])) // valid, because the agent encoded it
			held[u["terminalId"]] += string(raw)
			return nil
		case tag == "terminal_update" && u["exitStatus"] != nil:
			text := strings.TrimRight(held[u["terminalId"]], "\n")
			u["output"] = object{"data": base64.StdEncoding.EncodeToString([]byte(text))}
		}
		return []message{m}
	}}
}

// spaced writes a space after each colon and comma in JSON.
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

// escaped writes all characters except ASCII as JSON escapes.
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
