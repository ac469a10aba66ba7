package schema

import "github.com/acp-test/acp-test/wire"

// WithNulls returns raw with null for each stable member that is absent and may be null, as programs in some languages
// write absent members. raw is the result of a response to method if result is set, else the params of method. A value
// of unknown shape stays unchanged.
func (v *Version) WithNulls(method string, result bool, raw []byte) []byte {
	return added{true, "null"}.in(v, method, result, raw)
}

// WithMeta is like WithNulls, but gives each object of the message a _meta member with a key of an example, and adds
// nothing else.
func (v *Version) WithMeta(method string, result bool, raw []byte) []byte {
	return added{false, `{"example.com/trace":"00-4bf92f35"}`}.in(v, method, result, raw)
}

// added says which absent members a message gets: null for those that may be null, and the value of _meta.
type added struct {
	nulls bool
	meta  string
}

func (a added) in(v *Version, method string, result bool, raw []byte) []byte {
	m := v.methods[method]
	value, err := wire.Parse(raw)
	if m == nil || err != nil {
		return raw
	}
	if result {
		return a.to(nil, m.result.shape, value)
	}
	return a.to(nil, m.params.shape, value)
}

// to appends a value with the added members.
func (a added) to(out []byte, s *shape, v wire.Value) []byte {
	switch {
	case s.kind == union && s.variant(v.Get(s.word)) != nil:
		return a.to(out, s.variant(v.Get(s.word)).shape, v)
	case s.kind == choice:
		for i := range s.variants {
			if one := &s.variants[i]; !one.unstable && (&walk{}).breaksOf(one, v, s, tags{}) == 0 {
				return a.to(out, one.shape, v)
			}
		}
	case (s.kind == list || s.kind == filledList) && v.Kind() == wire.Array:
		out = append(out, '[')
		for item := range v.Items() {
			out = append(a.to(out, s.elem.shape, item), ',')
		}
		return closed(out, ']')
	case s.kind == record && v.Kind() == wire.Object:
		return a.filled(out, s, v)
	}
	return append(out, v.Raw()...)
}

// filled appends an object of a record shape with the added members.
func (a added) filled(out []byte, s *shape, v wire.Value) []byte {
	out = append(out, '{')
	for key, value := range v.Fields() {
		out = append(append(out, key.Raw()...), ':')
		if i := s.find(key); i >= 0 {
			out = a.to(out, s.fields[i].shape, value)
		} else {
			out = append(out, value.Raw()...)
		}
		out = append(out, ',')
	}
	for i, f := range s.fields {
		if optional := s.required&(1<<i) == 0; a.nulls && optional && f.nullable && !f.unstable && !v.Get(f.name).Exists() {
			out = append(wire.AppendString(out, f.name), ":null,"...)
		}
	}
	if !s.noMeta && !v.Get("_meta").Exists() {
		out = append(append(append(out, `"_meta":`...), a.meta...), ',')
	}
	return closed(out, '}')
}

// closed ends a list or an object in out. It removes the comma after the last part.
func closed(out []byte, end byte) []byte {
	if out[len(out)-1] == ',' {
		out = out[:len(out)-1]
	}
	return append(out, end)
}
