package aguiproto

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/acp-test/acp-test/wire"
)

// ErrNoMessage is the error for an event that has no binary form: an event of a retired or a custom type.
var ErrNoMessage = errors.New("the binary form does not have this event type")

// Encode converts an event from JSON to the binary form. It omits members that the binary form lacks, and values of
// the wrong kind.
func Encode(event []byte) ([]byte, error) {
	v, err := wire.Parse(event)
	if err != nil {
		return nil, fmt.Errorf("the event is not valid JSON: %w", err)
	}
	kind := v.Get("type").Str()
	m := known().named[kind]
	if m == nil || m.arm == 0 {
		return nil, fmt.Errorf("%s: %w", wire.Clip(kind, 80), ErrNoMessage)
	}
	base := appendFields(varint(nil, 1, m.kind), &message{fields: known().named["Base"].fields[1:]}, v.Get)
	body := part(nil, 1, base)
	body = appendFields(body, &message{fields: m.fields[1:]}, members(kind, v))
	return part(nil, m.arm, body), nil
}

// Unknown returns a message with an event type that no version of the protocol has.
func Unknown() []byte { return part(nil, 4095, nil) }

// members returns a function that returns, from the event v, the value for each field of the binary form.
func members(kind string, v wire.Value) func(string) wire.Value {
	if kind == "TOOL_CALL_RESULT" {
		return content(v)
	}
	return func(name string) wire.Value {
		switch {
		case outcomes[kind] == nil:
		case name == "outcome":
			return v.Path("outcome.type")
		case slices.Contains(outcomes[kind], name):
			return v.Get("outcome").Get(name)
		}
		return v.Get(name)
	}
}

// content returns a function that returns, from v, the value for each field of the binary form. There are three fields
// for the content: for a text, for parts and for an activity.
func content(v wire.Value) func(string) wire.Value {
	holds := map[string]wire.Kind{"content": wire.String, "contentParts": wire.Array, "activityContent": wire.Object}
	return func(name string) wire.Value {
		kind, of := holds[name]
		switch is := v.Get("content"); {
		case !of:
			return v.Get(name)
		case is.Kind() == kind:
			return is
		}
		return wire.Value{}
	}
}

func varint(b []byte, n protowire.Number, v uint64) []byte {
	if v == 0 {
		return b
	}
	return protowire.AppendVarint(protowire.AppendTag(b, n, protowire.VarintType), v)
}

func part(b []byte, n protowire.Number, data []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, n, protowire.BytesType), data)
}

// appendFields appends the fields of a message. get returns the value of a field.
func appendFields(b []byte, m *message, get func(string) wire.Value) []byte {
	for _, f := range m.fields {
		v := get(f.name)
		switch {
		case f.many && v.Kind() == wire.Array:
			for one := range v.Items() {
				b = appendField(b, f, one)
			}
		case !f.many && v.Exists():
			b = appendField(b, f, v)
		}
	}
	return b
}

// appendField appends a field with the value v. It appends nothing if v is not valid for the field.
func appendField(b []byte, f field, v wire.Value) []byte {
	switch f.of {
	case "":
		if text := v.Str(); v.Kind() == wire.String && (text != "" || f.optional || f.many) {
			return part(b, f.number, []byte(text))
		}
	case "int":
		if n, whole := v.Int(); whole {
			return protowire.AppendVarint(protowire.AppendTag(b, f.number, protowire.VarintType), uint64(n))
		}
	case "bool":
		if yes, is := v.Bool(); is {
			return protowire.AppendVarint(protowire.AppendTag(b, f.number, protowire.VarintType), protowire.EncodeBool(yes))
		}
	case "op":
		return varint(b, f.number, uint64(max(0, slices.Index(operations, v.Str()))))
	case "Value":
		return part(b, f.number, appendAny(nil, v))
	case "Struct":
		if v.Kind() == wire.Object {
			return part(b, f.number, appendOpen(nil, v))
		}
	default:
		if v.Kind() == wire.Object {
			return part(b, f.number, appendMessage(known().named[f.of], v))
		}
	}
	return b
}

// appendMessage returns the binary form of a message that is nested in an event.
func appendMessage(m *message, v wire.Value) []byte {
	switch m.name {
	case "Message":
		return appendFields(nil, m, content(v))
	case "Part", "Source":
		return appendFields(nil, m, func(name string) wire.Value {
			if v.Get("type").Is(name) {
				return v
			}
			return wire.Value{}
		})
	}
	return appendFields(nil, m, v.Get)
}

// appendAny appends a google.protobuf.Value.
func appendAny(b []byte, v wire.Value) []byte {
	switch v.Kind() {
	case wire.Number:
		n, _ := v.Float()
		return protowire.AppendFixed64(protowire.AppendTag(b, 2, protowire.Fixed64Type), math.Float64bits(n))
	case wire.String:
		return part(b, 3, []byte(v.Str()))
	case wire.Bool:
		yes, _ := v.Bool()
		return protowire.AppendVarint(protowire.AppendTag(b, 4, protowire.VarintType), protowire.EncodeBool(yes))
	case wire.Object:
		return part(b, 5, appendOpen(nil, v))
	case wire.Array:
		var list []byte
		for one := range v.Items() {
			list = part(list, 1, appendAny(nil, one))
		}
		return part(b, 6, list)
	}
	return protowire.AppendVarint(protowire.AppendTag(b, 1, protowire.VarintType), 0)
}

// appendOpen appends a google.protobuf.Struct.
func appendOpen(b []byte, v wire.Value) []byte {
	for key, value := range v.Members() {
		var entry []byte
		if key != "" {
			entry = part(nil, 1, []byte(key))
		}
		b = part(b, 1, part(entry, 2, appendAny(nil, value)))
	}
	return b
}
