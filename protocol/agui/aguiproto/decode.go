package aguiproto

import (
	"fmt"
	"slices"
	"strconv"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/acp-test/acp-test/wire"
)

// Decode converts an event from the binary form to JSON. If the schema lacks the event, the type in the JSON is the
// number of the event's field in the envelope, such as "(field 40)". An error says what is wrong with the message.
func Decode(data []byte) ([]byte, error) {
	var of *message
	var payload []byte
	var other protowire.Number
	err := each(data, func(n protowire.Number, t protowire.Type, value []byte) error {
		m := known().arms[n]
		switch {
		case m == nil || t != protowire.BytesType:
			if t == protowire.BytesType {
				other = n
			}
			return nil
		case of != nil && of != m:
			return fmt.Errorf("the message has two events, %s and %s", of.name, m.name)
		}
		of, payload = m, append(payload, value...) // several parts of one event are joined
		return nil
	})
	switch {
	case err != nil:
		return nil, err
	case of == nil && other == 0:
		return nil, fmt.Errorf("the message has no event")
	case of == nil:
		return fmt.Appendf(nil, `{"type":"(field %d)"}`, other), nil
	}
	d := decoder{}
	return d.event(of, payload)
}

// each calls f with the number, the type and the bytes of each field of a message.
func each(data []byte, f func(protowire.Number, protowire.Type, []byte) error) error {
	for len(data) > 0 {
		n, t, k := protowire.ConsumeTag(data)
		if k < 0 {
			return fmt.Errorf("it is not a protobuf message: %w", protowire.ParseError(k))
		}
		data = data[k:]
		if k = protowire.ConsumeFieldValue(n, t, data); k < 0 {
			return fmt.Errorf("it is not a protobuf message: field %d has no value: %w", n, protowire.ParseError(k))
		}
		value := data[:k]
		if data = data[k:]; t == protowire.BytesType {
			value, _ = protowire.ConsumeBytes(value)
		}
		if err := f(n, t, value); err != nil {
			return err
		}
	}
	return nil
}

// decoder writes the JSON of an event.
type decoder struct{ depth int }

// cells has the values of a message's fields, by name.
type cells map[string][][]byte

// split returns the fields of a message. If a field that is not a list occurs more than once, nested messages are
// merged; of other values, the last one counts.
func split(m *message, data []byte) (cells, error) {
	c := cells{}
	err := each(data, func(n protowire.Number, t protowire.Type, value []byte) error {
		for _, f := range m.fields {
			switch {
			case f.number != n || f.wired() != t: // the schema lacks this field
			case f.many || c[f.name] == nil:
				c[f.name] = append(c[f.name], value[:len(value):len(value)])
			case f.nested():
				c[f.name][0] = append(c[f.name][0], value...)
			default:
				c[f.name][0] = value
			}
		}
		return nil
	})
	return c, err
}

// event writes the JSON of an event, with the type as the first member.
func (d *decoder) event(m *message, data []byte) ([]byte, error) {
	c, err := split(m, data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", m.name, err)
	}
	if c["base"] == nil {
		return nil, fmt.Errorf("%s lacks base_event, which holds the event's type", m.name)
	}
	base, err := split(known().named["Base"], c["base"][0])
	if err != nil {
		return nil, fmt.Errorf("the base_event of %s: %w", m.name, err)
	}
	var kind uint64
	if v := base["type"]; v != nil {
		kind, _ = protowire.ConsumeVarint(v[0])
	}
	if kind != m.kind {
		return nil, fmt.Errorf("its envelope holds a %s, but its base_event has type number %d, %s", m.name, kind,
			named(kind))
	}
	o := object{}
	o.text("type", m.name)
	rest := &message{name: m.name, fields: m.fields[1:]}
	switch m.name {
	case "RUN_FINISHED", "SUBAGENT_FINISHED":
		if err := d.outcome(rest, c, &o); err != nil {
			return nil, err
		}
	case "TOOL_CALL_RESULT":
		if err := d.content(m.name, c, &o, true); err != nil {
			return nil, err
		}
	default:
		if err := d.fields(rest, c, &o); err != nil {
			return nil, err
		}
	}
	bare := &message{name: m.name, fields: known().named["Base"].fields[1:]}
	if err := d.fields(bare, base, &o); err != nil {
		return nil, err
	}
	return o.end(), nil
}

// named returns the event type that has the number kind in the enumeration, or "which is unknown".
func named(kind uint64) string {
	for _, m := range known().arms {
		if m.kind == kind {
			return m.name
		}
	}
	return "which is unknown"
}

// fields writes all fields of a message.
func (d *decoder) fields(m *message, c cells, o *object) error {
	for _, f := range m.fields {
		if err := d.field(m, f, c[f.name], o); err != nil {
			return err
		}
	}
	return nil
}

// mayLack has the lists that are omitted if they are empty, because the JSON schema allows this. Other lists are
// always written.
var mayLack = map[string]bool{"usage": true, "toolCalls": true, "contentParts": true}

func (d *decoder) field(m *message, f field, values [][]byte, o *object) error {
	if f.many {
		if len(values) == 0 && mayLack[f.name] {
			return nil
		}
		list := []byte("[")
		for i, value := range values {
			one, err := d.value(m, f, value)
			if err != nil {
				return err
			}
			if one == nil {
				continue
			}
			if i > 0 && len(list) > 1 {
				list = append(list, ',')
			}
			list = append(list, one...)
		}
		o.raw(f.name, append(list, ']'))
		return nil
	}
	var value []byte
	switch {
	case len(values) > 0:
		value = values[0]
	case f.optional:
		return nil
	}
	one, err := d.value(m, f, value)
	if err == nil && one != nil {
		o.raw(f.name, one)
	}
	return err
}

// value returns the JSON of a field's value, or nil if the field has no value.
func (d *decoder) value(m *message, f field, value []byte) ([]byte, error) {
	number, _ := protowire.ConsumeVarint(value) // 0 if the field is missing
	switch f.of {
	case "":
		if !utf8.Valid(value) {
			return nil, fmt.Errorf("%s.%s is not valid UTF-8", m.name, f.name)
		}
		return wire.AppendString(nil, string(value)), nil
	case "int":
		return strconv.AppendInt(nil, int64(number), 10), nil
	case "bool":
		return strconv.AppendBool(nil, number != 0), nil
	case "op":
		if number < uint64(len(operations)) {
			return wire.AppendString(nil, operations[number]), nil
		}
		return fmt.Appendf(nil, `"%d"`, int32(number)), nil
	case "Value":
		return d.any(m.name+"."+f.name, value)
	case "Struct":
		return d.open(m.name+"."+f.name, value)
	}
	return d.message(known().named[f.of], value)
}

// message returns the JSON of a message that is nested in an event.
func (d *decoder) message(m *message, data []byte) ([]byte, error) {
	c, err := split(m, data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", m.name, err)
	}
	o := object{}
	switch m.name {
	case "Message":
		return d.said(c)
	case "Part", "Source":
		return d.arm(m, c)
	}
	if err := d.fields(m, c, &o); err != nil {
		return nil, err
	}
	return o.end(), nil
}

// arm returns the JSON of a message that has one of several alternatives. It returns nil if the schema lacks the
// alternative.
func (d *decoder) arm(m *message, c cells) ([]byte, error) {
	if len(c) > 1 {
		return nil, fmt.Errorf("a %s has more than one of its alternatives", m.name)
	}
	for _, f := range m.fields {
		if c[f.name] == nil {
			continue
		}
		of := known().named[f.of]
		inner, err := split(of, c[f.name][0])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", of.name, err)
		}
		o := object{}
		o.text("type", f.name)
		if err := d.fields(of, inner, &o); err != nil {
			return nil, err
		}
		return o.end(), nil
	}
	return nil, nil
}

// said returns the JSON of a message of the conversation. The role of the message decides which field has the content.
func (d *decoder) said(c cells) ([]byte, error) {
	role := ""
	if v := c["role"]; v != nil {
		role = string(v[0])
	}
	o := object{}
	if c["activityContent"] != nil && (role != "activity" || c["content"] != nil) {
		return nil, fmt.Errorf("a message with role %q has activity_content: only activity without content may", role)
	}
	if err := d.content("Message", c, &o, role == "user" || role == "tool"); err != nil {
		return nil, err
	}
	return o.end(), nil
}

// content writes the fields of a message whose content is a text. If parts is true, the content may also be a list of
// parts.
func (d *decoder) content(name string, c cells, o *object, parts bool) error {
	some := len(c["contentParts"]) > 0
	switch {
	case some && !parts:
		return fmt.Errorf("a message has content_parts, which its role does not allow")
	case some && c["content"] != nil:
		return fmt.Errorf("%s has both content and content_parts", name)
	}
	m := known().named[name]
	for _, f := range m.fields {
		values := c[f.name]
		switch {
		case f.name == "base":
			continue
		case f.name == "content" && parts && values == nil:
			f, values = field{name: "content", of: "Part", many: true}, c["contentParts"]
		case f.name == "contentParts":
			continue
		case f.name == "activityContent":
			f.name = "content"
		}
		if err := d.field(m, f, values, o); err != nil {
			return err
		}
	}
	return nil
}

// outcome writes the fields of an event that reports the end of a run or of a subagent.
func (d *decoder) outcome(m *message, c cells, o *object) error {
	how := ""
	if v := c["outcome"]; v != nil {
		how = string(v[0])
	}
	inner := object{}
	inner.text("type", how)
	for _, f := range m.fields {
		to := o
		switch part := slices.Contains(outcomes[m.name], f.name); {
		case f.name == "outcome":
			continue
		case part && len(c[f.name]) == 0 && !(f.name == "interrupts" && how == "interrupt"):
			continue
		case part && how != "":
			to = &inner
		}
		if err := d.field(m, f, c[f.name], to); err != nil {
			return err
		}
	}
	if how != "" {
		if !utf8.ValidString(how) {
			return fmt.Errorf("%s.outcome is not valid UTF-8", m.name)
		}
		o.raw("outcome", inner.end())
	}
	return nil
}
