package main

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/acp-test/acp-test/transcript"
)

type object = map[string]any

// entry is an entry of a transcript; of a frame of the agent that is JSON, decoded.
type entry struct {
	transcript.Entry
	m object
}

func entryOf(e transcript.Entry) entry {
	out := entry{Entry: e}
	if e.Source == transcript.Agent && e.Frame() {
		d := json.NewDecoder(bytes.NewReader(e.Raw))
		d.UseNumber()
		if d.Decode(&out.m) != nil {
			out.m = nil
		}
	}
	return out
}

// copied is a log whose messages can be changed.
func copied(log []entry) []entry {
	out := slices.Clone(log)
	for i := range out {
		if out[i].m != nil {
			out[i] = entryOf(log[i].Entry)
		}
	}
	return out
}

func (e entry) raw() []byte {
	if e.m == nil {
		return e.Raw
	}
	raw, err := json.Marshal(e.m)
	if err != nil {
		panic(err)
	}
	return raw
}

func (e entry) at(path ...string) any {
	var v any = e.m
	for _, key := range path {
		o, _ := v.(object)
		v = o[key]
	}
	return v
}

func (e entry) in(path ...string) object {
	o, _ := e.at(path...).(object)
	return o
}

func (e entry) update() object { return e.in("params", "update") }

func (e entry) tag() string {
	s, _ := e.update()["sessionUpdate"].(string)
	return s
}

func (e entry) answers(method string) bool {
	return e.m != nil && e.Kind == transcript.Response && e.Method == method && e.m["result"] != nil
}

// kind is one way to change a transcript.
type kind struct {
	name  string
	legal bool
	sites func(log []entry) []int
	// apply changes the log at a site; false if nothing can be changed there.
	apply func(log []entry, at int) ([]entry, bool)
}

// where are the places of frames of the agent that are so.
func where(is func(e entry) bool) func(log []entry) []int {
	return func(log []entry) (list []int) {
		for i, e := range log {
			if e.m != nil && is(e) {
				list = append(list, i)
			}
		}
		return list
	}
}

// edit changes a message in place.
func edit(change func(e entry)) func(log []entry, at int) ([]entry, bool) {
	return func(log []entry, at int) ([]entry, bool) {
		change(log[at])
		return log, true
	}
}

func remove(log []entry, at int) ([]entry, bool) { return slices.Delete(log, at, at+1), true }

func twice(log []entry, at int) ([]entry, bool) {
	return slices.Insert(log, at+1, entryOf(log[at].Entry)), true
}

func tagged(tags ...string) func(e entry) bool {
	return func(e entry) bool { return slices.Contains(tags, e.tag()) }
}

func isUpdate(e entry) bool { return e.tag() != "" }

func ofFiles(e entry) bool { return strings.HasPrefix(e.Method, "fs/") }

// ends reports whether a message ends a turn with a stop reason.
func ends(reason string) func(e entry) bool {
	return func(e entry) bool { return e.at("result", "stopReason") == reason }
}

func response(e entry) bool {
	return e.Kind == transcript.Response && e.Ref > 0 && e.m["result"] != nil
}

// without are the required fields of messages, each broken by leaving it out.
var without = []struct {
	name string
	of   func(e entry) bool
	path []string
}{
	{"stopReason", func(e entry) bool { return e.answers("session/prompt") }, []string{"result", "stopReason"}},
	{"sessionId of new", func(e entry) bool { return e.answers("session/new") }, []string{"result", "sessionId"}},
	{"protocolVersion", func(e entry) bool { return e.answers("initialize") }, []string{"result", "protocolVersion"}},
	{"content", tagged("agent_message_chunk", "agent_thought_chunk", "user_message_chunk"),
		[]string{"params", "update", "content"}},
	{"sessionUpdate", isUpdate, []string{"params", "update", "sessionUpdate"}},
	{"toolCallId", tagged("tool_call", "tool_call_update"), []string{"params", "update", "toolCallId"}},
	{"title", tagged("tool_call"), []string{"params", "update", "title"}},
	{"sessionId", isUpdate, []string{"params", "sessionId"}},
	{"options", asks, []string{"params", "options"}},
	{"used", tagged("usage_update"), []string{"params", "update", "used"}},
	{"path", ofFiles, []string{"params", "path"}},
	{"jsonrpc", func(e entry) bool { return true }, []string{"jsonrpc"}},
	{"entries", tagged("plan"), []string{"params", "update", "entries"}},
	{"availableCommands", tagged("available_commands_update"), []string{"params", "update", "availableCommands"}},
}

func asks(e entry) bool {
	return e.Method == "session/request_permission" && e.Kind == transcript.Request
}

// strange are values that the schema does not have.
var strange = []struct {
	name string
	of   func(e entry) bool
	path []string
	to   any
}{
	{"stop reason", func(e entry) bool { return e.answers("session/prompt") }, []string{"result", "stopReason"}, "done"},
	{"status", tagged("tool_call_update"), []string{"params", "update", "status"}, "cancelled"},
	{"kind", tagged("tool_call"), []string{"params", "update", "kind"}, "filesystem"},
	{"title as a number", tagged("tool_call"), []string{"params", "update", "title"}, 7},
	{"text as a list", tagged("agent_message_chunk"), []string{"params", "update", "content"}, []any{"text"}},
	{"update", isUpdate, []string{"params", "update", "sessionUpdate"}, "something_else"},
	{"version", func(e entry) bool {
		return e.answers("initialize") && e.at("result", "protocolVersion") == json.Number("1")
	}, []string{"result", "protocolVersion"}, 2},
	{"version as text", func(e entry) bool { return e.answers("initialize") }, []string{"result", "protocolVersion"}, "1"},
	{"relative path", ofFiles, []string{"params", "path"}, "notes.txt"},
	{"key at the root", isUpdate, []string{"params", "update", "extra"}, true},
	{"method", isUpdate, []string{"method"}, "session/news"},
	{"_meta", isUpdate, []string{"params", "_meta"}, []any{}},
}

func put(e entry, path []string, v any) bool {
	o := e.in(path[:len(path)-1]...)
	if o == nil {
		return false
	}
	if v == nil {
		if _, has := o[path[len(path)-1]]; !has {
			return false
		}
		delete(o, path[len(path)-1])
		return true
	}
	o[path[len(path)-1]] = v
	return true
}

var kinds = build()

func build() []kind {
	list := []kind{
		{name: "drop an answer", sites: where(response), apply: func(log []entry, at int) ([]entry, bool) {
			for i := at; i < len(log); i++ {
				log[i].At += time.Minute // the session goes on for so long
			}
			return remove(log, at)
		}},
		{name: "double an answer", sites: where(response), apply: twice},
		{name: "answer before the request", sites: where(func(e entry) bool { return response(e) && e.Ref > 0 }),
			apply: func(log []entry, at int) ([]entry, bool) {
				e := log[at]
				to := slices.IndexFunc(log, func(x entry) bool { return x.Seq == e.Ref })
				if to < 0 {
					return nil, false
				}
				return slices.Insert(slices.Delete(log, at, at+1), to, e), true
			}},
		{name: "id of an answer", sites: where(response), apply: edit(func(e entry) { e.m["id"] = 4711 })},
		{name: "type of an answer's id", sites: where(response), apply: edit(func(e entry) {
			if id, text := e.m["id"].(string); text {
				e.m["id"] = len(id)
			} else {
				e.m["id"] = string(e.m["id"].(json.Number))
			}
		})},
		{name: "session of an update", sites: where(isUpdate),
			apply: edit(func(e entry) { e.in("params")["sessionId"] = "nobodys" })},
		{name: "session of a request", sites: where(asks),
			apply: edit(func(e entry) { e.in("params")["sessionId"] = "nobodys" })},
		{name: "reason: cancelled by nobody", sites: func(log []entry) []int {
			if slices.ContainsFunc(log, stops) {
				return nil
			}
			return where(ends("end_turn"))(log)
		}, apply: edit(func(e entry) { e.in("result")["stopReason"] = "cancelled" })},
		{name: "reason: a cancelled turn's", sites: func(log []entry) []int {
			if !slices.ContainsFunc(log, func(e entry) bool { return e.Method == "session/cancel" }) {
				return nil
			}
			return where(ends("cancelled"))(log)
		},
			apply: edit(func(e entry) {
				delete(e.m, "result")
				e.m["error"] = object{"code": -32603, "message": "aborted"}
			})},
		{name: "content after a cancelled turn", sites: where(ends("cancelled")),
			apply: func(log []entry, at int) ([]entry, bool) {
				for i := at - 1; i >= 0; i-- {
					if tag := log[i].tag(); (tag == "agent_message_chunk" || tag == "tool_call_update") &&
						log[i].Session == log[at].Session {
						e := log[i]
						return slices.Insert(slices.Delete(log, i, i+1), at, e), true
					}
					if log[i].Source == transcript.Editor && log[i].Method == "session/prompt" {
						break
					}
				}
				return nil, false
			}},
		{name: "history after its load", sites: where(func(e entry) bool { return e.answers("session/load") }),
			apply: func(log []entry, at int) ([]entry, bool) {
				i := at - 1
				if i < 0 || !strings.HasSuffix(log[i].tag(), "_message_chunk") {
					return nil, false
				}
				log[i], log[at] = log[at], log[i]
				return log, true
			}},
		{name: "a rejected call completes", sites: func(log []entry) (list []int) {
			rejected := map[any]bool{}
			asked := map[int]any{}
			for i, e := range log {
				if e.m != nil && asks(e) {
					asked[e.Seq] = e.at("params", "toolCall", "toolCallId")
				}
				if id := asked[e.Ref]; id != nil && e.Source == transcript.Editor && bytes.Contains(e.Raw, []byte(`"reject`)) {
					rejected[id] = true
				}
				if e.tag() == "tool_call_update" && rejected[e.update()["toolCallId"]] && e.update()["status"] == "failed" {
					list = append(list, i)
				}
			}
			return list
		}, apply: edit(func(e entry) { e.update()["status"] = "completed" })},
		{name: "a terminal is not released", sites: where(func(e entry) bool {
			return e.Method == "terminal/release" && e.Kind == transcript.Request
		}),
			apply: func(log []entry, at int) ([]entry, bool) {
				seq := log[at].Seq
				return slices.DeleteFunc(log, func(e entry) bool { return e.Seq == seq || e.Ref == seq && e.Frame() }), true
			}},
		{name: "options with one id", sites: where(asks), apply: edit(func(e entry) {
			o, _ := e.at("params", "options").([]any)
			e.in("params")["options"] = append(o, o[0])
		})},
	}
	for _, w := range without {
		list = append(list, kind{name: "without " + w.name, sites: where(func(e entry) bool { return w.of(e) }),
			apply: func(log []entry, at int) ([]entry, bool) { return log, put(log[at], w.path, nil) }})
	}
	for _, s := range strange {
		list = append(list, kind{name: "strange " + s.name, sites: where(func(e entry) bool { return s.of(e) }),
			apply: func(log []entry, at int) ([]entry, bool) { return log, put(log[at], s.path, s.to) }})
	}
	return append(list, lawful...)
}

func stops(e entry) bool {
	return e.Source == transcript.Editor && (e.Method == "session/cancel" || e.Method == "$/cancel_request" ||
		e.Method == "session/close" || e.Method == "session/delete" ||
		e.Kind == transcript.Response && e.Method == "session/request_permission" &&
			!bytes.Contains(e.Raw, []byte(`"allow`)))
}

// lawful are changes of the same kinds that leave a transcript good.
var lawful = []kind{
	{name: "drop what is optional", legal: true, sites: where(func(e entry) bool { return e.update()["rawInput"] != nil }),
		apply: edit(func(e entry) { delete(e.update(), "rawInput") })},
	{name: "drop the usage", legal: true, sites: where(tagged("usage_update")), apply: remove},
	{name: "double the commands", legal: true, sites: where(tagged("available_commands_update")), apply: twice},
	{name: "an extension in between", legal: true, sites: where(isUpdate),
		apply: func(log []entry, at int) ([]entry, bool) {
			x := entryOf(log[at].Entry)
			x.m["method"], x.m["params"] = "_example/news", object{"x": 1}
			return slices.Insert(log, at, x), true
		}},
	{name: "_meta", legal: true, sites: where(isUpdate),
		apply: edit(func(e entry) { e.in("params")["_meta"] = object{"x": 1} })},
	{name: "swap usage and what is before", legal: true, sites: func(log []entry) []int {
		var list []int
		for _, i := range where(tagged("usage_update"))(log) {
			if i > 0 && log[i-1].tag() != "" && log[i-1].Session == log[i].Session {
				list = append(list, i)
			}
		}
		return list
	}, apply: func(log []entry, at int) ([]entry, bool) {
		log[at], log[at-1] = log[at-1], log[at]
		return log, true
	}},
	{name: "other ids of tool calls", legal: true, sites: where(tagged("tool_call")), apply: func(log []entry,
		at int) ([]entry, bool) {
		id := log[at].update()["toolCallId"]
		for i := range log {
			for _, o := range []object{log[i].update(), log[i].in("params", "toolCall"), log[i].in("params")} {
				if o["toolCallId"] == id {
					o["toolCallId"] = "another one"
				}
			}
		}
		return log, true
	}},
	{name: "reason: max_tokens", legal: true, sites: where(ends("end_turn")),
		apply: edit(func(e entry) { e.in("result")["stopReason"] = "max_tokens" })},
}
