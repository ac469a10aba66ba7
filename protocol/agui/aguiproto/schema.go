// Package aguiproto reads and writes events of AG-UI in their binary form, which is a message of
// protobuf for each. It makes of such a message the JSON that the same event is elsewhere.
package aguiproto

import (
	_ "embed"
	"strconv"
	"strings"
	"sync"

	"google.golang.org/protobuf/encoding/protowire"
)

// schema are the messages, see the head of the file.
//
//go:embed schema.txt
var schema string

// operations are those of a patch, by their numbers.
var operations = []string{"add", "remove", "replace", "move", "copy", "test"}

// outcomes are the members of an outcome, by the type of its event.
var outcomes = map[string][]string{
	"RUN_FINISHED": {"pendingToolCallIds", "interrupts"}, "SUBAGENT_FINISHED": {"interruptIds"}}

// message is what the schema says of one.
type message struct {
	name   string
	fields []field
	// arm and kind are those of an event in the envelope and in the enumeration of types.
	arm  protowire.Number
	kind uint64
}

// field is one field of a message. of is "" for a text, else int, bool, op, Value, Struct or a message.
type field struct {
	name           string
	number         protowire.Number
	of             string
	optional, many bool
}

// wired is how the value of a field is written.
func (f field) wired() protowire.Type {
	if f.of == "int" || f.of == "bool" || f.of == "op" {
		return protowire.VarintType
	}
	return protowire.BytesType
}

// nested reports whether the value is a message.
func (f field) nested() bool { return f.of != "" && f.wired() == protowire.BytesType }

// tables are the messages by their names, and those of events by their numbers in the envelope.
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
			kind, _ := strconv.Atoi(words[1]) // a number of the table
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
