// Package wire is the lowest layer: it reads the bytes of a connection as lines
// and JSON values. It loses nothing: every value keeps its exact bytes, even
// numbers of any size. No input makes it panic. It parses JSON strictly (RFC
// 8259, valid UTF-8) in one pass into a reusable flat table, so parsing a frame
// allocates nothing.
package wire

import (
	"iter"
	"strconv"
)

// Kind is the kind of a JSON value.
type Kind uint8

// The kinds. Missing is the kind of a value that does not exist, for example
// the result of Get for an absent key. It is not JSON null.
const (
	Missing Kind = iota
	Null
	Bool
	Number
	String
	Array
	Object
)

// String returns the name of the kind for messages: "null", "boolean", …
func (k Kind) String() string {
	return [...]string{"missing", "null", "boolean", "number", "string", "array", "object"}[min(k, Object)]
}

// Value is one value of a parsed text. It is small and passed by value. It is
// valid until its Doc parses another text. The zero Value is Missing, and all
// methods work on it.
type Value struct {
	d *Doc
	i uint32
}

func (v Value) node() *node { return &v.d.nodes[v.i] }

// Kind returns the kind of the value.
func (v Value) Kind() Kind {
	if v.d == nil {
		return Missing
	}
	return v.node().kind()
}

// Exists reports whether the value exists. It is true for null.
func (v Value) Exists() bool { return v.d != nil }

// IsNull reports whether the value exists and is null.
func (v Value) IsNull() bool { return v.Kind() == Null }

// Raw returns the exact bytes of the value, without surrounding white space. It
// returns nil for Missing. The slice is part of the parsed text.
func (v Value) Raw() []byte {
	if v.d == nil {
		return nil
	}
	n := v.node()
	return v.d.raw[n.start:n.end:n.end]
}

// Offset returns the offset of Raw in the parsed text, in bytes. It returns 0
// for Missing.
func (v Value) Offset() int {
	if v.d == nil {
		return 0
	}
	return int(v.node().start)
}

// Get returns the member of an object with this key. It returns Missing if
// there is none or the value is not an object. If a key occurs several times,
// the last one counts.
func (v Value) Get(key string) Value {
	var found Value
	if v.Kind() != Object {
		return found
	}
	nodes, raw := v.d.nodes, v.d.raw
	for i, end := v.i+1, nodes[v.i].next; i < end; i = nodes[i+1].next {
		n := &nodes[i]
		if n.is(flagEscaped) {
			if (Value{v.d, i}).Is(key) {
				found = Value{v.d, i + 1}
			}
			continue
		}
		// The lengths of most keys already differ. This loop is the hottest of all.
		if int(n.end-n.start)-2 == len(key) && string(raw[n.start+1:n.end-1]) == key {
			found = Value{v.d, i + 1}
		}
	}
	return found
}

// Path returns the value at a path of keys and array indexes, separated by
// dots, such as "params.options.0.kind". The empty path returns the value
// itself.
func (v Value) Path(dotted string) Value {
	for dotted != "" && v.Exists() {
		step := dotted
		if dot := indexByte(dotted, '.'); dot >= 0 {
			step, dotted = dotted[:dot], dotted[dot+1:]
		} else {
			dotted = ""
		}
		if v.Kind() == Array {
			at, err := strconv.Atoi(step)
			if err != nil {
				return Value{}
			}
			v = v.item(at)
		} else {
			v = v.Get(step)
		}
	}
	return v
}

// PathTo returns the path from v to a value inside of it, in the form that Path
// accepts. ok is false if inner is not inside v. If a key contains a dot, Path
// cannot follow the result.
func (v Value) PathTo(inner Value) (path string, ok bool) {
	if v.d == nil || inner.d != v.d || inner.i < v.i || inner.i >= v.node().next {
		return "", false
	}
	for v.i != inner.i {
		step := ""
		if v.Kind() == Array {
			at := 0
			for item := range v.Items() {
				if inner.i < item.node().next {
					v = item
					break
				}
				at++
			}
			step = strconv.Itoa(at)
		} else {
			for key, value := range v.Fields() {
				if inner.i < value.node().next {
					step = key.Str()
					v = value
					break
				}
			}
			if inner.i < v.i { // inner is a key: return the path of its value
				inner = v
			}
		}
		if path != "" {
			path += "."
		}
		path += step
	}
	return path, true
}

func indexByte(s string, c byte) int {
	for i := 0; i < len(s); i++ {
		if s[i] == c {
			return i
		}
	}
	return -1
}

func (v Value) item(at int) Value {
	for item := range v.Items() {
		if at == 0 {
			return item
		}
		at--
	}
	return Value{}
}

// Len returns the number of items of an array, the number of members of an
// object (counting repeated keys), or the length in bytes of a decoded string.
// It returns 0 for any other value.
func (v Value) Len() int {
	switch v.Kind() {
	case Array, Object:
		return int(v.node().count())
	case String:
		if inner, ok := v.Plain(); ok {
			return len(inner)
		}
		return len(v.Str())
	}
	return 0
}

// Items yields the items of an array in order. It yields nothing for other
// kinds.
func (v Value) Items() iter.Seq[Value] {
	return func(yield func(Value) bool) {
		if v.Kind() != Array {
			return
		}
		nodes := v.d.nodes
		for i, end := v.i+1, nodes[v.i].next; i < end; i = nodes[i].next {
			if !yield(Value{v.d, i}) {
				return
			}
		}
	}
}

// Find returns the first item of an array whose member key is the string text.
// It returns Missing if there is none.
func (v Value) Find(key, text string) Value {
	for item := range v.Items() {
		if item.Get(key).Is(text) {
			return item
		}
	}
	return Value{}
}

// Members yields the decoded keys and the values of an object in the order of
// the text, including repeated keys. It yields nothing for other kinds.
func (v Value) Members() iter.Seq2[string, Value] {
	return func(yield func(string, Value) bool) {
		for key, value := range v.Fields() {
			if !yield(key.Str(), value) {
				return
			}
		}
	}
}

// Fields is like Members, but yields the keys as String values. So it decodes
// and allocates nothing.
func (v Value) Fields() iter.Seq2[Value, Value] {
	return func(yield func(Value, Value) bool) {
		if v.Kind() != Object {
			return
		}
		nodes := v.d.nodes
		for i, end := v.i+1, nodes[v.i].next; i < end; i = nodes[i+1].next {
			if !yield(Value{v.d, i}, Value{v.d, i + 1}) {
				return
			}
		}
	}
}

// Whole reports whether the value is a number without fraction and exponent.
// The number may have any size.
func (v Value) Whole() bool { return v.Kind() == Number && v.node().is(flagInteger) }

// Int returns the value of a number without fraction and exponent that fits
// into 64 bits. It returns false for any other value.
func (v Value) Int() (int64, bool) {
	if !v.Whole() {
		return 0, false
	}
	n, err := strconv.ParseInt(string(v.Raw()), 10, 64)
	return n, err == nil
}

// Float returns a number as the nearest float64. It returns false if the value
// is not a number or is out of range.
func (v Value) Float() (float64, bool) {
	if v.Kind() != Number {
		return 0, false
	}
	f, err := strconv.ParseFloat(string(v.Raw()), 64)
	return f, err == nil
}

// Bool returns a boolean. ok is false for any other value.
func (v Value) Bool() (value, ok bool) {
	if v.Kind() != Bool {
		return false, false
	}
	return v.d.raw[v.node().start] == 't', true
}

// Text returns a string decoded and any other value as its raw text.
func (v Value) Text() string {
	if v.Kind() == String {
		return v.Str()
	}
	return string(v.Raw())
}
