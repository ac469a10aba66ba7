package invariants

import (
	_ "embed"
	"slices"
	"strings"
	"sync"

	"github.com/acp-test/acp-test/internal/lists"
	"github.com/acp-test/acp-test/wire"
)

// shapes has one line for each type of event: the required members, then a bar, then the optional members. A member is
// NAME:TYPE, or NAME if it is a text. The types are object, list, bool, whole, any (which allows null), some (any but
// null), content (a text or a list), input, outcome, suboutcome, messages, and a|b for a closed set of texts. The word
// A says that the event may have subagentRunId. The members are those of the schema of version 1.1; for retired types,
// those of the guides of 0.x.
//
//go:embed shapes.txt
var shapes string

// field is a member of an event.
type field struct {
	name, kind string
	needed     bool
}

var types = sync.OnceValue(func() map[string][]field {
	table := map[string][]field{}
	for line := range strings.Lines(strings.TrimSpace(shapes)) {
		words := strings.Fields(line)
		// Any event may have these members.
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

// Members returns the members of each type of event, by type. Each member has a name, with ? at the end if the member
// is optional, and a type as in the table; the type "" stands for a text.
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

// Types returns the types of events, including retired ones, in the order of the table.
func Types() []string {
	return lists.Collect(strings.Lines(shapes), func(line string) string { return strings.Fields(line)[0] })
}

func knownType(kind string) bool { return types()[kind] != nil }

// jsonKinds has, for the types of members that require one kind of JSON value, that kind and a description for
// messages.
var jsonKinds = map[string]struct {
	kind wire.Kind
	says string
}{
	"object": {wire.Object, "an object"}, "outcome": {wire.Object, "an object"}, "suboutcome": {wire.Object, "an object"},
	"input": {wire.Object, "an object"}, "list": {wire.Array, "a list"}, "messages": {wire.Array, "a list"},
	"bool": {wire.Bool, "true or false"}, "whole": {wire.Number, "a number"}, "": {wire.String, "a text"},
	"content": {wire.String, "a text or a list of parts"},
}

// wrongKind returns a description of the values that a member may have, or "" if v is such a value. kind is the type
// of the member in the table.
func wrongKind(kind string, v wire.Value) string {
	is, simple := jsonKinds[kind]
	switch {
	case kind == "any", kind == "some" && !v.IsNull(), kind == "content" && v.Kind() == wire.Array:
		return ""
	case kind == "some":
		return "anything but null"
	case simple && v.Kind() == is.kind:
		return ""
	case simple:
		return is.says
	case v.Kind() == wire.String && slices.Contains(strings.Split(kind, "|"), v.Str()):
		return ""
	}
	return "one of " + strings.ReplaceAll(kind, "|", ", ")
}

// tolerated has the members that agents of 0.x often send as null.
var tolerated = []string{"parentMessageId", "outcome", "rawEvent", "result", "timestamp", "code", "name", "source",
	"input", "parentRunId", "role"}

// eventShape checks events against their schema.
func eventShape(w *watch) {
	w.On(func(ev *event) {
		w.Saw("lacks", "kind", "null", "unknown", "more")
		modern := ev.modern() || ev.kind == "RUN_STARTED" && ev.v.Get("protocolVersion").Exists()
		fields := types()[ev.kind]
		if fields == nil {
			point := "unknown"
			if !modern {
				point = "unknown-0.x"
			}
			w.find(point, ev, ev.kind, nil, "%q is not an event type; use CUSTOM for your own events.", ev.kind)
			return
		}
		if strings.HasPrefix(ev.kind, "THINKING_") && modern {
			w.find("retired", ev, ev.kind, nil, "%s is retired: use REASONING_… instead.", ev.kind)
		}
		points := [...]string{isLacking: "lacks", isOfKind: "kind", isFraction: "kind", isNull: "null", isMore: "more"}
		look{ev.kind, func(what fault, member, format string, args ...any) {
			point := points[what]
			if what == isFraction && !modern { // older schemas allow a fraction
				return
			}
			if what == isNull && !modern && slices.Contains(tolerated, member) {
				point = "null-0.x"
			}
			w.find(point, ev, ev.kind+"."+member, nil, format, args...)
		}}.event(fields, ev.v)
	}, anyEvent)
}

// fault is a way in which a member can be wrong.
type fault uint8

const (
	isLacking fault = iota
	isOfKind
	isFraction
	isNull
	isMore
)

// look is the check of one event. It calls add for each fault.
type look struct {
	kind string // type of the event
	add  func(what fault, member, format string, args ...any)
}

func (l look) event(fields []field, v wire.Value) {
	for _, f := range fields {
		m := v.Get(f.name)
		switch {
		case !m.Exists():
			if f.needed {
				l.add(isLacking, f.name, "%s lacks %s.", l.kind, f.name)
			}
		case m.IsNull() && !f.needed && f.kind != "any":
			l.add(isNull, f.name, "%s has %s as null; leave out a member without a value.", l.kind, f.name)
		default:
			l.member(f, m)
		}
	}
	for name := range v.Members() {
		if !slices.ContainsFunc(fields, func(f field) bool { return f.name == name }) {
			l.add(isMore, name, "%s has %s, which is not a member of this event type.", l.kind, wire.Clip(name, 40))
		}
	}
}

// member checks the value of one member.
func (l look) member(f field, m wire.Value) {
	is := wire.Clip(string(m.Raw()), 80)
	if want := wrongKind(f.kind, m); want != "" {
		l.add(isOfKind, f.name, "The %s of %s is %s, and must be %s.", f.name, l.kind, is, want)
		return
	}
	switch f.kind {
	case "outcome":
		l.outcome(m)
	case "suboutcome":
		if kind := m.Get("type").Str(); kind != "success" && kind != "suspended" {
			l.add(isOfKind, "outcome.type", "The type of the outcome is %q, and must be success or suspended.", kind)
		}
	case "input":
		l.input(m)
	case "whole":
		if _, ok := m.Int(); !ok {
			l.add(isFraction, f.name, "The %s of %s is %s, and must be a whole number.", f.name, l.kind, is)
		}
	case "messages":
		l.messages(m)
	}
}

// outcome checks the outcome of a run.
func (l look) outcome(v wire.Value) {
	kind := v.Get("type").Str()
	if !slices.Contains([]string{"success", "interrupt", "cancelled"}, kind) {
		l.add(isOfKind, "outcome.type", "The type of the outcome is %q, and must be success, interrupt or cancelled.", kind)
	}
	if kind != "interrupt" && v.Get("interrupts").Exists() {
		l.add(isOfKind, "outcome.interrupts", "The outcome %s has interrupts.", kind)
	}
	for i := range v.Get("interrupts").Items() {
		for _, name := range []string{"id", "reason"} {
			if i.Get(name).Kind() != wire.String {
				l.add(isLacking, "outcome.interrupts."+name, "An interrupt lacks %s.", name)
			}
		}
	}
}

// input checks the input that the agent repeats in RUN_STARTED.
func (l look) input(v wire.Value) {
	for _, name := range []string{"threadId", "runId"} {
		if v.Get(name).Kind() != wire.String {
			l.add(isLacking, "input."+name, "The input that RUN_STARTED echoes lacks %s.", name)
		}
	}
	if v.Get("messages").Kind() != wire.Array {
		l.add(isLacking, "input.messages", "The input that RUN_STARTED echoes lacks messages.")
	}
}

// messages checks the messages of a snapshot.
func (l look) messages(v wire.Value) {
	roles := []string{"developer", "system", "assistant", "user", "tool", "activity", "reasoning"}
	for m := range v.Items() {
		role := m.Get("role").Str()
		switch {
		case m.Get("id").Kind() != wire.String:
			l.add(isLacking, "messages.id", "A message of the snapshot lacks id.")
		case !slices.Contains(roles, role):
			l.add(isOfKind, "messages.role", "A message of the snapshot has the unknown role %q.", role)
		case role == "tool" && m.Get("toolCallId").Kind() != wire.String:
			l.add(isLacking, "messages.toolCallId", "A tool message of the snapshot lacks toolCallId.")
		case role != "assistant" && !m.Get("content").Exists():
			l.add(isLacking, "messages.content", "A message of the snapshot with the role %s lacks content.", role)
		}
		for c := range m.Get("toolCalls").Items() {
			if c.Get("id").Kind() != wire.String || c.Path("function.name").Kind() != wire.String {
				l.add(isLacking, "messages.toolCalls", "A tool call of the snapshot lacks id or function.name.")
			}
		}
	}
}
