package invariants

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/acp-test/acp-test/wire"
)

// shapes says which members an event has, one type a line: what it needs, and behind a
// bar what it may have. A member is NAME:TYPE; without a type it is a text. Types are
// object, list, bool, whole, any (also null), content (a text or a list), a role, an
// outcome, messages, and a|b for a closed set. "A" says that it may bear subagentRunId.
// The facts are those of the schema of 1.1, and of the guides of 0.x for what is retired.
const shapes = `
RUN_STARTED threadId runId | parentRunId input:input protocolVersion
RUN_FINISHED threadId runId | result:some outcome:outcome usage:list
RUN_ERROR message | code usage:list
STEP_STARTED stepName | A
STEP_FINISHED stepName | A
TEXT_MESSAGE_START messageId | role:developer|system|assistant|user name A
TEXT_MESSAGE_CONTENT messageId delta | A
TEXT_MESSAGE_END messageId | A
TEXT_MESSAGE_CHUNK | messageId role:developer|system|assistant|user delta name A
TOOL_CALL_START toolCallId toolCallName | parentMessageId A
TOOL_CALL_ARGS toolCallId delta | A
TOOL_CALL_END toolCallId | A
TOOL_CALL_CHUNK | toolCallId toolCallName parentMessageId delta A
TOOL_CALL_RESULT messageId toolCallId content:content | role:tool A
STATE_SNAPSHOT snapshot:any | A
STATE_DELTA delta:list | A
MESSAGES_SNAPSHOT messages:messages |
ACTIVITY_SNAPSHOT messageId activityType content:object | replace:bool A
ACTIVITY_DELTA messageId activityType patch:list | A
RAW event:any | source A
CUSTOM name value:any | A
REASONING_START messageId | A
REASONING_END messageId | A
REASONING_MESSAGE_START messageId role:reasoning | A
REASONING_MESSAGE_CONTENT messageId delta | A
REASONING_MESSAGE_END messageId | A
REASONING_MESSAGE_CHUNK | messageId delta A
REASONING_ENCRYPTED_VALUE subtype:tool-call|message entityId encryptedValue | encryptedValueType A
SUBAGENT_STARTED subagentRunId name | description parentSubagentRunId parentToolCallId parentMessageId
SUBAGENT_FINISHED subagentRunId | result:some outcome:suboutcome
SUBAGENT_ERROR subagentRunId message | code
THINKING_START | title
THINKING_END |
THINKING_TEXT_MESSAGE_START |
THINKING_TEXT_MESSAGE_CONTENT delta |
THINKING_TEXT_MESSAGE_END |
`

// field is a member of an event.
type field struct {
	name, kind string
	needed     bool
}

var types = sync.OnceValue(func() map[string][]field {
	table := map[string][]field{}
	for line := range strings.Lines(strings.TrimSpace(shapes)) {
		words := strings.Fields(line)
		// Any event may have these.
		fields := []field{{"type", "", true}, {"timestamp", "whole", false}, {"rawEvent", "some", false},
			{"metadata", "object", false}}
		needed := true
		for _, w := range words[1:] {
			name, kind, _ := strings.Cut(w, ":")
			switch w {
			case "|":
				needed = false
			case "A":
				fields = append(fields, field{"subagentRunId", "", false})
			default:
				fields = append(fields, field{name, kind, needed})
			}
		}
		table[words[0]] = fields
	}
	return table
})

// Members are the members of each type of event, by its name: the name of each, with ? behind it if it may be left
// out, and the word for what it is, "" for a text.
func Members() map[string][][2]string {
	all := map[string][][2]string{}
	for event, fields := range types() {
		for _, f := range fields {
			name := f.name
			if !f.needed {
				name += "?"
			}
			all[event] = append(all[event], [2]string{name, f.kind})
		}
	}
	return all
}

func knownType(kind string) bool { return types()[kind] != nil }

// wrongKind says what a value should be, "" if it is.
func wrongKind(kind string, v wire.Value) string {
	is := func(k wire.Kind, name string) string {
		if v.Kind() == k {
			return ""
		}
		return name
	}
	switch kind {
	case "any":
		return ""
	case "some":
		if v.IsNull() {
			return "anything but null"
		}
		return ""
	case "object", "outcome", "suboutcome", "input":
		return is(wire.Object, "an object")
	case "list", "messages":
		return is(wire.Array, "a list")
	case "bool":
		return is(wire.Bool, "true or false")
	case "whole":
		return is(wire.Number, "a number")
	case "content":
		if v.Kind() == wire.Array {
			return ""
		}
		return is(wire.String, "a text or a list of parts")
	case "":
		return is(wire.String, "a text")
	}
	if v.Kind() == wire.String && slices.Contains(strings.Split(kind, "|"), v.Str()) {
		return ""
	}
	return "one of " + strings.ReplaceAll(kind, "|", ", ")
}

// tolerated are the members that producers of 0.x send as null.
var tolerated = []string{"parentMessageId", "outcome", "rawEvent", "result", "timestamp", "code", "name", "source",
	"input",
	"parentRunId", "role"}

// eventShape judges events by their schema.
func eventShape() *rule {
	r := newRule("EVENT-SHAPE", "An event has what its type needs, and nothing of another kind.")
	lacks := r.Fail("lacks", "an event lacks a member that it needs", "SHP-001")
	kind := r.Fail("kind", "a member is of another kind, or no value of its set", "SHP-001", "TXT-005", "RUN-008")
	null := r.Fail("null", "an optional member is null", "NULL-001")
	oldNull := r.Lint("null-0.x", "an optional member is null, in a stream that declares no version", "NULL-001")
	unknown := r.Fail("unknown", "a type of event is not of the protocol", "UNK-001")
	oldUnknown := r.Lint("unknown-0.x", "a type of event is not of the protocol, in a stream that declares no version",
		"UNK-001")
	retired := r.Warn("retired", "a retired type of event is in a stream that declares a version", "UNK-001")
	more := r.Lint("more", "an event has a member that its type has not", "SHP-001")
	r.see = func(w *watch, s *stream, ev *event) {
		if ev.kind == "" {
			return
		}
		w.Saw(lacks, kind, null, unknown, more)
		modern := s.modern() || ev.kind == "RUN_STARTED" && ev.v.Get("protocolVersion").Exists()
		fields := types()[ev.kind]
		switch {
		case fields == nil && modern:
			w.find(unknown, ev, ev.kind, nil, "%q is no type of event; CUSTOM is for events of one's own.", ev.kind)
			return
		case fields == nil:
			w.find(oldUnknown, ev, ev.kind, nil, "%q is no type of event; CUSTOM is for events of one's own.", ev.kind)
			return
		case strings.HasPrefix(ev.kind, "THINKING_") && modern:
			w.find(retired, ev, ev.kind, nil, "%s is retired: REASONING_… takes its place.", ev.kind)
		}
		for _, p := range problems(ev.kind, fields, ev.v) {
			if p.point == "fraction" && !modern { // which older schemas allow
				continue
			}
			point := map[string]int{"lacks": lacks, "kind": kind, "null": null, "more": more, "fraction": kind}[p.point]
			if p.point == "null" && !modern && slices.Contains(tolerated, p.member) {
				point = oldNull
			}
			w.find(point, ev, ev.kind+"."+p.member, nil, "%s", p.says)
		}
	}
	return r
}

// problem is one thing that is wrong with an event.
type problem struct{ point, member, says string }

func problems(kind string, fields []field, v wire.Value) (all []problem) {
	add := func(point, member, format string, args ...any) {
		all = append(all, problem{point, member, fmt.Sprintf(format, args...)})
	}
	for _, f := range fields {
		m := v.Get(f.name)
		switch {
		case !m.Exists():
			if f.needed {
				add("lacks", f.name, "%s lacks %s.", kind, f.name)
			}
		case m.IsNull() && !f.needed && f.kind != "any":
			add("null", f.name, "%s has %s as null; it is left out where it has no value.", kind, f.name)
		default:
			if want := wrongKind(f.kind, m); want != "" {
				add("kind", f.name, "The %s of %s is %s, and must be %s.", f.name, kind, wire.Clip(string(m.Raw()), 80), want)
				continue
			}
			switch f.kind {
			case "outcome":
				checkOutcome(m, add)
			case "suboutcome":
				if kind := m.Get("type").Str(); kind != "success" && kind != "suspended" {
					add("kind", "outcome.type", "The type of the outcome is %q, and must be success or suspended.", kind)
				}
			case "input":
				checkInput(m, add)
			case "whole":
				if _, ok := m.Int(); !ok {
					add("fraction", f.name, "The %s of %s is %s, and must be a whole number.", f.name, kind,
						wire.Clip(string(m.Raw()), 80))
				}
			case "messages":
				checkMessages(m, add)
			}
		}
	}
	for name := range v.Members() {
		if !slices.ContainsFunc(fields, func(f field) bool { return f.name == name }) {
			add("more", name, "%s has %s, which is no member of it.", kind, wire.Clip(name, 40))
		}
	}
	return all
}

type adder = func(point, member, format string, args ...any)

// checkOutcome judges how a run says that it ended.
func checkOutcome(v wire.Value, add adder) {
	kind := v.Get("type").Str()
	if !slices.Contains([]string{"success", "interrupt", "cancelled"}, kind) {
		add("kind", "outcome.type", "The type of the outcome is %q, and must be success, interrupt or cancelled.", kind)
	}
	if kind != "interrupt" && v.Get("interrupts").Exists() {
		add("kind", "outcome.interrupts", "The outcome %s has interrupts.", kind)
	}
	for i := range v.Get("interrupts").Items() {
		for _, name := range []string{"id", "reason"} {
			if i.Get(name).Kind() != wire.String {
				add("lacks", "outcome.interrupts."+name, "An interrupt lacks %s.", name)
			}
		}
	}
}

// checkInput judges the input that a run echoes.
func checkInput(v wire.Value, add adder) {
	for _, name := range []string{"threadId", "runId"} {
		if v.Get(name).Kind() != wire.String {
			add("lacks", "input."+name, "The input that RUN_STARTED echoes lacks %s.", name)
		}
	}
	if v.Get("messages").Kind() != wire.Array {
		add("lacks", "input.messages", "The input that RUN_STARTED echoes lacks messages.")
	}
}

// checkMessages judges the messages of a snapshot.
func checkMessages(v wire.Value, add adder) {
	roles := []string{"developer", "system", "assistant", "user", "tool", "activity", "reasoning"}
	for m := range v.Items() {
		role := m.Get("role").Str()
		switch {
		case m.Get("id").Kind() != wire.String:
			add("lacks", "messages.id", "A message of the snapshot lacks id.")
		case !slices.Contains(roles, role):
			add("kind", "messages.role", "A message of the snapshot has the role %q.", role)
		case role == "tool" && m.Get("toolCallId").Kind() != wire.String:
			add("lacks", "messages.toolCallId", "A tool message of the snapshot lacks toolCallId.")
		case role != "assistant" && !m.Get("content").Exists():
			add("lacks", "messages.content", "A message of the snapshot with the role %s lacks content.", role)
		}
		for c := range m.Get("toolCalls").Items() {
			if c.Get("id").Kind() != wire.String || c.Path("function.name").Kind() != wire.String {
				add("lacks", "messages.toolCalls", "A tool call of the snapshot lacks id or function.name.")
			}
		}
	}
}
