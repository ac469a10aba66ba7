package yamlfile

import (
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/acp-test/acp-test/internal/lists"
	"github.com/acp-test/acp-test/mistake"
)

// Decoder is a type that decodes itself from a node. what is the name of the value in messages.
type Decoder interface {
	DecodeYAML(n *Node, what string)
}

// Decode decodes a node strictly: unknown keys of a struct and values of the wrong kind are mistakes. The yaml tag of
// a struct field is its key; fields without a tag are ignored. what is the name of the value in messages, and prefix
// the beginning of the names of its members. On a mistake, Decode panics, and mistake.Catch converts the panic to an
// error.
//
// A string also accepts a number or boolean, as written in the file, so that `PORT: 80` needs no quotes. A list of
// strings also accepts a single string.
func (n *Node) Decode(into any, what, prefix string) {
	n.decode(reflect.ValueOf(into).Elem(), what, prefix)
}

func (n *Node) decode(v reflect.Value, what, prefix string) {
	if d, ok := v.Addr().Interface().(Decoder); ok {
		d.DecodeYAML(n, what)
		return
	}
	switch into := v.Addr().Interface().(type) {
	case **Node:
		*into = n
	case *string:
		*into = n.String(what)
	case *bool:
		*into = n.Bool(what)
	case **bool:
		yes := n.Bool(what)
		*into = &yes
	case *int:
		*into = n.Int(what, 0)
	case *time.Duration:
		*into = n.Duration(what)
	case *time.Time:
		*into = n.Date(what)
	case **regexp.Regexp:
		*into = n.Pattern(what)
	case *[]string:
		*into = n.Strings(what)
	case *map[string]any:
		n.Map(what)
		*into, _ = n.Any().(map[string]any)
	default:
		n.decodeMany(v, what, prefix)
	}
}

func (n *Node) decodeMany(v reflect.Value, what, prefix string) {
	switch v.Kind() {
	case reflect.Struct:
		fields := map[string]reflect.Value{}
		var keys []string
		for _, f := range reflect.VisibleFields(v.Type()) {
			if key := f.Tag.Get("yaml"); key != "" {
				keys, fields[key] = append(keys, key), v.FieldByIndex(f.Index)
			}
		}
		n.Keys(what, keys...)
		for _, f := range n.Fields {
			f.decode(fields[f.Key], prefix+f.Key, prefix+f.Key+".")
		}
	case reflect.Slice:
		for _, item := range n.List(what) {
			one := reflect.New(v.Type().Elem()).Elem()
			item.decode(one, "an item of "+what, "")
			v.Set(reflect.Append(v, one))
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for _, f := range n.Map(what) {
			one := reflect.New(v.Type().Elem()).Elem()
			f.decode(one, what+"."+f.Key, what+"."+f.Key+".")
			v.SetMapIndex(reflect.ValueOf(f.Key), one)
		}
	default:
		panic("yamlfile: no way to read a " + v.Type().String())
	}
}

// Keys fails unless the node is empty or a mapping that has only known keys.
func (n *Node) Keys(what string, known ...string) {
	if n.Kind == Scalar || n.Kind == List {
		n.Fail("keys: "+strings.Join(known, ", "), "%s must be a mapping, not %s", what, n.What())
	}
	for _, f := range n.Fields {
		if !slices.Contains(known, f.Key) {
			f.At.Fail(mistake.Suggest(f.Key, known), "unknown key %q in %s", f.Key, what)
		}
	}
}

// Map returns the members of a mapping, or nil for an empty value.
func (n *Node) Map(what string) []Field {
	if n.Kind != Map && n.Kind != Null {
		n.Fail("", "%s must be a mapping, not %s", what, n.What())
	}
	return n.Fields
}

// List returns the items of a list, or nil for an empty value.
func (n *Node) List(what string) []*Node {
	if n.Kind != List && n.Kind != Null {
		n.Fail("", "%s must be a list, not %s", what, n.What())
	}
	return n.Items
}

// String returns a scalar as it is written, without its quotes.
func (n *Node) String(what string) string {
	if n.Kind != Scalar {
		n.Fail("", "%s must be a text, not %s", what, n.What())
	}
	return n.Text
}

// Strings returns a list of texts. A single text becomes a list with one element; an empty value becomes an empty
// list.
func (n *Node) Strings(what string) []string {
	if text, alone := n.Value.(string); alone {
		return []string{text}
	}
	return lists.Map(n.List(what), func(item *Node) string { return item.String("a word of " + what) })
}

// Bool returns a boolean. It fails for any other value.
func (n *Node) Bool(what string) bool {
	b, ok := n.Value.(bool)
	if !ok {
		n.Fail("", "%s must be true or false, not %s", what, n.What())
	}
	return b
}

// Int returns an integer. It fails if the value is not an integer, is less than least, or is greater than 2^30.
func (n *Node) Int(what string, least int) int {
	i, ok := n.Value.(int64)
	if !ok || i < int64(least) || i > 1<<30 {
		n.Fail("", "%s must be a whole number of at least %d, not %s", what, least, n.What())
	}
	return int(i)
}

// Duration returns a duration in Go's notation, such as 1m30s. It fails for any other value.
func (n *Node) Duration(what string) time.Duration {
	d, err := time.ParseDuration(n.String(what))
	if err != nil || d < 0 {
		n.Fail("", "%s must be a duration such as 20s or 1m30s, not %s", what, n.What())
	}
	return d
}

// Date returns a date, such as 2027-01-31, as midnight in UTC.
func (n *Node) Date(what string) time.Time {
	t, err := time.Parse(time.DateOnly, n.String(what))
	if err != nil {
		n.Fail("", "%s must be a date such as 2027-01-31, not %s", what, n.What())
	}
	return t
}

// Pattern compiles a regular expression. prefix begins the message if the expression is invalid.
func (n *Node) Pattern(prefix string) *regexp.Regexp {
	re, err := regexp.Compile(n.String(prefix))
	if err != nil {
		n.Fail("", "%s: %s", prefix, strings.TrimPrefix(err.Error(), "error parsing regexp: "))
	}
	return re
}

// Any returns the value in the types of package encoding/json, except that integers keep their type.
func (n *Node) Any() any {
	switch n.Kind {
	case List:
		list := []any{}
		list = append(list, lists.Map(n.Items, (*Node).Any)...)
		return list
	case Map:
		m := map[string]any{}
		for _, f := range n.Fields {
			m[f.Key] = f.Any()
		}
		return m
	}
	return n.Value
}
