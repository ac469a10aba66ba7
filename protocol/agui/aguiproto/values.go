package aguiproto

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"unicode/utf8"

	"github.com/acp-test/acp-test/wire"
	"google.golang.org/protobuf/encoding/protowire"
)

// deepest is the maximum nesting of lists and structs in a value.
const deepest = 1000

// any returns the JSON of a google.protobuf.Value, or nil if it has no value. If the value occurs several times, the
// last one counts; but lists are merged with lists, and structs with structs. of names the value in errors.
func (d *decoder) any(of string, data []byte) ([]byte, error) {
	types := map[protowire.Number]protowire.Type{1: protowire.VarintType, 2: protowire.Fixed64Type, 3: protowire.BytesType,
		4: protowire.VarintType, 5: protowire.BytesType, 6: protowire.BytesType}
	var arm protowire.Number
	var value []byte
	err := each(data, func(n protowire.Number, t protowire.Type, v []byte) error {
		switch want, ours := types[n]; {
		case !ours || want != t:
		case n == arm && n >= 5:
			value = append(value, v...)
		default:
			arm, value = n, v[:len(v):len(v)] // the limited capacity makes append copy the bytes
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", of, err)
	}
	switch arm {
	case 1:
		return []byte("null"), nil
	case 2:
		bits, _ := protowire.ConsumeFixed64(value)
		number, err := json.Marshal(math.Float64frombits(bits))
		if err != nil {
			return nil, fmt.Errorf("%s has a number that JSON cannot express: %v", of, math.Float64frombits(bits))
		}
		return number, nil
	case 3:
		if !utf8.Valid(value) {
			return nil, fmt.Errorf("%s is not valid UTF-8", of)
		}
		return wire.AppendString(nil, string(value)), nil
	case 4:
		yes, _ := protowire.ConsumeVarint(value)
		return strconv.AppendBool(nil, yes != 0), nil
	case 5:
		return d.open(of, value)
	case 6:
		return d.list(of, value)
	}
	return nil, nil
}

// deeper enters one level of nesting. It returns an error if there are too many levels.
func (d *decoder) deeper(of string) error {
	if d.depth++; d.depth > deepest {
		return fmt.Errorf("%s is nested deeper than %d levels", of, deepest)
	}
	return nil
}

// list returns the JSON of a google.protobuf.ListValue.
func (d *decoder) list(of string, data []byte) ([]byte, error) {
	if err := d.deeper(of); err != nil {
		return nil, err
	}
	list := []byte("[")
	err := each(data, func(n protowire.Number, t protowire.Type, v []byte) error {
		if n != 1 || t != protowire.BytesType {
			return nil
		}
		one, err := d.any(of, v)
		if one == nil {
			one = []byte("null")
		}
		if len(list) > 1 {
			list = append(list, ',')
		}
		list = append(list, one...)
		return err
	})
	d.depth--
	return append(list, ']'), err
}

// entry describes one entry of a google.protobuf.Struct.
var entry = &message{name: "FieldsEntry",
	fields: []field{{name: "key", number: 1}, {name: "value", number: 2, of: "Value"}}}

// open returns the JSON of a google.protobuf.Struct. If a key occurs more than once, the last value counts.
func (d *decoder) open(of string, data []byte) ([]byte, error) {
	if err := d.deeper(of); err != nil {
		return nil, err
	}
	o := object{}
	err := each(data, func(n protowire.Number, t protowire.Type, v []byte) error {
		if n != 1 || t != protowire.BytesType {
			return nil
		}
		c, err := split(entry, v)
		if err != nil {
			return fmt.Errorf("%s: %w", of, err)
		}
		key, value := "", []byte(nil)
		if v := c["key"]; v != nil {
			key = string(v[0])
		}
		if v := c["value"]; v != nil {
			value = v[0]
		}
		if !utf8.ValidString(key) {
			return fmt.Errorf("a key of %s is not valid UTF-8", of)
		}
		one, err := d.any(of, value)
		if one != nil {
			o.raw(key, one)
		}
		return err
	})
	d.depth--
	return o.end(), err
}

// object is a JSON object that is being written.
type object struct {
	names  []string
	values map[string][]byte
}

func (o *object) text(name, value string) { o.raw(name, wire.AppendString(nil, value)) }

func (o *object) raw(name string, value []byte) {
	if o.values == nil {
		o.values = map[string][]byte{}
	}
	if _, again := o.values[name]; !again {
		o.names = append(o.names, name)
	}
	o.values[name] = value
}

func (o *object) end() []byte {
	var b bytes.Buffer
	for i, name := range o.names {
		b.WriteByte("{,"[min(i, 1)])
		b.Write(wire.AppendString(nil, name))
		b.WriteByte(':')
		b.Write(o.values[name])
	}
	if len(o.names) == 0 {
		b.WriteByte('{')
	}
	b.WriteByte('}')
	return b.Bytes()
}
