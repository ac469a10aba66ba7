package fakellm

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/acp-test/acp-test/internal/lists"
	"github.com/acp-test/acp-test/wire"
)

// object is a JSON object that keeps the order of its members, so that a tool's arguments are sent in the order of
// the script.
type object []member

type member struct {
	key   string
	value any // one of nil, bool, int64, uint64, float64, string, object, []any
}

func (o object) get(key string) (any, bool) {
	m, ok := lists.Find(o, func(m member) bool { return m.key == key })
	return m.value, ok
}

// appendJSON appends the JSON encoding of v. v may have any type that member.value or encoding/json accepts.
func appendJSON(b []byte, v any) []byte { return appendValue(b, v, ",", ":") }

// appendFlow appends v in YAML's flow style: JSON with a space after each comma and colon.
func appendFlow(b []byte, v any) []byte { return appendValue(b, v, ", ", ": ") }

func appendValue(b []byte, v any, comma, colon string) []byte {
	switch v := v.(type) {
	case nil:
		return append(b, "null"...)
	case string:
		return wire.AppendString(b, v)
	case bool:
		return strconv.AppendBool(b, v)
	case int:
		return strconv.AppendInt(b, int64(v), 10)
	case int64:
		return strconv.AppendInt(b, v, 10)
	case uint64:
		return strconv.AppendUint(b, v, 10)
	case json.RawMessage:
		return append(b, v...)
	case wire.Value:
		return append(b, v.Raw()...)
	case object:
		b = append(b, '{')
		for i, m := range v {
			if i > 0 {
				b = append(b, comma...)
			}
			b = append(wire.AppendString(b, m.key), colon...)
			b = appendValue(b, m.value, comma, colon)
		}
		return append(b, '}')
	case []any:
		b = append(b, '[')
		for i, item := range v {
			if i > 0 {
				b = append(b, comma...)
			}
			b = appendValue(b, item, comma, colon)
		}
		return append(b, ']')
	}
	raw, err := json.Marshal(v)
	if err != nil {
		return append(b, "null"...)
	}
	return append(b, raw...)
}

// template appends text, which is a template for JSON. Each ? in it is replaced by the JSON of the next value or, if
// the value is a function, by the bytes that it appends.
func template(b []byte, text string, values ...any) []byte {
	for _, v := range values {
		before, after, _ := strings.Cut(text, "?")
		b = append(b, before...)
		if f, ok := v.(func([]byte) []byte); ok {
			b = f(b)
		} else {
			b = appendJSON(b, v)
		}
		text = after
	}
	return append(b, text...)
}

// textOr returns s, or nil (JSON null) if s is empty.
func textOr(s string) any {
	if s == "" {
		return nil
	}
	return s
}
