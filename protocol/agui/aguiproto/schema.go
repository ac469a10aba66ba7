// Package aguiproto converts events of AG-UI between JSON and the binary form. The binary form has a protobuf message
// for each type of event.
package aguiproto

import (
	_ "embed"
	"strconv"
	"strings"
	"sync"

	"google.golang.org/protobuf/encoding/protowire"
)

// schema has the messages. The head of the file explains its form.
//
//go:embed schema.txt
var schema string

// operations has the operations of a JSON Patch. Each has its index as its number.
var operations = []string{"add", "remove", "replace", "move", "copy", "test"}

// outcomes has, by type of event, the members that belong to the outcome of the event.
var outcomes = map[string][]string{
	"RUN_FINISHED": {"pendingToolCallIds", "interrupts"}, "SUBAGENT_FINISHED": {"interruptIds"}}

// message describes a message of the schema.
type message struct {
	name   string
	fields []field
	// arm is the number of the event's field in the envelope, or 0 for other messages. kind is the event's number in
	// the enumeration of types.
	arm  protowire.Number
	kind uint64
}

// field is one field of a message. of is its type: "" for a text, or int, bool, op, Value, Struct or the name of a
// message.
type field struct {
	name           string
	number         protowire.Number
	of             string
	optional, many bool
}

// wired returns the wire type of the field.
func (f field) wired() protowire.Type {
	if f.of == "int" || f.of == "bool" || f.of == "op" {
		return protowire.VarintType
	}
	return protowire.BytesType
}

// nested reports whether the value of the field is a message.
func (f field) nested() bool { return f.of != "" && f.wired() == protowire.BytesType }

// tables has the messages by name, and those of events also by the number of their field in the envelope.
type tables struct {
	named map[string]*message
	arms  map[protowire.Number]*message
}

var known = sync.OnceValue(func() tables {
	t := tables{map[string]*message{}, map[protowire.Number]*message{}}
	for line := range strings.Lines(strings.TrimSpace(schema)) {
		if line[0] == '#' {
			continue
		}
		words := strings.Fields(line)
		m := &message{}
		if arm, err := strconv.Atoi(words[0]); err == nil {
			kind, _ := strconv.Atoi(words[1]) // always a number in the table
			m.arm, m.kind = protowire.Number(arm), uint64(kind)
			m.fields = append(m.fields, field{name: "base", number: 1, of: "Base", optional: true})
			t.arms[m.arm] = m
			words = words[2:]
		}
		m.name = words[0]
		t.named[m.name] = m
		for _, w := range words[1:] {
			w, of, _ := strings.Cut(w, ":")
			f := field{of: of, optional: strings.HasSuffix(w, "?"), many: strings.HasSuffix(w, "*")}
			name, number, _ := strings.Cut(strings.TrimRight(w, "?*"), "=")
			n, _ := strconv.Atoi(number) // a number of the table
			f.name, f.number = name, protowire.Number(n)
			m.fields = append(m.fields, f)
		}
	}
	return t
})
