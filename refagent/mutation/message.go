package mutation

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"unicode/utf8"
)

// Message is one decoded message of a protocol. Its numbers are of type json.Number.
type Message map[string]any

// Decode parses a line as a message. It returns nil if the line is not a JSON object in UTF-8.
func Decode(line []byte) Message {
	m, _ := decodeValue(line).(map[string]any)
	return m
}

func decodeValue(text []byte) any {
	if !utf8.Valid(text) || !json.Valid(text) {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil {
		return nil
	}
	return v
}

// Encode returns the message as a line of JSON, with a newline at its end.
func (m Message) Encode() []byte { return append(encode(m), '\n') }

// encode returns a value as JSON. It returns null if JSON cannot encode the value.
func encode(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if e.Encode(v) != nil {
		return []byte("null")
	}
	return bytes.TrimRight(b.Bytes(), "\n")
}

// Object returns the object at a path of keys, or nil if there is none.
func (m Message) Object(path ...string) map[string]any {
	at := map[string]any(m)
	for _, key := range path {
		at, _ = at[key].(map[string]any)
	}
	return at
}

// Clone returns a deep copy of a message.
func (m Message) Clone() Message { return Message(cloned(map[string]any(m)).(map[string]any)) }

// Update returns the update in an ACP session/update message, and its tag. For any other message, it returns nil and
// "".
func (m Message) Update() (update map[string]any, tag string) {
	if m["method"] != "session/update" {
		return nil, ""
	}
	update = m.Object("params", "update")
	tag, _ = update["sessionUpdate"].(string)
	return update, tag
}

func cloned(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := maps.Clone(v)
		for key, inner := range out {
			out[key] = cloned(inner)
		}
		return out
	case Message:
		return cloned(map[string]any(v))
	case []any:
		out := slices.Clone(v)
		for i, inner := range out {
			out[i] = cloned(inner)
		}
		return out
	}
	return v
}

// merged merges the members of over into under, recursively, and returns the result. A null in over does not replace
// an existing member.
func merged(under, over any) any {
	a, ok := under.(map[string]any)
	b, both := over.(map[string]any)
	if !ok || !both {
		return over
	}
	for key, v := range b {
		if v != nil || a[key] == nil {
			a[key] = merged(a[key], v)
		}
	}
	return a
}
