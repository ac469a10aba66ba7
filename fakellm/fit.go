package fakellm

import (
	"slices"
	"strings"

	"github.com/acp-test/acp-test/wire"
)

// fitter builds the smallest value that a JSON schema allows: objects with only the required members, the shortest
// strings, and the numbers nearest to zero.
type fitter struct {
	root wire.Value
	text string // the string to use if the schema does not limit the length
}

func fit(schema wire.Value, text string) any {
	f := fitter{schema, text}
	return f.value(schema, 0)
}

// maxFit limits the nesting depth, because a schema may refer to itself.
const maxFit = 24

func (f fitter) value(s wire.Value, depth int) any {
	if s.Kind() != wire.Object || depth > maxFit {
		return nil
	}
	if ref := s.Get("$ref"); ref.Kind() == wire.String {
		return f.value(f.resolve(ref.Str()), depth+1)
	}
	for _, key := range []string{"const", "default"} {
		if v := s.Get(key); v.Exists() && (key == "const" || f.text != "") {
			return v
		}
	}
	for v := range s.Get("enum").Items() {
		return v
	}
	for _, key := range []string{"anyOf", "oneOf"} {
		if options := s.Get(key); options.Len() > 0 {
			return f.smallest(options, depth)
		}
	}
	if all := s.Get("allOf"); all.Len() > 0 {
		return f.all(s, all, depth)
	}
	switch f.kind(s) {
	case "object":
		return f.object(s, depth)
	case "array":
		list := []any{}
		least, _ := s.Get("minItems").Int()
		for range min(least, 1000) {
			list = append(list, f.value(s.Get("items"), depth+1))
		}
		return list
	case "string":
		return f.str(s)
	case "integer", "number":
		return number(s)
	case "boolean":
		return false
	}
	return nil
}

// all returns a value for a schema that combines several parts. If a part's value is not an object, all returns the
// first such value. Otherwise it returns one object with the members of all parts.
func (f fitter) all(s, parts wire.Value, depth int) any {
	merged := object{}
	for part := range parts.Items() {
		v := f.value(part, depth+1)
		o, ok := v.(object)
		if !ok && v != nil {
			return v
		}
		merged = append(merged, o...)
	}
	return append(merged, f.object(s, depth)...)
}

// kind returns the schema's type in lower case, because Gemini writes types in capitals. For a list of types, kind
// returns null if the list contains it, else the first type.
func (f fitter) kind(s wire.Value) string {
	t := s.Get("type")
	if t.Kind() == wire.Array {
		name := "null"
		for v := range t.Items() {
			if v.Is("null") {
				return "null"
			}
			if name == "null" {
				name = v.Str()
			}
		}
		return strings.ToLower(name)
	}
	if t.Kind() == wire.String {
		return strings.ToLower(t.Str())
	}
	if s.Get("properties").Exists() || s.Get("required").Exists() {
		return "object"
	}
	if s.Get("items").Exists() {
		return "array"
	}
	return "object"
}

func (f fitter) object(s wire.Value, depth int) object {
	o := object{}
	for name := range s.Get("required").Items() {
		if _, have := o.get(name.Str()); !have {
			o = append(o, member{name.Str(), f.value(s.Get("properties").Get(name.Str()), depth+1)})
		}
	}
	return o
}

func (f fitter) str(s wire.Value) string {
	least, _ := s.Get("minLength").Int()
	if v, ok := map[string]string{
		"date-time": "2025-01-01T00:00:00Z", "date": "2025-01-01", "time": "00:00:00Z", "email": "a@b.c",
		"uri": "http://a/", "url": "http://a/", "uuid": "00000000-0000-4000-8000-000000000000",
	}[s.Get("format").Str()]; ok {
		return v
	}
	text := f.text
	if missing := int(min(least, 1<<20)) - len(text); missing > 0 {
		text += strings.Repeat("a", missing)
	}
	return text
}

func number(s wire.Value) any {
	v := int64(0)
	if m, ok := s.Get("minimum").Float(); ok && m > 0 {
		v = int64(m)
		if float64(v) < m {
			v++
		}
	}
	if m, ok := s.Get("exclusiveMinimum").Float(); ok && m >= 0 {
		v = max(v, int64(m)+1)
	}
	if m, ok := s.Get("maximum").Float(); ok && m < float64(v) {
		v = int64(m)
		if float64(v) > m {
			v--
		}
	}
	if step, ok := s.Get("multipleOf").Int(); ok && step > 0 && v%step != 0 {
		v += step - v%step
	}
	return v
}

// smallest builds a value for each option and returns the one with the shortest JSON.
func (f fitter) smallest(options wire.Value, depth int) any {
	var best any
	length := -1
	for o := range options.Items() {
		if f.kind(o) == "null" && !o.Get("$ref").Exists() && o.Get("type").Is("null") {
			return nil
		}
		v := f.value(o, depth+1)
		if n := len(appendJSON(nil, v)); length < 0 || n < length {
			best, length = v, n
		}
	}
	return best
}

// resolve returns the schema that a reference such as #/$defs/x points to. The result is missing for a reference
// outside the schema.
func (f fitter) resolve(ref string) wire.Value {
	path, ok := strings.CutPrefix(ref, "#")
	if !ok {
		return wire.Value{}
	}
	v := f.root
	for _, step := range slices.DeleteFunc(strings.Split(path, "/"), func(s string) bool { return s == "" }) {
		v = v.Get(strings.NewReplacer("~1", "/", "~0", "~").Replace(step))
	}
	return v
}
