package schema

import "github.com/acp-test/acp-test/wire"

// WithNulls returns raw with null for each stable member that is absent and may be null, as programs in some languages
// write absent members. raw is the result of a response to method if result is set, else the params of method. A value
// of unknown shape stays unchanged.
func (v *Version) WithNulls(method string, result bool, raw []byte) []byte {
	m := v.methods[method]
	value, err := wire.Parse(raw)
	if m == nil || err != nil {
		return raw
	}
	if result {
		return withNulls(nil, m.result.shape, value)
	}
	return withNulls(nil, m.params.shape, value)
}

// withNulls appends a value, with null for its absent members.
func withNulls(out []byte, s *shape, v wire.Value) []byte {
	switch {
	case s.kind == union && s.variant(v.Get(s.word)) != nil:
		return withNulls(out, s.variant(v.Get(s.word)).shape, v)
	case s.kind == choice:
		for i := range s.variants {
			if a := &s.variants[i]; !a.unstable && (&walk{}).breaksOf(a, v, s, tags{}) == 0 {
				return withNulls(out, a.shape, v)
			}
		}
	case (s.kind == list || s.kind == filledList) && v.Kind() == wire.Array:
		out = append(out, '[')
		for item := range v.Items() {
			out = append(withNulls(out, s.elem.shape, item), ',')
		}
		return closed(out, ']')
	case s.kind == record && v.Kind() == wire.Object:
		return s.filled(out, v)
	}
	return append(out, v.Raw()...)
}

// filled appends an object of a record shape, with null for its absent members.
func (s *shape) filled(out []byte, v wire.Value) []byte {
	out = append(out, '{')
	for key, value := range v.Fields() {
		out = append(append(out, key.Raw()...), ':')
		if i := s.find(key); i >= 0 {
			out = withNulls(out, s.fields[i].shape, value)
		} else {
			out = append(out, value.Raw()...)
		}
		out = append(out, ',')
	}
	for i, f := range s.fields {
		if optional := s.required&(1<<i) == 0; optional && f.nullable && !f.unstable && !v.Get(f.name).Exists() {
			out = append(wire.AppendString(out, f.name), ":null,"...)
		}
	}
	if !s.noMeta && !v.Get("_meta").Exists() {
		out = append(out, `"_meta":null,`...)
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
